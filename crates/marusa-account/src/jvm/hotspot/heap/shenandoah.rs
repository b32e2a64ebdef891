//! Shenandoah's heap: one reservation, cut into regions of one size whose objects have the use of each.
//!
//! JDK 11 names neither the regions nor their fields in vmStructs; they lie as in JDK 17
//! (src/hotspot/share/gc/shenandoah/shenandoahHeapRegion.hpp), which is believed when every region agrees.

use super::super::{Found, Hotspot};
use super::shenandoah_heap::{Shenandoah, collector};
use super::spaces::Run;
use super::{shenandoah_marks, shenandoah_tables};
use crate::base::limits::REGION_TABLE_BYTES_MAX;
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::jvm::hotspot::histogram::region::{self, Lie};
use crate::jvm::hotspot::window::array;
use crate::jvm::types::{Gc, HeapView, How, Kind};

const REGION_OBJECT_BYTES_MAX: u64 = 4096;

/// Claims the regions and the collector's tables.
pub fn read(vm: &Hotspot, found: &mut Found) -> Known<HeapView> {
    let heap = Shenandoah::read(vm)?;
    let storage = match RegionTable::read(vm, &heap) {
        Ok(table) => {
            for run in runs(&heap, &table.regions) {
                found.claim(run.range, Kind::JavaHeap, run.part, run.used_bytes, table.how.clone());
            }
            Some(table.storage)
        }
        Err(gap) => {
            found.gaps.push(gap);
            found.claim(heap.reserved, Kind::JavaHeap, "heap", None, How::VmStructs);
            None
        }
    };
    shenandoah_tables::read(vm, &heap, storage, found);
    Ok(HeapView {
        reserved: vec![heap.reserved],
        max_bytes: Ok(heap.reserved.bytes()),
        committed_bytes: vm.word(heap.heap, "ShenandoahHeap", "_committed"),
        used_bytes: heap.used_bytes(vm),
        region_bytes: Some(heap.region_bytes),
        humongous: None,
    })
}

const HUMONGOUS_START: u32 = 3;
const HUMONGOUS_REST: u32 = 4;
const PINNED_HUMONGOUS: u32 = 5;
/// Below, a region has no objects; so has a trash region.
const REGULAR: u32 = 2;
const TRASH: u32 = 9;

/// The regions in use as far as they are; those of one humongous object are one.
pub fn regions(vm: &Hotspot) -> Known<Vec<region::Region>> {
    let heap = Shenandoah::read(vm)?;
    let table = RegionTable::read(vm, &heap)?;
    // With generations, the marks of old regions are as old as the last marking of those.
    let marking = shenandoah_marks::read(vm, &heap).filter(|_| collector(vm) == Some(Gc::Shenandoah));
    let mut regions: Vec<region::Region> = Vec::new();
    for (number, region) in (0_u64..).zip(&table.regions) {
        let start = heap.start_of(number);
        let range = Range::sized(start, region.in_use);
        match regions.last_mut() {
            _ if region.state < REGULAR || region.state == TRASH => {}
            Some(last) if region.state == HUMONGOUS_REST => last.range.end = range.end,
            _ => {
                let is_single = matches!(region.state, HUMONGOUS_START | PINNED_HUMONGOUS);
                let lie = if is_single { Lie::Single } else { Lie::Packed };
                let marks = marking.as_ref().and_then(|marking| marking.of_region(start));
                let stamp =
                    marking.as_ref().zip(marks).map(|(marking, marks)| marking.stamp(vm, &marks, start));
                regions.push(region::Region {
                    range,
                    space: region.part(),
                    lie,
                    marks,
                    stamp: stamp.unwrap_or(0),
                    ..region::Region::default()
                });
            }
        }
    }
    Ok(regions)
}

/// What one region holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    state: u32,
    in_use: Bytes,
}

impl Region {
    fn part(self) -> &'static str {
        STATES.get(self.state as usize).copied().unwrap_or("region")
    }
}

/// The regions' objects, which lie one behind the other.
struct RegionTable {
    regions: Vec<Region>,
    storage: Range,
    how: How,
}

