//! Which of G1's objects its last complete marking found alive, JDK 8 to 19: a bitmap, and for each region up to where it was in
//! use when that marking began. A full collection marks, too. vmStructs names neither. The heap points to the `G1ConcurrentMark`,
//! which has two bitmaps and then two pointers to them, of which the first is that of the last complete marking; each marking
//! exchanges them. In a region's object the tops of that marking and of the next one are neighbours behind its type
//! (src/hotspot/share/gc/g1/{g1ConcurrentMark,heapRegion}.hpp).
//!
//! From JDK 20 on there is one bitmap, which is cleared after the marking, and dead objects are overwritten with fillers.

use super::super::Hotspot;
use super::object_words;
use super::spaces::collected_heap;
use crate::base::{Addr, PAGE, Range};
use crate::jvm::hotspot::histogram::marks::Marks;

/// The first JDK without the marks of the last marking.
const SINGLE_BITMAP_MAJOR: u32 = 20;
/// The words of a `G1ConcurrentMark` that are looked at.
const MARK_WORDS: usize = 128;
/// The words that are read of a region's object: a JDK 8 has 488 bytes.
pub const REGION_WORDS: usize = 64;

/// The bitmap of the last complete marking.
pub struct Marking {
    marks: Marks,
    /// The word of a region's object with the top at its start.
    top_at: usize,
}

/// Whether marks distinguish dead objects at all.
pub fn has_marks(vm: &Hotspot) -> bool {
    vm.major.is_some_and(|major| major < SINGLE_BITMAP_MAJOR)
}

/// `regions`: the words of the regions' objects, each with its range; `tag_at`: where its type is.
pub fn read(vm: &Hotspot, heap: Range, regions: &[(Range, &[u64])], tag_at: u64) -> Option<Marking> {
    let words = object_words(vm, collected_heap(vm).ok()?, "G1CollectedHeap").ok()?;
    let marks = words.iter().find_map(|word| {
        let at = Addr(*word);
        let is_pointer = !at.is_null() && at.is_aligned(8) && !heap.has(at);
        let mark = vm.memory().scan(at, MARK_WORDS).ok().filter(|_| is_pointer)?;
        previous(heap, at, &mark)
    })?;
    let is_mapped = vm.target.mapping(marks.map).is_some();
    let top_at = top_at(heap, regions, tag_at).filter(|_| is_mapped)?;
    Some(Marking { marks, top_at })
}

/// The bitmap of the last complete marking, by the words of what lies at `at`.
fn previous(heap: Range, at: Addr, words: &[u64]) -> Option<Marks> {
    let covered = [heap.start.0, heap.bytes() / 8];
    let bitmap = |(place, words): (usize, &[u64])| {
        let [start, length, shift, map, bits] = *words.first_chunk()?;
        let shift = shift & 0xffff_ffff;
        let is_bitmap = [start, length] == covered
            && shift <= 5
            && map % PAGE == 0
            && map != 0
            && map >> 48 == 0
            && bits == length >> shift;
        let marks = || Marks { map: Addr(map), bits, first: start, shift: 3 + shift as u32, ..Marks::ALL };
        is_bitmap.then(|| (place, marks()))
    };
    let bitmaps: Vec<(usize, Marks)> = words.windows(5).enumerate().filter_map(bitmap).collect();
    let [(first, _), (second, _)] = bitmaps[..] else { return None };
    // A bitmap begins with its range, or with a pointer to its virtual functions before it.
    [0, 1].into_iter().find_map(|before| {
        let address = |place: usize| at.plus((place - before.min(place)) as u64 * 8).0;
        let (one, other) = (address(first), address(second));
        let is_pair = |pair: &&[u64]| **pair == [one, other] || **pair == [other, one];
        let behind = &words[second..];
        // The second bitmap ends with what is called when it grows, and that with a pointer to the bitmap.
        let with_listener = behind.windows(3).find(|words| words[0] == other && is_pair(&&words[1..]));
        let pair = with_listener.map(|words| &words[1..]).or_else(|| behind.windows(2).find(is_pair))?;
        bitmaps.iter().find(|(place, _)| address(*place) == pair[0]).map(|(_, marks)| *marks)
    })
}

