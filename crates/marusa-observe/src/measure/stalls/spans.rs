//! What one thread is in, and since when: the stack behind `pairs`.

use super::interval::Figures;
use crate::os::cpu_time::Daemon;

/// In which way time was lost.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema, serde::Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Stall {
    /// The thread moved others' pages until a large enough block was free.
    DirectCompaction,
    /// It freed others' pages, since the host had none left.
    DirectReclaim,
    /// It freed pages of its cgroup, which was at its limit.
    #[serde(rename = "cgroup_reclaim")]
    GroupReclaim,
    /// It zeroed the huge page that it touched first: work that small pages need as well, but at once.
    HugeFault,
    /// It put its own, or another's, small pages together to a huge one: it asked for that (MADV_COLLAPSE).
    Collapse,
    /// khugepaged at work: allocating, compacting, copying.
    Khugepaged,
    /// kcompactd at work.
    Kcompactd,
    /// kswapd awake. It pauses in the meantime: its CPU time says how much it did.
    Kswapd,
}

impl Stall {
    /// Whether the thread waited for memory. Zeroing and what it asked for itself are work, and daemons have no one to wait.
    pub fn is_wait(self) -> bool {
        matches!(self, Stall::DirectCompaction | Stall::DirectReclaim | Stall::GroupReclaim)
    }

    pub fn is_daemons(self) -> bool {
        matches!(self, Stall::Khugepaged | Stall::Kcompactd | Stall::Kswapd)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doing {
    #[default]
    Compaction,
    Reclaim,
    GroupReclaim,
    /// It has got a huge page, for a fault or for a collapse, and the end will tell; or for something that has no end.
    Huge,
    Fault,
    Collapse,
    Awake,
}

/// One range that is under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub doing: Doing,
    pub order: Option<u32>,
    /// Where it began.
    pub cpu: u32,
    /// Its own time, without what lies within it: all, and what no interval has yet.
    pub whole_ns: u64,
    uncounted_ns: u64,
    pub throttled_ns: u64,
    /// Events are missing while it is under way, on any CPU; and on its own.
    pub is_uncertain: bool,
    pub is_refused: bool,
}

impl Span {
    pub fn new(doing: Doing, order: Option<u32>, cpu: u32) -> Span {
        Span { doing, order, cpu, ..Span::default() }
    }

    pub fn mark_uncertain(&mut self, cpu: u32) {
        self.is_uncertain = true;
        self.is_refused |= self.cpu == cpu;
    }

    pub fn count_into(&mut self, figures: &mut Figures) {
        figures.ns = figures.ns.saturating_add(std::mem::take(&mut self.uncounted_ns));
        figures.throttled_ns = figures.throttled_ns.saturating_add(std::mem::take(&mut self.throttled_ns));
    }

    /// `None`: it is not known yet what it is.
    pub fn stall(&self, daemon: Option<Daemon>) -> Option<Stall> {
        Some(match (self.doing, daemon) {
            (Doing::Huge, _) => return None,
            (_, Some(Daemon::Khugepaged)) => Stall::Khugepaged,
            (Doing::Compaction, Some(Daemon::Kcompactd)) => Stall::Kcompactd,
            (Doing::Compaction, _) => Stall::DirectCompaction,
            (Doing::Reclaim, _) => Stall::DirectReclaim,
            (Doing::GroupReclaim, _) => Stall::GroupReclaim,
            (Doing::Fault, _) => Stall::HugeFault,
            (Doing::Collapse, _) => Stall::Collapse,
            (Doing::Awake, _) => Stall::Kswapd,
        })
    }
}

/// What one thread is in.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// The innermost is the last.
    pub spans: Vec<Span>,
    /// The order that it compacts for, and when it said so.
    pub order: Option<(u32, u64)>,
    since_ns: u64,
}

impl Thread {
    pub fn new(now: u64) -> Thread {
        Thread { spans: Vec::new(), order: None, since_ns: now }
    }

    /// Time passes, for the innermost.
    pub fn pass(&mut self, now: u64) {
        let passed = now.saturating_sub(self.since_ns);
        if let Some(span) = self.spans.last_mut() {
            span.whole_ns = span.whole_ns.saturating_add(passed);
            span.uncounted_ns = span.uncounted_ns.saturating_add(passed);
        }
        self.since_ns = self.since_ns.max(now);
    }

    /// Nothing is under way, and the order that it named is too old to have a result.
    pub fn is_idle(&self, now: u64) -> bool {
        const ORDER_NS: u64 = 1_000_000_000;
        let is_old = |(_, at): (u32, u64)| now.saturating_sub(at) > ORDER_NS;
        self.spans.is_empty() && self.order.is_none_or(is_old)
    }
}
