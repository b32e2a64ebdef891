//! The class loader data graph: every loader, and the classes of each. All class metadata hangs on it.
//!
//! `ClassLoaderDataGraph::_head` -> `ClassLoaderData::_next`; `ClassLoaderData::_klasses` -> `Klass::_next_link`
//! (src/hotspot/share/classfile/classLoaderData.hpp, JDK 8 to 25). JDK 8's tables lack `_klasses` and `_next_link`; the
//! first is found as the word that leads to a class of that loader, the second lies between two members that are there.

use super::Hotspot;
use super::objects::Objects;
use super::window::{self, Windows};
use crate::base::limits::{CLASSES_MAX, LOADERS_MAX};
use crate::base::{Addr, Gap, Known, PAGE, Range, Why};
use crate::jvm::types::LoaderClasses;
use crate::os::Fault;

/// How far into a `ClassLoaderData` the first class is looked for, and in how many of them.
const LOADER_BYTES_MAX: u64 = 256;
const LOADERS_PROBED_MAX: usize = 64;
/// More than the members that are read lie apart; an `InstanceKlass` of JDK 8 to 25 has under 600 bytes.
const CLASS_BYTES_MAX: usize = 4096;
const ASIDE_BYTES_MAX: u64 = 128;
/// Fewer loaders are no surprise; of more, this number is looked at for their classes, at even distances.
pub const MANY_LOADERS: usize = 1_000;
const LOADERS_NAMED_MAX: usize = 512;

/// A class as the walk passes it.
#[derive(Default)]
pub struct ClassSeen {
    pub loader: Addr,
    pub class: Addr,
    /// The metadata that it points to; null ones are left out. Array classes have none of their own.
    pub metadata: Vec<Addr>,
    /// `InstanceKlass::_methods`; null where there is none.
    pub methods: Addr,
    /// Its members that point to malloc: JNI ids, method ids, code that depends on it (src/hotspot/share/oops/instanceKlass.hpp,
    /// JDK 8 to 25: from `_oop_map_cache` up to `_osr_nmethods_head`).
    pub aside: Vec<u64>,
    /// `Klass::_name`, and `Klass::_layout_helper`: the bytes of an instance where it is positive.
    pub name: Addr,
    pub layout: i32,
}

pub struct Counts {
    pub loaders: Known<u64>,
    pub classes: Known<u64>,
    pub loader_classes: Option<LoaderClasses>,
}

/// Walks the whole graph. A JVM that loads classes in the meantime puts the new ones first, in pages that were not in memory
/// when the pages were looked at; such a loader is left there, and the walk goes on with the next.
pub fn walk(vm: &Hotspot, windows: &Windows, visit: &mut dyn FnMut(&ClassSeen)) -> Counts {
    let layout = Layout::read(vm);
    let loaders =
        layout.as_ref().map_err(Gap::clone).and_then(|layout| loaders(vm, layout.next, layout.klasses));
    let classes = layout.and_then(|layout| {
        let loaders = &loaders.as_ref().map_err(Gap::clone)?.found;
        layout.with_klasses(windows, loaders)?.classes(windows, loaders, visit)
    });
    let loader_classes = loaders.as_ref().ok().and_then(|loaders| loader_classes(vm, &loaders.found));
    let count = |loaders: Loaders| loaders.torn.map_or(Ok(loaders.found.len() as u64), Err);
    Counts { loaders: loaders.and_then(count), classes, loader_classes }
}

/// The classes of the loaders themselves.
fn loader_classes(vm: &Hotspot, loaders: &[Loader]) -> Option<LoaderClasses> {
    if loaders.len() < MANY_LOADERS {
        return None;
    }
    let objects = Objects::new(vm).ok()?;
    let handle = vm.structs.offset("ClassLoaderData", "_class_loader").ok()?;
    let mut classes = LoaderClasses::default();
    for loader in loaders.iter().step_by(loaders.len().div_ceil(LOADERS_NAMED_MAX)) {
        let Ok(handle) = vm.memory().addr(loader.at.plus(handle)) else { continue };
        if let Some(name) = objects.of_handle(handle).find_map(|object| objects.class_name(object)) {
            classes.looked_at += 1;
            *classes.by_class.entry(name.replace('/', ".")).or_default() += 1;
        }
    }
    (classes.looked_at > 0).then_some(classes)
}

