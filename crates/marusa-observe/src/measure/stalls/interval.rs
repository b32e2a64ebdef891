//! What one interval gives: for each thread and each kind of stall how often, how long, how long at worst; and what is missing.

use super::Stall;
use super::histogram::Histogram;
use std::collections::BTreeMap;

/// How often, how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The ones that ended in the interval.
    pub count: u64,
    /// The ones that were under way at its end.
    pub going_on: u64,
    /// Time within the interval.
    pub ns: u64,
    /// The part of it asleep because the kernel throttles tasks that reclaim.
    pub throttled_ns: u64,
    /// The longest, whole, also of those under way so far.
    pub worst_ns: u64,
    /// Whole lengths of the ones that ended.
    pub histogram: Histogram,
}

impl Figures {
    pub fn merge(&mut self, other: &Figures) {
        self.count = self.count.saturating_add(other.count);
        self.going_on = self.going_on.saturating_add(other.going_on);
        self.ns = self.ns.saturating_add(other.ns);
        self.throttled_ns = self.throttled_ns.saturating_add(other.throttled_ns);
        self.worst_ns = self.worst_ns.max(other.worst_ns);
        self.histogram.merge(&other.histogram);
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.going_on == 0 && self.ns == 0
    }
}

/// What else a thread did.
#[derive(Clone, Debug, Default, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Counts {
    /// Pages of 2^order base pages: got, and asked for without getting any.
    #[serde(skip)]
    pub allocations: BTreeMap<u32, (u64, u64)>,
    /// Zones that were not compacted since that failed lately.
    #[serde(rename = "compaction_deferred")]
    pub deferred: u64,
    /// Huge pages that it spoiled for others, by taking a small one out of a free block of another mobility.
    #[serde(rename = "huge_pages_broken")]
    pub spoiled: u64,
}

/// One thread, in one kind of stall, for pages of one order (`None`: no order, or not known).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub tid: i32,
    pub stall: Stall,
    pub order: Option<u32>,
}

/// Who a thread is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// `None`: it ended before it could be known.
    pub pid: Option<i32>,
    pub name: Option<String>,
}

/// What is missing. As soon as one of them is not 0, all sums are lower bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Missing {
    #[serde(rename = "lost_events")]
    pub lost: u64,
    /// By CPU: holes in its events.
    #[serde(skip)]
    pub holes: BTreeMap<u32, u64>,
    #[serde(rename = "undecoded_events")]
    pub undecoded: u64,
    /// Begins whose end was not seen, and ends without a begin: after a loss, or since it began before us.
    #[serde(rename = "begins_without_end")]
    pub begins: u64,
    #[serde(rename = "ends_without_begin")]
    pub ends: u64,
}

/// One interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    pub from_ns: u64,
    pub until_ns: u64,
    pub stalls: BTreeMap<Key, Figures>,
    pub counts: BTreeMap<i32, Counts>,
    pub seen: BTreeMap<i32, Seen>,
    /// What khugepaged's looks at ranges of 2 MiB ended in, by the kernel's word.
    pub scans: BTreeMap<&'static str, u64>,
    pub missing: Missing,
    pub events: u64,
}

impl Interval {
    pub fn seconds(&self) -> f64 {
        self.until_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }
}
