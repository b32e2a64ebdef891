//! Direct buffers: every one that Java code allocated has a `Cleaner` in the list that begins at `Cleaner.first`, whose
//! `DirectByteBuffer$Deallocator` holds the address of the memory (JDK 8 to 25). In JDK 26 and on the list is that of
//! `java.nio.BufferCleaner`: nodes with an array of 4096 `PhantomCleaner`s each. No field's place need be known: whatever
//! in an object decodes to an object of one of these classes leads on, and whatever is the start of a block is the
//! buffer. References of generational ZGC may lead where an object was; its forwarding tables say where it is.
//!
//! The list begins with the newest: of a JVM that makes buffers all the time, its head lies on a page that came after the
//! account began, or that was read before it was written. So the mirror is read as it is now, and so is the head, until what was
//! read before is there.

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

const CLEANERS: [&str; 2] = ["jdk/internal/ref/Cleaner", "sun/misc/Cleaner"];
/// One of these, and the next but one.
const NAMES_NEEDED: usize = 2;
/// Of JDK 26 and on: the class that holds the list (src/java.base/share/classes/java/nio/BufferCleaner.java), and those of which
/// the list is made, the array first.
const HOLDER: &str = "java/nio/BufferCleaner";
const LISTED: [&str; 4] = [
    "[Ljava/nio/BufferCleaner$PhantomCleaner;",
    "java/nio/BufferCleaner$CleanerList",
    "java/nio/BufferCleaner$CleanerList$Node",
    "java/nio/BufferCleaner$PhantomCleaner",
];
/// What is looked for besides the older cleaners.
const NEWER: [&str; 6] = [DEALLOCATOR, HOLDER, LISTED[0], LISTED[1], LISTED[2], LISTED[3]];
/// More than `NODE_CAPACITY`.
const ELEMENTS_MAX: u32 = 1 << 16;
const DEALLOCATOR: &str = "java/nio/DirectByteBuffer$Deallocator";
/// Less memory of large blocks without an owner than this is not worth the search.
const WORTH_BYTES: u64 = 64 << 10;
/// The mirror of either holder, its statics included, is not longer.
const MIRROR_BYTES_MAX: usize = 512;
/// The address of a coloured reference lies above.
const COLOURS_END: u64 = 1 << 16;
/// Behind so many objects that were not new, no new ones are looked for.
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
    /// Of generational ZGC.
    forwarding: Option<Forwarding>,
    class_word: ClassWord,
    links: Links,
    mirror: (Addr, usize),
}

/// The classes whose objects lead to the buffers.
struct Links {
    /// The one with the static where it begins.
    holder: u64,
    /// Of the list, by `Klass::_layout_helper`. JDK 28 has two classes for one array.
    list: HashMap<u64, i32>,
    deallocator: (u64, i32),
}

