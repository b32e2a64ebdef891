//! Chunks above the mmap threshold, which malloc maps one by one and keeps in no list. Each begins a page with its header:
//! prev_size 0 and its size with the flag IS_MMAPPED. The kernel merges adjacent mappings, so chunks follow one another
//! and follow others' memory within one mapping.
//!
//! malloc/malloc.c, `sysmalloc_mmap`; in 2.43 the size leaves out the 16 bytes that end the mapping, and bit 0 of
//! prev_size marks huge pages. `memalign` leaves the original header at the start of the mapping.

use super::figures::HEADER_BYTES;
use super::layout::Totals;
use super::region::Piece;
use crate::alloc::types::{BlockCount, State, Stretch};
use crate::base::blocks::Label;
use crate::base::limits::MMAPPED_PAGES_MAX;
use crate::base::{Addr, Bytes, Gap, PAGE, Range, Why};
use crate::os::Target;
use crate::os::maps::Mapping;

const IS_MMAPPED: u64 = 2;
const FLAGS: u64 = 7;
/// Look-alikes that are looked for among the chunks when there is more than malloc counts.
const LOOK_ALIKES_MAX: usize = 2;

/// Sorted, with overlapping and touching ranges joined.
pub fn joined(ranges: impl Iterator<Item = Range>) -> Vec<Range> {
    let mut ranges: Vec<Range> = ranges.collect();
    ranges.sort();
    let mut out: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// All mapped chunks, from header to end, sorted. `taken` is sorted and disjoint: memory that is not theirs.
pub fn read(target: &Target, taken: &[Range], totals: Option<Totals>, gaps: &mut Vec<Gap>) -> Vec<Range> {
    let mut free: Vec<Range> = Vec::new();
    for mapping in target.view.mappings.iter().filter(|mapping| may_hold(mapping)) {
        free.extend(without(mapping.range, taken));
    }
    let mut search = Search { target, chunks: Vec::new(), pages: 0 };
    // Chunks at the start of a mapping, and those right behind them, are nearly all: then mp_ agrees and that is it.
    let rests: Vec<Range> = free.iter().map(|range| search.chain(*range)).collect();
    if !is_all(&search.chunks, totals) {
        let mut rests: Vec<Range> = rests.into_iter().filter(|rest| !rest.is_empty()).collect();
        rests.sort_by_key(|rest| rest.bytes());
        for rest in rests {
            search.pages_of(rest);
            if is_all(&search.chunks, totals) || search.pages >= MMAPPED_PAGES_MAX {
                break;
            }
        }
    }
    let mut chunks = search.chunks;
    chunks.sort();
    if let Some(totals) = totals {
        drop_look_alikes(&mut chunks, totals);
        note(&chunks, totals, gaps);
    }
    chunks
}

fn may_hold(mapping: &Mapping) -> bool {
    mapping.is_anonymous()
        && mapping.rights.read
        && mapping.rights.write
        && !mapping.rights.shared
        && mapping.path != "[heap]"
}

/// The parts of `range` that `taken` leaves.
fn without(range: Range, taken: &[Range]) -> Vec<Range> {
    let mut left = Vec::new();
    let mut from = range.start;
    let first = taken.partition_point(|other| other.end <= range.start);
    for other in taken[first..].iter().take_while(|other| other.start < range.end) {
        left.push(Range::new(from, other.start));
        from = from.max(other.end);
    }
    left.push(Range::new(from, range.end));
    left.retain(|piece| !piece.is_empty());
    left
}

/// A chunk that malloc mapped by itself.
#[derive(Clone, Debug)]
pub struct Mapped {
    pub range: Range,
    pub label: Label,
    /// What the block was rounded up by.
    pub slack: Bytes,
    pub pieces: Vec<Piece>,
}

impl Mapped {
    pub fn payload(&self) -> Range {
        Range::new(self.range.start.plus(2 * HEADER_BYTES), self.range.end)
    }

    /// Its stretches, with the header before and the slack behind the block.
    pub fn stretches(&self, in_use: &mut [BlockCount], out: &mut Vec<Stretch>) {
        let block = Range::new(
            self.payload().start,
            Addr(self.payload().end.0 - self.slack.min(self.payload().bytes())),
        );
        let count = &mut in_use[self.label as usize];
        *count = BlockCount { blocks: count.blocks + 1, bytes: count.bytes + block.bytes() };
        for piece in &self.pieces {
            let used = piece.range.intersect(block).bytes();
            let shares = [(State::InUse(self.label), used), (State::Overhead, piece.range.bytes() - used)];
            let shares = shares.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
            out.push(Stretch { range: piece.range, arena: None, shares });
        }
    }
}

struct Search<'a> {
    target: &'a Target<'a>,
    chunks: Vec<Range>,
    pages: usize,
}

