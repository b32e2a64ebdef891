//! Threads' caches. The chunks in them look as if they were in use; what leads to them is a structure in each thread's
//! own heap, found among the chunks by its size and by heads that point at chunks of the right sizes.
//!
//! malloc/malloc.c, `tcache_perthread_struct`: 2.26 to 2.29 one byte a count, 2.30 to 2.41 two; from 2.42 on it counts
//! what is still free, and 12 bins for large chunks come behind the 64 small ones.

use super::chunk_map::Code;
use super::links::{Linking, Links};
use super::lists::{chunk_at, which};
use super::region::Region;
use crate::base::Addr;
use crate::base::limits::LIST_CHUNKS_MAX;

const SMALL_BINS: usize = 64;
const LARGE_BINS: usize = 12;
/// `tcache_count` is at most this, and a list with it.
const CACHED_MAX: usize = u16::MAX as usize;
/// Ones of a random key: malloc/malloc.c, `tcache_key_initialize`, wants a quarter of the bits from 2.43 on.
const KEY_ONES: std::ops::RangeInclusive<u32> = 12..=52;

struct Shape {
    chunk_bytes: u64,
    count_bytes: usize,
    bins: usize,
    counts_free: bool,
}

const SHAPES: [Shape; 3] = [
    Shape { chunk_bytes: 0x250, count_bytes: 1, bins: SMALL_BINS, counts_free: false },
    Shape { chunk_bytes: 0x290, count_bytes: 2, bins: SMALL_BINS, counts_free: false },
    Shape { chunk_bytes: 0x300, count_bytes: 2, bins: SMALL_BINS + LARGE_BINS, counts_free: true },
];
/// The largest of them.
const CACHE_BYTES_MAX: usize = (SMALL_BINS + LARGE_BINS) * 10;

/// What the chunk of a cache's structure may be larger by: a rest too small to be split off. Seen on 2.43: 0x300, 0x310, 0x320.
const REST_BYTES_MAX: u64 = 32;

/// Whether the chunk of a cache's structure may have this size.
#[inline]
pub fn has_size(chunk_bytes: u64) -> bool {
    matches!(chunk_bytes, 0x250..=0x270 | 0x290..=0x2b0 | 0x300..=0x320)
}

/// The list heads in a cache's structure.
struct Cache {
    /// Bin, first block, and how many blocks there are at most.
    lists: Vec<(usize, Addr, usize)>,
}

impl Shape {
    fn of(chunk_bytes: u64) -> Option<&'static Shape> {
        SHAPES
            .iter()
            .find(|shape| (shape.chunk_bytes..=shape.chunk_bytes + REST_BYTES_MAX).contains(&chunk_bytes))
    }

    fn bytes(&self) -> usize {
        self.bins * (self.count_bytes + 8)
    }

    /// The lists that these bytes say, if a cache may look so.
    fn lists(&self, bytes: &[u8]) -> Option<Cache> {
        let (counts, entries) = bytes.get(..self.bytes())?.split_at(self.bins * self.count_bytes);
        let mut lists = Vec::new();
        let mut strange = 0;
        for (bin, (count, entry)) in
            counts.chunks(self.count_bytes).zip(entries.as_chunks::<8>().0).enumerate()
        {
            let head = Addr(u64::from_le_bytes(*entry));
            let count = count.iter().rev().fold(0, |sum, byte| sum << 8 | *byte as usize);
            if !head.is_aligned(16) {
                return None;
            }
            if !self.counts_free && (count == 0) != head.is_null() {
                strange += 1;
            } else if !head.is_null() {
                lists.push((bin, head, if self.counts_free { CACHED_MAX } else { count }));
            }
        }
        // A list may be caught between its two changes.
        (!lists.is_empty() && strange * 4 <= lists.len()).then_some(Cache { lists })
    }
}

/// Whether a chunk of this size may lie in this bin.
fn fits(bin: usize, chunk_bytes: u64) -> bool {
    if bin < SMALL_BINS { chunk_bytes == 32 + bin as u64 * 16 } else { chunk_bytes > 32 + 16 * 63 }
}