/// A loader, and its first class where it is known how to find it.
struct Loader {
    at: Addr,
    first_class: Option<Addr>,
}

struct Loaders {
    found: Vec<Loader>,
    /// Why there may be more.
    torn: Option<Gap>,
}

/// All that is needed of a loader is read at once: thousands of them lie in all of malloc's memory, each in a page of its
/// own, so a window around each would be read in vain.
fn loaders(vm: &Hotspot, next: u64, klasses: Option<u64>) -> Known<Loaders> {
    let mut at = vm.static_addr("ClassLoaderDataGraph", "_head")?;
    let mut found = Vec::new();
    while !at.is_null() {
        if found.len() >= LOADERS_MAX {
            return Ok(Loaders { found, torn: Some(Gap::new("class loaders", Why::OverLimit)) });
        }
        let read = || {
            let first_class = klasses.map(|offset| addr_now(vm, at.plus(offset))).transpose()?;
            Ok((addr_now(vm, at.plus(next))?, first_class))
        };
        let (next, first_class) = match read() {
            Ok(read) => read,
            Err(fault @ Fault { .. }) => {
                // Reading all of it again mostly finds the rest.
                let torn = Gap { why: Why::Torn, ..fault.gap("class loaders") };
                return Ok(Loaders { found, torn: Some(torn) });
            }
        };
        found.push(Loader { at, first_class });
        at = next;
    }
    Ok(Loaders { found, torn: None })
}

/// A word of a loader. The list begins with the newest, which may lie in a page that came after the pages were looked at: it is
/// read as it is now, or all that follows would be lost.
pub(super) fn addr_now(vm: &Hotspot, at: Addr) -> Result<Addr, Fault> {
    Ok(Addr(words_now(vm, at, 1)?[0]))
}

pub(super) fn words_now(vm: &Hotspot, at: Addr, count: usize) -> Result<Vec<u64>, Fault> {
    vm.memory().words(at, count).or_else(|fault| {
        let mut bytes = vec![0; count * 8];
        read_now(vm, at, &mut bytes, fault)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    })
}

pub(super) fn read_now(vm: &Hotspot, at: Addr, into: &mut [u8], fault: Fault) -> Result<(), Fault> {
    let now = vm.memory().bulk().ok_or(fault)?;
    let pages = Range::sized(at, into.len() as u64).widened(PAGE);
    // A page that is absent must not come by being read.
    match now.resident(pages).unwrap_or_default().iter().any(|range| range.covers(pages)) {
        true => now.read(at, into),
        false => Err(fault),
    }
}

/// Every `ClassLoaderData`, and why there may be more.
pub(super) fn loader_addrs(vm: &Hotspot) -> Known<(Vec<Addr>, Option<Gap>)> {
    let loaders = loaders(vm, vm.structs.offset("ClassLoaderData", "_next")?, None)?;
    Ok((loaders.found.iter().map(|loader| loader.at).collect(), loaders.torn))
}

/// Offsets, in bytes.
struct Layout {
    next: u64,
    klasses: Option<u64>,
    next_link: u64,
    loader_data: u64,
    layout_helper: u64,
    name: Option<u64>,
    /// Members of `InstanceKlass` that point to metadata.
    metadata: Vec<u64>,
    methods: Option<u64>,
    aside: std::ops::Range<u64>,
    class_bytes: u64,
}

impl Layout {
    fn read(vm: &Hotspot) -> Known<Layout> {
        let structs = vm.structs;
        let loader_data = structs.offset("InstanceKlass", "_class_loader_data")?;
        let next_link = structs.offset("Klass", "_next_link").or_else(|gap| {
            let sibling = structs.offset("Klass", "_next_sibling")?;
            if sibling + 16 == loader_data { Ok(sibling + 8) } else { Err(gap) }
        })?;
        let layout_helper = structs.offset("Klass", "_layout_helper")?;
        let names = ["_constants", "_methods", "_inner_classes", "_local_interfaces", "_annotations"];
        let metadata: Vec<u64> =
            names.iter().filter_map(|name| structs.offset("InstanceKlass", name).ok()).collect();
        let aside = match (
            structs.offset("InstanceKlass", "_oop_map_cache"),
            structs.offset("InstanceKlass", "_osr_nmethods_head"),
        ) {
            (Ok(first), Ok(end)) if first + ASIDE_BYTES_MAX >= end => first..end,
            _ => 0..0,
        };
        let name = structs.offset("Klass", "_name").ok().filter(|name| *name < layout_helper + 64);
        let last =
            metadata.iter().chain([&next_link, &loader_data, &layout_helper, &aside.end]).chain(&name).max();
        let class_bytes = last.copied().unwrap_or(0) + 8;
        if class_bytes > CLASS_BYTES_MAX as u64 {
            return Err(Gap::new("layout of InstanceKlass", Why::BadData(Addr(class_bytes))));
        }
        Ok(Layout {
            next: structs.offset("ClassLoaderData", "_next")?,
            klasses: structs.offset("ClassLoaderData", "_klasses").ok(),
            next_link,
            loader_data,
            layout_helper,
            name,
            metadata,
            methods: structs.offset("InstanceKlass", "_methods").ok(),
            aside,
            class_bytes,
        })
    }

