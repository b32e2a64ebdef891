//! The pages of large mappings, which are scanned while the rest of the target is read: who scans, and who waits for them.

use crate::base::{Gap, Known, Why};
use crate::os::budget;
use crate::os::folios;
use crate::os::late_pages::LatePages;
use crate::os::page_kind::PageSizes;
use crate::os::pagemap::{self, PageRun};
use crate::os::process::Process;
use crate::os::target::OsView;
use std::sync::Arc;

/// The folios of all pages; waits for the ones that are late.
pub fn page_sizes(process: &Process, os: &OsView) -> Known<PageSizes> {
    let runs = all_of(os).as_ref().map_err(Gap::clone)?;
    folios::read(process, &os.mappings, runs, &os.status)
}

/// Another thread looks at the late pages; this one does, where there can be none.
pub fn by_a_thread(late: LatePages) -> Arc<LatePages> {
    let late = Arc::new(late);
    let shared = late.clone();
    if std::thread::Builder::new().spawn(budget::inherit(move || shared.work())).is_err() {
        late.work();
    }
    late
}

/// Waits for the late pages. The sum of all is compared with what the kernel says now, as what `read` compares is.
pub fn all_pages(
    process: &Process,
    os: &OsView,
    late: &LatePages,
    gaps: &mut Vec<Gap>,
) -> Known<Vec<PageRun>> {
    let early = os.pages.as_ref().map_err(Gap::clone)?;
    let mut pages = pagemap::complete(process, &os.mappings, &os.status, early, late)?;
    gaps.append(&mut pages.gaps);
    Ok(pages.runs)
}

/// Every run of the process; waits for the ones that are late.
pub fn all_of(os: &OsView) -> &Known<Vec<PageRun>> {
    os.late.as_ref().map_or(&os.pages, |late| late.all())
}

/// Who waits for the late pages gets an answer, even if the thread that puts them together panics.
pub struct Settling<'a>(pub &'a LatePages);

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        self.0.settle(Err(Gap::new("pages", Why::Torn)));
    }
}
