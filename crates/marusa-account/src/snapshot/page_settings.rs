//! What decides the size of pages, read next to the pages themselves: the host's settings, and what the kernel notes of each
//! mapping (advised, advised against, hugetlb).
//!
//! Only smaps tells what was advised, and the kernel walks every small page for it: 15 to 20 ms a gigabyte. So it is asked
//! only where few bytes are on small pages; elsewhere the flags of the JVM are the evidence.

use super::types::Snapshot;
use crate::base::limits::ADVICE_SMALL_PAGES_BYTES_MAX;
use crate::base::{Addr, Bytes};
use crate::os::host_pages::HostPages;
use crate::os::machine::huge_page;
use crate::os::pagemap::PageRun;
use crate::os::process::Process;
use crate::os::smaps::{self, Smap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSettings {
    pub host: HostPages,
    /// By the start of the mapping; one that is missing has no advice. `None`: not read.
    pub advice: Option<BTreeMap<Addr, Advice>>,
}

/// What the kernel notes of a mapping: VmFlags of smaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// `hg`: MADV_HUGEPAGE.
    HugePages,
    /// `nh`: MADV_NOHUGEPAGE, or a stack since Linux 6.7.
    NoHugePages,
    /// `ht`: pages of hugetlb.
    Hugetlb,
}

/// Reads them for a snapshot that was just taken.
pub fn read(process: &Process, snapshot: &Snapshot) -> PageSettings {
    let small = small_bytes(snapshot.os.pages.as_deref().unwrap_or_default());
    let advice = match &snapshot.os.smaps {
        Some(Ok(smaps)) => Some(advice(smaps)),
        _ if small <= ADVICE_SMALL_PAGES_BYTES_MAX => smaps::read(process).ok().map(|smaps| advice(&smaps)),
        _ => None,
    };
    PageSettings { host: HostPages::read(process), advice }
}

fn small_bytes(runs: &[PageRun]) -> Bytes {
    let small = runs.iter().filter(|run| run.is_present() && Bytes::from(run.page_bytes) < huge_page());
    small.map(|run| run.range.bytes()).sum()
}

fn advice(smaps: &[Smap]) -> BTreeMap<Addr, Advice> {
    let of = |smap: &Smap| match () {
        () if smap.has_flag("ht") => Some(Advice::Hugetlb),
        () if smap.has_flag("nh") => Some(Advice::NoHugePages),
        () if smap.has_flag("hg") => Some(Advice::HugePages),
        () => None,
    };
    smaps.iter().filter_map(|smap| Some((smap.range.start, of(smap)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_advice_that_was_given_is_kept() {
        let text = "1000-2000 rw-p 0 00:00 0 \nVmFlags: rd wr hg \n3000-4000 rw-p 0 00:00 0 \nVmFlags: rd nh \n\
                    5000-6000 rw-p 0 00:00 0 \nVmFlags: rd wr ht \n7000-8000 rw-p 0 00:00 0 \nVmFlags: rd wr \n";
        let advice = advice(&smaps::parse(text));
        let kept: Vec<(u64, Advice)> = advice.iter().map(|(at, advice)| (at.0, *advice)).collect();
        let expected =
            [(0x1000, Advice::HugePages), (0x3000, Advice::NoHugePages), (0x5000, Advice::Hugetlb)];
        assert_eq!(kept, expected);
    }
}
