//! `marusa/tlb/1`: one object an interval, with the counts as they were and as they were scaled.

use super::super::json::gap;
use super::{Subject, mode_word};
use crate::base::{Known, rfc3339};
use crate::measure::counters::Slot;
use crate::measure::effective::Verdict;
use crate::measure::events::Model;
use crate::measure::interval::Count;
use crate::measure::tlb::{Bracket, Context, ModeFigures, PageFigures, Report, Row, SideFigures, Who};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::SystemTime;

const SCHEMA: &str = "marusa/tlb/1";

pub fn json(report: &Report, subject: &Subject, context: &Context, at: SystemTime) -> Value {
    let mapped = context.mapped.as_ref().ok().map(|sizes| {
        sizes.iter().map(|(size, bytes)| (size.to_string(), *bytes)).collect::<BTreeMap<String, u64>>()
    });
    json!({
        "schema": SCHEMA,
        "taken": {
            "at": rfc3339(at),
            "interval_seconds": report.seconds,
            "target_ended": report.is_last,
            "target_stopped_ms": 0,
            "attached": false,
            "kernel": subject.kernel,
        },
        "process": {"pid": subject.pid, "command": subject.command},
        "cpu": {
            "name": subject.cpu.name,
            "description": subject.cpu.describe(),
            "has_hypervisor": subject.cpu.has_hypervisor,
        },
        "events": report.set,
        "time_is": model(report.model),
        "walk_costs_source": report.costs_source,
        "notes": report.notes,
        "rows": report.rows.iter().map(|it| row(it, report)).collect::<Vec<_>>(),
        "total": row(&report.total, report),
        "mapped_by_page_size": mapped,
        "effective_page_size": report.effective.as_ref().map(|effective| json!({
            "verdict": verdict(effective.verdict),
            "mapped_large_share": effective.mapped_large_share,
            "reloaded_small_share": effective.reloaded_small_share,
            "sentence": effective.sentence(),
        })),
        "gaps": report.gaps.iter().map(gap).collect::<Vec<_>>(),
    })
}

fn model(model: Model) -> Option<&'static str> {
    match model {
        Model::WalkActive => Some("upper_bound_walk_active_cycles"),
        Model::Stall => Some("stalled_cycles"),
        Model::Calibrated => Some("interval_by_calibration"),
        Model::None => None,
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::HostSplinters => "host_splinters",
        Verdict::SmallElsewhere => "small_elsewhere",
        Verdict::AsMapped => "as_mapped",
        Verdict::MappedSmall => "mapped_small",
    }
}

fn row(row: &Row, report: &Report) -> Value {
    let (kind, tid, name) = match &row.who {
        Who::Kind(kind) => (Some(kind.word()), None, None),
        Who::Thread { tid, name, kind } => (Some(kind.word()), Some(tid), Some(name)),
        Who::Total => (None, None, None),
    };
    let counts = report.slots.iter().zip(&row.counts).map(|(slot, count)| counted(slot, *count));
    json!({
        "kind": kind,
        "tid": tid,
        "name": name,
        "threads": row.threads,
        "cycles": known(&row.cycles),
        "time_share": bracket(&row.time),
        "least_running_share": row.running_share,
        "modes": row.modes.iter().map(|mode| figures(mode, report.seconds)).collect::<Vec<_>>(),
        "counts": counts.collect::<Vec<_>>(),
    })
}

fn figures(mode: &ModeFigures, seconds: f64) -> Value {
    json!({
        "mode": mode_word(mode.mode),
        "cycles": known(&mode.cycles),
        "sides": mode.sides.iter().map(|it| side(it, seconds)).collect::<Vec<_>>(),
    })
}

fn side(side: &SideFigures, seconds: f64) -> Value {
    json!({
        "side": side.side,
        "walks": known(&side.walks),
        "walks_per_second": rate(&side.walks, seconds),
        "time_share": bracket(&side.time),
        "cycles_per_walk": side.cycles_each,
        "by_reload_size": side.pages.iter().map(|it| page(it, seconds)).collect::<Vec<_>>(),
    })
}

fn page(page: &PageFigures, seconds: f64) -> Value {
    json!({
        "page_bytes": page.page_bytes,
        "walks": known(&page.walks),
        "walks_per_second": rate(&page.walks, seconds),
        "time_share": bracket(&page.time),
    })
}

fn counted(slot: &Slot, count: Option<Count>) -> Value {
    json!({
        "event": slot.event.name,
        "mode": mode_word(slot.mode),
        "group": slot.group,
        "raw": count.map(|count| count.raw),
        "scaled": count.and_then(Count::scaled),
        "enabled_ns": count.map(|count| count.enabled_ns),
        "running_ns": count.map(|count| count.running_ns),
        "running_share": count.and_then(Count::running_share),
    })
}

fn known(value: &Known<f64>) -> Option<f64> {
    value.as_ref().ok().copied()
}

fn rate(walks: &Known<f64>, seconds: f64) -> Option<f64> {
    known(walks).filter(|_| seconds > 0.0).map(|walks| walks / seconds)
}

fn bracket(time: &Known<Bracket>) -> Option<Value> {
    time.as_ref().ok().map(|time| json!({"low": time.low, "high": time.high}))
}
