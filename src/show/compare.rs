//! `marusa compare` as text and JSON. What a tired engineer reads first is one line for each arm: better, worse, or no
//! difference shown, by how much, and how sure that is. All else is below it.

mod figure;
pub mod html;
pub mod json;
mod table;

use crate::base::Gap;
use crate::experiment::arm_pages::PageMode;
use crate::experiment::arms::Placed;
use crate::experiment::compare_result::{Against, Comparison, Verdict};
use crate::experiment::resume::Head;
use crate::experiment::trial_record::{Figure, Trial};
use crate::pages::types::Step;
use crate::show::others;
use crate::show::units::{counted, led, paragraph, shorten};
use crate::show::width::width;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What is compared, and how.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Design {
    #[serde(skip)]
    pub head: Head,
    #[serde(skip)]
    pub arms: Vec<ArmDesign>,
    pub blocks_max: usize,
    pub until_margin_percent: Option<f64>,
    pub worth_percent: f64,
    pub time_limit_seconds: f64,
    /// The order of the arms in the first blocks.
    #[serde(skip)]
    pub first_blocks: Vec<Vec<String>>,
    /// Runs that an earlier session did.
    #[serde(rename = "resumed_runs")]
    pub resumed: usize,
}

#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ArmDesign {
    #[serde(rename = "arm")]
    pub name: String,
    pub text: String,
    pub command: Vec<String>,
    pub placed: Placed,
    #[serde(skip)]
    pub jvm: String,
    #[serde(rename = "pages")]
    pub mode: PageMode,
    /// What changes on the host for each of its runs.
    #[serde(skip)]
    pub steps: Vec<Step>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Result {
    pub design: Design,
    pub comparison: Comparison,
    pub trials: Vec<Trial>,
    /// Why it ended before all was done.
    pub early: Option<String>,
    pub given_up: Vec<(String, String)>,
    pub saved: Option<String>,
}

fn lines(out: &mut dyn Write, all: &[String]) -> io::Result<()> {
    all.iter().try_for_each(|line| paragraph(out, "", "", line))
}

/// Lines after the first are indented, so that names stay visible.
fn hanging(out: &mut dyn Write, name: &str, name_width: usize, text: &str) -> io::Result<()> {
    led(out, &format!("  {name:<name_width$}  "), text)
}

fn name_width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0)
}

/// Before the first run.
pub fn head(out: &mut dyn Write, design: &Design) -> io::Result<()> {
    writeln!(out, "{}", shorten(&design.head.command.join(" "), width()))?;
    let room = name_width(design.arms.iter().map(|arm| arm.name.as_str()));
    design.arms.iter().try_for_each(|arm| hanging(out, &arm.name, room, &arm_words(arm)))?;
    let blocks = match design.until_margin_percent {
        Some(margin) => format!(
            "until the difference is known to within {margin} %, at most {}",
            counted(design.blocks_max, "block")
        ),
        None => counted(design.blocks_max, "block"),
    };
    let mut jvms: Vec<&str> =
        design.arms.iter().map(|arm| arm.jvm.as_str()).filter(|jvm| !jvm.is_empty()).collect();
    jvms.dedup();
    let jvm = if jvms.is_empty() { String::new() } else { format!("; {}", jvms.join(", ")) };
    let host = &design.head.host;
    let mut all = vec![format!(
        "{blocks}, in each of them one run of each arm in random order{jvm}; Linux {}, {}",
        host.kernel,
        counted(host.cpus, "CPU")
    )];
    if design.resumed > 0 {
        let runs = counted(design.resumed, "run");
        all.push(format!("done before: {runs}"));
    }
    lines(out, &all)
}

fn arm_words(arm: &ArmDesign) -> String {
    let pages = match arm.mode {
        PageMode::AsIs => String::new(),
        mode => format!("; heap on {mode} pages, verified in each run"),
    };
    let steps: Vec<&str> = arm.steps.iter().map(|step| step.what.as_str()).collect();
    let steps = match steps.is_empty() {
        true => String::new(),
        false => format!("; for each run, and undone after it: {}", steps.join(", ")),
    };
    let placed = match arm.placed {
        Placed::ToolOptions => " (by JAVA_TOOL_OPTIONS)",
        _ => "",
    };
    format!("{}{placed}{pages}{steps}", arm.text)
}

/// Nothing is run or changed.
pub fn dry_run(out: &mut dyn Write, design: &Design) -> io::Result<()> {
    head(out, design)?;
    writeln!(out)?;
    let room = name_width(design.arms.iter().map(|arm| arm.name.as_str()));
    lines(out, &["would run, without what writes the log of collections:".to_string()])?;
    design.arms.iter().try_for_each(|arm| hanging(out, &arm.name, room, &arm.command.join(" ")))?;
    let blocks: Vec<String> = design.first_blocks.iter().map(|block| block.join(" ")).collect();
    lines(
        out,
        &[
            format!("order of the first blocks (seed {}): {}", design.head.seed, blocks.join(" | ")),
            "dry run: nothing was run or changed".to_string(),
        ],
    )
}

