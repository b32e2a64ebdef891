//! What may have a holder: malloc's blocks, and mappings that a program or a library made for itself. An arena from mmap is held
//! the way a block from malloc is. What is known by its owner (heap, stacks, data of libraries, malloc's own memory) is not such a
//! mapping. Large blocks from memalign start behind the start of their chunk.

use crate::base::Covered;
use crate::base::blocks::{Block, Blocks, UNKNOWN};
use crate::base::{Addr, Bytes, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::owners::index::Index;
use crate::jvm::types::JvmView;
use crate::os::elf::Image;

const PAGE_BYTES: u64 = 4096;
/// Large blocks that are asked whether they are memalign's.
const ALIGNED_LOOKED_MAX: usize = 100_000;
/// Objects of C++ with several bases, arrays with a count and objects with a counter of references are pointed to this far behind
/// their start.
const START_BYTES: u64 = 64;

/// The parts of anonymous writable mappings that have no owner, sorted. The kernel joins a program's mapping with malloc's.
pub fn without_owner(vm: &Hotspot, view: &JvmView, held: &[Range], libraries: &[Image]) -> Vec<Range> {
    let data = libraries.iter().flat_map(Image::data);
    let owned = view.extents.iter().map(|extent| extent.range).chain(held.iter().copied()).chain(data);
    let known = Covered::of(owned);
    let mappings = vm.target.view.mappings.iter();
    let others = mappings.filter(|mapping| mapping.rights.write && mapping.is_anonymous());
    others.flat_map(|mapping| known.missing(mapping.range)).collect()
}

/// Malloc's blocks and mappings, in the order of addresses.
struct Both<'a> {
    blocks: &'a dyn Blocks,
    mappings: &'a [Range],
}

impl Blocks for Both<'_> {
    fn each(&self, visit: &mut dyn FnMut(Block) -> bool) {
        let (mut next, mut goes_on) = (0, true);
        self.blocks.each(&mut |block| {
            while goes_on && self.mappings.get(next).is_some_and(|range| range.start < block.payload.start) {
                goes_on = visit(Block { payload: self.mappings[next], label: UNKNOWN });
                next += 1;
            }
            goes_on = goes_on && visit(block);
            goes_on
        });
        for range in self.mappings.iter().skip(next) {
            goes_on = goes_on && visit(Block { payload: *range, label: UNKNOWN });
        }
    }
}

/// What may have a holder.
pub struct Held {
    pub index: Index,
    /// By block: the mappings, with their bytes in memory. The rest is malloc's.
    mappings: Vec<(usize, Bytes)>,
    /// Where a large block from memalign starts, and the block; sorted by both.
    aligned: Vec<(u64, usize)>,
}

impl Held {
    pub fn new(vm: &Hotspot, blocks: &dyn Blocks, mappings: &[Range]) -> Held {
        let index = Index::with(&Both { blocks, mappings }, |_| true);
        let resident = |range: &Range| vm.target.view.resident_bytes(*range);
        let placed =
            mappings.iter().filter_map(|range| Some((index.at_start(range.start.0)?, resident(range))));
        let words = |at: Addr| {
            let words: [u64; 2] = vm.memory().peek_words(at, 2).ok()?.try_into().ok()?;
            vm.memory().used(at, words.map(u64::to_le_bytes).as_flattened());
            Some(words)
        };
        let large = (0..index.len()).filter(|block| index.payload(*block).bytes() >= PAGE_BYTES);
        let start = |block| Some((blocks.aligned(index.payload(block), &words)?.0, block));
        let aligned = large.take(ALIGNED_LOOKED_MAX).filter_map(start);
        Held { mappings: placed.collect(), aligned: aligned.collect(), index }
    }

    pub fn mapping_bytes(&self, block: usize) -> Option<Bytes> {
        let place = self.mappings.binary_search_by_key(&block, |(block, _)| *block).ok()?;
        Some(self.mappings[place].1)
    }

    /// The block that starts at `word` or right before it: libraries put headers of their own before what they hand out, and an
    /// object has more than one base. Of a mapping any page: the kernel joins neighbours into one.
    #[inline]
    pub fn at_start(&self, word: u64) -> Option<usize> {
        if !self.index.spans(word) || !word.is_multiple_of(8) {
            return None;
        }
        self.index.at_start(word).or_else(|| {
            let block = self.index.holding(word)?;
            let is_page = || word.is_multiple_of(PAGE_BYTES) && self.mapping_bytes(block).is_some();
            (!self.is_inner(word, block) || is_page()).then_some(block)
        })
    }

    /// Whether a pointer leads far into a block. Such words are often left over in memory that was never written.
    pub fn is_inner(&self, word: u64, block: usize) -> bool {
        let is_far = |start: u64| word.wrapping_sub(start) > START_BYTES;
        let aligned = || self.aligned.binary_search_by_key(&block, |(_, block)| *block).ok();
        is_far(self.index.payload(block).start.0)
            && aligned().is_none_or(|place| is_far(self.aligned[place].0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::hotspot::owners::index::tests::Listed;

    impl Held {
        /// (start, bytes) of malloc's blocks, and mappings that are in memory.
        pub fn made_up(blocks: &[(u64, u64)], mappings: &[Range]) -> Held {
            let index = Index::with(&Both { blocks: &Listed::of(blocks), mappings }, |_| true);
            let mappings =
                mappings.iter().map(|range| (index.at_start(range.start.0).expect("it"), range.bytes()));
            Held { mappings: mappings.collect(), aligned: Vec::new(), index }
        }
    }

    #[test]
    fn mappings_are_blocks_that_any_page_of_theirs_leads_to() {
        let mapping = |at: u64| Range::sized(crate::base::Addr(at), 0x1000_0000);
        let blocks = [(0x2000_0010, 64), (0x5000_0010, 64)];
        let held =
            Held::made_up(&blocks, &[mapping(0x1000_0000), mapping(0x3000_0000), mapping(0x6000_0000)]);
        assert_eq!(held.index.len(), 5, "in the order of addresses");
        assert_eq!(held.at_start(0x2000_0010), Some(1));
        assert_eq!(held.at_start(0x2000_0018), Some(1), "behind a header of a library");
        assert_eq!(held.at_start(0x2000_0014), None);
        assert_eq!(held.at_start(0x3000_0000), Some(2));
        assert_eq!(held.at_start(0x3fff_f000), Some(2), "far into it, too");
        assert_eq!(held.at_start(0x3fff_f010), None, "only where a page starts");
        assert_eq!(held.at_start(0x4000_0000), None);
        assert_eq!(held.at_start(0x5000_0000), None, "malloc's blocks have one start");
        assert_eq!((held.mapping_bytes(2), held.mapping_bytes(1)), (Some(0x1000_0000), None));
    }
}
