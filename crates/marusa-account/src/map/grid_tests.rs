use super::*;
use crate::jvm::Kind;
use crate::map::join;
use crate::map::made_up::{extent, run, snapshot};
use crate::os::page_kind::Backing;

impl Grid {
    /// Bytes in memory by the runs; a law of the tests: it is what the kernel's runs of pages say.
    pub fn resident_bytes(&self) -> Bytes {
        let of = |run: &Run| match run.state {
            State::Absent | State::Swapped => 0,
            State::Present(_) => run.range.bytes(),
            State::Some(pages) => pages * PAGE,
        };
        self.runs.iter().map(of).sum()
    }
}

const HEAP: u64 = 0x1000_0000;

fn heap(pages: Vec<PageRun>) -> (Snapshot, MemoryMap) {
    let maps = format!("{:x}-{:x} rw-p 00000000 00:00 0 \n", HEAP, HEAP + 4 * BLOCK);
    let eden = extent(HEAP, HEAP + BLOCK, Kind::JavaHeap, "eden", None);
    let old = extent(HEAP + BLOCK, HEAP + 4 * BLOCK, Kind::JavaHeap, "old", None);
    let snapshot = snapshot(&maps, pages, vec![eden, old]);
    let map = join(&snapshot);
    (snapshot, map)
}

#[test]
fn every_page_of_the_address_space_is_in_one_run() {
    let huge = PageRun { page_bytes: 2 << 20, ..run(HEAP + BLOCK, HEAP + 3 * BLOCK, 1) };
    let swapped = PageRun { bits: PageRun::SWAPPED, ..run(HEAP + 3 * BLOCK, HEAP + 3 * BLOCK + 8192, 0) };
    let (snapshot, map) = heap(vec![run(HEAP + 4096, HEAP + 12288, 1), huge, swapped]);
    let grid = grid(&snapshot, &map).expect("the pages are known");
    let seen: Vec<(u64, u64, &str, State)> = grid
        .runs
        .iter()
        .map(|run| {
            let part = grid.owners[run.owner].part.as_str();
            (run.range.start.0 - HEAP, run.range.bytes(), part, run.state)
        })
        .collect();
    let small = State::Present(PageKind::small(Backing::Anonymous));
    let large =
        State::Present(PageKind { backing: Backing::Anonymous, folio_bytes: 2 << 20, entry_bytes: 2 << 20 });
    assert_eq!(
        seen,
        [
            (0, 4096, "eden", State::Absent),
            (4096, 8192, "eden", small),
            (12288, BLOCK - 12288, "eden", State::Absent),
            (BLOCK, 2 * BLOCK, "old", large),
            (3 * BLOCK, 8192, "old", State::Swapped),
            (3 * BLOCK + 8192, BLOCK - 8192, "old", State::Absent),
        ]
    );
    assert_eq!(grid.resident_bytes(), map.balance.total.resident);
    assert!(grid.is_placed && !grid.is_coarse && !grid.has_folios);
}

#[test]
fn too_many_runs_become_counts_of_blocks_and_the_sum_stays() {
    // Every second page of the first three blocks, and a hole.
    let pages = (0..3 * BLOCK / 8192).map(|at| run(HEAP + at * 8192, HEAP + at * 8192 + 4096, 1)).collect();
    let (snapshot, map) = heap(pages);
    let fine = grid_of(&snapshot, &map, usize::MAX).expect("known");
    let coarse = grid_of(&snapshot, &map, 100).expect("known");
    assert!(coarse.is_coarse && coarse.runs.len() <= 4, "{} runs", coarse.runs.len());
    assert_eq!(coarse.resident_bytes(), fine.resident_bytes());
    assert_eq!(coarse.runs[0].state, State::Some(256));
    assert_eq!(coarse.runs.last().map(|run| run.state), Some(State::Absent), "a whole block stays as it is");
    let covered = |grid: &Grid| grid.runs.iter().map(|run| run.range.bytes()).sum::<u64>();
    assert_eq!(covered(&coarse), covered(&fine));
}

#[test]
fn nothing_is_drawn_where_no_page_is_known() {
    let (mut snapshot, map) = heap(Vec::new());
    snapshot.os.pages = Err(crate::base::Gap::new("pages", crate::base::Why::Denied));
    assert_eq!(grid(&snapshot, &map), None);
}
