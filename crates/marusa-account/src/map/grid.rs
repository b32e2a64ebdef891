//! Every page of the address space in a row: its owner, and whether and how it is in memory. What a picture of pages is drawn
//! from. Pages in a row that are alike are one run, so that a heap of 100 GB on huge pages is a few of them.

use super::area::Area;
use super::types::{MemoryMap, Owner, Span};
use crate::base::{Bytes, PAGE, Range, overlapping};
use crate::os::page_kind::PageKind;
use crate::os::pagemap::PageRun;
use crate::snapshot::Snapshot;
use std::collections::HashMap;

/// What one block of a picture has.
pub const BLOCK: Bytes = 2 << 20;
/// Runs that a picture keeps; of more, the blocks have only the number of their pages in memory.
pub const RUNS_MAX: usize = 150_000;

/// How pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Reserved, not in memory.
    Absent,
    Swapped,
    /// In memory, on pages of this kind.
    Present(PageKind),
    /// The number of the run's pages in memory, without which ones: the picture would have too many runs.
    Some(u64),
}

/// Pages in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub range: Range,
    /// Index into `Grid::owners`.
    pub owner: usize,
    pub state: State,
}

/// Whose pages are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PageOwner {
    pub area: Area,
    /// The owner, or the largest of several.
    pub part: String,
    /// malloc's pages hold blocks of many.
    pub is_shared: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Sorted, disjoint; between them nothing is mapped.
    pub runs: Vec<Run>,
    pub owners: Vec<PageOwner>,
    /// Whether some runs are `State::Some`, because there would be too many.
    pub is_coarse: bool,
    /// Whether it is known where in its mapping each page lies; where not, they stand at its start.
    pub is_placed: bool,
    /// Whether the sizes are those of folios; else what one entry of the page table maps.
    pub has_folios: bool,
}

/// `None` where nothing is known of the pages.
pub fn grid(snapshot: &Snapshot, map: &MemoryMap) -> Option<Grid> {
    grid_of(snapshot, map, RUNS_MAX)
}

fn grid_of(snapshot: &Snapshot, map: &MemoryMap, runs_max: usize) -> Option<Grid> {
    let pages = snapshot.os.pages.as_ref().ok()?;
    let sizes = snapshot.os.page_sizes.as_ref().and_then(|sizes| sizes.as_ref().ok());
    let mut owners = Owners::default();
    let mut runs = Vec::new();
    for span in &map.spans {
        let owner = owners.of(&map.owners, span);
        let mapping = &snapshot.os.mappings[span.mapping];
        let mut add = |range, state| push(&mut runs, Run { range, owner, state });
        let mut at = span.range.start;
        for run in overlapping(pages, span.range, |run| run.range) {
            let piece = run.range.intersect(span.range);
            add(Range::new(at, piece.start), State::Absent);
            match sizes {
                Some(sizes) if run.is_present() => {
                    sizes.each(piece, run, mapping, |range, kind| add(range, State::Present(kind)));
                }
                None if run.is_present() => add(piece, State::Present(plain(run))),
                _ => add(piece, if run.is_swapped() { State::Swapped } else { State::Absent }),
            }
            at = piece.end;
        }
        add(Range::new(at, span.range.end), State::Absent);
    }
    let is_coarse = runs.len() > runs_max;
    if is_coarse {
        runs = coarse(&runs);
    }
    let is_placed = pages.iter().all(PageRun::is_placed);
    Some(Grid { runs, owners: owners.list, is_coarse, is_placed, has_folios: sizes.is_some() })
}

/// Without what was asked of folios: files, and all else by the entries of the page table.
fn plain(run: &PageRun) -> PageKind {
    use crate::os::page_kind::Backing;
    let bytes = Bytes::from(run.page_bytes);
    let backing = if run.is_file() { Backing::File } else { Backing::Anonymous };
    PageKind { backing, folio_bytes: bytes, entry_bytes: bytes }
}

/// Each owner once.
#[derive(Default)]
struct Owners {
    list: Vec<PageOwner>,
    known: HashMap<PageOwner, usize>,
}

impl Owners {
    fn of(&mut self, all: &[Owner], span: &Span) -> usize {
        let biggest = span.shares.iter().max_by_key(|share| share.figures.reserved);
        let owner = biggest.map(|share| &all[share.owner]);
        let key = PageOwner {
            area: owner.map_or(Area::Unattributed, |owner| owner.area),
            part: owner.map(|owner| owner.part.clone()).unwrap_or_default(),
            is_shared: span.shares.len() > 1,
        };
        *self.known.entry(key).or_insert_with_key(|key| {
            self.list.push(key.clone());
            self.list.len() - 1
        })
    }
}

/// What touches and is alike is one.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last)
            if last.range.end == run.range.start && last.owner == run.owner && last.state == run.state =>
        {
            last.range.end = run.range.end;
        }
        _ if run.range.is_empty() => {}
        _ => runs.push(run),
    }
}

/// Sums the pages in memory of each block and owner. What fills whole blocks stays as it is.
fn coarse(runs: &[Run]) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for run in runs {
        let mut rest = run.range;
        while !rest.is_empty() {
            let is_block = rest.start.is_aligned(BLOCK) && rest.bytes() >= BLOCK;
            let end = if is_block { rest.end.down_to(BLOCK) } else { rest.start.plus(1).up_to(BLOCK) };
            let piece = rest.intersect(Range::new(rest.start, end));
            add_coarse(&mut out, Run { range: piece, ..*run }, is_block);
            rest = Range::new(piece.end, rest.end);
        }
    }
    out
}

fn add_coarse(out: &mut Vec<Run>, run: Run, is_whole: bool) {
    if is_whole {
        return push(out, run);
    }
    let pages = |run: &Run| match run.state {
        State::Absent | State::Swapped => 0,
        State::Present(_) => run.range.bytes() / PAGE,
        State::Some(pages) => pages,
    };
    let counted = Run { state: State::Some(pages(&run)), ..run };
    match out.last_mut() {
        Some(last)
            if last.range.end == run.range.start
                && !run.range.start.is_aligned(BLOCK)
                && last.owner == run.owner
                && matches!(last.state, State::Some(_)) =>
        {
            last.state = State::Some(pages(last) + pages(&run));
            last.range.end = run.range.end;
        }
        _ => out.push(counted),
    }
}

#[cfg(test)]
#[path = "grid_tests.rs"]
mod tests;
