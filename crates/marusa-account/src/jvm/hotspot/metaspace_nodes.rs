//! The reserved range (node) of the metaspace around a piece of metadata.
//!
//! The list of nodes is in no table, but every loader leads to it: `ClassLoaderData::_metaspace`, then the arena's chunks
//! (JDK 16 and later: MetaspaceArena; before: SpaceManager), and each chunk to its `VirtualSpaceNode`, which holds the
//! node's base and size side by side in its ReservedSpace (src/hotspot/share/memory/metaspace/*.hpp, and metaspace.cpp of
//! JDK 8). The offsets differ by build, so the way is searched: breadth first over all words that point to memory, for
//! two neighbouring words that are the start and the size of a mapped range around the metadata.
//!
//! One node found that way tells where a node has its bounds, and so the lists of all others are recognised
//! (`metaspace_lists`): a search through the chunks of a large loader is long, and often in vain.

use super::metaspace_lists::{Judge, Lists, Sighting};
use super::{Found, Hotspot};
use crate::base::limits::{NODE_DEPTH_MAX, NODE_OBJECTS_MAX, NODE_SEARCHES_OBJECTS_MAX};
use crate::base::{Addr, PAGE, Range, holding, joined, overlapping};
use crate::jvm::types::{Extent, How};
use crate::os::Memory;
use crate::os::maps::Mapping;
use std::cell::Cell;
use std::collections::{HashSet, VecDeque};

/// Words of an object that are looked at; a `VirtualSpaceNode` has its ReservedSpace within the first 8.
const OBJECT_WORDS: usize = 32;
/// Objects of a first search from a loader, and how many such searches there are: JDK 16 and later have two or three nodes,
/// to which a small loader leads sooner than all that libjvm's data points to; JDK 8 and 11 have many.
const QUICK_OBJECTS_MAX: usize = 512;
const QUICK_SEARCHES_MAX: u32 = 3;
/// Objects of the search that is tried before it, from what most likely leads to the chunks.
const STRAIGHT_OBJECTS_MAX: usize = 256;
/// No node is smaller: JDK 8's second and later ones have 2 MiB, JDK 16's and later 8 or 64 MiB.
const NODE_BYTES_MIN: u64 = 1 << 20;

/// Where something was seen, and the loader that it was reached from.
#[derive(Clone, Copy)]
pub struct Mark {
    pub at: Addr,
    pub loader: Addr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub range: Range,
    pub how: How,
}

pub struct Search<'a> {
    vm: &'a Hotspot<'a>,
    /// What others own: no way leads through it, and no node overlaps it.
    taken: Taken,
    lists: Lists,
    /// Objects that all searches together may still visit.
    objects_left: Cell<usize>,
    quick_left: Cell<u32>,
    pub missed: u64,
}

/// What extents of other readers cover: sorted, and joined where they overlap or touch.
pub struct Taken(Vec<Range>);

impl Taken {
    pub fn by(extents: &[Extent]) -> Taken {
        Taken(joined(extents.iter().map(|extent| extent.range)))
    }
    /// `range`, which was free, has an owner now.
    pub fn add(&mut self, range: Range) {
        let after = self.0.partition_point(|taken| taken.start < range.start);
        self.0.insert(after, range);
    }
    pub fn has(&self, at: Addr) -> bool {
        holding(&self.0, at).is_some()
    }
    pub fn overlaps(&self, range: Range) -> bool {
        overlapping(&self.0, range, |taken| *taken).next().is_some()
    }
}

