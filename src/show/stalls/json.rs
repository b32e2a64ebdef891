//! `marusa/stalls/1`: one object an interval. Times in milliseconds, lengths of the histogram in nanoseconds; what is not known
//! is null, with an entry in `gaps`.

use super::super::json::gap;
use super::{CONTAINER, Subject};
use crate::base::{Gap, Known, rfc3339};
use crate::measure::stalls::host::HostFigures;
use crate::measure::stalls::interval::{Figures, Missing};
use crate::measure::stalls::table::{Line, Row, Traced, Who};
use crate::measure::stalls::{Delayed, Report};
use crate::os::pressure::Pressure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::SystemTime;

const SCHEMA: &str = "marusa/stalls/1";

pub fn json(report: &Report, subject: &Subject, at: SystemTime) -> Value {
    let traced = report.traced.as_ref().ok();
    let rows = |traced: &Traced| traced.rows.iter().map(|it| row(it, traced.seconds)).collect::<Vec<_>>();
    json!({
        "schema": SCHEMA,
        "taken": {
            "at": rfc3339(at),
            "interval_seconds": report.seconds,
            "target_ended": report.is_last,
            "target_stopped_ms": 0,
            "attached": false,
            "kernel": subject.kernel,
            "source": if traced.is_some() { "tracepoints" } else { "counters" },
            "trace_buffer_bytes": subject.trace_bytes,
        },
        "process": subject.target.map(|(pid, command)| json!({"pid": pid, "command": command})),
        "by": subject.by.word(),
        "rows": traced.map(rows),
        "total": traced.map(|traced| row(&traced.total, traced.seconds)),
        "elsewhere": traced.and_then(|traced| traced.elsewhere.as_ref()).map(figures),
        "daemons": traced.map(|traced| traced.daemons.iter().map(line).collect::<Vec<_>>()),
        "khugepaged_scans": traced.map(|traced| &traced.scans),
        "events": traced.map(|traced| traced.events),
        "missing": traced.map(|traced| missing(&traced.missing, traced.is_short())),
        "delays": report.delayed.as_ref().and_then(|it| it.as_ref().ok()).map(|it| delays(it)),
        "host": host(&report.host, subject),
        "gaps": gaps(report),
    })
}

fn row(row: &Row, seconds: f64) -> Value {
    let (pid, tid, name, kind, is_jvm) = match &row.who {
        Who::Process { pid, name, is_jvm } => (Some(*pid), None, Some(name), None, Some(*is_jvm)),
        Who::Thread { pid, tid, name, kind } => {
            (*pid, Some(*tid), Some(name), kind.map(|it| it.word()), None)
        }
        Who::Kind(kind) => (None, None, None, Some(kind.word()), Some(true)),
        Who::Others => (None, None, None, None, Some(false)),
        Who::Ended | Who::Total => (None, None, None, None, None),
    };
    let allocations =
        |(order, (got, failed)): (&u32, &(u64, u64))| json!({"order": order, "got": got, "failed": failed});
    json!({
        "who": who(&row.who),
        "pid": pid,
        "tid": tid,
        "name": name,
        "kind": kind,
        "is_jvm": is_jvm,
        "threads": row.threads,
        "stalls": row.lines.iter().map(line).collect::<Vec<_>>(),
        "waited": figures(&row.waited),
        "waited_percent_of_interval": row.share_of_time(seconds),
        "waited_percent_of_cpu": row.share_of_cpu(),
        "cpu_ms": row.cpu_ms.as_ref().ok(),
        "allocations": row.counts.allocations.iter().map(allocations).collect::<Vec<_>>(),
        "compaction_deferred": row.counts.deferred,
        "huge_pages_broken": row.counts.spoiled,
    })
}

fn who(who: &Who) -> &'static str {
    match who {
        Who::Process { .. } => "process",
        Who::Thread { .. } => "thread",
        Who::Kind(_) => "kind",
        Who::Others => "not_jvm",
        Who::Ended => "ended",
        Who::Total => "total",
    }
}