impl Search<'_> {
    /// Takes the chunks that follow one another from the start of `range`; what is left of it.
    fn chain(&mut self, range: Range) -> Range {
        let mut at = range.start;
        while let Some(chunk) = self.chunk(Range::new(at, range.end)) {
            self.chunks.push(chunk);
            at = chunk.end;
        }
        Range::new(at, range.end)
    }

    /// Looks at every page of `range` that is in memory.
    fn pages_of(&mut self, range: Range) {
        let mut from = range.start;
        for piece in self.target.resident(range) {
            from = from.max(piece.start.up_to(PAGE));
            while from < piece.end {
                self.pages += 1;
                if self.pages >= MMAPPED_PAGES_MAX {
                    return;
                }
                let rest = self.chain(Range::new(from, range.end));
                from = if rest.start > from { rest.start } else { from.plus(PAGE) };
            }
        }
    }

    /// The chunk whose header is at the start of `range`.
    fn chunk(&self, range: Range) -> Option<Range> {
        if range.is_empty() || !range.start.is_aligned(PAGE) || !self.target.is_resident(range.start) {
            return None;
        }
        let words = self.target.memory.words(range.start, 2).ok()?;
        let bytes = chunk_bytes(words[0], words[1])?;
        (bytes <= range.bytes()).then(|| Range::sized(range.start, bytes))
    }
}

/// Bytes of the mapping that begins with these two words.
fn chunk_bytes(prev_size: u64, size: u64) -> Option<u64> {
    if prev_size > 1 || size & FLAGS != IS_MMAPPED {
        return None;
    }
    let bytes = size & !FLAGS;
    let total = if bytes % PAGE == PAGE - 16 { bytes.checked_add(16)? } else { bytes };
    (total > 0 && total.is_multiple_of(PAGE)).then_some(total)
}

fn sums(chunks: &[Range]) -> (u64, u64) {
    (chunks.len() as u64, chunks.iter().map(|chunk| chunk.bytes()).sum())
}

/// glibc 2.43 of January 2026 adds 16 bytes too many per mremap, so only whole pages are compared.
fn agrees(chunks: &[Range], totals: Totals) -> bool {
    let (count, bytes) = sums(chunks);
    count == totals.mmapped_count && bytes.abs_diff(totals.mmapped_bytes) <= 16 * count
}

fn is_all(chunks: &[Range], totals: Option<Totals>) -> bool {
    totals.is_some_and(|totals| agrees(chunks, totals))
}

/// Takes out the few whose absence makes count and sum right: words of others that look like a header.
fn drop_look_alikes(chunks: &mut Vec<Range>, totals: Totals) {
    let (count, bytes) = sums(chunks);
    let (extra, excess) =
        (count.saturating_sub(totals.mmapped_count), bytes.saturating_sub(totals.mmapped_bytes));
    if extra == 0 || extra as usize > LOOK_ALIKES_MAX {
        return;
    }
    for first in 0..chunks.len() {
        let rest = excess.checked_sub(chunks[first].bytes());
        if extra == 1 && rest == Some(0) {
            chunks.remove(first);
            return;
        }
        let second = (first + 1..chunks.len()).find(|second| rest == Some(chunks[*second].bytes()));
        if let (2, Some(second)) = (extra, second) {
            chunks.remove(second);
            chunks.remove(first);
            return;
        }
    }
}

fn note(chunks: &[Range], totals: Totals, gaps: &mut Vec<Gap>) {
    if agrees(chunks, totals) {
        return;
    }
    let (count, bytes) = sums(chunks);
    let what = format!(
        "mapped chunks of malloc: {count} found with {bytes} bytes, malloc counts {} with {}",
        totals.mmapped_count, totals.mmapped_bytes
    );
    gaps.push(Gap::new(what, Why::Torn).hint("chunks whose first page is not in memory are not seen"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_mapped_chunk() {
        assert_eq!(chunk_bytes(0, 0x21002), Some(0x21000));
        assert_eq!(chunk_bytes(1, 0x21ff2), Some(0x22000), "2.43 leaves the last 16 bytes out");
        assert_eq!(chunk_bytes(0, 0x30001), None, "an ordinary chunk");
        assert_eq!(chunk_bytes(0, 0x21012), None);
        assert_eq!(chunk_bytes(0, 2), None);
        assert_eq!(chunk_bytes(0, u64::MAX - 13), None);
    }

    #[test]
    fn what_others_own_is_cut_out() {
        let taken = [Range::of(0x1000, 0x2000), Range::of(0x4000, 0x5000)];
        assert_eq!(without(Range::of(0, 0x6000), &taken).len(), 3);
        assert_eq!(without(Range::of(0x1800, 0x3000), &taken), [Range::of(0x2000, 0x3000)]);
    }

    #[test]
    fn a_look_alike_is_the_one_that_makes_the_sum_right() {
        let mut chunks =
            vec![Range::of(0, 0x21000), Range::of(0x30000, 0x60000), Range::of(0x70000, 0x91000)];
        drop_look_alikes(&mut chunks, Totals { mmapped_count: 2, mmapped_bytes: 0x42000 });
        assert_eq!(sums(&chunks), (2, 0x42000));
    }
}
