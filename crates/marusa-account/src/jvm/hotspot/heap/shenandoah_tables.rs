//! Shenandoah's tables outside the heap: mark bitmaps, the regions' objects, the collection set's map, and in the
//! generational mode two card tables. vmStructs names none but the first words of a card table; they are found from the
//! `ShenandoahHeap` and the barrier set, by words that fit the heap's bounds exactly.

use super::super::{Found, Hotspot};
use super::object_words;
use super::shenandoah_heap::Shenandoah;
use crate::base::limits::REACH_OBJECTS_MAX;
use crate::base::{Addr, Bytes, Range};
use crate::jvm::types::{How, Kind};
use crate::os::Target;
use crate::os::machine::{base_page, huge_page};

/// Words of an object whose size is not known that are looked at.
const OBJECT_WORDS: usize = 256;

/// Claims them all; `regions` is where the regions' objects lie.
pub fn read(vm: &Hotspot, heap: &Shenandoah, regions: Option<Range>, found: &mut Found) {
    if let Some(regions) = regions {
        let storage = region_storage(vm, regions);
        found.claim(storage, Kind::Gc, "region table", regions.bytes(), How::VmStructs);
    }
    let Some(words) = found.note(object_words(vm, heap.heap, heap.class)) else { return };
    let how = || How::PointedFrom(heap.class.to_string());
    let bitmaps = bitmaps(vm.target, heap, &words);
    for (range, part) in bitmaps.iter().zip(["mark bitmap", "auxiliary mark bitmap"]) {
        found.claim(*range, Kind::Gc, part, None, how());
    }
    if let Some(map) = collection_set_map(vm, heap, &words) {
        found.claim(map, Kind::Gc, "collection set map", None, how());
    }
    for range in card_tables(vm, heap).unwrap_or_default() {
        found.claim(range, Kind::Gc, "card table", None, How::PointedFrom("BarrierSet".to_string()));
    }
}

/// The reservation of the regions' objects: whole large pages where those are in use (shenandoahHeap.cpp,
/// `region_storage_size`).
fn region_storage(vm: &Hotspot, regions: Range) -> Range {
    let asked = vm.flags.number("LargePageSizeInBytes").ok().filter(|bytes| bytes.is_power_of_two());
    let large = regions.widened(asked.unwrap_or_else(huge_page).max(base_page()));
    let fits = large.start == regions.start && is_table(vm.target, large);
    if vm.flags.is_on("UseLargePages") && fits { large } else { regions.widened(base_page()) }
}

/// Whether `range` is anonymous private memory, reserved or committed. Parts may be committed one by one.
fn is_table(target: &Target, range: Range) -> bool {
    target.is_all(range, |mapping| mapping.is_anonymous() && !mapping.rights.shared)
}

/// `_bitmap_region` and `_aux_bitmap_region`: two MemRegions in a row, of the same size, a bit or two for each word of
/// the heap (heap/64 in JDK 11, heap/32 after), rounded up to the page size in use (at most 1 GiB).
fn bitmaps(target: &Target, heap: &Shenandoah, words: &[u64]) -> Vec<Range> {
    let least = heap.reserved.bytes() / 64;
    let most = (heap.reserved.bytes() / 32).saturating_add(1 << 30);
    let range = |pair: &[u64]| Range::sized(Addr(pair[0]), pair[1].saturating_mul(8));
    let fits = |range: Range| {
        let outside = !range.overlaps(heap.reserved);
        let sized = (least.max(1)..=most).contains(&range.bytes());
        sized && outside && range.start.is_aligned(base_page()) && is_table(target, range)
    };
    let found = words
        .windows(4)
        .map(|four| [range(&four[..2]), range(&four[2..])])
        .find(|[mark, aux]| mark.bytes() == aux.bytes() && !mark.overlaps(*aux) && fits(*mark) && fits(*aux));
    found.map_or(Vec::new(), |pair| pair.to_vec())
}

/// One byte for each region, from address 0 on, so that an address shifted finds its byte: only the first page and the
/// heap's own part are committed. `_cset_map` and `_biased_cset_map` are two words of the `ShenandoahCollectionSet`.
fn collection_set_map(vm: &Hotspot, heap: &Shenandoah, words: &[u64]) -> Option<Range> {
    let below = heap.reserved.start.0 / heap.region_bytes;
    let bytes = heap.reserved.end.0.div_ceil(heap.region_bytes);
    objects(vm, words).find_map(|object| {
        let pair = object.windows(2).find(|pair| {
            let range = Range::sized(Addr(pair[1]), bytes);
            pair[0].checked_sub(pair[1]) == Some(below)
                && range.start.is_aligned(base_page())
                && !range.start.is_null()
                && !range.overlaps(heap.reserved)
                && is_table(vm.target, range)
        })?;
        Some(Range::sized(Addr(pair[1]), bytes).widened(base_page()))
    })
}