/// The first two neighbours behind the type that are in every region addresses of it; in the first one of a humongous object of
/// JDK 8, addresses of the object. A number of 32 bits before them that is -1 lies in a heap that ends at 4 GiB.
fn top_at(heap: Range, regions: &[(Range, &[u64])], tag_at: u64) -> Option<usize> {
    let is_inside = |place: usize| {
        let inside = |(range, words): &(Range, &[u64])| {
            let is_top = |word: &u64| word.is_multiple_of(8) && (range.start.0..=heap.end.0).contains(word);
            words.get(place).is_some_and(is_top)
        };
        regions.iter().all(inside)
    };
    let first = (tag_at / 8) as usize + 1;
    (first..REGION_WORDS).find(|place| !regions.is_empty() && is_inside(*place) && is_inside(place + 1))
}

impl Marking {
    /// The marks of the region with these words.
    pub fn of_region(&self, range: Range, words: &[u64]) -> Marks {
        match words.get(self.top_at) {
            Some(top) if *top > range.start.0 => Marks { limit: *top, ..self.marks },
            _ => Marks::ALL,
        }
    }
}

/// What is different when another marking is complete.
pub fn stamp(marks: Option<Marks>) -> u64 {
    marks.filter(|marks| marks.bits > 0).map_or(0, |marks| marks.map.0.rotate_left(32) ^ marks.limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAP: Range = Range { start: Addr(0x8000_0000), end: Addr(0x8100_0000) };

    #[test]
    fn the_first_pointer_leads_to_the_bitmap_of_the_complete_marking() {
        let words = HEAP.bytes() / 8;
        let bitmap = |map: u64| [HEAP.start.0, words, 0, map, words];
        let with_functions = |pair: [u64; 2]| {
            [&[7, 8, 0x9000][..], &bitmap(0x10_0000), &[0x5, 0x9000], &bitmap(0x20_0000), &[0x5], &pair]
                .concat()
        };
        let at = Addr(0x4000);
        let map = |words: &[u64]| previous(HEAP, at, words).map(|marks| marks.map.0);
        let (one, other) = (at.0 + 2 * 8, at.0 + 9 * 8);
        assert_eq!(map(&with_functions([one, other])), Some(0x10_0000));
        assert_eq!(map(&with_functions([other, one])), Some(0x20_0000));
        let (one, other) = (at.0 + 3 * 8, at.0 + 10 * 8);
        assert_eq!(map(&with_functions([other, one])), Some(0x20_0000), "JDK 8: no virtual functions");
        assert_eq!(map(&with_functions([one, one])), None);
        for (pair, complete) in [([one, other], 0x10_0000), ([other, one], 0x20_0000)] {
            let words =
                [&bitmap(0x10_0000)[..], &[0x5, one], &bitmap(0x20_0000), &[0x5, other], &pair].concat();
            let words = [&[7, 8, 9][..], &words].concat();
            assert_eq!(map(&words), Some(complete), "the second one's own pointer to it is none of the two");
        }
        assert_eq!(map(&bitmap(0x10_0000)), None, "one bitmap");
    }

    #[test]
    fn tops_at_the_start_of_markings_are_neighbours_behind_the_type() {
        let region = |number: u64, top: u64| {
            let start = HEAP.start.0 + number * 0x10_0000;
            let words =
                vec![start, start + 0x10_0000, start, start, number, 0x7000, start + top, start, 3, start];
            (Range::sized(Addr(start), 0x10_0000), words)
        };
        let all = [region(0, 0x500), region(3, 0)];
        let regions: Vec<(Range, &[u64])> = all.iter().map(|(range, words)| (*range, &words[..])).collect();
        assert_eq!(top_at(HEAP, &regions, 32), Some(6));
        assert_eq!(top_at(HEAP, &[], 32), None);
        let low = Range { end: Addr(1 << 32), ..HEAP };
        let old = regions
            .iter()
            .map(|(range, words)| (*range, [&words[..5], &[0xffff_ffff], &words[6..]].concat()));
        let old: Vec<(Range, Vec<u64>)> = old.collect();
        let old: Vec<(Range, &[u64])> = old.iter().map(|(range, words)| (*range, &words[..])).collect();
        assert_eq!(top_at(low, &old, 32), Some(6), "not the word before them, an age of -1");
        let marking = Marking { marks: Marks { bits: 64, map: Addr(0x1000), ..Marks::ALL }, top_at: 6 };
        let limit = |number: usize| marking.of_region(all[number].0, &all[number].1).limit;
        assert_eq!([limit(0), limit(1)], [HEAP.start.0 + 0x500, 0], "nothing of the other was marked");
        assert_eq!(stamp(Some(Marks::ALL)), 0);
    }
}
