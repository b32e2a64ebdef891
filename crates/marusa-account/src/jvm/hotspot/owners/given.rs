//! The owners given so far, and the ways to give more: to a block that something points to, and to all that is reached from
//! it. Who has a block first keeps it.

use super::contents::{Contents, searched};
use super::index::Index;
use super::owner::Owner;
use super::shapes::Shape;
use crate::base::limits::BLOCK_SEARCHED_BYTES_MAX;
use crate::os::Memory;

/// `Mutex` of JDK 11 to 25, and pointers that make an array of buckets.
const LOCK_BYTES: std::ops::Range<u64> = 88..161;
const BUCKETS_MIN: usize = 16;
/// Direct buffers and task queues are looked for among larger ones.
pub const LARGE_BYTES: u64 = 1 << 10;

pub struct Given<'a> {
    pub memory: &'a dyn Memory,
    pub index: &'a Index,
    pub contents: &'a Contents,
    pub owners: Vec<Option<Owner>>,
    pub candidates: Candidates,
}

/// Blocks that may be something, to be looked at once.
#[derive(Default)]
pub struct Candidates {
    pub oop_blocks: Vec<usize>,
    pub streams: Vec<usize>,
    pub nodes: Vec<usize>,
    pub locks: Vec<usize>,
    /// Those of `LARGE_BYTES` and more, of any shape.
    pub large: Vec<usize>,
    pub arrays: Vec<usize>,
}

impl<'a> Given<'a> {
    /// What the blocks' shapes give.
    pub fn by_shape(memory: &'a dyn Memory, index: &'a Index, contents: &'a Contents) -> Given<'a> {
        let owners = contents.shapes.iter().map(|shape| owner_of(*shape)).collect();
        let mut given = Given { memory, index, contents, owners, candidates: Candidates::default() };
        given.candidates.note(index, contents);
        for block in index.seen() {
            if contents.shapes[*block as usize] == Shape::None {
                given.owners[*block as usize] = Some(Owner::Chunks);
            }
        }
        given
    }

    pub fn shape(&self, block: usize) -> Shape {
        self.contents.shapes[block]
    }

    /// The block whose address word `word` of `block` holds.
    pub fn at_word(&self, block: usize, word: u64) -> Option<usize> {
        let edges = self.contents.edges_of(block).iter();
        edges.filter(|edge| u64::from(edge.word) == word).map(|edge| edge.to as usize).next()
    }

    /// Gives the block that starts at `word` to `owner`, if it has no owner; `Some` when it did.
    pub fn give(&mut self, word: u64, owner: Owner) -> Option<usize> {
        let block = self.index.at_start(word)?;
        self.take(block, owner).then_some(block)
    }

    /// Gives `block` to `owner`, if it has no owner; whether it did.
    pub fn take(&mut self, block: usize, owner: Owner) -> bool {
        let is_free = self.owners[block].is_none();
        if is_free {
            self.owners[block] = Some(owner);
        }
        is_free
    }

    /// Gives `owner` what has no owner and can be reached from `blocks`, which are its own.
    pub fn spread(&mut self, mut blocks: Vec<usize>, owner: Owner) {
        while let Some(block) = blocks.pop() {
            for edge in self.contents.edges_of(block) {
                let to = edge.to as usize;
                if self.take(to, owner) {
                    blocks.push(to);
                }
            }
            for to in self.far_pointers(block) {
                if self.take(to, owner) {
                    blocks.push(to);
                }
            }
        }
    }

    /// The blocks to which the part of a large block points that was left out when all were read.
    fn far_pointers(&self, block: usize) -> Vec<usize> {
        let payload = self.index.payload(block);
        let end = payload.bytes().min(BLOCK_SEARCHED_BYTES_MAX);
        let start = searched(self.index, block);
        if start >= end {
            return Vec::new();
        }
        let mut bytes = vec![0; (end - start) as usize];
        if self.memory.read_once(payload.start.plus(start), &mut bytes).is_err() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (word, bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
            if let Some(to) = self.index.at_start(u64::from_le_bytes(*bytes)) {
                self.memory.used(payload.start.plus(start + word as u64 * 8), bytes);
                found.push(to);
            }
        }
        found
    }

    /// Chunks of arenas in which symbols lie, by what points into them.
    pub fn arenas_of_symbols(&self) -> Vec<usize> {
        let mut found: Vec<usize> = self.contents.symbol_chunks.iter().map(|chunk| *chunk as usize).collect();
        for edge in &self.contents.edges {
            let to = edge.to as usize;
            let is_node = self.shape(edge.from as usize) == Shape::SymbolNode;
            if is_node && self.shape(to) == Shape::Chunk && found.last() != Some(&to) {
                found.push(to);
            }
        }
        found
    }
}

/// The owner of a block of this shape, where the shape alone decides.
fn owner_of(shape: Shape) -> Option<Owner> {
    Some(match shape {
        Shape::Symbol => Owner::Symbols,
        Shape::SymbolEntry | Shape::SymbolNode => Owner::SymbolTable,
        Shape::Chunk => Owner::Chunks,
        Shape::OopMaps => Owner::OopMaps,
        Shape::ClassNode => Owner::ClassEntries,
        Shape::Buffer => Owner::GcBuffers,
        Shape::HandleBlock => Owner::HandleBlocks,
        Shape::LockName => Owner::LockNames,
        Shape::None | Shape::OopBlock | Shape::ZStream | Shape::InnerNode | Shape::Monitor => return None,
    })
}

impl Candidates {
    fn note(&mut self, index: &Index, contents: &Contents) {
        for (block, shape) in contents.shapes.iter().enumerate() {
            match shape {
                Shape::OopBlock => self.oop_blocks.push(block),
                Shape::ZStream => self.streams.push(block),
                Shape::InnerNode | Shape::Monitor => self.nodes.push(block),
                _ => {}
            }
            if index.payload(block).bytes() >= LARGE_BYTES {
                self.large.push(block);
            }
        }
        for edges in contents.edges.chunk_by(|one, other| one.from == other.from) {
            let block = edges[0].from as usize;
            if contents.shapes[block] != Shape::None {
                continue;
            }
            if LOCK_BYTES.contains(&index.payload(block).bytes()) {
                self.locks.push(block);
            }
            if edges.len() >= BUCKETS_MIN {
                self.arrays.push(block);
            }
        }
    }
}
