//! What the blocks of malloc hold: which point to which, and the first word of each, where an object of C++ has the address of
//! its virtual table. And which blocks the data of libraries, the stacks of threads and other memory point to.

use super::mappings::Held;
use crate::base::limits::{BLOCK_POINTERS_MAX, BLOCK_SEARCHED_BYTES_MAX};
use crate::base::{Addr, Range, place_of};
use crate::jvm::hotspot::owners::fetch::{Fetch, HOLE_BYTES_MAX, PIECE_BYTES};
use crate::jvm::hotspot::owners::index::{Index, firsts};
use crate::os::Target;
use crate::os::budget;
use crate::os::elf::Image;

/// The pointers of each block.
pub struct Graph {
    /// Sorted by `from`.
    edges: Vec<(u32, u32)>,
    firsts: Vec<u32>,
    /// The first word of each block.
    pub heads: Vec<u64>,
    /// The place, from 1 on, of the library that one of its first words points into; 0: none.
    pub libraries: Vec<u16>,
    pub is_cut: bool,
}

/// Set in `to` of a pointer that leads far into a block.
const INNER: u32 = 1 << 31;
/// How many words of a block are asked for a pointer into a library.
const LIBRARY_WORDS_MAX: usize = 64;
const COMMON: [&str; 6] = ["libc.so", "libc-", "ld-linux", "ld-musl", "libstdc++", "libjvm.so"];

/// Whether every process has this library: a pointer to it says nothing of the owner.
pub fn is_common(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    COMMON.iter().any(|common| name.starts_with(common))
}

impl Graph {
    /// The blocks that a block points to: at or near their start, or far into them.
    pub fn edges_of(&self, block: usize, is_inner: bool) -> impl Iterator<Item = usize> {
        let edges = &self.edges[self.firsts[block] as usize..self.firsts[block + 1] as usize];
        let wanted = edges.iter().filter(move |(_, to)| (to & INNER != 0) == is_inner);
        wanted.map(|(_, to)| (to & !INNER) as usize)
    }
}

/// The memory of libraries, sorted, each range with the place of its library.
struct Images {
    ranges: Vec<(Range, u16)>,
    span: Range,
}

impl Images {
    /// Not the ones that every process has: a pointer to the C library or to the VM's says nothing of the owner.
    fn of(libraries: &[Image]) -> Images {
        let wanted = libraries.iter().enumerate().filter(|(_, library)| !is_common(&library.path));
        let ranges = wanted.flat_map(|(place, library)| {
            library.ranges().map(move |range| (range, place.min(usize::from(u16::MAX) - 1) as u16))
        });
        let mut ranges: Vec<(Range, u16)> = ranges.collect();
        ranges.sort();
        let span = match (ranges.first(), ranges.last()) {
            (Some((first, _)), Some((last, _))) => Range::new(first.start, last.end),
            _ => Range::default(),
        };
        Images { ranges, span }
    }

    fn place(&self, word: u64) -> Option<u16> {
        if !self.span.has(Addr(word)) {
            return None;
        }
        place_of(&self.ranges, Addr(word), |(range, _)| *range).map(|place| self.ranges[place].1)
    }
}

/// Reads every block of `index` up to its first mebibyte.
pub fn read(target: &Target, held: &Held, libraries: &[Image]) -> Graph {
    let index = &held.index;
    let images = Images::of(libraries);
    let bulk = target.memory.bulk();
    let read = |at, into: &mut [u8]| match bulk {
        Some(bulk) => bulk.read(at, into).is_ok(),
        None => target.memory.read_once(at, into).is_ok(),
    };
    let resident = |range: Range| {
        let now = bulk.and_then(|bulk| bulk.resident(range));
        now.unwrap_or_else(|| target.view.resident_ranges(range))
    };
    let mut graph = Graph {
        edges: Vec::new(),
        firsts: Vec::new(),
        heads: vec![0; index.len()],
        libraries: vec![0; index.len()],
        is_cut: false,
    };
    let mut memory = Fetch::new(&read, &resident);
    let (mut bytes, mut first) = (Vec::new(), 0);
    while first < index.len() {
        if budget::check_now().is_err() {
            graph.is_cut = true;
            break;
        }
        let next = run_from(index, first);
        let range = Range::new(index.payload(first).start, end(index, next - 1));
        memory.fetch(range, &mut bytes);
        for block in first..next {
            let from = (index.payload(block).start.0 - range.start.0) as usize;
            let to = (end(index, block).0 - range.start.0) as usize;
            graph.note(target, held, &images, block, &bytes[from..to]);
        }
        first = next;
    }
    graph.firsts = firsts(graph.edges.iter().map(|(from, _)| *from), index.len());
    graph
}

/// How far a block is read.
fn end(index: &Index, block: usize) -> Addr {
    let payload = index.payload(block);
    payload.start.plus(payload.bytes().min(BLOCK_SEARCHED_BYTES_MAX))
}

/// The first block behind the ones that are read together.
fn run_from(index: &Index, first: usize) -> usize {
    let start = index.payload(first).start;
    let mut next = first + 1;
    while next < index.len() {
        let is_far = index.payload(next).start > end(index, next - 1).plus(HOLE_BYTES_MAX);
        if is_far || end(index, next) > start.plus(PIECE_BYTES) {
            break;
        }
        next += 1;
    }
    next
}

impl Graph {
    /// A recording keeps the words that point to blocks, and the first of each.
    fn note(&mut self, target: &Target, held: &Held, images: &Images, block: usize, bytes: &[u8]) {
        let index = &held.index;
        let start = index.payload(block).start;
        for (place, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let value = u64::from_le_bytes(*word);
            if place == 0 {
                self.heads[block] = value;
            }
            if place < LIBRARY_WORDS_MAX
                && self.libraries[block] == 0
                && let Some(library) = images.place(value)
            {
                self.libraries[block] = library + 1;
                target.memory.used(start.plus(place as u64 * 8), word);
            }
            let Some(to) = pointed(index, value).filter(|to| *to != block) else { continue };
            target.memory.used(start.plus(place as u64 * 8), word);
            if self.edges.len() == BLOCK_POINTERS_MAX {
                self.is_cut = true;
                return;
            }
            // A list points to its head again and again.
            let is_inner = held.is_inner(value, to);
            let edge = (block as u32, to as u32 | if is_inner { INNER } else { 0 });
            if self.edges.last() != Some(&edge) {
                self.edges.push(edge);
            }
        }
    }
}

/// The block that a word points into.
pub fn pointed(index: &Index, word: u64) -> Option<usize> {
    if word == 0 || !word.is_multiple_of(8) {
        return None;
    }
    index.at_start(word).or_else(|| index.holding(word))
}

/// The blocks that the words of `range` point to, where it is in memory.
pub fn roots(target: &Target, index: &Index, range: Range, found: &mut Vec<usize>) {
    for (_, words) in target.data(range) {
        found.extend(words.iter().filter_map(|word| pointed(index, *word)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Graph {
        /// Pointers from block to block; `true`: far into it.
        pub fn made_up(blocks: usize, pointers: &[(u32, u32, bool)]) -> Graph {
            let edge =
                |(from, to, is_inner): &(u32, u32, bool)| (*from, to | if *is_inner { INNER } else { 0 });
            let edges: Vec<(u32, u32)> = pointers.iter().map(edge).collect();
            let firsts = firsts(edges.iter().map(|(from, _)| *from), blocks);
            Graph { edges, firsts, heads: vec![0; blocks], libraries: vec![0; blocks], is_cut: false }
        }
    }
}
