//! What the class loaders and classes keep in malloc: their dictionaries, packages and modules, handles, method ids, the
//! lists of compiled code that depends on a class, and metaspace's own lists.

use super::given::Given;
use super::owner::Owner;
use crate::base::limits::LOADERS_MAX;
use crate::base::{Addr, Known};
use crate::jvm::hotspot::Hotspot;

/// A `MetaspaceArena`, and a slab of 128 `Metachunk`s.
const ARENA_BYTES_MAX: u64 = 128;
/// Each slab points to a newer one, so the arenas of the oldest loaders lead to all.
const ARENAS_MAX: usize = 64;
const SLAB_BYTES: std::ops::Range<u64> = 4096..16384;

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
pub fn loaders(vm: &Hotspot, given: &mut Given) -> Vec<usize> {
    let Ok(members) = Members::read(vm) else { return Vec::new() };
    let mut found = Vec::new();
    let head = vm.static_addr("ClassLoaderDataGraph", "_head").unwrap_or(Addr::NULL);
    let mut loader = given.index.at_start(head.0);
    while let Some(block) =
        loader.filter(|block| found.len() < LOADERS_MAX && given.take(*block, Owner::Loaders))
    {
        found.push(block);
        loader = given.at_word(block, members.next / 8);
    }
    let mut arenas = Vec::new();
    for block in &found {
        if let Some(lock) = given.at_word(*block, members.lock / 8) {
            given.take(lock, Owner::Locks);
        }
        arenas.extend(metaspace(given, *block, members.metaspace));
        for offset in members.modules.into_iter().flat_map(|first| [first, first + 8, first + 16]) {
            branch(given, *block, offset, Owner::Modules);
        }
    }
    chunk_headers(given, &arenas);
    found
}

/// The loader's `ClassLoaderMetaspace` and its arenas, which are its own, and their lists of free blocks, which are
/// metaspace's. Gives the arenas (src/hotspot/share/memory/metaspace/metaspaceArena.hpp, JDK 16 to 25).
fn metaspace(given: &mut Given, block: usize, offset: u64) -> Vec<usize> {
    let Some(of_loader) = given.at_word(block, offset / 8).filter(|to| given.take(*to, Owner::LoaderBranch))
    else {
        return Vec::new();
    };
    let edges = given.contents.edges_of(of_loader).iter().map(|edge| edge.to as usize);
    let mut arenas: Vec<usize> = edges.collect();
    arenas.retain(|arena| {
        given.index.payload(*arena).bytes() <= ARENA_BYTES_MAX && given.take(*arena, Owner::LoaderBranch)
    });
    given.spread(arenas.clone(), Owner::Metaspace);
    arenas
}

/// The slabs in which the headers of metaspace's chunks lie: an arena points into them, and each points to the next
/// (src/hotspot/share/memory/metaspace/chunkHeaderPool.hpp).
fn chunk_headers(given: &mut Given, arenas: &[usize]) {
    let mut slabs = Vec::new();
    for arena in arenas.iter().rev().take(ARENAS_MAX) {
        let payload = given.index.payload(*arena);
        let words =
            given.memory.peek_words(payload.start, (payload.bytes() / 8) as usize).unwrap_or_default();
        let inner = words.into_iter().enumerate().filter(|(_, word)| given.index.at_start(*word).is_none());
        for (place, word) in inner {
            let holding = given
                .index
                .holding(word)
                .filter(|block| SLAB_BYTES.contains(&given.index.payload(*block).bytes()));
            if holding.is_some() {
                given.memory.used(payload.start.plus(place as u64 * 8), &word.to_le_bytes());
            }
            slabs.extend(holding.filter(|block| given.take(*block, Owner::MetaspaceHeaders)));
        }
    }
    let Some(bytes) = slabs.first().map(|slab| given.index.payload(*slab).bytes()) else { return };
    while let Some(slab) = slabs.pop() {
        let next =
            given.at_word(slab, 0).filter(|next| given.index.payload(*next).bytes().abs_diff(bytes) <= 16);
        slabs.extend(next.filter(|next| given.take(*next, Owner::MetaspaceHeaders)));
    }
}

fn branch(given: &mut Given, block: usize, offset: u64, owner: Owner) {
    if let Some(to) = given.at_word(block, offset / 8)
        && given.take(to, owner)
    {
        given.spread(vec![to], owner);
    }
}
