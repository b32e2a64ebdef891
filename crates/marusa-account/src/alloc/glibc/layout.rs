//! Where things lie in `malloc_state`, `heap_info` and `malloc_par`, derived and proved.
//!
//! From the bins on, `malloc_state` has been the same since 2.15: bins (127 pairs less one word pair of bin 0), binmap
//! (4 ints), next, next_free, then from 2.23 on attached_threads, then system_mem and max_system_mem; `top` and
//! `last_remainder` come right before. What lies before them changed thrice: the ring of `next` gives the size.

use super::find;
use crate::base::limits::ARENAS_MAX;
use crate::base::{Addr, Bytes, Gap, Known, PAGE, Range, Why};
use crate::os::elf::Image;
use crate::os::maps::Mapping;
use crate::os::{Memory, Target};

/// Pairs of list heads in an arena: `NBINS * 2 - 2` words.
pub const BINS: usize = 127;
/// From the first bin, in bytes.
const NEXT: u64 = 2048;
const AFTER_NEXT_FREE: u64 = 2064;
const TOP_BEFORE_BINS: u64 = 16;
const FASTBINS_BYTES: u64 = 80;
const MUTEX_AND_FLAGS_BYTES: u64 = 8;
/// The start of `malloc_state` lies before its bins by at most this: 112 in 2.27 to 2.42, 24 in 2.43.
const BEFORE_BINS_MAX: u64 = 256;
/// `HEAP_MAX_SIZE`: 2 * DEFAULT_MMAP_THRESHOLD_MAX on 64 bits, and 4 huge pages with glibc.malloc.hugetlb=2 in 2.35-2.41.
pub const HEAP_BYTES: u64 = 64 << 20;
const HEAP_BYTES_MIN: u64 = 1 << 20;

/// How this libc lays an arena out, and the ring of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub main_arena: Addr,
    /// All arenas in the order of the ring, the main one first.
    pub ring: Vec<Addr>,
    /// From the start of `malloc_state` to its bins.
    pub bins: u64,
    pub(super) system_bytes: u64,
    /// `sizeof(heap_info)`: 32, and 48 since 2.35. `None` while there is no thread arena.
    pub heap_header: Option<u64>,
    /// What every heap is aligned to and reserves.
    pub heap_bytes: u64,
    /// Start of the kernel's `[heap]`.
    pub heap_start: Option<Addr>,
}

impl Layout {
    /// `None` when the ring of arenas does not close.
    pub fn of_main_arena(target: &Target, bins: Addr) -> Option<Layout> {
        let memory = target.memory;
        let (ring, before) = (8..=BEFORE_BINS_MAX)
            .step_by(8)
            .find_map(|before| Some((ring(memory, bins.minus(before), before)?, before)))?;
        let heap_header = ring.get(1).and_then(|arena| heap_header(memory, *arena));
        let others = &ring[1..];
        let heaps: Vec<Addr> = others.iter().map(|arena| arena.minus(heap_header.unwrap_or(0))).collect();
        let heap_bytes = heap_bytes(target, &heaps)?;
        if !others.is_empty() && heap_header.is_none() {
            return None;
        }
        let heap_start = target.view.mappings.iter().find(|mapping| mapping.path == "[heap]");
        Some(Layout {
            main_arena: ring[0],
            system_bytes: before + AFTER_NEXT_FREE + attached_threads_bytes(memory, &ring, before),
            ring,
            bins: before,
            heap_header,
            heap_bytes,
            heap_start: heap_start.map(|mapping| mapping.range.start),
        })
    }

    pub fn top(&self, memory: &dyn Memory, arena: Addr) -> Known<Addr> {
        let at = arena.plus(self.top_offset());
        memory.addr(at).map_err(|fault| fault.gap("top of an arena"))
    }

    /// The place of `top` in a `malloc_state`.
    pub fn top_offset(&self) -> u64 {
        self.bins - TOP_BEFORE_BINS
    }

    /// The place of the ten fastbins in a `malloc_state`: before `top`, up to 2.42.
    pub fn fastbins(&self) -> Option<u64> {
        self.top_offset().checked_sub(FASTBINS_BYTES).filter(|offset| *offset >= MUTEX_AND_FLAGS_BYTES)
    }

    /// `sizeof (struct malloc_state)`: `max_system_mem` is the last field.
    pub fn state_bytes(&self) -> u64 {
        self.system_bytes + 16
    }

