//! The ends of allocation buffers that threads have not used yet: they hold what was there before, which looks like objects.
//! src/hotspot/share/gc/shared/threadLocalAllocBuffer.{hpp,cpp}, JDK 8 to 25.

use crate::base::{Addr, Known, Range};
use crate::jvm::hotspot::{Found, Hotspot, thread_list};

const TYPE: &str = "ThreadLocalAllocBuffer";
/// Room for the header of the array that fills the end: `CollectedHeap::lab_alignment_reserve`.
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

impl Layout {
    fn read(vm: &Hotspot) -> Known<Layout> {
        let at = vm.structs.offset("Thread", "_tlab")?;
        let field = |name| Ok(at.saturating_add(vm.structs.offset(TYPE, name)?));
        let (end, after) = (field("_end")?, field("_desired_size")?);
        let prefetched = vm.structs.static_at(TYPE, "_reserve_for_allocation_prefetch");
        let prefetched = prefetched.ok().and_then(|at| vm.memory().u32(at).ok()).unwrap_or(0);
        // Since JDK 11 `_end` may be where the next sample is due; `_allocation_end`, which follows, is the end.
        let end = if after.checked_sub(end) == Some(16) { end + 8 } else { end };
        Ok(Layout {
            start: field("_start")?,
            top: field("_top")?,
            end,
            reserve_bytes: u64::from(prefetched).max(RESERVE_WORDS).saturating_mul(8),
        })
    }

    fn unused(&self, vm: &Hotspot, thread: Addr) -> Option<Range> {
        let word = |offset| vm.memory().addr(thread.plus(offset)).ok();
        let (start, top, end) = (word(self.start)?, word(self.top)?, word(self.end)?);
        let is_sane =
            !start.is_null() && start <= top && top <= end && top.is_aligned(8) && end.is_aligned(8);
        let alignment = vm.flags.number("ObjectAlignmentInBytes").unwrap_or(8).clamp(8, 256);
        let reserve = self.reserve_bytes.next_multiple_of(alignment);
        is_sane.then(|| Range::new(top, end.plus(reserve)))
    }
}
