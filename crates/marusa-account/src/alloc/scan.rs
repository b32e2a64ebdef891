//! The runtime's blocks in memory of an allocator that is not walked, found by the runtime's own marks alone.
//!
//! It searches anonymous memory without another claim. A piece of it in which at least one marked block lies is taken for
//! the allocator's as a whole; what is not a block there is free, the allocator's own, or another library's. Pieces without
//! any are left alone. Where memory can be read by two threads at once, each piece is cut into parts that they share.

use super::glibc::window::{MemorySource, Source};
use super::scan_parts;
use super::types::{BlockCount, Interval, State};
use crate::base::blocks::{Label, Mark, Witness, head_of};
use crate::base::limits::{MARK_SCAN_BYTES_MAX, MARK_SCAN_PIECES_MAX};
use crate::base::{Addr, Bytes, Covered, Gap, Range, Why, overlapping};
use crate::os::Target;
use crate::os::memory::read_or_zeros;

const WINDOW_BYTES: u64 = 256 << 10;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    pub intervals: Vec<Interval>,
    /// By label.
    pub in_use: Vec<BlockCount>,
    pub gaps: Vec<Gap>,
}

/// A piece, and what of it is in memory.
pub(super) struct Piece {
    pub range: Range,
    pub resident: Vec<Range>,
}

/// Searches all memory but `owned`, which is sorted and disjoint.
pub fn scan(target: &Target, owned: &[Range], witness: &dyn Witness) -> Scanned {
    let mut scanned = Scanned::default();
    let (mut left_bytes, mut left_pieces) = (MARK_SCAN_BYTES_MAX, MARK_SCAN_PIECES_MAX);
    let mut pieces = Vec::new();
    for range in unclaimed(target, owned) {
        let resident = target.resident(range);
        let bytes: Bytes = resident.iter().map(|range| range.bytes()).sum();
        if bytes > left_bytes || resident.len() * 2 + 1 > left_pieces {
            scanned.gaps.push(Gap::new("blocks of the VM in other anonymous memory", Why::OverLimit));
            break;
        }
        left_bytes -= bytes;
        left_pieces -= resident.len() * 2 + 1;
        pieces.push(Piece { range, resident });
    }
    let found = match target.memory.bulk() {
        Some(bulk) => scan_parts::blocks(&scan_parts::Resident { bulk, view: target.view }, witness, &pieces),
        None => {
            let source = MemorySource(target.memory);
            let blocks = |piece: &Piece| Scan::new(&source, witness, piece.range).blocks(&piece.resident);
            pieces.iter().map(blocks).collect()
        }
    };
    for (piece, blocks) in pieces.iter().zip(found).filter(|(_, blocks)| !blocks.is_empty()) {
        scanned.count(&blocks);
        scanned.intervals.extend(intervals(piece.range, &piece.resident, &blocks));
    }
    scanned
}

/// Whole pieces without any reported block.
pub fn unmarked(target: &Target, pieces: &[Range]) -> Scanned {
    let intervals = pieces.iter().flat_map(|piece| intervals(*piece, &target.resident(*piece), &[]));
    Scanned { intervals: intervals.take(MARK_SCAN_PIECES_MAX).collect(), ..Scanned::default() }
}

/// Writable anonymous memory of the process's own without an owner. None of which it is not known which pages are in
/// memory: looking at all of it would bring them in.
pub(super) fn unclaimed(target: &Target, owned: &[Range]) -> Vec<Range> {
    let Ok(pages) = &target.view.pages else { return Vec::new() };
    let owned = Covered::of(owned.iter().copied());
    let may_hold = target.view.mappings.iter().filter(|mapping| {
        mapping.is_anonymous() && mapping.rights.write && !mapping.rights.shared && mapping.path != "[stack]"
    });
    let pieces = may_hold.flat_map(|mapping| owned.missing(mapping.range));
    pieces.filter(|piece| overlapping(pages, *piece, |run| run.range).all(|run| run.is_placed())).collect()
}

/// A block from its header to the end of its footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marked {
    pub range: Range,
    payload: Range,
    label: Label,
}

/// The search of one piece.
pub(super) struct Scan<'a> {
    source: &'a dyn Source,
    witness: &'a dyn Witness,
    piece: Range,
    window: Range,
    bytes: Vec<u8>,
}

