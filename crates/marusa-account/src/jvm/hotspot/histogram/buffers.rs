//! The ends of allocation buffers that threads have not used yet: they hold what was there before, which looks like objects.
//! src/hotspot/share/gc/shared/threadLocalAllocBuffer.{hpp,cpp}, JDK 8 to 28.

use crate::base::{Addr, Known, Range};
use crate::jvm::hotspot::{Found, Hotspot, thread_list};

const TYPE: &str = "ThreadLocalAllocBuffer";
/// Room for the header of what fills the end.
const RESERVE_WORDS: u64 = 2;

/// What is unused at the end of each buffer, sorted. `others`: threads that run no Java.
pub fn unused(vm: &Hotspot, others: &[Addr], found: &mut Found) -> Known<Vec<Range>> {
    let layout = Layout::read(vm)?;
    let mut threads = thread_list::objects(vm, found);
    threads.extend_from_slice(others);
    threads.sort_unstable();
    threads.dedup();
    let mut ranges: Vec<Range> = threads.iter().filter_map(|thread| layout.unused(vm, *thread)).collect();
    ranges.sort_unstable();
    Ok(ranges)
}

struct Layout {
    start: u64,
    top: u64,
    end: u64,
    reserve_bytes: u64,
}

/// What lies behind the end of each buffer. Up to JDK 26 also what C2's prefetching may touch; later
/// `CollectedHeap::lab_alignment_reserve`: the smallest object, or nothing where any gap has room for it.
fn reserve_bytes(vm: &Hotspot, alignment: u64) -> u64 {
    let prefetched = vm.structs.static_at(TYPE, "_reserve_for_allocation_prefetch");
    match prefetched.ok().map(|at| vm.memory().u32(at).unwrap_or(0)) {
        Some(words) => u64::from(words).max(RESERVE_WORDS).saturating_mul(8),
        None if vm.flags.is_on("UseCompactObjectHeaders") || alignment > 8 => 0,
        None => RESERVE_WORDS * 8,
    }
}

impl Layout {
    fn read(vm: &Hotspot) -> Known<Layout> {
        let at = vm.structs.offset("Thread", "_tlab")?;
        let field = |name| Ok(at.saturating_add(vm.structs.offset(TYPE, name)?));
        let (end, after) = (field("_end")?, field("_desired_size")?);
        // Since JDK 11 `_end` may be where the next sample is due; `_allocation_end`, which follows, is the end.
        let end = if after.checked_sub(end) == Some(16) { end + 8 } else { end };
        let alignment = vm.flags.number("ObjectAlignmentInBytes").unwrap_or(8).clamp(8, 256);
        Ok(Layout {
            start: field("_start")?,
            top: field("_top")?,
            end,
            reserve_bytes: reserve_bytes(vm, alignment).next_multiple_of(alignment),
        })
    }

    fn unused(&self, vm: &Hotspot, thread: Addr) -> Option<Range> {
        let word = |offset| vm.memory().addr(thread.plus(offset)).ok();
        let (start, top, end) = (word(self.start)?, word(self.top)?, word(self.end)?);
        let is_sane =
            !start.is_null() && start <= top && top <= end && top.is_aligned(8) && end.is_aligned(8);
        is_sane.then(|| Range::new(top, end.plus(self.reserve_bytes))).filter(|unused| !unused.is_empty())
    }
}
