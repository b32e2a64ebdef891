//! Malloc's view: which allocator the process has, and which memory it holds. Never names `jvm`: they meet in `map`.

pub mod glibc;
pub mod other;
mod scan;
pub mod types;
mod version;

pub use types::*;

use crate::base::blocks::{Block, Blocks, Label, Witness};
use crate::base::{Addr, Known, Range};
use crate::os::Target;

/// The allocator's memory after it was walked: its blocks may still be given to owners.
pub struct Heap {
    view: AllocView,
}

/// Reads the process's allocator and walks its heap. `owned` is sorted and disjoint: memory that is known to be somebody
/// else's. `witness` is asked about each block in use.
pub fn read(target: &Target, owned: &[Range], witness: &dyn Witness) -> Known<Heap> {
    let view = other::read(target, glibc::read(target, owned), owned, witness)?;
    Ok(Heap { view })
}

impl Heap {
    /// The sums, after all labels are given.
    pub fn finish(self) -> AllocView {
        self.view
    }
}

impl Blocks for Heap {
    fn at(&self, _at: Addr) -> Option<Block> {
        None
    }
    fn each(&self, _visit: &mut dyn FnMut(Block) -> bool) {}
    fn label(&mut self, _payload: Addr, _label: Label) {}
}
