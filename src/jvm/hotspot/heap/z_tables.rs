//! ZGC's tables outside the heap: the page table, the forwarding tables, the map of physical memory, and the space of the
//! mark stacks. All but the page table are found by pairs of words within the `ZCollectedHeap`, which holds the whole
//! collector by value; each pair must fit what is mapped where it points. What ZGC keeps in malloc is not claimed here.

use super::super::{Found, Hotspot};
use super::z::Z;
use super::{object_words, z_pages};
use crate::base::limits::Z_PAGE_TABLE_BYTES_MAX;
use crate::base::{Addr, Bytes, PAGE, Range};
use crate::jvm::types::{How, Kind};
use crate::os::Target;

/// `ZMarkStackSpaceExpandSize`, JDK 11 to 23.
const MARK_STACK_STEP: Bytes = 32 << 20;
/// JDK 11's `ZMarkStackSpaceSize`.
const MARK_STACK_RESERVED_MAX: Bytes = 1 << 40;

/// Claims them all. Every offset of the heap lies below `reserved`.
pub fn read(vm: &Hotspot, z: &Z, reserved: Bytes, found: &mut Found) {
    let table = found.note(z_pages::table(vm, z));
    if let Some(table) = table {
        found.claim(table.widened(PAGE), Kind::Gc, "page table", None, How::VmStructs);
    }
    let class = z.named("CollectedHeap");
    let Some(words) = found.note(object_words(vm, z.collected, &class)) else { return };
    let how = || How::PointedFrom(class.clone());
    let lengths = lengths(vm, z, table, reserved);
    for (number, map) in granule_maps(vm.target, &words, |length| lengths.contains(&length)) {
        if table.is_none_or(|table| table.start != map.start) {
            let (part, map) = named(z, number, map);
            found.claim(map.widened(PAGE), Kind::Gc, part, None, how());
        }
    }
    let limit = vm.flags.number("ZMarkStackSpaceLimit").ok();
    for (space, in_use) in mark_stacks(vm.target, &words, limit) {
        found.claim(space, Kind::Gc, "mark stacks", in_use, how());
    }
}

/// How many entries a map may have: as many as the address space has granules, or the page table; from JDK 24 on also
/// as many as have been reserved (zVirtualMemoryManager.cpp, `ZAddressOffsetMax` is lowered to that).
fn lengths(vm: &Hotspot, z: &Z, table: Option<Range>, reserved: Bytes) -> std::ops::RangeInclusive<u64> {
    let most = (z.offset_max / z.granule).max(table.map_or(0, |table| table.bytes() / 8));
    let least = if vm.structs.has_type("ZPartition") { (reserved / z.granule).max(1) } else { most };
    least..=most
}

/// Which map it is whose length is word `number` of the `ZCollectedHeap`, and its bytes. The only map within the page
/// allocator (JDK 24 on) has entries of 4 bytes (zPhysicalMemoryManager.hpp, `zbacking_index`).
fn named(z: &Z, number: usize, map: Range) -> (&'static str, Range) {
    let at = z.collected.plus(number as u64 * 8);
    match Range::new(z.allocator, z.page_table).has(at) {
        true => ("map of physical memory", Range::sized(map.start, map.bytes() / 2)),
        false => ("forwarding table", map),
    }
}

/// `ZGranuleMap`s: the number of entries, then the address of the array. Each with the index of its first word, and as
/// long as entries of 8 bytes make it; of which at least a half must be mapped.
fn granule_maps(target: &Target, words: &[u64], is_length: impl Fn(u64) -> bool) -> Vec<(usize, Range)> {
    let fits = |length: u64, start: Addr| {
        let bytes = length.saturating_mul(4);
        target.mapping(start).is_some_and(|mapping| {
            let is_table = mapping.is_anonymous() && mapping.rights.write && !mapping.rights.shared;
            let covered = mapping.range.covers(Range::sized(start, bytes));
            is_table && covered && start.is_aligned(PAGE) && bytes <= Z_PAGE_TABLE_BYTES_MAX
        })
    };
    let pairs = words.windows(2).enumerate();
    pairs
        .filter(|(_, pair)| is_length(pair[0]) && fits(pair[0], Addr(pair[1])))
        .map(|(number, pair)| (number, Range::sized(Addr(pair[1]), pair[0].saturating_mul(8))))
        .collect()
}

/// `ZMarkStackSpace`s: `_start`, `_top`, `_end` (zMarkStackAllocator.hpp, JDK 15 to 23), or the last two only (JDK 11,
/// whose space starts where its mapping does). `_end` lies behind what is committed, a multiple of 32 MiB. Each with the
/// bytes below `_top`.
fn mark_stacks(target: &Target, words: &[u64], limit: Option<Bytes>) -> Vec<(Range, Bytes)> {
    let mut found: Vec<(Range, Bytes)> = Vec::new();
    for triple in words.windows(3) {
        let (before, top, end) = (Addr(triple[0]), Addr(triple[1]), Addr(triple[2]));
        if end.is_null() || !end.is_aligned(PAGE) || top > end || top.is_null() {
            continue;
        }
        let Some(last) = target.mapping(end.minus(1)) else { continue };
        let is_stack = last.is_anonymous() && last.rights.write && !last.rights.shared;
        if !is_stack {
            continue;
        }
        let has_start = before <= top && before >= last.range.start;
        let start = if has_start { before } else { last.range.start };
        let committed = Range::new(start, end);
        let steps = committed.bytes() > 0 && committed.bytes().is_multiple_of(MARK_STACK_STEP);
        // What is not committed yet is reserved behind the end.
        let behind = target.mapping(end).filter(|mapping| mapping.is_anonymous() && !mapping.rights.any());
        let reserved_end = match (limit, behind) {
            (Some(limit), _) if has_start && limit >= committed.bytes() => start.plus(limit),
            (_, Some(mapping)) => mapping.range.end.min(start.plus(MARK_STACK_RESERVED_MAX)),
            _ => end,
        };
        let space = Range::new(start, reserved_end);
        let reserved = space.end == end || behind.is_some_and(|mapping| mapping.range.end >= space.end);
        let known = found.iter().any(|(other, _)| other.overlaps(space));
        if steps && top >= start && reserved && !known && last.range.end == end {
            found.push((space, top.0 - start.0));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::test_target::with_maps;
    use super::*;

    /// JDK 17: forwarding table; mark stacks with 32 MiB committed of 8 GiB. JDK 11: mark stacks of 1 TiB.
    const MAPS: &str = "150000000000-150002000000 rw-p 00000000 00:00 0 \n\
                        150002000000-160000000000 ---p 00000000 00:00 0 \n\
                        7f3d3b000000-7f3d3d000000 rw-p 00000000 00:00 0 \n\
                        7f3d3d000000-7f3f3b000000 ---p 00000000 00:00 0 \n\
                        7f3f3b000000-7f3f3c000000 rw-p 00000000 00:00 0 \n";

    #[test]
    fn a_granule_map_is_as_long_as_it_says() {
        with_maps(MAPS, |target| {
            let (length, start) = (0x20_0000, 0x7f3f_3b00_0000);
            let words = [5, length, start, length, start + 8, length, 0x5000];
            let found = granule_maps(target, &words, |other| other == length);
            assert_eq!(found, [(1, Range::sized(Addr(start), 16 << 20))]);
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
            let end = 0x1500_0200_0000;
            let whole = Range::of(0x1500_0000_0000, 0x1600_0000_0000);
            assert_eq!(mark_stacks(target, &[0, end, end], None), [(whole, 32 << 20)]);
        });
    }
}
