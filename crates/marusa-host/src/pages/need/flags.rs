//! What the JVM's ergonomics make of a heap, and the reading of flags that were given.

use super::sizing::up;
use crate::base::{Bytes, bytes_of};
use crate::os::machine::base_page;
use crate::pages::types::Subject;
use std::collections::BTreeMap;

type Flags = BTreeMap<String, String>;

/// Regions that G1 and Shenandoah aim at.
const TARGET_REGIONS: u64 = 2048;

/// A flag's number, of bytes or other things, as -XX:+PrintFlagsFinal prints it or as a command line has it: "251658240", "240m".
pub fn flag_bytes(flags: &Flags, name: &str) -> Option<Bytes> {
    // No size of a JVM is larger; so the rules' sums cannot overflow.
    bytes_of(flags.get(name)?.trim()).filter(|bytes| *bytes <= super::HEAP_MAX)
}

/// A flag that is on or off.
pub fn is_on(flags: &Flags, name: &str) -> Option<bool> {
    match flags.get(name)?.as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// G1HeapRegionSize: heap / 2048 as a power of two, 1M to 32M (by hand to 512M since 18). To 11 from the mean of -Xms and
/// -Xmx and rounded down, from 17 from -Xmx and rounded up (gc/g1/heapRegion.cpp setup_heap_region_size).
pub fn g1_region(subject: &Subject) -> Bytes {
    const MIN: Bytes = 1 << 20;
    const ERGONOMIC_MAX: Bytes = 32 << 20;
    let max = if subject.feature >= 18 { 512 << 20 } else { ERGONOMIC_MAX };
    if let Some(bytes) = flag_bytes(&subject.flags, "G1HeapRegionSize").filter(|bytes| *bytes != 0) {
        return power_of_two(bytes, subject.feature >= 17).clamp(MIN, max);
    }
    let heap = if subject.feature < 17 {
        subject.heap_initial_bytes.min(subject.heap_max_bytes).saturating_add(subject.heap_max_bytes) / 2
    } else {
        subject.heap_max_bytes
    };
    power_of_two((heap / TARGET_REGIONS).clamp(MIN, ERGONOMIC_MAX), subject.feature >= 17)
        .clamp(MIN, ERGONOMIC_MAX)
}

/// The size of Shenandoah's regions: heap / 2048 between 256K and 32M, rounded up to the page and down to a power of two; at
/// least ten regions (gc/shenandoah/shenandoahHeapRegion.cpp setup_sizes, MIN_NUM_REGIONS).
pub fn shenandoah_region(subject: &Subject, page: Bytes) -> Bytes {
    const REGIONS_MIN: u64 = 10;
    let heap = subject.heap_max_bytes;
    let flag =
        |name, default| flag_bytes(&subject.flags, name).filter(|bytes| *bytes != 0).unwrap_or(default);
    let (least, most) =
        (flag("ShenandoahMinRegionSize", 256 << 10), flag("ShenandoahMaxRegionSize", 32 << 20));
    let target = flag("ShenandoahTargetNumRegions", TARGET_REGIONS);
    let region = flag("ShenandoahRegionSize", (heap / target).max(least).min(most)).min(1 << 40);
    let on_pages = up(region, page);
    let enough = up(heap, page) / on_pages >= REGIONS_MIN;
    power_of_two(if enough { on_pages } else { up(region, base_page()) }, false)
}

/// The power of two at or next to `bytes`.
fn power_of_two(bytes: Bytes, round_up: bool) -> Bytes {
    let below = 1 << bytes.max(1).ilog2();
    if round_up && below < bytes { below * 2 } else { below }
}
