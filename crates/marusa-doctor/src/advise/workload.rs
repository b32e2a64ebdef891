//! Which JVMs are replicas of one workload, and the advice on it. JVMs with another version, collector or -Xmx are another
//! workload: what one needed says nothing of the other.

use super::heap::{self, Heap};
use super::limit::{self, Evidence, Limit, WINDOWS_ENOUGH};
use super::malloc::{self, Malloc};
use super::need;
use super::{Wanted, stepped};
use crate::base::{Bytes, counted, human};
use crate::map::Area;
use crate::os::identity::kind;
use crate::record::History;
use crate::record::key::{Key as Series, Measure, Subject};
use crate::record::writer::Ending;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What makes JVMs replicas of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
pub struct Key {
    pub namespace: Option<String>,
    /// The workload that the pod is a replica of, or else the unit.
    pub workload: Option<String>,
    pub container: Option<String>,
    /// The server, main class or jar, without its package or directory.
    pub main: Option<String>,
    pub java_version: Option<String>,
    pub gc: Option<String>,
    pub max_heap_bytes: Option<Bytes>,
}

impl Key {
    fn of(history: &History) -> Key {
        let (facts, who) = (&history.facts, &history.facts.identity);
        Key {
            namespace: who.namespace.clone(),
            workload: who.workload.clone().or(who.pod.clone()).or(who.unit.clone()),
            container: who.container.clone().or(facts.container.clone()),
            main: facts.short_name().map(str::to_string),
            java_version: facts.version.clone(),
            gc: facts.gc.clone(),
            max_heap_bytes: facts.max_heap_bytes,
        }
    }

    /// "shop/orders/main: Kafka".
    pub fn name(&self) -> String {
        let places = [&self.namespace, &self.workload, &self.container];
        let place: Vec<&str> = places.into_iter().flatten().map(String::as_str).collect();
        match (place.is_empty(), &self.main) {
            (true, Some(main)) => main.clone(),
            (true, None) => "a JVM without a name".to_string(),
            (false, Some(main)) => format!("{}: {main}", place.join("/")),
            (false, None) => place.join("/"),
        }
    }

    /// Whether it is the same program at the same place, whatever its version, collector and heap.
    pub fn is_same_program(&self, other: &Key) -> bool {
        let of = |key: &Key| {
            (key.namespace.clone(), key.workload.clone(), key.container.clone(), key.main.clone())
        };
        of(self) == of(other)
    }
}

pub fn groups<'a>(jvms: &[&'a History]) -> BTreeMap<Key, Vec<&'a History>> {
    let mut groups: BTreeMap<Key, Vec<&History>> = BTreeMap::new();
    for history in jvms {
        groups.entry(Key::of(history)).or_default().push(history);
    }
    groups
}

fn id(history: &History) -> Option<&str> {
    history.facts.identity.container_id.as_deref()
}

/// Ids of containers in which several JVMs ran at the same time.
pub fn shared_containers<'a>(jvms: &[&'a History]) -> BTreeSet<&'a str> {
    let mut by_id: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    for history in jvms {
        let ends = history.moments.first().zip(history.moments.last());
        if let Some((id, (first, last))) = id(history).zip(ends) {
            by_id.entry(id).or_default().push((first.wall_ms, last.wall_ms));
        }
    }
    by_id.values_mut().for_each(|spans| spans.sort_unstable());
    let is_shared = |spans: &Vec<(i64, i64)>| spans.windows(2).any(|pair| pair[1].0 <= pair[0].1);
    by_id.iter().filter(|(_, spans)| is_shared(spans)).map(|(id, _)| *id).collect()
}

/// What the advice rests on.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Observed {
    pub from: Option<String>,
    pub to: Option<String>,
    pub replicas: usize,
    pub jvms: usize,
    pub hours: f64,
    /// Replicas and days of which at least 20 hours were seen.
    pub replica_days: usize,
    pub days: usize,
    pub oom_kills: usize,
    /// The highest that was held: what the cgroup counted, or else resident memory and page tables.
    pub held_bytes: Option<Bytes>,
    pub resident_bytes: Option<Bytes>,
    pub limit_bytes: Option<Bytes>,
    /// The share of time in collections in the busiest hour, 0 to 1.
    pub gc_ratio: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Workload {
    pub name: String,
    pub key: Key,
    /// By the names of the pods: Deployment, StatefulSet or CronJob.
    pub kind: Option<String>,
    pub observed: Observed,
    /// With the advised -Xmx, or with the present one where there is no advice on it.
    pub limit: Option<Limit>,
    /// With the present -Xmx.
    pub limit_as_is: Option<Limit>,
    pub heap: Option<Heap>,
    pub malloc: Option<Malloc>,
    pub code_cache: Option<CodeCache>,
    /// What was not judged, and why.
    pub not_judged: Vec<String>,
}

