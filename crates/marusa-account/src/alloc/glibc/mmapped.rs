//! Chunks above the mmap threshold, which malloc maps one by one and keeps in no list. Each begins a page with its header:
//! prev_size 0 and its size with the flag IS_MMAPPED. The kernel merges adjacent mappings, so chunks follow one another
//! and follow others' memory within one mapping.
//!
//! malloc/malloc.c, `sysmalloc_mmap`; in 2.43 the size leaves out the 16 bytes that end the mapping, and bit 0 of
//! prev_size marks huge pages. `memalign` leaves the original header at the start of the mapping.

use super::chunk_map::HEADER_BYTES;
use super::layout::{Totals, may_be_malloc_s};
use super::region::Piece;
use crate::alloc::types::{BlockCount, Interval, State};
use crate::base::Covered;
use crate::base::blocks::Label;
use crate::base::limits::MMAPPED_PAGES_MAX;
use crate::base::{Addr, Bytes, Gap, Range, Why};
use crate::os::Target;
use crate::os::machine::base_page;

/// Pages of glibc.malloc.hugetlb=2 are of this size or a multiple of it. A chunk that mremap made smaller ends within one.
const LARGE_PAGE: u64 = 2 << 20;
const IS_MMAPPED: u64 = 2;
const FLAGS: u64 = 7;
/// How far behind the start of its mapping an aligned chunk is looked for.
const ALIGNED_BYTES_MAX: u64 = 4 << 20;
/// Look-alikes that are looked for among the chunks when there is more than malloc counts.
const LOOK_ALIKES_MAX: usize = 2;

