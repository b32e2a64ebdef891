//! The heaps of thread arenas: blocks of 64 MiB, of which `size` bytes are in use, chained from the newest, in which
//! `top` lies, to the first. Their sizes must add up to the arena's `system_mem` (malloc/arena.c, `sysmalloc`).

use super::layout::{Layout, is_heap_size};
use super::main_arena;
use crate::alloc::types::{Arena, ArenaHeap};
use crate::base::limits::ARENA_HEAPS_MAX;
use crate::base::{Addr, Gap, Known, Range, Why, joined};
use crate::os::Target;

/// Every arena, the main one first.
pub fn read(
    target: &Target,
    layout: &Layout,
    sbrk_base: Option<Addr>,
    owned: &[Range],
    gaps: &mut Vec<Gap>,
) -> Known<Vec<Arena>> {
    let mut arenas = Vec::with_capacity(layout.ring.len());
    for (number, at) in layout.ring.iter().enumerate().skip(1) {
        match thread_arena(target, layout, *at, number) {
            Ok(arena) => {
                check(&arena, gaps);
                arenas.push(arena);
            }
            Err(gap) => gaps.push(gap),
        }
    }
    let main = main_arena::read(target, layout, sbrk_base, &taken(owned, &arenas))?;
    check(&main, gaps);
    arenas.insert(0, main);
    Ok(arenas)
}

/// What is owned, and the heaps of arenas.
pub fn taken(owned: &[Range], arenas: &[Arena]) -> Vec<Range> {
    let heaps = arenas.iter().flat_map(|arena| arena.heaps.iter().map(|heap| heap.reserved));
    joined(owned.iter().copied().chain(heaps))
}

/// The sum of the heaps is malloc's own figure, or the arena grew or shrank under the reading.
fn check(arena: &Arena, gaps: &mut Vec<Gap>) {
    let found: u64 = arena.heaps.iter().map(|heap| heap.in_arena.bytes()).sum();
    if found != arena.system_bytes {
        let what = format!(
            "malloc arena {}: {} heaps hold {found} bytes, malloc counts {}",
            arena.number,
            arena.heaps.len(),
            arena.system_bytes
        );
        gaps.push(Gap::new(what, Why::Torn));
    }
}

fn thread_arena(target: &Target, layout: &Layout, at: Addr, number: usize) -> Known<Arena> {
    let memory = target.memory;
    let system_bytes = layout.system_bytes(memory, at)?;
    let mut heaps = Vec::new();
    let mut heap = layout.top(memory, at)?.down_to(layout.heap_bytes);
    let first = at.down_to(layout.heap_bytes);
    loop {
        let words = memory.words(heap, 4).map_err(|fault| fault.gap("heap_info"))?;
        let is_heap = words[0] == at.0 && is_heap_size(words[2], words[3]) && words[3] <= layout.heap_bytes;
        if !is_heap {
            return Err(Gap::new(format!("heap of malloc arena {number}"), Why::BadData(heap)));
        }
        let reserved = Range::sized(heap, layout.heap_bytes);
        heaps.push(ArenaHeap { reserved, in_arena: Range::sized(heap, words[2]) });
        if heap == first {
            break;
        }
        heap = Addr(words[1]);
        if heaps.len() == ARENA_HEAPS_MAX || !heap.is_aligned(layout.heap_bytes) {
            return Err(Gap::new(format!("heaps of malloc arena {number}"), Why::OverLimit));
        }
    }
    heaps.sort_by_key(|heap| heap.reserved.start);
    let attached_threads = layout.attached_threads(memory, at);
    Ok(Arena {
        at,
        number,
        heaps,
        system_bytes,
        attached_threads,
        threads: Vec::new(),
        figures: Err(super::not_walked()),
    })
}
