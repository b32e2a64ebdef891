//! G1: heap and its tables, each of which goes to large pages, rounded up, as soon as it could fill one.

use super::sizing::Sizing;
use crate::base::Bytes;
use crate::map::Area;
use crate::pages::types::Need;

pub fn needs(jvm: &Sizing) -> Vec<Need> {
    let feature = jvm.feature();
    let cards = jvm.heap / jvm.card_bytes();
    let bitmap = jvm.heap / jvm.heap_per_bitmap_byte();
    let card_rule = "heap / 512, rounded up to the page (gc/g1/g1CollectedHeap.cpp create_aux_memory_mapper)";
    let bit_rule = "heap / 64, rounded up to the page (gc/g1/g1ConcurrentMarkBitMap.cpp)";
    let mut needs = vec![jvm.heap_need(
        "-Xmx rounded up to regions, 2M and the page (gc/g1/g1Arguments.cpp initialize_alignments)",
    )];
    needs.push(table(jvm, "block offset table", cards, card_rule));
    needs.push(table(jvm, "card table", cards, card_rule));
    if feature < 20 {
        // The hot card cache, gone since 20.
        needs.push(table(jvm, "card counts", cards, card_rule));
    }
    if feature == 8 {
        needs.push(table(
            jvm,
            "card live data",
            cards,
            "heap / 512, the fourth such table of 8, as measured",
        ));
    }
    if feature < 20 {
        needs.push(table(jvm, "mark bitmap", bitmap, &format!("previous marks: {bit_rule}")));
        needs.push(table(jvm, "mark bitmap", bitmap, &format!("next marks: {bit_rule}")));
    } else {
        needs.push(table(jvm, "mark bitmap", bitmap, bit_rule));
    }
    if feature == 8 {
        let entries = jvm.bytes("MarkStackSize").unwrap_or(4 << 20);
        let rule = "MarkStackSize * 8 (8 gc_implementation/g1/concurrentMark.cpp CMMarkStack)";
        needs.push(jvm.mixed(Area::Gc, "mark stack", entries.saturating_mul(8), rule));
    }
    needs
}

/// `create_aux_memory_mapper`: the largest page of which one fits, and the table is rounded up to it.
fn table(jvm: &Sizing, part: &str, bytes: Bytes, rule: &str) -> Need {
    jvm.whole(Area::Gc, part, bytes, jvm.page_unaligned(bytes, 1), rule)
}
