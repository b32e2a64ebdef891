//! The limit of a container as a sum, and what each part of it rests on.

use super::need::{Need, Window};
use super::{MIB, Wanted, stepped};
use crate::base::{Bytes, rfc3339};
use crate::map::Area;
use crate::measure::growth::Verdict;
use crate::measure::heap_tables;
use crate::record::History;
use crate::record::leak_row::{Row, What};
use crate::record::leaks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, UNIX_EPOCH};

/// The share of replica-days that the bound is about.
pub const SHARE: f64 = 0.95;
/// Replica-days for that share with 95 % confidence: ln 0.05 / ln 0.95.
pub const WINDOWS_ENOUGH: usize = 59;
/// The least reserve: this part of the need where enough was seen, and twice that where not.
const RESERVE_PART: u64 = 20;
const RESERVE_BYTES_MIN: Bytes = 16 * MIB;

/// A limit for one -Xmx. `limit_bytes` is the sum of the other parts, rounded up.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Limit {
    /// Only the part that a limit counts: 0 for a heap on pages of the kernel's hugetlb pool.
    pub heap_bytes: Bytes,
    /// By how much the collector's tables grow with the heap, from what they had at the peak.
    pub tables_growth_bytes: Bytes,
    /// The highest joint need next to the heap.
    pub base_bytes: Bytes,
    /// Where `leak` says that it grows, until the time that was asked for.
    pub growth_bytes: Bytes,
    pub reserve_bytes: Bytes,
    /// What is held with the heap full, before growth: the forecast that is checked later.
    pub held_bytes: Bytes,
    pub limit_bytes: Bytes,
    /// The base and the limit with malloc's freed memory returned, where that is known.
    pub returned_base_bytes: Option<Bytes>,
    pub returned_limit_bytes: Option<Bytes>,
    /// Without an assumption on the distribution: this share of replica-days stays within the base ...
    pub share_ratio: f64,
    /// ... with this confidence, by replica-days and by days alone, as replicas of one day are alike.
    pub confidence_ratio: f64,
    pub confidence_by_days_ratio: f64,
    pub peak: Peak,
    pub growing: Vec<Growing>,
}

/// The moment of the highest need.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Peak {
    pub at: String,
    pub replica: String,
    /// The largest first.
    pub parts: Vec<Part>,
    /// `None`: not recorded, and not in the need; nor is that of `kernel_bytes`.
    pub page_table_bytes: Option<Bytes>,
    /// Charged to the cgroup next to this JVM's resident memory.
    pub kernel_bytes: Option<Bytes>,
    /// Without figures of a cgroup, an estimate from the number of threads.
    pub kernel_is_estimated: bool,
    pub malloc_arenas: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Part {
    pub area: Area,
    pub bytes: Bytes,
}

/// An area that `leak` says grows; `bytes`: until the time that was asked for, at the upper end of its rate.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Growing {
    pub area: Area,
    pub bytes: Bytes,
    pub bytes_per_hour: f64,
    pub is_bounded: bool,
}

/// What a limit is made of, except the heap.
pub struct Evidence {
    pub windows: Vec<Window>,
    /// For each area, the highest of its own.
    pub highest: BTreeMap<Area, Bytes>,
    pub growing: Vec<Growing>,
    pub has_pool_heap: bool,
}

impl Evidence {
    pub fn whole_windows(&self) -> usize {
        self.windows.iter().filter(|window| window.is_whole()).count()
    }

    pub fn whole_days(&self) -> usize {
        let whole = self.windows.iter().filter(|window| window.is_whole());
        whole.map(|window| window.day).collect::<BTreeSet<_>>().len()
    }

    fn highest_window(&self) -> Option<&Window> {
        self.windows.iter().max_by_key(|window| window.peak.bytes())
    }

