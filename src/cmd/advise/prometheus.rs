//! The figures of `marusa serve` as a Prometheus server kept them (or any back end with its HTTP API), asked for day by day.

use super::Failure;
use super::samples::Samples;
use crate::cmd::web;
use crate::map::Area;
use crate::record::history::History;
use crate::record::key::{Key, Measure, Subject};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ureq::Agent;

/// Between two figures: services read accounts as often.
const STEP: Duration = Duration::from_secs(60);
/// 1,440 steps of each series; Prometheus answers up to 11,000.
const CHUNK: Duration = Duration::from_secs(86_400);
const ANSWER_BYTES_MAX: u64 = 1 << 30;
const TIMEOUT: Duration = Duration::from_secs(120);

/// The metrics, what they are here, and by what they are multiplied.
const METRICS: [(&str, Measure, f64); 15] = [
    ("marusa_jvm_kernel_resident_bytes", Measure::KernelResident, 1.0),
    ("marusa_jvm_kernel_swapped_bytes", Measure::KernelSwapped, 1.0),
    ("marusa_jvm_kernel_page_table_bytes", Measure::PageTables, 1.0),
    ("marusa_jvm_malloc_trimmable_bytes", Measure::Trimmable, 1.0),
    ("marusa_jvm_malloc_arenas", Measure::Arenas, 1.0),
    ("marusa_jvm_heap_used_bytes", Measure::HeapUsed, 1.0),
    ("marusa_jvm_heap_capacity_bytes", Measure::HeapCapacity, 1.0),
    ("marusa_jvm_gc_collections_total", Measure::Collections, 1.0),
    ("marusa_jvm_gc_old_collections_total", Measure::OldCollections, 1.0),
    ("marusa_jvm_gc_duration_seconds_total", Measure::CollectionTime, 1e6),
    ("marusa_jvm_group_limit_bytes", Measure::GroupLimit, 1.0),
    ("marusa_jvm_group_held_bytes", Measure::GroupCurrent, 1.0),
    ("marusa_jvm_group_reclaimable_bytes", Measure::GroupReclaimable, 1.0),
    ("marusa_jvm_group_oom_kills_total", Measure::GroupOomKills, 1.0),
    ("marusa_jvm_threads", Measure::Tasks, 1.0),
];
const INFO: &str = "marusa_jvm_info";
const HEAP_MAX: &str = "marusa_jvm_heap_max_bytes";
const AREAS: &str = "marusa_jvm_memory_resident_bytes";

#[derive(Deserialize)]
struct Answer {
    status: String,
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    metric: HashMap<String, String>,
    /// Seconds since 1970, and the value as text.
    values: Vec<(f64, String)>,
}

/// What makes a series one of a JVM's name: a JVM that is started again has the same.
type Name = [Option<String>; 6];
const LABELS: [&str; 6] = ["namespace", "pod", "container", "unit", "jvm", "instance"];

struct Server<'a> {
    agent: Agent,
    url: String,
    shown: String,
    labels: &'a str,
}

