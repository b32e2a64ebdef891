//! The entries of a map of chunks in their order: a heap has some hundred thousand, and they are passed several times.

use super::chunk_map::{ChunkMap, Entry, SUMMARY_GRANULES};

/// A bit for each of the eight bytes that is not 0.
#[inline]
fn entry_bits(bytes: [u8; 8]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let word = u64::from_le_bytes(bytes);
    let high = (((word & LOW) + LOW) | word) & !LOW;
    // The eight highest bits side by side.
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The granules in which entries begin, in order. All of one block are found at once.
struct Places {
    /// The granules from `base` on that are still to come.
    bits: u64,
    base: usize,
}

impl Places {
    /// From a granule on in which an entry begins, or from the end.
    pub fn from(granule: usize) -> Places {
        Places { bits: 0, base: granule }
    }

    #[inline]
    pub fn next(&mut self, map: &ChunkMap) -> Option<usize> {
        if self.bits == 0 {
            self.fill(map)?;
        }
        // An index into the map's bytes, so nothing here wraps; whether it does is not looked at a million times.
        let granule = self.base.wrapping_add(self.bits.trailing_zeros() as usize);
        self.bits &= self.bits.wrapping_sub(1);
        if self.bits == 0 {
            self.base = (granule / SUMMARY_GRANULES).wrapping_add(1).wrapping_mul(SUMMARY_GRANULES);
        }
        Some(granule)
    }

    /// Looks at the first block from `base` on that has an entry.
    fn fill(&mut self, map: &ChunkMap) -> Option<()> {
        let from = map.next(self.base)?;
        self.base = from / SUMMARY_GRANULES * SUMMARY_GRANULES;
        let block = &map.bytes[self.base..map.bytes.len().min(self.base + SUMMARY_GRANULES)];
        let (words, rest) = block.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let all = words.iter().chain([&last]).take(SUMMARY_GRANULES / 8).enumerate();
        let bits = all.fold(0, |bits, (index, word)| bits | entry_bits(*word) << (index * 8));
        self.bits = bits & u64::MAX << (from - self.base);
        Some(())
    }
}

pub struct Entries<'a> {
    map: &'a ChunkMap,
    places: Places,
    at: Option<usize>,
}

impl Entries<'_> {
    pub fn from(map: &ChunkMap, first: Option<usize>) -> Entries<'_> {
        let mut places = Places::from(first.unwrap_or(map.bytes.len()));
        let at = places.next(map);
        Entries { map, places, at }
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        let granule = self.at?;
        self.at = self.places.next(self.map);
        let end = self.at.map_or(self.map.range.end, |next| self.map.start(next));
        Some(self.map.entry(granule, end))
    }
}
