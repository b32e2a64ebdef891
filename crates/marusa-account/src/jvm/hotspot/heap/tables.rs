//! The side tables of the collectors without their own reader: Serial, CMS, Parallel and G1. ZGC's and Shenandoah's are
//! claimed with their heaps.
//!
//! vmStructs names the card table and the offset tables of Serial and CMS; `reach` finds the others, and each is named by
//! the object that led to it and by its size, which is a fixed share of the heap's.

use super::super::{Found, Hotspot};
use super::reach::{self, Reached, Search, Shape};
use super::unowned::Unowned;
use super::{g1, object_words, parallel, serial, spaces};
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::jvm::types::{Gc, How, Kind};
use crate::os::machine::base_page;
use std::sync::Arc;

/// Words of an object whose size vmStructs does not have.
const OBJECT_WORDS: usize = 256;
/// How far around a static that holds the heap's start other statics of the same object are looked for, in words.
const STATIC_WORDS: usize = 24;
/// A `VirtualSpace`, and all objects that hold one early, fit in this; what follows may be another object.
const SPACE_WORDS: usize = 24;
/// The bounds of a mapper's storage lie within its first words: a vtable, a listener, and then they
/// (g1RegionToSpaceMapper.hpp).
const MAPPER_WORDS: usize = 8;
/// The default of -XX:MarkStackSize on 64 bits.
const MARK_STACK_ENTRIES: u64 = 4 << 20;
/// Heaps are rounded up to this before a table's share of it is taken, at most.
const ROUNDING_BYTES: Bytes = 2 << 20;

/// Claims them. Runs after every other reader has claimed its memory.
pub fn read(vm: &Hotspot, gc: &Known<Gc>, found: &mut Found) {
    let Ok(gc) = gc else { return };
    if !matches!(gc, Gc::Serial | Gc::Cms | Gc::Parallel | Gc::G1) {
        return;
    }
    let Some(heap) = found.note(spaces::reserved(vm)) else { return };
    let card_table = found.note(card_table(vm));
    if let Some(range) = card_table {
        found.claim(range, Kind::Gc, "card table", None, How::VmStructs);
    }
    let outcome = match gc {
        Gc::Serial | Gc::Cms => generational(vm, *gc, found),
        Gc::Parallel => parallel_tables(vm, heap, found),
        _ => g1_tables(vm, heap, card_table, found),
    };
    found.note(outcome);
}

/// JDK 8: the `CardTableModRefBS` is the heap's barrier set; after: the barrier set points to a `CardTable`. The size is
/// that of the reservation (cardTable.cpp, `CardTable::initialize`; g1CardTable.cpp).
fn card_table(vm: &Hotspot) -> Known<Range> {
    let (object, class) = match vm.static_addr("BarrierSet", "_barrier_set") {
        Ok(barrier_set) => (vm.addr(barrier_set, "CardTableBarrierSet", "_card_table")?, "CardTable"),
        Err(_) => {
            let heap = spaces::collected_heap(vm)?;
            (vm.addr(heap, "CollectedHeap", "_barrier_set")?, "CardTableModRefBS")
        }
    };
    let start = vm.addr(object, class, "_byte_map")?;
    let bytes = vm.word(object, class, "_byte_map_size")?;
    let range = Range::sized(start, bytes).widened(base_page());
    let is_mapped = vm.target.mapping(start).is_some() && start.is_aligned(base_page());
    if is_mapped { Ok(range) } else { Err(Gap::new("card table", Why::BadData(object))) }
}

