//! Where each chunk of a heap begins and what it is, in one byte for each 32 bytes of heap. A chunk has at least 32 bytes
//! and begins at a multiple of 16, so no two begin in the same 32: one bit says in which half, seven say what it is. That
//! is 3.1 % of the heap, whatever the chunks are; and where chunks are large nearly all of it is never touched.
//!
//! Everything in the range is an entry, memory that holds no chunk too, so an entry ends where the next one begins.

use super::chunk_entries::Entries;
use crate::alloc::types::State;
use crate::base::blocks::{LABELS_MAX, Label};
use crate::base::{Addr, Bytes, Range};

/// The part of a chunk in use that is not the block's.
pub const HEADER_BYTES: Bytes = 8;
/// `MINSIZE`.
pub const CHUNK_BYTES_MIN: Bytes = 32;
const GRANULE: u64 = 32;
/// Granules for which one bit says whether any of them holds an entry: 2 KiB of heap.
pub(super) const SUMMARY_GRANULES: usize = 64;

/// Heap for which one word says so.
const SUMMARY_WORD_BYTES: u64 = GRANULE * SUMMARY_GRANULES as u64 * 64;

/// What an entry is: 1 to `LABELS_MAX` in use by label, then the other states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u8);

/// More codes than there are: 7 bits.
pub const CODES: usize = 128;
const FIRST_OTHER: u8 = LABELS_MAX as u8 + 1;

impl Code {
    pub const TCACHE: Code = Code(FIRST_OTHER);
    pub const FAST: Code = Code(FIRST_OTHER + 1);
    pub const UNSORTED: Code = Code(FIRST_OTHER + 2);
    pub const SMALL: Code = Code(FIRST_OTHER + 3);
    pub const LARGE: Code = Code(FIRST_OTHER + 4);
    pub const UNLISTED: Code = Code(FIRST_OTHER + 5);
    pub const TOP: Code = Code(FIRST_OTHER + 6);
    pub const OVERHEAD: Code = Code(FIRST_OTHER + 7);
    pub const UNRESOLVED: Code = Code(FIRST_OTHER + 8);
    const LAST: Code = Code::UNRESOLVED;

    /// A block in use. An unknown label has no owner.
    pub fn in_use(label: Label) -> Code {
        Code(if (label as usize) < LABELS_MAX { label + 1 } else { 1 })
    }
    pub fn label(self) -> Option<Label> {
        (self.0 < FIRST_OTHER).then(|| self.0.saturating_sub(1))
    }
    pub fn index(self) -> usize {
        self.0 as usize
    }
    pub fn state(self) -> State {
        match self {
            Code::TCACHE => State::Tcache,
            Code::FAST => State::Fast,
            Code::UNSORTED => State::Unsorted,
            Code::SMALL => State::Small,
            Code::LARGE => State::Large,
            Code::UNLISTED => State::Unlisted,
            Code::TOP => State::Top,
            Code::OVERHEAD => State::Overhead,
            Code::UNRESOLVED => State::Unresolved,
            Code(used) => State::InUse(used.saturating_sub(1)),
        }
    }
    pub fn all() -> impl Iterator<Item = Code> {
        (1..=Code::LAST.0).map(Code)
    }
}

/// One entry of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub range: Range,
    pub code: Code,
}

pub struct ChunkMap {
    pub(super) range: Range,
    /// `code << 1 | half`, 0: no entry begins here.
    pub(super) bytes: Vec<u8>,
    summary: Vec<u64>,
}

impl ChunkMap {
    /// `range` is at most what one heap may be, `GRANULE`-aligned at its start.
    pub fn of(range: Range) -> ChunkMap {
        let range = Range::new(range.start.down_to(GRANULE), range.end);
        let granules = (range.bytes().div_ceil(GRANULE)) as usize;
        let words = granules.div_ceil(SUMMARY_GRANULES).div_ceil(64);
        ChunkMap { range, bytes: vec![0; granules], summary: vec![0; words] }
    }

    pub fn range(&self) -> Range {
        self.range
    }

    fn place(&self, at: Addr) -> Option<(usize, u8)> {
        let offset = at.0.checked_sub(self.range.start.0)?;
        let granule = (offset / GRANULE) as usize;
        (granule < self.bytes.len()).then_some((granule, (offset % GRANULE / 16) as u8))
    }

    /// Lays an entry down that begins at `at`, in place of one in the same granule.
    pub fn put(&mut self, at: Addr, code: Code) {
        let Some((granule, half)) = self.place(at) else { return };
        self.bytes[granule] = code.0 << 1 | half;
        let block = granule / SUMMARY_GRANULES;
        self.summary[block / 64] |= 1 << (block % 64);
    }

