//! Which memory is the allocator's where neither its structures nor the runtime's marks tell: that into which the process
//! points as one points at blocks of malloc.
//!
//! From the writable data of all loaded libraries on: an address that is a multiple of 16 and not of a page, in anonymous
//! memory that nobody claims, is taken for that of a block. A piece of memory with several such addresses is the allocator's,
//! and is searched for more in turn. Memory that a library maps for itself is mostly kept by its start. So this is a hint and
//! no proof.
//!
//! A piece that holds one large block is pointed to once, or only by Java objects, which are not searched. Jemalloc's
//! description of the block tells then: its address and behind it its size (`e_addr` and `e_size_esn` of `edata_t`, jemalloc
//! 5.3.0 include/jemalloc/internal/edata.h; of `extent_t` in 5.0 to 5.2).

use super::scan::unclaimed;
use crate::base::limits::{POINTED_BYTES_MAX, POINTED_IMAGES_MAX};
use crate::base::{Addr, Bytes, PAGE, Range, place_of};
use crate::os::Target;
use crate::os::elf::Image;
use std::collections::HashSet;

/// Different addresses in a piece that are pointed to.
const POINTERS_LEAST: usize = 3;
/// What is read at once.
const STEP_BYTES: Bytes = 256 << 10;

/// The pieces, sorted. `owned` is sorted and disjoint; `has_extents`: the allocator is jemalloc.
pub fn pieces(target: &Target, owned: &[Range], has_extents: bool) -> Vec<Range> {
    let data = images(target);
    let mut taken: Vec<Range> = owned.to_vec();
    taken.extend(data.iter().map(|range| range.widened(PAGE)));
    taken.sort();
    let pieces = unclaimed(target, &taken);
    let mut search = Search::new(target, &pieces, has_extents);
    data.iter().for_each(|range| search.look(*range));
    while let Some(index) = search.next.pop() {
        search.look(pieces[index]);
    }
    let is_pointed = |index: &usize| search.pointed[*index].is_the_allocators();
    (0..pieces.len()).filter(is_pointed).map(|index| pieces[index]).collect()
}

/// Writable data of everything that is loaded, zeroed data included.
fn images(target: &Target) -> Vec<Range> {
    let firsts = target.view.mappings.iter().filter(|mapping| mapping.is_file() && mapping.offset == 0);
    let images = firsts.take(POINTED_IMAGES_MAX).filter_map(|first| Image::read(target.memory, first).ok());
    images.flat_map(|image| image.data().collect::<Vec<Range>>()).collect()
}

struct Search<'a> {
    target: &'a Target<'a>,
    pieces: &'a [Range],
    has_extents: bool,
    /// By piece.
    pointed: Vec<Pointed>,
    /// Pieces that are still to be looked at.
    next: Vec<usize>,
    left_bytes: Bytes,
}

/// What points into a piece.
#[derive(Clone, Default)]
struct Pointed {
    /// Different addresses, as many as are needed.
    at: HashSet<Addr>,
    /// The allocator says that a block of its own is there.
    is_described: bool,
}

impl Pointed {
    fn is_the_allocators(&self) -> bool {
        self.is_described || self.at.len() >= POINTERS_LEAST
    }
}

