//! Whether the time of a huge page's fault can be distinguished from the events of this kernel: a huge page is touched in memory
//! of our own, and what was traced of it is held against the clock.
//!
//! Up to Linux 6.12, `__do_huge_pmd_anonymous_page` takes the page table before it zeroes the page; since 6.13, after.
//! Distributions carry such changes back, so the kernel is asked and not its version. Only a free huge page is taken: nothing is
//! compacted for it.

use super::{Tracing, clock_ns};
use crate::base::{Gap, Known, Why};
use crate::os::buddyinfo;
use crate::os::host;
use crate::os::machine::{base_page, huge_page};
use crate::os::trace::decode::Record;
use crate::os::trace::{Batch, Event, What};
use memmap2::{Advice, MmapMut};

pub const WHAT: &str = "time of huge page faults";

/// Which share of the whole touch the zeroing is at least: it is nearly all of it.
const SHARE_MIN: f64 = 0.3;

pub fn fault_times(tracing: &mut Tracing) -> Known<()> {
    let not_measured = |hint: &str| Gap::new(WHAT, Why::NotMeasured).hint(hint);
    if !matches!(host::thp_mode().as_deref(), Some("always" | "madvise")) {
        return Err(not_measured("transparent huge pages are off, so there are no such faults"));
    }
    let free = buddyinfo::parse(&host::text("/proc/buddyinfo").unwrap_or_default());
    if !free.iter().any(|zone| !buddyinfo::is_for_devices(&zone.zone) && zone.pages_of(huge_page()) > 0) {
        return Err(not_measured("no huge page was free when the trace began"));
    }
    let Some(took_ns) = touch_a_huge_page() else {
        return Err(not_measured("no memory for one huge page"));
    };
    let mut batch = Batch { until_ns: u64::MAX, ..std::mem::take(&mut tracing.early) };
    let drained = tracing.drain(&mut batch);
    tracing.early = batch;
    let Ok(records) = drained else {
        return Err(not_measured("the trace could not be read"));
    };
    let own = rustix::thread::gettid().as_raw_pid();
    let zeroed_ns = zeroing(&records, own);
    tracing.later.extend(records);
    match zeroed_ns {
        None => Err(not_measured("a trial got no huge page")),
        Some(ns) if ns as f64 >= took_ns as f64 * SHARE_MIN => Ok(()),
        Some(_) => Err(Gap::new(WHAT, Why::NotInThisKernel)
            .hint("no event marks its end; stalls within them (compaction, reclaim) are reported")),
    }
}

/// From the huge page to its page table, of the last fault of this thread.
fn zeroing(records: &[Record], tid: i32) -> Option<u64> {
    let of_ours = |record: &Record| match record {
        Record::Event(event) if event.tid == tid => Some(*event),
        _ => None,
    };
    let mut events: Vec<Event> = records.iter().filter_map(of_ours).collect();
    events.sort_by_key(|event| event.at_ns);
    let huge_order = (huge_page() / base_page()).ilog2();
    let is_page = |event: &Event| matches!(event.what, What::PageAlloc { order, is_failed: false } if order == huge_order);
    let page = events.iter().rposition(is_page)?;
    let table = events[page..].iter().find(|event| event.what == What::PageTable);
    // Where the page table comes first, there is none after the page: nothing is reported.
    Some(table.map_or(0, |table| table.at_ns.saturating_sub(events[page].at_ns)))
}

/// How long the fault took, in nanoseconds.
fn touch_a_huge_page() -> Option<u64> {
    let huge = huge_page() as usize;
    let mut memory = MmapMut::map_anon(2 * huge).ok()?;
    let _ = memory.advise(Advice::HugePage);
    let block = memory.as_ptr().align_offset(huge).min(huge);
    let began = clock_ns();
    *std::hint::black_box(&mut memory[block]) = 1;
    Some(clock_ns().saturating_sub(began))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_table_must_come_after_the_page() {
        let event = |at_ns, tid, what| Record::Event(Event { at_ns, cpu: 0, tid, what });
        let page = What::PageAlloc { order: 9, is_failed: false };
        let after = [
            event(5, 1, What::PageTable),
            event(10, 1, page),
            event(20, 2, What::PageTable),
            event(90, 1, What::PageTable),
        ];
        assert_eq!(zeroing(&after, 1), Some(80));
        assert_eq!(zeroing(&after[..3], 1), Some(0));
        assert_eq!(zeroing(&after, 3), None);
    }
}
