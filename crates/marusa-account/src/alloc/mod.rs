//! Malloc's view: which allocator the process has, and which memory it holds. Never names `jvm`: they meet in `map`.

pub mod glibc;
mod heap;
pub mod other;
mod pointed;
mod scan;
mod scan_parts;
pub mod thread_arena;
pub mod types;
mod version;

pub use heap::Heap;
pub use types::*;

use crate::base::blocks::Witness;
use crate::base::{Known, Range};
use crate::os::Target;

/// Reads the process's allocator and walks its heap. `owned` is sorted and disjoint: memory that is known to be somebody
/// else's. `witness` is asked about each block in use.
pub fn read(target: &Target, owned: &[Range], witness: &dyn Witness) -> Known<Heap> {
    let (view, mut walked) = match glibc::read(target, owned, witness) {
        Ok((view, walked)) => (Ok(view), walked),
        Err(gap) => (Err(gap), Default::default()),
    };
    let view = other::read(target, view, owned, witness)?;
    walked.regions.retain(|region| !view.arenas[region.plan.arena].heaps.is_empty());
    Ok(Heap::new(view, walked))
}