    /// `attached_threads` of an arena, where there is such a field.
    pub fn attached_threads(&self, memory: &dyn Memory, arena: Addr) -> Option<u64> {
        let at = self.system_bytes.checked_sub(8).filter(|at| *at >= self.bins + AFTER_NEXT_FREE)?;
        memory.u64(arena.plus(at)).ok()
    }

    pub fn system_bytes(&self, memory: &dyn Memory, arena: Addr) -> Known<Bytes> {
        memory.u64(arena.plus(self.system_bytes)).map_err(|fault| fault.gap("system_mem of an arena"))
    }

    /// Every chunk that a bin of `arena` begins or ends with.
    pub fn binned(&self, memory: &dyn Memory, arena: Addr) -> Vec<Addr> {
        let words = memory.words(arena.plus(self.bins), BINS * 2).unwrap_or_default();
        words.into_iter().map(Addr).collect()
    }
}

/// What every heap reserves: the largest size that all are aligned to. Small heaps are by chance aligned to more, but behind
/// them lies something else.
fn heap_bytes(target: &Target, heaps: &[Addr]) -> Option<u64> {
    let sizes = std::iter::successors(Some(HEAP_BYTES), |bytes| Some(bytes / 2));
    let aligned = sizes
        .take_while(|bytes| *bytes >= HEAP_BYTES_MIN)
        .filter(|bytes| heaps.iter().all(|heap| heap.is_aligned(*bytes)));
    let is_reserved = |bytes: &u64| {
        let known: Vec<bool> =
            heaps.iter().filter_map(|heap| is_reserved(target, Range::sized(*heap, *bytes))).collect();
        // Some may be newer than the reading of the mappings.
        known.iter().filter(|is| **is).count() * 2 >= known.len()
    };
    aligned.clone().find(is_reserved).or_else(|| aligned.clone().next())
}

/// Whether `heap` may be one heap by its mappings: no gap, and no access behind the part that is in use. `None` where no
/// heap was mapped.
fn is_reserved(target: &Target, heap: Range) -> Option<bool> {
    let words = target.memory.words(heap.start, 4).ok()?;
    target.mapping(heap.start)?;
    let beyond = Range::new(heap.start.plus(words[3]), heap.end);
    let first = target.view.mappings.partition_point(|mapping| mapping.range.end <= beyond.start);
    let mut end = beyond.start;
    for mapping in &target.view.mappings[first..] {
        if end >= beyond.end || mapping.range.start > end || mapping.rights.any() {
            break;
        }
        end = mapping.range.end;
    }
    Some(end >= beyond.end)
}

/// The arenas from `main` round, if `next` at this place leads back to it.
fn ring(memory: &dyn Memory, main: Addr, before: u64) -> Option<Vec<Addr>> {
    let mut arenas = vec![main];
    let mut arena = main;
    for _ in 0..ARENAS_MAX {
        arena = memory.addr(arena.plus(before + NEXT)).ok()?;
        if arena == main {
            return Some(arenas);
        }
        // Thread arenas lie right behind the header of their first heap.
        if !arena.is_aligned(16) || arena.is_null() || heap_header(memory, arena).is_none() {
            return None;
        }
        arenas.push(arena);
    }
    None
}

/// Size of the `heap_info` before a thread arena: its first word points to the arena, and the first heap has no `prev`.
fn heap_header(memory: &dyn Memory, arena: Addr) -> Option<u64> {
    [32, 48, 64].into_iter().find(|bytes| {
        let header = arena.minus(*bytes);
        header.is_aligned(PAGE)
            && memory
                .words(header, 4)
                .is_ok_and(|words| words[0] == arena.0 && words[1] == 0 && is_heap_size(words[2], words[3]))
    })
}

/// `size` and `mprotect_size` of a `heap_info`.
pub fn is_heap_size(size: u64, writable: u64) -> bool {
    size > 0 && size <= writable && size.is_multiple_of(PAGE) && writable.is_multiple_of(PAGE)
}

/// 8 where `attached_threads` stands before `system_mem`. It counts threads; system_mem is whole pages, except
/// for the first one's beginning, and at most max_system_mem, which follows it.
fn attached_threads_bytes(memory: &dyn Memory, ring: &[Addr], before: u64) -> u64 {
    let is_system_bytes_at = |offset: u64| {
        ring.iter().all(|arena| {
            let words = memory.words(arena.plus(before + offset), 2).unwrap_or_default();
            matches!(words[..], [now, most] if now >= PAGE && now <= most && now.is_multiple_of(16))
        })
    };
    if is_system_bytes_at(AFTER_NEXT_FREE) { 0 } else { 8 }
}