impl<'a> Search<'a> {
    pub fn new(vm: &'a Hotspot<'a>, found: &Found) -> Search<'a> {
        Search {
            vm,
            taken: Taken::by(&found.extents),
            lists: Lists::default(),
            objects_left: Cell::new(NODE_SEARCHES_OBJECTS_MAX),
            quick_left: Cell::new(QUICK_SEARCHES_MAX),
            missed: 0,
        }
    }

    /// The node around `mark`; by its mapping alone where no loader leads to its bounds. `None` when nothing private is
    /// mapped there.
    pub fn node(&mut self, mark: Mark) -> Option<Node> {
        let node = match self.bounds_of(mark) {
            Some(range) => {
                Some(Node { range, how: How::PointedFrom("ClassLoaderData::_metaspace".to_string()) })
            }
            None => self.mapping_with_rest(mark.at).map(|range| Node { range, how: How::Shape }),
        };
        if node.is_none() {
            self.missed += 1;
        }
        node
    }

    fn bounds_of(&mut self, mark: Mark) -> Option<Range> {
        let mut lists = std::mem::take(&mut self.lists);
        let found = lists
            .known(mark.at)
            .or_else(|| lists.learn(self, self.quick_sighting_from(mark)))
            .or_else(|| lists.node(self.vm, self, mark.at))
            .or_else(|| lists.learn(self, self.sighting_from(mark.loader, mark, NODE_OBJECTS_MAX)));
        self.lists = lists;
        found
    }

    fn quick_sighting_from(&self, mark: Mark) -> Option<Sighting> {
        self.quick_left.set(self.quick_left.get().checked_sub(1)?);
        let straight = self.metaspace_of(mark.loader);
        straight
            .and_then(|metaspace| self.sighting_from(metaspace, mark, STRAIGHT_OBJECTS_MAX))
            .or_else(|| self.sighting_from(mark.loader, mark, QUICK_OBJECTS_MAX))
    }

    /// `ClassLoaderData::_metaspace` is in no table. It follows `_class_loader` (JDK 10 to 25).
    fn metaspace_of(&self, loader: Addr) -> Option<Addr> {
        let before = self.vm.structs.offset("ClassLoaderData", "_class_loader").ok()?;
        let metaspace = *self.vm.memory().scan(loader.plus(before + 8), 1).ok()?.first()?;
        Some(Addr(metaspace)).filter(|at| self.may_be_object(*at))
    }

    fn sighting_from(&self, from: Addr, mark: Mark, objects_max: usize) -> Option<Sighting> {
        let mut queue = VecDeque::from([(from, 0)]);
        let mut visited = HashSet::from([from]);
        let mut best: Option<(Sighting, u32)> = None;
        while let Some((object, depth)) = queue.pop_front() {
            if best.is_some_and(|(_, found_at)| depth > found_at) || self.objects_left.get() == 0 {
                break;
            }
            self.objects_left.set(self.objects_left.get() - 1);
            let words = self.words(object);
            // The base stands next to the committed bytes or the words of the node too: the largest pair is meant.
            let pairs = words.windows(2).enumerate().map(|(word, pair)| Sighting {
                range: Range::sized(Addr(pair[0]), pair[1]),
                object,
                word,
            });
            let nodes = pairs.filter(|seen| seen.range.has(mark.at) && self.may_be_node(seen.range));
            let largest = nodes.chain(best.map(|(seen, _)| seen)).max_by_key(|seen| seen.range.bytes());
            best = largest.map(|seen| (seen, best.map_or(depth, |(_, found_at)| found_at)));
            if depth == NODE_DEPTH_MAX || best.is_some() {
                continue;
            }
            for word in words {
                if visited.len() < objects_max
                    && !visited.contains(&Addr(word))
                    && self.may_be_on_the_way(word, mark)
                {
                    visited.insert(Addr(word));
                    queue.push_back((Addr(word), depth + 1));
                }
            }
        }
        best.map(|(seen, _)| seen)
    }

    fn words(&self, object: Addr) -> Vec<u64> {
        let to_page_end = (PAGE - (object.0 & (PAGE - 1))) as usize / 8;
        // An object may end at the end of a mapping: what lies on the next page is taken only when it can be read.
        let memory = self.vm.memory();
        let whole = memory.scan(object, OBJECT_WORDS);
        whole.or_else(|_| memory.scan(object, to_page_end.min(OBJECT_WORDS))).unwrap_or_default()
    }

    /// Metadata itself is only passed through at chunk borders, where JDK 8 and 11 keep the chunk's header.
    fn may_be_on_the_way(&self, word: u64, mark: Mark) -> bool {
        const CHUNK_BYTES_MIN: u64 = 1 << 10;
        let is_near = word.abs_diff(mark.at.0) < 64 << 20;
        (!is_near || word.is_multiple_of(CHUNK_BYTES_MIN)) && self.may_be_object(Addr(word))
    }

    /// The mapping, and what is reserved right after it.
    fn mapping_with_rest(&self, at: Addr) -> Option<Range> {
        let first = self.vm.target.mapping(at).filter(|mapping| is_private(mapping))?;
        let rest = self.vm.target.mapping(first.range.end);
        let rest = rest.filter(|rest| is_private(rest) && !rest.rights.any());
        let range = Range::new(first.range.start, rest.map_or(first.range.end, |rest| rest.range.end));
        if !self.taken.overlaps(range) {
            return Some(range);
        }
        (!self.taken.overlaps(first.range)).then_some(first.range)
    }
}

impl Judge for Search<'_> {
    fn memory(&self) -> &dyn Memory {
        self.vm.memory()
    }

    /// Aligned, private, resident, and without another owner.
    fn may_be_object(&self, at: Addr) -> bool {
        at.0 >= 1 << 16
            && at.is_aligned(8)
            && !self.taken.overlaps(Range::sized(at, 8))
            && self.vm.target.mapping(at).is_some_and(|mapping| is_private(mapping) && mapping.rights.write)
            && self.vm.target.is_resident(at)
    }

    fn may_be_node(&self, range: Range) -> bool {
        range.start.is_aligned(PAGE)
            && !range.start.is_null()
            && range.bytes() >= NODE_BYTES_MIN
            && range.bytes().is_multiple_of(GRANULE_BYTES_MIN)
            && !self.taken.overlaps(range)
            && self.vm.target.is_all(range, is_private)
    }
}

/// Bounds of a node are whole commit granules; JDK 8's and 11's are whole pages.
const GRANULE_BYTES_MIN: u64 = PAGE;

fn is_private(mapping: &Mapping) -> bool {
    mapping.is_anonymous() && !mapping.rights.shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::types::Kind;

    #[test]
    fn nested_extents_hide_nothing_of_what_is_taken() {
        let mut found = Found::default();
        for (start, end) in [(0x1000, 0x9000), (0x2000, 0x3000), (0xa000, 0xb000)] {
            found.claim(Range::of(start, end), Kind::JavaHeap, "heap", None, How::VmStructs);
        }
        let taken = Taken::by(&found.extents);
        assert!(taken.has(Addr(0x8000)));
        assert!(!taken.has(Addr(0x9000)));
        assert!(taken.overlaps(Range::of(0x9000, 0xa001)));
        assert!(!taken.overlaps(Range::of(0x9000, 0xa000)));
    }
}
