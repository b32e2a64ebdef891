//! The main arena: `[heap]`, and, where brk could not grow (something was mapped above it, or `glibc.malloc.hugetlb`),
//! segments that were mapped anywhere (malloc/malloc.c, `sysmalloc_mmap_fallback`).

use super::layout::{Layout, may_be_malloc_s};
use crate::alloc::types::{Arena, ArenaHeap};
use crate::base::limits::{SEGMENT_CHUNKS_MAX, SEGMENT_STARTS_MAX};
use crate::base::{Addr, Known, PAGE, Range, holding};
use crate::os::{Memory, Target};
use std::collections::BTreeSet;

const PREVIOUS_IN_USE: u64 = 1;
const FLAGS: u64 = 7;
/// `SIZE_SZ * 2`: the size of the chunks that fence a segment off.
const FENCE_BYTES: u64 = 16;

/// `taken` is sorted and disjoint: memory of others and of thread arenas.
pub fn read(target: &Target, layout: &Layout, sbrk_base: Option<Addr>, taken: &[Range]) -> Known<Arena> {
    let memory = target.memory;
    let system_bytes = layout.system_bytes(memory, layout.main_arena)?;
    let top = layout.top(memory, layout.main_arena)?;
    let mut heaps: Vec<ArenaHeap> = Vec::new();
    heaps.extend(of_the_break(target, sbrk_base, system_bytes));
    let mut missing = system_bytes.saturating_sub(heaps.iter().map(|heap| heap.in_arena.bytes()).sum());
    let mut search = Segments { target, top, taken, starts: 0 };
    let pointed = search.pointed(layout);
    let others = || target.view.mappings.iter().filter(|mapping| may_be_malloc_s(mapping));
    // A segment of which nothing is free is pointed to by no list.
    let others = others().map(|mapping| mapping.range).filter(|range| !pointed.contains(range));
    for mapping in pointed.iter().copied().chain(others) {
        if missing == 0 {
            break;
        }
        for segment in search.within(mapping) {
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
        threads: Vec::new(),
        figures: Err(super::not_walked()),
    })
}

/// The segment in `[heap]`. What others took by sbrk before malloc's first and after its last is not malloc's; what they
/// took between is in system_mem.
fn of_the_break(target: &Target, sbrk_base: Option<Addr>, system_bytes: u64) -> Option<ArenaHeap> {
    // THP advice splits [heap] into several mappings.
    let pieces = || target.view.mappings.iter().filter(|mapping| mapping.path == "[heap]");
    let whole = Range::new(
        pieces().map(|mapping| mapping.range.start).min()?,
        pieces().map(|mapping| mapping.range.end).max()?,
    );
    let start = match sbrk_base {
        Some(base) if whole.has(base) => base,
        // The break was never malloc's.
        Some(_) => return None,
        None => whole.start,
    };
    let in_arena = Range::new(start, whole.end.min(start.plus(system_bytes)));
    Some(ArenaHeap { reserved: in_arena, in_arena })
}

/// The search for segments outside `[heap]`.
struct Segments<'a> {
    target: &'a Target<'a>,
    top: Addr,
    taken: &'a [Range],
    starts: usize,
}

impl Segments<'_> {
    fn is_taken(&self, at: Addr) -> bool {
        holding(self.taken, at).is_some()
    }

    /// The mappings that top and the bins point into.
    fn pointed(&self, layout: &Layout) -> BTreeSet<Range> {
        let chunks = layout.binned(self.target.memory, layout.main_arena).into_iter().chain([self.top]);
        chunks
            .filter(|at| !self.is_taken(*at))
            .filter_map(|at| self.target.mapping(at))
            .filter(|mapping| may_be_malloc_s(mapping))
            .map(|mapping| mapping.range)
            .collect()
    }

    /// Each page-aligned run of chunks that ends with top or with fence posts.
    fn within(&mut self, mapping: Range) -> Vec<Range> {
        let mut found = Vec::new();
        let mut at = mapping.start;
        while at < mapping.end && self.starts < SEGMENT_STARTS_MAX {
            self.starts += 1;
            let end = match self.is_taken(at) || !self.target.is_resident(at) {
                true => None,
                false => run_of_chunks(self.target.memory, Range::new(at, mapping.end), self.top),
            };
            if let Some(end) = end {
                found.push(Range::new(at, end));
            }
            at = end.unwrap_or(at.plus(PAGE));
        }
        found
    }
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
