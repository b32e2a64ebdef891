//! From an address to the block of malloc that starts there. Every word of the heap is asked about, so an answer must
//! cost some nanoseconds: a small table by 64 MiB of address space says for most words at once that no block is near, and
//! leads for the others to a bit for each 16 bytes at which a block may start, next to the number of blocks before it.

use crate::base::blocks::{Block, Blocks, Label, SEEN, UNKNOWN};
use crate::base::limits::OWNED_BLOCKS_MAX;
use crate::base::{Addr, Range, USER_END};

/// glibc's payloads start at multiples of this (MALLOC_ALIGNMENT, malloc/malloc-alignment.h).
const GRAIN: u64 = 16;
const ADDRESS_BITS: u32 = USER_END.ilog2();
const SLOT_BITS: u32 = 26;
/// Places of the table for each slot that has blocks: most words find an empty one.
const PLACES_PER_SLOT: usize = 4;
/// Slots that are looked at.
const SLOTS_MAX: usize = 1 << 16;
/// A slot with fewer blocks than this for each KiB of bits is searched by bisection: blocks mapped one by one lie far apart.
const BLOCKS_PER_KIB_MIN: u64 = 16;

/// The blocks without an owner, sorted by address.
pub struct Index {
    starts: Vec<u64>,
    sizes: Vec<u32>,
    /// Which of them were arena chunks when the heap was walked.
    seen: Vec<u32>,
    /// Whether others were, too, which are not looked at.
    pub has_left_seen: bool,
    /// The first start, and how far the last one is from it: most words of a heap are no such address.
    low: u64,
    span: u64,
    /// By slot, hashed; a power of two of places.
    table: Vec<Region>,
    bits: Vec<Bits>,
    /// Whether there were more blocks than are looked at.
    pub is_cut: bool,
}

/// The blocks that start in one slot.
#[derive(Clone, Copy, Default)]
struct Region {
    /// `NO_SLOT`: an empty place.
    slot: u64,
    base: u64,
    first: u32,
    count: u32,
    /// Bit n of these: a block starts at `base` + n * GRAIN. None: too few blocks.
    bits_first: u32,
    bits_count: u32,
}

const NO_SLOT: u64 = u64::MAX;

/// 64 grains, and the blocks of the region that start before them.
#[derive(Clone, Copy)]
struct Bits {
    bits: u64,
    before: u32,
}

impl Index {
    pub fn of(blocks: &dyn Blocks) -> Index {
        Index::with(blocks, |label| label == UNKNOWN || label == SEEN)
    }

