//! The reserved stretch (node) of the metaspace around a piece of metadata.
//!
//! The list of nodes is in no table, but every loader leads to it: `ClassLoaderData::_metaspace`, then the arena's chunks
//! (JDK 16 and later: MetaspaceArena; before: SpaceManager), and each chunk to its `VirtualSpaceNode`, which holds the
//! node's base and size side by side in its ReservedSpace (src/hotspot/share/memory/metaspace/*.hpp, and metaspace.cpp of
//! JDK 8). The offsets differ by build, so the way is searched: breadth first over all words that point to memory, for
//! two neighbouring words that are the start and the size of a mapped stretch around the metadata.

use super::metaspace::Mark;
use super::window::Windows;
use super::{Found, Hotspot};
use crate::base::limits::{NODE_DEPTH_MAX, NODE_OBJECTS_MAX};
use crate::base::{Addr, PAGE, Range};
use crate::jvm::types::How;
use crate::os::maps::Mapping;
use std::collections::{HashSet, VecDeque};

/// Words of an object that are looked at; a `VirtualSpaceNode` has its ReservedSpace within the first 8.
const OBJECT_WORDS: usize = 32;
/// No node is smaller: JDK 8's second and later ones have 2 MiB, JDK 16's and later 8 or 64 MiB.
const NODE_BYTES_MIN: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub range: Range,
    pub how: How,
}

pub struct Search<'a, 'w, 't> {
    vm: &'a Hotspot<'a>,
    windows: &'w Windows<'t>,
    /// What others own: no way leads through it, and no node overlaps it.
    taken: Taken,
    pub missed: u64,
}

/// What extents of other readers cover: sorted, and joined where they overlap or touch.
pub struct Taken(Vec<Range>);

impl Taken {
    pub fn by(found: &Found) -> Taken {
        let mut ranges: Vec<Range> = found.extents.iter().map(|extent| extent.range).collect();
        ranges.sort();
        ranges.dedup_by(|next, before| {
            let joins = next.start <= before.end;
            if joins {
                before.end = before.end.max(next.end);
            }
            joins
        });
        Taken(ranges)
    }
    pub fn has(&self, at: Addr) -> bool {
        self.overlaps(Range::sized(at, 1))
    }
    pub fn overlaps(&self, range: Range) -> bool {
        let first = self.0.partition_point(|taken| taken.end <= range.start);
        self.0.get(first).is_some_and(|taken| taken.overlaps(range))
    }
}

