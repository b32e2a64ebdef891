//! Whose the blocks of malloc are when no header says so (Native Memory Tracking is off, or the block is a library's).
//!
//! What a block looks like, what it points to and what points to it is read in one pass; then owners are given from what
//! is certain outwards. A block that nothing proves stays without an owner.

mod cleaners;
mod contents;
mod direct;
mod evidence;
pub(in crate::jvm::hotspot) mod fetch;
mod given;
pub(in crate::jvm::hotspot) mod index;
pub mod leads;
mod libraries;
mod loaders;
mod owner;
mod resident_now;
mod roots;
mod seen;
mod shapes;
mod symbol;
mod tables;
mod unsafe_memory;
mod zones;

use super::{Hotspot, nmt};
use crate::base::blocks::{Block, Label, Labelled, SEEN, UNKNOWN, Witness};
use crate::base::{Gap, Why};
use crate::jvm::types::JvmView;
use given::Given;
use index::Index;
use leads::Leads;
use owner::Owner;
use seen::ChunkWitness;
use shapes::Shapes;

/// Identifies a block's owner from its first words: by the header that Native Memory Tracking gives each block of HotSpot.
pub fn witness(vm: &Hotspot, view: &mut JvmView) -> Box<dyn Witness> {
    match nmt::witness(vm, view) {
        Some(witness) => Box::new(witness),
        None => Box::new(ChunkWitness),
    }
}

/// Gives owners to the blocks that the witness did not know.
pub fn label(vm: &Hotspot, view: &mut JvmView, blocks: &mut dyn Labelled) {
    let leads = vm.leads.take();
    by_structure(vm, view, &leads, blocks);
    unsafe_memory::tell_apart(vm, view, &leads.small_classes, blocks);
}

/// Gives owners to blocks without a header.
fn by_structure(vm: &Hotspot, view: &mut JvmView, leads: &Leads, blocks: &mut dyn Labelled) {
    let index = Index::of(blocks);
    if index.len() == 0 {
        return;
    }
    let shapes = Shapes::read(vm, view);
    let contents = contents::read(vm.target, &index, &shapes);
    if index.is_cut || contents.is_cut {
        view.gaps.push(Gap::new("owners of malloc's blocks", Why::OverLimit));
    }
    let mut given = Given::by_shape(vm.memory(), &index, &contents);
    roots::spread(vm, view, leads, &mut given);
    evidence::note(vm.memory(), &shapes, &given);
    let labels = labels(view, vm.major, &given);
    let given: Vec<Label> =
        given.owners.iter().map(|owner| owner.map_or(UNKNOWN, |owner| labels[owner as usize])).collect();
    blocks.relabel(index.starts(), &given);
    if index.has_left_seen {
        settle_seen(blocks, labels[Owner::Chunks as usize]);
    }
}

/// What was seen in the walk and not looked at.
fn settle_seen(blocks: &mut dyn Labelled, chunks: Label) {
    let mut seen = Vec::new();
    blocks.each(&mut |block: Block| {
        seen.extend((block.label == SEEN).then_some(block.payload.start));
        true
    });
    seen.into_iter().for_each(|at| blocks.label(at, chunks));
}

/// The owners that got blocks become labels of the view.
fn labels(view: &mut JvmView, major: Option<u32>, given: &Given) -> Vec<Label> {
    let mut is_used = [false; Owner::COUNT];
    given.owners.iter().flatten().for_each(|owner| is_used[*owner as usize] = true);
    // Where Native Memory Tracking is on, each block of HotSpot says so: one without a header is not, whatever it looks like.
    let is_tracked = view.is_tracked();
    let mut label = |owner: Owner| {
        let described = owner.describe(major);
        let is_refused = is_tracked && described.nmt_tag.is_some();
        if !is_used[owner as usize] || is_refused || view.block_owners.len() + 1 >= usize::from(SEEN) {
            return UNKNOWN;
        }
        view.block_owners.push(described);
        view.block_owners.len() as Label
    };
    Owner::all().map(&mut label).collect()
}
