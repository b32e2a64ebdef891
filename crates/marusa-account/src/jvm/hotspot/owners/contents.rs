//! One pass over what the blocks hold: which of them have the shape of something known, and which point to which. The
//! bytes are read in pieces that neighbouring blocks share, by two threads where memory can be read so.

use super::fetch::{Fetch, HOLE_BYTES_MAX, PIECE_BYTES, Read, Resident};
use super::index::{Index, firsts};
use super::shapes::{NODE_BYTES_MAX, NODE_BYTES_MIN, Shape, Shapes};
use crate::base::Range;
use crate::base::limits::{BLOCK_POINTERS_MAX, BLOCK_START_BYTES, BLOCK_WHOLE_BYTES_MAX};
use crate::jvm::hotspot::window::word;
use crate::os::Target;
use crate::os::budget;
use crate::os::memory::Bulk;
use crate::os::target::OsView;

/// The part of the symbol table's nodes that are followed to the arena that they point into.
const ARENA_PROBE: usize = 16;
/// What a block costs besides its bytes, in bytes that take as long.
const BLOCK_COST_BYTES: u64 = 128;
/// With fewer bytes than this a second thread costs more than it gives.
const BYTES_PER_THREAD_MIN: u64 = 768 << 10;

/// Block `from` holds, at its word `word`, the address of block `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub word: u16,
}

/// A block as small as a node that may be one of the symbol table: which block starts where its first word points, and which one
/// holds where its second does. That is known when the shapes of all blocks are.
struct MaybeEntry {
    block: u32,
    /// `NO_LINK`: none.
    link: u32,
    to: u32,
    is_inner: bool,
}

const NO_LINK: u32 = u32::MAX;

/// What the pass found.
#[derive(Default)]
pub struct Contents {
    /// By block.
    pub shapes: Vec<Shape>,
    /// Sorted by `from`. To starts of blocks; of nodes of tables also to the arena or block of handles that they point into.
    pub edges: Vec<Edge>,
    /// Where the edges of each block start in `edges`; one more than there are blocks.
    firsts: Vec<u32>,
    /// Chunks of arenas in which symbols lie to which entries of the symbol table point; some more than once.
    pub symbol_chunks: Vec<u32>,
    /// Whether there were more edges than are kept.
    pub is_cut: bool,
}

impl Contents {
    pub fn edges_of(&self, block: usize) -> &[Edge] {
        &self.edges[self.firsts[block] as usize..self.firsts[block + 1] as usize]
    }
}

/// Reads every block of `index`.
pub fn read(target: &Target, index: &Index, shapes: &Shapes) -> Contents {
    let parts = match target.memory.bulk() {
        Some(bulk) => by_threads(bulk, target.view, index, shapes),
        None => {
            let read = |at, into: &mut [u8]| target.memory.read_once(at, into).is_ok();
            let resident = |range| target.view.resident_ranges(range);
            vec![Pass::new(index, shapes, &read, &resident).run(0..index.len())]
        }
    };
    let mut contents = Contents { shapes: Vec::with_capacity(index.len()), ..Contents::default() };
    let mut maybe = Vec::new();
    for part in parts {
        contents.shapes.extend(part.shapes);
        contents.is_cut |= part.is_cut;
        append(&mut contents.edges, part.edges);
        maybe.push(part.maybe);
    }
    contents.settle(maybe, index);
    contents.firsts = firsts(contents.edges.iter().map(|edge| edge.from), index.len());
    contents
}

fn append<T>(all: &mut Vec<T>, mut more: Vec<T>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.append(&mut more);
    }
}

/// What the nodes of one part turned out to be.
#[derive(Default)]
struct Settled {
    entries: Vec<u32>,
    symbol_chunks: Vec<u32>,
    others: Vec<Edge>,
}