    /// `None`: no account was seen.
    pub fn limit(&self, xmx_bytes: Bytes) -> Option<Limit> {
        let window = self.highest_window()?;
        let need = &window.peak;
        let heap_bytes = if self.has_pool_heap { 0 } else { xmx_bytes };
        let tables_growth_bytes = heap_tables::growth(need.area(Area::Gc), need.heap_bytes, xmx_bytes);
        let base_bytes = need.bytes();
        let growth_bytes: Bytes = self.growing.iter().map(|growing| growing.bytes).sum();
        let reserve_bytes = self.reserve(need);
        let held_bytes = heap_bytes.saturating_add(tables_growth_bytes).saturating_add(base_bytes);
        let limit_of = |base: Bytes| {
            let fixed = heap_bytes.saturating_add(tables_growth_bytes).saturating_add(base);
            stepped(fixed.saturating_add(growth_bytes).saturating_add(reserve_bytes))
        };
        let is_known = self.windows.iter().any(|window| window.peak.trimmable_bytes.is_some());
        let returned_base = self.windows.iter().map(|window| window.returned_peak_bytes).max();
        let returned_base_bytes = returned_base.filter(|_| is_known);
        Some(Limit {
            heap_bytes,
            tables_growth_bytes,
            base_bytes,
            growth_bytes,
            reserve_bytes,
            held_bytes,
            limit_bytes: limit_of(base_bytes),
            returned_base_bytes,
            returned_limit_bytes: returned_base_bytes.map(limit_of),
            share_ratio: SHARE,
            confidence_ratio: confidence(self.whole_windows()),
            confidence_by_days_ratio: confidence(self.whole_days()),
            peak: peak(window),
            growing: self.growing.clone(),
        })
    }

    /// The largest of: what it would be if all areas had their own peak at once; a twentieth of the need, or a tenth where fewer
    /// than 59 replica-days were seen; 16 MiB.
    fn reserve(&self, need: &Need) -> Bytes {
        let apart: Bytes =
            self.highest.iter().map(|(area, most)| most.saturating_sub(need.area(*area))).sum();
        let part = if self.whole_windows() >= WINDOWS_ENOUGH { RESERVE_PART } else { RESERVE_PART / 2 };
        apart.max(need.bytes() / part).max(RESERVE_BYTES_MIN)
    }
}

/// That at least `SHARE` of such windows lie below the highest of n: 1 - SHARE^n.
fn confidence(windows: usize) -> f64 {
    1.0 - SHARE.powi(i32::try_from(windows).unwrap_or(i32::MAX))
}

fn peak(window: &Window) -> Peak {
    let need = &window.peak;
    let mut parts: Vec<Part> =
        need.areas.iter().map(|(area, bytes)| Part { area: *area, bytes: *bytes }).collect();
    parts.retain(|part| part.bytes > 0);
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    let since = Duration::from_millis(u64::try_from(need.wall_ms).unwrap_or(0));
    Peak {
        at: rfc3339(UNIX_EPOCH + since),
        replica: window.replica.clone(),
        parts,
        page_table_bytes: need.page_table_bytes,
        kernel_bytes: need.kernel_bytes,
        kernel_is_estimated: need.is_kernel_estimated,
        malloc_arenas: need.arenas,
    }
}

/// What `leak` judges of each JVM: the areas next to the heap that grow, the fastest JVM of each; whether the live heap does; and
/// whether some area cannot be judged yet.
pub struct Judged {
    pub growing: Vec<Growing>,
    pub is_heap_growing: bool,
    pub open: BTreeSet<Area>,
}

pub fn judged(jvms: &[&History], wanted: Wanted) -> Judged {
    let hours = wanted.until.as_secs_f64() / 3600.0;
    let mut growing: BTreeMap<Area, Growing> = BTreeMap::new();
    let (mut is_heap_growing, mut open) = (false, BTreeSet::new());
    for row in jvms.iter().flat_map(|history| leaks::judge(history, 0.0, f64::INFINITY, false)) {
        let grows = matches!(row.growth.verdict, Verdict::GrowsWithoutBound | Verdict::GrowsToBound);
        match row.what {
            What::HeapInUse => is_heap_growing |= grows && !row.growth.is_small,
            What::Area(Area::JavaHeap) => {}
            What::Area(area) if grows => {
                let found = grown(area, &row, hours);
                let known = growing.entry(area).or_insert_with(|| found.clone());
                if found.bytes > known.bytes {
                    *known = found;
                }
            }
            What::Area(area) if row.growth.verdict == Verdict::CannotTellYet && !row.growth.is_small => {
                open.insert(area);
            }
            _ => {}
        }
    }
    open.retain(|area| !growing.contains_key(area));
    Judged { growing: growing.into_values().collect(), is_heap_growing, open }
}

fn grown(area: Area, row: &Row, hours: f64) -> Growing {
    let rate = row.growth.rate.map_or(0.0, |rate| rate.high_bytes_per_hour.max(0.0));
    let free = row.growth.bound_bytes.map(|bound| bound.saturating_sub(row.growth.level_bytes));
    let bytes = (rate * hours) as Bytes;
    let is_bounded = row.growth.verdict == Verdict::GrowsToBound;
    let bytes = free.filter(|_| is_bounded).map_or(bytes, |free| bytes.min(free));
    Growing { area, bytes, bytes_per_hour: rate, is_bounded }
}