/// All mapped chunks, from header to end, sorted. `taken` is sorted and disjoint: memory that is not theirs.
pub fn read(target: &Target, taken: &[Range], totals: Option<Totals>, gaps: &mut Vec<Gap>) -> Vec<Range> {
    let (mut free, covered): (Vec<Place>, _) = (Vec::new(), Covered::of(taken.iter().copied()));
    for mapping in target.view.mappings.iter().filter(|mapping| may_be_malloc_s(mapping)) {
        let unit = if mapping.is_hugetlb_name() { LARGE_PAGE } else { base_page() };
        free.extend(covered.missing(mapping.range).into_iter().map(|range| Place { range, unit }));
    }
    let mut search = Search { target, chunks: Vec::new(), pages: 0, looks_within: false };
    // Chunks at the start of a mapping, and those right behind them, are nearly all: then mp_ agrees and that is it.
    let mut rests: Vec<Place> = free.iter().map(|range| search.chain(*range)).collect();
    // Not so if the one is too small and malloc's own sum too large.
    let is_surely_all =
        totals.is_some_and(|totals| sums(&search.chunks) == (totals.mmapped_count, totals.mmapped_bytes));
    if !is_surely_all {
        search = Search { target, chunks: Vec::new(), pages: 0, looks_within: true };
        rests = free.iter().map(|range| search.chain(*range)).collect();
    }
    let is_all = |search: &Search| totals.is_some_and(|totals| agrees(&search.chunks, totals));
    if !is_all(&search) {
        let mut rests: Vec<Place> = rests.into_iter().filter(|rest| !rest.range.is_empty()).collect();
        rests.sort_by_key(|rest| rest.range.bytes());
        for rest in rests {
            search.pages_of(rest);
            if is_all(&search) || search.pages >= MMAPPED_PAGES_MAX {
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

    /// Its ranges, with the header before and the slack behind the block.
    pub fn intervals(&self, in_use: &mut [BlockCount], out: &mut Vec<Interval>) {
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
            out.push(Interval { range: piece.range, arena: None, shares });
        }
    }
}

/// Where chunks may lie, and what the start of each is a multiple of.
#[derive(Clone, Copy)]
struct Place {
    range: Range,
    unit: u64,
}

struct Search<'a> {
    target: &'a Target<'a>,
    chunks: Vec<Range>,
    pages: usize,
    /// Whether headers of aligned chunks behind the first one are looked for.
    looks_within: bool,
}

impl Search<'_> {
    /// Takes the chunks that follow one another from the start of `place`; what is left of it.
    fn chain(&mut self, place: Place) -> Place {
        let Place { range, unit } = place;
        let mut at = range.start;
        while let Some(chunk) = self.chunk(Range::new(at, range.end)) {
            self.chunks.push(chunk);
            at = chunk.end.up_to(unit);
        }
        Place { range: Range::new(at, range.end), unit }
    }

    /// Looks at every page of `place` that is in memory.
    fn pages_of(&mut self, place: Place) {
        let Place { range, unit } = place;
        let mut from = range.start;
        for piece in self.target.resident(range) {
            from = from.max(piece.start.up_to(unit));
            while from < piece.end {
                self.pages += 1;
                if self.pages >= MMAPPED_PAGES_MAX {
                    return;
                }
                let rest = self.chain(Place { range: Range::new(from, range.end), unit }).range;
                from = if rest.start > from { rest.start } else { from.plus(unit) };
            }
        }
    }

    /// The chunk whose header is at the start of `range`.
    fn chunk(&self, range: Range) -> Option<Range> {
        if range.is_empty() || !range.start.is_aligned(base_page()) || !self.target.is_resident(range.start) {
            return None;
        }
        let words = self.target.memory.peek_words(range.start, 2).ok()?;
        let first = chunk_bytes(words[0], words[1])?;
        self.used(range.start, [words[0], words[1]]);
        let aligned = self.looks_within.then(|| self.aligned(range)).flatten();
        let bytes = aligned.unwrap_or(first);
        (bytes <= range.bytes()).then(|| Range::sized(range.start, bytes))
    }

    /// Bytes of the mapping from the start of `range` if the header of an aligned chunk lies in it, which says how far
    /// behind the start it lies. realloc moves and resizes such a mapping, and then the first header is no longer true
    /// (malloc/malloc.c, `mremap_chunk`).
    fn aligned(&self, range: Range) -> Option<u64> {
        let memory = self.target.memory;
        // What is aligned to more than half a page begins right behind the end of a page.
        let first_page = memory.peek_words(range.start, base_page() as usize / 8).ok()?;
        let in_first =
            (2..first_page.len()).step_by(2).map(|at| (at as u64 * 8, [first_page[at], first_page[at + 1]]));
        let limit = Range::sized(range.start, range.bytes().min(ALIGNED_BYTES_MAX));
        let pieces = self.target.resident(Range::new(range.start.plus(base_page()), limit.end));
        let page_ends = pieces.into_iter().flat_map(|piece| {
            (piece.start.up_to(base_page()).0..piece.end.0)
                .step_by(base_page() as usize)
                .map(|page| Addr(page).plus(base_page() - 16))
        });
        let in_later = page_ends.filter_map(|at| {
            let words = memory.peek_words(at, 2).ok()?;
            Some((at.offset_from(range.start)?, [words[0], words[1]]))
        });
        in_first.chain(in_later).find_map(|(offset, [before, size])| {
            let bytes = aligned_bytes(offset, before, size)?;
            self.used(range.start.plus(offset), [before, size]);
            Some(bytes)
        })
    }

    /// The header of a chunk that was found, for a recording: what else was looked at is the program's data.
    fn used(&self, at: Addr, header: [u64; 2]) {
        self.target.memory.used(at, header.map(u64::to_le_bytes).as_flattened());
    }
}

/// Bytes of the mapping that begins with these two words.
fn chunk_bytes(prev_size: u64, size: u64) -> Option<u64> {
    if prev_size > 1 || size & FLAGS != IS_MMAPPED {
        return None;
    }
    let bytes = size & !FLAGS;
    let total = if bytes % base_page() == base_page() - 16 { bytes.checked_add(16)? } else { bytes };
    (total > 0 && total.is_multiple_of(base_page())).then_some(total)
}

