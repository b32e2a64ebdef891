//! The heap of the Parallel collector: `PSYoungGen` and `PSOldGen`, each with a `PSVirtualSpace` that tells what is
//! committed. Adaptive sizing leaves room between the young spaces, which stays with the generation.

use super::super::{Found, Hotspot};
use super::spaces::{self, Heap};
use crate::base::{Addr, Known, Range};
use crate::jvm::hotspot::histogram::walk::Region;
use crate::jvm::types::HeapView;

const YOUNG_SPACES: [(&str, &str); 3] =
    [("_eden_space", "eden"), ("_from_space", "survivor from"), ("_to_space", "survivor to")];

pub fn read(vm: &Hotspot, found: &mut Found) -> Known<HeapView> {
    let mut heap = Heap::open(vm, found)?;
    let young = vm.static_addr("ParallelScavengeHeap", "_young_gen")?;
    let old = vm.static_addr("ParallelScavengeHeap", "_old_gen")?;
    for (generation, class, part) in
        [(young, "PSYoungGen", "young generation"), (old, "PSOldGen", "old generation")]
    {
        if let Some(committed) = found.note(committed(vm, generation, class)) {
            heap.generation(found, committed, part);
        }
    }
    for (field, part) in YOUNG_SPACES {
        heap.space(vm, found, vm.addr(young, "PSYoungGen", field), "MutableSpace", part);
    }
    heap.space(vm, found, vm.addr(old, "PSOldGen", "_object_space"), "MutableSpace", "old generation");
    Ok(heap.view(vm))
}

/// The spaces as far as they are in use.
pub fn regions(vm: &Hotspot, found: &mut Found) -> Known<Vec<Region>> {
    let young = vm.static_addr("ParallelScavengeHeap", "_young_gen")?;
    let old = vm.static_addr("ParallelScavengeHeap", "_old_gen")?;
    let young = YOUNG_SPACES.map(|(field, space)| (vm.addr(young, "PSYoungGen", field), space));
    let old = (vm.addr(old, "PSOldGen", "_object_space"), "old generation");
    let spaces = young.into_iter().chain([old]);
    Ok(spaces.filter_map(|(at, space)| found.note(spaces::region(vm, at, "MutableSpace", space))).collect())
}

fn committed(vm: &Hotspot, generation: Addr, class: &str) -> Known<Range> {
    let space = vm.addr(generation, class, "_virtual_space")?;
    let low = vm.addr(space, "PSVirtualSpace", "_committed_low_addr")?;
    Ok(Range::new(low, vm.addr(space, "PSVirtualSpace", "_committed_high_addr")?))
}
