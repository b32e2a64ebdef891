//! ZGC's tables outside the heap: the page table, the forwarding tables, the map of physical memory, and the space of the
//! mark stacks. All but the page table are found by pairs of words within the `ZCollectedHeap`, which holds the whole
//! collector by value; each pair must fit what is mapped where it points. What ZGC keeps in malloc is not claimed here.

use super::super::{Found, Hotspot};
use super::z_heap::Z;
use super::{object_words, z_pages};
use crate::base::{Addr, Bytes, Range};
use crate::jvm::types::{How, Kind};
use crate::os::Target;
use crate::os::machine::base_page;

/// `ZMarkStackSpaceExpandSize`, JDK 11 to 23.
const MARK_STACK_STEP: Bytes = 32 << 20;
/// JDK 11's `ZMarkStackSpaceSize`.
const MARK_STACK_RESERVED_MAX: Bytes = 1 << 40;

/// Claims them all.
pub fn read(vm: &Hotspot, z: &Z, found: &mut Found) {
    let table = found.note(z_pages::table(vm, z));
    if let Some(table) = table {
        found.claim(table.widened(base_page()), Kind::Gc, "page table", None, How::VmStructs);
    }
    let class = z.named("CollectedHeap");
    let Some(words) = found.note(object_words(vm, z.collected, &class)) else { return };
    let how = || How::PointedFrom(class.clone());
    let forwarding = forwarding_at(vm, z, &words);
    for number in &forwarding {
        let map = granule_map(vm.target, &words, *number, 8);
        if let Some(map) = map {
            found.claim(map, Kind::Gc, "forwarding table", None, how());
        }
    }
    let length = forwarding.first().and_then(|number| words.get(*number));
    if let Some(map) = length.and_then(|length| physical_map(vm, z, &words, *length)) {
        found.claim(map, Kind::Gc, "map of physical memory", None, how());
    }
    let limit = vm.flags.number("ZMarkStackSpaceLimit").ok();
    for (space, in_use) in mark_stacks(vm.target, &words, limit) {
        found.claim(space, Kind::Gc, "mark stacks", in_use, how());
    }
}

/// The words of the `ZCollectedHeap` at which forwarding tables start.
fn forwarding_at(vm: &Hotspot, z: &Z, words: &[u64]) -> Vec<usize> {
    match vm.structs.offset(&z.named("Heap"), "_forwarding_table") {
        Ok(offset) => vec![(z.heap.plus(offset).0.saturating_sub(z.collected.0) / 8) as usize],
        Err(_) => generations(z, words),
    }
}

/// The arrays of forwarding tables, by the words of the `ZCollectedHeap`.
pub fn forwarding(vm: &Hotspot, z: &Z, words: &[u64]) -> Vec<Range> {
    let tables = forwarding_at(vm, z, words).into_iter();
    tables.filter_map(|number| granule_map(vm.target, words, number, 8)).collect()
}

/// The words at which the forwarding tables of the two generations start: each `ZGeneration` points to the page allocator
/// and to the page table just before (zGeneration.hpp, JDK 21 on).
fn generations(z: &Z, words: &[u64]) -> Vec<usize> {
    let starts = words.windows(2).enumerate();
    let found = starts.filter(|(_, pair)| *pair == [z.allocator.0, z.page_table.0]);
    found.map(|(number, _)| number + 2).collect()
}

/// The only map within the page allocator (zPhysicalMemoryManager.hpp, `_physical_mappings`, JDK 25): as many entries as
/// a forwarding table, of 4 bytes.
fn physical_map(vm: &Hotspot, z: &Z, words: &[u64], length: u64) -> Option<Range> {
    if !vm.structs.has_type("ZPartition") {
        return None;
    }
    let word = |at: Addr| (at.0.saturating_sub(z.collected.0) / 8) as usize;
    let mut within = word(z.allocator)..word(z.page_table);
    within.find_map(|number| {
        let is_length = words.get(number) == Some(&length);
        granule_map(vm.target, words, number, 4).filter(|_| is_length)
    })
}

/// The `ZGranuleMap` at word `number`: how many entries, then the address of the array.
fn granule_map(target: &Target, words: &[u64], number: usize, entry_bytes: Bytes) -> Option<Range> {
    let (length, start) = (*words.get(number)?, Addr(*words.get(number + 1)?));
    let range = Range::sized(start, length.checked_mul(entry_bytes)?).widened(base_page());
    let mapping = target.mapping(start)?;
    let is_table = mapping.is_anonymous() && mapping.rights.write && !mapping.rights.shared;
    let fits = !range.is_empty() && range.start == start && mapping.range.covers(range);
    (is_table && fits).then_some(range)
}

