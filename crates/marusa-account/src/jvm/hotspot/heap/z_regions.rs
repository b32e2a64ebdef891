//! Where ZGC's objects lie one behind the other, and which of them its last marking found alive.

use super::super::Hotspot;
use super::z_heap::Z;
use super::z_pages::{self, Generation, LiveMap, Page, Size};
use crate::base::{Addr, Known, PAGE, Range};
use crate::jvm::hotspot::histogram::marks::Marks;
use crate::jvm::hotspot::histogram::region::{Heap, Lie, Region};
use std::collections::HashMap;

/// The mark bits of a page of 32 MiB; medium pages have fewer.
const MARK_BITS_MAX: u64 = 8 << 20;

/// The number of the time before the first collection: collections count from there (zGlobals.cpp, zGeneration.cpp).
const FIRST_NUMBER: u32 = 1;

/// The pages in use as far as they are, by addresses in the first view.
pub fn heap(vm: &Hotspot) -> Known<Heap> {
    let z = Z::read(vm)?;
    let views = z.views(vm)?;
    let first = views.first().map_or(Addr::NULL, |view| view.base);
    let pages = z_pages::read(vm, &z, &views)?;
    let medium = z.medium_alignment(vm, &pages);
    let marking = Marking::of(vm, &z, &pages);
    let small = vm.flags.number("ObjectAlignmentInBytes").unwrap_or(8).clamp(8, 256);
    let region = |page: &Page| Region {
        range: Range::sized(first.plus(page.start), page.in_use),
        space: page.part(),
        lie: match page.size {
            Size::Small => Lie::Packed,
            Size::Medium => Lie::Aligned(medium),
            Size::Large => Lie::Single,
        },
        stamp: marking.stamp(page),
        marks: marking.of_page(page, first.plus(page.start), small, medium),
        ..Region::default()
    };
    let shifts = views.iter().skip(1).map(|view| view.base.0 - first.0).collect();
    let is_marking = marking.0.values().any(|(_, is_done)| !is_done);
    let regions = pages.iter().map(region).collect();
    Ok(Heap { regions, shifts, in_first: Some((first, z.offset_max - 1)), is_marking, ..Heap::default() })
}

/// The last marking of each generation: the newest number that any of its pages has.
struct Marking(HashMap<Option<Generation>, (u32, bool)>);

impl Marking {
    /// What was not allocated since and is not marked goes when marking ends: as long as there is such a page, it is under way.
    /// That alone is not enough where marking threads rest in between; without generations the VM names its phase.
    fn of(vm: &Hotspot, z: &Z, pages: &[Page]) -> Marking {
        let mut newest = HashMap::new();
        let is_done = z.generational || z.has_marked(vm);
        for page in pages {
            let Some(live) = page.live else { continue };
            let number = &mut newest.entry(page.generation).or_insert((0, is_done)).0;
            *number = page.sequence.max(live.sequence).max(*number);
        }
        for page in pages {
            let Some((number, is_done)) = newest.get_mut(&page.generation) else { continue };
            let is_old = page.in_use > 0 && page.sequence < *number;
            let is_marked = |live: LiveMap| live.sequence == *number && is_complete(vm, &live);
            *is_done &= !is_old || page.live.is_some_and(is_marked);
        }
        Marking(newest)
    }

    /// What the page is recognised by: a new marking makes its marks others.
    fn stamp(&self, page: &Page) -> u64 {
        let (number, is_done) = self.0.get(&page.generation).copied().unwrap_or_default();
        u64::from(page.sequence) | u64::from(number) << 32 | u64::from(is_done) << 63
    }

