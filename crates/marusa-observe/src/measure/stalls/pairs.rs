//! From events to stalls: each begin and its end, by the same thread, is a range of time in which that thread did nothing for
//! its program.
//!
//! **No time is counted twice.** Stalls of one thread may be nested: a huge page is charged to a cgroup that
//! is full, so the thread reclaims while its fault is under way. Each thread has a stack of what it is in, and time belongs to
//! the innermost, so the sum over all kinds of one thread is never longer than the clock.
//!
//! **No time is lost between two intervals.** `turn` gives what is under way its part up to then, and the rest goes to the
//! next interval; it is counted as one stall where it ends.
//!
//! **Nothing is guessed.** Where events are missing, a begin and an end may not belong to each other. A range with missing
//! events in it counts only if both were seen on one CPU, and that CPU lost none; else its begin and its end are counted as
//! unmatched, and its time is not.

use super::interval::{Counts, Interval, Key, Seen};
use super::spans::{Doing, Span, Thread};
use crate::base::limits::{STALL_HOLES_MAX, STALL_THREADS_MAX};
use crate::os::cpu_time::Daemon;
use crate::os::trace::{Batch, Event, What};
use std::collections::{BTreeMap, HashMap};

/// A fault of a huge page that seems to take longer was none: the page table that ends it belongs to a later fault.
const FAULT_NS_MAX: u64 = 100_000_000;
/// A huge page that was taken longer ago than this was for something that has no end event, as a file's.
const HUGE_NS_MAX: u64 = 10_000_000_000;

/// Events of one CPU are missing in this time.
struct Hole {
    cpu: u32,
    from_ns: u64,
    to_ns: u64,
    is_applied: bool,
}

#[derive(Default)]
pub struct Pairs {
    daemons: BTreeMap<i32, Daemon>,
    /// The order of a huge page, and whether its faults can be timed.
    huge_order: u32,
    fault_times: bool,
    threads: HashMap<i32, Thread>,
    /// Read too early: events of other CPUs may still come before them.
    held: Vec<Event>,
    holes: Vec<Hole>,
    last_of_cpu: BTreeMap<u32, u64>,
    until_ns: u64,
    seen: BTreeMap<i32, Seen>,
    interval: Interval,
}

impl Pairs {
    pub fn new(from_ns: u64, daemons: BTreeMap<i32, Daemon>, huge_order: u32, fault_times: bool) -> Pairs {
        let interval = Interval { from_ns, ..Interval::default() };
        Pairs { daemons, huge_order, fault_times, until_ns: from_ns, interval, ..Pairs::default() }
    }

    pub fn feed(&mut self, batch: Batch) {
        self.note(&batch);
        let until_ns = batch.until_ns.max(self.until_ns);
        let mut events = std::mem::take(&mut self.held);
        events.extend(batch.events);
        events.sort_by_key(|event| (event.at_ns, event.cpu));
        self.find_holes(&batch.holes, &events);
        self.held = events.split_off(events.partition_point(|event| event.at_ns <= until_ns));
        for event in events {
            self.mark_uncertain(event.at_ns);
            self.last_of_cpu.insert(event.cpu, event.at_ns);
            self.take(&event);
        }
        self.mark_uncertain(until_ns);
        self.holes.retain(|hole| hole.to_ns > until_ns);
        self.until_ns = until_ns;
    }

    /// The interval that ends where the last reading began.
    pub fn turn(&mut self) -> Interval {
        let now = self.until_ns;
        let (interval, daemons) = (&mut self.interval, &self.daemons);
        for (tid, thread) in &mut self.threads {
            thread.pass(now);
            thread.spans.retain(|span| span.doing != Doing::Huge || span.whole_ns <= HUGE_NS_MAX);
            for span in thread.spans.iter_mut().filter(|span| !span.is_uncertain) {
                let Some(stall) = span.stall(daemons.get(tid).copied()) else { continue };
                let figures = interval.stalls.entry(Key { tid: *tid, stall, order: span.order }).or_default();
                figures.going_on += 1;
                figures.worst_ns = figures.worst_ns.max(span.whole_ns);
                span.count_into(figures);
            }
        }
        self.threads.retain(|_, thread| !thread.is_idle(now));
        let mut turned = std::mem::take(&mut self.interval);
        turned.until_ns = now;
        let threads: Vec<i32> =
            turned.stalls.keys().map(|key| key.tid).chain(turned.counts.keys().copied()).collect();
        for tid in threads {
            turned.seen.insert(tid, self.seen.get(&tid).cloned().unwrap_or_default());
        }
        self.seen.retain(|tid, _| self.threads.contains_key(tid));
        self.interval.from_ns = now;
        turned
    }

