//! Whose the blocks of malloc are when no header says so (Native Memory Tracking is off, or the block is a library's).
//!
//! What a block looks like, what it points to and what points to it is read in one pass; then owners are given from what
//! is certain outwards. A block that nothing proves stays without an owner.

mod contents;
mod index;
mod libraries;
mod loaders;
mod owner;
mod roots;
mod shapes;
mod tables;

use super::Hotspot;
use crate::base::blocks::{Block, Blocks, LABELS_MAX, Label, UNKNOWN};
use crate::base::{Gap, Why};
use crate::jvm::types::JvmView;
use contents::Contents;
use index::Index;
use owner::Owner;
use shapes::{Shape, Shapes};

/// Gives owners to the blocks that have none.
pub fn label(vm: &Hotspot, view: &mut JvmView, blocks: &mut dyn Blocks) {
    let index = Index::of(blocks);
    if index.len() == 0 {
        return;
    }
    let contents = contents::read(vm.target, &index, &Shapes::read(vm, view));
    if index.is_cut || contents.is_cut {
        view.gaps.push(Gap::new("owners of malloc's blocks", Why::OverLimit));
    }
    let mut given = Given { index: &index, contents: &contents, owners: vec![None; index.len()] };
    given.by_shape();
    roots::spread(vm, view, &mut given);
    let labels = labels(view, &given);
    let mut next = 0;
    blocks.relabel(&mut |block: Block| {
        while next < index.len() && index.payload(next).start < block.payload.start {
            next += 1;
        }
        let is_ours = next < index.len() && index.payload(next).start == block.payload.start;
        match given.owners.get(next).copied().flatten() {
            Some(owner) if is_ours && block.label == UNKNOWN => labels[owner as usize],
            _ => block.label,
        }
    });
}

/// The owners that got blocks become labels of the view.
fn labels(view: &mut JvmView, given: &Given) -> Vec<Label> {
    let mut is_used = vec![false; Owner::COUNT];
    given.owners.iter().flatten().for_each(|owner| is_used[*owner as usize] = true);
    let mut label = |owner: Owner| {
        if !is_used[owner as usize] || view.block_owners.len() + 1 >= LABELS_MAX {
            return UNKNOWN;
        }
        view.block_owners.push(owner.describe());
        view.block_owners.len() as Label
    };
    Owner::all().map(&mut label).collect()
}

/// The owners given so far.
pub struct Given<'a> {
    pub index: &'a Index,
    pub contents: &'a Contents,
    pub owners: Vec<Option<Owner>>,
}

impl Given<'_> {
    fn by_shape(&mut self) {
        for (block, shape) in self.contents.shapes.iter().enumerate() {
            self.owners[block] = match shape {
                Shape::Symbol => Some(Owner::Symbols),
                Shape::SymbolNode => Some(Owner::SymbolTable),
                Shape::Chunk => Some(Owner::Chunks),
                Shape::OopMaps => Some(Owner::OopMaps),
                Shape::ClassNode => Some(Owner::ClassEntries),
                Shape::Buffer => Some(Owner::GcBuffers),
                Shape::HandleBlock => Some(Owner::HandleBlocks),
                Shape::LockName => Some(Owner::LockNames),
                Shape::None | Shape::OopBlock | Shape::InnerNode | Shape::CodeNode | Shape::ZStream => None,
            };
        }
    }

    pub fn shape(&self, block: usize) -> Shape {
        self.contents.shapes[block]
    }

    /// The block whose address word `word` of `block` holds.
    pub fn at_word(&self, block: usize, word: u64) -> Option<usize> {
        let edges = self.contents.edges_of(block).iter();
        edges.filter(|edge| u64::from(edge.word) == word).map(|edge| edge.to as usize).next()
    }

    /// Gives the block that starts at `word` to `owner`, if nobody has it; `Some` when it did.
    pub fn give(&mut self, word: u64, owner: Owner) -> Option<usize> {
        let block = self.index.at_start(word)?;
        self.take(block, owner).then_some(block)
    }

    /// Gives `block` to `owner`, if nobody has it; whether it did.
    pub fn take(&mut self, block: usize, owner: Owner) -> bool {
        let is_free = self.owners[block].is_none();
        if is_free {
            self.owners[block] = Some(owner);
        }
        is_free
    }

    /// Gives `owner` what nobody has and can be reached from `blocks`, which are its own.
    pub fn spread(&mut self, mut blocks: Vec<usize>, owner: Owner) {
        while let Some(block) = blocks.pop() {
            for edge in self.contents.edges_of(block) {
                let to = edge.to as usize;
                if self.take(to, owner) {
                    blocks.push(to);
                }
            }
        }
    }
}
