//! Schema marusa/compare/2.

use super::{ArmDesign, Design, Result, sentence};
use crate::base::{Bytes, Gap};
use crate::experiment::compare_result::{Against, ArmCount, Cell, Row, Verdict};
use crate::experiment::resume::HostFacts;
use crate::experiment::stats::{Sample, Scale};
use crate::experiment::trial_record::{ResidentAreas, Trial, Unit};
use crate::map::Area;
use crate::show::json::Here;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// `marusa compare --json`.
#[derive(JsonSchema, Serialize)]
pub struct CompareDocument<'a> {
    schema: &'static str,
    taken: Here,
    dry_run: bool,
    /// Only in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_blocks: Option<&'a [Vec<String>]>,
    made_at: &'a str,
    command: &'a [String],
    directory: &'a str,
    host: &'a HostFacts,
    design: DesignRow<'a>,
    arms: Vec<ArmRow<'a>>,
    #[serde(flatten)]
    results: Option<Results<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct DesignRow<'a> {
    #[serde(flatten)]
    design: &'a Design,
    pages: &'a str,
    seed: u64,
}

#[derive(JsonSchema, Serialize)]
struct ArmRow<'a> {
    #[serde(flatten)]
    design: &'a ArmDesign,
    jvm: Option<&'a str>,
    host_changes: Vec<&'a str>,
    #[serde(flatten)]
    count: Option<CountRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct CountRow<'a> {
    counted_runs: usize,
    warm_up_runs: usize,
    left_out: Vec<LeftOutRow<'a>>,
    heap_pages: Option<&'a str>,
    account_end: Option<AccountRow>,
    account_peak: Option<AccountRow>,
}

#[derive(JsonSchema, Serialize)]
struct LeftOutRow<'a> {
    why: &'a str,
    runs: usize,
}

/// Means over the runs that count.
#[derive(JsonSchema, Serialize)]
struct AccountRow {
    at_ms: u64,
    resident_bytes: Bytes,
    areas_resident_bytes: BTreeMap<Area, Bytes>,
}

#[derive(JsonSchema, Serialize)]
struct Results<'a> {
    about: Option<&'a str>,
    confidence_percent: f64,
    blocks: usize,
    warm_up_blocks: usize,
    verdicts: Vec<VerdictRow<'a>>,
    figures: Vec<FigureRow<'a>>,
    ended_early: Option<&'a str>,
    given_up: Vec<GivenUpRow<'a>>,
    saved: Option<&'a str>,
    runs: &'a [Trial],
    gaps: Vec<GapRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct VerdictRow<'a> {
    arm: &'a str,
    against: &'a str,
    verdict: Option<Verdict>,
    text: Option<String>,
}

#[derive(JsonSchema, Serialize)]
struct FigureRow<'a> {
    figure: &'a str,
    name: &'a str,
    unit: &'a Unit,
    lower_is_better: bool,
    arms: Vec<CellRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct CellRow<'a> {
    arm: &'a str,
    runs: usize,
    sample: Option<Sample>,
    difference: Option<DifferenceRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct DifferenceRow<'a> {
    #[serde(flatten)]
    against: &'a Against,
    #[serde(flatten)]
    ends: Ends,
    confidence_percent: f64,
    effect_word: &'static str,
}

#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
enum Ends {
    Percent { percent: f64, low_percent: f64, high_percent: f64 },
    Unit { of_unit: f64, low_of_unit: f64, high_of_unit: f64 },
}

#[derive(JsonSchema, Serialize)]
struct GivenUpRow<'a> {
    arm: &'a str,
    why: &'a str,
}

#[derive(JsonSchema, Serialize)]
struct GapRow<'a> {
    #[serde(flatten)]
    gap: &'a Gap,
    runs: usize,
}

impl<'a> CompareDocument<'a> {
    pub fn dry_run(design: &'a Design) -> CompareDocument<'a> {
        let head = &design.head;
        let arm = |design: &'a ArmDesign| ArmRow {
            design,
            jvm: Some(design.jvm.as_str()).filter(|jvm| !jvm.is_empty()),
            host_changes: design.steps.iter().map(|step| step.what.as_str()).collect(),
            count: None,
        };
        CompareDocument {
            schema: "marusa/compare/2",
            taken: Here::now(),
            dry_run: true,
            first_blocks: Some(&design.first_blocks),
            made_at: &head.made_at,
            command: &head.command,
            directory: &head.directory,
            host: &head.host,
            design: DesignRow { design, pages: &head.pages, seed: head.seed },
            arms: design.arms.iter().map(arm).collect(),
            results: None,
        }
    }

