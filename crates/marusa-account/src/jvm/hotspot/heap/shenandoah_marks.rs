//! Which of Shenandoah's objects its last marking found alive: the bitmap and, for each region, up to where it was in use when the
//! marking began. vmStructs names neither; they hang at the `ShenandoahMarkingContext`, to which the heap points
//! (src/hotspot/share/gc/shenandoah/shenandoahMarkingContext.hpp): the heap's bounds, the bitmap and its size, and two pointers to
//! one table, of which one is shifted so that an address finds its region.

use super::super::Hotspot;
use super::object_words;
use super::shenandoah_heap::Shenandoah;
use crate::base::{Addr, PAGE, Range};
use crate::jvm::hotspot::histogram::marks::Marks;

/// The words of the context that are looked at.
const CONTEXT_WORDS: usize = 12;
/// `_is_complete` lies behind the tables and a cache line (`ShenandoahSharedFlag`), up to JDK 23. Later JDKs have it elsewhere, and
/// clear the bitmap after each collection.
const FLAG_AFTER_BYTES: u64 = 64;
/// The words of each region's marks that are compared to see whether they change.
const SAMPLE_WORDS: usize = 64;

pub struct Marking {
    marks: Marks,
    /// By the number of the region.
    tops: Vec<u64>,
    region_bytes: u64,
    start: Addr,
}

/// `None`: it is not found, or is under way.
pub fn read(vm: &Hotspot, heap: &Shenandoah) -> Option<Marking> {
    let words = object_words(vm, heap.heap, heap.class).ok()?;
    words.iter().find_map(|word| {
        let at = Addr(*word);
        let is_pointer = !at.is_null() && at.is_aligned(8) && !heap.reserved.has(at);
        let context = vm.memory().scan(at, CONTEXT_WORDS).ok().filter(|_| is_pointer)?;
        Marking::of(vm, heap, at, &context)
    })
}

impl Marking {
    fn of(vm: &Hotspot, heap: &Shenandoah, at: Addr, words: &[u64]) -> Option<Marking> {
        let bounds = [heap.reserved.start.0, heap.reserved.bytes() / 8];
        let behind = words.windows(2).rposition(|pair| pair == bounds)? + 2;
        // JDK 11 has them twice, and its shift behind them, and one bit for each place.
        let (map_at, bits_each) = if *words.get(behind)? < PAGE { (behind + 1, 1) } else { (behind, 2) };
        let (map, bits) = (Addr(*words.get(map_at)?), *words.get(map_at + 1)?);
        let (tables_at, table) =
            words.get(map_at + 2..)?.windows(2).enumerate().find_map(|(place, pair)| {
                let shifted = heap.reserved.start.0 / heap.region_bytes * 8;
                let table = pair[0].max(pair[1]);
                (table.abs_diff(pair[0].min(pair[1])) == shifted).then_some((map_at + 2 + place, table))
            })?;
        let alignment = vm.flags.number("ObjectAlignmentInBytes").unwrap_or(8).clamp(8, 256);
        let places = heap.reserved.bytes() / alignment;
        let is_sane =
            map.is_aligned(PAGE) && bits >= places * u64::from(bits_each) && vm.target.mapping(map).is_some();
        let flag = vm.memory().u32(at.plus((tables_at as u64 + 2) * 8 + FLAG_AFTER_BYTES)).ok()?;
        if !is_sane || flag != 1 {
            return None;
        }
        let tops = vm.memory().words(Addr(table), heap.regions as usize).ok()?;
        let marks = Marks {
            map,
            bits,
            first: heap.reserved.start.0,
            shift: alignment.ilog2(),
            bits_each,
            ..Marks::ALL
        };
        Some(Marking { marks, tops, region_bytes: heap.region_bytes, start: heap.reserved.start })
    }

    /// The marks of the region that begins at `at`.
    pub fn of_region(&self, at: Addr) -> Option<Marks> {
        let number = at.offset_from(self.start)? / self.region_bytes;
        let top = *self.tops.get(number as usize)?;
        let region = Range::sized(at, self.region_bytes);
        (region.start.0..=region.end.0).contains(&top).then_some(Marks { limit: top, ..self.marks })
    }

    /// What is different when the collector has marked since.
    pub fn stamp(&self, vm: &Hotspot, marks: &Marks, at: Addr) -> u64 {
        let (first, _) = marks.bytes(at.0, at.0 + self.region_bytes);
        let words = vm.memory().words(marks.map.plus(first & !7), SAMPLE_WORDS).unwrap_or_default();
        words
            .iter()
            .fold(marks.limit, |sum, word| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
    }
}
