//! Which buffers the collector's last marking found alive, by the marks that the histogram has: only generational ZGC and
//! Shenandoah keep them. Memory is alive if one of the objects that lead to it is.

use super::collect::Memory;
use crate::base::{Addr, Gap, Known, Range, Why, place_of};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::histogram::region::{Heap, Region};
use crate::jvm::hotspot::histogram::regions;
use crate::jvm::types::Gc;

pub const WHAT: &str = "buffers.live_bytes";

/// The marks as they were before the heap was read; what is not the same afterwards is not known.
pub struct Live {
    regions: Vec<Region>,
    /// Objects that were not met may be on pages that are not in memory.
    is_all_resident: bool,
}

impl Live {
    /// The regions with their marks. `used`: what the heap's objects lie in.
    pub fn read(vm: &Hotspot, gc: Gc, used: &[Range]) -> Known<Live> {
        if let Some(hint) = without_marks(gc) {
            return Err(Gap::new(WHAT, Why::NotInThisRuntime).hint(hint));
        }
        // A recording blanks what looks like text, and bits may.
        if vm.memory().bulk().is_none() {
            return Err(Gap::new(WHAT, Why::NotRecorded).hint("name a running JVM or a core"));
        }
        let Heap { regions, is_marking, .. } = regions::read(vm, &[])?;
        if is_marking || regions.iter().all(|region| region.marks.is_none()) {
            let hint = "the collector is marking, or its marks are not complete";
            return Err(Gap::new(WHAT, Why::Torn).hint(hint));
        }
        let is_resident = |range: &Range| vm.target.view.resident_bytes(*range) == range.bytes();
        Ok(Live { regions, is_all_resident: used.iter().all(is_resident) })
    }

    /// What is still as it was.
    pub fn still(mut self, now: &Live) -> Live {
        let is_same = |region: &Region| {
            region_at(&now.regions, region.range.start).is_some_and(|other| {
                (other.range.start, other.space, other.stamp, other.marks)
                    == (region.range.start, region.space, region.stamp, region.marks)
            })
        };
        self.regions.retain(is_same);
        self
    }

    /// `None`: it is not known.
    pub fn is_live(&self, vm: &Hotspot, memory: &Memory) -> Option<bool> {
        let mut is_known = self.is_all_resident || !memory.objects.is_empty();
        for (at, _) in &memory.objects {
            match self.is_marked(vm, Addr(*at)) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(false)
    }

    /// `None`: it is not known.
    pub fn is_marked(&self, vm: &Hotspot, at: Addr) -> Option<bool> {
        let marks = region_at(&self.regions, at)?.marks?;
        let (first, count) = marks.bytes(at.0, at.0.saturating_add(8));
        let mut bytes = vec![0; count];
        if count > 0 {
            vm.memory().read(marks.map.plus(first), &mut bytes).ok()?;
        }
        Some(marks.is_live(at.0, first, &bytes))
    }
}

fn region_at(regions: &[Region], at: Addr) -> Option<&Region> {
    place_of(regions, at, |region| region.range).map(|place| &regions[place])
}

/// Why this collector's marks say nothing afterwards.
fn without_marks(gc: Gc) -> Option<&'static str> {
    Some(match gc {
        Gc::Serial | Gc::Parallel | Gc::Epsilon => "this collector keeps no marks after a collection",
        Gc::Cms => "CMS marks its old generation alone",
        Gc::G1 => "G1 marks only in cycles of the old generation; its marks are not read",
        Gc::Z => "ZGC without generations had not all marks in memory after a collection",
        Gc::ShenandoahGenerational => "the marks of old regions are as old as the last marking of those",
        Gc::Shenandoah | Gc::ZGenerational => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::hotspot::histogram::marks::Marks;

    fn region(start: u64, stamp: u64) -> Region {
        Region {
            range: Range::sized(Addr(start), 0x100),
            stamp,
            marks: Some(Marks::ALL),
            ..Region::default()
        }
    }

    #[test]
    fn a_region_that_the_collector_has_marked_again_is_not_known() {
        let live = |regions: &[Region]| Live { regions: regions.to_vec(), is_all_resident: true };
        let before = live(&[region(0x1000, 1), region(0x2000, 1), region(0x3000, 1)]);
        let still = before.still(&live(&[region(0x1000, 1), region(0x2000, 2)]));
        assert_eq!(still.regions, [region(0x1000, 1)]);
        assert!(
            region_at(&still.regions, Addr(0x10ff)).is_some()
                && region_at(&still.regions, Addr(0x1100)).is_none()
        );
    }

    #[test]
    fn collectors_without_marks_have_a_reason_each() {
        assert!([Gc::Serial, Gc::G1, Gc::Cms, Gc::Z].iter().all(|gc| without_marks(*gc).is_some()));
        assert!([Gc::Shenandoah, Gc::ZGenerational].iter().all(|gc| without_marks(*gc).is_none()));
    }
}
