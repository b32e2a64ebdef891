//! Which Shenandoah runs, and where its heap and its regions lie: what the readers of the regions, the marks and the tables share.

use super::super::Hotspot;
use super::spaces;
use crate::base::limits::HEAP_REGIONS_MAX;
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::jvm::types::Gc;

/// The heap and its regions.
pub struct Shenandoah {
    /// The `ShenandoahHeap`.
    pub heap: Addr,
    /// "ShenandoahHeap", or "ShenandoahGenerationalHeap".
    pub class: &'static str,
    pub reserved: Range,
    pub region_bytes: Bytes,
    pub regions: u64,
}

/// Which Shenandoah runs, if one does.
pub fn collector(vm: &Hotspot) -> Option<Gc> {
    if !vm.flags.is_on("UseShenandoahGC") {
        return None;
    }
    let mode = vm.flags.text("ShenandoahGCMode");
    Some(if mode.as_deref() == Ok("generational") { Gc::ShenandoahGenerational } else { Gc::Shenandoah })
}

impl Shenandoah {
    pub fn read(vm: &Hotspot) -> Known<Shenandoah> {
        let heap = spaces::collected_heap(vm)?;
        let region = vm.structs.offset("CollectedHeap", "_reserved")?;
        let reserved = spaces::mem_region(vm, heap.plus(region))?;
        let region_bytes = vm.structs.read_static(vm.memory(), "ShenandoahHeapRegion", "RegionSizeBytes")?;
        let regions = vm.word(heap, "ShenandoahHeap", "_num_regions")?;
        let fits = region_bytes.is_power_of_two()
            && region_bytes >= 4096
            && regions <= HEAP_REGIONS_MAX as u64
            && regions.checked_mul(region_bytes) == Some(reserved.bytes());
        if !fits {
            return Err(Gap::new("bounds of Shenandoah's heap", Why::BadData(heap)));
        }
        let generational = collector(vm) == Some(Gc::ShenandoahGenerational)
            && vm.structs.has_type("ShenandoahGenerationalHeap");
        let class = if generational { "ShenandoahGenerationalHeap" } else { "ShenandoahHeap" };
        Ok(Shenandoah { heap, class, reserved, region_bytes, regions })
    }

    /// Where a region begins.
    pub fn start_of(&self, number: u64) -> Addr {
        self.reserved.start.plus(number.saturating_mul(self.region_bytes))
    }

    /// The global generation counts in JDK 24 and 25, the set of free regions since.
    pub fn used_bytes(&self, vm: &Hotspot) -> Known<Bytes> {
        let of_part =
            |member, class, name| vm.word(vm.addr(self.heap, "ShenandoahHeap", member)?, class, name);
        vm.word(self.heap, "ShenandoahHeap", "_used")
            .or_else(|_| of_part("_global_generation", "ShenandoahGeneration", "_used"))
            .or_else(|_| of_part("_free_set", "ShenandoahFreeSet", "_total_global_used"))
    }
}
