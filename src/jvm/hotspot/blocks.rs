//! Whose the blocks of malloc are. With Native Memory Tracking on, each block of HotSpot says so itself in a header; with
//! it off, what the VM's own structures point to is followed.

use super::{Hotspot, nmt, owners};
use crate::base::blocks::{Labelled, Witness};
use crate::jvm::types::JvmView;

/// Identifies a block's owner from its first words.
pub fn witness(vm: &Hotspot, view: &mut JvmView) -> Box<dyn Witness> {
    match nmt::witness(vm, view) {
        Some(witness) => Box::new(witness),
        None => Box::new(owners::ChunkWitness),
    }
}

/// Gives owners to the blocks that the witness did not know.
pub fn label(vm: &Hotspot, view: &mut JvmView, blocks: &mut dyn Labelled) {
    owners::label(vm, view, blocks);
}
