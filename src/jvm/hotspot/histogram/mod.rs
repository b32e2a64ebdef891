//! The objects of the Java heap by class: all that are there, as `jcmd PID GC.class_histogram -all` counts them, without asking the
//! JVM, stopping it or starting a collection. The heap is walked region by region, each up to its top, from one object to the next.
//!
//! The JVM goes on. After the walk the regions are looked at once more, and those that changed are walked again, `LOOKS_MAX` times
//! at most; what is in a region that changed during the last walk counts, and is given apart.

mod buffers;
mod classes;
mod duplicates;
pub mod marks;
mod pass;
mod region;
pub mod regions;
mod source;
pub mod walk;

use super::Hotspot;
use crate::base::{Addr, Gap, Known, Why};
use crate::jvm::types::JvmView;
use crate::jvm::{ClassObjects, Histogram, SpaceObjects};
use crate::os::budget;
use crate::os::target::{NoSymbols, Target};
use classes::ClassTable;
use pass::Contents;
use regions::Heap;
use source::Resident;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use walk::{Count, Region, Source};

const LOOKS_MAX: u32 = 4;
const THREADS: usize = 2;
/// Before the next look while the collector marks: with hundreds of megabytes it takes some hundreds of milliseconds.
const MARKING_PAUSE: Duration = Duration::from_millis(100);

/// What is asked of the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapWant {
    /// Contents of Strings that are there more than once.
    pub duplicates: bool,
    /// The start of those contents.
    pub values: bool,
}

pub fn read(vm: &Hotspot, view: &JvmView, want: HeapWant) -> Known<Histogram> {
    let table = ClassTable::read(vm, want.duplicates)?;
    let others: Vec<Addr> = view.threads.iter().filter_map(|thread| thread.object).collect();
    let mut heap = look(vm, &others)?;
    let mut known: HashMap<usize, Contents> = HashMap::new();
    let mut looks = 0;
    let (found, is_changed) = loop {
        looks += 1;
        let found = walked(vm, &table, &heap, &mut known);
        if heap.is_marking && looks < LOOKS_MAX {
            std::thread::sleep(MARKING_PAUSE);
        }
        let Ok(now) = look(vm, &others) else { break (found, vec![true; heap.regions.len()]) };
        let is_changed = changed(&heap, &now);
        let is_last = looks == LOOKS_MAX || budget::ended().is_some();
        if is_last || !heap.is_marking && !is_changed.contains(&true) {
            break (found, is_changed);
        }
        known = kept(&heap, &now, found, &is_changed);
        heap = now;
    };
    let mut sums = Sums::of(&table, &heap, &found, &is_changed);
    sums.fill_unused(&table, &heap, &found);
    let mut histogram = sums.histogram(vm, &table, &heap, looks);
    if want.duplicates {
        match duplicates::find(vm, &table, &heap, found, want.values) {
            Ok(duplicates) => histogram.duplicates = Some(duplicates),
            Err(gap) => histogram.gaps.push(gap),
        }
    }
    Ok(histogram)
}

/// The regions as they are now: past the store of pages, which keeps what was read before.
fn look(vm: &Hotspot, others: &[Addr]) -> Known<Heap> {
    match vm.memory().another() {
        Some(memory) => {
            let target = Target { view: vm.target.view, memory: memory.as_ref(), symbols: &NoSymbols };
            let leads = RefCell::default();
            let fresh = Hotspot {
                target: &target,
                image: vm.image,
                structs: vm.structs,
                flags: vm.flags,
                major: vm.major,
                leads: &leads,
            };
            regions::read(&fresh, others)
        }
        None => regions::read(vm, others),
    }
}

/// What is in each region; `known`: by the number of the region, what needs not be read.
fn walked(
    vm: &Hotspot,
    table: &ClassTable,
    heap: &Heap,
    known: &mut HashMap<usize, Contents>,
) -> Vec<Contents> {
    let numbers: Vec<usize> = (0..heap.regions.len()).filter(|number| !known.contains_key(number)).collect();
    let regions: Vec<Region> = numbers.iter().map(|number| heap.regions[*number].clone()).collect();
    let read = match vm.memory().bulk() {
        Some(bulk) => {
            // Made here: the memory of the target is for one thread.
            let files =
                std::sync::Mutex::new((0..=THREADS).map(|_| vm.memory().another()).collect::<Vec<_>>());
            let view = vm.target.view;
            let source = || {
                let files = files.lock().ok().and_then(|mut files| files.pop().flatten());
                Box::new(Resident::new(bulk, view, files, &heap.shifts)) as Box<dyn Source + '_>
            };
            pass::contents(table, &regions, THREADS, &source)
        }
        None => Vec::new(),
    };
    let mut found: Vec<Contents> =
        (0..heap.regions.len()).map(|number| known.remove(&number).unwrap_or_default()).collect();
    for (number, contents) in numbers.into_iter().zip(read) {
        found[number] = contents;
    }
    found
}

/// Which regions are not what they were.
fn changed(before: &Heap, now: &Heap) -> Vec<bool> {
    let is_collected = before.collections != now.collections;
    let is_changed = |region: &Region| match same(region, now) {
        Some(place) => {
            is_collected && region.space.contains("eden") || now.regions[place].range.end < region.range.end
        }
        None => true,
    };
    before.regions.iter().map(is_changed).collect()
}