/// The cache whose structure lies in the chunk at `at`, proved by what its heads point at.
fn cache_at(regions: &[Region], at: Addr, links: &mut Links) -> Option<Cache> {
    let (index, code, bytes) = chunk_at(regions, at)?;
    code.label()?;
    let shape = Shape::of(bytes)?;
    let mut raw = [0; CACHE_BYTES_MAX];
    let raw = &mut raw[..shape.bytes()];
    links.copy(&regions[index].resident, at.plus(16), raw)?;
    let cache = shape.lists(raw)?;
    let is_cached = |(bin, head, _): &&(usize, Addr, usize)| {
        let chunk = chunk_at(regions, head.minus(16));
        chunk.is_some_and(|(_, code, bytes)| {
            fits(*bin, bytes) && (code.label().is_some() || code == Code::TCACHE)
        })
    };
    let good = cache.lists.iter().filter(is_cached).count();
    let is_proved = (cache.lists.len() - good) * 4 <= good;
    if is_proved {
        links.keep(at.plus(16), raw);
    }
    is_proved.then_some(cache)
}

/// Marks what the threads' caches hold, where no key marks it. `regions`: all, sorted by address.
pub fn mark(regions: &mut [Region], linking: Option<Linking>, links: &mut Links) {
    let candidates: Vec<Addr> = regions.iter().flat_map(|region| region.caches.iter().copied()).collect();
    let caches: Vec<Cache> = candidates.iter().filter_map(|at| cache_at(regions, *at, links)).collect();
    let heads = || caches.iter().flat_map(|cache| &cache.lists);
    let linking =
        linking.or_else(|| heads().find_map(|(bin, head, _)| linking_at(regions, *bin, *head, links)));
    let mut left = LIST_CHUNKS_MAX;
    for (bin, head, count) in heads() {
        let mut block = *head;
        for _ in 0..*count {
            let Some((index, code, bytes)) = chunk_at(regions, block.minus(16)) else { break };
            let may_be_cached = code.label().is_some() || code == Code::TCACHE;
            if left == 0 || !may_be_cached || !fits(*bin, bytes) {
                break;
            }
            left -= 1;
            regions[index].map.put(block.minus(16), Code::TCACHE);
            let Some(word) = links.word(&regions[index].resident, block) else { break };
            block = linking.unwrap_or(Linking::Safe).follow(block, word);
        }
    }
}

fn linking_at(regions: &[Region], bin: usize, block: Addr, links: &mut Links) -> Option<Linking> {
    let (index, _, _) = chunk_at(regions, block.minus(16))?;
    let word = links.word(&regions[index].resident, block)?;
    which(|linking| {
        let next = linking.follow(block, word);
        next.is_null() || chunk_at(regions, next.minus(16)).is_some_and(|(_, _, bytes)| fits(bin, bytes))
    })
}

/// The word that marks every cached block from 2.34 on, seen in the caches that lie at the start of a heap. `read` reads
/// resident memory.
pub fn key(first_chunks: &[Addr], read: &dyn Fn(Addr, &mut [u8]) -> Option<()>) -> Option<u64> {
    let mut found: Vec<u64> = Vec::new();
    for chunk in first_chunks {
        let mut size = [0; 8];
        if read(chunk.plus(8), &mut size).is_none() {
            continue;
        }
        let Some(shape) = Shape::of(u64::from_le_bytes(size) & !7) else { continue };
        let mut raw = [0; CACHE_BYTES_MAX];
        let raw = &mut raw[..shape.bytes()];
        let Some(cache) = read(chunk.plus(16), raw).and_then(|()| shape.lists(raw)) else { continue };
        for (_, head, _) in cache.lists {
            let mut word = [0; 8];
            if read(head.plus(8), &mut word).is_some() {
                found.push(u64::from_le_bytes(word));
            }
        }
    }
    // Before 2.34 it is the address of the cache, before 2.29 there is none.
    let is_random = |key: &u64| KEY_ONES.contains(&key.count_ones()) && *key >> 48 != 0;
    let most = found
        .iter()
        .copied()
        .filter(is_random)
        .max_by_key(|key| found.iter().filter(|other| *other == key).count())?;
    let count = found.iter().filter(|other| **other == most).count();
    (count * 2 > found.len() && count >= 2).then_some(most)
}