    fn with_klasses(mut self, windows: &Windows, loaders: &[Loader]) -> Known<Layout> {
        if self.klasses.is_none() {
            self.klasses = loaders.iter().take(LOADERS_PROBED_MAX).find_map(|loader| {
                (0..LOADER_BYTES_MAX).step_by(8).find(|offset| {
                    let class = windows.addr(loader.at.plus(*offset)).unwrap_or_default();
                    // Malloc and metadata lie above the first page, aligned to 8 bytes.
                    class.0 > 4096
                        && class.is_aligned(8)
                        && windows.addr(class.plus(self.loader_data)) == Ok(loader.at)
                })
            });
        }
        match self.klasses {
            Some(_) => Ok(self),
            None => Err(Gap::new("ClassLoaderData::_klasses", Why::NotInThisRuntime)),
        }
    }

    fn classes(
        &self,
        windows: &Windows,
        loaders: &[Loader],
        visit: &mut dyn FnMut(&ClassSeen),
    ) -> Known<u64> {
        let mut count = 0;
        let mut torn = None;
        for loader in loaders {
            match self.classes_of(windows, loader, &mut count, visit) {
                Err(gap) if gap.why == Why::OverLimit => return Err(gap),
                Err(gap) => torn = torn.or(Some(gap)),
                Ok(()) => {}
            }
        }
        torn.map_or(Ok(count), Err)
    }

    fn classes_of(
        &self,
        windows: &Windows,
        loader: &Loader,
        count: &mut u64,
        visit: &mut dyn FnMut(&ClassSeen),
    ) -> Known<()> {
        let gap = |fault: Fault| fault.gap("classes");
        let mut bytes = [0; CLASS_BYTES_MAX];
        let bytes = &mut bytes[..self.class_bytes as usize];
        let class = match loader.first_class {
            Some(class) => class,
            None => windows.addr(loader.at.plus(self.klasses.unwrap_or(0))).map_err(gap)?,
        };
        let mut seen = ClassSeen { loader: loader.at, class, ..ClassSeen::default() };
        while !seen.class.is_null() {
            *count += 1;
            if *count > CLASSES_MAX as u64 {
                return Err(Gap::new("classes", Why::OverLimit));
            }
            windows.read(seen.class, bytes).map_err(gap)?;
            if word(bytes, self.loader_data) != loader.at.0 {
                return Err(Gap::new("classes of a loader", Why::Torn));
            }
            seen.metadata.clear();
            seen.aside.clear();
            seen.name = Addr(self.name.map_or(0, |offset| word(bytes, offset)));
            seen.layout = word(bytes, self.layout_helper) as i32;
            seen.methods = Addr::NULL;
            // The layout helper of an array class is negative.
            if (word(bytes, self.layout_helper) as u32) < 1 << 31 {
                let pointers = self.metadata.iter().map(|offset| Addr(word(bytes, *offset)));
                seen.metadata.extend(pointers.filter(|at| !at.is_null()));
                seen.methods = Addr(self.methods.map_or(0, |offset| word(bytes, offset)));
                seen.aside.extend(self.aside.clone().step_by(8).map(|offset| word(bytes, offset)));
            }
            visit(&seen);
            seen.class = Addr(word(bytes, self.next_link));
        }
        Ok(())
    }
}

fn word(bytes: &[u8], at: u64) -> u64 {
    window::word(bytes, at as usize)
}
