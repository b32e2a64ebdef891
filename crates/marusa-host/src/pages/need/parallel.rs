//! Parallel: heap, card table, the old generation's start array, and the tables of the compaction, which want ten pages or
//! none.

use super::serial::{block_offset_table, card_table, old_generation};
use super::sizing::Sizing;
use crate::base::Bytes;
use crate::map::Area;
use crate::os::machine::base_page;
use crate::pages::types::{Need, PAGE_2M};

/// Heap in one region of the compaction, and its entry (gc/parallel/psParallelCompact.hpp: Log2RegionSize 16 words).
const REGION: Bytes = 512 << 10;
const REGION_ENTRY: Bytes = 40;
/// Heap in one block, and its entry; gone since 22.
const BLOCK: Bytes = 1 << 10;
const BLOCK_ENTRY: Bytes = 2;

pub fn needs(jvm: &Sizing) -> Vec<Need> {
    let old = old_generation(jvm, jvm.large().min(PAGE_2M));
    let mut needs = vec![
        jvm.heap_need(
            "-Xmx rounded up to 2M (gc/parallel/parallelArguments.cpp, memory/universe.cpp reserve_heap)",
        ),
        card_table(jvm),
        block_offset_table(jvm, old, "old generation / 512 (gc/parallel/objectStartArray.cpp)"),
    ];
    // Begin and end bits to 21, begin bits only in 25.
    let bitmaps = if jvm.feature() >= 25 { 1 } else { 2 };
    let bitmap = (jvm.heap / jvm.heap_per_bitmap_byte()).saturating_mul(bitmaps);
    let rule = match bitmaps {
        1 => "heap / 64, large pages from ten whole ones on (25 gc/parallel/parMarkBitMap.cpp)",
        _ => "heap / 32, large pages from ten whole ones on (gc/parallel/parMarkBitMap.cpp)",
    };
    needs.push(ten_pages(jvm, "mark bitmap", bitmap, rule));
    let data = "large pages from ten whole ones on (gc/parallel/psParallelCompact.cpp create_vspace)";
    let regions = (jvm.heap / REGION).saturating_mul(REGION_ENTRY);
    needs.push(ten_pages(
        jvm,
        "compaction region table",
        regions,
        &format!("40 bytes for each 512K of heap, {data}"),
    ));
    if jvm.feature() < 22 {
        let blocks = (jvm.heap / BLOCK).saturating_mul(BLOCK_ENTRY);
        needs.push(ten_pages(
            jvm,
            "compaction block table",
            blocks,
            &format!("2 bytes for each 1K of heap, {data}"),
        ));
    }
    needs
}

/// `os::page_size_for_region_aligned(bytes, 10)`: the size must be a multiple of the page, and hold ten.
fn ten_pages(jvm: &Sizing, part: &str, bytes: Bytes, rule: &str) -> Need {
    let page = jvm.page_aligned(bytes, 10).max(base_page());
    jvm.whole(Area::Gc, part, bytes, page, rule)
}
