//! Where each heap lies at the moment at which it is walked: a heap that grew since the arenas were read is walked as it is
//! now, and one that is gone is not.

use super::known_links::Budget;
use super::layout::{Layout, is_heap_size};
use super::region::{KeptLinks, Piece, Plan};
use super::walker::FLAGS;
use super::window::Source;
use crate::alloc::types::{Arena, ArenaHeap};
use crate::base::blocks::Witness;
use crate::base::limits::HEAP_WALK_BYTES_MAX;
use crate::base::{Addr, PAGE, Range, overlapping};
use crate::os::OsView;

/// How far `[heap]` may have grown since the mappings were read.
const GROWTH_BYTES_MAX: u64 = 1 << 30;

/// What all threads need.
pub struct Common<'a> {
    pub view: &'a OsView,
    pub layout: &'a Layout,
    pub arenas: &'a [Arena],
    pub witness: &'a dyn Witness,
    pub key: Option<u64>,
    /// By arena.
    pub kept: Vec<KeptLinks>,
    pub budget: Budget,
}

impl Common<'_> {
    pub fn resident(&self, source: &dyn Source, range: Range) -> Vec<Range> {
        source.resident(range).unwrap_or_else(|| self.view.resident_ranges(range))
    }

    /// Reads what is resident.
    pub fn read(&self, source: &dyn Source, at: Addr, into: &mut [u8]) -> Option<()> {
        let wanted = Range::sized(at, into.len() as u64);
        let is_in = |resident: Vec<Range>| resident.iter().any(|range| range.covers(wanted));
        let is_resident = self.view.resident_run(at).is_some_and(|run| run.covers(wanted))
            || is_in(self.resident(source, wanted.widened(PAGE)));
        if !is_resident || source.read(at, into).is_err() {
            return None;
        }
        source.used(at, into);
        Some(())
    }

    pub fn words<const COUNT: usize>(&self, source: &dyn Source, at: Addr) -> Option<[u64; COUNT]> {
        let mut raw = vec![0; COUNT * 8];
        self.read(source, at, &mut raw)?;
        let mut words = [0; COUNT];
        words.iter_mut().zip(raw.as_chunks::<8>().0).for_each(|(word, raw)| *word = u64::from_le_bytes(*raw));
        Some(words)
    }

    /// Where the heap lies at this moment; `None` when it is no more.
    pub fn plan(&self, arena: usize, heap: usize, source: &dyn Source) -> Option<Plan> {
        let found = self.arenas.get(arena)?;
        let ranges = found.heaps.get(heap)?.clone();
        match found.number {
            0 => Some(self.main_plan(arena, heap, ranges, source)),
            _ => self.thread_plan(arena, heap, ranges, source),
        }
        .filter(|plan| plan.ranges.in_arena.bytes() <= HEAP_WALK_BYTES_MAX)
    }

    fn thread_plan(&self, arena: usize, heap: usize, ranges: ArenaHeap, source: &dyn Source) -> Option<Plan> {
        let start = ranges.reserved.start;
        let owner = self.arenas[arena].at;
        let words: [u64; 4] = self.words(source, start)?;
        let is_same = words[0] == owner.0 && is_heap_size(words[2], words[3]);
        if !is_same || words[3] > ranges.reserved.bytes() {
            return None;
        }
        let header = self.layout.heap_header?;
        let state = if ranges.reserved.has(owner) { self.layout.state_bytes() } else { 0 };
        // The block behind the header, not its chunk, is aligned.
        let first_chunk = start.plus(header + state + 16).up_to(16).minus(16);
        let in_arena = Range::sized(start, words[2]);
        let ranges = ArenaHeap { reserved: ranges.reserved, in_arena };
        Some(Plan { arena, heap, ranges, first_chunk, kept: self.kept(arena) })
    }

    /// The main arena's segment; the one that holds top ends with it.
    fn main_plan(&self, arena: usize, heap: usize, ranges: ArenaHeap, source: &dyn Source) -> Plan {
        let start = ranges.reserved.start;
        let mut ranges = ranges;
        let reach = Range::new(start, ranges.reserved.end.plus(GROWTH_BYTES_MAX));
        let at = self.arenas[arena].at;
        if let Some([top]) = self.words(source, at.plus(self.layout.top_offset()))
            && reach.has(Addr(top))
            && self.arenas[arena]
                .heaps
                .iter()
                .all(|other| other.reserved.start == start || !other.reserved.has(Addr(top)))
            && let Some([size]) = self.words(source, Addr(top).plus(8))
        {
            let end = Addr(top).plus(size & !FLAGS);
            if end > Addr(top) && end <= reach.end {
                ranges.in_arena.end = end;
                ranges.reserved.end = end;
            }
        }
        Plan { arena, heap, ranges, first_chunk: start, kept: self.kept(arena) }
    }

    fn kept(&self, arena: usize) -> KeptLinks {
        self.kept.get(arena).copied().unwrap_or_default()
    }

    /// `range` cut where its pages change from resident to absent.
    pub fn pieces(&self, range: Range) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut from = range.start;
        let mut add = |range: Range, is_resident| {
            if !range.is_empty() {
                pieces.push(Piece { range, is_resident });
            }
        };
        if let Ok(runs) = &self.view.pages {
            for run in overlapping(runs, range, |run| run.range).filter(|run| run.is_placed()) {
                let here = run.range.intersect(range);
                add(Range::new(from, here.start), false);
                add(Range::new(here.start.max(from), here.end), run.is_present());
                from = here.end.max(from);
            }
        }
        add(Range::new(from, range.end), false);
        pieces
    }
}
