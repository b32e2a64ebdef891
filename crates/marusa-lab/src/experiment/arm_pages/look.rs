//! On which pages the heap of a JVM lies, by its page tables, and why not on the ones that were wanted.

use super::PageMode;
use crate::base::{Bytes, Gap, Known, Why};
use crate::map::page_claims::{self, Asked};
use crate::map::page_use::{PageUse, Provider};
use crate::map::{self, Area, MemoryMap, why};
use crate::os::cpus;
use crate::os::machine::{base_page, huge_page};
use crate::os::process::{OpenError, Process};
use crate::pages::verify;
use crate::snapshot::{self, Snapshot, Want, page_settings};

/// The share of the heap in memory that must be on the arm's pages. Transparent ones are missing at the ends of
/// mappings, and where the kernel found none.
const TRANSPARENT_SHARE_MIN: f64 = 0.90;
const HUGETLB_SHARE_MIN: f64 = 0.99;
const SMALL_SHARE_MIN: f64 = 0.99;

/// On which pages the heap of a JVM lies.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct Verified {
    pub mode: PageMode,
    pub heap_resident_bytes: Bytes,
    pub heap_wanted_bytes: Bytes,
    /// "2M hugetlb 99.8 %, 4K 0.2 %".
    pub text: String,
    pub met: bool,
    /// Why not.
    pub why: Option<String>,
}

impl Verified {
    /// The share of the heap in memory that is on the wanted pages.
    pub fn share(&self) -> Option<f64> {
        (self.heap_resident_bytes > 0)
            .then(|| self.heap_wanted_bytes as f64 / self.heap_resident_bytes as f64)
    }
}

/// Looks at a running JVM.
pub fn verify(pid: i32, mode: PageMode) -> Known<Verified> {
    let failed =
        |error: OpenError| Gap::new(format!("the pages of pid {pid}"), Why::Gone).hint(error.to_string());
    let process = Process::open(pid).map_err(failed)?;
    let mut snapshot = snapshot::take(&process, Want { page_sizes: true, ..Want::default() })?;
    snapshot.taken.page_settings = Some(page_settings::read(&process, &snapshot));
    Ok(verified(&process, &snapshot, &map::join(&snapshot), mode))
}

/// The same from a snapshot with page sizes and settings.
pub fn verified(process: &Process, snapshot: &Snapshot, map: &MemoryMap, mode: PageMode) -> Verified {
    let heap = PageUse::of(snapshot, map, |_, owner| map.owners[owner].area == Area::JavaHeap);
    let wanted = heap.on(|provider, page_bytes| match mode {
        PageMode::AsIs => true,
        PageMode::Small => page_bytes == base_page(),
        PageMode::Thp => provider == Provider::Transparent && page_bytes >= huge_page(),
        PageMode::HugeTlb2M => provider == Provider::Hugetlb,
        PageMode::HugeTlb1G => provider == Provider::Hugetlb && page_bytes >= 1 << 30,
    });
    let share_min = match mode {
        PageMode::AsIs => 0.0,
        PageMode::Small => SMALL_SHARE_MIN,
        PageMode::Thp => TRANSPARENT_SHARE_MIN,
        PageMode::HugeTlb2M | PageMode::HugeTlb1G => HUGETLB_SHARE_MIN,
    };
    let mut found = Verified {
        mode,
        heap_resident_bytes: heap.resident_bytes,
        heap_wanted_bytes: wanted,
        text: heap.text(),
        met: mode == PageMode::AsIs,
        why: None,
    };
    if let Some(share) = found.share() {
        found.met = share >= share_min;
    }
    if !found.met {
        found.why = Some(reason(process, snapshot, map, &found));
    }
    found
}

fn reason(process: &Process, snapshot: &Snapshot, map: &MemoryMap, found: &Verified) -> String {
    if found.heap_resident_bytes == 0 {
        let jvm = snapshot.jvm.as_ref().err().map(|gap| format!(": {gap}")).unwrap_or_default();
        return format!("nothing of a heap was found in memory{jvm}");
    }
    if let Err(gap) = &snapshot.os.pages {
        return format!("the pages cannot be read: {gap}");
    }
    let short = format!("of the heap only {} are on {} pages", percent(found), found.mode);
    match cause(process, snapshot, map) {
        Some(cause) => format!("{short}: {cause}"),
        None => short,
    }
}

fn percent(found: &Verified) -> String {
    map::page_use::percent(found.heap_wanted_bytes, found.heap_resident_bytes)
}

/// What `marusa pages verify` would say first.
fn cause(process: &Process, snapshot: &Snapshot, map: &MemoryMap) -> Option<String> {
    let asked = Asked::of(snapshot);
    if asked.refused {
        return Some("the JVM found no large pages when it started, and switched its flag off".to_string());
    }
    let (promise, _) = verify::by_flags(snapshot, cpus::of(process, true))?;
    let findings = why::findings(snapshot, map);
    let claims = page_claims::claims(snapshot, map, &page_claims::Said::default());
    let look = verify::Look { snapshot, map, findings: &findings, logged: &[], claims: &claims };
    let report = verify::verify(&promise, &look);
    report.causes.into_iter().next().map(|cause| cause.what)
}