    fn note(&mut self, batch: &Batch) {
        for (tid, name) in &batch.names {
            self.seen.entry(*tid).or_default().name = Some(name.clone());
        }
        for (tid, pid) in &batch.tgids {
            self.seen.entry(*tid).or_default().pid = Some(*pid);
        }
        let missing = &mut self.interval.missing;
        missing.lost = missing.lost.saturating_add(batch.lost);
        missing.undecoded = missing.undecoded.saturating_add(batch.undecoded);
        batch.holes.iter().for_each(|hole| *missing.holes.entry(hole.cpu).or_default() += 1);
        self.interval.events = self.interval.events.saturating_add(batch.events.len() as u64);
    }

    /// A hole reaches from the last event before it, and not from before the last reading, which had all.
    fn find_holes(&mut self, holes: &[crate::os::trace::Hole], events: &[Event]) {
        for hole in holes.iter().take(STALL_HOLES_MAX.saturating_sub(self.holes.len())) {
            let before = |event: &&Event| event.cpu == hole.cpu && event.at_ns < hole.before_ns;
            let last = events.iter().rev().find(before).map(|event| event.at_ns);
            let last = last.or(self.last_of_cpu.get(&hole.cpu).copied()).unwrap_or(0);
            let from_ns = last.max(self.until_ns).min(hole.before_ns);
            self.holes.push(Hole { cpu: hole.cpu, from_ns, to_ns: hole.before_ns, is_applied: false });
        }
    }

    /// What is under way after a hole began is uncertain; the event it begins after was seen.
    fn mark_uncertain(&mut self, now: u64) {
        for hole in self.holes.iter_mut().filter(|hole| !hole.is_applied && hole.from_ns < now) {
            hole.is_applied = true;
            let spans = self.threads.values_mut().flat_map(|thread| {
                thread.order = None;
                thread.spans.iter_mut()
            });
            spans.for_each(|span| span.mark_uncertain(hole.cpu));
        }
    }

    fn take(&mut self, event: &Event) {
        let tid = event.tid;
        match event.what {
            What::CompactionTry { order } => {
                self.drop_huge(event);
                self.thread(event).order = Some((order, event.at_ns));
            }
            What::CompactionBegin { .. } => {
                self.drop_huge(event);
                let order = self.thread(event).order.map(|(order, _)| order);
                self.begin(event, Doing::Compaction, order);
            }
            What::CompactionEnd { .. } => self.end(event, Doing::Compaction),
            What::CompactionDeferred { .. } => self.counts(tid).deferred += 1,
            What::ReclaimBegin { order } => {
                self.drop_huge(event);
                self.thread(event).order = None;
                self.begin(event, Doing::Reclaim, Some(order));
            }
            What::ReclaimEnd { .. } => self.end(event, Doing::Reclaim),
            What::GroupReclaimBegin { order } => self.begin(event, Doing::GroupReclaim, Some(order)),
            What::GroupReclaimEnd { .. } => self.end(event, Doing::GroupReclaim),
            What::Throttled { delayed_us } => {
                if let Some(span) = self.thread(event).spans.last_mut() {
                    span.throttled_ns = span.throttled_ns.saturating_add(u64::from(delayed_us) * 1000);
                }
            }
            What::PageAlloc { order, is_failed } => self.allocated(event, order, is_failed),
            What::PageTable => {
                if self.fault_times {
                    self.end_huge(event, Doing::Fault);
                }
            }
            What::Collapse { .. } => self.end_huge(event, Doing::Collapse),
            What::KhugepagedScan { status, .. } => self.scanned(tid, status),
            What::ExtFrag { is_fragmenting, .. } => {
                self.counts(tid).spoiled += u64::from(is_fragmenting);
            }
            What::KcompactdWake { order, .. } => {
                self.daemons.insert(tid, Daemon::Kcompactd);
                self.thread(event).order = Some((order, event.at_ns));
            }
            What::KcompactdSleep { .. } => self.thread(event).order = None,
            What::KswapdWake { .. } => {
                self.daemons.insert(tid, Daemon::Kswapd);
                // It may wake several times before it sleeps.
                if self.thread(event).spans.is_empty() {
                    self.begin(event, Doing::Awake, None);
                }
            }
            // At the very first it sleeps without having woken: that is not a loss.
            What::KswapdSleep { .. } => {
                if !self.thread(event).spans.is_empty() {
                    self.end(event, Doing::Awake);
                }
            }
        }
    }

