//! The list of cleaners in which each direct buffer of Java code waits to be freed, by its classes: a chain of `Cleaner`s up to
//! JDK 25, the nodes and arrays of `java.nio.BufferCleaner` since. `direct` follows it; whether it saw all of it is judged here.

use super::leads::SmallClass;
use crate::base::Addr;
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::symbols::Names;
use crate::jvm::hotspot::window::Windows;
use std::collections::{HashMap, HashSet};

const CLEANERS: [&str; 2] = ["jdk/internal/ref/Cleaner", "sun/misc/Cleaner"];
/// One of these, and the next but one.
const NAMES_NEEDED: usize = 2;
/// From JDK 26 on: the class that holds the list (src/java.base/share/classes/java/nio/BufferCleaner.java), and those of which
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
const DEALLOCATOR: &str = "java/nio/DirectByteBuffer$Deallocator";
/// The classes whose objects lead to the buffers.
pub struct Links {
    /// The one with the static where it begins.
    pub holder: u64,
    /// The classes of the list, with their `Klass::_layout_helper`. JDK 28 has two classes for one array.
    list: HashMap<u64, i32>,
    pub deallocator: (u64, i32),
}

impl Links {
    pub fn of(named: &[(&'static str, u64, i32)]) -> Option<Links> {
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

    pub fn layout(&self, class: u64) -> Option<i32> {
        if class == self.deallocator.0 { Some(self.deallocator.1) } else { self.list.get(&class).copied() }
    }

    /// Whether nothing of a list that always has an array of cleaners is missing.
    pub fn has_met(&self, met: &HashMap<u64, Ends>) -> bool {
        let mut arrays = self.list.iter().filter(|(_, layout)| **layout < 0).peekable();
        arrays.peek().is_none() || arrays.any(|(class, _)| met.contains_key(class))
    }
}

/// An object of one of these classes.
#[derive(Clone, Copy)]
pub struct Object {
    pub at: Addr,
    pub class: u64,
    /// It came after the account began.
    pub is_new: bool,
}

/// What a word of an object may point to.
#[derive(Clone, Copy)]
pub enum Slot {
    Null,
    To(Object),
    /// A number, or an object of another class.
    Other,
}

impl Slot {
    pub fn object(self) -> Option<Object> {
        match self {
            Slot::To(object) => Some(object),
            Slot::Null | Slot::Other => None,
        }
    }
}

/// Whether the list was followed to its ends, by the objects of one class. The slots that lead to the list's objects (`next` and
/// `prev`) lead to one or are null in every object; in one that a collection moved while the list was read, they lead nowhere.
#[derive(Default)]
pub struct Ends {
    /// Bit n: in some object slot n leads to one of the list.
    links: u64,
    /// The slots of each object that lead elsewhere.
    others: HashSet<u64>,
}

impl Ends {
    pub fn note(&mut self, slots: &[Slot], deallocator: u64, is_array: bool) {
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

    pub fn are_all(&self) -> bool {
        self.others.iter().all(|others| others & self.links == 0)
    }
}

/// The lowest bit of the helper says how an instance is allocated.
pub fn instance_bytes(layout: i32) -> usize {
    (layout & !7) as usize
}

/// The classes of the boot loader that have one of the names, with their layout helpers.
pub fn classes_by_name(
    vm: &Hotspot,
    windows: &Windows,
    classes: &[SmallClass],
) -> Vec<(&'static str, u64, i32)> {
    let mut found = Vec::new();
    let loader = vm.structs.offset("ClassLoaderData", "_class_loader");
    let (Ok(loader), Ok(names)) = (loader, Names::read(vm)) else { return found };
    let mut is_boot: HashMap<Addr, bool> = HashMap::new();
    // The oldest first: these are among the first that every JVM loads.
    for class in classes.iter().rev() {
        let is_boot = is_boot
            .entry(class.loader)
            .or_insert_with(|| windows.u64(class.loader.plus(loader)).is_ok_and(|loader| loader == 0));
        if !*is_boot {
            continue;
        }
        let length = names.length(windows, class.name);
        let may_be = CLEANERS.into_iter().chain(NEWER).filter(|name| Some(name.len()) == length);
        let named = may_be.filter(|name| names.is(windows, vm.memory(), class.name, name));
        found.extend(named.map(|name| (name, class.class.0, class.layout)));
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
