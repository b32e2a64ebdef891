//! ZGC: the heap is a memfd file on hugetlbfs; no table of its own is large enough to ask for large pages.

use super::sizing::{Sizing, up};
use crate::map::Area;
use crate::pages::types::{Mode, Need, PAGE_2M, Without};

/// The heap in granules of 2M: -Xms at the start, the rest when it grows. Up to 17 a file that cannot be allocated whole ends the
/// VM or makes the heap smaller.
pub fn needs(jvm: &Sizing) -> Vec<Need> {
    let rule = match jvm.mode {
        Mode::Thp => {
            "-Xmx in granules of 2M; shared memory: shmem_enabled decides (gc/z/zPhysicalMemoryBacking_linux.cpp)"
        }
        _ => "-Xmx in granules of 2M, -Xms of it at the start (gc/z/zPhysicalMemoryBacking_linux.cpp)",
    };
    let mut heap = jvm.whole(Area::JavaHeap, "heap", jvm.heap, PAGE_2M, rule);
    heap.pages_at_least = (up(jvm.subject.heap_initial_bytes, PAGE_2M) / PAGE_2M).min(heap.pages);
    heap.without = match jvm.mode {
        Mode::Thp => Without::SmallPages,
        _ if jvm.feature() < 17 => Without::HeapShrinks,
        _ => Without::VmExits,
    };
    vec![heap]
}