    fn scanned(&mut self, tid: i32, status: &'static str) {
        if self.daemons.get(&tid) == Some(&Daemon::Khugepaged) {
            *self.interval.scans.entry(status).or_default() += 1;
        }
    }

    fn counts(&mut self, tid: i32) -> &mut Counts {
        self.interval.counts.entry(tid).or_default()
    }

    /// The thread of an event, with the time up to it given to what it was in.
    fn thread(&mut self, event: &Event) -> &mut Thread {
        if self.threads.len() >= STALL_THREADS_MAX && !self.threads.contains_key(&event.tid) {
            let dropped: usize = self.threads.values().map(|thread| thread.spans.len()).sum();
            self.interval.missing.begins += dropped as u64;
            self.threads.clear();
        }
        let thread = self.threads.entry(event.tid).or_insert_with(|| Thread::new(event.at_ns));
        thread.pass(event.at_ns);
        thread
    }

    fn begin(&mut self, event: &Event, doing: Doing, order: Option<u32>) {
        let mut span = Span::new(doing, order, event.cpu);
        let now = event.at_ns;
        let open = self.holes.iter().filter(|hole| hole.is_applied && now < hole.to_ns);
        open.for_each(|hole| span.mark_uncertain(hole.cpu));
        let thread = self.thread(event);
        // None of them begins anew within itself: the end of the first was lost.
        let kept = thread.spans.iter().position(|span| span.doing == doing).unwrap_or(thread.spans.len());
        let dropped = thread.spans.len() - kept;
        thread.spans.truncate(kept);
        thread.spans.push(span);
        self.interval.missing.begins += dropped as u64;
    }

    fn end(&mut self, event: &Event, doing: Doing) {
        let thread = self.thread(event);
        let Some(at) = thread.spans.iter().rposition(|span| span.doing == doing) else {
            self.interval.missing.ends += 1;
            return;
        };
        // What lies within should have ended before.
        let unended = thread.spans.len() - at - 1;
        thread.spans.truncate(at + 1);
        let span = thread.spans.pop();
        self.interval.missing.begins += unended as u64;
        if let Some(span) = span {
            self.count(event, span);
        }
    }

    fn count(&mut self, event: &Event, mut span: Span) {
        if span.is_uncertain && (span.is_refused || span.cpu != event.cpu) {
            self.interval.missing.begins += 1;
            self.interval.missing.ends += 1;
            return;
        }
        let daemon = self.daemons.get(&event.tid).copied();
        let Some(stall) = span.stall(daemon) else { return };
        let key = Key { tid: event.tid, stall, order: span.order };
        let figures = self.interval.stalls.entry(key).or_default();
        figures.count += 1;
        figures.worst_ns = figures.worst_ns.max(span.whole_ns);
        figures.histogram.add(span.whole_ns);
        span.count_into(figures);
    }

    fn allocated(&mut self, event: &Event, order: u32, is_failed: bool) {
        self.drop_huge(event);
        let (got, failed) = self.counts(event.tid).allocations.entry(order).or_default();
        *(if is_failed { failed } else { got }) += 1;
        // What was compacted for is had.
        if self.daemons.get(&event.tid) != Some(&Daemon::Kcompactd) {
            self.thread(event).order = None;
        }
        if order == self.huge_order && !is_failed {
            self.begin(event, Doing::Huge, Some(order));
        }
    }

    /// A huge page was taken, and nothing came of it that can be timed.
    fn drop_huge(&mut self, event: &Event) {
        self.thread(event).spans.retain(|span| span.doing != Doing::Huge);
    }

    /// Only at the end is it known what a huge page was taken for.
    fn end_huge(&mut self, event: &Event, doing: Doing) {
        let thread = self.thread(event);
        if thread.spans.last().is_none_or(|span| span.doing != Doing::Huge) {
            return;
        }
        let Some(mut span) = thread.spans.pop() else { return };
        if doing == Doing::Collapse || span.whole_ns <= FAULT_NS_MAX {
            span.doing = doing;
            self.count(event, span);
        }
    }
}

#[cfg(test)]
#[path = "pairs_tests.rs"]
mod tests;
