//! Pointers from metadata and from the code cache that may lead to blocks of malloc. They are noted while classes and
//! code are walked for other reasons: to walk them once more would cost as much as all the rest.

use super::owner::Owner;
use crate::base::Addr;
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::class_graph::ClassSeen;
use crate::jvm::hotspot::window::{Windows, word};

const METHOD_BYTES_MAX: u64 = 1024;
/// The sizes of objects that lead to direct buffers: they may have no fields but those of the header.
const SMALL_BYTES: std::ops::Range<i32> = 8..73;

/// What was seen so far.
#[derive(Default)]
pub struct Leads {
    /// Addresses that are not null, and whose a block would be that starts there.
    pub pointers: Vec<(u64, Owner)>,
    pub small_classes: Vec<SmallClass>,
}

/// A class of small objects, or of arrays.
pub struct SmallClass {
    pub loader: Addr,
    pub class: Addr,
    pub name: Addr,
    /// `Klass::_layout_helper`.
    pub layout: i32,
}

impl Leads {
    /// The ones that were noted first are asked first.
    pub fn put_before(&mut self, mut first: Leads) {
        first.pointers.append(&mut self.pointers);
        first.small_classes.append(&mut self.small_classes);
        *self = first;
    }

    pub fn of_class(&mut self, seen: &ClassSeen) {
        let aside = seen.aside.iter().filter(|at| **at != 0);
        self.pointers.extend(aside.map(|at| (*at, Owner::ClassBranch)));
        let (loader, class, name, layout) = (seen.loader, seen.class, seen.name, seen.layout);
        if (layout < 0 || SMALL_BYTES.contains(&layout)) && !name.is_null() {
            self.small_classes.push(SmallClass { loader, class, name, layout });
        }
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
            leads.pointers.extend((at != 0).then_some((at, Owner::BlobData)));
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
                leads.pointers.push((at, owner));
            }
        }
    }
}