impl Workload {
    pub fn of(key: Key, jvms: &[&History], shared: &BTreeSet<&str>, wanted: Wanted) -> Workload {
        let judged = limit::judged(jvms, wanted);
        let (windows, highest) = need::windows(jvms);
        let evidence = Evidence {
            windows,
            highest,
            growing: judged.growing,
            has_pool_heap: jvms.iter().any(|jvm| has_pool_heap(jvm)),
        };
        let observed = observed(jvms, &evidence);
        let mut not_judged = unsure(jvms, &observed, &evidence, shared);
        let heap = match key.max_heap_bytes {
            None => Err("the largest heap (-Xmx) is not known".into()),
            Some(_) if judged.is_heap_growing => {
                Err("the live objects of the heap grow: see marusa leak first".into())
            }
            Some(now) => heap::advice(jvms, now, wanted),
        };
        if let Err(why) = &heap {
            not_judged.push(format!("-Xmx: {why}"));
        }
        if !judged.open.is_empty() {
            let areas: Vec<&str> = judged.open.iter().map(|area| area.title()).collect();
            not_judged.push(format!("growth of {}: the recording is too short to tell", areas.join(", ")));
        }
        let heap = heap.ok();
        let limit_as_is = key.max_heap_bytes.and_then(|xmx| evidence.limit(xmx));
        let limit = heap.as_ref().map(|heap| heap.xmx_bytes).and_then(|xmx| evidence.limit(xmx));
        let limit = limit.or_else(|| limit_as_is.clone());
        if limit.is_none() {
            not_judged.push("the limit: no account of its memory was recorded".to_string());
        }
        Workload {
            name: key.name(),
            malloc: limit.as_ref().and_then(|limit| malloc::advice(limit, key.java_version.as_deref())),
            kind: jvms.iter().find_map(|jvm| kind(jvm.facts.identity.pod.as_deref()?)).map(str::to_string),
            key,
            observed,
            limit,
            limit_as_is,
            heap,
            code_cache: jvms
                .iter()
                .filter_map(|jvm| CodeCache::of(jvm))
                .max_by_key(|cache| cache.highest_bytes),
            not_judged,
        }
    }

    /// The maximum of the heap that goes with the limit.
    pub fn xmx_bytes(&self) -> Option<Bytes> {
        self.heap.as_ref().map(|heap| heap.xmx_bytes).or(self.key.max_heap_bytes)
    }

    /// What a fleet saves: of all replicas, by their limits now or else by what they held at most.
    pub fn saved_bytes(&self) -> Option<i64> {
        let now = self.observed.limit_bytes.or(self.observed.held_bytes)?;
        let then = self.limit.as_ref()?.limit_bytes;
        let replicas = i64::try_from(self.observed.replicas).ok()?;
        i64::try_from(now).ok()?.checked_sub(i64::try_from(then).ok()?)?.checked_mul(replicas)
    }
}

fn observed(jvms: &[&History], evidence: &Evidence) -> Observed {
    let first = jvms.iter().filter_map(|jvm| jvm.moments.first()).min_by_key(|moment| moment.wall_ms);
    let last = jvms.iter().filter_map(|jvm| jvm.moments.last()).max_by_key(|moment| moment.wall_ms);
    let most = |of: fn(&History, usize) -> Option<Bytes>| {
        jvms.iter().flat_map(|jvm| (0..jvm.len()).filter_map(move |at| of(jvm, at))).max()
    };
    let limits = jvms.iter().filter_map(|jvm| {
        let limit = jvm.process(Measure::GroupLimit, jvm.len().checked_sub(1)?)?;
        (limit > 0).then_some(limit)
    });
    Observed {
        from: first.map(|moment| moment.wall()),
        to: last.map(|moment| moment.wall()),
        replicas: jvms.iter().map(|jvm| need::replica_of(jvm)).collect::<BTreeSet<_>>().len(),
        jvms: jvms.len(),
        hours: evidence.windows.iter().map(|window| window.seconds).sum::<f64>() / 3600.0,
        replica_days: evidence.whole_windows(),
        days: evidence.whole_days(),
        oom_kills: jvms.iter().filter(|jvm| matches!(jvm.ending, Some((_, Ending::KilledForMemory)))).count(),
        held_bytes: most(held),
        resident_bytes: most(|jvm, at| jvm.process(Measure::KernelResident, at)),
        limit_bytes: limits.max(),
        gc_ratio: jvms.iter().filter_map(|jvm| heap::busiest_hour(jvm)).reduce(f64::max),
    }
}

