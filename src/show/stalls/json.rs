//! `marusa/stalls/2`: one object an interval. Times in milliseconds, lengths of the histogram in nanoseconds; what is not known
//! is null, with an entry in `gaps`.

use super::super::json::{IntervalTaken, Subject as Process};
use super::{CONTAINER, Subject};
use crate::base::{Bytes, Gap, Known};
use crate::map::model::GapRow;
use crate::measure::kinds::Kind;
use crate::measure::stalls::histogram::Bar;
use crate::measure::stalls::host::{Free, HostFigures};
use crate::measure::stalls::interval::{Counts, Figures, Missing};
use crate::measure::stalls::table::{By, Line, Row, Traced, Who};
use crate::measure::stalls::{Delayed, Report, Stall};
use crate::os::cpu_time::Daemon;
use crate::os::host::Host;
use crate::os::pressure::Pressure;
use crate::os::thp_stats::SizeStats;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::SystemTime;

const SCHEMA: &str = "marusa/stalls/2";

/// `marusa stalls --json`, one an interval.
#[derive(JsonSchema, Serialize)]
pub struct StallsDocument<'a> {
    schema: &'static str,
    taken: Taken,
    process: Option<Process<'a>>,
    by: By,
    rows: Option<Vec<StallRow<'a>>>,
    total: Option<StallRow<'a>>,
    elsewhere: Option<FiguresRow>,
    daemons: Option<Vec<LineRow>>,
    khugepaged_scans: Option<&'a BTreeMap<&'static str, u64>>,
    events: Option<u64>,
    missing: Option<MissingRow<'a>>,
    delays: Option<Vec<DelayRow<'a>>>,
    host: HostRow<'a>,
    gaps: Vec<GapRow>,
}

#[derive(JsonSchema, Serialize)]
struct Taken {
    #[serde(flatten)]
    interval: IntervalTaken,
    source: &'static str,
    trace_buffer_bytes: Option<Bytes>,
}

#[derive(JsonSchema, Serialize)]
struct StallRow<'a> {
    who: &'static str,
    pid: Option<i32>,
    tid: Option<i32>,
    name: Option<&'a str>,
    kind: Option<Kind>,
    is_jvm: Option<bool>,
    threads: usize,
    stalls: Vec<LineRow>,
    waited: FiguresRow,
    waited_percent_of_interval: Option<f64>,
    waited_percent_of_cpu: Option<f64>,
    cpu_ms: Option<f64>,
    allocations: Vec<AllocationsRow>,
    #[serde(flatten)]
    counts: &'a Counts,
}

#[derive(JsonSchema, Serialize)]
struct AllocationsRow {
    order: u32,
    got: u64,
    failed: u64,
}

#[derive(JsonSchema, Serialize)]
struct LineRow {
    #[serde(flatten)]
    figures: FiguresRow,
    stall: Stall,
    order: Option<u32>,
    page_bytes: Option<Bytes>,
}

#[derive(JsonSchema, Serialize)]
struct FiguresRow {
    count: u64,
    going_on: u64,
    total_ms: f64,
    throttled_ms: f64,
    worst_ms: Option<f64>,
    p99_ms: Option<f64>,
    histogram: Vec<Bar>,
}

#[derive(JsonSchema, Serialize)]
struct MissingRow<'a> {
    times_are_at_least: bool,
    holes: Vec<HolesRow>,
    #[serde(flatten)]
    missing: &'a Missing,
}

#[derive(JsonSchema, Serialize)]
struct HolesRow {
    cpu: u32,
    holes: u64,
}

#[derive(JsonSchema, Serialize)]
struct DelayRow<'a> {
    #[serde(flatten)]
    delayed: &'a Delayed,
    compaction_count: u64,
    compaction_ms: f64,
    reclaim_count: u64,
    reclaim_ms: f64,
}

#[derive(JsonSchema, Serialize)]
struct HostRow<'a> {
    #[serde(flatten)]
    machine: Host,
    is_seen_from_container: bool,
    note: Option<&'static str>,
    seconds: f64,
    vmstat: Option<&'a BTreeMap<&'static str, u64>>,
    by_page_size: Option<&'a [SizeStats]>,
    daemon_cpu_ms: Option<&'a BTreeMap<Daemon, f64>>,
    pressure: Option<PressureRow>,
    group_pressure: Option<PressureRow>,
    free: Option<&'a Free>,
    thp: Option<ThpRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct PressureRow {
    some_ms: f64,
    full_ms: f64,
}

#[derive(JsonSchema, Serialize)]
struct ThpRow<'a> {
    enabled: &'a str,
    defrag: Option<&'a str>,
}

impl<'a> StallsDocument<'a> {
    pub fn of(report: &'a Report, subject: &Subject<'a>, at: SystemTime) -> StallsDocument<'a> {
        let traced = report.traced.as_ref().ok();
        let rows = |traced: &'a Traced| traced.rows.iter().map(|it| row(it, traced.seconds)).collect();
        let delayed = report.delayed.as_ref().and_then(|it| it.as_ref().ok());
        StallsDocument {
            schema: SCHEMA,
            taken: Taken {
                interval: IntervalTaken::of(at, report.seconds, report.is_last),
                source: if traced.is_some() { "tracepoints" } else { "counters" },
                trace_buffer_bytes: subject.trace_bytes,
            },
            process: subject.target.map(|(pid, command)| Process { pid, command }),
            by: subject.by,
            rows: traced.map(rows),
            total: traced.map(|traced| row(&traced.total, traced.seconds)),
            elsewhere: traced.and_then(|traced| traced.elsewhere.as_ref()).map(figures),
            daemons: traced.map(|traced| traced.daemons.iter().map(line).collect()),
            khugepaged_scans: traced.map(|traced| &traced.scans),
            events: traced.map(|traced| traced.events),
            missing: traced.map(missing),
            delays: delayed.map(|delayed| delayed.iter().map(delay).collect()),
            host: host(&report.host, subject),
            gaps: gaps(report),
        }
    }
}

