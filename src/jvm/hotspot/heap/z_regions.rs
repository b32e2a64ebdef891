//! Where ZGC's objects lie one behind the other, and which of them its last marking found alive.

use super::super::Hotspot;
use super::z::{Z, mapped_offsets, mappings_of};
use super::z_pages::{self, Generation, LiveMap, Page, Size};
use crate::base::{Addr, Bytes, Known, Range};
use crate::jvm::hotspot::histogram::marks::Marks;
use crate::jvm::hotspot::histogram::walk::{Lie, Region};
use std::collections::HashMap;

/// Of a page of 32 MiB; medium pages have fewer.
const MARK_BITS_MAX: u64 = 8 << 20;

/// Where objects lie, by addresses in the first view.
pub struct Mapped {
    pub regions: Vec<Region>,
    pub first: Addr,
    /// How far the other views lie behind the first.
    pub shifts: Vec<u64>,
    pub offset_max: Bytes,
    /// It is not known yet what is alive.
    pub is_marking: bool,
}

/// The pages in use as far as they are.
pub fn regions(vm: &Hotspot) -> Known<Mapped> {
    let z = Z::read(vm)?;
    let views = z.views(vm)?;
    let mappings = mappings_of(&vm.target.view.mappings, &views, z.offset_max);
    let first = views.first().map_or(Addr::NULL, |view| view.base);
    let pages = z_pages::read(vm, &z, mapped_offsets(&views, &mappings))?;
    let medium = z.medium_alignment(vm, &pages);
    let marking = Marking::of(vm, &pages);
    let small = vm.flags.number("ObjectAlignmentInBytes").unwrap_or(8).clamp(8, 256);
    let region = |page: &Page| Region {
        range: Range::sized(first.plus(page.start), page.in_use),
        space: page.part(),
        lie: match page.size {
            Size::Small => Lie::Packed,
            Size::Medium => Lie::Aligned(medium),
            Size::Large => Lie::Single,
        },
        stamp: page.sequence.into(),
        marks: marking.of_page(page, first.plus(page.start), small, medium),
        ..Region::default()
    };
    let shifts = views.iter().skip(1).map(|view| view.base.0 - first.0).collect();
    // Without generations, marks were incomplete right after a collection (21.0.8): objects that live would be missing.
    let is_marking = !z.generational || marking.0.values().any(|(_, is_done)| !is_done);
    let regions = pages.iter().map(region).collect();
    Ok(Mapped { regions, first, shifts, offset_max: z.offset_max, is_marking })
}

/// The last marking of each generation: the newest number that any of its pages has.
struct Marking(HashMap<Option<Generation>, (u32, bool)>);

impl Marking {
    /// What was not allocated since and is not marked goes when marking ends: as long as there is such a page, it is under way.
    fn of(vm: &Hotspot, pages: &[Page]) -> Marking {
        let mut newest = HashMap::new();
        for page in pages {
            let Some(live) = page.live else { continue };
            let number = &mut newest.entry(page.generation).or_insert((0, true)).0;
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

    fn of_page(&self, page: &Page, start: Addr, small: u64, medium: u64) -> Option<Marks> {
        let live = page.live?;
        let (number, _) = self.0.get(&page.generation).filter(|(_, is_done)| *is_done)?;
        if page.sequence == *number {
            return Some(Marks::ALL);
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

/// Whether a page has as many bits as objects that were found: as long as threads mark, they have not told of all.
fn is_complete(vm: &Hotspot, live: &LiveMap) -> bool {
    let words = vm.memory().words(live.map, (live.bits.min(MARK_BITS_MAX) / 64) as usize);
    words.is_ok_and(|words| set_places(&words, live.segments) == u64::from(live.objects))
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
    /// Of objects in medium pages: one of 8,192 parts of the largest such page, which is the power of two below a 32nd of the heap
    /// (src/hotspot/share/gc/z/zHeuristics.cpp, `set_medium_page_size`; JDK 11 has a constant).
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
