//! What the kernel reports on memory that a task had to wait for: one type for every tracepoint that is read. The fields
//! keep the kernel's meaning; a status is known by the word that the kernel's own format gives it, because the numbers
//! change between releases (`compact_result`, `scan_result`).
//!
//! All tracepoints are those of Linux 6.18, include/trace/events/{compaction,vmscan,huge_memory,kmem}.h. An event belongs to the
//! thread that was on the CPU (`tid`), which for all of these is the one that does the work and waits for it; what was allocated in
//! an interrupt has no thread.
//!
//! **The time of one huge page's fault.** No tracepoint begins or ends it. Within it, by one thread, in this order
//! (mm/huge_memory.c, `vma_alloc_anon_folio_pmd` and `__do_huge_pmd_anonymous_page`): reclaim and compaction with their own begin
//! and end; `PageAlloc` of order 9; the page is charged and zeroed, which is nearly all of the rest; `PageTable`, the spare page
//! table that is put by. So from `PageAlloc { order: 9 }` to the next event of the same thread, if that is a `PageTable`, is the
//! zeroing. `kmem:rss_stat` would come a little later, but also with each fault of 4 KiB, and sums over all CPUs before any filter
//! is asked. A folio of 16 KiB to 1 MiB has no event after it is zeroed: its page table is there before. Where the page table is
//! taken first (see `Tracing::fault_times`) there is no such figure.

use std::collections::BTreeMap;

/// One event, of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    pub cpu: u32,
    /// The thread that was on the CPU, as the host numbers it. 0: the idle task, or an interrupt.
    pub tid: i32,
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// compaction:mm_compaction_begin: one zone, `compact_zone` of mm/compaction.c. Direct compaction, kcompactd, and whoever
    /// writes to /proc/sys/vm/compact_memory. Never nested in one thread.
    CompactionBegin { is_sync: bool },
    /// compaction:mm_compaction_end: the end of the same call.
    CompactionEnd { is_sync: bool, status: &'static str },
    /// compaction:mm_compaction_try_to_compact_pages: an allocation of `order` goes to compact directly (not kcompactd); begins
    /// and ends of zones follow, or `CompactionDeferred`.
    CompactionTry { order: u32 },
    /// compaction:mm_compaction_deferred: a zone is left out, because compaction failed there lately.
    CompactionDeferred { order: u32 },
    /// vmscan:mm_vmscan_direct_reclaim_begin: `try_to_free_pages` of mm/vmscan.c.
    ReclaimBegin { order: u32 },
    /// vmscan:mm_vmscan_direct_reclaim_end.
    ReclaimEnd { pages: u64 },
    /// vmscan:mm_vmscan_memcg_reclaim_begin: the thread's cgroup is at its limit.
    GroupReclaimBegin { order: u32 },
    /// vmscan:mm_vmscan_memcg_reclaim_end.
    GroupReclaimEnd { pages: u64 },
    /// vmscan:mm_vmscan_throttled: a thread that reclaims was put to sleep; the event comes when it wakes, `delayed_us` later.
    Throttled { delayed_us: u32 },
    /// kmem:mm_page_alloc of order 2 and more. Order 9 without a page is an allocation that failed: `is_failed`.
    PageAlloc { order: u32, is_failed: bool },
    /// kmem:mm_page_alloc of order 0 for a page table of user memory: one in 512 faults of 4 KiB, and one in each fault of a
    /// huge page, after it is zeroed.
    PageTable,
    /// kmem:mm_page_alloc_extfrag: a page was taken from a block of another mobility. `is_fragmenting`: the block that was
    /// broken is smaller than a huge page, so the huge page it was in is spoiled.
    ExtFrag { order: u32, fallback_order: u32, is_fragmenting: bool },
    /// huge_memory:mm_khugepaged_scan_pmd and mm_khugepaged_scan_file: one range of 2 MiB was looked at, and collapsed
    /// where `status` is success. The event comes after the collapse. By khugepaged, or by who called MADV_COLLAPSE.
    KhugepagedScan { status: &'static str, is_file: bool, mm: Mm },
    /// huge_memory:mm_collapse_huge_page and mm_khugepaged_collapse_file: the end of one collapse. It began, to within what
    /// the allocation took, with `PageAlloc { order: 9 }` of the same thread.
    Collapse { status: &'static str, is_file: bool, mm: Mm },
    /// compaction:mm_compaction_kcompactd_wake: by kcompactd itself, when it begins to work.
    KcompactdWake { node: u32, order: u32 },
    /// compaction:mm_compaction_kcompactd_sleep.
    KcompactdSleep { node: u32 },
    /// vmscan:mm_vmscan_kswapd_wake: by kswapd itself.
    KswapdWake { node: u32, order: u32 },
    /// vmscan:mm_vmscan_kswapd_sleep.
    KswapdSleep { node: u32 },
}

/// Which address space it was: the kernel's own pointer, good only for telling one from another. Never shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mm(pub u64);

/// What was traced since the last reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// By time; equal times by CPU.
    pub events: Vec<Event>,
    /// Events that were overwritten before they could be read. All sums over `events` are short by them.
    pub lost: u64,
    /// Where they are missing.
    pub holes: Vec<Hole>,
    /// Events of ours that could not be decoded: the kernel's bytes were not of the form that it describes. 0, always.
    pub undecoded: u64,
    /// Threads by their number: their names. Those of `events` and, as far as they are known, no others.
    pub names: BTreeMap<i32, String>,
    /// Threads by their number: their process. A thread that cannot be given a process is missing.
    pub tgids: BTreeMap<i32, i32>,
    /// CLOCK_MONOTONIC when the reading began: what happened before it is in this batch or an earlier one.
    pub until_ns: u64,
    /// Bytes that were read from the kernel.
    pub bytes: u64,
}

/// Events of this CPU are missing before this time and after the last event of the CPU that was read. A stall that began
/// before may never end, and one that ends after may have no begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    pub cpu: u32,
    pub before_ns: u64,
    /// How many; unknown where the kernel had no room to write it down. `Batch::lost` is from another counter and exact.
    pub lost: Option<u64>,
}