impl RegionTable {
    fn read(vm: &Hotspot, heap: &Shenandoah) -> Known<RegionTable> {
        let named = vm.structs.offset("ShenandoahHeap", "_regions");
        let how = match named {
            Ok(_) => How::VmStructs,
            Err(_) => How::PointedFrom("ShenandoahHeap".to_string()),
        };
        // `_regions` follows `_num_regions`, JDK 11 to 25 (shenandoahHeap.hpp).
        let field =
            named.or_else(|_| Ok(vm.structs.offset("ShenandoahHeap", "_num_regions")?.saturating_add(8)))?;
        let gap = |fault: crate::os::Fault| fault.gap("regions of Shenandoah");
        let array = vm.memory().addr(heap.heap.plus(field)).map_err(gap)?;
        let bad = || Gap::new("regions of Shenandoah", Why::BadData(array));
        let pointers = vm.memory().words(array, heap.regions as usize).map_err(gap)?;
        let (first, last) = pointers.first().zip(pointers.last()).ok_or_else(bad)?;
        let stride = match pointers.get(1) {
            Some(second) => second.checked_sub(*first).ok_or_else(bad)?,
            None => vm.structs.size_of("ShenandoahHeapRegion")?,
        };
        let storage = Range::sized(Addr(*first), stride.saturating_mul(heap.regions));
        let apart = pointers.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(stride));
        if !apart
            || stride == 0
            || stride > REGION_OBJECT_BYTES_MAX
            || storage.bytes() > REGION_TABLE_BYTES_MAX
            || storage.end.0 != last.saturating_add(stride)
        {
            return Err(bad());
        }
        let mut bytes = vec![0; storage.bytes() as usize];
        vm.memory().read(storage.start, &mut bytes).map_err(gap)?;
        let layout = Layout::read(vm);
        let objects = (0_u64..).zip(bytes.chunks_exact(stride as usize));
        let regions: Option<Vec<Region>> =
            objects.map(|(number, object)| layout.region(heap, number, object)).collect();
        Ok(RegionTable { regions: regions.ok_or_else(bad)?, storage, how })
    }
}

/// Where the fields of a `ShenandoahHeapRegion` lie.
struct Layout {
    bottom: u64,
    end: u64,
    state: u64,
    top: u64,
}

impl Layout {
    fn read(vm: &Hotspot) -> Layout {
        let offset = |name, jdk_11| vm.structs.offset("ShenandoahHeapRegion", name).unwrap_or(jdk_11);
        Layout {
            bottom: offset("_bottom", 8),
            end: offset("_end", 16),
            state: offset("_state", 40),
            top: offset("_top", 48),
        }
    }

    /// `None` when its bounds are not those of region `number`.
    fn region(&self, heap: &Shenandoah, number: u64, object: &[u8]) -> Option<Region> {
        let word = |offset: u64| array(object, offset as usize).map(u64::from_le_bytes);
        let bottom = heap.start_of(number).0;
        let top = word(self.top)?;
        let state = word(self.state)? as u32;
        let fits = word(self.bottom)? == bottom
            && word(self.end)? == bottom.saturating_add(heap.region_bytes)
            && state < STATES.len() as u32;
        // `_top` moves while it is read; it never leaves the region.
        fits.then(|| Region { state, in_use: top.saturating_sub(bottom).min(heap.region_bytes) })
    }
}

/// By `ShenandoahHeapRegion::RegionState`, the same in JDK 11 to 25.
const STATES: [&str; 10] = [
    "uncommitted region",
    "empty region",
    "regular region",
    "humongous region",
    "humongous region",
    "pinned humongous region",
    "collection set region",
    "pinned region",
    "pinned collection set region",
    "trash region",
];

/// Neighbouring regions of the same state, joined. The continuation of a pinned humongous object has the state of any
/// humongous one.
fn runs(heap: &Shenandoah, regions: &[Region]) -> Vec<Run> {
    let mut runs = Vec::new();
    for (number, region) in (0_u64..).zip(regions) {
        let range = Range::sized(heap.start_of(number), heap.region_bytes);
        Run { range, part: region.part(), used_bytes: region.in_use }.add_to(&mut runs);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAP: Shenandoah = Shenandoah {
        heap: Addr(0x10),
        class: "ShenandoahHeap",
        reserved: Range { start: Addr(0x10_0000), end: Addr(0x18_0000) },
        region_bytes: 0x4_0000,
        regions: 2,
    };

    fn object(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_region_must_lie_where_its_number_says() {
        let layout = Layout { bottom: 8, end: 16, state: 40, top: 48 };
        let region = object(&[1, 0x14_0000, 0x18_0000, 0, 0, 2, 0x14_0100]);
        assert_eq!(layout.region(&HEAP, 1, &region), Some(Region { state: 2, in_use: 0x100 }));
        assert_eq!(layout.region(&HEAP, 0, &region), None);
        assert_eq!(layout.region(&HEAP, 1, &region[..40]), None);
        let strange = object(&[1, 0x14_0000, 0x18_0000, 0, 0, 77, 0x14_0100]);
        assert_eq!(layout.region(&HEAP, 1, &strange), None);
    }

    #[test]
    fn neighbours_of_one_state_are_one_claim() {
        let region = |state, in_use| Region { state, in_use };
        let found = runs(&HEAP, &[region(3, 0x4_0000), region(4, 0x10)]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].range, found[0].used_bytes), (HEAP.reserved, 0x4_0010));
    }
}
