//! The pages of large mappings, looked at while other things are read already. The kernel looks at each page, some 3 ms for
//! a gigabyte, and the way to what the runtime and malloc know of themselves does not lead through the pages of a heap. Who
//! asks for one of them before all are looked at helps, and waits.

use super::maps::{Mapping, find_mapping};
use super::page_run::{PageRun, push_run};
use super::pagemap_scan::{Scanner, cut, is_alike, is_large};
use super::process::Process;
use crate::base::{Gap, Known, Range, Why, overlapping};
use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub struct LatePages {
    file: File,
    /// Whose pages these are, sorted.
    mappings: Vec<Mapping>,
    pieces: Vec<Piece>,
    /// The first piece that nobody has taken.
    next: AtomicUsize,
    /// Every run of the process, those of other mappings included.
    all: OnceLock<Known<Vec<PageRun>>>,
}

#[derive(Debug)]
struct Piece {
    range: Range,
    runs: OnceLock<Known<Vec<PageRun>>>,
}

/// Who waits for a piece gets an answer, even if the thread that looks at it panics.
struct Answer<'a>(&'a OnceLock<Known<Vec<PageRun>>>);

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        let _ = self.0.set(Err(Gap::new("PAGEMAP_SCAN", Why::NotInThisKernel)));
    }
}

impl LatePages {
    /// `None` where no mapping is worth it, or nothing can be asked.
    pub fn of(process: &Process, mappings: &[Mapping]) -> Option<LatePages> {
        let mappings: Vec<Mapping> = mappings.iter().filter(|mapping| is_late(mapping)).cloned().collect();
        let pieces: Vec<Piece> = mappings
            .iter()
            .flat_map(|mapping| cut(mapping.range, true))
            .map(|range| Piece { range, runs: OnceLock::new() })
            .collect();
        if pieces.is_empty() {
            return None;
        }
        let file = process.open_file("pagemap").ok()?;
        Some(LatePages { file, mappings, pieces, next: AtomicUsize::new(0), all: OnceLock::new() })
    }

    /// Whether the runs of some page of `range` may only be found in `all`.
    pub fn overlaps(&self, range: Range) -> bool {
        overlapping(&self.mappings, range, |mapping| mapping.range).next().is_some()
    }

    /// Scans the pieces that no thread has taken yet.
    pub fn work(&self) {
        let mut scanner = Scanner::new(&self.file, &self.mappings);
        while let Some(piece) = self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let answer = Answer(&piece.runs);
            let _ = answer.0.set(scanner.scan(piece.range, true));
        }
    }

    /// The runs of these mappings; waits until all are looked at.
    pub fn runs(&self) -> Known<Vec<PageRun>> {
        let mut runs = Vec::new();
        for piece in &self.pieces {
            let within = find_mapping(&self.mappings, piece.range.start);
            let within = within.map_or(piece.range, |mapping| mapping.range);
            let found = piece.runs.wait().as_ref().map_err(Gap::clone)?;
            found.iter().for_each(|run| push_run(&mut runs, *run, within));
        }
        Ok(runs)
    }

    /// Says what all runs of the process are, to those who wait for it.
    pub fn settle(&self, all: Known<Vec<PageRun>>) {
        let _ = self.all.set(all);
    }

    /// All runs of the process, once they are known.
    pub fn all(&self) -> &Known<Vec<PageRun>> {
        self.work();
        self.all.wait()
    }
}

/// Memory without access rights is scanned in no time: it has no page tables.
pub fn is_late(mapping: &Mapping) -> bool {
    is_alike(mapping) && is_large(mapping.range) && mapping.rights.any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::{maps, pagemap_scan};

    #[test]
    fn late_runs_are_those_of_one_scan() {
        let bytes = 600 << 20;
        let mut memory = memmap2::MmapMut::map_anon(bytes).expect("memory");
        for page in [0, 1, 5, 70_000, 153_599] {
            memory[page * 4096] = 1;
        }
        let process = Process::open(std::process::id() as i32).expect("myself");
        let start = memory.as_ptr() as u64;
        let mappings: Vec<Mapping> = maps::parse(&process.maps_text().expect("maps")).0;
        let Some(late) = LatePages::of(&process, &mappings) else { panic!("a large mapping") };
        assert!(late.overlaps(Range::of(start + 4096, start + 4097)));
        assert!(!late.overlaps(Range::of(0x1000, 0x2000)));
        // Before Linux 6.7 nothing is reported.
        let ranges: Vec<Range> = late.mappings.iter().map(|mapping| mapping.range).collect();
        let Ok(expected) = pagemap_scan::scan_ranges(&process, &mappings, &ranges) else { return };
        std::thread::scope(|scope| {
            scope.spawn(|| late.settle(late.runs()));
            assert_eq!(late.all().as_ref().map(Vec::len), Ok(expected.len()));
        });
        let of_memory = |runs: &[PageRun]| -> Vec<Range> {
            let range = Range::of(start, start + bytes as u64);
            runs.iter().map(|run| run.range.intersect(range)).filter(|range| !range.is_empty()).collect()
        };
        let found = late.runs().expect("runs");
        assert_eq!(of_memory(&found), of_memory(&expected));
        assert_eq!(of_memory(&found).len(), 4);
    }
}
