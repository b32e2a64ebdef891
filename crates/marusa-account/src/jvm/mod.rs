//! The runtime's view: what a JVM says, in its own memory, about the memory it owns.
//!
//! Everything is read through `os::Target`, so a live process, a frozen file and a core are read by the same code.
//! This room speaks the runtime's own words (`Kind`, part names); `map` turns them into the areas of the account.

mod buffers;
pub mod command_line;
mod histogram;
mod holders;
pub mod hotspot;
mod loaders;
pub mod log_options;
mod netty;
pub mod server;
pub mod types;

pub use buffers::{BufferKind, BufferPool, BufferRow, BufferTotals, Buffers, NO_HOLDER, SessionKind};
pub use histogram::{ClassObjects, Duplicate, Duplicates, HeapBytes, Histogram, SpaceObjects};
pub use holders::{HOLDER_UNKNOWN, Held, HeldBy, HeldType, Holders, UNREACHED, VM_HOLDER};
pub use loaders::{BOOTSTRAP, LoaderGroup, Loaders};
pub use netty::{ChunkSums, Netty, NettyAdaptive, NettyArena, NettyThreadCaches};
pub use types::*;