    /// What begins exactly at `at`.
    pub fn get(&self, at: Addr) -> Option<Code> {
        let (granule, half) = self.place(at)?;
        let byte = self.bytes[granule];
        (byte != 0 && byte & 1 == half && at.is_aligned(16)).then_some(Code(byte >> 1))
    }

    /// Where the entry that begins at `at` ends.
    pub fn end_of(&self, at: Addr) -> Addr {
        let Some((granule, _)) = self.place(at) else { return self.range.end };
        match self.next(granule + 1) {
            Some(granule) => self.start(granule),
            None => self.range.end,
        }
    }

    #[inline(always)]
    pub(super) fn start(&self, granule: usize) -> Addr {
        let half = u64::from(self.bytes[granule] & 1) << 4;
        // Of an index into `bytes`: it does not wrap.
        self.range.start.plus((granule as u64).wrapping_mul(GRANULE) | half)
    }

    pub(super) fn entry(&self, granule: usize, end: Addr) -> Entry {
        Entry { range: Range::new(self.start(granule), end), code: Code(self.bytes[granule] >> 1) }
    }

    /// The first granule from this one on in which an entry begins.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let here = self.bytes.get(from..)?;
        let to_border = (SUMMARY_GRANULES - from % SUMMARY_GRANULES).min(here.len());
        if let Some(found) = first_entry(&here[..to_border]) {
            return Some(from + found);
        }
        let block = self.next_block(from / SUMMARY_GRANULES + 1)?;
        let start = block * SUMMARY_GRANULES;
        let end = (start + SUMMARY_GRANULES).min(self.bytes.len());
        first_entry(&self.bytes[start..end]).map(|found| start + found)
    }

    fn next_block(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = *self.summary.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.summary.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// The last chunk before `at` that is free and in a bin.
    pub fn free_before(&self, at: Addr) -> Option<Addr> {
        let (mut granule, _) = self.place(at)?;
        loop {
            granule = self.last(granule.checked_sub(1)?)?;
            if matches!(Code(self.bytes[granule] >> 1), Code::SMALL | Code::LARGE | Code::UNSORTED) {
                return Some(self.start(granule));
            }
        }
    }

    /// The last granule up to this one in which an entry begins.
    fn last(&self, from: usize) -> Option<usize> {
        let start = from / SUMMARY_GRANULES * SUMMARY_GRANULES;
        if let Some(found) = self.bytes[start..=from].iter().rposition(|byte| *byte != 0) {
            return Some(start + found);
        }
        let block = self.last_block((from / SUMMARY_GRANULES).checked_sub(1)?)?;
        let start = block * SUMMARY_GRANULES;
        let found = self.bytes[start..start + SUMMARY_GRANULES].iter().rposition(|byte| *byte != 0)?;
        Some(start + found)
    }

    fn last_block(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.summary[word] & (u64::MAX >> (63 - from % 64));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.summary[word];
        }
        Some(word * 64 + 63 - bits.leading_zeros() as usize)
    }

    /// Every entry in order.
    pub fn entries(&self) -> Entries<'_> {
        Entries::from(self, self.next(0))
    }

    /// Every entry that begins at or after `at`, which is where one begins.
    pub fn entries_from(&self, at: Addr) -> Entries<'_> {
        Entries::from(self, self.place(at).and_then(|(granule, _)| self.next(granule)))
    }

    /// Replaces the code of what begins at `at`, if that is a block in use.
    #[inline]
    pub fn relabel(&mut self, at: Addr, code: Code) {
        if self.get(at).is_some_and(|old| old.label().is_some())
            && let Some((granule, half)) = self.place(at)
        {
            self.bytes[granule] = code.0 << 1 | half;
        }
    }

    /// The last place up to `at` at which a map may begin that is to be taken over by this one.
    pub fn cut_before(&self, at: Addr) -> Addr {
        let offset = at.0.saturating_sub(self.range.start.0);
        self.range.start.plus(offset / SUMMARY_WORD_BYTES * SUMMARY_WORD_BYTES)
    }

    /// Takes over the entries of `part` from `join` on. It begins where `cut_before` says and ends where this map does.
    pub fn take_over(&mut self, part: &ChunkMap, join: Addr) {
        let (Some((first, _)), Some((from, _))) = (self.place(part.range.start), self.place(join)) else {
            return;
        };
        let (Some(into), Some(of)) =
            (self.bytes.get_mut(from..), part.bytes.get(from.saturating_sub(first)..))
        else {
            return;
        };
        into.iter_mut().zip(of).for_each(|(into, of)| *into = *of);
        let words = self.summary.iter_mut().skip(first / SUMMARY_GRANULES / 64);
        words.zip(&part.summary).for_each(|(into, of)| *into |= of);
    }

    /// Forgets every entry from `at` on.
    pub fn clear_from(&mut self, at: Addr) {
        let Some((granule, half)) = self.place(at) else { return };
        let keeps = self.bytes[granule] != 0 && self.bytes[granule] & 1 < half;
        let first = granule + usize::from(keeps);
        while let Some(next) = self.next(first) {
            // A block at once; those without entries are not touched.
            let block = next / SUMMARY_GRANULES;
            let start = block * SUMMARY_GRANULES;
            let end = (start + SUMMARY_GRANULES).min(self.bytes.len());
            self.bytes[next..end].fill(0);
            if self.bytes[start..next].iter().all(|byte| *byte == 0) {
                self.summary[block / 64] &= !(1 << (block % 64));
            }
        }
    }
}

