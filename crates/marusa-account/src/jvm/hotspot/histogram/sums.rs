//! What was found in all regions, by class and by space, and what of it is certain.

use super::classes::ClassTable;
use super::on_pages::page_bytes;
use super::pass::Contents;
use super::region::Heap;
use super::walk::Count;
use crate::base::{Bytes, Gap, Why};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::{ClassObjects, Histogram, SpaceObjects};
use std::collections::{BTreeMap, HashMap};

/// One class, or those of one name.
#[derive(Clone, Debug, Default)]
struct ClassSum {
    count: Count,
    /// In regions that are older than the last collection.
    survived: Count,
    /// In regions that did not change.
    still_bytes: Bytes,
    /// The part of them that is there for certain.
    low_bytes: Bytes,
    /// What may have come since.
    grown_bytes: Bytes,
    by_size: BTreeMap<u8, Bytes>,
}

impl ClassSum {
    fn add(&mut self, other: &ClassSum) {
        self.count.add(&other.count);
        self.survived.add(&other.survived);
        self.still_bytes = self.still_bytes.saturating_add(other.still_bytes);
        self.low_bytes = self.low_bytes.saturating_add(other.low_bytes);
        self.grown_bytes = self.grown_bytes.saturating_add(other.grown_bytes);
        other.by_size.iter().for_each(|(size, bytes)| self.add_on_size(*size, *bytes));
    }

    fn add_on_size(&mut self, size: u8, bytes: Bytes) {
        let sum = self.by_size.entry(size).or_default();
        *sum = sum.saturating_add(bytes);
    }
}

/// The whole heap by class and by space.
pub struct Sums {
    /// By the number of the class.
    classes: Vec<ClassSum>,
    /// Bytes of any class: in regions that changed, or without an object that is known.
    loose_bytes: Bytes,
    spaces: BTreeMap<&'static str, SpaceObjects>,
    has_changed: bool,
    /// It is known of all objects whether they are dead.
    is_marked: bool,
}

impl Sums {
    pub fn of(table: &ClassTable, heap: &Heap, found: &[Contents], is_changed: &[bool]) -> Sums {
        let mut sums = Sums {
            classes: vec![Default::default(); table.len()],
            loose_bytes: 0,
            spaces: BTreeMap::new(),
            has_changed: is_changed.contains(&true),
            is_marked: !found.iter().any(|contents| contents.is_unmarked)
                && heap.regions.iter().all(|region| region.marks.is_some()),
        };
        for ((region, contents), is_changed) in heap.regions.iter().zip(found).zip(is_changed) {
            let is_marked = region.marks.is_some() && !contents.is_unmarked;
            for (number, count) in &contents.counts {
                let sum = &mut sums.classes[*number as usize];
                sum.count.add(count);
                if !region.is_new() {
                    sum.survived.add(count);
                }
                if !is_changed {
                    sum.still_bytes = sum.still_bytes.saturating_add(count.bytes);
                    // Whether what was allocated since the marking is alive is not known, nor of anything without marks.
                    let certain = match (heap.is_filled, is_marked) {
                        (true, _) => count.bytes,
                        (false, true) => count.bytes.saturating_sub(count.since_bytes),
                        (false, false) => 0,
                    };
                    sum.low_bytes = sum.low_bytes.saturating_add(certain);
                }
            }
            for (number, size, bytes) in &contents.on_pages {
                sums.classes[*number as usize].add_on_size(*size, *bytes);
            }
            let bytes = &contents.bytes;
            let loose = if *is_changed { bytes.used_bytes } else { bytes.not_known_bytes() };
            sums.loose_bytes = sums.loose_bytes.saturating_add(loose);
            let space = sums.spaces.entry(region.space).or_default();
            space.regions += 1;
            space.instances += contents.instances;
            space.bytes.add(&contents.bytes);
            if *is_changed {
                let sum = &mut space.bytes.changed_bytes;
                *sum = sum.saturating_add(contents.bytes.object_bytes);
            }
        }
        sums
    }

    /// What came during the last walk, and whether it was still when it was walked.
    pub fn add_grown(&mut self, grown: &[(Contents, bool)]) {
        for (contents, is_still) in grown {
            for (number, count) in contents.counts.iter().filter(|_| *is_still) {
                let sum = &mut self.classes[*number as usize].grown_bytes;
                *sum = sum.saturating_add(count.bytes);
            }
            let bytes = &contents.bytes;
            let loose = if *is_still { bytes.not_known_bytes() } else { bytes.used_bytes };
            self.loose_bytes = self.loose_bytes.saturating_add(loose);
        }
    }

