//! Where owners begin: what lies outside malloc, or is known by name, and points to blocks.

use super::contents::Edge;
use super::given::Given;
use super::leads::Leads;
use super::owner::Owner;
use super::shapes::{Shape, fits_pages};
use super::{direct, libraries, loaders, tables};
use crate::base::Addr;
use crate::base::limits::MONITORS_MAX;
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::heap::z_pages;
use crate::jvm::hotspot::window::Windows;
use crate::jvm::types::{Gc, JvmView, ThreadKind};

const ARENA_BYTES_MAX: u64 = 128;
const TASK_QUEUE_BYTES: u64 = 1 << 20;
const TASK_QUEUE_ENTRY_BYTES: [u64; 2] = [8, 16];

/// Gives owners to what is reached from each root, the surest first.
pub fn spread(vm: &Hotspot, view: &JvmView, leads: &Leads, given: &mut Given) {
    tables::handles(vm, given);
    tables::nodes(given);
    tables::buckets(given);
    tables::locks(given);
    libraries::zlib(given);
    monitors(vm, given);
    let classes = lead(leads, given);
    threads(vm, view, given);
    let loaders = loaders::loaders(vm, given);
    gc(vm, view, given);
    given.spread(loaders, Owner::LoaderBranch);
    given.spread(classes, Owner::ClassBranch);
    task_queues(given);
    // With Native Memory Tracking on, direct buffers have headers: `unsafe_memory` looks for them.
    if !view.is_tracked() {
        direct::buffers(vm, view, &leads.small_classes, given);
    }
}

/// What the code cache and the classes point to. Gives the blocks of the classes.
fn lead(leads: &Leads, given: &mut Given) -> Vec<usize> {
    let mut classes = Vec::new();
    for (at, owner) in &leads.pointers {
        let (at, owner) = (*at, *owner);
        let block = given.give(at, owner);
        classes.extend(block.filter(|_| owner == Owner::ClassBranch));
    }
    classes
}

/// The monitors in use: a list of them, some of which may be newer than the walk (JDK 16 on), or a list of blocks of them,
/// each of which begins within a block of malloc (up to JDK 11: `gBlockList`).
fn monitors(vm: &Hotspot, given: &mut Given) {
    let windows = Windows::new(vm.target);
    let offset = |owner, name| vm.structs.offset(owner, name);
    if let (Ok(list), Ok(head), Ok(next)) = (
        vm.structs.static_at("ObjectSynchronizer", "_in_use_list"),
        offset("MonitorList", "_head"),
        offset("ObjectMonitor", "_next_om"),
    ) {
        let mut monitor = vm.memory().u64(list.plus(head)).unwrap_or(0);
        for _ in 0..MONITORS_MAX {
            if monitor == 0 {
                break;
            }
            given.give(monitor, Owner::Monitors);
            monitor = windows.u64(Addr(monitor).plus(next)).unwrap_or(0);
        }
    }
    if let (Ok(head), Ok(next)) =
        (vm.static_addr("ObjectSynchronizer", "gBlockList"), offset("ObjectMonitor", "FreeNext"))
    {
        let mut monitors = head;
        while given.index.holding(monitors.0).is_some_and(|block| given.take(block, Owner::MonitorBlocks)) {
            monitors = windows.addr(monitors.plus(next)).unwrap_or_default();
        }
    }
}

/// The `Thread` objects, their `OSThread`s, their arenas with what these hold, and their blocks of JNI handles.
fn threads(vm: &Hotspot, view: &JvmView, given: &mut Given) {
    let offset = |name: &str| vm.structs.offset("JavaThread", name).ok();
    let (system, handles) = (offset("_osthread"), offset("_active_handles"));
    for thread in &view.threads {
        let Some(block) = thread.object.and_then(|object| given.give(object.0, Owner::Threads)) else {
            continue;
        };
        if let Some(system) = system.and_then(|offset| given.at_word(block, offset / 8)) {
            given.take(system, Owner::ThreadBranch);
        }
        if let Some(handles) = handles.and_then(|offset| given.at_word(block, offset / 8))
            && given.take(handles, Owner::HandleBlocks)
        {
            given.spread(vec![handles], Owner::HandleBlocks);
        }
        let chunks = match thread.kind {
            ThreadKind::Compiler => Owner::CompilerChunks,
            _ => Owner::ThreadChunks,
        };
        for edge in given.contents.edges_of(block) {
            arena(given, edge.to as usize, chunks);
        }
    }
}

/// An `Arena` that a thread points to: `_first` and `_chunk` are two ends of a list.
fn arena(given: &mut Given, arena: usize, owner: Owner) {
    let contents = given.contents;
    let points_to_chunk = |edge: &&Edge| contents.shapes[edge.to as usize] == Shape::Chunk;
    let is_small = given.index.payload(arena).bytes() <= ARENA_BYTES_MAX;
    let Some(first) = contents.edges_of(arena).iter().find(points_to_chunk).filter(|_| is_small) else {
        return;
    };
    given.take(arena, Owner::ThreadBranch);
    let mut chunk = Some(first.to as usize);
    while let Some(block) = chunk.filter(|block| given.owners[*block] == Some(Owner::Chunks)) {
        given.owners[block] = Some(owner);
        chunk = given.at_word(block, 0);
    }
}

/// ZGC's table of pages, which leads to the bitmaps of each, is a mapping: nothing in malloc points to a page.
fn gc(vm: &Hotspot, view: &JvmView, given: &mut Given) {
    let roots = [("Universe", "_collectedHeap"), ("BarrierSet", "_barrier_set")];
    let roots = roots.map(|(owner, name)| vm.static_addr(owner, name).unwrap_or(Addr::NULL));
    let is_z = matches!(view.gc, Ok(Gc::Z | Gc::ZGenerational));
    let pages = is_z.then(|| z_pages::objects(vm).ok()).flatten().unwrap_or_default();
    let roots = roots.into_iter().chain(pages);
    let found = roots.filter_map(|root| given.give(root.0, Owner::GcBranch)).collect();
    given.spread(found, Owner::GcBranch);
}

/// The arrays of the collector's task queues, of 2^17 entries each, to which the queues point: only G1 hangs them on its
/// heap object (src/hotspot/share/gc/shared/taskqueue.hpp, `TASKQUEUE_SIZE`). A direct buffer of the same size is pointed to
/// from the Java heap alone.
fn task_queues(given: &mut Given) {
    let contents = given.contents;
    let is_array = |block: &&usize| {
        let payload = given.index.payload(**block);
        payload.bytes() >= TASK_QUEUE_BYTES
            && given.owners[**block].is_none()
            && TASK_QUEUE_ENTRY_BYTES.iter().any(|bytes| fits_pages(payload, bytes << 17))
    };
    let arrays: Vec<usize> = given.candidates.large.iter().filter(is_array).copied().collect();
    if arrays.is_empty() {
        return;
    }
    let found: Vec<&Edge> =
        contents.edges.iter().filter(|edge| arrays.binary_search(&(edge.to as usize)).is_ok()).collect();
    // A queue's members are padded, so the arrays of two queues in one object are not named side by side. What names them so is a
    // list of large blocks: memtables of RocksDB have this size too.
    let is_listed = |edge: &Edge| {
        found.iter().any(|other| other.from == edge.from && other.word.abs_diff(edge.word) == 1)
    };
    for edge in found.iter().filter(|edge| !is_listed(edge)) {
        given.take(edge.to as usize, Owner::TaskQueues);
        given.take(edge.from as usize, Owner::TaskQueues);
    }
}