fn row(row: &Row, seconds: f64) -> StallRow<'_> {
    let (who, pid, tid, name, kind, is_jvm) = match &row.who {
        Who::Process { pid, name, is_jvm } => ("process", Some(*pid), None, Some(name), None, Some(*is_jvm)),
        Who::Thread { pid, tid, name, kind } => ("thread", *pid, Some(*tid), Some(name), *kind, None),
        Who::Kind(kind) => ("kind", None, None, None, Some(*kind), Some(true)),
        Who::Others => ("not_jvm", None, None, None, None, Some(false)),
        Who::Ended => ("ended", None, None, None, None, None),
        Who::Total => ("total", None, None, None, None, None),
    };
    let allocations = |(order, (got, failed)): (&u32, &(u64, u64))| AllocationsRow {
        order: *order,
        got: *got,
        failed: *failed,
    };
    StallRow {
        who,
        pid,
        tid,
        name: name.map(String::as_str),
        kind,
        is_jvm,
        threads: row.threads,
        stalls: row.lines.iter().map(line).collect(),
        waited: figures(&row.waited),
        waited_percent_of_interval: row.share_of_time(seconds),
        waited_percent_of_cpu: row.share_of_cpu(),
        cpu_ms: row.cpu_ms.as_ref().ok().copied(),
        allocations: row.counts.allocations.iter().map(allocations).collect(),
        counts: &row.counts,
    }
}

fn line(line: &Line) -> LineRow {
    LineRow {
        figures: figures(&line.figures),
        stall: line.stall,
        order: line.order,
        page_bytes: line.order.and_then(|order| 4096_u64.checked_shl(order)),
    }
}

fn figures(figures: &Figures) -> FiguresRow {
    FiguresRow {
        count: figures.count,
        going_on: figures.going_on,
        total_ms: ms(figures.ns),
        throttled_ms: ms(figures.throttled_ns),
        worst_ms: (figures.worst_ns > 0).then(|| ms(figures.worst_ns)),
        p99_ms: figures.histogram.p99_ns().map(ms),
        histogram: figures.histogram.bars(),
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn missing(traced: &Traced) -> MissingRow<'_> {
    let holes = |(cpu, holes): (&u32, &u64)| HolesRow { cpu: *cpu, holes: *holes };
    MissingRow {
        times_are_at_least: traced.is_short(),
        holes: traced.missing.holes.iter().map(holes).collect(),
        missing: &traced.missing,
    }
}

fn delay(delayed: &Delayed) -> DelayRow<'_> {
    DelayRow {
        delayed,
        compaction_count: delayed.delays.compact_count,
        compaction_ms: ms(delayed.delays.compact_ns),
        reclaim_count: delayed.delays.reclaim_count,
        reclaim_ms: ms(delayed.delays.reclaim_ns),
    }
}

fn host<'a>(host: &'a HostFigures, subject: &Subject<'a>) -> HostRow<'a> {
    HostRow {
        machine: Host::here(),
        is_seen_from_container: !subject.is_host,
        note: (!subject.is_host).then_some(CONTAINER),
        seconds: host.seconds,
        vmstat: host.vmstat.as_ref().ok(),
        by_page_size: host.sizes.as_deref().ok(),
        daemon_cpu_ms: host.daemons.as_ref().ok(),
        pressure: pressure(&host.pressure),
        group_pressure: host.group.as_ref().and_then(pressure),
        free: host.free.as_ref().ok(),
        thp: subject.thp.map(|thp| ThpRow { enabled: &thp.enabled, defrag: thp.defrag.as_deref() }),
    }
}

fn pressure(pressure: &Known<Pressure>) -> Option<PressureRow> {
    let pressure = pressure.as_ref().ok()?;
    let ms = |us: u64| us as f64 / 1e3;
    Some(PressureRow { some_ms: ms(pressure.some_us), full_ms: ms(pressure.full_us) })
}

/// Every null above has its reason here.
fn gaps(report: &Report) -> Vec<GapRow> {
    let host = &report.host;
    let group = host.group.as_ref().and_then(|it| it.as_ref().err());
    let index = host.free.as_ref().ok().and_then(|free| free.index.as_ref().err());
    let own: [Option<&Gap>; 8] = [
        report.traced.as_ref().err(),
        report.delayed.as_ref().and_then(|it| it.as_ref().err()),
        host.vmstat.as_ref().err(),
        host.sizes.as_ref().err(),
        host.daemons.as_ref().err(),
        host.pressure.as_ref().err(),
        group,
        index,
    ];
    let all = own.into_iter().flatten().chain(host.free.as_ref().err()).chain(&report.gaps);
    all.map(GapRow::from).collect()
}
