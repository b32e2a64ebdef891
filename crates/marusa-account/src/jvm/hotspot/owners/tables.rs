//! Tables of which the entries are known: the nodes of the symbol table and of the string table, the arrays of buckets
//! that point to them, and the blocks of handles by the name of their `OopStorage`.

use super::given::Given;
use super::owner::Owner;
use super::shapes::Shape;
use crate::base::Addr;
use crate::jvm::hotspot::Hotspot;
use crate::os::Memory;
use std::collections::HashMap;

/// `OopStorage::Block`: 64 oops, the bitmap of those in use, the storage.
const STORAGE_WORD: u64 = 65;
const OOP_BLOCK_ALIGNMENT: u64 = 64;
const NAME_BYTES_MAX: usize = 64;
/// What an array of buckets, or of entries up to JDK 11, points to, and the owner of that.
const ENTRIES: [(Owner, Owner); 3] = [
    (Owner::SymbolTable, Owner::SymbolTable),
    (Owner::StringTable, Owner::StringTable),
    (Owner::Symbols, Owner::SymbolTable),
];
/// The least share of the pointers in an array of buckets that point to nodes.
const NODES_SHARE_MIN: f64 = 0.9;

/// Blocks of handles, by their storage's name; nodes that point to them.
pub fn handles(vm: &Hotspot, given: &mut Given) {
    let mut storages: HashMap<usize, Option<Owner>> = HashMap::new();
    for block in std::mem::take(&mut given.candidates.oop_blocks) {
        let start = given.index.payload(block).start;
        let skipped = (start.up_to(OOP_BLOCK_ALIGNMENT).0 - start.0) / 8;
        let Some(storage) = given.at_word(block, skipped + STORAGE_WORD) else { continue };
        let owner =
            *storages.entry(storage).or_insert_with(|| storage_owner(vm, given.index.payload(storage).start));
        if let Some(owner) = owner {
            given.take(block, owner);
        }
    }
    for (storage, owner) in storages {
        let Some(owner) = owner else { continue };
        given.take(storage, owner);
        // `OopStorage::_active_array`.
        for edge in given.contents.edges_of(storage) {
            let array = edge.to as usize;
            let is_array = given
                .contents
                .edges_of(array)
                .iter()
                .any(|edge| given.shape(edge.to as usize) == Shape::OopBlock);
            if is_array {
                given.take(array, owner);
            }
        }
    }
}

/// `OopStorage::_name` is its first word, or its second where the class has a virtual table.
fn storage_owner(vm: &Hotspot, storage: Addr) -> Option<Owner> {
    let words = vm.memory().peek_words(storage, 2).ok()?;
    let names = words.into_iter().enumerate().filter(|(_, at)| *at > 4096);
    names.into_iter().find_map(|(index, at)| {
        let name = name_at(vm.memory(), Addr(at))?;
        let owner = owner_named(&name)?;
        vm.memory().used(storage.plus(index as u64 * 8), &at.to_le_bytes());
        vm.memory().used(Addr(at), &[name.as_bytes(), &[0]].concat());
        Some(owner)
    })
}

/// What may be the name of a storage: another's text is none of ours to keep.
fn name_at(memory: &dyn Memory, at: Addr) -> Option<String> {
    let mut name = Vec::new();
    while name.len() < NAME_BYTES_MAX {
        let mut byte = [0];
        memory.peek(at.plus(name.len() as u64), &mut byte).ok()?;
        match byte {
            [0] => return String::from_utf8(name).ok(),
            [byte] => name.push(byte),
        }
    }
    None
}

/// Names and tags of the storages: src/hotspot/share, `OopStorageSet::create_strong` and `create_weak`, JDK 11 to 25.
fn owner_named(name: &str) -> Option<Owner> {
    Some(match name {
        "StringTable weak" | "StringTable Weak" => Owner::StringHandles,
        _ if name.starts_with("ResolvedMethodTable") => Owner::ClassHandles,
        _ if name.starts_with("ObjectSynchronizer") || name.starts_with("ObjectMonitor") => {
            Owner::MonitorHandles
        }
        _ if name.starts_with("JNI ") || name.starts_with("VM ") => Owner::InternalHandles,
        _ if name.starts_with("Thread OopStorage") => Owner::ThreadHandles,
        _ if name.starts_with("ThreadService") || name.starts_with("JVMTI") || name.starts_with("Jvmti") => {
            Owner::ServiceHandles
        }
        _ if name.starts_with("StringDedup") => Owner::DedupHandles,
        _ => return None,
    })
}

/// Nodes, after `handles` and the shapes.
pub fn nodes(given: &mut Given) {
    for block in std::mem::take(&mut given.candidates.nodes) {
        let Some(to) = given.at_word(block, 1) else { continue };
        let owner = match (given.shape(block), given.owners[to]) {
            (Shape::InnerNode, Some(Owner::StringHandles)) => Owner::StringTable,
            (Shape::InnerNode, Some(Owner::ClassHandles)) => Owner::ClassHandles,
            (Shape::Monitor, Some(Owner::MonitorHandles)) => Owner::MonitorsByHandle,
            _ => continue,
        };
        given.take(block, owner);
    }
    // Symbols that are never freed lie in an arena.
    for arena in given.arenas_of_symbols() {
        given.owners[arena] = Some(Owner::SymbolChunks);
    }
}

/// A `Mutex` in a block of its own, by the copy of its name (JDK 11 to 25, src/hotspot/share/runtime/mutex.hpp).
pub fn locks(given: &mut Given) {
    for block in std::mem::take(&mut given.candidates.locks) {
        let edges = given.contents.edges_of(block);
        if edges.iter().any(|edge| given.owners[edge.to as usize] == Some(Owner::LockNames)) {
            given.take(block, Owner::Locks);
        }
    }
}

/// Arrays most of whose words point to the nodes of one table.
pub fn buckets(given: &mut Given) {
    for block in std::mem::take(&mut given.candidates.arrays) {
        let edges = given.contents.edges_of(block);
        for (entry, owner) in ENTRIES {
            let nodes = edges.iter().filter(|edge| given.owners[edge.to as usize] == Some(entry)).count();
            if nodes as f64 >= NODES_SHARE_MIN * edges.len() as f64 {
                given.take(block, owner);
                break;
            }
        }
    }
}
