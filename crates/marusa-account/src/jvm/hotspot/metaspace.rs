//! Class metadata: the class space, and the nodes of the metaspace next to it.
//!
//! Neither is in vmStructs. Every class is reached through the loaders; where it and its metadata lie is marked in
//! granules, and `metaspace_nodes` finds the reserved range around each, so that a neighbour that the kernel shows in
//! one mapping with it (a heap of a malloc arena, for one) is left alone.

use super::metaspace_nodes::{Mark, Node, Search, Taken};
use super::objects::has_class_space;
use super::perf_memory::PerfMemory;
use super::window::Windows;
use super::{Found, Hotspot, class_graph};
use crate::base::limits::METASPACE_NODES_MAX;
use crate::base::{Addr, Gap, Known, Range, Why};
use crate::jvm::types::{ClassView, Kind};
use std::collections::BTreeMap;

/// 64 KiB: what JDK 16 and later commit at once.
const GRANULE_BYTES: u64 = 64 << 10;

/// Classes of the archive, and methods of each, that are looked at for one with counters.
const ARCHIVED_CLASSES_MAX: usize = 1_024;
const METHODS_MAX: u64 = 256;

type Marks = BTreeMap<u64, Mark>;

/// Marks while they are made. Neighbours in the walk mostly lie in the same granules, so a few are remembered before the
/// tree is asked: 16,000 classes make 100,000 marks in some 500 granules.
struct Marking {
    marks: Marks,
    recent: [u64; RECENT_GRANULES],
}

const RECENT_GRANULES: usize = 256;

impl Marking {
    fn new() -> Marking {
        Marking { marks: Marks::new(), recent: [u64::MAX; RECENT_GRANULES] }
    }
    fn mark(&mut self, at: Addr, loader: Addr) {
        let granule = at.0 / GRANULE_BYTES;
        let recent = &mut self.recent[granule as usize % RECENT_GRANULES];
        if *recent != granule {
            *recent = granule;
            self.marks.entry(granule).or_insert(Mark { at, loader });
        }
    }
}

pub fn read(vm: &Hotspot, found: &mut Found) -> Known<ClassView> {
    let windows = Windows::new(vm.target);
    let known = Taken::by(&found.extents);
    let (mut classes, mut metadata) = (Marking::new(), Marking::new());
    let mut archived_methods = Vec::new();
    let counts = class_graph::walk(vm, &windows, &mut |seen| {
        classes.mark(seen.class, seen.loader);
        found.leads.of_class(seen);
        seen.metadata.iter().for_each(|at| metadata.mark(*at, seen.loader));
        if archived_methods.len() < ARCHIVED_CLASSES_MAX && known.has(seen.methods) {
            archived_methods.push(Mark { at: seen.methods, loader: seen.loader });
        }
    });
    let (mut classes, mut metadata) = (classes.marks, metadata.marks);
    for marks in [&mut classes, &mut metadata] {
        marks.retain(|_, mark| !known.has(mark.at));
    }
    if metadata.is_empty() {
        let counters = counters_of_archived(vm, &windows, &archived_methods);
        let counters = counters.filter(|mark| !known.has(mark.at));
        metadata.extend(counters.map(|mark| (mark.at.0 / GRANULE_BYTES, mark)));
    }
    claim(vm, classes, metadata, found);
    found.note(counts.loaders.as_ref().map_err(Gap::clone));
    if counts.classes.as_ref().err() != counts.loaders.as_ref().err() {
        found.note(counts.classes.as_ref().map_err(Gap::clone));
    }
    let perf = PerfMemory::read(vm.memory(), vm.structs);
    let counter = |name: &str| {
        let value = perf.as_ref().map_err(Gap::clone)?.number(name).filter(|value| *value >= 0);
        value.map(|value| value as u64).ok_or_else(|| Gap::new(name, Why::NotInThisRuntime))
    };
    Ok(ClassView {
        loaders: counts.loaders,
        classes: counts.classes,
        metaspace_used_bytes: counter("sun.gc.metaspace.used"),
        class_space_used_bytes: counter("sun.gc.compressedclassspace.used"),
        // "capacity" is what is committed (memory/metaspaceCounters.cpp, JDK 8 to 25).
        metaspace_committed_bytes: counter("sun.gc.metaspace.capacity"),
        class_space_committed_bytes: counter("sun.gc.compressedclassspace.capacity"),
        loader_classes: counts.loader_classes,
        unloaded_classes: counter("java.cls.unloadedClasses").ok(),
        // 0 counts the young ones, 2 the pauses of G1's concurrent cycles, which unload classes too.
        old_collections: counter("sun.gc.collector.1.invocations")
            .ok()
            .map(|whole| whole.saturating_add(counter("sun.gc.collector.2.invocations").unwrap_or(0))),
    })
}