/// What `mp_` says of the whole process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The number of chunks that are mapped one by one.
    pub mmapped_count: u64,
    pub mmapped_bytes: Bytes,
    /// Where the main arena begins: in `[heap]`, or in its first mapped segment. The break need not have been at the end of
    /// a page, nor need malloc have been the first to move it.
    pub sbrk_base: Addr,
    /// 2.43 adds 16 bytes too many to `mmapped_bytes` for each mremap.
    pub is_inflated: bool,
}

/// Where n_mmaps, mmapped_mem and `mp_` itself stand before `sbrk_base`: 2.35 to 2.42, 2.24 to 2.34, 2.15 to 2.23.
const BEFORE_SBRK_BASE: [(u64, u64, u64); 3] = [(36, 16, 96), (32, 16, 72), (40, 24, 80)];
const OF_2_43: (u64, u64, u64) = (36, 16, 104);
/// `mp_.arena_test` in bytes from its start, and what it and arena_max, which follows it, may be: numbers of arenas.
const ARENA_TEST: u64 = 24;
const ARENA_LIMIT_MAX: u64 = 1 << 24;

impl Totals {
    /// Finds `mp_` by its shape, around an `sbrk_base` that lies in writable memory, best in `[heap]`.
    pub fn find(target: &Target, libc: &Image, layout: &Layout) -> Known<Totals> {
        let missing = || Gap::new("mp_ of glibc's malloc", Why::NotInThisRuntime);
        let (heap_start, has_fastbins) = (layout.heap_start, layout.bins > FASTBINS_BYTES);
        let places = if has_fastbins { &BEFORE_SBRK_BASE[..] } else { &[OF_2_43] };
        let mut found: Option<Totals> = None;
        for (start, words) in find::data(target, libc) {
            for (at, word) in words.iter().enumerate() {
                let base = Addr(*word);
                if base.is_null() || !base.is_aligned(16) || !may_be_base(target, base) {
                    continue;
                }
                let sbrk_base = start.plus(at as u64 * 8);
                let read = |place: &_| Totals::read(target.memory, sbrk_base, *place);
                let Some(totals) = places.iter().find_map(read) else { continue };
                if heap_start == Some(base) {
                    return Ok(totals);
                }
                found = found.or(Some(totals));
            }
        }
        found.ok_or_else(missing)
    }

    fn read(memory: &dyn Memory, sbrk_base: Addr, place: (u64, u64, u64)) -> Option<Totals> {
        let (count, bytes, whole) = place;
        let limits = memory.words(sbrk_base.minus(whole).plus(ARENA_TEST), 2).ok()?;
        if limits[0] == 0 || limits.iter().any(|limit| *limit > ARENA_LIMIT_MAX) {
            return None;
        }
        // n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn_threshold; mmapped_mem, max_mmapped_mem.
        let at = |offset| memory.u32(sbrk_base.minus(count).plus(offset)).ok();
        let (now, allowed, most, is_fixed) = (at(0)?, at(4)?, at(8)?, at(12)?);
        let mapped = memory.u64(sbrk_base.minus(bytes)).ok()?;
        let mapped_most = memory.u64(sbrk_base.minus(bytes).plus(8)).ok()?;
        let is_sane = now <= most
            && most <= allowed
            && is_fixed <= 1
            && mapped <= mapped_most
            && mapped.is_multiple_of(16)
            && mapped / PAGE >= u64::from(now);
        let sbrk_base = memory.addr(sbrk_base).ok()?;
        is_sane.then_some(Totals {
            mmapped_count: u64::from(now),
            mmapped_bytes: mapped,
            sbrk_base,
            is_inflated: place == OF_2_43,
        })
    }
}

/// Whether the main arena may begin here: in `[heap]`, or at the start of a page of private memory.
fn may_be_base(target: &Target, base: Addr) -> bool {
    target.mapping(base).is_some_and(|mapping| {
        mapping.path == "[heap]" || (base.is_aligned(PAGE) && may_be_malloc_s(mapping))
    })
}

/// Whether malloc may have mapped this: private memory, of large pages with glibc.malloc.hugetlb=2.
pub fn may_be_malloc_s(mapping: &Mapping) -> bool {
    let is_private = mapping.rights.read && mapping.rights.write && !mapping.rights.shared;
    is_private && (mapping.is_anonymous() || mapping.is_hugetlb_name()) && mapping.path != "[heap]"
}
