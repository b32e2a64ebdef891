//! Our figures next to glibc's, and within themselves: every difference in words.

use super::info::{ArenaInfo, Count, Info};
use marusa::alloc::{AllocView, Arena, ChunkCount, Interval, State};
use marusa::base::{Range, Why};

/// All that differs between the walk and malloc_info, of a process at rest.
pub fn differences(ours: &AllocView, theirs: &Info) -> Vec<String> {
    let mut found = Vec::new();
    if ours.arenas.len() != theirs.arenas.len() {
        found.push(format!("{} arenas, malloc_info has {}", ours.arenas.len(), theirs.arenas.len()));
    }
    for (arena, info) in ours.arenas.iter().zip(&theirs.arenas) {
        found.extend(of_arena(arena, info).into_iter().map(|text| format!("arena {}: {text}", arena.number)));
    }
    let mut same = |what: &str, ours: u64, theirs: u64| {
        if ours != theirs {
            found.push(format!("{what}: {ours}, malloc_info has {theirs}"));
        }
    };
    let system: u64 = ours.arenas.iter().map(|arena| arena.system_bytes).sum();
    same("system bytes", system, theirs.system_bytes);
    same("mmapped chunks", ours.mmapped.len() as u64, theirs.mmapped.chunks);
    let mapped: u64 = ours.mmapped.iter().map(|range| range.bytes()).sum();
    // glibc 2.43 adds 16 bytes too many for each mremap, so its own sum is not a multiple of a page.
    if theirs.mmapped.bytes.is_multiple_of(4096) {
        same("mmapped bytes", mapped, theirs.mmapped.bytes);
    }
    found.extend(ours.gaps.iter().map(|gap| format!("gap: {gap}")));
    found.extend(imbalances(ours));
    found
}

fn of_arena(arena: &Arena, info: &ArenaInfo) -> Vec<String> {
    let mut found = Vec::new();
    let mut same = |what: &str, ours: u64, theirs: u64| {
        if ours != theirs {
            found.push(format!("{what}: {ours}, malloc_info has {theirs}"));
        }
    };
    same("system bytes", arena.system_bytes, info.system_bytes);
    let figures = match &arena.figures {
        Ok(figures) => figures,
        Err(gap) => return vec![gap.to_string()],
    };
    // Chunks in bins always have PREV_INUSE set, the lowest bit.
    let flagged = |count: ChunkCount| Count { chunks: count.chunks, bytes: count.bytes + count.chunks };
    let (small, large, unsorted) =
        (flagged(figures.chunks.small), flagged(figures.chunks.large), flagged(figures.chunks.unsorted));
    let binned = [small, large, unsorted];
    let mut both = |what: &str, ours: Count, theirs: Count| {
        same(&format!("{what} chunks"), ours.chunks, theirs.chunks);
        same(&format!("{what} bytes"), ours.bytes, theirs.bytes);
    };
    let fast = Count { chunks: figures.chunks.fast.chunks, bytes: figures.chunks.fast.bytes };
    both("fast", fast, info.fast);
    both("unsorted", unsorted, info.unsorted);
    both("large", large, info.large);
    let below = Count { chunks: small.chunks + fast.chunks, bytes: small.bytes + fast.bytes };
    both("small", below, info.below_1024);
    let rest = Count {
        chunks: binned.iter().map(|count| count.chunks).sum::<u64>() + 1,
        bytes: binned.iter().map(|count| count.bytes).sum::<u64>() + figures.chunks.top.bytes,
    };
    both("rest", rest, info.rest);
    both("top", Count { chunks: figures.chunks.top.chunks, bytes: 0 }, Count { chunks: 1, bytes: 0 });
    both("unlisted", flagged(figures.chunks.unlisted), Count::default());
    same("unresolved bytes", figures.unresolved_bytes, 0);
    found
}

/// Intervals that overlap, or whose shares do not sum: never right, whatever changed in the meantime.
pub fn broken_intervals(view: &AllocView) -> Vec<String> {
    let mut found = Vec::new();
    for pair in view.intervals.windows(2).filter(|pair| pair[0].range.end > pair[1].range.start) {
        found.push(format!("intervals {} and {} overlap", pair[0].range, pair[1].range));
    }
    for interval in &view.intervals {
        let sum: u64 = interval.shares.iter().map(|(_, bytes)| bytes).sum();
        if sum != interval.range.bytes() {
            found.push(format!("shares of {} sum to {sum}: {:?}", interval.range, interval.shares));
        }
        if interval.shares.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            found.push(format!("shares of {} are not in order: {:?}", interval.range, interval.shares));
        }
    }
    found
}

/// Where our own books do not balance. Not for a program that maps heaps in the meantime: what was mapped since the reading of the
/// mappings is in an arena's figures, but in no range.
pub fn imbalances(view: &AllocView) -> Vec<String> {
    let mut found = broken_intervals(view);
    // A heap that was unmapped in the meantime has no ranges, and a gap says so.
    let may_be_gone = view.gaps.iter().any(|gap| gap.why == Why::Gone);
    for arena in view.arenas.iter().filter(|arena| arena.figures.is_ok()) {
        for heap in &arena.heaps {
            let covered = covered(&view.intervals, heap.in_arena, Some(arena.number));
            if covered != heap.in_arena.bytes() && !(covered == 0 && may_be_gone) {
                found.push(format!("heap {} is covered by {covered} bytes of intervals", heap.in_arena));
            }
        }
        found.extend(unlike_its_intervals(view, arena));
    }
    for chunk in &view.mmapped {
        let covered = covered(&view.intervals, *chunk, None);
        if covered != chunk.bytes() {
            found.push(format!("mapped chunk {chunk} is covered by {covered} bytes of intervals"));
        }
    }
    found
}

fn covered(intervals: &[Interval], range: Range, arena: Option<usize>) -> u64 {
    let of_it = intervals.iter().filter(|interval| interval.arena == arena);
    of_it.map(|interval| interval.range.intersect(range).bytes()).sum()
}

/// The figures of an arena against the shares of its ranges. Chunks are whole in the one and without their header of 8
/// bytes in the other.
fn unlike_its_intervals(view: &AllocView, arena: &Arena) -> Vec<String> {
    let Ok(figures) = &arena.figures else { return Vec::new() };
    let sum = |wanted: &dyn Fn(State) -> bool| -> u64 {
        let of_it = view.intervals.iter().filter(|interval| interval.arena == Some(arena.number));
        let shares = of_it.flat_map(|interval| &interval.shares).filter(|(state, _)| wanted(*state));
        shares.map(|(_, bytes)| bytes).sum()
    };
    let mut found = Vec::new();
    let chunks = [
        ("tcache", figures.chunks.tcache, State::Tcache),
        ("fast", figures.chunks.fast, State::Fast),
        ("unsorted", figures.chunks.unsorted, State::Unsorted),
        ("small", figures.chunks.small, State::Small),
        ("large", figures.chunks.large, State::Large),
        ("unlisted", figures.chunks.unlisted, State::Unlisted),
        ("top", figures.chunks.top, State::Top),
    ];
    for (name, count, state) in chunks {
        let shares = sum(&|one| one == state);
        if !(count.bytes - 16 * count.chunks..=count.bytes).contains(&shares) {
            found.push(format!("arena {}: {name} {count:?}, in intervals {shares}", arena.number));
        }
    }
    let in_use = sum(&|one| matches!(one, State::InUse(_)));
    if in_use > figures.chunks.in_use.bytes {
        found.push(format!(
            "arena {}: in use {:?}, in intervals {in_use}",
            arena.number, figures.chunks.in_use
        ));
    }
    found
}
