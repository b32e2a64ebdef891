//! The answer of `leak` in one sentence, as data: only what will stand when more is recorded. What grows fastest comes first.
//! As long as there is no verdict on it, nothing slower is blamed: what it grew by and the time that took are true whatever
//! comes. Areas that grow with one count, as that of threads, have one cause and are named together.

use super::leak_row::{Count, Row, What};
use crate::map::Area;
use crate::measure::growth::{Caveat, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

/// What grows at less than this share of the fastest is not named.
const NAMED_SHARE: f64 = 0.10;
/// What has no verdict yet comes before what has one where it grows this many times as fast.
const FASTER: f64 = 2.0;
/// What is in use of a heap falls at collections only; before this time it may have risen by warming up.
pub(super) const HEAP_SECONDS_MIN: f64 = 150.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Headline {
    /// Rows with a verdict of growth, the fastest first.
    Grows,
    /// It grew most, but there is no verdict on it yet.
    Early,
    /// All areas together grow, but no single one does.
    OnlyTogether,
    /// No growth so far, and some areas cannot be judged yet.
    NothingYet,
    Nothing,
    NothingJudged,
}

/// The headline, and the rows that it names.
pub fn of(rows: &[Row]) -> (Headline, Vec<&Row>) {
    let (mut grows, early): (Vec<Cause>, Vec<Cause>) = causes(rows).into_iter().partition(Cause::is_growth);
    let top = grows.first().map_or(0.0, Cause::pace);
    if let Some(first) = early.into_iter().next().filter(|cause| cause.pace() > top * FASTER) {
        return (Headline::Early, first.rows);
    }
    grows.retain(|cause| cause.pace() >= top * NAMED_SHARE);
    let grows: Vec<&Row> = grows.into_iter().flat_map(|cause| cause.rows).collect();
    let together = rows.iter().find(|row| is_unbounded_whole(row, rows));
    let headline = match (grows.is_empty(), together, rows.is_empty()) {
        (false, ..) => Headline::Grows,
        (_, Some(whole), _) => return (Headline::OnlyTogether, vec![whole]),
        (.., true) => Headline::NothingJudged,
        _ if rows.iter().any(|row| row.growth.verdict == Verdict::CannotTellYet) => Headline::NothingYet,
        _ => Headline::Nothing,
    };
    (headline, grows)
}

/// Rows that grow with one count, or a single row.
struct Cause<'a> {
    count: Option<Count>,
    rows: Vec<&'a Row>,
}

impl Cause<'_> {
    fn pace(&self) -> f64 {
        self.rows.iter().map(|row| row.pace()).sum()
    }

    fn is_growth(&self) -> bool {
        self.rows.iter().any(|row| is_growth(row.growth.verdict))
    }
}

/// The causes among the rows that may be named, the fastest first.
fn causes(rows: &[Row]) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause> = Vec::new();
    for row in rows.iter().filter(|row| may_be_named(row)) {
        let count = row.with.as_ref().map(|with| with.count);
        match causes.iter_mut().find(|cause| count.is_some() && cause.count == count) {
            Some(cause) => cause.rows.push(row),
            None => causes.push(Cause { count, rows: vec![row] }),
        }
    }
    for cause in &mut causes {
        if cause.is_growth() {
            cause.rows.retain(|row| is_growth(row.growth.verdict));
        }
        let all = cause.pace();
        // What is not attributed has an owner where other areas grow more with the same count.
        cause.rows.retain(|row| {
            let is_known = row.what != What::Area(Area::Unattributed) || row.pace() > all / 2.0;
            row.pace() >= all * NAMED_SHARE && is_known
        });
        let is_first = |row: &Row| row.with.as_ref().is_some_and(|with| with.is_first);
        cause.rows.sort_by(|one, other| {
            is_first(other).cmp(&is_first(one)).then(other.pace().total_cmp(&one.pace()))
        });
    }
    causes.sort_by(|one, other| other.pace().total_cmp(&one.pace()));
    causes
}

pub(super) fn may_be_named(row: &Row) -> bool {
    is_named(row) && row.pace() > 0.0 && (is_growth(row.growth.verdict) || is_early(row))
}

fn is_growth(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::GrowsWithoutBound | Verdict::GrowsToBound)
}

/// The whole does not say where, parts are in their areas, and how much of its heap and its tables a collector touches is its own
/// business: both are bounded by the maximum of the heap.
fn is_named(row: &Row) -> bool {
    match (&row.what, row.growth.bound_bytes) {
        (What::All | What::Part(..) | What::Named(..) | What::Area(Area::JavaHeap), _)
        | (What::Area(Area::Gc), Some(_)) => false,
        (What::HeapInUse | What::Area(_), _) => true,
    }
}

fn is_early(row: &Row) -> bool {
    let growth = &row.growth;
    let may_be_nothing = matches!(growth.caveat, Some(Caveat::NoCollectionSeen | Caveat::HardlyAny));
    let is_warming = row.what == What::HeapInUse && growth.grown_seconds < HEAP_SECONDS_MIN;
    // Not even the lowest rate that the figures allow is a fall.
    let is_rising = growth.rate.is_some_and(|rate| rate.low_bytes_per_hour > 0.0);
    growth.verdict == Verdict::CannotTellYet
        && !growth.is_small
        && !may_be_nothing
        && !is_warming
        && is_rising
}

/// Whether the whole grows, and not just what is bounded in it.
fn is_unbounded_whole(row: &Row, rows: &[Row]) -> bool {
    let bounded: f64 = rows
        .iter()
        .filter(|row| {
            row.growth.bound_bytes.is_some() && matches!(row.what, What::Area(area) if area != Area::JavaHeap)
        })
        .map(|row| row.pace().max(0.0))
        .sum();
    row.what == What::All && row.growth.verdict == Verdict::GrowsWithoutBound && bounded < row.pace() / 2.0
}