    pub fn of(result: &'a Result) -> CompareDocument<'a> {
        let comparison = &result.comparison;
        let mut document = CompareDocument::dry_run(&result.design);
        for (arm, of_arm) in document.arms.iter_mut().zip(&comparison.arms) {
            arm.count = Some(count(of_arm));
        }
        let about = comparison.main_row();
        let given_up = result.given_up.iter().map(|(arm, why)| GivenUpRow { arm, why });
        let results = Results {
            about: about.map(|row| row.figure.key.as_str()),
            confidence_percent: comparison.confidence_percent,
            blocks: comparison.blocks,
            warm_up_blocks: comparison.warm_up_blocks,
            verdicts: about.map(|row| verdicts(result, row)).unwrap_or_default(),
            figures: comparison.rows.iter().map(|row| figure(result, row)).collect(),
            ended_early: result.early.as_deref(),
            given_up: given_up.collect(),
            saved: result.saved.as_deref(),
            runs: &result.trials,
            gaps: gaps(result),
        };
        CompareDocument { dry_run: false, first_blocks: None, results: Some(results), ..document }
    }
}

fn count(count: &ArmCount) -> CountRow<'_> {
    CountRow {
        counted_runs: count.counted,
        warm_up_runs: count.warm_up,
        left_out: count.left_out.iter().map(|(why, runs)| LeftOutRow { why, runs: *runs }).collect(),
        heap_pages: count.heap_pages.as_deref(),
        account_end: count.account_end.as_ref().map(account),
        account_peak: count.account_peak.as_ref().map(account),
    }
}

fn account(account: &ResidentAreas) -> AccountRow {
    AccountRow {
        at_ms: account.at_ms,
        resident_bytes: account.resident_bytes,
        areas_resident_bytes: account.areas.iter().map(|one| (one.area, one.resident_bytes)).collect(),
    }
}

fn verdicts<'a>(result: &'a Result, row: &Row) -> Vec<VerdictRow<'a>> {
    let comparison = &result.comparison;
    let base = comparison.arms.first().map_or("", |arm| arm.name.as_str());
    let one = |(arm, cell): (&'a ArmCount, &Cell)| {
        let against = cell.against.as_ref();
        let text = against.map(|one| sentence(&row.figure, base, one, comparison.worth_percent));
        VerdictRow { arm: &arm.name, against: base, verdict: against.map(|one| one.verdict), text }
    };
    comparison.arms.iter().zip(&row.cells).skip(1).map(one).collect()
}

fn figure<'a>(result: &'a Result, row: &'a Row) -> FigureRow<'a> {
    let cell = |(arm, cell): (&'a ArmCount, &'a Cell)| CellRow {
        arm: &arm.name,
        runs: cell.trials,
        sample: cell.sample,
        difference: cell.against.as_ref().map(difference),
    };
    FigureRow {
        figure: &row.figure.key,
        name: row.figure.name.trim(),
        unit: &row.figure.unit,
        lower_is_better: row.figure.lower_is_better,
        arms: result.comparison.arms.iter().zip(&row.cells).map(cell).collect(),
    }
}

fn difference(against: &Against) -> DifferenceRow<'_> {
    let interval = against.claim.interval;
    let (middle, low, high) = (interval.estimate, interval.low, interval.high);
    let ends = match against.scale {
        Scale::Percent => Ends::Percent { percent: middle, low_percent: low, high_percent: high },
        Scale::Unit => Ends::Unit { of_unit: middle, low_of_unit: low, high_of_unit: high },
    };
    let confidence_percent = (1.0 - against.alpha) * 100.0;
    DifferenceRow { against, ends, confidence_percent, effect_word: against.effect.word() }
}

/// Each once, with the number of runs that have it.
fn gaps(result: &Result) -> Vec<GapRow<'_>> {
    let mut counts: BTreeMap<String, GapRow> = BTreeMap::new();
    for gap in result.trials.iter().flat_map(|trial| &trial.gaps) {
        counts.entry(gap.to_string()).or_insert(GapRow { gap, runs: 0 }).runs += 1;
    }
    counts.into_values().collect()
}