/// The generational mode's card tables, the one written by the program and the one read by the collector
/// (shenandoahCardTable.cpp): the barrier set points to a `CardTable` that covers the heap.
fn card_tables(vm: &Hotspot, heap: &Shenandoah) -> Option<Vec<Range>> {
    let offset = |name| vm.structs.offset("CardTable", name).ok();
    let covered = offset("_whole_heap")? as usize / 8;
    let (map, base) = (offset("_byte_map")? as usize / 8, offset("_byte_map_base")? as usize / 8);
    let size = offset("_byte_map_size")? as usize / 8;
    let barrier_set = vm.static_addr("BarrierSet", "_barrier_set").ok()?;
    let words = words_at(vm, barrier_set);
    let whole = [heap.reserved.start.0, heap.reserved.bytes() / 8];
    let object = objects(vm, &words).find(|object| object.get(covered..covered + 2) == Some(&whole[..]))?;
    let (map, base, bytes) = (*object.get(map)?, *object.get(base)?, *object.get(size)?);
    Some(tables_in(vm.target, heap, &object, (map, base), bytes))
}

/// The maps of a card table: every map lies as far from its base as the first one.
fn tables_in(
    target: &Target,
    heap: &Shenandoah,
    object: &[u64],
    first: (u64, u64),
    bytes: Bytes,
) -> Vec<Range> {
    let bias = first.0.wrapping_sub(first.1);
    let mut found: Vec<Range> = Vec::new();
    for map in object {
        let range = Range::sized(Addr(*map), bytes).widened(base_page());
        let is_base = object.contains(&map.wrapping_sub(bias));
        let fits = bytes > 0
            && bytes <= heap.reserved.bytes()
            && range.start.is_aligned(base_page())
            && range.start.0 == *map
            && !range.overlaps(heap.reserved)
            && is_table(target, range);
        if is_base && fits && !found.iter().any(|other| other.overlaps(range)) {
            found.push(range);
        }
    }
    found
}

/// The first words of each object that `words` point to.
fn objects<'a>(vm: &'a Hotspot, words: &'a [u64]) -> impl Iterator<Item = Vec<u64>> + 'a {
    let is_object = |at: &Addr| {
        let mapping = vm.target.mapping(*at);
        at.is_aligned(8) && mapping.is_some_and(|m| m.is_anonymous() && m.rights.write && !m.rights.shared)
    };
    let pointers = words.iter().take(REACH_OBJECTS_MAX).map(|word| Addr(*word)).filter(is_object);
    pointers.map(|at| words_at(vm, at)).filter(|object| !object.is_empty())
}

/// As many words from `at` as lie in the page and the one behind, and are resident.
fn words_at(vm: &Hotspot, at: Addr) -> Vec<u64> {
    let to_page_end = ((at.down_to(base_page()).plus(base_page()).0 - at.0) / 8) as usize;
    let words = |count: usize| vm.memory().scan(at, count).ok();
    words(OBJECT_WORDS).or_else(|| words(to_page_end.min(OBJECT_WORDS))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::test_target::with_maps;
    use super::*;

    const HEAP: Shenandoah = Shenandoah {
        heap: Addr(0x10),
        class: "ShenandoahHeap",
        reserved: Range { start: Addr(0xf800_0000), end: Addr(0x1_0000_0000) },
        region_bytes: 0x4_0000,
        regions: 512,
    };

    /// JDK 17 with -Xmx128m: the two bitmaps are neighbours, the second one reserved only; two card tables.
    const MAPS: &str = "f8000000-100000000 rw-p 00000000 00:00 0 \n\
                        7f72b9800000-7f72b9c00000 ---p 00000000 00:00 0 \n\
                        7f72b9c00000-7f72ba000000 rw-p 00000000 00:00 0 \n\
                        7f72bb000000-7f72bb100000 rw-p 00000000 00:00 0 \n";

    #[test]
    fn bitmaps_are_two_regions_of_one_size_that_are_mapped() {
        with_maps(MAPS, |target| {
            let (mark, aux) = (0x7f72_b9c0_0000, 0x7f72_b980_0000);
            let words = [0xf800_0000, 0x100_0000, mark, 0x8_0000, aux, 0x8_0000, 1];
            let expected = vec![Range::sized(Addr(mark), 4 << 20), Range::sized(Addr(aux), 4 << 20)];
            assert_eq!(bitmaps(target, &HEAP, &words), expected);
            // Too small, unmapped, or the heap itself.
            assert_eq!(bitmaps(target, &HEAP, &[mark, 0x100, aux, 0x100]), vec![]);
            assert_eq!(bitmaps(target, &HEAP, &[mark, 0x8_0000, 0x5000_0000, 0x8_0000]), vec![]);
            assert_eq!(bitmaps(target, &HEAP, &[0xf800_0000, 0x8_0000, 0xf900_0000, 0x8_0000]), vec![]);
        });
    }

    #[test]
    fn both_card_tables_lie_as_far_from_their_bases() {
        with_maps(MAPS, |target| {
            let bias = 0xf800_0000 >> 9;
            let (one, two) = (0x7f72_bb00_0000, 0x7f72_bb04_1000);
            let object = [one, one - bias, 7, one, one - bias, two, two - bias, 0x7f72_bb08_2000];
            let found = tables_in(target, &HEAP, &object, (one, one - bias), 0x4_1000);
            assert_eq!(found, [Range::sized(Addr(one), 0x4_1000), Range::sized(Addr(two), 0x4_1000)]);
            assert_eq!(tables_in(target, &HEAP, &object, (one, one - bias), 0), vec![]);
        });
    }
}