impl<'a, 'w, 't> Search<'a, 'w, 't> {
    pub fn new(vm: &'a Hotspot<'a>, windows: &'w Windows<'t>, found: &Found) -> Search<'a, 'w, 't> {
        Search { vm, windows, taken: Taken::by(found), missed: 0 }
    }

    /// The node around `mark`; by its mapping alone where no loader leads to its bounds. `None` when nothing private is
    /// mapped there.
    pub fn node(&mut self, mark: Mark) -> Option<Node> {
        let node = match self.bounds_from(mark) {
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

    fn bounds_from(&mut self, mark: Mark) -> Option<Range> {
        let mut queue = VecDeque::from([(mark.loader, 0)]);
        let mut visited = HashSet::from([mark.loader]);
        let mut best: Option<(Range, u32)> = None;
        while let Some((object, depth)) = queue.pop_front() {
            if best.is_some_and(|(_, found_at)| depth > found_at) {
                break;
            }
            let words = self.words(object);
            // The base stands beside the committed bytes or the words of the node too: the largest pair is meant.
            let pairs = words.windows(2).map(|pair| Range::sized(Addr(pair[0]), pair[1]));
            let nodes = pairs.filter(|range| range.has(mark.at) && self.may_be_node(*range));
            let largest = nodes.chain(best.map(|(range, _)| range)).max_by_key(|range| range.bytes());
            best = largest.map(|range| (range, best.map_or(depth, |(_, found_at)| found_at)));
            if depth == NODE_DEPTH_MAX || best.is_some() {
                continue;
            }
            for word in words {
                if visited.len() < NODE_OBJECTS_MAX
                    && !visited.contains(&Addr(word))
                    && self.may_be_object(word, mark)
                {
                    visited.insert(Addr(word));
                    queue.push_back((Addr(word), depth + 1));
                }
            }
        }
        best.map(|(range, _)| range)
    }

    fn words(&mut self, object: Addr) -> Vec<u64> {
        let to_page_end = (PAGE - (object.0 & (PAGE - 1))) as usize / 8;
        // An object may end at the end of a mapping: what lies on the next page is taken only when it can be read.
        let whole = self.windows.scan(object, OBJECT_WORDS);
        whole.or_else(|_| self.windows.scan(object, to_page_end.min(OBJECT_WORDS))).unwrap_or_default()
    }

    /// Aligned, private, resident, and nobody else's. Metadata itself is only passed through at chunk borders, where JDK 8
    /// and 11 keep the chunk's header.
    fn may_be_object(&self, word: u64, mark: Mark) -> bool {
        const CHUNK_BYTES_MIN: u64 = 1 << 10;
        let at = Addr(word);
        if word < 1 << 16 || !at.is_aligned(8) || self.taken.overlaps(Range::sized(at, 8)) {
            return false;
        }
        let near = at.0.abs_diff(mark.at.0) < 64 << 20;
        if near && !at.is_aligned(CHUNK_BYTES_MIN) {
            return false;
        }
        self.vm.target.mapping(at).is_some_and(|mapping| is_private(mapping) && mapping.rights.write)
            && self.vm.target.is_resident(at)
    }

    fn may_be_node(&self, range: Range) -> bool {
        range.start.is_aligned(PAGE)
            && !range.start.is_null()
            && range.bytes() >= NODE_BYTES_MIN
            && range.bytes().is_multiple_of(GRANULE_BYTES_MIN)
            && !self.taken.overlaps(range)
            && self.is_mapped_whole(range)
    }

    /// Private mappings without a gap between them cover it.
    fn is_mapped_whole(&self, range: Range) -> bool {
        let mut at = range.start;
        for mapping in mappings_from(self.vm, at) {
            if mapping.range.start > at || !is_private(mapping) {
                return false;
            }
            at = mapping.range.end;
            if at >= range.end {
                return true;
            }
        }
        false
    }

    /// The mapping, and what is reserved right after it.
    fn mapping_with_rest(&self, at: Addr) -> Option<Range> {
        let mut mappings = mappings_from(self.vm, at);
        let first = mappings.next().filter(|mapping| mapping.range.has(at) && is_private(mapping))?;
        let rest = mappings
            .next()
            .filter(|rest| rest.range.start == first.range.end && is_private(rest) && !rest.rights.any());
        let range = Range::new(first.range.start, rest.map_or(first.range.end, |rest| rest.range.end));
        if !self.taken.overlaps(range) {
            return Some(range);
        }
        (!self.taken.overlaps(first.range)).then_some(first.range)
    }
}

/// Bounds of a node are whole commit granules; JDK 8's and 11's are whole pages.
const GRANULE_BYTES_MIN: u64 = PAGE;

fn is_private(mapping: &Mapping) -> bool {
    mapping.is_anonymous() && !mapping.rights.shared
}

fn mappings_from<'a>(vm: &'a Hotspot, at: Addr) -> impl Iterator<Item = &'a Mapping> {
    let mappings = &vm.target.view.mappings;
    mappings[mappings.partition_point(|mapping| mapping.range.end <= at)..].iter()
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
        let taken = Taken::by(&found);
        assert!(taken.has(Addr(0x8000)));
        assert!(!taken.has(Addr(0x9000)));
        assert!(taken.overlaps(Range::of(0x9000, 0xa001)));
        assert!(!taken.overlaps(Range::of(0x9000, 0xa000)));
    }
}
