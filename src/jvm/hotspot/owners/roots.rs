//! Where owners begin: what lies outside malloc, or is known by name, and points to blocks.

use super::contents::Edge;
use super::given::Given;
use super::owner::Owner;
use super::shapes::{Shape, word};
use super::{libraries, loaders, tables};
use crate::base::Addr;
use crate::jvm::hotspot::window::Windows;
use crate::jvm::hotspot::{Hotspot, code_cache};
use crate::jvm::types::{JvmView, ThreadKind};
use std::collections::HashMap;

const METHOD_BYTES_MAX: u64 = 1024;
const NAME_BYTES_MAX: usize = 64;
const ARENA_BYTES_MAX: u64 = 128;

/// Gives owners to what is reached from each root, the surest first.
pub fn spread(vm: &Hotspot, view: &JvmView, given: &mut Given) {
    let windows = Windows::new(vm.target);
    tables::handles(vm, given);
    tables::nodes(given);
    tables::buckets(given);
    tables::locks(given);
    libraries::zlib(given);
    code(vm, &windows, given);
    monitors(vm, &windows, given);
    threads(vm, view, given);
    let loaders = loaders::loaders(vm, &windows, given);
    gc(vm, given);
    given.spread(loaders, Owner::LoaderBranch);
    loaders::classes(vm, &windows, given);
}

/// What each blob points to: its oop maps, and of compiled methods also the other members between those of a `CodeBlob` and
/// the code: the cache of exceptions, of program counters, of inline caches, and the data that JDK 25 keeps outside.
fn code(vm: &Hotspot, windows: &Windows, given: &mut Given) {
    let member = |owner, name| vm.structs.offset(owner, name).ok();
    let of_blob = [member("CodeBlob", "_oop_maps"), member("CodeBlob", "_mutable_data")];
    let (Some(name), Ok(blob_bytes), Ok(method_bytes)) =
        (member("CodeBlob", "_name"), vm.structs.size_of("CodeBlob"), vm.structs.size_of("nmethod"))
    else {
        return;
    };
    // `_gc_data` follows (src/hotspot/share/code/nmethod.hpp, JDK 14 to 25; compiledMethod.hpp before 23).
    let exceptions =
        member("nmethod", "_exception_cache").or_else(|| member("CompiledMethod", "_exception_cache"));
    let of_collector = exceptions.map(|offset| offset + 8);
    let mut header = vec![0; method_bytes.min(METHOD_BYTES_MAX) as usize & !7];
    let mut is_method = HashMap::new();
    let _ = code_cache::each_blob(vm, windows, &mut |blob| {
        for offset in of_blob.iter().flatten() {
            given.give(windows.u64(blob.plus(*offset)).unwrap_or(0), Owner::BlobData);
        }
        let name = windows.u64(blob.plus(name)).unwrap_or(0);
        let is_method = *is_method.entry(name).or_insert_with(|| {
            vm.memory().c_string(Addr(name), NAME_BYTES_MAX).is_ok_and(|name| name.ends_with("nmethod"))
        });
        if is_method && windows.read(blob, &mut header).is_ok() {
            for offset in (blob_bytes & !7..header.len() as u64).step_by(8) {
                let owner = if of_collector == Some(offset) { Owner::GcBranch } else { Owner::BlobBranch };
                given.give(word(&header, offset as usize), owner);
            }
        }
    });
}

fn monitors(vm: &Hotspot, windows: &Windows, given: &mut Given) {
    let (Ok(list), Ok(head), Ok(next)) = (
        vm.structs.static_at("ObjectSynchronizer", "_in_use_list"),
        vm.structs.offset("MonitorList", "_head"),
        vm.structs.offset("ObjectMonitor", "_next_om"),
    ) else {
        return;
    };
    let mut monitor = windows.addr(list.plus(head)).unwrap_or_default();
    while !monitor.is_null() && given.give(monitor.0, Owner::Monitors).is_some() {
        monitor = windows.addr(monitor.plus(next)).unwrap_or_default();
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

fn gc(vm: &Hotspot, given: &mut Given) {
    let roots = [("Universe", "_collectedHeap"), ("BarrierSet", "_barrier_set")];
    let roots = roots.map(|(owner, name)| vm.static_addr(owner, name).unwrap_or(Addr::NULL));
    let found = roots.into_iter().filter_map(|root| given.give(root.0, Owner::GcBranch)).collect();
    given.spread(found, Owner::GcBranch);
}
