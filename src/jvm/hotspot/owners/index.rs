//! From an address to the block of malloc that starts there. Every word of the heap is asked about, so an answer must
//! cost some nanoseconds: a table by 64 MiB of address space, and there a bit for each 16 bytes at which a block may
//! start, with the number of blocks before it.

use crate::base::blocks::{Block, Blocks, SEEN, UNKNOWN};
use crate::base::limits::OWNED_BLOCKS_MAX;
use crate::base::{Addr, Range};

/// glibc's payloads start at multiples of this (MALLOC_ALIGNMENT, malloc/malloc-alignment.h).
const GRAIN: u64 = 16;
/// User addresses end at 2^47 on x86-64 and 2^48 on aarch64.
const ADDRESS_BITS: u32 = 48;
const SLOT_BITS: u32 = 26;
/// Slots are found in two steps, so that a small heap needs a small table.
const GROUP_BITS: u32 = 37;
const GROUP_SLOTS: usize = 1 << (GROUP_BITS - SLOT_BITS);
/// A slot with fewer blocks than this for each KiB of bits is searched by bisection: blocks mapped one by one lie far apart.
const BLOCKS_PER_KIB_MIN: u64 = 16;

/// The blocks without an owner, sorted by address.
pub struct Index {
    starts: Vec<u64>,
    sizes: Vec<u32>,
    /// Which of them were arena chunks when the heap was walked.
    seen: Vec<u32>,
    /// The first start, and how far the last one is from it: most words of a heap are no such address.
    low: u64,
    span: u64,
    /// Where a group's slots start in `slots`, by the upper bits of an address; all groups without a block share the first.
    groups: Vec<u32>,
    /// The place in `regions` plus one.
    slots: Vec<u16>,
    regions: Vec<Region>,
    /// Whether there were more blocks than are looked at.
    pub is_cut: bool,
}

/// The blocks that start in one slot.
struct Region {
    first: usize,
    count: usize,
    base: u64,
    /// Bit n: a block starts at `base` + n * GRAIN. Empty: too few blocks.
    bits: Vec<u64>,
    /// Blocks before each word of `bits`.
    before: Vec<u32>,
}

impl Index {
    pub fn of(blocks: &dyn Blocks) -> Index {
        let (mut starts, mut sizes, mut seen, mut is_cut) = (Vec::new(), Vec::new(), Vec::new(), false);
        blocks.each(&mut |block: Block| {
            let at = block.payload.start.0;
            let is_in_order = starts.last().is_none_or(|last| *last < at);
            let is_ours = block.label == UNKNOWN || block.label == SEEN;
            if is_ours && is_in_order && at.is_multiple_of(GRAIN) && at >> ADDRESS_BITS == 0 {
                is_cut = starts.len() == OWNED_BLOCKS_MAX;
                if is_cut {
                    return false;
                }
                if block.label == SEEN {
                    seen.push(starts.len() as u32);
                }
                starts.push(at);
                sizes.push(block.payload.bytes().min(u64::from(u32::MAX)) as u32);
            }
            true
        });
        let groups = vec![0; 1 << (ADDRESS_BITS - GROUP_BITS)];
        let slots = vec![0; GROUP_SLOTS];
        let low = starts.first().copied().unwrap_or(0);
        let span = starts.last().map_or(0, |last| last - low);
        let mut index = Index { starts, sizes, seen, low, span, groups, slots, regions: Vec::new(), is_cut };
        index.lay_out();
        index
    }

    fn lay_out(&mut self) {
        let mut first = 0;
        while let Some(start) = self.starts.get(first).copied() {
            let slot = start >> SLOT_BITS;
            let count = self.starts[first..].partition_point(|at| at >> SLOT_BITS == slot);
            if self.regions.len() == usize::from(u16::MAX) - 1 {
                self.is_cut = true;
                return;
            }
            self.regions.push(Region::new(first, &self.starts[first..first + count]));
            let group = &mut self.groups[(start >> GROUP_BITS) as usize];
            if *group == 0 {
                *group = self.slots.len() as u32;
                self.slots.resize(self.slots.len() + GROUP_SLOTS, 0);
            }
            self.slots[*group as usize + slot as usize % GROUP_SLOTS] = self.regions.len() as u16;
            first += count;
        }
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }
    /// The blocks that were arena chunks when the heap was walked.
    pub fn seen(&self) -> &[u32] {
        &self.seen
    }

    /// Where the payload of block `index` starts; 4 GiB and more count as that.
    pub fn payload(&self, index: usize) -> Range {
        Range::sized(Addr(self.starts[index]), u64::from(self.sizes[index]))
    }

    fn region(&self, word: u64) -> Option<&Region> {
        let group = *self.groups.get((word >> GROUP_BITS) as usize)? as usize;
        let slot = self.slots[group + (word >> SLOT_BITS) as usize % GROUP_SLOTS];
        self.regions.get(usize::from(slot).checked_sub(1)?)
    }

    /// Whether `word` is null or may point to or into a block: quick, and not sure.
    #[inline]
    pub fn may_hold(&self, word: u64) -> bool {
        word == 0 || word.is_multiple_of(8) && self.region(word).is_some()
    }

