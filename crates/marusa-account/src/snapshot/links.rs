//! Who else points at anonymous memory: a library that maps memory for itself (RocksDB, netty, the dynamic linker) keeps
//! its address in its writable data or in an object that its data points to. Found by value, so a hint and no proof:
//! only what neither the runtime nor malloc claimed is looked at.
//!
//! An exact start counts more than a page within, that more than any address within, and the data itself more than what
//! it points to.

use super::types::Link;
use crate::base::limits::{LINK_OBJECTS_MAX, LINK_WORDS_MAX};
use crate::base::{Addr, Covered, PAGE, Range, USER_END, holding, joined, overlapping};
use crate::os::Target;
use crate::os::elf::Image;
use crate::os::maps::Mapping;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Words of an object that are looked at; malloc's blocks for such bookkeeping are small.
const OBJECT_WORDS: usize = 32;
/// With no more memory than this without an exact pointer, what the data points to is not looked at.
const OBJECTS_RESIDENT_BYTES: u64 = 64 << 10;
const OBJECTS_RESERVED_BYTES: u64 = 1 << 20;

/// How good a pointer is; the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Start,
    StartFromObject,
    Page,
    PageFromObject,
    Within,
}

impl Strength {
    fn of(at: Addr, piece: Range, from_object: bool) -> Option<Strength> {
        match (at == piece.start, at.is_aligned(PAGE), from_object) {
            (true, _, false) => Some(Strength::Start),
            (true, _, true) => Some(Strength::StartFromObject),
            (_, true, false) => Some(Strength::Page),
            (_, true, true) => Some(Strength::PageFromObject),
            (_, _, false) => Some(Strength::Within),
            (_, _, true) => None,
        }
    }
    fn words(self) -> &'static str {
        match self {
            Strength::Start => "its data points to the start",
            Strength::StartFromObject => "an object that its data points to points to the start",
            Strength::Page => "its data points to a page of it",
            Strength::PageFromObject => "an object that its data points to points to a page of it",
            Strength::Within => "its data points into it",
        }
    }
}

/// `owners`: ranges that have an owner already, as each owner has them.
pub fn read(target: &Target, images: &[Image], owners: &[Range]) -> Vec<Link> {
    let owned = &joined(owners.to_vec())[..];
    let pieces = unclaimed(target, owned);
    let mut search = Search::new(target, &pieces, owners);
    let mut objects: Vec<(Addr, usize)> = Vec::new();
    let mut left = LINK_WORDS_MAX;
    for (library, image) in images.iter().enumerate() {
        let own = image.ranges().reduce(Range::hull).unwrap_or_default();
        for (start, words) in image.data().flat_map(|segment| target.data(segment)) {
            for part in writable(target, Range::sized(start, words.len() as u64 * 8)) {
                let from = ((part.start.0 - start.0) / 8) as usize;
                let count = ((part.bytes() / 8) as usize).min(left);
                left -= count;
                // Nearly every word is a small number or points into the library itself.
                let may_be_foreign = |at: &Addr| (PAGE..USER_END).contains(&at.0) && !own.has(*at);
                for at in words[from..from + count].iter().map(|word| Addr(*word)).filter(may_be_foreign) {
                    search.word(at, library, false);
                    if may_be_object(target, owned, at) {
                        objects.push((at, library));
                    }
                }
            }
        }
    }
    search.settle(Strength::Start);
    if search.needs_objects() {
        search.objects(objects);
        search.settle(Strength::StartFromObject);
    }
    search.links(images)
}

/// Anonymous memory without an owner. What is left of the page in which a library's data ends is the library's.
fn unclaimed(target: &Target, owned: &[Range]) -> Vec<Range> {
    let owned = Covered::of(owned.iter().map(|range| range.widened(PAGE)));
    // [heap] is malloc's, also where the arena could not be read.
    let may_be_linked = |mapping: &&Mapping| mapping.is_anonymous() && mapping.path != "[heap]";
    let mappings = target.view.mappings.iter().filter(may_be_linked);
    mappings.flat_map(|mapping| owned.missing(mapping.range)).collect()
}

/// The parts of a piece of data that can still be written: relocated constants are read-only by now.
fn writable(target: &Target, piece: Range) -> Vec<Range> {
    let over = overlapping(&target.view.mappings, piece, |mapping| mapping.range);
    over.filter(|mapping| mapping.rights.write).map(|mapping| mapping.range.intersect(piece)).collect()
}

/// Whether an address may be that of a malloc block: owned, anonymous, aligned as malloc aligns.
fn may_be_object(target: &Target, owned: &[Range], at: Addr) -> bool {
    at.is_aligned(16)
        && holding(owned, at).is_some()
        && target.mapping(at).is_some_and(|mapping| mapping.is_anonymous() && mapping.rights.write)
}