impl<'a> Search<'a> {
    fn new(target: &'a Target<'a>, pieces: &'a [Range], has_extents: bool) -> Search<'a> {
        let pointed = vec![Pointed::default(); pieces.len()];
        Search { target, pieces, has_extents, pointed, next: Vec::new(), left_bytes: POINTED_BYTES_MAX }
    }

    /// Notes what the words of `range` point to.
    fn look(&mut self, range: Range) {
        for resident in self.target.resident(range) {
            let mut from = resident.start.up_to(8);
            while from < resident.end && self.left_bytes > 0 {
                let bytes = STEP_BYTES.min(resident.end.0 - from.0).min(self.left_bytes);
                self.left_bytes -= bytes;
                let words = self.target.memory.scan(from, (bytes / 8) as usize).unwrap_or_default();
                for (index, word) in words.iter().enumerate() {
                    self.word(Addr(*word), words.get(index + 1).copied());
                }
                from = from.plus(bytes.max(8));
            }
        }
    }

    fn word(&mut self, at: Addr, next: Option<u64>) {
        if !at.is_aligned(16) || at.is_aligned(PAGE) {
            return;
        }
        let Some(index) = place_of(self.pieces, at, |piece| *piece) else { return };
        let found = &mut self.pointed[index];
        if found.is_the_allocators() {
            return;
        }
        found.at.insert(at);
        found.is_described =
            self.has_extents && next.is_some_and(|size| is_extent(at, size, self.pieces[index]));
        if found.is_the_allocators() {
            self.next.push(index);
        }
    }
}

/// Whether `at` and `size` are of jemalloc's description of a block in `piece`. The block begins at any cache line of its first
/// page; below the size stands a serial number.
fn is_extent(at: Addr, size: u64, piece: Range) -> bool {
    let bytes = size & !(PAGE - 1);
    bytes >= PAGE
        && at.is_aligned(64)
        && at.down_to(PAGE).0.checked_add(bytes).is_some_and(|end| end <= piece.end.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps;
    use crate::os::memory::Pieces;
    use crate::os::pagemap::PageRun;
    use crate::os::target::{NoSymbols, OsView, ProcessFacts};

    #[test]
    fn a_piece_needs_several_pointers_to_blocks() {
        let text = b"5000-6000 rw-p 0 00:01 7 /a\n10000-13000 rw-p 0 00:00 0 \n20000-21000 rw-p 0 00:00 0 \n";
        let resident = |(start, end)| PageRun {
            range: Range::of(start, end),
            bits: PageRun::PRESENT,
            page_bytes: PAGE as u32,
            mapped_times: 1,
        };
        let view = OsView {
            process: ProcessFacts::default(),
            status: Default::default(),
            mappings: maps::parse(text).0,
            pages: Ok([(0x5000, 0x6000), (0x10000, 0x13000), (0x20000, 0x21000)].map(resident).to_vec()),
            tasks: Vec::new(),
            gaps: Vec::new(),
            late: None,
            page_sizes: None,
            smaps: None,
        };
        let mut memory = Pieces::default();
        // Blocks, the start of the piece, a page in it, an odd address; one of the blocks points to another piece.
        memory.put_words(
            Addr(0x5000),
            &[0x10010, 0x10000, 0x11000, 0x10fff, 0x10020, 0x10030, 0x10030, 0x20010],
        );
        memory.put_words(Addr(0x5040), &[0x10040, 0x2007]);
        let mut block = vec![0; 0x2000];
        block[0x1ff8..].copy_from_slice(&0x20020_u64.to_le_bytes());
        memory.put(Addr(0x10000), &block);
        let target = Target { view: &view, memory: &memory, symbols: &NoSymbols };
        let pieces = unclaimed(&target, &[Range::of(0x12000, 0x13000)]);
        let mut search = Search::new(&target, &pieces, false);
        search.look(Range::of(0x5000, 0x5040));
        assert_eq!((search.pointed[0].at.len(), search.pointed[1].at.len()), (3, 1));
        assert_eq!(search.next, [0]);
        search.look(pieces[0]);
        assert_eq!((search.pointed[1].at.len(), search.next.len()), (2, 1), "two are too few");
        for (has_extents, next) in [(false, vec![]), (true, vec![0])] {
            let mut search = Search::new(&target, &pieces, has_extents);
            search.look(Range::of(0x5040, 0x5050));
            assert_eq!(search.next, next, "jemalloc's description of a block, and two other words");
        }
    }

    #[test]
    fn a_size_behind_the_address_is_jemallocs_word() {
        let piece = Range::of(0x10000, 0x20000);
        let of = |at, size| is_extent(Addr(at), size, piece);
        assert!(
            of(0x10040, 0x8000) && of(0x18fc0, 0x8007),
            "from any line of the first page to the end; serial number"
        );
        assert!(!of(0x18040, 0x9000), "past the end");
        assert!(!of(0x10040, 0xfff) && !of(0x10040, u64::MAX) && !of(0x10050, 0x8000));
    }
}
