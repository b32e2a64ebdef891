//! Memory of the program outside the Java heap that Java objects hold, as the reader of a runtime found it.

use super::Netty;
use crate::base::{Bytes, Gap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The holder of a buffer that no field leads to.
pub const NO_HOLDER: &str = "no object";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferKind {
    /// `ByteBuffer.allocateDirect`.
    Direct,
    /// A `ByteBuffer` over memory that no cleaner of the JDK frees: of `Unsafe` or of a native library.
    Unsafe,
    /// `FileChannel.map`.
    Mapped,
    /// An arena of `java.lang.foreign`.
    Ffm,
    /// Temporary buffers that the JDK keeps for each thread that reads or writes through buffers in the heap.
    NioCache,
    /// Chunks of Netty's `PooledByteBufAllocator`.
    NettyPool,
    /// Chunks of Netty's `AdaptiveByteBufAllocator`.
    NettyAdaptive,
}

impl BufferKind {
    pub fn words(self) -> &'static str {
        match self {
            BufferKind::Direct => "direct",
            BufferKind::Unsafe => "unsafe",
            BufferKind::Mapped => "mapped",
            BufferKind::Ffm => "ffm",
            BufferKind::NioCache => "nio cache",
            BufferKind::NettyPool => "netty pool",
            BufferKind::NettyAdaptive => "netty adaptive",
        }
    }
}

/// How long the memory of an arena lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    Confined,
    Shared,
    Auto,
    Global,
}

impl SessionKind {
    pub fn word(self) -> &'static str {
        match self {
            SessionKind::Confined => "confined",
            SessionKind::Shared => "shared",
            SessionKind::Auto => "auto",
            SessionKind::Global => "global",
        }
    }
}

/// Buffers of one kind and holder. Slices and duplicates are part of the buffer whose memory they share.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct BufferRow {
    pub kind: BufferKind,
    /// "com.app.Cache.buffer", "io.netty.buffer.PoolChunk.memory", "sun.nio.ch.Util$BufferCache of thread io-pool-#", "no object".
    pub holder: String,
    /// Capacities, in memory or not.
    pub bytes: Bytes,
    pub count: u64,
    /// The part of `bytes` in buffers that the collector found alive; `None`: not known.
    pub live_bytes: Option<Bytes>,
    /// The part of `bytes` that is in memory; `None`: the pages could not be read.
    pub resident_bytes: Option<Bytes>,
    /// Pools: what no buffer of the pool uses; `None`: not a pool, or its fields could not be read.
    pub free_bytes: Option<Bytes>,
    /// The file of mapped buffers.
    pub file: Option<String>,
    /// The session of arenas; `None` elsewhere, or where it could not be read.
    pub session: Option<SessionKind>,
}

/// Bytes reserved, capacities and number: what `java.nio.Bits` counts against -XX:MaxDirectMemorySize, or as many mapped buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct BufferPool {
    pub reserved_bytes: Bytes,
    pub capacity_bytes: Bytes,
    pub count: u64,
}

/// What was found against the JDK's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct BufferTotals {
    /// `java.nio.Bits`; `None`: it could not be read.
    pub direct: Option<BufferPool>,
    /// The part of the found buffers that `java.nio.Bits` counts.
    pub direct_found: BufferPool,
    /// The counters of `sun.nio.ch.FileChannelImpl`.
    pub mapped: Option<BufferPool>,
    pub mapped_found: BufferPool,
}

/// All buffers, the most bytes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    pub rows: Vec<BufferRow>,
    pub totals: BufferTotals,
    /// `None`: no chunk of Netty was found.
    pub netty: Option<Netty>,
    pub gaps: Vec<Gap>,
}
