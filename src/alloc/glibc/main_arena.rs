//! The main arena: `[heap]`, and, where brk could not grow (something was mapped above it, or `glibc.malloc.hugetlb`),
//! segments that were mapped anywhere (malloc/malloc.c, `sysmalloc_mmap_fallback`).

use super::layout::Layout;
use crate::alloc::types::{Arena, ArenaHeap};
use crate::base::limits::{SEGMENT_CHUNKS_MAX, SEGMENT_STARTS_MAX};
use crate::base::{Addr, Known, PAGE, Range};
use crate::os::{Memory, Target};
use std::collections::BTreeSet;

const PREVIOUS_IN_USE: u64 = 1;
const FLAGS: u64 = 7;
/// `SIZE_SZ * 2`: the size of the chunks that fence a segment off.
const FENCE_BYTES: u64 = 16;

/// `taken` is sorted and disjoint: memory of others and of thread arenas.
pub fn read(target: &Target, layout: &Layout, taken: &[Range]) -> Known<Arena> {
    let memory = target.memory;
    let system_bytes = layout.system_bytes(memory, layout.main_arena)?;
    let top = layout.top(memory, layout.main_arena)?;
    let mut heaps = Vec::new();
    // THP advice splits [heap] into several mappings.
    let pieces = || target.view.mappings.iter().filter(|mapping| mapping.path == "[heap]");
    let start = pieces().map(|mapping| mapping.range.start).min();
    let end = pieces().map(|mapping| mapping.range.end).max();
    if let (Some(start), Some(end)) = (start, end) {
        let range = Range::new(start, end);
        heaps.push(ArenaHeap { reserved: range, in_arena: range });
    }
    let mut missing = system_bytes.saturating_sub(heaps.iter().map(|heap| heap.in_arena.bytes()).sum());
    if missing > 0 {
        for segment in segments(target, layout, top, taken) {
            if segment.bytes() <= missing && heaps.iter().all(|heap| !heap.reserved.overlaps(segment)) {
                missing -= segment.bytes();
                heaps.push(ArenaHeap { reserved: segment, in_arena: segment });
            }
        }
    }
    heaps.sort_by_key(|heap| heap.reserved.start);
    Ok(Arena {
        at: layout.main_arena,
        number: 0,
        heaps,
        system_bytes,
        attached_threads: layout.attached_threads(memory, layout.main_arena),
        figures: Err(super::not_walked()),
    })
}

/// Segments outside `[heap]`: in the mappings that top and the bins point into, each page-aligned run of chunks that ends
/// with top or with fence posts.
fn segments(target: &Target, layout: &Layout, top: Addr, taken: &[Range]) -> Vec<Range> {
    let is_taken = |at: Addr| {
        let after = taken.partition_point(|range| range.end <= at);
        taken.get(after).is_some_and(|range| range.has(at))
    };
    let pointed = layout.binned(target.memory, layout.main_arena).into_iter().chain([top]);
    let mut mappings: BTreeSet<Range> = BTreeSet::new();
    for at in pointed.filter(|at| !is_taken(*at)) {
        if let Some(mapping) = target.mapping(at)
            && mapping.is_anonymous()
            && mapping.rights.write
            && mapping.path != "[heap]"
        {
            mappings.insert(mapping.range);
        }
    }
    let mut found = Vec::new();
    let mut starts = 0;
    for mapping in mappings {
        let mut at = mapping.start;
        while at < mapping.end && starts < SEGMENT_STARTS_MAX {
            starts += 1;
            let end = match is_taken(at) || !target.is_resident(at) {
                true => None,
                false => run_of_chunks(target.memory, Range::new(at, mapping.end), top),
            };
            if let Some(end) = end {
                found.push(Range::new(at, end));
            }
            at = end.unwrap_or(at.plus(PAGE));
        }
    }
    found
}

/// Where the chunks from the start of `range` end, if they fill whole pages up to top or to fence posts.
fn run_of_chunks(memory: &dyn Memory, range: Range, top: Addr) -> Option<Addr> {
    let mut at = range.start;
    for index in 0..SEGMENT_CHUNKS_MAX {
        let size = memory.u64(at.plus(8)).ok()?;
        let bytes = size & !FLAGS;
        let left = range.end.offset_from(at)?;
        let is_chunk = bytes >= FENCE_BYTES && bytes.is_multiple_of(16) && bytes <= left;
        if !is_chunk || size & (FLAGS & !PREVIOUS_IN_USE) != 0 {
            return None;
        }
        let end = at.plus(bytes);
        let is_fence = bytes == FENCE_BYTES && index > 0;
        if (at == top || is_fence) && end.is_aligned(PAGE) {
            return Some(end);
        }
        at = end;
    }
    None
}