/// Where the first byte that is not 0 lies: eight at a time.
#[inline]
fn first_entry(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        if word != 0 {
            return Some(index * 8 + word.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|byte| *byte != 0).map(|found| words.len() * 8 + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_from_their_start() {
        let mut map = ChunkMap::of(Range::of(0x10000, 0x90_0000));
        let starts = [0x10000, 0x10030, 0x10050, 0x12010, 0x80_0000];
        for (index, start) in starts.iter().enumerate() {
            map.put(Addr(*start), Code::in_use(index as Label));
        }
        let entries: Vec<Entry> = map.entries().collect();
        assert_eq!(entries.len(), starts.len());
        for (index, entry) in entries.iter().enumerate() {
            assert_eq!(entry.range.start, Addr(starts[index]));
            assert_eq!(entry.range.end.0, *starts.get(index + 1).unwrap_or(&0x90_0000));
            assert_eq!(entry.code.state(), State::InUse(index as Label));
            assert_eq!(map.get(entry.range.start), Some(entry.code));
            assert_eq!(map.get(entry.range.start.plus(16)), None);
        }
        map.put(Addr(0x10030), Code::UNSORTED);
        assert_eq!(map.free_before(Addr(0x80_0000)), Some(Addr(0x10030)));
        assert_eq!(map.free_before(Addr(0x10030)), None);
    }

    #[test]
    fn what_is_cleared_is_gone_and_the_rest_stays() {
        let mut map = ChunkMap::of(Range::of(0x10000, 0x90_0000));
        let starts = [0x10000, 0x10030, 0x10050, 0x12010, 0x80_0000];
        starts.iter().for_each(|start| map.put(Addr(*start), Code::SMALL));
        map.clear_from(Addr(0x10050));
        let left: Vec<Range> = map.entries().map(|entry| entry.range).collect();
        assert_eq!(left, [Range::of(0x10000, 0x10030), Range::of(0x10030, 0x90_0000)]);
        map.clear_from(Addr(0x10000));
        assert_eq!(map.entries().next(), None);
    }

    #[test]
    fn the_second_half_of_a_map_is_taken_over_from_where_the_first_ends() {
        let range = Range::of(0x10000, 0x90_0000);
        let starts = [0x10000, 0x10030, 0x40_0010, 0x40_2000, 0x80_0000];
        let mut whole = ChunkMap::of(range);
        starts.iter().for_each(|start| whole.put(Addr(*start), Code::SMALL));
        let mut first = ChunkMap::of(range);
        let middle = first.cut_before(Addr(0x40_0000));
        assert_eq!(middle, Addr(0x3f_0000));
        let mut second = ChunkMap::of(Range::new(middle, range.end));
        starts[..3].iter().for_each(|start| first.put(Addr(*start), Code::SMALL));
        starts[3..].iter().for_each(|start| second.put(Addr(*start), Code::SMALL));
        first.take_over(&second, Addr(0x40_2000));
        assert!(first.entries().eq(whole.entries()));
    }

    #[test]
    fn every_code_has_a_state_of_its_own() {
        let states: std::collections::HashSet<State> = Code::all().map(Code::state).collect();
        assert_eq!(states.len(), LABELS_MAX + 9);
        assert_eq!(Code::in_use(200).label(), Some(0));
        assert!(Code::TOP.label().is_none());
    }
}
