//! Pointers from metadata and from the code cache that may lead to blocks of malloc. They are noted while classes and
//! code are walked for other reasons: to walk them once more would cost as much as all the rest.

use super::owner::Owner;
use super::shapes::word;
use crate::base::Addr;
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::window::Windows;

const METHOD_BYTES_MAX: u64 = 1024;

/// What was seen so far: addresses that are not null, and whose a block would be that starts there.
#[derive(Default)]
pub struct Leads {
    found: Vec<(u64, Owner)>,
}

impl Leads {
    /// The members of an `InstanceKlass` from `_oop_map_cache` to `_osr_nmethods_head`: all of them point to malloc.
    pub fn of_class(&mut self, members: &[u64]) {
        self.found.extend(members.iter().filter(|at| **at != 0).map(|at| (*at, Owner::ClassBranch)));
    }

    pub fn into_found(self) -> Vec<(u64, Owner)> {
        self.found
    }
}

/// The members of code blobs that point to malloc: oop maps, and of compiled methods all between those of a `CodeBlob` and
/// the code: the caches of exceptions, of program counters, of inline caches, and the data that JDK 25 keeps outside.
pub struct BlobMembers {
    of_blob: Vec<u64>,
    /// From where to where in a compiled method.
    of_method: std::ops::Range<u64>,
    of_collector: Option<u64>,
    header: Vec<u8>,
}

impl BlobMembers {
    pub fn read(vm: &Hotspot) -> BlobMembers {
        let member = |owner, name| vm.structs.offset(owner, name).ok();
        let of_blob = [member("CodeBlob", "_oop_maps"), member("CodeBlob", "_mutable_data")];
        let bytes = |name| vm.structs.size_of(name).unwrap_or(0).min(METHOD_BYTES_MAX) & !7;
        let exceptions =
            member("nmethod", "_exception_cache").or_else(|| member("CompiledMethod", "_exception_cache"));
        BlobMembers {
            of_blob: of_blob.into_iter().flatten().collect(),
            of_method: bytes("CodeBlob")..bytes("nmethod"),
            // `_gc_data` (src/hotspot/share/code/nmethod.hpp; compiledMethod.hpp before JDK 23).
            of_collector: exceptions.map(|offset| offset + 8),
            header: vec![0; bytes("nmethod") as usize],
        }
    }

    /// A blob that the walk passes.
    pub fn see(&mut self, windows: &Windows, blob: Addr, is_method: bool, leads: &mut Leads) {
        for offset in &self.of_blob {
            let at = windows.u64(blob.plus(*offset)).unwrap_or(0);
            leads.found.extend((at != 0).then_some((at, Owner::BlobData)));
        }
        if !is_method || windows.read(blob, &mut self.header).is_err() {
            return;
        }
        for offset in self.of_method.clone().step_by(8) {
            let at = word(&self.header, offset as usize);
            // Most members are numbers.
            if at >> 32 != 0 && at >> 48 == 0 && at.is_multiple_of(16) {
                let owner =
                    if self.of_collector == Some(offset) { Owner::GcBranch } else { Owner::BlobBranch };
                leads.found.push((at, owner));
            }
        }
    }
}