impl<'a> Scan<'a> {
    pub fn new(source: &'a dyn Source, witness: &'a dyn Witness, piece: Range) -> Scan<'a> {
        Scan { source, witness, piece, window: Range::default(), bytes: Vec::new() }
    }

    pub fn blocks(mut self, resident: &[Range]) -> Vec<Marked> {
        let mut blocks: Vec<Marked> = Vec::new();
        for range in resident {
            let mut from =
                blocks.last().map_or(range.start, |last| last.range.end.max(range.start)).up_to(16);
            while from < range.end {
                self.load(Range::new(from, from.plus(WINDOW_BYTES).min(range.end)));
                from = self.in_window(&mut blocks);
            }
        }
        blocks
    }

    /// Blocks that start in the window; where to go on.
    fn in_window(&self, blocks: &mut Vec<Marked>) -> Addr {
        let mut at = 0;
        while let Some(mark) = self.witness.next_mark(&self.bytes, at) {
            match self.proved(&mark) {
                Some(block) => {
                    blocks.push(block);
                    let next = block.range.end.up_to(16);
                    if next >= self.window.end {
                        return next;
                    }
                    at = (next.0 - self.window.start.0) as usize;
                }
                None => at = mark.at + 16,
            }
        }
        self.window.end
    }

    /// The block, if it ends within the piece and its footer is there.
    fn proved(&self, mark: &Mark) -> Option<Marked> {
        let start = self.window.start.plus(mark.at as u64);
        let payload = Range::sized(start.plus(mark.header_bytes), mark.requested_bytes);
        let footer = payload.end.plus(mark.footer.len() as u64);
        if footer > self.piece.end {
            return None;
        }
        let mut found = [0; 2];
        match self.window.covers(Range::new(payload.end, footer)) {
            true => {
                let at = (payload.end.0 - self.window.start.0) as usize;
                found.copy_from_slice(self.bytes.get(at..at + 2)?);
            }
            false => self.source.read(payload.end, &mut found).ok()?,
        }
        if found != mark.footer {
            return None;
        }
        if self.source.keeps() {
            self.source.used(start, self.evidence(mark.at).map(u64::to_le_bytes).as_flattened());
            self.source.used(payload.end, &found);
        }
        Some(Marked { range: Range::new(start, footer), payload, label: mark.label })
    }

    /// The evidence that a block begins `at` bytes from the start of the window.
    fn evidence(&self, at: usize) -> [u64; 2] {
        self.witness.evidence(&head_of(&self.bytes[at..]))
    }

    /// Zeros stand for what cannot be read.
    fn load(&mut self, window: Range) {
        self.window = window;
        self.bytes.resize(window.bytes() as usize, 0);
        read_or_zeros(window.start, &mut self.bytes, |at, into| self.source.read(at, into).is_ok());
    }
}

/// A piece cut where its pages begin or cease to be resident, each part with its shares.
fn intervals(piece: Range, resident: &[Range], blocks: &[Marked]) -> Vec<Interval> {
    let mut parts = Vec::new();
    let mut from = piece.start;
    for range in resident {
        parts.extend([Range::new(from, range.start), *range]);
        from = range.end;
    }
    parts.push(Range::new(from, piece.end));
    parts.retain(|part| !part.is_empty());
    let mut first = 0;
    parts
        .into_iter()
        .map(|part| {
            while blocks.get(first).is_some_and(|block| block.range.end <= part.start) {
                first += 1;
            }
            let inside = blocks[first..].iter().take_while(|block| block.range.start < part.end);
            Interval { range: part, arena: None, shares: shares(part, inside) }
        })
        .collect()
}

fn shares<'a>(part: Range, blocks: impl Iterator<Item = &'a Marked>) -> Vec<(State, Bytes)> {
    // By label; there are hundreds of thousands of blocks.
    let mut in_use = [0; Label::MAX as usize + 1];
    let (mut overhead, mut rest) = (0, part.bytes());
    for block in blocks {
        let (whole, payload) = (block.range.intersect(part).bytes(), block.payload.intersect(part).bytes());
        in_use[usize::from(block.label)] += payload;
        overhead += whole - payload;
        rest = rest.saturating_sub(whole);
    }
    let labels = (0..=Label::MAX).map(|label| (State::InUse(label), in_use[usize::from(label)]));
    let others = [(State::Overhead, overhead), (State::NotWalked, rest)];
    labels.chain(others).filter(|(_, bytes)| *bytes > 0).collect()
}

impl Scanned {
    fn count(&mut self, blocks: &[Marked]) {
        for block in blocks {
            let label = usize::from(block.label);
            if self.in_use.len() <= label {
                self.in_use.resize(label + 1, BlockCount::default());
            }
            let count = &mut self.in_use[label];
            count.blocks += 1;
            count.bytes = count.bytes.saturating_add(block.payload.bytes());
        }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
