//! The allocator's memory after it was walked, whose blocks may still be given to owners; and its sums after that.

use super::glibc::chunk_map::{Code, Entry, HEADER_BYTES};
use super::glibc::lists::region_of;
use super::glibc::mmapped::{Mapped, aligned_start};
use super::glibc::region::Region;
use super::glibc::walk::Walked;
use super::types::{AllocView, BlockCount};
use crate::base::blocks::{Block, Blocks, LABELS_MAX, Label, Labelled, Move};
use crate::base::{Addr, Range, place_of};

pub struct Heap {
    view: AllocView,
    walked: Walked,
}

/// Where a block lies among what was walked, so that all of them can be visited in the order of addresses.
enum Unit<'a> {
    Region(&'a Region),
    Mapped(&'a Mapped),
}

impl Heap {
    pub fn new(view: AllocView, walked: Walked) -> Heap {
        Heap { view, walked }
    }

    /// All that malloc holds: the reservations of the arenas' heaps, and the mapped chunks.
    pub fn held(&self) -> impl Iterator<Item = Range> {
        let heaps = self.view.arenas.iter().flat_map(|arena| arena.heaps.iter().map(|heap| heap.reserved));
        heaps.chain(self.view.mmapped.iter().copied())
    }

    /// The sums, after all labels are given.
    pub fn finish(self) -> AllocView {
        let Heap { mut view, walked } = self;
        // What was found of another allocator's blocks is counted already.
        let labels = view.in_use.len().max(LABELS_MAX);
        view.in_use.resize(labels, BlockCount::default());
        for (region, sums) in walked.regions.iter().zip(walked.sums()) {
            let arena = &mut view.arenas[region.plan.arena];
            if let Ok(figures) = &mut arena.figures {
                figures.add(&sums.figures);
            }
            for (sum, more) in view.in_use.iter_mut().zip(sums.in_use) {
                *sum = BlockCount { blocks: sum.blocks + more.blocks, bytes: sum.bytes + more.bytes };
            }
            view.intervals.extend(sums.intervals);
        }
        for mapped in &walked.mapped {
            mapped.intervals(&mut view.in_use, &mut view.intervals);
        }
        view.intervals.sort_by_key(|interval| interval.range.start);
        view.in_use
            .truncate(view.in_use.iter().rposition(|count| count.blocks > 0).map_or(0, |last| last + 1));
        view
    }

    fn mapped(&self, at: Addr) -> Option<usize> {
        place_of(&self.walked.mapped, at, Mapped::payload)
    }
}

/// The block of an entry, if it is one in use.
fn block(entry: Entry) -> Option<Block> {
    let label = entry.code.label()?;
    let payload = Range::new(entry.range.start.plus(2 * HEADER_BYTES), entry.range.end.plus(HEADER_BYTES));
    Some(Block { payload, label })
}

impl Blocks for Heap {
    fn each(&self, visit: &mut dyn FnMut(Block) -> bool) {
        let mut units: Vec<(Addr, Unit)> = Vec::new();
        units.extend(
            self.walked.regions.iter().map(|region| (region.map.range().start, Unit::Region(region))),
        );
        units.extend(self.walked.mapped.iter().map(|mapped| (mapped.range.start, Unit::Mapped(mapped))));
        units.sort_by_key(|(start, _)| *start);
        for (_, unit) in units {
            let goes_on = match unit {
                Unit::Region(region) => region.map.entries().filter_map(block).all(&mut *visit),
                Unit::Mapped(mapped) => visit(Block { payload: mapped.payload(), label: mapped.label }),
            };
            if !goes_on {
                return;
            }
        }
    }

    fn aligned(&self, payload: Range, words: &dyn Fn(Addr) -> Option<[u64; 2]>) -> Option<Addr> {
        let mapped = &self.walked.mapped[self.mapped(payload.start)?];
        aligned_start(mapped.range, words).filter(|start| payload.has(*start))
    }
}

impl Labelled for Heap {
    fn relabel(&mut self, starts: &[u64], labels: &[Label]) {
        for region in &mut self.walked.regions {
            let range = region.map.range();
            let first = starts.partition_point(|start| *start < range.start.0);
            let blocks = starts[first..].iter().take_while(|start| **start < range.end.0);
            for (start, label) in blocks.zip(labels.iter().skip(first)) {
                region.map.relabel(Addr(*start).minus(2 * HEADER_BYTES), Code::in_use(*label));
            }
        }
        for mapped in &mut self.walked.mapped {
            let place = starts.binary_search(&mapped.payload().start.0).ok();
            if let Some(label) = place.and_then(|place| labels.get(place)) {
                mapped.label = Code::in_use(*label).label().unwrap_or_default();
            }
        }
    }

    fn hand_over(&mut self, from: Label, moves: &[Move]) {
        for region in &mut self.walked.regions {
            let range = region.map.range();
            let first = moves.partition_point(|one| one.payload < range.start);
            let behind = moves.partition_point(|one| one.payload < range.end);
            region.hand_over(from, &moves[first..behind.max(first)]);
        }
        for mapped in self.walked.mapped.iter_mut().filter(|mapped| mapped.label == from) {
            let at = mapped.payload().start;
            if let Ok(place) = moves.binary_search_by_key(&at, |one| one.payload) {
                mapped.label = Code::in_use(moves[place].to).label().unwrap_or_default();
            }
        }
    }

    fn label(&mut self, payload: Addr, label: Label) {
        if let Some(index) = self.mapped(payload) {
            let mapped = &mut self.walked.mapped[index];
            if mapped.payload().start == payload {
                mapped.label = Code::in_use(label).label().unwrap_or_default();
            }
            return;
        }
        let Some(chunk) = payload.0.checked_sub(2 * HEADER_BYTES).map(Addr) else { return };
        if let Some(index) = region_of(&self.walked.regions, chunk) {
            let map = &mut self.walked.regions[index].map;
            if map.get(chunk).is_some_and(|code| code.label().is_some()) {
                map.put(chunk, Code::in_use(label));
            }
        }
    }
}