pub fn read(url: &str, labels: &str, since: Duration) -> anyhow::Result<Vec<History>> {
    let roots = if url.starts_with("https") { web::roots(None, "SSL_CERT_FILE")? } else { Vec::new() };
    let server = Server {
        agent: web::agent(TIMEOUT, web::trusting(&roots)),
        url: url.trim_end_matches('/').to_string(),
        shown: crate::base::redact::url(url),
        labels,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut jvms = Jvms::default();
    let mut from = now.saturating_sub(since);
    while from < now {
        let to = (from + CHUNK).min(now);
        server.chunk(&mut jvms, from, to)?;
        from = to + STEP;
    }
    let found: Vec<History> = jvms.samples.into_values().filter_map(Samples::history).collect();
    match found.is_empty() {
        true => Err(Failure::target(format!(
            "cannot read {}: it has no series {INFO} of that time; does it scrape marusa serve?",
            server.shown
        ))),
        false => Ok(found),
    }
}

impl Server<'_> {
    fn chunk(&self, jvms: &mut Jvms, from: Duration, to: Duration) -> anyhow::Result<()> {
        // Which JVM had a name at which time; the others follow it.
        self.series(INFO, from, to)?.iter().for_each(|series| jvms.learn(series));
        self.series(AREAS, from, to)?.iter().for_each(|series| jvms.areas(series));
        self.series(HEAP_MAX, from, to)?.iter().for_each(|series| jvms.heap_max(series));
        for (metric, measure, scale) in METRICS {
            let series = self.series(metric, from, to)?;
            series.iter().for_each(|series| jvms.measure(series, measure, scale));
        }
        Ok(())
    }

    fn series(&self, metric: &str, from: Duration, to: Duration) -> anyhow::Result<Vec<Series>> {
        let failed =
            |error: &dyn std::fmt::Display| Failure::target(format!("cannot read {}: {error}", self.shown));
        let query = format!("{metric}{{{}}}", self.labels);
        let asked = self.agent.get(format!("{}/api/v1/query_range", self.url)).query_pairs([
            ("query", query.as_str()),
            ("start", &from.as_secs().to_string()),
            ("end", &to.as_secs().to_string()),
            ("step", &STEP.as_secs().to_string()),
        ]);
        let mut answer = asked.call().map_err(|error| failed(&error))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| failed(&format!("{error}; --labels or --since ask for less")))?;
        let parsed: Answer = serde_json::from_slice(&body).map_err(|_| {
            failed(&format!(
                "its answer ({status}) is not that of Prometheus; give its URL, up to the path of its API"
            ))
        })?;
        match (parsed.status.as_str(), parsed.data) {
            ("success", Some(data)) => Ok(data.result),
            (_, _) => {
                Err(failed(&format!("it answers {status}: {}", parsed.error.as_deref().unwrap_or("no data"))))
            }
        }
    }
}

#[derive(Default)]
struct Jvms {
    samples: BTreeMap<String, Samples>,
    /// For each name, since when which JVM had it; in the order of time.
    names: BTreeMap<Name, BTreeMap<i64, String>>,
}

impl Jvms {
    fn learn(&mut self, series: &Series) {
        let label = |name: &str| series.metric.get(name).filter(|value| !value.is_empty()).cloned();
        let name = name(series);
        let id = label("jvm_id").unwrap_or_else(|| format!("{name:?}"));
        let samples = self.samples.entry(id.clone()).or_default();
        let facts = &mut samples.facts;
        (facts.jvm_id, facts.version, facts.gc, facts.main) =
            (Some(id.clone()), label("java_version"), label("gc"), label("jvm"));
        let who = &mut facts.identity;
        (who.namespace, who.pod, who.container) = (label("namespace"), label("pod"), label("container"));
        (who.workload, who.unit, who.container_id) =
            (label("workload"), label("unit"), label("container_id"));
        let times = self.names.entry(name).or_default();
        times.extend(series.values.iter().map(|(seconds, _)| (ms(*seconds), id.clone())));
    }

    /// Adds the figures of a series to the JVM that had its labels exactly then: one is scraped with all of its figures.
    fn each(&mut self, series: &Series, scale: f64, mut add: impl FnMut(&mut Samples, i64, u64)) {
        let Some(ids) = self.names.get(&name(series)) else { return };
        for (at, value) in figures(series, scale) {
            if let Some(samples) = ids.get(&at).and_then(|id| self.samples.get_mut(id)) {
                add(samples, at, value);
            }
        }
    }

    fn areas(&mut self, series: &Series) {
        let area = series.metric.get("area");
        let Some(area) = Area::ALL.iter().find(|known| Some(known.name()) == area.map(String::as_str)) else {
            return;
        };
        self.each(series, 1.0, |samples, at, value| {
            samples.has_account(at, 0);
            samples.add(at, Key::of(&Subject::Area(*area), Measure::Resident), value);
        });
    }

    fn measure(&mut self, series: &Series, measure: Measure, scale: f64) {
        self.each(series, scale, |samples, at, value| samples.add(at, Key::process(measure), value));
    }

    fn heap_max(&mut self, series: &Series) {
        self.each(series, 1.0, |samples, _, value| samples.facts.max_heap_bytes = Some(value));
    }
}

fn name(series: &Series) -> Name {
    LABELS.map(|label| series.metric.get(label).cloned())
}

fn ms(seconds: f64) -> i64 {
    (seconds * 1e3) as i64
}

/// What is not a number is not known.
fn figures(series: &Series, scale: f64) -> impl Iterator<Item = (i64, u64)> {
    series.values.iter().filter_map(move |(seconds, value)| {
        let value: f64 = value.parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some((ms(*seconds), (value * scale) as u64))
    })
}
