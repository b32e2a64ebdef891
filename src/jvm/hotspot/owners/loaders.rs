//! What the class loaders and classes keep in malloc: their dictionaries, packages and modules, handles, method ids, the
//! lists of compiled code that depends on a class, and metaspace's own lists.

use super::Given;
use super::owner::Owner;
use crate::base::limits::LOADERS_MAX;
use crate::base::{Addr, Known};
use crate::jvm::hotspot::window::Windows;
use crate::jvm::hotspot::{Hotspot, class_graph};

/// The members of a `ClassLoaderData` that vmStructs does not name lie around two that it does, in the same order in JDK 10
/// to 25 (src/hotspot/share/classfile/classLoaderData.hpp): `_holder`, `_class_loader`, `_metaspace`, `_metaspace_lock`,
/// flags, `_handles`, `_klasses`, `_packages`, `_modules`, `_unnamed_module`, `_dictionary`, `_jmethod_ids`,
/// `_deallocate_list`, `_next`. That `_next` lies seven words after `_klasses` proves it.
struct Members {
    metaspace: u64,
    lock: u64,
    next: u64,
    /// `_packages`, `_modules`, `_unnamed_module`; `None` where the order is another.
    modules: Option<u64>,
}

impl Members {
    fn read(vm: &Hotspot) -> Known<Members> {
        let offset = |name| vm.structs.offset("ClassLoaderData", name);
        let (loader, next) = (offset("_class_loader")?, offset("_next")?);
        let klasses = offset("_klasses").ok().filter(|klasses| klasses + 56 == next);
        Ok(Members {
            metaspace: loader + 8,
            lock: loader + 16,
            next,
            modules: klasses.map(|klasses| klasses + 8),
        })
    }
}

/// Every `ClassLoaderData`, and what those of its members point to that have an owner of their own. Gives the blocks of the
/// loaders.
pub fn loaders(vm: &Hotspot, windows: &Windows, given: &mut Given) -> Vec<usize> {
    let Ok(members) = Members::read(vm) else { return Vec::new() };
    let mut found = Vec::new();
    let mut loader = vm.static_addr("ClassLoaderDataGraph", "_head").unwrap_or(Addr::NULL);
    while found.len() < LOADERS_MAX {
        let Some(block) = given.give(loader.0, Owner::Loaders) else { break };
        found.push(block);
        loader = windows.addr(loader.plus(members.next)).unwrap_or_default();
    }
    for block in &found {
        if let Some(lock) = given.at_word(*block, members.lock / 8) {
            given.take(lock, Owner::Locks);
        }
        branch(given, *block, members.metaspace, Owner::Metaspace);
        for offset in members.modules.into_iter().flat_map(|first| [first, first + 8, first + 16]) {
            branch(given, *block, offset, Owner::Modules);
        }
    }
    found
}

fn branch(given: &mut Given, block: usize, offset: u64, owner: Owner) {
    if let Some(to) = given.at_word(block, offset / 8)
        && given.take(to, owner)
    {
        given.spread(vec![to], owner);
    }
}

/// From `_oop_map_cache` to `_osr_nmethods_head` every member of an `InstanceKlass` points to malloc: JNI ids, method ids,
/// dependent code (src/hotspot/share/oops/instanceKlass.hpp, JDK 8 to 25).
pub fn classes(vm: &Hotspot, windows: &Windows, given: &mut Given) {
    let offset = |name| vm.structs.offset("InstanceKlass", name);
    let (Ok(first), Ok(end)) = (offset("_oop_map_cache"), offset("_osr_nmethods_head")) else { return };
    let mut members = vec![0; end.saturating_sub(first).min(128) as usize];
    let mut found = Vec::new();
    class_graph::walk(vm, windows, &mut |seen| {
        // Array classes have no methods, and are shorter.
        if !seen.methods.is_null() && windows.read(seen.class.plus(first), &mut members).is_ok() {
            for member in members.as_chunks::<8>().0 {
                found.extend(given.give(u64::from_le_bytes(*member), Owner::ClassBranch));
            }
        }
    });
    given.spread(found, Owner::ClassBranch);
}