/// A program whose classes all come from the archive has only counters of its methods in the metaspace: one of those.
fn counters_of_archived(vm: &Hotspot, windows: &Windows, methods: &[Mark]) -> Option<Mark> {
    let data = vm.structs.offset("Array<Method*>", "_data").unwrap_or(8);
    let members: Vec<u64> = ["_method_counters", "_method_data"]
        .iter()
        .filter_map(|name| vm.structs.offset("Method", name).ok())
        .collect();
    let is_plausible =
        |at: &Addr| at.is_aligned(8) && vm.target.mapping(*at).is_some_and(|mapping| mapping.is_anonymous());
    for array in methods {
        let count = windows.u64(array.at).unwrap_or(0) as u32 as u64;
        for index in 0..count.min(METHODS_MAX) {
            let Ok(method) = windows.addr(array.at.plus(data + index * 8)) else { break };
            let counters = members
                .iter()
                .filter_map(|offset| windows.addr(method.plus(*offset)).ok())
                .find(is_plausible);
            if let Some(at) = counters {
                return Some(Mark { at, loader: array.loader });
            }
        }
    }
    None
}

/// Claims the node around every mark. With compressed class pointers, what holds a class is the class space.
fn claim(vm: &Hotspot, mut classes: Marks, mut metadata: Marks, found: &mut Found) {
    let compressed = has_class_space(vm);
    let mut search = Search::new(vm, found);
    let mut nodes: Vec<(Node, Kind)> = Vec::new();
    for _ in 0..METASPACE_NODES_MAX {
        let (kind, mark) = match (classes.values().next(), metadata.values().next()) {
            (Some(mark), _) if compressed => (Kind::ClassSpace, *mark),
            (Some(mark), _) | (None, Some(mark)) => (Kind::Metaspace, *mark),
            (None, None) => break,
        };
        let Some(node) = search.node(mark) else {
            forget(&mut classes, Range::sized(mark.at, 1));
            forget(&mut metadata, Range::sized(mark.at, 1));
            continue;
        };
        forget(&mut classes, node.range);
        forget(&mut metadata, node.range);
        nodes.retain(|(other, _)| !node.range.covers(other.range));
        nodes.push((node, kind));
    }
    let missed = search.missed;
    for (node, kind) in nodes {
        let part = if kind == Kind::ClassSpace { "class space" } else { "metaspace node" };
        found.claim(node.range, kind, part, None, node.how);
    }
    if missed > 0 {
        let what = crate::base::counted(missed, "range") + " of class metadata outside of private mappings";
        found.gaps.push(Gap::new(what, Why::Torn));
    }
}

/// Drops the marks of all granules that begin in or hold the start of `range`.
fn forget(marks: &mut Marks, range: Range) {
    let first = range.start.0 / GRANULE_BYTES;
    let last = range.end.minus(1).0 / GRANULE_BYTES;
    let inside: Vec<u64> = marks.range(first..=last).map(|(granule, _)| *granule).collect();
    for granule in inside {
        marks.remove(&granule);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_granule_is_marked_once_and_forgotten_with_the_node_around_it() {
        let mut marking = Marking::new();
        for at in [0x10_0000, 0x10_0008, 0x11_0000, 0x10_0010, 0x900_0000] {
            marking.mark(Addr(at), Addr(1));
        }
        let mut marks = marking.marks;
        assert_eq!(
            marks.values().map(|mark| mark.at.0).collect::<Vec<_>>(),
            [0x10_0000, 0x11_0000, 0x900_0000]
        );
        forget(&mut marks, Range::of(0x10_0000, 0x20_0000));
        assert_eq!(marks.values().map(|mark| mark.at.0).collect::<Vec<_>>(), [0x900_0000]);
    }
}