/// Serial and CMS: the block offset table of the old generation, and CMS's tables in its `CMSCollector`.
fn generational(vm: &Hotspot, gc: Gc, found: &mut Found) -> Known<()> {
    let (_, old) = serial::generation_objects(vm)?;
    let table = offset_table(vm, old);
    if let Some(range) = found.note(table) {
        found.claim(range, Kind::Gc, "block offset table", None, How::VmStructs);
    }
    if gc != Gc::Cms {
        return Ok(());
    }
    let collector = vm.static_addr("ConcurrentMarkSweepThread", "_collector")?;
    let bitmap = collector.plus(vm.structs.offset("CMSCollector", "_markBitMap")?);
    let words = words_at(vm, collector)?;
    let mut search = Search::new(vm.target, &found.extents);
    search.walk(&words, "CMSCollector", 0, 0);
    let marks = bitmap.plus(vm.structs.offset("CMSBitMap", "_virtual_space")?);
    let marks = vm.addr(marks, "VirtualSpace", "_low_boundary")?;
    // `_markBitMap`, `_modUnionTable` and `_markStack` follow each other
    // (concurrentMarkSweepGeneration.hpp, JDK 8 and 11).
    let after_marks = ["mark bitmap", "mod union table", "mark stack"];
    let first = search.found.iter().position(|reached| reached.range.start == marks);
    claim(found, &search, |index, _| {
        first.and_then(|first| after_marks.get(index.checked_sub(first)?)).copied()
    });
    Ok(())
}

/// The `_vs` of a `BlockOffsetSharedArray`, of a `SerialBlockOffsetTable` in JDK 23 and on.
fn offset_table(vm: &Hotspot, old: Addr) -> Known<Range> {
    let table = vm.structs.offset_of_any(&[("TenuredGeneration", "_bts"), ("CardGeneration", "_bts")])?;
    let table = vm.memory().addr(old.plus(table)).map_err(|fault| fault.gap("block offset table"))?;
    let space = [("SerialBlockOffsetTable", "_vs"), ("BlockOffsetSharedArray", "_vs")];
    let space = table.plus(vm.structs.offset_of_any(&space)?);
    let low = vm.addr(space, "VirtualSpace", "_low_boundary")?;
    Ok(Range::new(low, vm.addr(space, "VirtualSpace", "_high_boundary")?))
}

/// Parallel: the old generation's object starts; the mark bitmap and the compaction's tables by statics of
/// `PSParallelCompact` that lie next to the heap's start (parMarkBitMap.hpp, psParallelCompact.hpp).
fn parallel_tables(vm: &Hotspot, heap: Range, found: &mut Found) -> Known<()> {
    let old = parallel::generation(vm, "_old_gen")?;
    let words = object_words(vm, old, "PSOldGen")?;
    let mut search = Search::new(vm.target, &found.extents);
    // JDK 21 and before hold the table's space inline or behind one pointer, later ones behind two.
    search.walk(&words, "PSOldGen", 2, SPACE_WORDS);
    claim(found, &search, |_, _| Some("block offset table"));
    let mut search = Search::new(vm.target, &found.extents);
    for (name, words) in statics(vm) {
        for index in (0..words.len()).filter(|index| words[*index] == heap.start.0) {
            let near = index.saturating_sub(STATIC_WORDS)..(index + STATIC_WORDS).min(words.len());
            search.walk(&words[near], &name, 1, SPACE_WORDS);
        }
    }
    claim(found, &search, |_, reached| {
        Some(match reached.range.bytes() {
            // Two bits for each word of the heap, one in JDK 23 and on.
            bytes if is_share(bytes, heap, 32) || is_share(bytes, heap, 64) => "mark bitmap",
            bytes if is_share(bytes, heap, 512) => "compaction block table",
            _ => "compaction region table",
        })
    });
    Ok(())
}

/// G1: the mappers of the side tables hang at the region manager, in the order of `HeapRegionManager::initialize`:
/// heap, bitmaps, block offset table, card table, card counts (to JDK 21; heapRegionManager.cpp).
fn g1_tables(vm: &Hotspot, heap: Range, card_table: Option<Range>, found: &mut Found) -> Known<()> {
    let manager = g1::region_manager(vm, heap)?;
    let class =
        if vm.structs.has_type("G1HeapRegionManager") { "G1HeapRegionManager" } else { "HeapRegionManager" };
    let words = object_words(vm, manager, class)?;
    let unowned = Unowned::new(vm.target, &found.extents);
    let mut after_cards = false;
    for (index, range) in mapped(vm, &words) {
        if Some(range) == card_table {
            after_cards = true;
        } else if unowned.is_free(range) {
            let part = match range.bytes() {
                bytes if is_share(bytes, heap, 64) => "mark bitmap",
                bytes if is_share(bytes, heap, 512) && after_cards => "card counts",
                bytes if is_share(bytes, heap, 512) => "block offset table",
                _ => "GC table",
            };
            let how = How::PointedFrom(format!("{class}+{:#x}", index * 8));
            found.claim(range, Kind::Gc, part, None, how);
        }
    }
    mark_stack(vm, found)
}