fn line(line: &Line) -> Value {
    let mut value = figures(&line.figures);
    value["stall"] = line.stall.word().into();
    value["order"] = line.order.into();
    value["page_bytes"] = line.order.and_then(|order| 4096_u64.checked_shl(order)).into();
    value
}

fn figures(figures: &Figures) -> Value {
    let ms = |ns: u64| ns as f64 / 1e6;
    let bars = figures.histogram.bars();
    json!({
        "count": figures.count,
        "going_on": figures.going_on,
        "total_ms": ms(figures.ns),
        "throttled_ms": ms(figures.throttled_ns),
        "worst_ms": (figures.worst_ns > 0).then(|| ms(figures.worst_ns)),
        "p99_ms": figures.histogram.p99_ns().map(ms),
        "histogram": bars.iter().map(|bar| json!({"from_ns": bar.from_ns, "count": bar.count})).collect::<Vec<_>>(),
    })
}

fn missing(missing: &Missing, is_short: bool) -> Value {
    let holes = |(cpu, holes): (&u32, &u64)| json!({"cpu": cpu, "holes": holes});
    json!({
        "times_are_at_least": is_short,
        "lost_events": missing.lost,
        "holes": missing.holes.iter().map(holes).collect::<Vec<_>>(),
        "undecoded_events": missing.undecoded,
        "begins_without_end": missing.begins,
        "ends_without_begin": missing.ends,
    })
}

fn delays(delayed: &[Delayed]) -> Value {
    let of = |it: &Delayed| {
        json!({
            "pid": it.pid,
            "name": it.name,
            "is_jvm": it.is_jvm,
            "compaction_count": it.delays.compact_count,
            "compaction_ms": it.delays.compact_ns as f64 / 1e6,
            "reclaim_count": it.delays.reclaim_count,
            "reclaim_ms": it.delays.reclaim_ns as f64 / 1e6,
        })
    };
    delayed.iter().map(of).collect()
}

fn host(host: &HostFigures, subject: &Subject) -> Value {
    let sizes = host.sizes.as_ref().ok().map(|sizes| {
        let of = |size: &crate::os::thp_stats::SizeStats| {
            let counters: BTreeMap<&String, &u64> = size.counters.iter().collect();
            json!({"page_bytes": size.bytes, "counters": counters})
        };
        sizes.iter().map(of).collect::<Vec<_>>()
    });
    let daemons =
        host.daemons.as_ref().ok().map(|daemons| {
            daemons.iter().map(|(daemon, ms)| (daemon.word(), *ms)).collect::<BTreeMap<_, _>>()
        });
    let free = host.free.as_ref().ok().map(|free| {
        json!({
            "free_bytes": free.bytes,
            "free_huge_bytes": free.huge_bytes,
            "blocks_by_order": free.by_order,
            "fragmentation_index": free.index.as_ref().ok(),
        })
    });
    json!({
        "is_seen_from_container": !subject.is_host,
        "note": (!subject.is_host).then_some(CONTAINER),
        "seconds": host.seconds,
        "vmstat": host.vmstat.as_ref().ok(),
        "by_page_size": sizes,
        "daemon_cpu_ms": daemons,
        "pressure": pressure(&host.pressure),
        "group_pressure": host.group.as_ref().and_then(pressure),
        "free": free,
        "thp": subject.thp.map(|thp| json!({"enabled": thp.enabled, "defrag": thp.defrag})),
    })
}

fn pressure(pressure: &Known<Pressure>) -> Option<Value> {
    let pressure = pressure.as_ref().ok()?;
    let ms = |us: u64| us as f64 / 1e3;
    Some(json!({"some_ms": ms(pressure.some_us), "full_ms": ms(pressure.full_us)}))
}

/// Every null above has its reason here.
fn gaps(report: &Report) -> Vec<Value> {
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
    all.map(gap).collect()
}
