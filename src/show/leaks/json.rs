//! Leak or not, for programs: schema marusa/leak/2.

use super::{Judged, answer};
use crate::base::Bytes;
use crate::map::Area;
use crate::map::rows::Named;
use crate::measure::growth::{Growth, Rate, Verdict};
use crate::record::compiled::{self, Jump};
use crate::record::headline::{self, Headline};
use crate::record::leak_row::{Counted, Holder, Row, What};
use crate::record::since::Since;
use crate::record::writer::Ending;
use crate::show::json::Head;
use schemars::JsonSchema;
use serde::Serialize;

/// `marusa leak --json`.
#[derive(JsonSchema, Serialize)]
pub struct LeakDocument<'a> {
    #[serde(flatten)]
    head: Head,
    jvms: Vec<JvmLeaks<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct JvmLeaks<'a> {
    process: Process<'a>,
    from: Option<String>,
    to: Option<String>,
    ended: Option<Ending>,
    looks: usize,
    accounts: usize,
    #[serde(flatten)]
    since: &'a Since,
    answer: String,
    headline: HeadlineRow,
    rows: Vec<LeakRow<'a>>,
    /// Accounts whose JIT work had grown by much, and what was being compiled; the largest first.
    jit_work_jumps: Vec<Jump>,
}

#[derive(JsonSchema, Serialize)]
struct Process<'a> {
    pid: i32,
    main: Option<&'a str>,
    user: &'a str,
    container: Option<&'a str>,
    started: Option<&'a str>,
}

/// What the answer names, the fastest first.
#[derive(JsonSchema, Serialize)]
struct HeadlineRow {
    kind: Headline,
    named: Vec<NamedRow>,
}

#[derive(JsonSchema, Serialize)]
struct NamedRow {
    kind: &'static str,
    area: Option<Area>,
    verdict: Verdict,
}

#[derive(JsonSchema, Serialize)]
struct LeakRow<'a> {
    kind: &'static str,
    area: Option<Area>,
    part: Option<&'a str>,
    #[serde(flatten)]
    growth: Growth,
    grows_bytes_per_hour: Option<f64>,
    grows_low_bytes_per_hour: Option<f64>,
    grows_high_bytes_per_hour: Option<f64>,
    grows_with: Option<&'a Counted>,
    held_by: Vec<HolderRow<'a>>,
}

/// A holder of malloc's blocks, a group of class loaders or a class that grows with an area.
#[derive(JsonSchema, Serialize)]
struct HolderRow<'a> {
    /// "holder", "loader", "class".
    kind: &'static str,
    holder: &'a str,
    verdict: Verdict,
    /// For a loader, of its chunks of metaspace; for a class, of its objects that are older than the last collection, where these
    /// are known.
    in_use_bytes: Bytes,
    grown_bytes: i64,
    grown_seconds: f64,
    grows_bytes_per_hour: f64,
    blocks_grown: Option<i64>,
    loaders_grown: Option<i64>,
    instances_grown: Option<i64>,
}

impl<'a> LeakDocument<'a> {
    pub fn of(judged: &'a [Judged]) -> LeakDocument<'a> {
        LeakDocument { head: Head::now(super::SCHEMA), jvms: judged.iter().map(jvm).collect() }
    }
}

fn jvm<'a>((history, rows, since): &'a Judged) -> JvmLeaks<'a> {
    let facts = &history.facts;
    let (kind, named) = headline::of(rows);
    let name = |row: &&Row| {
        let (kind, area, _) = names(&row.what);
        NamedRow { kind, area, verdict: row.growth.verdict }
    };
    JvmLeaks {
        process: Process {
            pid: facts.pid,
            main: facts.main.as_deref(),
            user: &facts.user,
            container: facts.container.as_deref(),
            started: facts.started.as_deref(),
        },
        from: history.moments.first().map(|moment| moment.wall()),
        to: history.moments.last().map(|moment| moment.wall()),
        ended: history.ending.map(|(_, ending)| ending),
        looks: history.len(),
        accounts: history.accounts().len(),
        since,
        answer: answer(rows, since),
        headline: HeadlineRow { kind, named: named.iter().map(name).collect() },
        rows: rows.iter().map(row).collect(),
        jit_work_jumps: compiled::jumps(history),
    }
}

fn names(what: &What) -> (&'static str, Option<Area>, Option<&str>) {
    match what {
        What::All => ("all_but_java_heap", None, None),
        What::HeapInUse => ("heap_after_collections", None, None),
        What::Area(area) => ("area", Some(*area), None),
        What::Part(area, part) => ("part", Some(*area), Some(part)),
        What::Named(kind, name) => (kind.word(), None, Some(name)),
    }
}

fn row(row: &Row) -> LeakRow<'_> {
    let (kind, area, part) = names(&row.what);
    let growth = row.growth;
    let rate = |get: fn(&Rate) -> f64| growth.rate.as_ref().map(|rate| get(rate).round());
    LeakRow {
        kind,
        area,
        part,
        growth,
        grows_bytes_per_hour: rate(|rate| rate.bytes_per_hour),
        grows_low_bytes_per_hour: rate(|rate| rate.low_bytes_per_hour),
        grows_high_bytes_per_hour: rate(|rate| rate.high_bytes_per_hour),
        grows_with: row.with.as_ref(),
        held_by: row.held_by.iter().map(holder).collect(),
    }
}

fn holder(holder: &Holder) -> HolderRow<'_> {
    let count = |kind: Named| holder.count_grown.filter(|_| holder.kind == kind);
    HolderRow {
        kind: holder.kind.word(),
        holder: &holder.name,
        verdict: holder.growth.verdict,
        in_use_bytes: holder.growth.level_bytes,
        grown_bytes: holder.growth.grown_bytes,
        grown_seconds: holder.growth.grown_seconds,
        grows_bytes_per_hour: holder.pace().round(),
        blocks_grown: count(Named::Holder),
        loaders_grown: count(Named::Loader),
        instances_grown: count(Named::Class),
    }
}
