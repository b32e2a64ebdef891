//! Direct buffers: every one that Java code allocated has a `Cleaner` in the list that begins at `Cleaner.first`, whose
//! `DirectByteBuffer$Deallocator` holds the address of the memory (JDK 8 to 25). In JDK 26 and on the list is that of
//! `java.nio.BufferCleaner`: nodes with an array of 4096 `PhantomCleaner`s each. No field's place need be known: whatever
//! in an object decodes to an object of one of these classes leads on, and whatever is the start of a block is the
//! buffer. References of generational ZGC may lead where an object was; its forwarding tables say where it is.
//!
//! The list begins with the newest: of a JVM that makes buffers all the time, its head lies on a page that came after the
//! account began, or that was read before it was written. So the mirror is read as it is now, and so is the head, until what was
//! read before is there.

use super::cleaners::{Ends, Links, Object, Slot, classes_by_name, instance_bytes};
use super::given::Given;
use super::leads::SmallClass;
use super::owner::Owner;
use super::resident_now::ResidentNow;
use crate::base::limits::DIRECT_BUFFERS_MAX;
use crate::base::{Addr, PAGE, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::buffers::oops::Oops;
use crate::jvm::hotspot::heap::z_forwarding::Forwarding;
use crate::jvm::hotspot::objects::ClassWord;
use crate::jvm::hotspot::window::Windows;
use crate::jvm::types::{Gc, JvmView, Kind};
use crate::os::memory::Bulk;
use std::collections::{HashMap, HashSet};

/// More than `NODE_CAPACITY`.
const ELEMENTS_MAX: u32 = 1 << 16;
/// Less memory of large blocks without an owner than this is not worth the search.
const WORTH_BYTES: u64 = 64 << 10;
/// The mirror of either holder, its statics included, is not longer.
const MIRROR_BYTES_MAX: usize = 512;
/// The address of a coloured reference lies above.
const COLOURS_END: u64 = 1 << 16;
/// After this many objects that were not new, the search for new ones ends.
const OLD_MIN: usize = 16;
/// Objects that are read one by one, some microseconds each.
const ALL_NOW_MAX: usize = 32_768;

pub fn buffers(vm: &Hotspot, view: &JvmView, classes: &[SmallClass], given: &mut Given) {
    if unowned_bytes(given) < WORTH_BYTES {
        return;
    }
    let windows = Windows::new(vm.target);
    let Some(mut search) = Search::new(vm, view, &windows, vm.target.memory.bulk(), classes) else { return };
    for at in search.buffers().at {
        given.give(at, Owner::DirectBuffers);
    }
    // A collection between two reads leaves the list in two pieces, of which one is not found. In one go there is hardly one.
    if search.now.is_some() && unowned_bytes(given) >= WORTH_BYTES {
        search.all_now();
        for at in search.buffers().at {
            given.give(at, Owner::DirectBuffers);
        }
    }
}

/// What the Java heap says of direct buffers.
#[derive(Default)]
pub struct Named {
    /// Every word of every `Deallocator`: the addresses of the buffers' memory are among them.
    pub at: Vec<u64>,
    /// The list of cleaners was followed to its ends, so memory that is not named belongs to no direct buffer.
    pub is_all: bool,
}

/// The direct buffers of this JVM; `None`: they cannot be looked for (other classes or flags than in JDK 8 to 28).
pub fn named(vm: &Hotspot, view: &JvmView, classes: &[SmallClass]) -> Option<Named> {
    let windows = Windows::new(vm.target);
    let mut search = Search::new(vm, view, &windows, vm.target.memory.bulk(), classes)?;
    let mut named = search.buffers();
    // Nothing found may be an empty list, or a first Cleaner that moved.
    if search.now.is_some() && (!named.is_all || named.at.is_empty()) {
        search.all_now();
        let again = search.buffers();
        named.at.extend(again.at);
        named.is_all = again.is_all;
    }
    // With ZGC nothing found is more often a first reference that could not be followed than an empty list.
    let is_coloured = matches!(view.gc, Ok(Gc::Z | Gc::ZGenerational));
    Some(named).filter(|named| !is_coloured || !named.at.is_empty())
}

fn unowned_bytes(given: &Given) -> u64 {
    let unowned = given.candidates.large.iter().filter(|block| given.owners[**block].is_none());
    unowned.map(|block| given.index.payload(*block).bytes()).sum()
}

struct Search<'a> {
    windows: &'a Windows<'a>,
    /// The memory as it is now. `None`: what is read is recorded or replayed.
    now: Option<&'a dyn Bulk>,
    resident: ResidentNow,
    /// Every object is read as it is now, one by one.
    is_all_now: bool,
    heap: Vec<Range>,
    vm: &'a Hotspot<'a>,
    oops: Oops,
    /// The tables of generational ZGC.
    forwarding: Option<Forwarding>,
    class_word: ClassWord,
    links: Links,
    mirror: (Addr, usize),
}