/// Bytes of the mapping in which, `offset` behind its start, an aligned chunk has these two words.
fn aligned_bytes(offset: u64, before: u64, size: u64) -> Option<u64> {
    if before & !1 != offset || size & FLAGS != IS_MMAPPED {
        return None;
    }
    chunk_bytes(0, offset.checked_add(size)?).filter(|total| *total > offset)
}

/// Where memalign's block starts in a chunk, if there is one: behind a header that says how far it lies in the mapping. Its
/// alignment is one of few, so a mapping of any size takes some dozen reads (malloc/malloc.c, `_int_memalign`).
pub fn aligned_start(chunk: Range, words: &dyn Fn(Addr) -> Option<[u64; 2]>) -> Option<Addr> {
    let payload = chunk.start.plus(2 * HEADER_BYTES);
    let mut last = Addr::NULL;
    let alignments = (5..=ALIGNED_BYTES_MAX.ilog2()).map(|bits| payload.up_to(1 << bits));
    let starts =
        alignments.filter(|start| std::mem::replace(&mut last, *start) != *start && *start > payload);
    starts.take_while(|start| *start < chunk.end).find(|start| {
        let header = start.minus(2 * HEADER_BYTES);
        let Some([before, size]) = words(header) else { return false };
        header
            .offset_from(chunk.start)
            .is_some_and(|offset| aligned_bytes(offset, before, size) == Some(chunk.bytes()))
    })
}

fn sums(chunks: &[Range]) -> (u64, u64) {
    (chunks.len() as u64, chunks.iter().map(|chunk| chunk.bytes()).sum())
}

/// Whether the chunks are as many as malloc counts, and as large, or no larger where its own sum is too large.
fn agrees(chunks: &[Range], totals: Totals) -> bool {
    let (count, bytes) = sums(chunks);
    let is_inflated = totals.is_inflated && bytes < totals.mmapped_bytes;
    count == totals.mmapped_count && (bytes == totals.mmapped_bytes || is_inflated)
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
    fn the_header_of_an_aligned_chunk_says_how_far_it_lies_in_its_mapping() {
        assert_eq!(aligned_bytes(0xff0, 0xff0, 0x20012), Some(0x21000));
        assert_eq!(aligned_bytes(0xff0, 0xff1, 0x20002), Some(0x21000), "2.43, of large pages");
        assert_eq!(aligned_bytes(0xff0, 0xfe0, 0x20012), None);
        assert_eq!(aligned_bytes(0xff0, 0xff0, u64::MAX - 5), None);
    }

    #[test]
    fn a_block_of_memalign_starts_behind_its_own_header() {
        let chunk = Range::of(0x7000_1000, 0x7002_2000);
        let start = |at: u64, alignment: u64| {
            let (at, start) = (Addr(at), at + alignment);
            let offset = start - 16 - chunk.start.0;
            let words = move |asked: Addr| {
                (asked == Addr(start - 16)).then_some([offset, (chunk.bytes() - offset) | 2])
            };
            (aligned_start(chunk, &words), Addr(start).max(at))
        };
        for (at, alignment) in [(0x7000_1000, 0x40), (0x7000_1000, 0x1000), (0x7000_0000, 0x10000)] {
            let (found, wanted) = start(at, alignment);
            assert_eq!(found, Some(wanted), "{alignment:#x}");
        }
        assert_eq!(aligned_start(chunk, &|_| Some([0, 0x21002])), None);
    }

    const TOTALS: Totals =
        Totals { mmapped_count: 2, mmapped_bytes: 0x42000, sbrk_base: Addr::NULL, is_inflated: false };

    #[test]
    fn a_look_alike_is_the_one_that_makes_the_sum_right() {
        let mut chunks =
            vec![Range::of(0, 0x21000), Range::of(0x30000, 0x60000), Range::of(0x70000, 0x91000)];
        drop_look_alikes(&mut chunks, TOTALS);
        assert_eq!(sums(&chunks), (2, 0x42000));
    }
}
