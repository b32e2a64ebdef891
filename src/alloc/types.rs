//! What the readers of an allocator hand upwards. Plain data.

use crate::base::{Addr, Bytes, Gap, Known, Range};
use serde::{Deserialize, Serialize};

/// The process's malloc.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AllocView {
    /// "glibc 2.36", "jemalloc", "musl".
    pub allocator: String,
    pub arenas: Vec<Arena>,
    /// Chunks that malloc mapped one by one (above the mmap threshold), with `range` from the chunk header to its end.
    pub mmapped: Vec<Range>,
    /// malloc's own count and sum of them (`mp_.n_mmaps`, `mp_.mmapped_mem`): proof that all were found.
    pub mmapped_count: Known<u64>,
    pub mmapped_bytes: Known<Bytes>,
    pub gaps: Vec<Gap>,
}

/// One arena of glibc.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arena {
    /// Address of its `malloc_state`.
    pub at: Addr,
    /// 0 for `main_arena`, then in the order of the ring.
    pub number: usize,
    pub heaps: Vec<ArenaHeap>,
    /// `system_mem`, as malloc counts it.
    pub system_bytes: Bytes,
}

/// A contiguous stretch of an arena.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArenaHeap {
    /// Thread arenas: the whole aligned reservation (64 MiB by default). Main arena: the segment.
    pub reserved: Range,
    /// The part that malloc may use now: `heap_info.size`, or up to the end of the segment.
    pub in_arena: Range,
}
