//! What a JVM needed next to its heap, moment by moment, and the highest of each day. All figures of one moment are taken together:
//! areas peak at different times, and the sum of their separate peaks was never needed.

use crate::base::Bytes;
use crate::map::Area;
use crate::record::history::History;
use crate::record::key::Measure;
use crate::record::leak_series::Accounts;
use std::collections::BTreeMap;

const DAY_MS: i64 = 86_400_000;
/// A day counts as seen when this much of it was.
const WHOLE_DAY_SECONDS: f64 = 20.0 * 3600.0;
/// A gap between two samples that is longer was not observed.
const GAP_MS: u64 = 10 * 60_000;
/// What the kernel keeps for a thread and charges to the cgroup: a stack of 16 KiB (Linux arch/x86/include/asm/page_64_types.h
/// and arch/arm64/include/asm/memory.h, THREAD_SIZE) and a `task_struct` with its register state, rounded up.
const KERNEL_BYTES_PER_THREAD: Bytes = 32 << 10;

/// The need at one moment; what is not known is not in the sum, and the advice says so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Need {
    pub wall_ms: i64,
    /// Of each area except the Java heap.
    pub areas: Vec<(Area, Bytes)>,
    pub page_table_bytes: Option<Bytes>,
    /// Charged to the cgroup, and not resident in this JVM: the kernel's memory, other processes, file cache in use.
    pub kernel_bytes: Option<Bytes>,
    /// No cgroup figure was there: it is an estimate from the number of threads.
    pub is_kernel_estimated: bool,
    pub heap_bytes: Bytes,
    /// What malloc could return of `malloc_freed`.
    pub trimmable_bytes: Option<Bytes>,
    pub arenas: Option<u64>,
}

impl Need {
    /// Of an account; `None` where it has no areas.
    pub fn at(history: &History, at: usize) -> Option<Need> {
        let area = |area: &Area| Some((*area, history.resident(*area, at)?));
        let process = |measure| history.process(measure, at);
        let areas: Vec<(Area, Bytes)> = Area::ALL.iter().filter_map(area).collect();
        let (heap, areas): (Vec<_>, Vec<_>) =
            areas.into_iter().partition(|(area, _)| *area == Area::JavaHeap);
        let page_table_bytes = process(Measure::PageTables);
        let charged = charged_elsewhere(history, at, page_table_bytes.unwrap_or(0));
        let threads = process(Measure::Tasks).or_else(|| process(Measure::JavaThreads));
        let by_threads = threads.map(|threads| threads.saturating_mul(KERNEL_BYTES_PER_THREAD));
        (!areas.is_empty()).then(|| Need {
            wall_ms: history.moments[at].wall_ms,
            areas,
            page_table_bytes,
            kernel_bytes: charged.or(by_threads),
            is_kernel_estimated: charged.is_none(),
            heap_bytes: heap.first().map_or(0, |(_, bytes)| *bytes),
            trimmable_bytes: process(Measure::Trimmable),
            arenas: process(Measure::Arenas),
        })
    }

    pub fn area(&self, wanted: Area) -> Bytes {
        self.areas.iter().find(|(area, _)| *area == wanted).map_or(0, |(_, bytes)| *bytes)
    }

    pub fn bytes(&self) -> Bytes {
        let areas: Bytes = self.areas.iter().map(|(_, bytes)| *bytes).sum();
        areas + self.page_table_bytes.unwrap_or(0) + self.kernel_bytes.unwrap_or(0)
    }

    /// With malloc's freed memory returned.
    pub fn returned_bytes(&self) -> Bytes {
        self.bytes() - self.trimmable_bytes.unwrap_or(0).min(self.area(Area::MallocFreed))
    }
}

/// What the cgroup held without what could be dropped at once, less what is resident here. `None`: no cgroup with a limit was seen.
fn charged_elsewhere(history: &History, at: usize, page_tables: Bytes) -> Option<Bytes> {
    let process = |measure| history.process(measure, at);
    let held = history.group_held(at)?;
    let hugetlb = process(Measure::KernelHugetlb).unwrap_or(0);
    let resident = process(Measure::KernelResident)?.saturating_sub(hugetlb);
    Some(held.saturating_sub(resident).saturating_sub(page_tables))
}

/// One replica on one day (UTC).
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub replica: String,
    pub day: i64,
    pub seconds: f64,
    pub peak: Need,
    pub returned_peak_bytes: Bytes,
}

impl Window {
    pub fn is_whole(&self) -> bool {
        self.seconds >= WHOLE_DAY_SECONDS
    }
}

/// A pod that was restarted is one replica.
pub fn replica_of(history: &History) -> String {
    let who = &history.facts.identity;
    let name = who.pod.as_ref().or(who.unit.as_ref()).or(history.facts.jvm_id.as_ref());
    name.cloned().unwrap_or_else(|| format!("pid {}", history.facts.pid))
}

/// The windows of all replicas, and for each area the highest of its own.
pub fn windows(jvms: &[&History]) -> (Vec<Window>, BTreeMap<Area, Bytes>) {
    let mut windows: BTreeMap<(String, i64), Window> = BTreeMap::new();
    let mut highest: BTreeMap<Area, Bytes> = BTreeMap::new();
    for history in jvms {
        let replica = replica_of(history);
        for at in Accounts::of(history, |_| true).moments() {
            let Some(need) = Need::at(history, at) else { continue };
            for (area, bytes) in &need.areas {
                let most = highest.entry(*area).or_default();
                *most = (*most).max(*bytes);
            }
            let day = need.wall_ms.div_euclid(DAY_MS);
            let returned = need.returned_bytes();
            let window = windows.entry((replica.clone(), day)).or_insert_with(|| Window {
                replica: replica.clone(),
                day,
                seconds: 0.0,
                peak: need.clone(),
                returned_peak_bytes: returned,
            });
            window.returned_peak_bytes = window.returned_peak_bytes.max(returned);
            if need.bytes() > window.peak.bytes() {
                window.peak = need;
            }
        }
        for ((_, day), window) in windows.iter_mut().filter(|((name, _), _)| *name == replica) {
            window.seconds += observed_seconds(history, *day);
        }
    }
    (windows.into_values().collect(), highest)
}

fn observed_seconds(history: &History, day: i64) -> f64 {
    let pairs = history.moments.windows(2).filter(|pair| pair[1].wall_ms.div_euclid(DAY_MS) == day);
    let gaps = pairs.map(|pair| pair[1].steady_ms.saturating_sub(pair[0].steady_ms));
    gaps.filter(|gap| *gap <= GAP_MS).sum::<u64>() as f64 / 1e3
}
