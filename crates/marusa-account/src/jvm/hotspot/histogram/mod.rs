//! The objects of the Java heap by class: all that are there, as `jcmd PID GC.class_histogram -all` counts them, without asking the
//! JVM, stopping it or starting a collection. The heap is walked region by region, each up to its top, from one object to the next.
//!
//! The JVM goes on. After the walk the regions are looked at once more, and the ones that changed are walked again, `LOOKS_MAX`
//! times at most; what is in a region that changed during the last walk counts, and is given apart. What came during that walk is
//! walked, too, so that each class has bounds.

mod buffers;
mod change;
mod classes;
mod duplicates;
pub mod marks;
mod on_pages;
mod pass;
pub mod region;
pub mod regions;
mod source;
mod sums;
mod walk;

use super::Hotspot;
use crate::base::{Addr, Known};
use crate::jvm::Histogram;
use crate::jvm::types::JvmView;
use crate::os::budget;
use change::{changed, grown, kept};
use classes::ClassTable;
use duplicates::Texts;
use pass::Contents;
use region::{Heap, Region};
use source::{Resident, Source};
use std::collections::HashMap;
use std::time::Duration;
use sums::Sums;

const LOOKS_MAX: u32 = 4;
const THREADS: usize = 2;
/// Before the next sample while the collector marks: with hundreds of megabytes it takes some hundreds of milliseconds.
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
    let (found, is_changed, after) = loop {
        looks += 1;
        let found = walked(vm, &table, &heap, &mut known)?;
        if heap.is_marking && looks < LOOKS_MAX {
            std::thread::sleep(MARKING_PAUSE);
        }
        let Ok(now) = look(vm, &others) else { break (found, vec![true; heap.regions.len()], None) };
        let is_changed = changed(&heap, &now);
        let is_last = looks == LOOKS_MAX || budget::ended().is_some();
        if is_last || !heap.is_marking && !is_changed.contains(&true) {
            break (found, is_changed, Some(now));
        }
        known = kept(&heap, &now, found, &is_changed);
        heap = now;
    };
    let mut sums = Sums::of(&table, &heap, &found, &is_changed);
    if let Some(mut after) = after {
        after.regions = grown(&heap, &after, &is_changed);
        sums.add_grown(&added(vm, &table, &after, &others)?);
    }
    sums.fill_unused(&table, &heap, &found);
    let mut histogram = sums.histogram(vm, &table, &heap, looks);
    if want.duplicates {
        let mut texts = Texts::default();
        found.into_iter().for_each(|contents| texts.add(contents.texts));
        // ZGC leaves pointers to where an object was, until it marks again.
        let is_moved = heap.in_first.is_some();
        match duplicates::find(vm, &table, texts, is_moved, want.values) {
            Ok(duplicates) => histogram.duplicates = Some(duplicates),
            Err(gap) => histogram.gaps.push(gap),
        }
    }
    Ok(histogram)
}

/// What is in the regions of `heap`, and whether each was still when it was walked.
fn added(vm: &Hotspot, table: &ClassTable, heap: &Heap, others: &[Addr]) -> Known<Vec<(Contents, bool)>> {
    if heap.regions.is_empty() {
        return Ok(Vec::new());
    }
    let found = walked(vm, table, heap, &mut HashMap::new())?;
    let is_changed = match look(vm, others) {
        Ok(now) => changed(heap, &now),
        Err(_) => vec![true; heap.regions.len()],
    };
    Ok(found.into_iter().zip(is_changed).map(|(contents, is_changed)| (contents, !is_changed)).collect())
}

/// The regions as they are now: past the store of pages, which keeps what was read before.
fn look(vm: &Hotspot, others: &[Addr]) -> Known<Heap> {
    vm.now(|vm| regions::read(vm, others))
}

/// What is in each region; `known`: by the number of the region, what needs not be read.
fn walked(
    vm: &Hotspot,
    table: &ClassTable,
    heap: &Heap,
    known: &mut HashMap<usize, Contents>,
) -> Known<Vec<Contents>> {
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
                Box::new(Resident { bulk, view, files, shifts: &heap.shifts }) as Box<dyn Source + '_>
            };
            pass::contents(table, &regions, THREADS, &source)?
        }
        None => Vec::new(),
    };
    let mut found: Vec<Contents> =
        (0..heap.regions.len()).map(|number| known.remove(&number).unwrap_or_default()).collect();
    for (number, contents) in numbers.into_iter().zip(read) {
        found[number] = contents;
    }
    Ok(found)
}
