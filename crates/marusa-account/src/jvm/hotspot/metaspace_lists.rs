//! The lists of metaspace nodes: where one node is known, the others are.
//!
//! A `VirtualSpaceNode` begins with the pointer to the next one, and a `VirtualSpaceList`, which a static of libjvm points
//! to, has the first one among its first words: `_virtual_space_list` (JDK 8 to 15: metaspace.cpp, metaspace/
//! virtualSpaceList.hpp; the newest node is the last) or `_first_node` (JDK 16 and later; the newest is the first). The
//! statics are in no table. All nodes of one build hold their bounds in the same word, which the search from a loader tells;
//! so every object that a word of libjvm's data points to is asked whether it points to a node around a known piece of
//! metadata.

use super::Hotspot;
use crate::base::limits::{METASPACE_NODES_MAX, NODE_LISTS_OBJECTS_MAX};
use crate::base::{Addr, Range};
use crate::os::Memory;
use std::collections::{BTreeMap, HashSet};

/// `VirtualSpaceList` of JDK 8 and 11 begins with the first and the current node, that of JDK 16 and later with its name
/// and the first node.
const LIST_WORDS: usize = 2;

/// Decides by the mappings what an address or a range may be.
pub(super) trait Judge {
    fn memory(&self) -> &dyn Memory;
    fn may_be_object(&self, at: Addr) -> bool;
    fn may_be_node(&self, range: Range) -> bool;
}

/// A node as the search saw it: its bounds, and their address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub range: Range,
    pub object: Addr,
    /// The word of the object that holds the start; the size follows.
    pub word: usize,
}

#[derive(Default)]
pub(super) struct Lists {
    /// By their start.
    nodes: BTreeMap<Addr, Range>,
    /// In which word a node holds its start, once one was seen.
    word: Option<usize>,
    /// The nodes of everything in libjvm's data that resembles a list.
    lists: Option<Vec<Vec<Range>>>,
}

impl Lists {
    /// The node around `at`, if a list that libjvm's data points to has it.
    pub fn node(&mut self, vm: &Hotspot, judge: &dyn Judge, at: Addr) -> Option<Range> {
        let word = self.word?;
        let lists = self.lists.get_or_insert_with(|| lists_of_library(vm, judge, word));
        let list = lists.iter().find(|list| list.iter().any(|range| range.has(at)))?;
        self.nodes.extend(list.iter().map(|range| (range.start, *range)));
        self.known(at)
    }

    /// Takes in a node that was found otherwise, and all after it.
    pub fn learn(&mut self, judge: &dyn Judge, seen: Option<Sighting>) -> Option<Range> {
        let seen = seen?;
        self.word = Some(seen.word);
        let list = nodes_from(judge, seen.object, seen.word, &mut HashSet::new());
        self.nodes.extend(list.into_iter().map(|range| (range.start, range)));
        Some(seen.range)
    }

    /// The node around `at`, if a list that was followed has it.
    pub fn known(&self, at: Addr) -> Option<Range> {
        let (_, range) = self.nodes.range(..=at).next_back()?;
        range.has(at).then_some(*range)
    }
}

fn lists_of_library(vm: &Hotspot, judge: &dyn Judge, word: usize) -> Vec<Vec<Range>> {
    let mut lists = Vec::new();
    let (mut seen, mut nodes) = (HashSet::new(), HashSet::new());
    let library = vm.image.extent();
    for (_, words) in vm.image.data().flat_map(|segment| vm.target.data(segment)) {
        for pointer in words.iter().map(|word| Addr(*word)) {
            if library.has(pointer) || !judge.may_be_object(pointer) || !seen.insert(pointer) {
                continue;
            }
            if seen.len() > NODE_LISTS_OBJECTS_MAX {
                return lists;
            }
            let first_words = vm.memory().scan(pointer, LIST_WORDS).unwrap_or_default();
            let found = first_words.iter().map(|node| nodes_from(judge, Addr(*node), word, &mut nodes));
            lists.extend(found.filter(|list| !list.is_empty()));
        }
    }
    lists
}

/// The nodes from the one at `object` on; none from one on that `passed` has.
fn nodes_from(judge: &dyn Judge, object: Addr, word: usize, passed: &mut HashSet<Addr>) -> Vec<Range> {
    let mut ranges = Vec::new();
    let mut object = object;
    while ranges.len() < METASPACE_NODES_MAX && judge.may_be_object(object) && passed.insert(object) {
        let words = judge.memory().scan(object, word + 2).unwrap_or_default();
        let (Some(next), Some(pair)) = (words.first(), words.get(word..word + 2)) else { break };
        let range = Range::sized(Addr(pair[0]), pair[1]);
        if !judge.may_be_node(range) {
            break;
        }
        ranges.push(range);
        object = Addr(*next);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::memory::Pieces;

    /// Objects lie below 1 MiB, nodes above.
    struct Split(Pieces);

    impl Judge for Split {
        fn memory(&self) -> &dyn Memory {
            &self.0
        }
        fn may_be_object(&self, at: Addr) -> bool {
            !at.is_null() && at.0 < 1 << 20
        }
        fn may_be_node(&self, range: Range) -> bool {
            range.start.0 >= 1 << 20 && !range.is_empty()
        }
    }

    #[test]
    fn a_list_ends_at_null_at_what_is_no_node_and_where_it_was_before() {
        let mut memory = Pieces::default();
        memory.put_words(Addr(0x1000), &[0x2000, 7, 0x10_0000, 0x1000]);
        memory.put_words(Addr(0x2000), &[0x3000, 7, 0x20_0000, 0x2000]);
        memory.put_words(Addr(0x3000), &[0, 7, 0x30_0000, 0x3000]);
        memory.put_words(Addr(0x4000), &[0x5000, 7, 0x40_0000, 0x4000]);
        memory.put_words(Addr(0x5000), &[0x1000, 7, 5, 6]);
        memory.put_words(Addr(0x6000), &[0x7000, 7, 0x60_0000, 0x6000]);
        memory.put_words(Addr(0x7000), &[0x6000, 7, 0x70_0000, 0x7000]);
        let judge = Split(memory);
        let starts = |first| {
            let nodes = nodes_from(&judge, Addr(first), 2, &mut HashSet::new());
            nodes.iter().map(|range| range.start.0).collect::<Vec<_>>()
        };
        assert_eq!(starts(0x1000), [0x10_0000, 0x20_0000, 0x30_0000]);
        assert_eq!(starts(0x4000), [0x40_0000]);
        assert_eq!(starts(0x6000), [0x60_0000, 0x70_0000], "a ring");
        assert!(starts(0x8000).is_empty(), "not in memory");
    }
}
