//! Which memory of the process has no owner yet, so that a table of the collector may lie there: anonymous, not claimed by
//! another part of the VM, and not malloc's. The rooms of malloc are above this one, so its memory is recognised by its shape.

use crate::base::{Addr, PAGE, Range};
use crate::jvm::hotspot::metaspace_nodes::Taken;
use crate::jvm::types::Extent;
use crate::os::Target;
use crate::os::maps::Mapping;

/// Where malloc lets the heaps of its thread arenas start (malloc/arena.c, `HEAP_MAX_SIZE`).
const ARENA_BYTES: u64 = 64 << 20;

pub struct Unowned<'a> {
    target: &'a Target<'a>,
    pub owned: Taken,
}

impl<'a> Unowned<'a> {
    pub fn new(target: &'a Target<'a>, extents: &[Extent]) -> Unowned<'a> {
        Unowned { target, owned: Taken::by(extents) }
    }

    /// Whether all of `range` is anonymous memory without an owner.
    pub fn is_free(&self, range: Range) -> bool {
        // What is committed and what is reserved only are different mappings.
        !self.owned.overlaps(range)
            && self.target.is_all(range, is_memory)
            && !self.is_arena(range)
            && !self.is_malloc_chunk(range)
    }

    /// Whether the range lies in a heap of one of malloc's thread arenas, by the `heap_info` at its start: the arena, which
    /// follows the `heap_info` of its first heap; the heap before; the length in use (malloc/arena.c).
    fn is_arena(&self, range: Range) -> bool {
        let start = range.start.down_to(ARENA_BYTES);
        let Ok(words) = self.target.memory.peek_words(start, 3) else { return false };
        let arena_offset = words[0] % ARENA_BYTES;
        let length = words[2];
        let is_arena = words[0] != 0
            && (16..256).contains(&arena_offset)
            && words[1].is_multiple_of(ARENA_BYTES)
            && (1..=ARENA_BYTES).contains(&length)
            && length.is_multiple_of(PAGE);
        is_arena && self.used(start, &words)
    }

    /// Whether the range lies in memory that malloc mapped for one block: 0 or padding, then the length with the bit
    /// IS_MMAPPED (malloc/malloc.c, `sysmalloc_mmap`).
    fn is_malloc_chunk(&self, range: Range) -> bool {
        let mapping_start =
            self.target.mapping(range.start).map_or(range.start, |mapping| mapping.range.start);
        [range.start, mapping_start].into_iter().any(|start| {
            let Ok(words) = self.target.memory.peek_words(start, 2) else { return false };
            let bytes = words[1] & !7;
            let is_chunk = words[0] == 0
                && words[1] & 7 == 2
                && bytes.is_multiple_of(PAGE)
                && bytes > 0
                && Range::sized(start, bytes).has(range.start);
            is_chunk && self.used(start, &words)
        })
    }

    /// A header that was found, for a recording: what else was looked at may be the program's data.
    fn used(&self, at: Addr, words: &[u64]) -> bool {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.target.memory.used(at, &bytes);
        true
    }
}

/// Memory that HotSpot can have reserved for itself: anonymous, or huge pages.
pub fn is_memory(mapping: &Mapping) -> bool {
    let anonymous = mapping.is_anonymous() && mapping.path != "[heap]";
    anonymous || mapping.is_hugetlb_name() || mapping.path.starts_with("/SYSV")
}