/// The storage of each mapper that the words point to, with the word's place; in the order of the words.
fn mapped<'a>(vm: &'a Hotspot, words: &'a [u64]) -> impl Iterator<Item = (usize, Range)> + 'a {
    words.iter().enumerate().filter_map(|(index, word)| {
        let mapper = vm.memory().scan(Addr(*word), MAPPER_WORDS).ok()?;
        let range = mapper.windows(2).find_map(|pair| reach::bounds(pair[0], pair[1]))?;
        Some((index, range))
    })
}

/// G1's mark stack hangs at the `G1ConcurrentMark` (JDK 8: a `VirtualSpace` in it; from 9 on a count of chunks), the cache
/// of the remembered sets at a static.
fn mark_stack(vm: &Hotspot, found: &mut Found) -> Known<()> {
    let words = object_words(vm, spaces::collected_heap(vm)?, "G1CollectedHeap")?;
    // It starts with room for MarkStackSize entries and only grows.
    let entries = vm.flags.number("MarkStackSize").unwrap_or(MARK_STACK_ENTRIES);
    let least = entries.saturating_mul(8) & !0xffff;
    let mut search = Search::new(vm.target, &found.extents);
    search.mark_stack_bytes_least = Some(least);
    search.walk(&words, "G1CollectedHeap", 1, OBJECT_WORDS);
    if !search.found.iter().any(|reached| reached.range.bytes() >= least) {
        // JDK 22 and on: behind an array of buckets.
        search = Search::new(vm.target, &found.extents);
        search.mark_stack_bytes_least = Some(least);
        search.walk(&words, "G1CollectedHeap", 2, OBJECT_WORDS);
        search.found.retain(|reached| reached.shape == Shape::Chunks);
    }
    for (name, words) in statics(vm) {
        search.rows(&words, &name);
    }
    claim(found, &search, |_, reached| {
        Some(if reached.shape == Shape::Rows { "from card cache" } else { "mark stack" })
    });
    Ok(())
}

/// Whether a table has one byte for each `per` bytes of the heap, except for rounding.
fn is_share(bytes: Bytes, heap: Range, per: u64) -> bool {
    let exact = heap.bytes().div_ceil(per);
    (exact..=exact.saturating_add(ROUNDING_BYTES.min(exact))).contains(&bytes)
}

fn claim(found: &mut Found, search: &Search, name: impl Fn(usize, &Reached) -> Option<&'static str>) {
    for (index, reached) in search.found.iter().enumerate() {
        let part = name(index, reached).unwrap_or("GC table");
        found.claim(reached.range, Kind::Gc, part, None, How::PointedFrom(reached.path.clone()));
    }
    if search.over_limit {
        found.gaps.push(Gap::new("objects of the collector", Why::OverLimit));
    }
}

fn words_at(vm: &Hotspot, at: Addr) -> Known<Vec<u64>> {
    vm.memory().scan(at, OBJECT_WORDS).map_err(|fault| fault.gap("object of the collector"))
}

/// The words of libjvm's own writable data, as far as they are in memory.
fn statics(vm: &Hotspot) -> Vec<(String, Arc<Vec<u64>>)> {
    let pieces = vm.image.data().flat_map(|segment| vm.target.data(segment));
    pieces.map(|(start, words)| (format!("libjvm.so:{start}"), words)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_its_share_of_the_heap_but_for_rounding() {
        let heap = Range::of(0xfc00_0000, 0x1_0000_0000);
        assert!(is_share(1 << 20, heap, 64));
        assert!(is_share(2 << 20, heap, 32));
        assert!(is_share((128 << 10) + 4096, heap, 512));
        assert!(!is_share(128 << 10, heap, 64));
        assert!(!is_share(1 << 20, heap, 512));
        assert!(!is_share(0, heap, 512));
    }
}