    fn of_page(&self, page: &Page, start: Addr, small: u64, medium: u64) -> Option<Marks> {
        let live = page.live?;
        let (number, _) = self.0.get(&page.generation).filter(|(_, is_done)| *is_done)?;
        if page.sequence == *number {
            // Before the first collection nothing was marked; what is old was found alive by one of the young generation.
            let has_marked = *number > FIRST_NUMBER || page.generation == Some(Generation::Old);
            return has_marked.then_some(Marks::ALL);
        }
        let shift = match page.size {
            Size::Small => small.ilog2(),
            Size::Medium => medium.ilog2(),
            Size::Large => 21,
        };
        let places = ((page.end - page.start) >> shift).max(64);
        let is_sane = live.bits.is_power_of_two() && live.bits / 2 <= places.next_power_of_two().max(64);
        is_sane.then(|| Marks {
            map: live.map,
            bits: live.bits,
            first: start.0,
            shift,
            bits_each: 2,
            segments: live.segments,
            segment_shift: (live.bits / 64).max(1).ilog2(),
            limit: u64::MAX,
        })
    }
}

/// Whether a page has as many bits as objects that were found: as long as threads mark, they have not reported all.
fn is_complete(vm: &Hotspot, live: &LiveMap) -> bool {
    let words = words_now(vm, Range::sized(live.map, live.bits.min(MARK_BITS_MAX) / 8));
    words.is_some_and(|words| set_places(&words, live.segments) == u64::from(live.objects))
}

/// What is in memory of `range` at this moment; what was never touched holds zeros.
fn words_now(vm: &Hotspot, range: Range) -> Option<Vec<u64>> {
    let pages = range.widened(PAGE);
    let now = vm.memory().bulk().and_then(|bulk| bulk.resident(pages));
    let mut bytes = vec![0; range.bytes() as usize];
    for run in now.unwrap_or_else(|| vm.target.resident(pages)) {
        let run = run.intersect(range);
        let place = (run.start.0 - range.start.0) as usize;
        vm.memory().read_now(run.start, &mut bytes[place..place + run.bytes() as usize]).ok()?;
    }
    Some(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Every second bit says that an object is alive; those of a segment count if its bit is set.
fn set_places(words: &[u64], segments: u64) -> u64 {
    let bits = words.len() as u64 * 64;
    let segment = |bit: u64| segments >> (bit * 64 / bits) & 1;
    let word_bits = |(place, word): (usize, &u64)| match bits / 64 {
        // The segments of a page with few objects are smaller than a word.
        0..64 => (0..64).step_by(2).map(|bit| word >> bit & segment(place as u64 * 64 + bit) & 1).sum(),
        _ => u64::from((word & 0x5555_5555_5555_5555).count_ones()) * segment(place as u64 * 64),
    };
    words.iter().enumerate().map(word_bits).sum()
}

impl Z {
    /// The alignment of objects in medium pages: one of 8,192 parts of the largest such page, which is the power of two below a
    /// 32nd of the heap (src/hotspot/share/gc/z/zHeuristics.cpp, `set_medium_page_size`; JDK 11 has a constant).
    fn medium_alignment(&self, vm: &Hotspot, pages: &[Page]) -> u64 {
        let shift = vm.structs.constant(&self.named("ObjectAlignmentMediumShift")).ok();
        if let Some(shift) = shift.filter(|shift| (3..=20).contains(shift)) {
            return 1 << shift;
        }
        let heap = vm.flags.number("MaxHeapSize").unwrap_or(0);
        let by_heap = 1 << (heap / 32).clamp(self.granule, self.granule * 16).ilog2();
        let medium = pages.iter().filter(|page| page.size == Size::Medium);
        medium.map(|page| page.end - page.start).fold(by_heap, u64::max).next_power_of_two() >> 13
    }
}

#[cfg(test)]
mod tests {
    use super::set_places;

    #[test]
    fn places_of_objects_count_in_segments_that_are_alive() {
        assert_eq!(set_places(&[0b1011, 0], u64::MAX), 1, "the second place has its second bit alone");
        assert_eq!(set_places(&[0b0101, 0], 0b01), 1, "two bits each");
        let words = vec![0b11_0101; 8192];
        assert_eq!(set_places(&words, u64::MAX), 3 * 8192);
        assert_eq!(set_places(&words, 1 << 63 | 1), 3 * 256);
        assert_eq!(set_places(&[], 1), 0);
    }
}