/// When all is done.
pub fn result(out: &mut dyn Write, result: &Result) -> io::Result<()> {
    let comparison = &result.comparison;
    writeln!(out)?;
    if let Some(row) = comparison.main_row() {
        let base = comparison.arms.first().map_or("", |arm| arm.name.as_str());
        let room = name_width(comparison.arms.iter().map(|arm| arm.name.as_str()));
        for (arm, cell) in comparison.arms.iter().zip(&row.cells).skip(1) {
            let said = match &cell.against {
                Some(against) => sentence(&row.figure, base, against, comparison.worth_percent),
                None => format!(
                    "no comparison: {} has runs of it and of {base}",
                    counted(cell.pairs.len(), "block")
                ),
            };
            hanging(out, &arm.name, room, &said)?;
        }
    }
    lines(out, &[basis(comparison)])?;
    table::figures(out, comparison)?;
    table::accounts(out, comparison)?;
    lines(out, &footnotes(result))
}

/// "better: 5.0 % less wall time than base (3.1 to 6.8 % less), large effect".
pub fn sentence(figure: &Figure, base: &str, against: &Against, worth_percent: f64) -> String {
    let name = figure.name.trim();
    let claim = against.claim.interval;
    let word = |less: bool| if less { "less" } else { "more" };
    let size = |value: f64| figure::size(value, against.scale, &figure.unit);
    match against.verdict {
        Verdict::NotShown => {
            let mut said = format!(
                "no difference in {name} shown: between {} {} and {} {} than {base}",
                size(claim.low),
                word(claim.low < 0.0),
                size(claim.high),
                word(claim.high < 0.0)
            );
            if let Some(visible) = against.visible_percent {
                said += &format!("; {} would have been seen 9 times of 10", figure::percent(visible));
                let likely =
                    against.needed.and_then(|needed| needed.likely).filter(|_| visible > worth_percent);
                said += &likely.map_or(String::new(), |runs| {
                    format!(", {worth_percent} % takes about {} of each arm", counted(runs, "run"))
                });
            }
            said
        }
        verdict => {
            let is_less = verdict == Verdict::Less;
            let judged = if is_less == figure.lower_is_better { "better" } else { "worse" };
            let (near, far) = if is_less { (claim.high, claim.low) } else { (claim.low, claim.high) };
            format!(
                "{judged}: {} {} {name} than {base} ({} to {} {}); the effect is {}",
                size(claim.estimate),
                word(is_less),
                size(near),
                size(far),
                word(is_less),
                against.effect.word()
            )
        }
    }
}

fn basis(comparison: &Comparison) -> String {
    let runs: usize = comparison.arms.iter().map(|arm| arm.counted).sum();
    let warm_up = match comparison.warm_up_blocks {
        0 => String::new(),
        blocks => format!(", without {} of warm-up", counted(blocks, "block")),
    };
    let method =
        comparison.main_row().and_then(|row| row.cells.iter().find_map(|cell| cell.against.as_ref()));
    let method = method.map_or(String::new(), |against| format!(", {}", against.claim.method.words()));
    let over = if comparison.arms.len() > 2 { " over all arms together (Holm)" } else { "" };
    format!(
        "{:.0} % confidence{over}{method}; counted are {} in {}{warm_up}",
        comparison.confidence_percent,
        counted(runs, "run"),
        counted(comparison.blocks, "block")
    )
}

/// Runs that do not count, figures that were not measured, and where the results are.
fn footnotes(result: &Result) -> Vec<String> {
    let mut all = Vec::new();
    for arm in &result.comparison.arms {
        for (why, count) in &arm.left_out {
            all.push(format!("{}: {} left out: {why}", arm.name, counted(*count, "run")));
        }
    }
    all.extend(result.given_up.iter().map(|(arm, why)| format!("arm '{arm}' was given up: {why}")));
    all.extend(others::line(result.trials.iter().map(|trial| trial.others)));
    all.extend(notes(&result.trials));
    all.extend(gaps(&result.trials));
    all.extend(result.early.clone());
    all.extend(result.saved.iter().map(|directory| format!("runs: {directory}/trials.jsonl")));
    if !all.is_empty() {
        all.insert(0, String::new());
    }
    all
}

fn notes(trials: &[Trial]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for trial in trials {
        trial.notes.iter().for_each(|note| *counts.entry((&trial.arm, note)).or_default() += 1);
    }
    counts.into_iter().map(|((arm, note), runs)| format!("{arm}: {note} ({runs} of its runs)")).collect()
}

/// Each gap once; in how many runs, where it is not in all.
fn gaps(trials: &[Trial]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let key = |gap: &'_ Gap| -> (String, String) {
        (gap.what.clone(), gap.hint.clone().unwrap_or_else(|| gap.why.word().to_string()))
    };
    let all: Vec<(String, String)> = trials.iter().flat_map(|trial| trial.gaps.iter().map(key)).collect();
    all.iter().for_each(|(what, why)| *counts.entry((what, why)).or_default() += 1);
    let text = |((what, why), runs): ((&str, &str), usize)| {
        let of =
            if runs == trials.len() { String::new() } else { format!(" in {runs} of {} runs", trials.len()) };
        format!("not measured{of}: {what} ({why})")
    };
    counts.into_iter().map(text).collect()
}

#[cfg(test)]
#[path = "compare/tests.rs"]
mod tests;
