//! Serial and CMS: heap, card table, and the old generation's block offset table.

use super::sizing::{Sizing, down, up};
use crate::base::Bytes;
use crate::map::Area;
use crate::os::machine::base_page;
use crate::pages::types::{Need, PAGE_2M};

/// The old generation's largest size. NewRatio is 2: the young one has a third of the heap at most
/// (gc/shared/genArguments.cpp; 11: gc/shared/collectorPolicy.cpp scale_by_NewRatio_aligned).
pub fn old_generation(jvm: &Sizing, alignment: Bytes) -> Bytes {
    let ratio = jvm.bytes("NewRatio").filter(|ratio| *ratio > 0).unwrap_or(2);
    let by_ratio = down(jvm.heap / ratio.saturating_add(1), alignment);
    let young = jvm.bytes("MaxNewSize").filter(|bytes| *bytes < jvm.heap).unwrap_or(by_ratio);
    let young = young.max(jvm.bytes("NewSize").unwrap_or(0).min(jvm.heap.saturating_sub(alignment)));
    jvm.heap.saturating_sub(down(young, alignment).max(alignment))
}

/// A card for each 512 bytes and one more; always on 4K (gc/shared/cardTable.cpp: _page_size(os::vm_page_size())).
pub fn card_table(jvm: &Sizing) -> Need {
    let bytes = jvm.heap / jvm.card_bytes() + 1;
    jvm.whole(Area::Gc, "card table", bytes, base_page(), "heap / 512, on 4K (gc/shared/cardTable.cpp)")
}

/// A byte for each card of the old generation.
pub fn block_offset_table(jvm: &Sizing, old: Bytes, rule: &str) -> Need {
    jvm.mixed(Area::Gc, "block offset table", old / jvm.card_bytes(), rule)
}

pub fn needs(jvm: &Sizing) -> Vec<Need> {
    const GENERATION_ALIGNMENT: Bytes = 64 << 10;
    let old = old_generation(jvm, GENERATION_ALIGNMENT);
    vec![
        jvm.heap_need("-Xmx rounded up to 2M (gc/shared/genArguments.cpp, memory/universe.cpp reserve_heap)"),
        card_table(jvm),
        block_offset_table(
            jvm,
            old,
            "old generation / 512 (gc/serial/serialBlockOffsetTable.cpp; before 22 gc/shared)",
        ),
    ]
}

/// CMS of 8 and 11: its bitmaps cover the old generation, and its mark stack is as large as MarkStackSize says.
pub fn needs_cms(jvm: &Sizing) -> Vec<Need> {
    let old = cms_old_generation(jvm);
    let stack_entries = jvm.bytes("MarkStackSize").unwrap_or(4 << 20);
    let bitmap = |part: &str, bytes: Bytes, rule: &str| jvm.mixed(Area::Gc, part, bytes + 1, rule);
    vec![
        jvm.heap_need("-Xmx rounded up to 2M (memory/universe.cpp reserve_heap)"),
        card_table(jvm),
        block_offset_table(jvm, old, "old generation / 512 (blockOffsetTable.cpp)"),
        bitmap("mark bitmap", old / 64, "old generation / 64 (concurrentMarkSweepGeneration.cpp CMSBitMap)"),
        bitmap("mod union table", old / 512 / 8, "a bit for each card (concurrentMarkSweepGeneration.cpp)"),
        jvm.mixed(
            Area::Gc,
            "mark stack",
            stack_entries.saturating_mul(8),
            "MarkStackSize * 8 (CMSMarkStack)",
        ),
    ]
}

/// CMS keeps the young generation small: 64M * GC threads * 13 / 10, at most a third (runtime/arguments.cpp
/// set_cms_and_parnew_gc_flags).
fn cms_old_generation(jvm: &Sizing) -> Bytes {
    let by_ratio = old_generation(jvm, 64 << 10);
    if jvm.bytes("MaxNewSize").is_some() {
        return by_ratio;
    }
    let threads = crate::pages::gc_threads::scaled(jvm.subject.cpus, 8, 5, 8);
    let young = up((64u64 << 20).saturating_mul(u64::from(threads)) / 10 * 13, PAGE_2M / 32);
    by_ratio.max(jvm.heap.saturating_sub(young))
}