    /// The block whose payload starts at `word`.
    #[inline]
    pub fn at_start(&self, word: u64) -> Option<usize> {
        if word.wrapping_sub(self.low) > self.span || !word.is_multiple_of(GRAIN) {
            return None;
        }
        let region = self.region(word)?;
        if region.bits.is_empty() {
            return self.starts[region.first..region.first + region.count]
                .binary_search(&word)
                .ok()
                .map(|place| region.first + place);
        }
        let grain = word.checked_sub(region.base)? / GRAIN;
        let bits = region.bits.get((grain / 64) as usize)?;
        let bit = 1 << (grain % 64);
        // Most words are no start: for them nothing more is fetched.
        if bits & bit == 0 {
            return None;
        }
        let before = (bits & (bit - 1)).count_ones() + region.before[(grain / 64) as usize];
        Some(region.first + before as usize)
    }

    /// The block whose payload holds `word`.
    pub fn holding(&self, word: u64) -> Option<usize> {
        let region = self.region(word)?;
        let place = if region.bits.is_empty() {
            let starts = &self.starts[region.first..region.first + region.count];
            starts.partition_point(|start| *start <= word).checked_sub(1)?
        } else {
            region.last_before(word.checked_sub(region.base)? / GRAIN)
        };
        let block = region.first + place;
        self.payload(block).has(Addr(word)).then_some(block)
    }
}

impl Region {
    fn new(first: usize, starts: &[u64]) -> Region {
        let (base, last) = (starts[0], starts[starts.len() - 1]);
        let mut region = Region { first, count: starts.len(), base, bits: Vec::new(), before: Vec::new() };
        let bit_bytes = (last - base) / GRAIN / 8;
        if (starts.len() as u64) < bit_bytes / 1024 * BLOCKS_PER_KIB_MIN {
            return region;
        }
        region.bits = vec![0; ((last - base) / GRAIN / 64 + 1) as usize];
        for start in starts {
            let grain = (start - base) / GRAIN;
            region.bits[(grain / 64) as usize] |= 1 << (grain % 64);
        }
        let mut sum = 0;
        for bits in &region.bits {
            region.before.push(sum);
            sum += bits.count_ones();
        }
        region
    }

    /// The place of the last block that starts at or before `grain`; the first starts at 0.
    fn last_before(&self, grain: u64) -> usize {
        let last = self.bits.len() - 1;
        let word = (grain / 64).min(last as u64) as usize;
        let bits = if grain / 64 > last as u64 { u64::MAX } else { u64::MAX >> (63 - grain % 64) };
        let through = self.before[word] + (self.bits[word] & bits).count_ones();
        through.saturating_sub(1) as usize
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::base::blocks::Label;

    /// Blocks for tests: (start, bytes).
    pub struct Listed(pub Vec<Block>);

    impl Listed {
        pub fn of(blocks: &[(u64, u64)]) -> Listed {
            let block =
                |(at, bytes): &(u64, u64)| Block { payload: Range::sized(Addr(*at), *bytes), label: UNKNOWN };
            Listed(blocks.iter().map(block).collect())
        }
    }

    impl Blocks for Listed {
        fn at(&self, at: Addr) -> Option<Block> {
            self.0.iter().copied().find(|block| block.payload.has(at))
        }
        fn each(&self, visit: &mut dyn FnMut(Block) -> bool) {
            self.0.iter().all(|block| visit(*block));
        }
        fn label(&mut self, payload: Addr, label: Label) {
            if let Some(block) = self.0.iter_mut().find(|block| block.payload.start == payload) {
                block.label = label;
            }
        }
    }

    #[test]
    fn a_block_is_found_by_its_start_and_by_what_lies_in_it() {
        let mut blocks: Vec<(u64, u64)> = (0..1000).map(|n| (0x7f00_0000_0010 + n * 48, 40)).collect();
        blocks.extend([(0x7f12_3400_0010, 1 << 20), (0x7f12_3600_0010, 5 << 32)]);
        let index = Index::of(&Listed::of(&blocks));
        for (place, (at, _)) in blocks.iter().enumerate() {
            assert_eq!(index.at_start(*at), Some(place));
            assert_eq!(index.at_start(at + 16), None);
            assert_eq!(index.holding(at + 39), Some(place));
        }
        assert_eq!(index.holding(0x7f00_0000_0010 + 40), None);
        for word in [0, 16, 0x7f00_0000_0000, 0x7f13_0000_0010, 0x8000_0000_0000, !15] {
            assert_eq!((index.at_start(word), index.holding(word)), (None, None), "{word:#x}");
        }
        assert_eq!(index.payload(1001).bytes(), u64::from(u32::MAX));
    }

    #[test]
    fn blocks_that_have_an_owner_are_left_out_and_chunks_that_were_seen_are_not() {
        let mut listed = Listed::of(&[(0x1000, 24), (0x1020, 24)]);
        listed.label(Addr(0x1000), 3);
        listed.label(Addr(0x1020), SEEN);
        let index = Index::of(&listed);
        assert_eq!(index.seen(), [0]);
        assert_eq!((index.len(), index.at_start(0x1000), index.at_start(0x1020)), (1, None, Some(0)));
    }
}
