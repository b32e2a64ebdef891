//! The blocks of a mapping that could each be one huge page, and how much of each is in memory.

use super::reason::Reason;
use crate::base::{Addr, Bytes, Range};
use crate::os::pagemap::PageRun;

/// Where bytes lie.
#[derive(Clone, Copy)]
pub enum Zone<'a> {
    /// In no whole block of the mapping, for this reason.
    Outside(&'a Reason),
    /// In a block with this many bytes in memory.
    Block(Bytes),
}

pub struct Blocks {
    /// From the first whole block of the mapping to the last; empty where it has none.
    whole: Range,
    outside: Reason,
    unit: Bytes,
    /// Blocks that a run covers in part: what is in memory of each. A block that is not here is covered by one run.
    partly: Vec<(Addr, Bytes)>,
}

impl Blocks {
    /// `unit` is a power of two.
    pub fn new(mapping: Range, runs: &[PageRun], unit: Bytes) -> Blocks {
        let whole = Range::new(mapping.start.up_to(unit), mapping.end.down_to(unit));
        let outside = match () {
            () if !whole.is_empty() => Reason::Edge,
            () if mapping.bytes() < unit => Reason::TooSmall,
            () => Reason::Unaligned,
        };
        let mut blocks = Blocks { whole, outside, unit, partly: Vec::new() };
        for run in runs.iter().filter(|run| run.is_present() && run.is_placed()) {
            let inner = run.range.intersect(whole);
            let (first, last) = (inner.start.up_to(unit), inner.end.down_to(unit));
            if inner.is_empty() {
                continue;
            }
            blocks.add(Range::new(inner.start, first.min(inner.end)));
            if last >= first {
                blocks.add(Range::new(last, inner.end));
            }
        }
        blocks
    }

    /// A piece within one block.
    fn add(&mut self, piece: Range) {
        let block = piece.start.down_to(self.unit);
        match self.partly.last_mut() {
            _ if piece.is_empty() => {}
            Some((last, bytes)) if *last == block => *bytes += piece.bytes(),
            _ => self.partly.push((block, piece.bytes())),
        }
    }

    fn resident(&self, block: Addr) -> Bytes {
        let found = self.partly.binary_search_by_key(&block, |(at, _)| *at);
        found.map_or(self.unit, |index| self.partly[index].1)
    }

    pub fn is_partly(&self, zone: Zone) -> bool {
        matches!(zone, Zone::Block(resident) if resident < self.unit)
    }

    /// The zones of a piece of a run, with the bytes in each.
    pub fn each<'a>(&'a self, run: &PageRun, piece: Range, visit: &mut dyn FnMut(Zone<'a>, Bytes)) {
        if !run.is_placed() {
            let zone =
                if self.whole.is_empty() { Zone::Outside(&self.outside) } else { Zone::Block(self.unit) };
            return visit(zone, piece.bytes());
        }
        let inner = piece.intersect(self.whole);
        let outside = piece.bytes() - inner.bytes();
        if outside > 0 {
            visit(Zone::Outside(&self.outside), outside);
        }
        let mut at = inner.start;
        while at < inner.end {
            let block = at.down_to(self.unit);
            let whole_until = inner.end.down_to(self.unit);
            let end = if at == block && whole_until > at {
                whole_until
            } else {
                block.plus(self.unit).min(inner.end)
            };
            let resident = if end == whole_until && at == block { self.unit } else { self.resident(block) };
            visit(Zone::Block(resident), Range::new(at, end).bytes());
            at = end;
        }
    }
}