    /// The blocks whose label is wanted.
    pub fn with(blocks: &dyn Blocks, is_wanted: impl Fn(Label) -> bool) -> Index {
        let (mut starts, mut sizes, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        let (mut has_left_seen, mut is_cut) = (false, false);
        blocks.each(&mut |block: Block| {
            let at = block.payload.start.0;
            let is_in_order = starts.last().is_none_or(|last| *last < at);
            if is_wanted(block.label) && is_in_order && at.is_multiple_of(GRAIN) && at >> ADDRESS_BITS == 0 {
                is_cut = starts.len() == OWNED_BLOCKS_MAX;
                if is_cut {
                    has_left_seen = true;
                    return false;
                }
                if block.label == SEEN {
                    seen.push(starts.len() as u32);
                }
                starts.push(at);
                sizes.push(block.payload.bytes().min(u64::from(u32::MAX)) as u32);
            } else if block.label == SEEN {
                has_left_seen = true;
            }
            true
        });
        let low = starts.first().copied().unwrap_or(0);
        let end = starts.last().zip(sizes.last()).map_or(0, |(last, bytes)| last + u64::from(*bytes));
        let span = end.saturating_sub(low);
        let (table, bits) = (Vec::new(), Vec::new());
        let mut index = Index { starts, sizes, seen, has_left_seen, low, span, table, bits, is_cut };
        index.lay_out();
        index
    }

    fn lay_out(&mut self) {
        let (mut regions, mut first) = (Vec::new(), 0);
        while let Some(start) = self.starts.get(first) {
            let slot = start >> SLOT_BITS;
            let count = self.starts[first..].partition_point(|at| at >> SLOT_BITS == slot);
            if regions.len() == SLOTS_MAX {
                self.is_cut = true;
                break;
            }
            regions.push(self.region(slot, first, count));
            first += count;
            // A block that is larger than a slot: the slots behind, as far as no other block starts in them.
            let last = self.payload(first - 1).end.0.saturating_sub(1) >> SLOT_BITS;
            let next = self.starts.get(first).map_or(u64::MAX, |start| start >> SLOT_BITS);
            let covered = (slot + 1..=last.min(next.saturating_sub(1))).take(SLOTS_MAX - regions.len());
            regions.extend(covered.map(|slot| Region { slot, first: first as u32, ..Region::default() }));
        }
        let places = (regions.len() * PLACES_PER_SLOT).next_power_of_two();
        self.table = vec![Region { slot: NO_SLOT, ..Region::default() }; places];
        for region in regions {
            let mut place = self.place(region.slot);
            while self.table[place].slot != NO_SLOT {
                place = (place + 1) % places;
            }
            self.table[place] = region;
        }
    }

    fn region(&mut self, slot: u64, first: usize, count: usize) -> Region {
        let starts = &self.starts[first..first + count];
        let (base, last) = (starts[0], starts[count - 1]);
        let bits_first = self.bits.len();
        let bit_bytes = (last - base) / GRAIN / 8;
        if count as u64 >= bit_bytes / 1024 * BLOCKS_PER_KIB_MIN {
            let words = ((last - base) / GRAIN / 64 + 1) as usize;
            self.bits.resize(bits_first + words, Bits { bits: 0, before: 0 });
            let region = &mut self.bits[bits_first..];
            for start in starts {
                let grain = (start - base) / GRAIN;
                region[(grain / 64) as usize].bits |= 1 << (grain % 64);
            }
            let mut sum = 0;
            for word in region {
                word.before = sum;
                sum += word.bits.count_ones();
            }
        }
        let bits_count = (self.bits.len() - bits_first) as u32;
        Region {
            slot,
            base,
            first: first as u32,
            count: count as u32,
            bits_first: bits_first as u32,
            bits_count,
        }
    }

    /// Where a slot is looked for first: neighbours lie side by side.
    #[inline(always)]
    fn place(&self, slot: u64) -> usize {
        (slot ^ slot >> 11) as usize & (self.table.len() - 1)
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }
    /// Where the payloads start.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }
    /// The blocks that were arena chunks when the heap was walked.
    pub fn seen(&self) -> &[u32] {
        &self.seen
    }

    /// Where the payload of block `index` starts; 4 GiB and more count as that.
    pub fn payload(&self, index: usize) -> Range {
        Range::sized(Addr(self.starts[index]), u64::from(self.sizes[index]))
    }

    #[inline(always)]
    fn region_of(&self, word: u64) -> Option<&Region> {
        let slot = word >> SLOT_BITS;
        let mut place = self.place(slot);
        loop {
            // A quarter of the places at most are taken, so there is an empty one.
            let region = self.table.get(place)?;
            if region.slot == slot {
                return Some(region);
            }
            if region.slot == NO_SLOT {
                return None;
            }
            place = (place + 1) & (self.table.len() - 1);
        }
    }

    /// Whether `word` is null or may point to or into a block: quick, and not sure.
    #[inline]
    pub fn may_hold(&self, word: u64) -> bool {
        word == 0 || word.is_multiple_of(8) && self.region_of(word).is_some()
    }

    /// Whether `word` lies between the first block and the last: quick.
    #[inline(always)]
    pub fn spans(&self, word: u64) -> bool {
        word.wrapping_sub(self.low) <= self.span
    }

    /// The block whose payload starts at `word`.
    #[inline(always)]
    pub fn at_start(&self, word: u64) -> Option<usize> {
        if !self.spans(word) || !word.is_multiple_of(GRAIN) {
            return None;
        }
        self.at_start_of(self.region_of(word)?, word)
    }

    fn at_start_of(&self, region: &Region, word: u64) -> Option<usize> {
        let first = region.first as usize;
        if region.bits_count == 0 {
            let starts = &self.starts[first..first + region.count as usize];
            return starts.binary_search(&word).ok().map(|place| first + place);
        }
        let grain = word.checked_sub(region.base)? / GRAIN;
        let place = (grain / 64) as usize;
        if place >= region.bits_count as usize {
            return None;
        }
        let Bits { bits, before } = self.bits[region.bits_first as usize + place];
        let bit = 1 << (grain % 64);
        let before = (bits & (bit - 1)).count_ones() + before;
        (bits & bit != 0).then_some(first + before as usize)
    }

    /// The block whose payload holds `word`.
    pub fn holding(&self, word: u64) -> Option<usize> {
        let region = self.region_of(word)?;
        let first = region.first as usize;
        let place = if region.bits_count == 0 {
            let starts = &self.starts[first..first + region.count as usize];
            starts.partition_point(|start| *start <= word)
        } else {
            word.checked_sub(region.base).map_or(0, |from| self.last_before(region, from / GRAIN) + 1)
        };
        // Before the first that starts in the slot, one from a slot before it may reach here.
        let block = (first + place).checked_sub(1)?;
        self.payload(block).has(Addr(word)).then_some(block)
    }

    /// The place of the last block that starts at or before `grain`; the first starts at 0.
    fn last_before(&self, region: &Region, grain: u64) -> usize {
        let last = u64::from(region.bits_count - 1);
        let Bits { bits, before } = self.bits[region.bits_first as usize + (grain / 64).min(last) as usize];
        let upto = if grain / 64 > last { u64::MAX } else { u64::MAX >> (63 - grain % 64) };
        (before + (bits & upto).count_ones()).saturating_sub(1) as usize
    }
}

/// The place of each block's first edge, of edges that are sorted by the block that they come from, and the end of the last.
pub fn firsts(from: impl ExactSizeIterator<Item = u32>, blocks: usize) -> Vec<u32> {
    let edges = from.len();
    let mut firsts = Vec::with_capacity(blocks + 1);
    for (place, from) in from.enumerate() {
        if firsts.len() <= from as usize {
            firsts.resize(from as usize + 1, place as u32);
        }
    }
    firsts.resize(blocks + 1, edges as u32);
    firsts
}

#[cfg(test)]
#[path = "index_tests.rs"]
pub mod tests;
