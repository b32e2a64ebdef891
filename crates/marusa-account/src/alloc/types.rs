//! What the readers of an allocator hand upwards. Plain data.

use crate::base::blocks::{LABELS_MAX, Label};
use crate::base::{Addr, Bytes, Gap, Known, Range};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The process's malloc.
#[derive(Clone, Debug, Default)]
pub struct AllocView {
    /// "glibc 2.36", "jemalloc", "musl".
    pub allocator: String,
    /// The allocator that stands before glibc's, or in its place; ranges that hold `NotWalked` are its.
    pub other: Option<OtherAllocator>,
    pub arenas: Vec<Arena>,
    /// Chunks that malloc mapped one by one (above the mmap threshold), with `range` from the chunk header to its end.
    pub mmapped: Vec<Range>,
    /// How the bytes of the arenas' heaps and of the mmapped chunks divide: sorted, disjoint. What no range covers was not
    /// walked, for a reason in `gaps`.
    pub intervals: Vec<Interval>,
    /// Blocks in use by label: index is the label. What was asked for where it is known (NMT), else the payload.
    pub in_use: Vec<BlockCount>,
    pub gaps: Vec<Gap>,
}

/// An allocator that is recognised, but whose structures are not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherAllocator {
    /// "jemalloc", "tcmalloc", "mimalloc", "musl".
    pub name: String,
    /// "5.3.0"; `None` where it has none.
    pub version: Option<String>,
    /// The file that it is in.
    pub path: String,
    /// How its memory is known: "around blocks of the VM".
    pub how: String,
}

/// Blocks of one label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCount {
    pub blocks: u64,
    pub bytes: Bytes,
}

/// One arena of glibc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arena {
    /// Address of its `malloc_state`.
    pub at: Addr,
    /// 0 for `main_arena`, then in the order of the ring.
    pub number: usize,
    pub heaps: Vec<ArenaHeap>,
    /// `system_mem`, as malloc counts it.
    pub system_bytes: Bytes,
    /// `attached_threads`, where this glibc keeps it (2.23 on).
    pub attached_threads: Option<u64>,
    /// Ids of the threads that are seen to allocate from it (`thread_arena`); those whose stack is not known are missing.
    pub threads: Vec<i32>,
    pub figures: Known<ArenaFigures>,
}

/// A contiguous range of an arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaHeap {
    /// Thread arenas: the whole aligned reservation (64 MiB by default). Main arena: the segment.
    pub reserved: Range,
    /// The part that malloc may use now: `heap_info.size`, or up to the end of the segment.
    pub in_arena: Range,
}

/// Memory in a row of one arena (or one mmapped chunk) whose pages are alike, and whose bytes it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    pub range: Range,
    /// `None`: an mmapped chunk, or memory of another allocator.
    pub arena: Option<usize>,
    /// Sums to `range.bytes()`; each state at most once, in their order.
    pub shares: Vec<(State, Bytes)>,
}

/// What a byte of malloc's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Payload of a block in use, by label; 0: owner unknown.
    InUse(Label),
    /// Free, in a thread's cache.
    Tcache,
    /// Free, in a fastbin.
    Fast,
    /// Free, in the unsorted, a small or a large bin.
    Unsorted,
    Small,
    Large,
    /// Free, but caught on no list: the chunks and the lists were read at different moments.
    Unlisted,
    /// The free end of an arena.
    Top,
    /// Headers of chunks, what blocks were rounded up by, `heap_info`, `malloc_state`, fence posts, foreign gaps.
    Overhead,
    /// Behind an arena's end in its reservation: writable no more needed (`mprotect_size`), or no access yet.
    Beyond,
    /// Could not be walked: changed under the reading, and trying again did not help.
    Unresolved,
    /// Memory of an allocator that is not walked (`AllocView::other`): free, its own tables, or in use by other libraries.
    NotWalked,
}

/// Bytes and number of chunks in one state; whole chunks, headers included, as malloc_info(3) counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ChunkCount {
    pub chunks: u64,
    pub bytes: Bytes,
}

/// Whole chunks, headers included, as malloc_info(3) counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Chunks {
    pub in_use: ChunkCount,
    pub tcache: ChunkCount,
    pub fast: ChunkCount,
    pub unsorted: ChunkCount,
    pub small: ChunkCount,
    pub large: ChunkCount,
    pub unlisted: ChunkCount,
    pub top: ChunkCount,
}

impl Chunks {
    /// What malloc_info counts as free: not what is in the caches of threads.
    pub fn free_bytes(&self) -> Bytes {
        let free = [self.fast, self.unsorted, self.small, self.large, self.unlisted, self.top];
        free.iter().fold(0, |sum, count| sum.saturating_add(count.bytes))
    }
}

/// The sums of one arena.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArenaFigures {
    pub chunks: Chunks,
    pub overhead_bytes: Bytes,
    pub unresolved_bytes: Bytes,
    /// Free bytes (tcache, bins, unlisted, top) on resident pages, and those of them that fill whole resident pages.
    pub free_resident_bytes: Bytes,
    pub free_whole_page_bytes: Bytes,
    /// Resident bytes that malloc_trim(0) would give back now: whole pages within unsorted, small and large chunks of any
    /// arena, and the main arena's top (malloc/malloc.c, `mtrim`).
    pub trimmable_bytes: Bytes,
    /// Resident whole pages of a thread arena's top, which malloc_trim leaves.
    pub top_kept_bytes: Bytes,
    /// Walks of a heap that broke and were tried again.
    pub retries: u64,
}

impl OtherAllocator {
    /// "jemalloc 5.3.0".
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.name),
            None => self.name.clone(),
        }
    }
}

impl State {
    pub fn is_free(self) -> bool {
        use State::*;
        matches!(self, Tcache | Fast | Unsorted | Small | Large | Unlisted | Top)
    }
}

const _: () = assert!(LABELS_MAX < Label::MAX as usize);
