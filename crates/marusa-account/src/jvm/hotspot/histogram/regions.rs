//! The parts of the heap in which one object follows the other, as the collector has them at this moment.

use super::buffers;
use super::region::{Heap, Lie, Region};
use crate::base::{Addr, Gap, Known, Range, Why};
use crate::jvm::hotspot::heap::{self, g1, g1_marks, parallel, serial, shenandoah, z_regions};
use crate::jvm::hotspot::{Found, Hotspot};
use crate::jvm::types::Gc;

/// `others`: threads that run no Java.
pub fn read(vm: &Hotspot, others: &[Addr]) -> Known<Heap> {
    let gc = heap::collector(vm)?;
    let mut found = Found::default();
    let of = |regions: Vec<Region>| Heap { regions, ..Heap::default() };
    let mut heap = match gc {
        Gc::Serial | Gc::Cms | Gc::Epsilon => of(serial::regions(vm, &mut found)?),
        Gc::Parallel => of(parallel::regions(vm, &mut found)?),
        Gc::G1 => of(g1::regions(vm)?),
        Gc::Shenandoah | Gc::ShenandoahGenerational => of(shenandoah::regions(vm)?),
        Gc::Z | Gc::ZGenerational => z_regions::heap(vm)?,
    };
    heap.regions.retain(|region| !region.range.is_empty());
    heap.regions.sort_by_key(|region| region.range);
    if heap.regions.windows(2).any(|pair| pair[0].range.overlaps(pair[1].range)) {
        return Err(Gap::new("regions of the heap", Why::Torn));
    }
    let unused = buffers::unused(vm, others, &mut found);
    let hint = "what is left over at their ends may be counted as objects";
    let unused = found.note(unused.map_err(|gap| gap.hint(hint))).unwrap_or_default();
    // `_total_full_collections` is the field behind (src/hotspot/share/gc/shared/collectedHeap.hpp, JDK 8 to 25).
    let collections = |behind: u64| {
        let at = vm.structs.offset("CollectedHeap", "_total_collections").ok()?;
        let heap = vm.static_addr("Universe", "_collectedHeap").ok()?;
        vm.memory().u32(heap.plus(at + behind)).ok().map(u64::from)
    };
    (heap.collections, heap.full_collections) = (collections(0), collections(4));
    heap.is_filled = matches!(gc, Gc::Serial | Gc::Cms | Gc::Epsilon | Gc::Parallel | Gc::G1);
    heap.no_marks = no_marks(vm, gc);
    heap.gaps = found.gaps;
    let in_first = |at: Addr| heap.in_first.map_or(at, |(first, mask)| first.plus(at.0 & mask));
    let mut holes: Vec<Range> =
        unused.iter().map(|hole| Range::sized(in_first(hole.start), hole.bytes())).collect();
    holes.sort_unstable();
    add_holes(&mut heap.regions, &holes);
    Ok(heap)
}

/// Where a collector has no marks of what is dead.
fn no_marks(vm: &Hotspot, gc: Gc) -> &'static str {
    match gc {
        Gc::Serial | Gc::Parallel => "the collector marks only while a full collection runs",
        Gc::Cms => "CMS clears its marks when it has swept",
        Gc::Epsilon => "Epsilon never collects",
        Gc::G1 if g1_marks::has_marks(vm) => "G1 has completed no marking yet, or its marks were not found",
        Gc::G1 => {
            "G1 clears its marks after a collection and overwrites dead objects in old regions with fillers, a class of their own"
        }
        Gc::ShenandoahGenerational => "generational Shenandoah clears its marks after each collection",
        Gc::Shenandoah if vm.major.is_some_and(|major| major >= 24) => {
            "Shenandoah clears its marks after each collection from JDK 24 on"
        }
        Gc::Shenandoah => "Shenandoah is marking, has not marked yet, or its marks were not found",
        Gc::Z | Gc::ZGenerational => "ZGC is marking, has not marked yet, or its marks were not found",
    }
}

/// Gives each region what is unused in it.
fn add_holes(regions: &mut [Region], holes: &[Range]) {
    for hole in holes {
        let place = regions.partition_point(|region| region.range.end <= hole.start);
        let Some(region) = regions.get_mut(place) else { continue };
        let inside = region.range.intersect(*hole);
        let is_behind = region.holes.last().is_none_or(|last| last.end <= inside.start);
        if !inside.is_empty() && region.lie != Lie::Single && is_behind {
            region.holes.push(inside);
        }
    }
}