/// `ZMarkStackSpace`s: `_start`, `_top`, `_end` (zMarkStackAllocator.hpp, JDK 15 to 23), or the last two only (JDK 11,
/// whose space starts where its mapping does). `_end` lies behind what is committed, a multiple of 32 MiB. Each with the
/// bytes below `_top`.
fn mark_stacks(target: &Target, words: &[u64], limit: Option<Bytes>) -> Vec<(Range, Bytes)> {
    let mut found: Vec<(Range, Bytes)> = Vec::new();
    for triple in words.windows(3) {
        let space = mark_stack(target, Addr(triple[0]), Addr(triple[1]), Addr(triple[2]), limit);
        if let Some((space, in_use)) = space
            && !found.iter().any(|(other, _)| other.overlaps(space))
        {
            found.push((space, in_use));
        }
    }
    found
}

fn mark_stack(
    target: &Target,
    before: Addr,
    top: Addr,
    end: Addr,
    limit: Option<Bytes>,
) -> Option<(Range, Bytes)> {
    if top.is_null() || top > end || !end.is_aligned(base_page()) {
        return None;
    }
    let committed_from = committed_below(target, end)?;
    let has_start = (committed_from..=top).contains(&before);
    let start = if has_start { before } else { committed_from };
    let committed = Range::new(start, end).bytes();
    if top < start || committed == 0 || !committed.is_multiple_of(MARK_STACK_STEP) {
        return None;
    }
    // What is not committed yet is reserved behind the end.
    let behind = target.mapping(end).filter(|mapping| mapping.is_anonymous() && !mapping.rights.any());
    let reserved_to = behind.map_or(end, |mapping| mapping.range.end);
    let space_end = match limit.filter(|_| has_start) {
        Some(limit) => start.plus(limit),
        None => reserved_to.min(start.plus(MARK_STACK_RESERVED_MAX)),
    };
    let fits = end <= space_end && space_end <= reserved_to;
    fits.then(|| (Range::new(start, space_end), top.0 - start.0))
}

/// From where on all is writable private memory up to `end`, where that stops: the kernel does not always join what was
/// committed in steps.
fn committed_below(target: &Target, end: Addr) -> Option<Addr> {
    let mappings = &target.view.mappings;
    let mut start = None;
    let mut number = mappings.partition_point(|mapping| mapping.range.end < end);
    while let Some(mapping) = mappings.get(number) {
        let is_stack = mapping.is_anonymous() && mapping.rights.write && !mapping.rights.shared;
        if !is_stack || mapping.range.end != start.unwrap_or(end) {
            break;
        }
        start = Some(mapping.range.start);
        let Some(lower) = number.checked_sub(1) else { break };
        number = lower;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::super::test_target::with_maps;
    use super::*;

    /// JDK 17: forwarding table; mark stacks with 32 MiB committed of 8 GiB. JDK 11: mark stacks of 1 TiB.
    const MAPS: &str = "150000000000-150002000000 rw-p 00000000 00:00 0 \n\
                        150002000000-150004000000 rw-p 00000000 00:00 0 \n\
                        150004000000-160000000000 ---p 00000000 00:00 0 \n\
                        7f3d3b000000-7f3d3d000000 rw-p 00000000 00:00 0 \n\
                        7f3d3d000000-7f3f3b000000 ---p 00000000 00:00 0 \n\
                        7f3f3b000000-7f3f3c000000 rw-p 00000000 00:00 0 \n";

    #[test]
    fn a_granule_map_is_as_long_as_it_says() {
        with_maps(MAPS, |target| {
            let (length, start) = (0x20_0000, 0x7f3f_3b00_0000);
            let words = [5, length, start, length, start + 8, length, 0x5000];
            let whole = Some(Range::sized(Addr(start), 16 << 20));
            let found = (0..8).map(|number| granule_map(target, &words, number, 8));
            let expected = [None, whole, None, None, None, None, None, None];
            assert!(found.eq(expected));
            // One entry more than what is mapped has room for.
            assert_eq!(granule_map(target, &[length + 1, start], 0, 8), None);
        });
    }

    #[test]
    fn mark_stacks_have_their_limit_reserved() {
        with_maps(MAPS, |target| {
            let start = 0x7f3d_3b00_0000;
            let words = [0, start, start + 0x8000, start + (32 << 20), 1];
            let whole = Range::sized(Addr(start), 8 << 30);
            assert_eq!(mark_stacks(target, &words, Some(8 << 30)), [(whole, 0x8000)]);
            let none = mark_stacks(target, &[0, start, start + 0x8000, start + (16 << 20)], Some(8 << 30));
            assert_eq!(none, []);
        });
    }

    #[test]
    fn jdk_11_keeps_no_start_of_the_mark_stacks() {
        with_maps(MAPS, |target| {
            let end = 0x1500_0400_0000;
            let whole = Range::of(0x1500_0000_0000, 0x1600_0000_0000);
            assert_eq!(mark_stacks(target, &[0, end, end], None), [(whole, 64 << 20)]);
        });
    }
}
