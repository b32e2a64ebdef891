//! HotSpot, JDK 8 to 25 and on, read through its own tables (vmStructs).
//!
//! Each file reads one part of the VM and hands over extents (who owns which addresses) and gaps. A part that cannot be
//! read never stops the others.

pub mod buffers;
pub mod cds;
pub mod class_graph;
pub mod code_cache;
mod compiling;
pub mod find;
pub mod flags;
mod flags_kept;
pub mod heap;
pub mod histogram;
pub mod holders;
pub mod launch;
pub mod loaders;
pub mod metaspace;
mod metaspace_lists;
pub mod metaspace_nodes;
pub mod names;
pub mod nmt;
mod objects;
pub mod owners;
pub mod perf_memory;
pub mod report;
pub mod stacks;
pub mod summary;
mod symbols;
mod thread_list;
pub mod thread_names;
pub mod threads;
pub mod version;
pub mod vm_work;
pub mod vmstructs;
pub mod window;

use super::types::{CodeHeapView, Extent, How, JvmView, Kind};
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::os::budget;
use crate::os::elf::Image;
use crate::os::target::NoSymbols;
use crate::os::{Memory, Target};
use flags::Flags;
use owners::leads::Leads;
use std::cell::RefCell;
use vmstructs::VmStructs;

/// What every reader of a part gets.
pub struct Hotspot<'a> {
    pub target: &'a Target<'a>,
    pub image: &'a Image,
    pub structs: &'a VmStructs,
    pub flags: &'a Flags,
    /// 8, 11, 17, 21, 25; `None` when the version string makes no sense. Ask for fields, not for this, where possible.
    pub major: Option<u32>,
    /// What the readers noted for those who look for the owners of malloc's blocks.
    pub leads: &'a RefCell<Leads>,
}

/// What the readers found so far.
#[derive(Default)]
pub struct Found {
    pub extents: Vec<Extent>,
    pub gaps: Vec<Gap>,
    pub leads: Leads,
}

impl Found {
    pub fn claim(
        &mut self,
        range: Range,
        kind: Kind,
        part: impl Into<String>,
        in_use: impl Into<Option<Bytes>>,
        how: How,
    ) {
        if !range.is_empty() {
            self.extents.push(Extent { range, kind, part: part.into(), in_use_bytes: in_use.into(), how });
        }
    }

    /// Keeps the gap of a part that could not be read, and goes on.
    pub fn note<T>(&mut self, known: Known<T>) -> Option<T> {
        known.map_err(|gap| self.gaps.push(gap)).ok()
    }

    /// Whether some extent of the VM already covers `at`.
    pub fn claims(&self, at: Addr) -> bool {
        self.extents.iter().any(|extent| extent.range.has(at))
    }
}

impl Hotspot<'_> {
    pub fn memory(&self) -> &dyn Memory {
        self.target.memory
    }

    /// Reads the memory as it is now: other readers may have kept some of it from before a collection.
    pub fn now<T>(&self, read: impl FnOnce(&Hotspot) -> T) -> T {
        let Some(memory) = self.memory().another() else { return read(self) };
        let target = Target { view: self.target.view, memory: memory.as_ref(), symbols: self.target.symbols };
        let Hotspot { image, structs, flags, major, .. } = *self;
        read(&Hotspot { target: &target, image, structs, flags, major, leads: &RefCell::default() })
    }

    pub fn addr(&self, object: Addr, owner: &str, name: &str) -> Known<Addr> {
        self.structs.read_addr(self.memory(), object, owner, name)
    }
    pub fn word(&self, object: Addr, owner: &str, name: &str) -> Known<u64> {
        self.structs.read_word(self.memory(), object, owner, name)
    }
    /// The pointer in the static `owner::name`; a null one is a gap.
    pub fn static_addr(&self, owner: &str, name: &str) -> Known<Addr> {
        match self.structs.read_static(self.memory(), owner, name)? {
            0 => Err(Gap::new(format!("{owner}::{name} (null)"), Why::NotInThisRuntime)),
            at => Ok(Addr(at)),
        }
    }
    /// A local symbol of libjvm.so, where it ships its symbol table. C++ names are mangled.
    pub fn symbol(&self, mangled: &str) -> Option<Addr> {
        self.target.symbols.find(&self.image.path, mangled)
    }
}