    /// The array with which the VM fills the unused end of each buffer before it walks its heap, as it does for `jcmd`.
    pub fn fill_unused(&mut self, table: &ClassTable, heap: &Heap, found: &[Contents]) {
        let Some(filler) = table.filler.filter(|_| heap.is_filled) else { return };
        let sum = &mut self.classes[filler as usize];
        for (region, contents) in heap.regions.iter().zip(found) {
            let bytes = contents.bytes.unused_buffer_bytes;
            let instances = if bytes > 0 { region.holes.len() as u64 } else { 0 };
            sum.count.add(&Count { instances, bytes, ..Count::default() });
            sum.still_bytes = sum.still_bytes.saturating_add(bytes);
        }
    }

    pub fn histogram(self, vm: &Hotspot, table: &ClassTable, heap: &Heap, looks: u32) -> Histogram {
        let mut by_name: HashMap<String, ClassSum> = HashMap::new();
        for (number, class) in self.classes.iter().enumerate() {
            if class.count.instances + class.count.dead_instances + class.grown_bytes > 0 {
                let name = table.name(vm, number as u32);
                by_name
                    .entry(name.unwrap_or_else(|| "a class without a name".to_string()))
                    .or_default()
                    .add(class);
            }
        }
        // ZGC and Shenandoah copy what survives into regions that look like those of new objects.
        let knows_new = heap.is_filled;
        let has_pages = vm.target.view.has_page_sizes();
        let row = |(class, sum): (String, ClassSum)| {
            let ClassSum { count, still_bytes, .. } = sum;
            let sizes = sum.by_size.into_iter().map(|(size, bytes)| (page_bytes(size), bytes));
            let most = still_bytes.saturating_add(sum.grown_bytes).saturating_add(self.loose_bytes);
            ClassObjects {
                class,
                instances: count.instances,
                bytes: count.bytes,
                bytes_low: sum.low_bytes,
                bytes_high: most.max(count.bytes),
                dead_instances: self.is_marked.then_some(count.dead_instances),
                dead_bytes: self.is_marked.then_some(count.dead_bytes),
                still_bytes: self.has_changed.then_some(still_bytes),
                survived_instances: knows_new.then_some(sum.survived.instances),
                survived_bytes: knows_new.then_some(sum.survived.bytes),
                by_page_size: has_pages.then(|| sizes.collect()),
            }
        };
        let mut classes: Vec<ClassObjects> = by_name.into_iter().map(row).collect();
        classes.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.class.cmp(&other.class)));
        let named = |(name, space): (&str, SpaceObjects)| SpaceObjects { space: name.to_string(), ..space };
        let mut spaces: Vec<SpaceObjects> = self.spaces.into_iter().map(named).collect();
        spaces.sort_by_key(|space| std::cmp::Reverse(space.bytes.used_bytes));
        let mut gaps = heap.gaps.clone();
        gaps.extend(table.torn.clone());
        gaps.extend(gaps_of(&spaces, vm.memory().bulk().is_none()));
        if !self.is_marked {
            let hint = format!("{}: all objects count", heap.no_marks);
            gaps.push(Gap::new("classes.dead_bytes", Why::NotInThisRuntime).hint(hint));
        }
        Histogram { classes, spaces, looks, duplicates: None, gaps }
    }
}

/// What is missing, in words.
fn gaps_of(spaces: &[SpaceObjects], has_no_bulk: bool) -> Vec<Gap> {
    let sum = |of: fn(&SpaceObjects) -> u64| spaces.iter().map(of).fold(0_u64, u64::saturating_add);
    let mut gaps = Vec::new();
    let mut note = |bytes: u64, what: &str, why: Why, hint: &str| {
        if bytes > 0 {
            gaps.push(Gap::new(format!("{bytes} bytes of the heap {what}"), why).hint(hint));
        }
    };
    let used = sum(|it| it.bytes.used_bytes);
    note(
        if has_no_bulk { used } else { 0 },
        "in all",
        Why::NotRecorded,
        "a frozen file keeps no objects: name a running JVM or a core",
    );
    note(
        sum(|it| it.bytes.unread_bytes),
        "were not read",
        Why::OverDeadline,
        "the classes of the objects there are not known",
    );
    note(
        sum(|it| it.bytes.absent_bytes),
        "are not in memory",
        Why::NotRead,
        "they are swapped or were never touched; reading would bring them in",
    );
    note(
        sum(|it| it.bytes.unknown_bytes),
        "begin no object that is known",
        Why::NotRead,
        "most often dead objects whose class was unloaded",
    );
    note(
        sum(|it| it.bytes.changed_bytes),
        "are objects in regions that changed at each sample",
        Why::Torn,
        "still_bytes of a class has those in regions that stood still",
    );
    gaps
}