impl std::fmt::Debug for Mm {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("Mm")
    }
}

/// COMPACTION_STATUS of include/trace/events/mmflags.h and SCAN_STATUS of include/trace/events/huge_memory.h, Linux 6.18, and
/// words of older kernels.
const STATUS_WORDS: [&str; 44] = [
    "success",
    "complete",
    "partial_skipped",
    "contended",
    "skipped",
    "deferred",
    "no_suitable_page",
    "continue",
    "not_suitable_zone",
    "succeeded",
    "failed",
    "pmd_null",
    "pmd_none",
    "page_pmd_mapped",
    "exceed_none_pte",
    "exceed_swap_pte",
    "exceed_shared_pte",
    "pte_non_present",
    "pte_uffd_wp",
    "pte_mapped_hugepage",
    "lack_referenced_page",
    "page_null",
    "scan_aborted",
    "not_suitable_page_count",
    "page_not_in_lru",
    "page_locked",
    "page_not_anon",
    "page_compound",
    "no_process_for_page",
    "vma_null",
    "vma_check_failed",
    "not_suitable_address_range",
    "could_not_delete_page_from_lru",
    "alloc_huge_page_failed",
    "ccgroup_charge_failed",
    "truncated",
    "page_has_private",
    "store_failed",
    "copy_poisoned_page",
    "page_filled",
    "page_ro",
    "no_lru",
    "page_swap_cache",
    "page_count",
];

/// A status by the kernel's word; "other" where the kernel is newer than the list.
pub(super) fn status(word: &str) -> &'static str {
    STATUS_WORDS.iter().find(|known| **known == word).copied().unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_known_by_its_word() {
        for word in ["success", "complete", "contended", "not_suitable_zone", "succeeded", "exceed_none_pte"]
        {
            assert_eq!(status(word), word);
        }
        assert_eq!(status("brand_new"), "other");
    }
}
