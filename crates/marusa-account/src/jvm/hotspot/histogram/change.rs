//! What the JVM did to the heap while it was read: which regions are not what they were, and what came to the others.

use super::pass::Contents;
use super::region::{Heap, Lie, Region};
use crate::base::{Covered, Range, place_of};
use std::collections::HashMap;

/// Which regions are not what they were.
pub fn changed(before: &Heap, now: &Heap) -> Vec<bool> {
    before.regions.iter().map(|region| is_changed(region, before, now)).collect()
}

/// Where a collection leaves no mark at the regions, it empties those of the young generation and, if it is a full one, moves what
/// is in the others; it promotes into free chunks.
fn is_changed(region: &Region, before: &Heap, now: &Heap) -> bool {
    let Some(place) = same(region, now) else { return true };
    let is_young = region.space.contains("eden") || region.space.contains("survivor");
    let is_collected = before.is_filled && before.collections != now.collections;
    let is_moved = before.is_filled && before.full_collections != now.full_collections;
    let has_free = region.lie == Lie::WithFreeChunks;
    is_moved || is_collected && (is_young || has_free) || now.regions[place].range.end < region.range.end
}

/// The number of the region now; a piece of one is found by its start.
fn same(region: &Region, now: &Heap) -> Option<usize> {
    let at = region.range.start;
    let place = place_of(&now.regions, at, |it| it.range)?;
    let other = &now.regions[place];
    let is_start = region.is_piece || other.range.start == at;
    let is_same = other.space == region.space && other.stamp == region.stamp && other.lie == region.lie;
    (is_start && is_same).then_some(place)
}

/// The contents of the regions that did not change, by their numbers now. The ones that grew are read again.
pub fn kept(
    before: &Heap,
    now: &Heap,
    found: Vec<Contents>,
    is_changed: &[bool],
) -> HashMap<usize, Contents> {
    let still = before.regions.iter().zip(found).zip(is_changed).filter(|(_, is_changed)| !**is_changed);
    let kept = still.filter_map(|((region, contents), _)| {
        let place = same(region, now)?;
        let other = &now.regions[place];
        let is_same =
            other.range == region.range && other.marks == region.marks && other.holes == region.holes;
        is_same.then_some((place, contents))
    });
    kept.collect()
}

/// What is there now and was not: what regions grew by, what buffers had unused, and regions that are new or changed.
pub fn grown(before: &Heap, now: &Heap, is_changed: &[bool]) -> Vec<Region> {
    let still: HashMap<usize, &Region> = before
        .regions
        .iter()
        .zip(is_changed)
        .filter(|(_, is_changed)| !**is_changed)
        .filter_map(|(region, _)| Some((same(region, now)?, region)))
        .collect();
    let pieces = now.regions.iter().enumerate().flat_map(|(number, region)| match still.get(&number) {
        Some(old) => added(old, region),
        None => vec![region.clone()],
    });
    pieces.collect()
}

fn added(old: &Region, now: &Region) -> Vec<Region> {
    let unused = Covered::of(now.holes.iter().copied());
    let behind = Range::new(old.range.end, now.range.end);
    let ranges = old.holes.iter().chain([&behind]).filter(|range| !range.is_empty());
    let piece = |range: Range| Region { range, is_piece: true, holes: Vec::new(), ..now.clone() };
    ranges.flat_map(|range| unused.missing(*range)).map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u64, end: u64, space: &'static str) -> Region {
        Region { range: Range::of(start, end), space, ..Region::default() }
    }

    fn heap(regions: Vec<Region>, collections: u64) -> Heap {
        Heap { regions, collections: Some(collections), is_filled: true, ..Heap::default() }
    }

    fn ranges(before: &Heap, now: &Heap) -> Vec<(u64, u64)> {
        let grown = grown(before, now, &changed(before, now));
        grown.iter().map(|region| (region.range.start.0, region.range.end.0)).collect()
    }

    #[test]
    fn what_is_added_lies_behind_tops_in_buffers_and_in_new_regions() {
        let mut eden = region(0x1000, 0x2000, "eden");
        eden.holes = vec![Range::of(0x1800, 0x1c00)];
        let old = region(0x8000, 0x8800, "old");
        let before = heap(vec![eden.clone(), old.clone()], 3);
        eden.range = Range::of(0x1000, 0x2400);
        eden.holes = vec![Range::of(0x1a00, 0x1c00), Range::of(0x2300, 0x2400)];
        let now = heap(vec![eden, region(0x4000, 0x4100, "eden"), old], 3);
        assert_eq!(changed(&before, &now), [false, false]);
        assert_eq!(ranges(&before, &now), [(0x1800, 0x1a00), (0x2000, 0x2300), (0x4000, 0x4100)]);
        assert_eq!(ranges(&before, &before), []);
    }

    #[test]
    fn a_collection_changes_the_young_and_a_full_one_all() {
        let regions = || vec![region(0x1000, 0x2000, "eden"), region(0x8000, 0x8800, "old")];
        let (before, mut now) = (heap(regions(), 3), heap(regions(), 4));
        now.regions[1].range = Range::of(0x8000, 0x8900);
        assert_eq!(changed(&before, &now), [true, false]);
        assert_eq!(ranges(&before, &now), [(0x1000, 0x2000), (0x8800, 0x8900)]);
        now.full_collections = Some(1);
        assert_eq!(changed(&before, &now), [true, true]);
        assert_eq!(changed(&before, &heap(vec![region(0x1000, 0x1800, "eden")], 3)), [true, true]);
    }

    #[test]
    fn a_piece_is_found_in_the_region_that_has_it() {
        let now = heap(vec![region(0x1000, 0x2000, "eden")], 3);
        let piece = Region { is_piece: true, ..region(0x1800, 0x1900, "eden") };
        assert_eq!(changed(&heap(vec![piece], 3), &now), [false]);
        let other = region(0x1800, 0x1900, "eden");
        assert_eq!(changed(&heap(vec![other], 3), &now), [true]);
    }
}