impl<'a> Search<'a> {
    fn new(
        vm: &'a Hotspot<'a>,
        view: &JvmView,
        windows: &'a Windows<'a>,
        now: Option<&'a dyn Bulk>,
        classes: &[SmallClass],
    ) -> Option<Search<'a>> {
        let links = Links::of(&classes_by_name(vm, windows, classes))?;
        // Of a collector that is not known references are taken for addresses.
        let oops = Oops::read(vm, view.gc.clone().unwrap_or(Gc::Serial)).ok()?;
        let is_coloured = matches!(oops, Oops::Coloured(_));
        let forwarding = if is_coloured { Some(Forwarding::read(vm).ok()?) } else { None };
        let class_word = ClassWord::read(vm).ok()?;
        let heap = view.extents.iter().filter(|extent| extent.kind == Kind::JavaHeap);
        let heap = heap.map(|extent| extent.range).collect();
        let mirror =
            windows.addr(Addr(links.holder).plus(vm.structs.offset("Klass", "_java_mirror").ok()?)).ok()?;
        // A handle since JDK 10, the object itself before.
        let mirror = match vm.major {
            Some(8) => mirror,
            _ if is_coloured => moved(vm, oops, forwarding.as_ref(), windows.u64(mirror).ok()?)?,
            _ => windows.addr(mirror).ok()?,
        };
        let size_at = vm.structs.static_at("java_lang_Class", "_oop_size_offset").ok()?;
        let size_at = mirror.plus(u64::from(vm.memory().u32(size_at).ok()?));
        let words = vm.memory().u32(size_at).ok()? as usize;
        let mirror = (mirror, words.saturating_mul(8).min(MIRROR_BYTES_MAX));
        Some(Search {
            windows,
            now,
            resident: ResidentNow::default(),
            is_all_now: false,
            heap,
            vm,
            oops,
            forwarding,
            class_word,
            links,
            mirror,
        })
    }

    /// From now on every object is read as it is now.
    fn all_now(&mut self) {
        self.is_all_now = true;
        self.resident = ResidentNow::default();
    }

    /// Every word of every `Deallocator` that may be an address.
    fn buffers(&self) -> Named {
        let (mut seen, mut named) = (HashSet::new(), Named::default());
        let mut ends: HashMap<u64, Ends> = HashMap::new();
        let mut last_new = 0;
        let Some(mirror) = self.slots(self.mirror.0, self.mirror.1, true, true) else { return named };
        let mut todo: Vec<Object> = mirror.into_iter().filter_map(Slot::object).collect();
        let mut is_cut = false;
        while let Some(object) = todo.pop() {
            if seen.len() == if self.is_all_now { ALL_NOW_MAX } else { DIRECT_BUFFERS_MAX } {
                is_cut = true;
                break;
            }
            if !seen.insert(object.at) {
                continue;
            }
            if object.is_new {
                last_new = seen.len();
            }
            let layout = self.links.layout(object.class).unwrap_or(0);
            if object.class != self.links.deallocator.0 {
                let may_be_new = seen.len() < last_new + OLD_MIN;
                match self.listed(object, layout, may_be_new) {
                    Some(slots) => {
                        let ends = ends.entry(object.class).or_default();
                        ends.note(&slots, self.links.deallocator.0, layout < 0);
                        todo.extend(slots.into_iter().filter_map(Slot::object));
                    }
                    None => is_cut = true,
                }
            } else {
                let mut bytes = vec![0; instance_bytes(layout)];
                if self.read(object.at, &mut bytes, object.is_new) {
                    named.at.extend(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
                } else {
                    is_cut = true;
                }
            }
        }
        named.is_all = !is_cut && ends.values().all(Ends::are_all) && self.links.has_met(&ends);
        named
    }

    /// The slots of an object of the list; of an array, its elements.
    fn listed(&self, object: Object, layout: i32, may_be_new: bool) -> Option<Vec<Slot>> {
        if layout >= 0 {
            return self.slots(object.at, instance_bytes(layout), object.is_new, may_be_new);
        }
        let mut length = [0; 4];
        let length_at = object.at.plus(u64::from(self.class_word.header_bytes()));
        let is_read =
            self.read(length_at, &mut length, object.is_new) || self.read(length_at, &mut length, false);
        let length = Some(u32::from_le_bytes(length)).filter(|length| is_read && *length <= ELEMENTS_MAX)?;
        let first = object.at.plus(u64::from(layout as u32 >> 16 & 0xff));
        self.slots(first, length as usize * self.oops.bytes(), object.is_new, may_be_new)
    }

    /// Reads as it is now, or as other walks may have read it before.
    fn read(&self, at: Addr, into: &mut [u8], is_new: bool) -> bool {
        let Some(now) = self.now.filter(|_| is_new) else { return self.windows.read(at, into).is_ok() };
        let pages = Range::sized(at, into.len() as u64).widened(PAGE);
        // A page that is absent must not come by being read.
        self.resident.covers(now, pages) && now.read(at, into).is_ok()
    }

    /// What each slot of an object holds; `None`: the object cannot be read.
    fn slots(&self, object: Addr, bytes: usize, is_new: bool, may_be_new: bool) -> Option<Vec<Slot>> {
        let mut buffer = vec![0; bytes];
        if !self.read(object, &mut buffer, is_new) && !self.read(object, &mut buffer, false) {
            return None;
        }
        let references: Vec<u64> = match self.oops.bytes() {
            4 => buffer.as_chunks::<4>().0.iter().map(|slot| u64::from(u32::from_le_bytes(*slot))).collect(),
            _ => buffer.as_chunks::<8>().0.iter().map(|slot| u64::from_le_bytes(*slot)).collect(),
        };
        let slot = |reference: u64| match self.address(reference) {
            Some(Addr::NULL) => Slot::Null,
            Some(at) => self.object_at(at, may_be_new).map_or(Slot::Other, Slot::To),
            None => Slot::Other,
        };
        Some(references.into_iter().map(slot).collect())
    }

    /// Where a reference leads; `None`: it is none.
    fn address(&self, reference: u64) -> Option<Addr> {
        match self.oops {
            // Null may have a colour too.
            Oops::Coloured(_) if reference < COLOURS_END => Some(Addr::NULL),
            Oops::Coloured(_) => moved(self.vm, self.oops, self.forwarding.as_ref(), reference),
            // The older ZGC maps its heap at each address that a reference may have.
            Oops::Offset(..) | Oops::Whole => Some(Addr(reference)),
            Oops::Narrow(..) => Some(Addr(self.oops.decoded(reference))),
        }
    }

    fn object_at(&self, at: Addr, may_be_new: bool) -> Option<Object> {
        if !at.is_aligned(8) || !self.heap.iter().any(|range| range.has(at)) {
            return None;
        }
        if self.is_all_now {
            return self.class_of(at, true).map(|class| Object { at, class, is_new: true });
        }
        let of = |is_new| self.class_of(at, is_new).map(|class| Object { at, class, is_new });
        of(false).or_else(|| if may_be_new && self.now.is_some() { of(true) } else { None })
    }

    /// The class of the object at `at`, if it is one of the ones that lead on.
    fn class_of(&self, at: Addr, is_new: bool) -> Option<u64> {
        let word = |at: Addr| {
            let mut bytes = [0; 8];
            self.read(at, &mut bytes, is_new).then(|| u64::from_le_bytes(bytes))
        };
        let class = match self.class_word {
            ClassWord::Whole => word(at.plus(8))?,
            ClassWord::Narrow(base, shift) => base.wrapping_add((word(at.plus(8))? & 0xffff_ffff) << shift),
            ClassWord::InMark(base, shift) => base.wrapping_add((word(at)? >> 42) << shift),
        };
        self.links.layout(class).map(|_| class)
    }
}

/// Where a coloured reference leads.
fn moved(vm: &Hotspot, oops: Oops, forwarding: Option<&Forwarding>, reference: u64) -> Option<Addr> {
    let at = Some(Addr(oops.decoded(reference))).filter(|at| !at.is_null())?;
    let moved = forwarding
        .and_then(|table| oops.moved_with(reference).find_map(|generation| table.follow(vm, at, generation)));
    Some(moved.unwrap_or(at))
}
