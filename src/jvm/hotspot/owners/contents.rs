//! One pass over what the blocks hold: which of them have the shape of something known, and which point to which. The
//! bytes are read in pieces that neighbouring blocks share, by two threads where memory can be read so.

use super::index::Index;
use super::shapes::{Shape, Shapes, word};
use crate::base::limits::{BLOCK_POINTERS_MAX, BLOCK_START_BYTES, BLOCK_WHOLE_BYTES_MAX};
use crate::base::{Addr, PAGE, Range};
use crate::os::Target;
use crate::os::memory::Bulk;
use crate::os::target::OsView;

/// Bytes that are read at once, and the widest hole between two blocks that is read with them.
const PIECE_BYTES: u64 = 256 << 10;
const HOLE_BYTES_MAX: u64 = 4096;
/// How far ahead it is asked what is resident: the slot of one heap of an arena.
const ASKED_BYTES: u64 = 64 << 20;
/// Of the nodes of the symbol table one in so many is asked for the arena that it points into.
const ARENA_PROBE: usize = 16;
/// With fewer bytes than this a second thread costs more than it gives.
const BYTES_PER_THREAD_MIN: u64 = 2 << 20;

/// Block `from` holds, at its word `word`, the address of block `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub word: u16,
}

/// What the pass found.
pub struct Contents {
    /// By block.
    pub shapes: Vec<Shape>,
    /// Sorted by `from`. To starts of blocks; of nodes of tables also to the arena or block of handles that they point into.
    pub edges: Vec<Edge>,
    /// Where the edges of each block start in `edges`; one more than there are blocks.
    firsts: Vec<u32>,
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
    let mut contents = Contents {
        shapes: Vec::with_capacity(index.len()),
        edges: Vec::new(),
        firsts: Vec::new(),
        is_cut: false,
    };
    for part in parts {
        contents.shapes.extend(part.shapes);
        contents.is_cut |= part.is_cut;
        if contents.edges.is_empty() {
            contents.edges = part.edges;
        } else {
            contents.edges.extend(part.edges);
        }
    }
    contents.firsts = firsts(&contents.edges, index.len());
    contents
}

fn firsts(edges: &[Edge], blocks: usize) -> Vec<u32> {
    let mut firsts = Vec::with_capacity(blocks + 1);
    let mut place = 0;
    for block in 0..=blocks as u32 {
        while edges.get(place).is_some_and(|edge| edge.from < block) {
            place += 1;
        }
        firsts.push(place as u32);
    }
    firsts
}

fn by_threads(bulk: &dyn Bulk, view: &OsView, index: &Index, shapes: &Shapes) -> Vec<Part> {
    let bytes: u64 = (0..index.len()).map(|block| searched(index, block)).sum();
    let middle = if bytes < 2 * BYTES_PER_THREAD_MIN { index.len() } else { split(index, bytes / 2) };
    let run = |blocks| {
        let read = |at, into: &mut [u8]| bulk.read(at, into).is_ok();
        let resident = |range| bulk.resident(range).unwrap_or_else(|| view.resident_ranges(range));
        Pass::new(index, shapes, &read, &resident).run(blocks)
    };
    std::thread::scope(|scope| {
        let second = (middle < index.len()).then(|| scope.spawn(|| run(middle..index.len())));
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

/// The first block after `bytes` searched bytes.
fn split(index: &Index, bytes: u64) -> usize {
    let mut sum = 0;
    (0..index.len())
        .find(|block| {
            sum += searched(index, *block);
            sum >= bytes
        })
        .unwrap_or(index.len())
}

/// What one thread found in a row of blocks.
struct Part {
    shapes: Vec<Shape>,
    edges: Vec<Edge>,
    is_cut: bool,
}

impl Part {
    fn empty(blocks: usize) -> Part {
        Part { shapes: vec![Shape::None; blocks], edges: Vec::new(), is_cut: true }
    }
}

struct Pass<'a> {
    index: &'a Index,
    shapes: &'a Shapes,
    read: Read<'a>,
    resident: Resident<'a>,
    /// What is resident in `asked`.
    known: Vec<Range>,
    asked: Range,
    part: Part,
}

type Read<'a> = &'a dyn Fn(Addr, &mut [u8]) -> bool;
type Resident<'a> = &'a dyn Fn(Range) -> Vec<Range>;

impl<'a> Pass<'a> {
    fn new(index: &'a Index, shapes: &'a Shapes, read: Read<'a>, resident: Resident<'a>) -> Pass<'a> {
        let part = Part { shapes: Vec::new(), edges: Vec::new(), is_cut: false };
        Pass { index, shapes, read, resident, known: Vec::new(), asked: Range::default(), part }
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
            self.fetch(Range::new(start, end), &mut bytes);
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

    /// What is not in memory, or gone meanwhile, is zeros. A busy heap has pages that were not there when the others were
    /// looked at, so what is resident is asked anew, for many pieces at once.
    fn fetch(&mut self, range: Range, bytes: &mut Vec<u8>) {
        if bytes.len() < range.bytes() as usize {
            bytes.resize(range.bytes() as usize, 0);
        }
        let pages = range.widened(PAGE);
        if !self.asked.covers(pages) {
            self.asked = Range::new(pages.start, pages.end.max(pages.start.plus(ASKED_BYTES)));
            self.known = (self.resident)(self.asked);
        }
        let first = self.known.partition_point(|piece| piece.end <= range.start);
        let place = |at: Addr| (at.0 - range.start.0) as usize;
        let mut done = range.start;
        for resident in self.known[first..].iter().take_while(|piece| piece.start < range.end) {
            let piece = resident.intersect(range);
            bytes[place(done)..place(piece.start)].fill(0);
            self.read_pages(piece, &mut bytes[place(piece.start)..place(piece.end)]);
            done = piece.end;
        }
        bytes[place(done)..place(range.end)].fill(0);
    }

    /// At once, and page by page where one is gone, or not recorded.
    fn read_pages(&self, piece: Range, into: &mut [u8]) {
        if (self.read)(piece.start, into) {
            return;
        }
        into.fill(0);
        let mut at = piece.start;
        while at < piece.end {
            let end = at.plus(1).up_to(PAGE).min(piece.end);
            let page = &mut into[(at.0 - piece.start.0) as usize..(end.0 - piece.start.0) as usize];
            if !(self.read)(at, page) {
                page.fill(0);
            }
            at = end;
        }
    }

    fn look(&mut self, block: usize, payload: Range, bytes: &[u8]) {
        let shape = self.shapes.of(payload, bytes, self.index);
        self.part.shapes.push(shape);
        let words = bytes.as_chunks::<8>().0;
        let words = &words[..shape.words_with_pointers().min(words.len())];
        for (word, at) in words.iter().enumerate() {
            let Some(to) = self.index.at_start(u64::from_le_bytes(*at)) else { continue };
            if to != block {
                self.note(block, to, word);
            }
        }
        let inner = match shape {
            Shape::InnerNode | Shape::Monitor => 8,
            // Some are enough to know the arenas of symbols, each of which holds hundreds.
            Shape::SymbolNode if block.is_multiple_of(ARENA_PROBE) => 0,
            _ => return,
        };
        let at = word(bytes, inner);
        if at != 0
            && self.index.at_start(at).is_none()
            && let Some(to) = self.index.holding(at)
        {
            self.note(block, to, inner / 8);
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
