//! Shenandoah: heap, two bitmaps and the region table, each in whole large pages; card tables of the generational mode and the
//! collection set on 4K.

use super::serial::card_table;
use super::sizing::{Sizing, shenandoah_region};
use crate::base::Bytes;
use crate::jvm::Gc;
use crate::map::Area;
use crate::os::machine::base_page;
use crate::pages::types::Need;

/// sizeof(ShenandoahHeapRegion) rounded up to SHENANDOAH_CACHE_LINE_SIZE.
const REGION_ENTRY: Bytes = 256;

pub fn needs(jvm: &Sizing) -> Vec<Need> {
    let page = jvm.large();
    let region = shenandoah_region(jvm.subject, page);
    // Two bits for each object since 14: strong and weak marks (shenandoahMarkBitMap.hpp heap_map_factor).
    let bits = if jvm.feature() >= 14 { 2 } else { 1 };
    let bitmap = (jvm.heap / jvm.heap_per_bitmap_byte()).saturating_mul(bits);
    let rule = if bits == 2 {
        "heap / 32, in whole pages (gc/shenandoah/shenandoahHeap.cpp initialize, shenandoahMarkBitMap.cpp)"
    } else {
        "heap / 64, in whole pages (11 gc/shenandoah/shenandoahHeap.cpp initialize)"
    };
    let mut needs = vec![
        jvm.heap_need("-Xmx rounded up to regions (gc/shenandoah/shenandoahHeapRegion.cpp setup_sizes)"),
    ];
    if jvm.subject.gc == Gc::ShenandoahGenerational {
        needs.push(card_table(jvm));
        needs.push(card_table(jvm));
    }
    needs.push(jvm.whole(Area::Gc, "mark bitmap", bitmap, page, rule));
    if jvm.is_on("ShenandoahVerify", false) {
        needs.push(jvm.whole(Area::Gc, "verification bitmap", bitmap, page, rule));
    }
    needs.push(jvm.whole(Area::Gc, "auxiliary mark bitmap", bitmap, page, rule));
    let regions = (jvm.heap / region.max(1)).saturating_mul(REGION_ENTRY);
    let storage =
        "256 bytes for each region, in whole pages (gc/shenandoah/shenandoahHeap.cpp region_storage)";
    needs.push(jvm.whole(Area::Gc, "region table", regions, page, storage));
    let set = "a byte for each region, on 4K (gc/shenandoah/shenandoahHeap.cpp cset_size)";
    needs.push(jvm.whole(Area::Gc, "collection set map", jvm.heap / region.max(1), base_page(), set));
    needs
}