/// What is known of a VM before any of its parts is read.
pub struct Opened {
    image: Image,
    structs: VmStructs,
    flags: Flags,
    version: Known<String>,
    gaps: Vec<Gap>,
    leads: RefCell<Leads>,
}

/// Finds the VM and its tables. Fails when there is no HotSpot or its tables cannot be read.
pub fn open(target: &Target) -> Known<Opened> {
    let image = find::library(target)?;
    let structs = VmStructs::read(target.memory, &image)?;
    let version = version::read(target.memory, &structs);
    let mut gaps = Vec::new();
    let flags = Flags::read(target.memory, &structs).unwrap_or_else(|gap| {
        gaps.push(gap);
        Flags::default()
    });
    Ok(Opened { image, structs, flags, version, gaps, leads: RefCell::default() })
}

impl Opened {
    /// The VM as the readers of its parts get it.
    pub fn vm<'a>(&'a self, target: &'a Target<'a>) -> Hotspot<'a> {
        let major = self.version.as_deref().ok().and_then(version::major);
        Hotspot {
            target,
            image: &self.image,
            structs: &self.structs,
            flags: &self.flags,
            major,
            leads: &self.leads,
        }
    }
}

/// Runs `rest` while another thread walks the blocks of the code cache, where the memory can be read by two.
fn while_code_is_walked<T>(
    vm: &Hotspot,
    found: &mut Found,
    rest: impl FnOnce(&Hotspot, &mut Found) -> T,
) -> (Known<Vec<CodeHeapView>>, T) {
    let heaps = match code_cache::claim(vm, found) {
        Ok(heaps) => heaps,
        Err(gap) => return (Err(gap), rest(vm, found)),
    };
    let (view, image, structs, flags, major) = (vm.target.view, vm.image, vm.structs, vm.flags, vm.major);
    let walk = |memory: &dyn Memory| {
        let target = Target { view, memory, symbols: &NoSymbols };
        let leads = RefCell::default();
        code_cache::walk(&Hotspot { target: &target, image, structs, flags, major, leads: &leads }, &heaps)
    };
    let (code, rest) = match vm.memory().another() {
        Some(other) => std::thread::scope(|scope| {
            let walking = scope.spawn(budget::inherit(|| {
                let other = other;
                walk(other.as_ref())
            }));
            let rest = rest(vm, found);
            (walking.join().ok(), rest)
        }),
        None => (Some(walk(vm.memory())), rest(vm, found)),
    };
    let code = code.map(|code| code_cache::note(heaps, code, found));
    (code.ok_or_else(|| Gap::new("blocks of the code heaps", Why::Torn)), rest)
}

/// Reads the whole VM. A part that cannot be read never stops the others.
pub fn read(target: &Target, opened: &Opened) -> JvmView {
    let vm = opened.vm(target);
    let mut found = Found { gaps: opened.gaps.clone(), ..Found::default() };
    let (image, flags, major, version) = (vm.image, vm.flags, vm.major, opened.version.clone());

    let gc = heap::collector(&vm);
    let heap = heap::read(&vm, &gc, &mut found);
    let (code, (classes, mut threads)) = while_code_is_walked(&vm, &mut found, |vm, found| {
        cds::read(vm, found);
        (metaspace::read(vm, found), threads::read(vm, found))
    });
    heap::tables::read(&vm, &gc, &mut found);
    // Last: it names what only a static of libjvm points to.
    vm_work::read(&vm, &mut found);
    compiling::read(&vm, &mut threads, &mut found.gaps);
    opened.leads.replace(found.leads);

    JvmView {
        vm: "hotspot".to_string(),
        major: major.ok_or_else(|| Gap::new("JDK major version", Why::NotInThisRuntime)),
        version,
        gc,
        library: image.path.clone(),
        build_id: image.build_id(target.memory),
        nmt: flags.text("NativeMemoryTracking"),
        flags: flags.kept(),
        heap,
        code,
        classes,
        threads,
        extents: found.extents,
        block_owners: Vec::new(),
        nmt_counts: Err(Gap::new("Native Memory Tracking's counters", Why::NotRead)),
        holders: None,
        loaders: None,
        buffers: None,
        histogram: None,
        gaps: found.gaps,
    }
}
