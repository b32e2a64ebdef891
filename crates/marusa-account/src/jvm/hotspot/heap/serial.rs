//! The heaps of Serial, CMS and Epsilon: a young and an old generation of contiguous spaces, or one space.
//!
//! JDK 8: `GenCollectedHeap::_gens`; 11 to 21: `GenCollectedHeap::_young_gen` and `_old_gen`; 25: the same of `SerialHeap`.
//! CMS's old space is `CompactibleFreeListSpace`, which keeps free lists instead of a top.

use super::super::{Found, Hotspot};
use super::spaces::{self, Heap, collected_heap};
use crate::base::{Addr, Gap, Known, Range, Why};
use crate::jvm::hotspot::histogram::region::{Lie, Region};
use crate::jvm::types::{HeapView, How, Kind};

pub fn read(vm: &Hotspot, found: &mut Found) -> Known<HeapView> {
    let mut heap = Heap::open(vm, found)?;
    if vm.flags.is_on("UseEpsilonGC") {
        // A ContiguousSpace in use; `_end` is the end of what is committed.
        let space = vm.addr(collected_heap(vm)?, "EpsilonHeap", "_space");
        heap.space(vm, found, space, "ContiguousSpace", "space");
    } else {
        generations(vm, &mut heap, found)?;
    }
    Ok(heap.view(vm))
}

fn generations(vm: &Hotspot, heap: &mut Heap, found: &mut Found) -> Known<()> {
    let (young, old) = generation_objects(vm)?;
    for (generation, part) in [(young, "young generation"), (old, "old generation")] {
        if let Some(committed) = found.note(committed(vm, generation)) {
            heap.generation(found, committed, part);
        }
    }
    for (field, part) in YOUNG_SPACES {
        heap.space(vm, found, vm.addr(young, "DefNewGeneration", field), "ContiguousSpace", part);
    }
    if vm.flags.is_on("UseConcMarkSweepGC") {
        cms_space(vm, heap, old, found);
    } else {
        let space = vm.addr(old, "TenuredGeneration", "_the_space");
        heap.space(vm, found, space, "ContiguousSpace", "old generation");
    }
    Ok(())
}

pub const YOUNG_SPACES: [(&str, &str); 3] =
    [("_eden_space", "eden"), ("_from_space", "survivor from"), ("_to_space", "survivor to")];

/// The spaces as far as they are in use.
pub fn regions(vm: &Hotspot, found: &mut Found) -> Known<Vec<Region>> {
    let contiguous = |at, space| spaces::region(vm, at, "ContiguousSpace", space);
    if vm.flags.is_on("UseEpsilonGC") {
        return Ok(vec![contiguous(vm.addr(collected_heap(vm)?, "EpsilonHeap", "_space"), "space")?]);
    }
    let (young, old) = generation_objects(vm)?;
    let mut regions: Vec<Region> = Vec::new();
    for (field, space) in YOUNG_SPACES {
        regions.extend(found.note(contiguous(vm.addr(young, "DefNewGeneration", field), space)));
    }
    let old = if vm.flags.is_on("UseConcMarkSweepGC") {
        cms_bounds(vm, old).map(|range| {
            let lie = Lie::WithFreeChunks;
            Region { range, space: "old generation", lie, ..Region::default() }
        })
    } else {
        contiguous(vm.addr(old, "TenuredGeneration", "_the_space"), "old generation")
    };
    regions.extend(found.note(old));
    Ok(regions)
}

/// Young and old, as they are allocated by `GenCollectedHeap::initialize`.
pub fn generation_objects(vm: &Hotspot) -> Known<(Addr, Addr)> {
    let heap = collected_heap(vm)?;
    let word = |at: Addr| vm.memory().addr(at).map_err(|fault| fault.gap("generations of the heap"));
    if let Ok(array) = vm.structs.offset("GenCollectedHeap", "_gens") {
        return Ok((word(heap.plus(array))?, word(heap.plus(array + 8))?));
    }
    let offset = |name| {
        vm.structs.offset_of_any(&[("SerialHeap", name), ("GenCollectedHeap", name), ("CMSHeap", name)])
    };
    Ok((word(heap.plus(offset("_young_gen")?))?, word(heap.plus(offset("_old_gen")?))?))
}

/// `Generation::_virtual_space`, up to where it is committed.
fn committed(vm: &Hotspot, generation: Addr) -> Known<Range> {
    let space = generation.plus(vm.structs.offset("Generation", "_virtual_space")?);
    Ok(Range::new(vm.addr(space, "VirtualSpace", "_low")?, vm.addr(space, "VirtualSpace", "_high")?))
}

fn cms_space(vm: &Hotspot, heap: &mut Heap, old: Addr, found: &mut Found) {
    let Some(range) = found.note(cms_bounds(vm, old)).filter(|range| heap.reserved.covers(*range)) else {
        return;
    };
    found.claim(range, Kind::JavaHeap, "old generation", None, How::VmStructs);
    let hint = "CMS counts its free chunks only while it sweeps";
    heap.use_bytes(Err(Gap::new("used bytes of CMS's old generation", Why::NotInThisRuntime).hint(hint)));
}

fn cms_bounds(vm: &Hotspot, old: Addr) -> Known<Range> {
    let space = vm.addr(old, "ConcurrentMarkSweepGeneration", "_cmsSpace")?;
    let class = "CompactibleFreeListSpace";
    Ok(Range::new(vm.addr(space, class, "_bottom")?, vm.addr(space, class, "_end")?))
}
