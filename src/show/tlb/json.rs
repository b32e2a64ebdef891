//! `marusa/tlb/2`: one object an interval, with the counts as they were and as they were scaled.

use super::super::json::{Head, IntervalTaken, Subject as Process};
use super::Subject;
use crate::base::Gap;
use crate::map::model::GapRow;
use crate::measure::counters::Slot;
use crate::measure::effective::Effective;
use crate::measure::events::Model;
use crate::measure::interval::Count;
use crate::measure::kinds::Kind;
use crate::measure::tlb::{Context, Report, Row, Who};
use crate::os::cpu::Cpu;
use crate::os::host::Host;
use crate::os::perf::Mode;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::SystemTime;

const SCHEMA: &str = "marusa/tlb/2";

/// `marusa tlb --json`, one an interval.
#[derive(JsonSchema, Serialize)]
pub struct TlbDocument<'a> {
    schema: &'static str,
    host: Host,
    taken: IntervalTaken,
    process: Process<'a>,
    cpu: CpuRow<'a>,
    events: &'static str,
    time_is: Option<Model>,
    notes: &'a [&'static str],
    rows: Vec<TlbRow<'a>>,
    total: TlbRow<'a>,
    mapped_by_page_size: Option<&'a BTreeMap<u64, u64>>,
    effective_page_size: Option<EffectiveRow<'a>>,
    gaps: Vec<GapRow>,
}

/// The same where nothing could be counted.
#[derive(JsonSchema, Serialize)]
pub struct UncountedDocument<'a> {
    #[serde(flatten)]
    head: Head,
    process: Process<'a>,
    cpu: CpuRow<'a>,
    /// Always null.
    total: (),
    mapped_by_page_size: &'a BTreeMap<u64, u64>,
    gaps: [GapRow; 1],
}

impl<'a> UncountedDocument<'a> {
    pub fn of(subject: &Subject<'a>, mapped: &'a BTreeMap<u64, u64>, why: &Gap) -> UncountedDocument<'a> {
        let Subject { pid, command, cpu, .. } = *subject;
        UncountedDocument {
            head: Head::now(SCHEMA),
            process: Process { pid, command },
            cpu: CpuRow::of(cpu),
            total: (),
            mapped_by_page_size: mapped,
            gaps: [GapRow::from(why)],
        }
    }
}

#[derive(JsonSchema, Serialize)]
struct CpuRow<'a> {
    name: &'a str,
    description: String,
    has_hypervisor: Option<bool>,
}

impl<'a> CpuRow<'a> {
    fn of(cpu: &'a Cpu) -> CpuRow<'a> {
        CpuRow { name: &cpu.name, description: cpu.describe(), has_hypervisor: cpu.has_hypervisor }
    }
}

#[derive(JsonSchema, Serialize)]
struct EffectiveRow<'a> {
    #[serde(flatten)]
    effective: &'a Effective,
    sentence: String,
}

#[derive(JsonSchema, Serialize)]
struct TlbRow<'a> {
    kind: Option<Kind>,
    tid: Option<i32>,
    name: Option<&'a str>,
    #[serde(flatten)]
    row: &'a Row,
    counts: Vec<CountRow>,
}

#[derive(JsonSchema, Serialize)]
struct CountRow {
    event: &'static str,
    mode: Mode,
    group: usize,
    raw: Option<u64>,
    scaled: Option<f64>,
    enabled_ns: Option<u64>,
    running_ns: Option<u64>,
    running_share: Option<f64>,
}

impl<'a> TlbDocument<'a> {
    pub fn of(
        report: &'a Report,
        subject: &Subject<'a>,
        context: &'a Context,
        at: SystemTime,
    ) -> TlbDocument<'a> {
        let Subject { pid, command, cpu, .. } = *subject;
        let effective = |effective: &'a Effective| EffectiveRow { effective, sentence: effective.sentence() };
        TlbDocument {
            schema: SCHEMA,
            host: Host::here(),
            taken: IntervalTaken::of(at, report.seconds, report.is_last),
            process: Process { pid, command },
            cpu: CpuRow::of(cpu),
            events: report.set,
            time_is: Some(report.model).filter(|model| matches!(model, Model::WalkActive | Model::Stall)),
            notes: &report.notes,
            rows: report.rows.iter().map(|it| row(it, report)).collect(),
            total: row(&report.total, report),
            mapped_by_page_size: context.mapped.as_ref().ok(),
            effective_page_size: report.effective.as_ref().map(effective),
            gaps: report.gaps.iter().map(GapRow::from).collect(),
        }
    }
}

fn row<'a>(row: &'a Row, report: &Report) -> TlbRow<'a> {
    let (kind, tid, name) = match &row.who {
        Who::Kind(kind) => (Some(*kind), None, None),
        Who::Thread { tid, name, kind } => (Some(*kind), Some(*tid), Some(name.as_str())),
        Who::Total => (None, None, None),
    };
    let counts = report.slots.iter().zip(&row.counts).map(|(slot, count)| counted(slot, *count));
    TlbRow { kind, tid, name, row, counts: counts.collect() }
}

fn counted(slot: &Slot, count: Option<Count>) -> CountRow {
    CountRow {
        event: slot.event.name,
        mode: slot.mode,
        group: slot.group,
        raw: count.map(|count| count.raw),
        scaled: count.and_then(Count::scaled),
        enabled_ns: count.map(|count| count.enabled_ns),
        running_ns: count.map(|count| count.running_ns),
        running_share: count.and_then(Count::running_share),
    }
}
