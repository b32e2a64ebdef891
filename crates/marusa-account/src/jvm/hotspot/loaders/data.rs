//! The members of a `ClassLoaderData` that say whose metaspace it is: the class and the name of its loader, and whether it is
//! one of a hidden class (src/hotspot/share/classfile/classLoaderData.hpp).
//!
//! vmStructs names `_class_loader`, `_next` and, from JDK 11 on, `_has_class_mirror_holder` (`_is_anonymous` up to 14). The
//! others follow these: `_metaspace` and `_metaspace_lock` after `_class_loader` (JDK 10 to 25), `_class_loader_klass` and `_name`
//! after `_next`, or after `_unloading_next` from JDK 20 on. The chunks prove the first two (`chunks`), the class proves the rest.

use crate::base::{Addr, Gap, Known, Why};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::class_graph::{addr_now, words_now};
use crate::jvm::hotspot::objects::ClassWord;
use std::collections::HashSet;

/// A `ClassLoaderData` has 88 (JDK 8) to 160 bytes (JDK 25).
const BYTES_MAX: u64 = 256;
/// Loaders that are asked for the place of the class.
const ASKED_MAX: usize = 256;

/// One `ClassLoaderData`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoaderData {
    pub at: Addr,
    /// Null: nothing was allocated yet.
    pub metaspace: Addr,
    pub lock: Addr,
    /// That of a hidden class, whose host's loader the class and the name are of.
    pub is_hidden: bool,
    /// The loader's `Klass`; null: the bootstrap loader.
    pub class: Addr,
    /// A `Symbol`, or null.
    pub name: Addr,
}

pub struct Layout {
    metaspace: u64,
    unloading: u64,
    hidden: u64,
    class: ClassAt,
    words: usize,
    loader_data: u64,
}

enum ClassAt {
    /// A `Klass*`, and the name after it.
    Klass(u64),
    /// The loader itself, which has no name (JDK 8).
    Object(u64, ClassWord),
}

impl Layout {
    pub fn read(vm: &Hotspot, loaders: &[Addr]) -> Known<Layout> {
        let offset = |name| vm.structs.offset("ClassLoaderData", name);
        let (loader, next) = (offset("_class_loader")?, offset("_next")?);
        let flag = offset("_has_class_mirror_holder").or_else(|_| offset("_is_anonymous"));
        let loader_data = vm.structs.offset("InstanceKlass", "_class_loader_data")?;
        let is_jdk8 = loader == 0 && next == 72;
        let (metaspace, hidden) = match flag {
            Ok(flag) => (loader + 8, flag),
            // `_class_loader`, `_dependencies`, `_metaspace`, `_metaspace_lock`, `_unloading`, `_keep_alive`, `_is_anonymous`.
            Err(_) if is_jdk8 => (16, 34),
            Err(gap) => return Err(gap),
        };
        let unloading = metaspace + 16;
        if !(unloading + 1..unloading + 8).contains(&hidden) || next + 40 > BYTES_MAX {
            return Err(Gap::new("layout of ClassLoaderData", Why::NotInThisRuntime));
        }
        let class = match flag.is_ok() {
            true => ClassAt::Klass(class_at(vm, loaders, next, loader_data)?),
            false => ClassAt::Object(loader, ClassWord::read(vm)?),
        };
        let last = match class {
            ClassAt::Klass(at) => at + 8,
            ClassAt::Object(..) => hidden,
        };
        Ok(Layout { metaspace, unloading, hidden, class, words: (last / 8 + 1) as usize, loader_data })
    }

    /// `None`: it goes away just now, and the VM counts it no more.
    pub fn loader(&self, vm: &Hotspot, at: Addr) -> Known<Option<LoaderData>> {
        let gap = |why| Gap::new("a class loader", why);
        let words = words_now(vm, at, self.words).map_err(|fault| fault.gap("a class loader"))?;
        let byte = |offset: u64| (words[(offset / 8) as usize] >> (offset % 8 * 8)) as u8;
        let word = |offset: u64| Addr(words[(offset / 8) as usize]);
        let (unloading, hidden) = (byte(self.unloading), byte(self.hidden));
        if unloading > 1 || hidden > 1 {
            return Err(gap(Why::BadData(at)));
        }
        let (class, name) = match self.class {
            ClassAt::Klass(offset) => (word(offset), word(offset + 8)),
            ClassAt::Object(offset, head) => {
                (class_of(vm, word(offset), head, self.loader_data)?, Addr::NULL)
            }
        };
        let (metaspace, lock) = (word(self.metaspace), word(self.metaspace + 8));
        let data = LoaderData { at, metaspace, lock, is_hidden: hidden == 1, class, name };
        Ok((unloading == 0).then_some(data))
    }
}

/// Where loaders have the class of their object: a class knows a loader that there is.
fn class_at(vm: &Hotspot, loaders: &[Addr], next: u64, loader_data: u64) -> Known<u64> {
    let known: HashSet<Addr> = loaders.iter().copied().collect();
    let is_class = |class: Addr| {
        class.is_aligned(8)
            && vm.memory().addr(class.plus(loader_data)).is_ok_and(|loader| known.contains(&loader))
    };
    // The oldest are the ones that every program has.
    let asked = loaders.iter().rev().take(ASKED_MAX);
    let found = [next + 8, next + 16].into_iter().find(|offset| {
        let mut classes = asked
            .clone()
            .filter_map(|at| addr_now(vm, at.plus(*offset)).ok())
            .filter(|class| !class.is_null());
        classes.next().is_some_and(is_class)
    });
    found.ok_or_else(|| Gap::new("ClassLoaderData::_class_loader_klass", Why::NotInThisRuntime))
}

/// The class of an object; null for null.
fn class_of(vm: &Hotspot, object: Addr, head: ClassWord, loader_data: u64) -> Known<Addr> {
    if object.is_null() {
        return Ok(object);
    }
    let read = || {
        let words = vm.memory().words(object, 2)?;
        let class = Addr(head.class(words[0], words[1]));
        vm.memory().addr(class.plus(loader_data))?;
        Ok(class)
    };
    read().map_err(|fault: crate::os::Fault| fault.gap("the class of a class loader"))
}
