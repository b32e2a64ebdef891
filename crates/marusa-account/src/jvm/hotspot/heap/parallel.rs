//! The heap of the Parallel collector: `PSYoungGen` and `PSOldGen`, each with a `PSVirtualSpace` that tells what is
//! committed; in JDK 28 both have one `PSHeapVirtualSpace` (src/hotspot/share/gc/parallel/psHeapVirtualSpace.hpp). Adaptive sizing
//! leaves room between the young spaces, which stays with the generation.

use super::super::{Found, Hotspot};
use super::serial::YOUNG_SPACES;
use super::spaces::{self, Heap};
use crate::base::{Addr, Known, Range};
use crate::jvm::hotspot::histogram::region::Region;
use crate::jvm::types::HeapView;

pub fn read(vm: &Hotspot, found: &mut Found) -> Known<HeapView> {
    let mut heap = Heap::open(vm, found)?;
    let (young, old) = (generation(vm, "_young_gen")?, generation(vm, "_old_gen")?);
    for (generation, class, part) in
        [(young, "PSYoungGen", "young generation"), (old, "PSOldGen", "old generation")]
    {
        if let Some(committed) = found.note(committed(vm, generation, class)) {
            heap.generation(found, committed, part);
        }
    }
    for (space, part) in spaces_of(vm, young, old) {
        heap.space(vm, found, space, "MutableSpace", part);
    }
    Ok(heap.view(vm))
}

/// Where each space lies, and its part.
fn spaces_of(vm: &Hotspot, young: Addr, old: Addr) -> impl Iterator<Item = (Known<Addr>, &'static str)> {
    let young = YOUNG_SPACES.map(|(field, part)| (vm.addr(young, "PSYoungGen", field), part));
    young.into_iter().chain([(vm.addr(old, "PSOldGen", "_object_space"), "old generation")])
}

/// The spaces as far as they are in use.
pub fn regions(vm: &Hotspot, found: &mut Found) -> Known<Vec<Region>> {
    let (young, old) = (generation(vm, "_young_gen")?, generation(vm, "_old_gen")?);
    let spaces = spaces_of(vm, young, old);
    Ok(spaces.filter_map(|(at, space)| found.note(spaces::region(vm, at, "MutableSpace", space))).collect())
}

/// A static up to JDK 26, a member of the heap since.
pub fn generation(vm: &Hotspot, name: &str) -> Known<Addr> {
    const HEAP: &str = "ParallelScavengeHeap";
    vm.static_addr(HEAP, name).or_else(|_| vm.addr(spaces::collected_heap(vm)?, HEAP, name))
}

fn committed(vm: &Hotspot, generation: Addr, class: &str) -> Known<Range> {
    if let Ok(both) = vm.addr(generation, class, "_heap_vs") {
        let (low, high) = match class {
            "PSOldGen" => ("_reserved_low_addr", "_old_gen_committed_high_addr"),
            _ => ("_gen_boundary", "_young_gen_committed_high_addr"),
        };
        let border = |name| vm.addr(both, "PSHeapVirtualSpace", name);
        return Ok(Range::new(border(low)?, border(high)?));
    }
    let space = vm.addr(generation, class, "_virtual_space")?;
    let low = vm.addr(space, "PSVirtualSpace", "_committed_low_addr")?;
    Ok(Range::new(low, vm.addr(space, "PSVirtualSpace", "_committed_high_addr")?))
}