impl Settled {
    /// What points to a symbol is an entry of the symbol table, whose pointers are not needed; what else has the look of a node
    /// keeps them.
    fn of(maybe: &[MaybeEntry], shapes: &[Shape], index: &Index) -> Settled {
        let mut settled = Settled::default();
        for node in maybe {
            let shape = shapes[node.to as usize];
            let is_chunk = || {
                shape == Shape::Chunk || shape == Shape::None && index.seen().binary_search(&node.to).is_ok()
            };
            if !node.is_inner && shape == Shape::Symbol {
                settled.entries.push(node.block);
            } else if node.is_inner && is_chunk() {
                settled.entries.push(node.block);
                if settled.symbol_chunks.last() != Some(&node.to) {
                    settled.symbol_chunks.push(node.to);
                }
            } else {
                let edge = |to, word| Edge { from: node.block, to, word };
                settled.others.extend((node.link != NO_LINK).then(|| edge(node.link, 0)));
                settled.others.push(edge(node.to, 1));
            }
        }
        settled
    }
}

impl Contents {
    /// The nodes of each part, by as many threads.
    fn settle(&mut self, maybe: Vec<Vec<MaybeEntry>>, index: &Index) {
        let shapes = &self.shapes;
        let settle = |maybe: Vec<MaybeEntry>| Settled::of(&maybe, shapes, index);
        let mut parts = maybe.into_iter();
        let settled: Vec<Settled> = std::thread::scope(|scope| {
            let first = parts.next();
            let others: Vec<_> =
                parts.map(|part| scope.spawn(budget::inherit(move || settle(part)))).collect();
            let first = first.map(settle);
            first.into_iter().chain(others.into_iter().filter_map(|other| other.join().ok())).collect()
        });
        let mut others = Vec::new();
        for part in settled {
            for entry in part.entries {
                self.shapes[entry as usize] = Shape::SymbolEntry;
            }
            append(&mut self.symbol_chunks, part.symbol_chunks);
            append(&mut others, part.others);
        }
        if !others.is_empty() {
            // Two sorted runs, which a stable sort merges.
            others.append(&mut self.edges);
            others.sort_by_key(|edge| edge.from);
            self.edges = others;
        }
    }
}

fn by_threads(bulk: &dyn Bulk, view: &OsView, index: &Index, shapes: &Shapes) -> Vec<Part> {
    let bytes: u64 = (0..index.len()).map(|block| cost(index, block)).sum();
    let middle = if bytes < 2 * BYTES_PER_THREAD_MIN { index.len() } else { split(index, bytes / 2) };
    let run = |blocks| {
        let read = |at, into: &mut [u8]| bulk.read(at, into).is_ok();
        let resident = |range| bulk.resident(range).unwrap_or_else(|| view.resident_ranges(range));
        Pass::new(index, shapes, &read, &resident).run(blocks)
    };
    std::thread::scope(|scope| {
        let second =
            (middle < index.len()).then(|| scope.spawn(budget::inherit(|| run(middle..index.len()))));
        let first = run(0..middle);
        let second = second.map(|second| second.join().unwrap_or_else(|_| Part::empty(index.len() - middle)));
        [Some(first), second].into_iter().flatten().collect()
    })
}

/// How much of a block is read.
pub fn searched(index: &Index, block: usize) -> u64 {
    match index.payload(block).bytes() {
        bytes if bytes > BLOCK_WHOLE_BYTES_MAX => BLOCK_START_BYTES,
        bytes => bytes,
    }
}

fn cost(index: &Index, block: usize) -> u64 {
    searched(index, block) + BLOCK_COST_BYTES
}

/// The first block after a cost of `bytes`.
fn split(index: &Index, bytes: u64) -> usize {
    let mut sum = 0;
    (0..index.len())
        .find(|block| {
            sum += cost(index, *block);
            sum >= bytes
        })
        .unwrap_or(index.len())
}

/// What one thread found in a row of blocks.
struct Part {
    shapes: Vec<Shape>,
    edges: Vec<Edge>,
    maybe: Vec<MaybeEntry>,
    is_cut: bool,
}

impl Part {
    fn empty(blocks: usize) -> Part {
        Part { shapes: vec![Shape::None; blocks], edges: Vec::new(), maybe: Vec::new(), is_cut: true }
    }
}

struct Pass<'a> {
    index: &'a Index,
    shapes: &'a Shapes,
    memory: Fetch<'a>,
    part: Part,
}

