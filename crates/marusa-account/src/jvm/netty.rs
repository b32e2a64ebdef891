//! Netty's pools of direct memory: arenas and their chunks, what threads keep of them, and the chunks of the adaptive allocator.
//! Its metrics have the sums; they do not say how much the caches of threads keep from other threads.

use crate::base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Chunks, and how full they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ChunkSums {
    pub count: u64,
    pub bytes: Bytes,
    /// What no buffer uses; `None`: the fields of a chunk could not be read.
    pub free_bytes: Option<Bytes>,
    /// The number of chunks in use by 0 %, up to 25, up to 50, up to 75, less than 100, and 100 %.
    pub by_use: [u64; 6],
}

impl ChunkSums {
    pub fn of(chunks: impl IntoIterator<Item = (Bytes, Option<Bytes>)>) -> ChunkSums {
        let mut sums = ChunkSums { free_bytes: Some(0), ..ChunkSums::default() };
        for (bytes, free) in chunks {
            sums.count += 1;
            sums.bytes = sums.bytes.saturating_add(bytes);
            sums.free_bytes = sums.free_bytes.zip(free).map(|(sum, free)| sum.saturating_add(free));
            if let Some(free) = free {
                sums.by_use[use_class(bytes, free)] += 1;
            }
        }
        sums
    }
}

fn use_class(bytes: Bytes, free: Bytes) -> usize {
    match (u128::from(bytes.saturating_sub(free)) * 4, u128::from(bytes)) {
        (0, _) => 0,
        (used, whole) if used <= whole => 1,
        (used, whole) if used <= whole * 2 => 2,
        (used, whole) if used <= whole * 3 => 3,
        (used, whole) if used < whole * 4 => 4,
        _ => 5,
    }
}

/// An arena for direct memory of a `PooledByteBufAllocator`.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct NettyArena {
    /// Allocators are numbered from 0, the one with the most memory first.
    pub allocator: u32,
    /// Its place among the arenas of the allocator; `None`: it is not among them.
    pub arena: Option<u32>,
    pub chunks: ChunkSums,
    /// Buffers that are larger than a chunk.
    pub huge: u64,
    pub huge_bytes: Bytes,
    /// Threads that have a cache for it (`numThreadCaches`); `None`: the field could not be read.
    pub thread_caches: Option<u64>,
}

/// What `PoolThreadCache`s keep of chunks for threads whose names are alike. To the chunks it is in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct NettyThreadCaches {
    /// `None`: their names were not read.
    pub threads: Option<String>,
    pub caches: u64,
    pub buffers: u64,
    /// `None`: this Netty does not say how large its cached buffers are.
    pub bytes: Option<Bytes>,
}

/// Chunks of an `AdaptiveByteBufAllocator` that are divided in the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct NettyAdaptive {
    /// Numbered as `NettyArena::allocator`.
    pub allocator: u32,
    /// What each buffer takes; `None`: it differs.
    pub segment_bytes: Option<Bytes>,
    pub chunks: ChunkSums,
    /// Magazines that allocate from these chunks now; the other chunks wait, or have live buffers only.
    pub magazines: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Netty {
    pub arenas: Vec<NettyArena>,
    /// The most bytes first.
    pub thread_caches: Vec<NettyThreadCaches>,
    pub adaptive: Vec<NettyAdaptive>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_by_use_and_one_that_is_not_known() {
        let chunks = [(100, 100), (100, 75), (100, 74), (100, 25), (100, 1), (100, 0), (0, 0)];
        let known = chunks.map(|(bytes, free)| (bytes, Some(free)));
        let sums = ChunkSums::of(known);
        assert_eq!((sums.count, sums.bytes, sums.free_bytes), (7, 600, Some(275)));
        assert_eq!(sums.by_use, [2, 1, 1, 1, 1, 1]);
        let sums = ChunkSums::of(known.into_iter().chain([(50, None)]));
        assert_eq!((sums.count, sums.free_bytes), (8, None));
    }
}
