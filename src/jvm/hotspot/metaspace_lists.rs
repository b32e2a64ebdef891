//! The lists of metaspace nodes: where one node is known, the others are.
//!
//! A `VirtualSpaceNode` begins with the pointer to the next one, and a `VirtualSpaceList`, which a static of libjvm points
//! to, has the first one among its first words: `_virtual_space_list` (JDK 8 to 15: metaspace.cpp, metaspace/
//! virtualSpaceList.hpp; the newest node is the last) or `_first_node` (JDK 16 and later; the newest is the first). The
//! statics are in no table. All nodes of one build hold their bounds in the same word, which the search from a loader tells;
//! so every object that a word of libjvm's data points to is asked whether it points to a node around a known piece of
//! metadata.

use super::metaspace_nodes::{Search, Sighting};
use crate::base::limits::{METASPACE_NODES_MAX, NODE_LISTS_OBJECTS_MAX};
use crate::base::{Addr, Range};
use std::collections::{BTreeMap, HashSet};

/// `VirtualSpaceList` of JDK 8 and 11 begins with the first and the current node, that of JDK 16 and later with its name
/// and the first node.
const LIST_WORDS: usize = 2;

#[derive(Default)]
pub(super) struct Lists {
    /// By their start.
    nodes: BTreeMap<Addr, Range>,
    /// In which word a node holds its start, once one was seen.
    word: Option<usize>,
    /// The nodes of all that has the look of a list in libjvm's data.
    lists: Option<Vec<Vec<Range>>>,
}

impl Lists {
    /// The node around `at`, if a list has it.
    pub fn node(&mut self, search: &Search, at: Addr) -> Option<Range> {
        if let Some(range) = self.known(at) {
            return Some(range);
        }
        let word = self.word?;
        let lists = self.lists.get_or_insert_with(|| lists_of_library(search, word));
        let list = lists.iter().find(|list| list.iter().any(|range| range.has(at)))?;
        self.nodes.extend(list.iter().map(|range| (range.start, *range)));
        self.known(at)
    }

    /// Takes in a node that was found otherwise, and all after it.
    pub fn learn(&mut self, search: &Search, seen: Sighting) {
        self.word = Some(seen.word);
        let list = nodes_from(search, seen.object, seen.word, &mut HashSet::new());
        self.nodes.extend(list.into_iter().map(|range| (range.start, range)));
    }

    fn known(&self, at: Addr) -> Option<Range> {
        let (_, range) = self.nodes.range(..=at).next_back()?;
        range.has(at).then_some(*range)
    }
}

fn lists_of_library(search: &Search, word: usize) -> Vec<Vec<Range>> {
    let mut lists = Vec::new();
    let (mut seen, mut nodes) = (HashSet::new(), HashSet::new());
    let vm = search.vm;
    let library = vm.image.extent();
    let writable = vm.image.segments.iter().filter(|(_, writable)| *writable);
    for (_, words) in writable.flat_map(|(segment, _)| vm.target.data(*segment)) {
        for pointer in words.iter().map(|word| Addr(*word)) {
            if library.has(pointer) || !search.may_be_object(pointer) || !seen.insert(pointer) {
                continue;
            }
            if seen.len() > NODE_LISTS_OBJECTS_MAX {
                return lists;
            }
            let first_words = vm.memory().scan(pointer, LIST_WORDS).unwrap_or_default();
            let found = first_words.iter().map(|node| nodes_from(search, Addr(*node), word, &mut nodes));
            lists.extend(found.filter(|list| !list.is_empty()));
        }
    }
    lists
}

/// The nodes from the one at `object` on; none from one on that `passed` has.
fn nodes_from(search: &Search, object: Addr, word: usize, passed: &mut HashSet<Addr>) -> Vec<Range> {
    let mut ranges = Vec::new();
    let mut object = object;
    while ranges.len() < METASPACE_NODES_MAX && search.may_be_object(object) && passed.insert(object) {
        let words = search.vm.memory().scan(object, word + 2).unwrap_or_default();
        let (Some(next), Some(pair)) = (words.first(), words.get(word..word + 2)) else { break };
        let range = Range::sized(Addr(pair[0]), pair[1]);
        if !search.may_be_node(range) {
            break;
        }
        ranges.push(range);
        object = Addr(*next);
    }
    ranges
}