impl Links {
    fn of(named: &[(&'static str, u64, i32)]) -> Option<Links> {
        let all = |name: &'static str| named.iter().filter(move |class| class.0 == name);
        let one = |name| all(name).next().map(|class| (class.1, class.2));
        let deallocator = one(DEALLOCATOR)?;
        Some(match CLEANERS.iter().find_map(|name| one(name)) {
            Some((cleaner, layout)) => {
                Links { holder: cleaner, list: HashMap::from([(cleaner, layout)]), deallocator }
            }
            None => {
                let list = LISTED.into_iter().flat_map(all).map(|class| (class.1, class.2)).collect();
                Links { holder: one(HOLDER)?.0, list, deallocator }
            }
        })
    }

    fn layout(&self, class: u64) -> Option<i32> {
        if class == self.deallocator.0 { Some(self.deallocator.1) } else { self.list.get(&class).copied() }
    }

    /// Whether nothing of a list that always has an array of cleaners is missing.
    fn has_met(&self, met: &HashMap<u64, Ends>) -> bool {
        let mut arrays = self.list.iter().filter(|(_, layout)| **layout < 0).peekable();
        arrays.peek().is_none() || arrays.any(|(class, _)| met.contains_key(class))
    }
}

/// An object of one of these classes.
#[derive(Clone, Copy)]
struct Object {
    at: Addr,
    class: u64,
    /// It came after the account began.
    is_new: bool,
}

/// What a word of an object may point to.
#[derive(Clone, Copy)]
enum Slot {
    Null,
    To(Object),
    /// A number, or an object of another class.
    Other,
}

impl Slot {
    fn object(self) -> Option<Object> {
        match self {
            Slot::To(object) => Some(object),
            Slot::Null | Slot::Other => None,
        }
    }
}

/// Whether the list was followed to its ends, by the objects of one class. The slots that lead to the list's objects (`next` and
/// `prev`) lead to one or are null in every object; in one that a collection moved while the list was read, they lead nowhere.
#[derive(Default)]
struct Ends {
    /// Bit n: in some object slot n leads to one of the list.
    links: u64,
    /// Of each object, the slots that lead elsewhere.
    others: HashSet<u64>,
}

impl Ends {
    fn note(&mut self, slots: &[Slot], deallocator: u64, is_array: bool) {
        let mut others = 0;
        self.links |= u64::from(is_array);
        for (index, slot) in slots.iter().enumerate().take(if is_array { usize::MAX } else { 64 }) {
            // All elements of an array are one slot.
            let bit = if is_array { 1 } else { 1 << index };
            match slot {
                Slot::Null => {}
                Slot::To(object) if object.class != deallocator => self.links |= bit,
                Slot::To(_) | Slot::Other => others |= bit,
            }
        }
        self.others.insert(others);
    }

    fn are_all(&self) -> bool {
        self.others.iter().all(|others| others & self.links == 0)
    }
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
        let end = at.0.saturating_add(into.len() as u64).saturating_add(PAGE - 1);
        let pages = Range::new(Addr(at.0 & !(PAGE - 1)), Addr(end & !(PAGE - 1)));
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

    /// The class of the object at `at`, if it is one of those that lead on.
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

/// The lowest bit of the helper tells how an instance is allocated.
fn instance_bytes(layout: i32) -> usize {
    (layout & !7) as usize
}

/// The classes of the boot loader that have one of the names, with their layout helpers.
fn classes_by_name(vm: &Hotspot, windows: &Windows, classes: &[SmallClass]) -> Vec<(&'static str, u64, i32)> {
    let mut found = Vec::new();
    let offset = |owner, name| vm.structs.offset(owner, name);
    let (Ok(loader), Ok(length)) = (offset("ClassLoaderData", "_class_loader"), offset("Symbol", "_length"))
    else {
        return found;
    };
    let Ok(body) = offset("Symbol", "_body[0]").or_else(|_| offset("Symbol", "_body")) else { return found };
    let mut is_boot: HashMap<Addr, bool> = HashMap::new();
    // The oldest first: these are among the first that every JVM loads.
    for class in classes.iter().rev() {
        let is_boot = is_boot
            .entry(class.loader)
            .or_insert_with(|| windows.u64(class.loader.plus(loader)).is_ok_and(|loader| loader == 0));
        let mut bytes = [0; 2];
        if !*is_boot || windows.read(class.name.plus(length), &mut bytes).is_err() {
            continue;
        }
        let length = usize::from(u16::from_le_bytes(bytes));
        for name in CLEANERS.into_iter().chain(NEWER).filter(|name| name.len() == length) {
            let mut text = vec![0; length];
            let at = class.name.plus(body);
            if vm.memory().peek(at, &mut text).is_ok() && text == name.as_bytes() {
                vm.memory().used(at, &text);
                found.push((name, class.class.0, class.layout));
            }
        }
        let has_cleaner = found.iter().any(|class| CLEANERS.contains(&class.0));
        if has_cleaner && found.len() == NAMES_NEEDED {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEANER: u64 = 7;
    const DEALLOCATOR: u64 = 8;

    #[test]
    fn a_list_is_whole_where_each_link_leads_to_a_cleaner_or_nowhere() {
        let to = |class| Slot::To(Object { at: Addr(0x1000), class, is_new: false });
        let number = Slot::Other;
        let (first, middle, last) = (
            [number, to(CLEANER), Slot::Null, to(DEALLOCATOR)],
            [number, to(CLEANER), to(CLEANER), to(DEALLOCATOR)],
            [number, Slot::Null, to(CLEANER), number],
        );
        let of = |cleaners: &[[Slot; 4]]| {
            let mut ends = Ends::default();
            cleaners.iter().for_each(|slots| ends.note(slots, DEALLOCATOR, false));
            ends.are_all()
        };
        assert!(of(&[]) && of(&[first, middle, last]));
        let moved_on = [number, Slot::Other, to(CLEANER), to(DEALLOCATOR)];
        assert!(!of(&[first, middle, moved_on]), "what followed the last one was not there any more");
    }

    #[test]
    fn an_array_of_cleaners_is_whole_where_each_element_is_one_or_null() {
        let to = |class| Slot::To(Object { at: Addr(0x1000), class, is_new: false });
        let of = |elements: &[Slot]| {
            let mut ends = Ends::default();
            ends.note(elements, DEALLOCATOR, true);
            ends.are_all()
        };
        let mut elements = vec![to(CLEANER); 100];
        elements.push(Slot::Null);
        assert!(of(&elements) && of(&[Slot::Null]));
        elements[80] = Slot::Other;
        assert!(!of(&elements) && !of(&[Slot::Other]), "behind the 64th, too");
    }

    #[test]
    fn the_list_of_jdk_26_has_a_holder_and_an_array() {
        let named = [
            (super::DEALLOCATOR, 8, 32),
            (HOLDER, 1, 8),
            (LISTED[0], 2, i32::MIN),
            (LISTED[0], 3, i32::MIN),
            (LISTED[3], 7, 40),
        ];
        let links = Links::of(&named).expect("links");
        assert_eq!(
            (links.holder, links.layout(8), links.layout(7), links.layout(1)),
            (1, Some(32), Some(40), None)
        );
        let met = |class| HashMap::from([(class, Ends::default())]);
        assert!(links.has_met(&met(3)) && !links.has_met(&met(7)));
        let older = Links::of(&[(super::DEALLOCATOR, 8, 32), (CLEANERS[0], 7, 40)]).expect("links");
        assert!(older.holder == 7 && older.has_met(&HashMap::new()));
    }
}