struct Search<'a> {
    target: &'a Target<'a>,
    pieces: &'a [Range],
    /// By page-aligned address: the best pointer to it, and the library that holds it.
    found: BTreeMap<Addr, (Strength, usize)>,
    /// By the start of a piece: how often each library points into it.
    within: HashMap<Addr, HashMap<usize, usize>>,
    borders: BTreeMap<Addr, Border>,
    /// By the start of owned memory: the borders at which it ends.
    border_of: HashMap<Addr, Vec<Addr>>,
}

/// Where a piece starts at the end of owned memory: the libraries that point there and to the owned memory's start.
#[derive(Default)]
struct Border {
    pointing: BTreeSet<usize>,
    holding: BTreeSet<usize>,
}

impl<'a> Search<'a> {
    fn new(target: &'a Target<'a>, pieces: &'a [Range], owners: &[Range]) -> Search<'a> {
        let is_start = |at: &Addr| pieces.binary_search_by_key(at, |piece| piece.start).is_ok();
        let mut borders: BTreeMap<Addr, Border> = BTreeMap::new();
        let mut border_of: HashMap<Addr, Vec<Addr>> = HashMap::new();
        for owner in owners.iter().filter(|owner| !owner.is_empty() && is_start(&owner.end)) {
            borders.entry(owner.end).or_default();
            border_of.entry(owner.start).or_default().push(owner.end);
        }
        Search { target, pieces, found: BTreeMap::new(), within: HashMap::new(), borders, border_of }
    }

    fn word(&mut self, at: Addr, library: usize, from_object: bool) {
        for end in self.border_of.get(&at).into_iter().flatten() {
            self.borders.entry(*end).or_default().holding.insert(library);
        }
        let Some(piece) = holding(self.pieces, at) else { return };
        if let Some(border) = self.borders.get_mut(&at) {
            border.pointing.insert(library);
            return;
        }
        match Strength::of(at, piece, from_object) {
            Some(Strength::Within) => {
                *self.within.entry(piece.start).or_default().entry(library).or_default() += 1;
            }
            Some(strength) => {
                let best = self.found.entry(at).or_insert((strength, library));
                *best = (*best).min((strength, library));
            }
            None => {}
        }
    }

    /// For each border, keeps the best library that points to it since the last time and does not hold the memory that ends there.
    fn settle(&mut self, strength: Strength) {
        for (at, border) in &mut self.borders {
            for library in std::mem::take(&mut border.pointing).difference(&border.holding) {
                let best = self.found.entry(*at).or_insert((strength, *library));
                *best = (*best).min((strength, *library));
            }
        }
    }

    /// Whether a good part of the memory in question is still without an exact pointer. The objects are on hundreds of
    /// pages of malloc's, so reading them for the linker's few pages would cost a tenth of the whole snapshot.
    fn needs_objects(&self) -> bool {
        let is_open = |piece: &&Range| {
            self.found.range(piece.start..piece.end).all(|(_, (strength, _))| *strength != Strength::Start)
        };
        let (mut resident, mut reserved) = (0, 0);
        for piece in self.pieces.iter().filter(is_open) {
            resident += self.target.resident(*piece).iter().map(|range| range.bytes()).sum::<u64>();
            reserved += piece.bytes();
        }
        resident > OBJECTS_RESIDENT_BYTES || reserved > OBJECTS_RESERVED_BYTES
    }

    /// One level of what the data points to, each object once and for the library that comes first.
    fn objects(&mut self, mut objects: Vec<(Addr, usize)>) {
        objects.sort_unstable();
        objects.dedup_by_key(|(at, _)| *at);
        for (at, library) in objects.into_iter().take(LINK_OBJECTS_MAX) {
            // A block near the end of what is in memory is looked at up to there.
            let count = [OBJECT_WORDS, ((at.plus(1).up_to(PAGE).0 - at.0) / 8) as usize].into_iter().min();
            let words = self.target.memory.scan(at, count.unwrap_or(0)).unwrap_or_default();
            for word in words {
                self.word(Addr(word), library, true);
            }
        }
    }

    /// Cuts each piece at the pages that have a pointer to them.
    fn links(&self, images: &[Image]) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        let mut add = |range: Range, strength: Strength, library: usize| {
            let library = images[library].path.clone();
            match links.last_mut() {
                Some(last) if last.range.end == range.start && last.library == library => {
                    last.range.end = range.end
                }
                _ => links.push(Link { range, library, how: strength.words().to_string() }),
            }
        };
        for piece in self.pieces {
            let mut starts = self.found.range(piece.start..piece.end).peekable();
            if starts.peek().is_none()
                && let Some(libraries) = self.within.get(&piece.start)
                && let Some((library, _)) =
                    libraries.iter().max_by_key(|(library, count)| (**count, usize::MAX - **library))
            {
                add(*piece, Strength::Within, *library);
            }
            while let Some((start, (strength, library))) = starts.next() {
                let end = starts.peek().map_or(piece.end, |(next, _)| **next);
                add(Range::new(*start, end), *strength, *library);
            }
        }
        links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps;
    use crate::os::memory::Pieces;
    use crate::os::target::{NoSymbols, OsView};

    fn image(path: &str, data: Range) -> Image {
        let mut image = Image::default();
        (image.path, image.segments) = (path.to_string(), vec![(data, true)]);
        image
    }

    /// Two libraries' data, malloc's memory, a mapping of three pages in which two of them hold memory, and [heap], which is
    /// malloc's whoever points there.
    #[test]
    fn a_mapping_is_cut_where_libraries_point() {
        let text = b"1000-2000 rw-p 0 00:01 7 /a.so\n2000-3000 rw-p 0 00:01 8 /b.so\n\
                     4000-5000 rw-p 0 00:00 0\n8000-b000 rw-p 0 00:00 0\nd000-e000 rw-p 0 00:00 0\n\
                     f000-10000 rw-p 0 00:00 0 [heap]\n";
        let mut memory = Pieces::default();
        memory.put_words(Addr(0x1000), &[[0x8000_u64, 0x4100, 0xf000].as_slice(), &[0; 509]].concat());
        memory.put_words(Addr(0x2000), &[[0xd010_u64].as_slice(), &[0; 511]].concat());
        memory.put_words(Addr(0x4100), &[[7, 0x9000_u64].as_slice(), &[0; 30]].concat());
        let view = view(maps::parse(text).0);
        let target = Target { view: &view, memory: &memory, symbols: &NoSymbols };
        let images = [image("/a.so", Range::of(0x1000, 0x2000)), image("/b.so", Range::of(0x2000, 0x3000))];
        let links = read(&target, &images, &[Range::of(0x4000, 0x5000)]);
        let found: Vec<_> = links.iter().map(|link| (link.range, link.library.as_str())).collect();
        assert_eq!(found, [(Range::of(0x8000, 0xb000), "/a.so"), (Range::of(0xd000, 0xe000), "/b.so")]);
    }

    /// `/a.so` has the start and the end of what ends where the mapping begins; `/b.so` has the mapping's start alone.
    #[test]
    fn an_end_of_owned_memory_is_no_start_of_the_next() {
        let text = b"1000-2000 rw-p 0 00:01 7 /a.so\n2000-3000 rw-p 0 00:01 8 /b.so\n\
                     4000-6000 rw-s 0 00:01 9 /perf\n6000-9000 rw-p 0 00:00 0\n";
        let owners = [Range::of(0x3800, 0x4000), Range::of(0x4000, 0x6000)];
        for (of_b, expected) in [(0_u64, None), (0x6000, Some("/b.so"))] {
            let mut memory = Pieces::default();
            memory.put_words(Addr(0x1000), &[[0x6000_u64, 0x4000].as_slice(), &[0; 510]].concat());
            memory.put_words(Addr(0x2000), &[[of_b].as_slice(), &[0; 511]].concat());
            let view = view(maps::parse(text).0);
            let target = Target { view: &view, memory: &memory, symbols: &NoSymbols };
            let images =
                [image("/a.so", Range::of(0x1000, 0x2000)), image("/b.so", Range::of(0x2000, 0x3000))];
            let links = read(&target, &images, &owners);
            assert_eq!(links.first().map(|link| link.library.as_str()), expected);
        }
    }

    /// Only an object of the library's points to the mapping.
    #[test]
    fn objects_are_looked_at_where_much_is_open() {
        let mut memory = Pieces::default();
        memory.put_words(Addr(0x1000), &[[0x4100_u64].as_slice(), &[0; 511]].concat());
        memory.put_words(Addr(0x4100), &[[7, 0x20000_u64].as_slice(), &[0; 30]].concat());
        for (end, is_found) in [(0x2f000, false), (0x4f000, true)] {
            let text = format!(
                "1000-2000 rw-p 0 00:01 7 /a.so\n4000-5000 rw-p 0 00:00 0\n20000-{end:x} rw-p 0 00:00 0\n"
            );
            let view = view(maps::parse(text.as_bytes()).0);
            let target = Target { view: &view, memory: &memory, symbols: &NoSymbols };
            let images = [image("/a.so", Range::of(0x1000, 0x2000))];
            let links = read(&target, &images, &[Range::of(0x4000, 0x5000)]);
            assert_eq!(links.iter().any(|link| link.range == Range::of(0x20000, end)), is_found);
        }
    }

    fn view(mappings: Vec<maps::Mapping>) -> OsView {
        use crate::base::{Gap, Why};
        OsView {
            process: Default::default(),
            status: Default::default(),
            mappings,
            pages: Err(Gap::new("pages", Why::NotRecorded)),
            tasks: Vec::new(),
            gaps: Vec::new(),
            late: None,
            page_sizes: None,
            smaps: None,
        }
    }
}
