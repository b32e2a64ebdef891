//! Class metadata: the class space, and the nodes of the metaspace beside it.
//!
//! Neither is in vmStructs. Every class is reached through the loaders; where it and its metadata lie is marked in
//! granules, and `metaspace_nodes` finds the reserved stretch around each, so that a neighbour that the kernel shows in
//! one mapping with it (a heap of a malloc arena, for one) is left alone.

use super::metaspace_nodes::{self, Node};
use super::perf_memory::PerfMemory;
use super::window::Windows;
use super::{Found, Hotspot, class_graph};
use crate::base::limits::METASPACE_NODES_MAX;
use crate::base::{Addr, Gap, Known, Range, Why};
use crate::jvm::types::{ClassView, Kind};
use std::collections::BTreeMap;

/// 64 KiB: what JDK 16 and later commit at once.
const GRANULE_BYTES: u64 = 64 << 10;
/// 16 MiB of windows: as much as the class space of 20,000 classes.
const WINDOWS_MAX: usize = 256;

/// Where something was seen, and the loader that it was reached from.
#[derive(Clone, Copy)]
pub struct Mark {
    pub at: Addr,
    pub loader: Addr,
}

type Marks = BTreeMap<u64, Mark>;

pub fn read(vm: &Hotspot, found: &mut Found) -> Known<ClassView> {
    let mut windows = Windows::new(vm.target, WINDOWS_MAX);
    let known: Vec<Range> = found.extents.iter().map(|extent| extent.range).collect();
    let (mut classes, mut metadata) = (Marks::new(), Marks::new());
    let counts = class_graph::walk(vm, &mut windows, &mut |seen| {
        mark(&mut classes, seen.class, seen.loader);
        seen.metadata.iter().for_each(|at| mark(&mut metadata, *at, seen.loader));
    });
    for marks in [&mut classes, &mut metadata] {
        marks.retain(|_, mark| !known.iter().any(|range| range.has(mark.at)));
    }
    claim(vm, &mut windows, classes, metadata, found);
    found.note(counts.classes.as_ref().map_err(Gap::clone));
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
    })
}

fn mark(marks: &mut Marks, at: Addr, loader: Addr) {
    marks.entry(at.0 / GRANULE_BYTES).or_insert(Mark { at, loader });
}

/// Claims the node around every mark. With compressed class pointers, what holds a class is the class space.
fn claim(vm: &Hotspot, windows: &mut Windows, mut classes: Marks, mut metadata: Marks, found: &mut Found) {
    let compressed = vm.flags.is_on("UseCompressedClassPointers");
    let mut search = metaspace_nodes::Search::new(vm, windows, found);
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
        let what = format!("{missed} stretches of class metadata that lie in no private mapping");
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
