//! Runs of pages that are alike: what each way of reading the pages of a process gives.

use crate::base::{Gap, Range};
use serde::{Deserialize, Serialize};

/// Pages in a row that are alike, within one mapping. Absent pages have no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRun {
    pub range: Range,
    /// `PageRun::PRESENT` and the other bits.
    pub bits: u8,
    /// Bytes of one mapped page: a base page, or what an entry of a higher page table maps.
    pub page_bytes: u32,
    /// How many page tables map each page; 0 when not known.
    pub mapped_times: u32,
}

impl PageRun {
    pub const PRESENT: u8 = 1;
    pub const SWAPPED: u8 = 2;
    /// A page of the page cache or of shared memory, not a private copy.
    pub const FILE: u8 = 4;
    /// The run has the right length, but where in its mapping its pages lie is not known: it stands at the start.
    pub const PLACE_UNKNOWN: u8 = 8;

    pub fn is_present(&self) -> bool {
        self.bits & Self::PRESENT != 0
    }
    pub fn is_swapped(&self) -> bool {
        self.bits & Self::SWAPPED != 0
    }
    pub fn is_file(&self) -> bool {
        self.bits & Self::FILE != 0
    }
    pub fn is_placed(&self) -> bool {
        self.bits & Self::PLACE_UNKNOWN == 0
    }
    fn same_as(&self, other: &PageRun) -> bool {
        (self.bits, self.page_bytes, self.mapped_times) == (other.bits, other.page_bytes, other.mapped_times)
    }
}

/// How the pages were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    PagemapScan,
    Pagemap,
    Smaps,
}

/// The pages of a process.
#[derive(Clone, Debug)]
pub struct Pages {
    /// Sorted, disjoint, each within one mapping.
    pub runs: Vec<PageRun>,
    pub method: Method,
    pub gaps: Vec<Gap>,
}

/// Adds a run, joined with the last one if both are alike and lie in the mapping `within`.
pub(super) fn push_run(runs: &mut Vec<PageRun>, run: PageRun, within: Range) {
    match runs.last_mut() {
        Some(last)
            if last.range.end == run.range.start && last.same_as(&run) && within.has(last.range.start) =>
        {
            last.range.end = run.range.end;
        }
        _ => runs.push(run),
    }
}
