//! The account in names and numbers alone, without addresses: by it two moments are compared, it is what a recording keeps of
//! each, and it is read back from the JSON of an account.
//!
//! What is told apart keeps its name over time. An arena is known by its address, since its number in malloc's ring changes
//! when another one is made (malloc/arena.c, `_int_new_arena`, puts the new one behind the first). Threads come and go under
//! new numbers, so those of alike names are one: "http-nio-#-exec-#".

pub mod json;
pub mod old;

use super::account::{by_area, by_library, by_thread};
use super::area::Area;
use super::malloc;
use super::types::{Figures, MemoryMap};
use crate::base::Bytes;
use crate::snapshot::Snapshot;
use std::collections::BTreeMap;

/// Bytes of one owner. What is not known is `None`, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub reserved: Bytes,
    pub committed: Bytes,
    pub resident: Bytes,
    pub in_use: Option<Bytes>,
    pub swapped: Option<Bytes>,
}

/// One arena of malloc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaSum {
    /// In the order of the ring, 0 is the main arena.
    pub number: u64,
    pub resident: Bytes,
    /// Of `resident`, freed and still held; `None` where its chunks were not read.
    pub freed: Option<Bytes>,
    /// Of `resident`, blocks in use.
    pub in_use: Option<Bytes>,
}

/// The stacks of threads of alike names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSum {
    pub threads: u64,
    pub reserved: Bytes,
    pub resident: Bytes,
}

/// The account of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// VmRSS and HugetlbPages.
    pub kernel_resident: Option<Bytes>,
    pub page_tables: Option<Bytes>,
    pub areas: BTreeMap<Area, Sum>,
    pub parts: BTreeMap<(Area, String), Sum>,
    /// By address.
    pub arenas: BTreeMap<u64, ArenaSum>,
    /// By path.
    pub libraries: BTreeMap<String, Sum>,
    pub threads: BTreeMap<String, ThreadSum>,
}

impl Sums {
    pub fn of(snapshot: &Snapshot, map: &MemoryMap) -> Sums {
        let is_swap_known = snapshot.os.status.swapped_bytes.is_some();
        let sum = |figures: &Figures, in_use: Option<Bytes>| Sum {
            swapped: is_swap_known.then_some(figures.swapped),
            ..Sum::of(figures, in_use)
        };
        let mut sums = Sums {
            kernel_resident: map.balance.kernel_resident,
            page_tables: map.balance.page_tables,
            ..Sums::default()
        };
        for area in by_area(map) {
            let heap_used = heap_used(snapshot).filter(|_| area.area == Area::JavaHeap);
            sums.areas.insert(area.area, sum(&area.figures, heap_used.or(area.in_use)));
            for part in area.parts {
                let figures = sum(&part.figures, part.in_use);
                sums.parts.insert((area.area, part.part), figures);
            }
        }
        sums.libraries = by_library(map)
            .into_iter()
            .map(|(path, _, figures)| (path.to_string(), sum(&figures, None)))
            .collect();
        sums.arenas = arenas(snapshot, map);
        sums.threads = threads(snapshot, map);
        sums
    }

    /// The sum of all areas.
    pub fn resident(&self) -> Bytes {
        self.areas.values().fold(0, |sum, area| sum.saturating_add(area.resident))
    }
}

impl Sum {
    fn of(figures: &Figures, in_use: Option<Bytes>) -> Sum {
        Sum {
            reserved: figures.reserved,
            committed: figures.committed,
            resident: figures.resident,
            in_use,
            swapped: Some(figures.swapped),
        }
    }
}

/// What the collector says is used, as everywhere that the heap is shown.
fn heap_used(snapshot: &Snapshot) -> Option<Bytes> {
    snapshot.jvm.as_ref().ok()?.heap.as_ref().ok()?.used_bytes.clone().ok()
}

fn arenas(snapshot: &Snapshot, map: &MemoryMap) -> BTreeMap<u64, ArenaSum> {
    let Some(sum) = malloc::sum(snapshot, map) else { return BTreeMap::new() };
    let of = |arena: &malloc::ArenaSum| {
        let is_walked = arena.arena.figures.is_ok();
        let figures = ArenaSum {
            number: arena.arena.number as u64,
            resident: arena.divided.whole.resident,
            freed: is_walked.then(|| arena.divided.held_bytes()),
            in_use: is_walked.then_some(arena.divided.in_use.resident),
        };
        (arena.arena.at.0, figures)
    };
    sum.arenas.iter().map(of).collect()
}

fn threads(snapshot: &Snapshot, map: &MemoryMap) -> BTreeMap<String, ThreadSum> {
    let Ok(jvm) = &snapshot.jvm else { return BTreeMap::new() };
    let stacks: BTreeMap<i32, Figures> =
        by_thread(map).into_iter().map(|(tid, _, figures)| (tid, figures)).collect();
    let mut threads: BTreeMap<String, ThreadSum> = BTreeMap::new();
    for thread in &jvm.threads {
        let sum = threads.entry(group_of(&thread.name)).or_default();
        sum.threads += 1;
        if let Some(stack) = stacks.get(&thread.tid) {
            sum.reserved += stack.reserved;
            sum.resident += stack.resident;
        }
    }
    threads
}

/// The name without its numbers: "pool-3-thread-17" is "pool-#-thread-#". The first word of "G1 Conc#0" and "C2 CompilerThread1" is
/// no number.
pub fn group_of(name: &str) -> String {
    let is_kept = matches!(name.as_bytes(), [b'A'..=b'Z', b'0'..=b'9', b' ', ..]);
    let (first, rest) = name.split_at(if is_kept { 2 } else { 0 });
    let mut group = String::from(first);
    for letter in rest.chars() {
        match letter {
            '0'..='9' if group.ends_with('#') => {}
            '0'..='9' => group.push('#'),
            other => group.push(other),
        }
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_alike_names_are_one() {
        assert_eq!(group_of("http-nio-8080-exec-12"), "http-nio-#-exec-#");
        assert_eq!(group_of("G1 Conc#0"), "G1 Conc#");
        assert_eq!((group_of("main"), group_of("")), ("main".to_string(), String::new()));
    }
}