fn held(history: &History, at: usize) -> Option<Bytes> {
    history.group_held(at).or_else(|| {
        let process = |measure| history.process(measure, at);
        Some(process(Measure::KernelResident)? + process(Measure::PageTables).unwrap_or(0))
    })
}

/// Half of its heap is in the kernel's hugetlb pool, which no memory limit counts.
fn has_pool_heap(history: &History) -> bool {
    let heap = history.len().checked_sub(1).and_then(|last| history.resident(Area::JavaHeap, last));
    let hugetlb = history.series(&Series::process(Measure::KernelHugetlb));
    let hugetlb = hugetlb.into_iter().flatten().max().unwrap_or(0);
    heap.is_some_and(|heap| heap > 0 && hugetlb >= heap / 2)
}

/// A code cache that is this full makes room by throwing compiled methods away.
const FULL_PERCENT: Bytes = 85;

/// The code cache of the JVM that has the most code.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CodeCache {
    pub highest_bytes: Bytes,
    pub reserved_bytes: Bytes,
    /// What it may still take of what it reserved; not in the limit.
    pub may_grow_bytes: Bytes,
    /// Where it is nearly full.
    pub option: Option<String>,
}

impl CodeCache {
    fn of(history: &History) -> Option<CodeCache> {
        let code = |measure| {
            history.series(&Series::of(&Subject::Area(Area::JitCode), measure)).into_iter().flatten().max()
        };
        let (highest, reserved) = (code(Measure::Resident)?, code(Measure::Reserved)?);
        let is_full = highest >= reserved / 100 * FULL_PERCENT;
        let larger = stepped(reserved + reserved / 2) >> 20;
        Some(CodeCache {
            highest_bytes: highest,
            reserved_bytes: reserved,
            may_grow_bytes: reserved.saturating_sub(highest),
            option: is_full.then(|| format!("-XX:ReservedCodeCacheSize={larger}m")),
        })
    }
}

/// What weakens the advice on the limit.
fn unsure(
    jvms: &[&History],
    observed: &Observed,
    evidence: &Evidence,
    shared: &BTreeSet<&str>,
) -> Vec<String> {
    let mut unsure = Vec::new();
    let mut say = |text: &str| unsure.push(text.to_string());
    if observed.replica_days == 0 {
        say(&format!(
            "a whole day: {} recorded, and no bound holds for what other hours bring",
            counted((observed.hours * 60.0).round() as u64, "minute")
        ));
    } else if observed.replica_days < WINDOWS_ENOUGH {
        let seen = observed.replica_days;
        say(&format!(
            "95 % with 95 % confidence: that takes {WINDOWS_ENOUGH} replica-days, {seen} were seen"
        ));
    }
    if observed.oom_kills > 0 {
        let kills = observed.oom_kills;
        say(&format!("what it needed when it was OOM-killed ({kills} times): more than was seen"));
    }
    let swapped = jvms.iter().flat_map(|jvm| jvm.series(&Series::process(Measure::KernelSwapped)));
    if let Some(bytes) = swapped.flatten().max().filter(|bytes| *bytes > 0) {
        say(&format!("memory in swap, up to {}: it is not in the need", human(bytes)));
    }
    if jvms.iter().any(|jvm| id(jvm).is_some_and(|id| shared.contains(id))) {
        say("other JVMs in the same container: they count as they were, and need advice of their own");
    }
    let peaks = || evidence.windows.iter().map(|window| &window.peak);
    if peaks().any(|peak| peak.page_table_bytes.is_none()) {
        say("page tables: not recorded, and not in the need");
    }
    if peaks().any(|peak| peak.kernel_bytes.is_none()) {
        say(
            "the kernel's memory: neither a cgroup with a limit nor threads were recorded, so it is not in the need",
        );
    } else if peaks().any(|peak| peak.is_kernel_estimated) {
        say("the kernel's memory: no cgroup with a limit was seen, so it is estimated from the threads");
    }
    unsure
}