/// The number of the region now.
fn same(region: &Region, now: &Heap) -> Option<usize> {
    let place = now.regions.binary_search_by_key(&region.range.start, |it| it.range.start).ok()?;
    let other = &now.regions[place];
    (other.space == region.space && other.stamp == region.stamp && other.lie == region.lie).then_some(place)
}

/// The contents of the regions that did not change, by their numbers now. Those that grew are read again.
fn kept(before: &Heap, now: &Heap, found: Vec<Contents>, is_changed: &[bool]) -> HashMap<usize, Contents> {
    let still = before.regions.iter().zip(found).zip(is_changed).filter(|(_, is_changed)| !**is_changed);
    let kept = still.filter_map(|((region, contents), _)| {
        let place = same(region, now)?;
        let is_same = now.regions[place].range == region.range && now.regions[place].marks == region.marks;
        is_same.then_some((place, contents))
    });
    kept.collect()
}

/// What is counted of a class.
#[derive(Clone, Copy, Default)]
struct ClassSum {
    all: Count,
    /// In regions that did not change.
    still_bytes: u64,
    /// In regions that are older than the last collection.
    survived: Count,
}

impl ClassSum {
    fn add(&mut self, count: &Count, is_changed: bool, is_new: bool) {
        self.all.add(count);
        self.still_bytes = self.still_bytes.saturating_add(if is_changed { 0 } else { count.bytes });
        self.survived.add(&if is_new { Count::default() } else { *count });
    }

    fn merge(&mut self, other: &ClassSum) {
        self.all.add(&other.all);
        self.still_bytes = self.still_bytes.saturating_add(other.still_bytes);
        self.survived.add(&other.survived);
    }
}

/// The whole heap by class and by space.
struct Sums {
    /// By the number of the class.
    classes: Vec<ClassSum>,
    spaces: BTreeMap<&'static str, SpaceObjects>,
    has_changed: bool,
    /// It is known of all objects whether they are dead.
    is_marked: bool,
}

impl Sums {
    fn of(table: &ClassTable, heap: &Heap, found: &[Contents], is_changed: &[bool]) -> Sums {
        let mut sums = Sums {
            classes: vec![Default::default(); table.len()],
            spaces: BTreeMap::new(),
            has_changed: is_changed.contains(&true),
            is_marked: !found.iter().any(|contents| contents.is_unmarked)
                && heap.regions.iter().all(|region| region.marks.is_some()),
        };
        for ((region, contents), is_changed) in heap.regions.iter().zip(found).zip(is_changed) {
            for (number, count) in &contents.counts {
                sums.classes[*number as usize].add(count, *is_changed, region.is_new());
            }
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

    /// The array with which the VM fills the unused end of each buffer before it walks its heap, as it does for `jcmd`.
    fn fill_unused(&mut self, table: &ClassTable, heap: &Heap, found: &[Contents]) {
        let Some(filler) = table.filler.filter(|_| heap.is_filled) else { return };
        let sum = &mut self.classes[filler as usize];
        for (region, contents) in heap.regions.iter().zip(found) {
            let bytes = contents.bytes.unused_buffer_bytes;
            let instances = if bytes > 0 { region.holes.len() as u64 } else { 0 };
            sum.add(&Count { instances, bytes, ..Count::default() }, false, true);
        }
    }

    fn histogram(self, vm: &Hotspot, table: &ClassTable, heap: &Heap, looks: u32) -> Histogram {
        let mut by_name: HashMap<String, ClassSum> = HashMap::new();
        for (number, sum) in self.classes.iter().enumerate() {
            if sum.all.instances + sum.all.dead_instances > 0 {
                let name = table.name(vm, number as u32);
                let name = name.unwrap_or_else(|| "a class without a name".to_string());
                by_name.entry(name).or_default().merge(sum);
            }
        }
        // ZGC and Shenandoah copy what survives into regions that look like those of new objects.
        let knows_new = heap.is_filled;
        let row = |(class, sum): (String, ClassSum)| ClassObjects {
            class,
            instances: sum.all.instances,
            bytes: sum.all.bytes,
            dead_instances: self.is_marked.then_some(sum.all.dead_instances),
            dead_bytes: self.is_marked.then_some(sum.all.dead_bytes),
            still_bytes: self.has_changed.then_some(sum.still_bytes),
            survived_instances: knows_new.then_some(sum.survived.instances),
            survived_bytes: knows_new.then_some(sum.survived.bytes),
        };
        let mut classes: Vec<ClassObjects> = by_name.into_iter().map(row).collect();
        classes.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.class.cmp(&other.class)));
        let named = |(name, space): (&str, SpaceObjects)| SpaceObjects { space: name.to_string(), ..space };
        let mut spaces: Vec<SpaceObjects> = self.spaces.into_iter().map(named).collect();
        spaces.sort_by_key(|space| std::cmp::Reverse(space.bytes.used_bytes));
        let mut gaps = heap.gaps.clone();
        gaps.extend(table.torn.clone());
        gaps.extend(gaps_of(&spaces, vm.memory().bulk().is_none()));
        if !self.is_marked && !heap.is_filled {
            let hint = "the collector is marking, or its marks were not found: all objects count";
            gaps.push(Gap::new("classes.dead_bytes", Why::NotRead).hint(hint));
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
        "the classes of what lies there are not known",
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
        "are objects in regions that changed at each look",
        Why::Torn,
        "still_bytes of a class has those in regions that stood still",
    );
    gaps
}
