//! Taking the kernel's view.

use crate::base::Gap;
use crate::os::pagemap;
use crate::os::process::Process;
use crate::os::target::{OsView, ProcessFacts};

/// The kernel's view of `process`, now.
pub fn os_view(process: &Process) -> Result<OsView, Gap> {
    let mut gaps = Vec::new();
    let status = process.status()?;
    let mappings = process.mappings()?;
    let pages = pagemap::scan(process, &mappings);
    let tasks = process.tasks().unwrap_or_else(|gap| {
        gaps.push(gap);
        Vec::new()
    });
    let facts =
        ProcessFacts { pid: process.pid, start_ticks: process.start_ticks, ..ProcessFacts::default() };
    Ok(OsView { process: facts, status, mappings, pages, tasks, gaps })
}
