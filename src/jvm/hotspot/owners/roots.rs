//! Where owners begin: what lies outside malloc, or is known by name, and points to blocks.

use super::Given;
use super::owner::Owner;
use super::shapes::word;
use super::{libraries, loaders, tables};
use crate::base::Addr;
use crate::jvm::hotspot::window::Windows;
use crate::jvm::hotspot::{Hotspot, code_cache};
use crate::jvm::types::JvmView;
use std::collections::HashMap;

const METHOD_BYTES_MAX: u64 = 1024;
const NAME_BYTES_MAX: usize = 64;

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

/// The `Thread` objects, what their `OSThread`s and resource areas are, and their blocks of JNI handles.
fn threads(vm: &Hotspot, view: &JvmView, given: &mut Given) {
    let offset = |name: &str| vm.structs.offset("JavaThread", name).ok();
    let own: Vec<u64> = ["_osthread", "_resource_area"].iter().filter_map(|name| offset(name)).collect();
    let handles = offset("_active_handles");
    let (mut found, mut blocks) = (Vec::new(), Vec::new());
    for object in view.threads.iter().filter_map(|thread| thread.object) {
        let Some(thread) = given.give(object.0, Owner::Threads) else { continue };
        found.extend(own.iter().filter_map(|offset| given.at_word(thread, offset / 8)));
        blocks.extend(handles.and_then(|offset| given.at_word(thread, offset / 8)));
    }
    for block in found {
        given.take(block, Owner::ThreadBranch);
    }
    blocks.retain(|block| given.take(*block, Owner::HandleBlocks));
    given.spread(blocks, Owner::HandleBlocks);
}

fn gc(vm: &Hotspot, given: &mut Given) {
    let roots = [("Universe", "_collectedHeap"), ("BarrierSet", "_barrier_set")];
    let roots = roots.map(|(owner, name)| vm.static_addr(owner, name).unwrap_or(Addr::NULL));
    let found = roots.into_iter().filter_map(|root| given.give(root.0, Owner::GcBranch)).collect();
    given.spread(found, Owner::GcBranch);
}
