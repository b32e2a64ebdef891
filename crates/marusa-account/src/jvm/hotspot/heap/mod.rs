//! The Java heap: which collector, and one file per collector for its spaces or regions.

pub mod g1;
pub mod g1_marks;
pub mod parallel;
pub mod reach;
pub mod serial;
pub mod shenandoah;
mod shenandoah_heap;
mod shenandoah_marks;
mod shenandoah_tables;
pub mod spaces;
pub mod tables;
mod unowned;
pub mod z;
pub mod z_forwarding;
pub mod z_heap;
pub mod z_pages;
pub mod z_regions;
mod z_tables;

use super::{Found, Hotspot};
use crate::base::limits::COLLECTOR_BYTES_MAX;
use crate::base::{Addr, Gap, Known, Range, Why};
use crate::jvm::types::{Extent, Gc, HeapView};

/// Which collector runs, by the `Use...GC` flags.
pub fn collector(vm: &Hotspot) -> Known<Gc> {
    let known = [
        ("UseG1GC", Gc::G1),
        ("UseParallelGC", Gc::Parallel),
        ("UseConcMarkSweepGC", Gc::Cms),
        ("UseSerialGC", Gc::Serial),
        ("UseEpsilonGC", Gc::Epsilon),
    ];
    known
        .iter()
        .find(|(flag, _)| vm.flags.is_on(flag))
        .map(|(_, gc)| *gc)
        .or_else(|| z_heap::collector(vm))
        .or_else(|| shenandoah_heap::collector(vm))
        .ok_or_else(|| Gap::new("collector", Why::NotInThisRuntime))
}

/// Claims the heap's spaces.
pub fn read(vm: &Hotspot, gc: &Known<Gc>, found: &mut Found) -> Known<HeapView> {
    match gc.clone()? {
        Gc::Serial | Gc::Cms | Gc::Epsilon => serial::read(vm, found),
        Gc::Parallel => parallel::read(vm, found),
        Gc::G1 => g1::read(vm, found),
        Gc::Z | Gc::ZGenerational => z::read(vm, found),
        Gc::Shenandoah | Gc::ShenandoahGenerational => shenandoah::read(vm, found),
    }
}

/// What is allocated of the heap now: beyond it lie objects that were there before. ZGC's, at each of its addresses.
pub fn used(vm: &Hotspot, gc: Gc) -> Known<Vec<Range>> {
    match gc {
        Gc::G1 => g1::used(vm),
        Gc::Z | Gc::ZGenerational => z::used(vm),
        Gc::Shenandoah | Gc::ShenandoahGenerational => {
            Ok(shenandoah::regions(vm)?.into_iter().map(|region| region.range).collect())
        }
        Gc::Serial | Gc::Cms | Gc::Epsilon | Gc::Parallel => {
            let mut found = Found::default();
            read(vm, &Ok(gc), &mut found)?;
            let filled = |extent: &Extent| match extent.in_use_bytes {
                Some(bytes) => Range::sized(extent.range.start, bytes).intersect(extent.range),
                // A space of CMS; a generation is refined by its spaces.
                None if gc == Gc::Cms && extent.part == "old generation" => extent.range,
                None => Range::default(),
            };
            Ok(found.extents.iter().map(filled).filter(|range| !range.is_empty()).collect())
        }
    }
}

/// The number of collections that have begun (CollectedHeap::_total_collections; JDK 8 to 25). `None`: not known.
pub fn collections(vm: &Hotspot) -> Option<u32> {
    let heap = vm.static_addr("Universe", "_collectedHeap").ok()?;
    let at = vm.structs.offset("CollectedHeap", "_total_collections").ok()?;
    vm.memory().u32(heap.plus(at)).ok()
}

/// The whole object at `at`, whose type vmStructs gives the size of, as words.
fn object_words(vm: &Hotspot, at: Addr, class: &str) -> Known<Vec<u64>> {
    let bytes = vm.structs.size_of(class)?.min(COLLECTOR_BYTES_MAX);
    vm.memory().words(at, (bytes / 8) as usize).map_err(|fault| fault.gap(class))
}

#[cfg(test)]
#[path = "target_tests.rs"]
pub(in crate::jvm::hotspot) mod test_target;