impl<'a> Pass<'a> {
    fn new(index: &'a Index, shapes: &'a Shapes, read: Read<'a>, resident: Resident<'a>) -> Pass<'a> {
        let part = Part { is_cut: false, ..Part::empty(0) };
        Pass { index, shapes, memory: Fetch::new(read, resident), part }
    }

    fn run(mut self, blocks: std::ops::Range<usize>) -> Part {
        self.part.shapes.reserve(blocks.len());
        let mut bytes = Vec::new();
        let mut first = blocks.start;
        while first < blocks.end {
            let start = self.index.payload(first).start;
            let (mut end, mut next) = (start, first);
            while next < blocks.end {
                let block = self.index.payload(next);
                let stop = block.start.plus(searched(self.index, next));
                if next > first && (stop > start.plus(PIECE_BYTES) || block.start > end.plus(HOLE_BYTES_MAX))
                {
                    break;
                }
                (end, next) = (stop, next + 1);
            }
            self.memory.fetch(Range::new(start, end), &mut bytes);
            for block in first..next {
                let payload = self.index.payload(block);
                let from = (payload.start.0 - start.0) as usize;
                let length = searched(self.index, block) as usize;
                self.look(block, payload, &bytes[from..from + length]);
            }
            first = next;
        }
        self.part
    }

    fn look(&mut self, block: usize, payload: Range, bytes: &[u8]) {
        let words = bytes.as_chunks::<8>().0;
        if (NODE_BYTES_MIN..=NODE_BYTES_MAX).contains(&payload.bytes())
            && let [link, to, others @ ..] = words
        {
            return self.look_at_small(block, payload, bytes, [*link, *to], others);
        }
        let shape = self.shapes.of(payload, bytes, self.index);
        self.part.shapes.push(shape);
        self.pointers(block, &words[..shape.words_with_pointers().min(words.len())], 0);
        let inner = match shape {
            Shape::Monitor => 8,
            // Some are enough to know the arenas of symbols, each of which holds hundreds.
            Shape::SymbolNode if block.is_multiple_of(ARENA_PROBE) => 0,
            _ => return,
        };
        if let Some(to) = self.holding(word(bytes, inner)) {
            self.note(block, to, inner / 8);
        }
    }

    fn look_at_small(
        &mut self,
        block: usize,
        payload: Range,
        bytes: &[u8],
        first: [[u8; 8]; 2],
        others: &[[u8; 8]],
    ) {
        let words = first.map(u64::from_le_bytes);
        let blocks = words.map(|word| self.index.at_start(word));
        let shape = self.shapes.of_small(payload, bytes, blocks, self.index);
        self.part.shapes.push(shape);
        if shape.words_with_pointers() == 0 {
            let probed = shape == Shape::SymbolNode && block.is_multiple_of(ARENA_PROBE);
            if let Some(to) = probed.then(|| self.holding(words[0])).flatten() {
                self.note(block, to, 0);
            }
            return;
        }
        let is_inner = shape == Shape::InnerNode;
        let to = if is_inner { self.holding(words[1]) } else { blocks[1].filter(|to| *to != block) };
        let link = blocks[0].filter(|to| *to != block);
        match to {
            Some(to) if shape == Shape::None || is_inner => {
                let link = link.map_or(NO_LINK, |link| link as u32);
                self.part.maybe.push(MaybeEntry { block: block as u32, link, to: to as u32, is_inner });
            }
            _ => {
                let found = [link, to].into_iter().enumerate();
                found.for_each(|(word, to)| to.into_iter().for_each(|to| self.note(block, to, word)));
            }
        }
        self.pointers(block, others, 2);
    }

    /// The block that a pointer points into, not to its start.
    fn holding(&self, at: u64) -> Option<usize> {
        let is_inner = at != 0 && self.index.at_start(at).is_none();
        is_inner.then(|| self.index.holding(at)).flatten()
    }

    fn pointers(&mut self, block: usize, words: &[[u8; 8]], first: usize) {
        for (word, at) in words.iter().enumerate() {
            let Some(to) = self.index.at_start(u64::from_le_bytes(*at)) else { continue };
            if to != block {
                self.note(block, to, first + word);
            }
        }
    }

    fn note(&mut self, from: usize, to: usize, word: usize) {
        if self.part.edges.len() < BLOCK_POINTERS_MAX {
            self.part.edges.push(Edge { from: from as u32, to: to as u32, word: word as u16 });
        } else {
            self.part.is_cut = true;
        }
    }
}
