//! `marusa pages prove` as text and JSON: each period as it comes, and then the one sentence that it was done for.

use crate::base::{Bytes, Gap};
use crate::experiment::abab::{End, Outcome, Period};
use crate::experiment::design::Arm;
use crate::experiment::verdict::{Rule, Verdict};
use crate::show::json;
use crate::show::json::Head;
use crate::show::units::{counted, human, led, paragraph};
use crate::show::width::width;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// What is measured, and on which memory.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Subject {
    #[serde(skip)]
    pub pid: i32,
    #[serde(skip)]
    pub command: String,
    pub measure: String,
    pub lower_is_better: bool,
    pub areas: Vec<String>,
    /// Memory that changes its pages.
    #[serde(rename = "memory_bytes")]
    pub bytes: Bytes,
    #[serde(rename = "blocks_2m")]
    pub blocks: usize,
    /// The number of `blocks` that were on huge pages at the start.
    #[serde(rename = "blocks_2m_found_huge")]
    pub found_huge: usize,
    pub design: Design,
}

/// How it is measured.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Design {
    pub confidence_percent: f64,
    #[serde(flatten)]
    pub rule: Rule,
    pub looks: Vec<usize>,
    pub period_seconds: f64,
    pub settle_seconds: f64,
    pub seed: u64,
}

/// What switching cost, and how the memory was left.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Aftermath {
    #[serde(rename = "changes")]
    pub switches: u64,
    #[serde(rename = "changes_seconds")]
    pub switch_seconds: f64,
    /// What the program faulted in again after splits, while it settled.
    #[serde(rename = "faulted_in_settling_bytes")]
    pub faulted_in: Bytes,
    /// Blocks that are again as they were found; `None`: the target is gone.
    #[serde(rename = "blocks_2m_as_found")]
    pub as_found: Option<usize>,
    pub saved: Option<String>,
    pub gaps: Vec<Gap>,
}

pub fn head(out: &mut dyn Write, subject: &Subject) -> io::Result<()> {
    let better = if subject.lower_is_better { "lower" } else { "higher" };
    let design = &subject.design;
    let found = match subject.found_huge {
        0 => "all on 4 KiB pages now".to_string(),
        huge => format!("{huge} of them on 2 MiB pages now"),
    };
    let lines = [
        format!("pid {}  {}", subject.pid, subject.command),
        format!("measure: {} ({better} is better)", subject.measure),
        format!(
            "memory: {}, {} in {} of 2 MiB, {found}",
            subject.areas.join(", "),
            human(subject.bytes),
            counted(subject.blocks, "block")
        ),
        format!(
            "design: blocks of four periods of {} s (4K 2M 2M 4K, or the reverse, at random), {} s to settle after each change; at \
             most {}; stops when a gain or loss above {} % is shown, or shown to be smaller; {} % confidence over all looks",
            design.period_seconds,
            design.settle_seconds,
            counted(design.rule.blocks_max, "block"),
            design.rule.margin_percent,
            design.confidence_percent
        ),
    ];
    lines.iter().try_for_each(|line| paragraph(out, "", "", line))
}

pub fn table_head(out: &mut dyn Write) -> io::Result<()> {
    let room = measure_columns();
    writeln!(
        out,
        "\n{:>5}  {:<5}  {:>room$}  {:>8}  {:>7}",
        "BLOCK", "PAGES", "MEASURE", "ON 2 MiB", "SECONDS"
    )
}

/// The other columns and gaps take 33.
fn measure_columns() -> usize {
    width().saturating_sub(33).clamp(7, 14)
}

pub fn period(out: &mut dyn Write, period: &Period) -> io::Result<()> {
    let pages = if period.arm == Arm::Huge { "2M" } else { "4K" };
    let value = period.measured.value.map_or("-".to_string(), figure);
    let room = measure_columns();
    let line = format!(
        "{:>5}  {pages:<5}  {value:>room$}  {:>6.0} %  {:>7.1}",
        period.block + 1,
        period.measured.huge_share * 100.0,
        period.measured.seconds
    );
    match &period.left_out {
        None => writeln!(out, "{line}")?,
        Some(why) => led(out, &format!("{line}  "), &format!("left out: {why}"))?,
    }
    out.flush()
}

/// Six digits, whatever the size.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.6}"),
    }
}

pub fn result(
    out: &mut dyn Write,
    subject: &Subject,
    outcome: &Outcome,
    after: &Aftermath,
) -> io::Result<()> {
    let mut lines = vec![sentence(outcome, &subject.design.rule)];
    lines.extend(more_blocks(outcome, &subject.design.rule));
    lines.extend(outcome.end.as_ref().map(end));
    lines.push(cost(after, subject.blocks));
    lines.extend(after.gaps.iter().map(|gap| format!("not done: {gap}")));
    lines.extend(after.saved.as_ref().map(|path| format!("periods: {path}")));
    writeln!(out)?;
    lines.iter().try_for_each(|line| paragraph(out, "", "", line))
}

/// "gain shown: 12.1 % faster on 2 MiB pages (9.8 to 14.5 %, 95 % confidence, 6 blocks)".
pub fn sentence(outcome: &Outcome, rule: &Rule) -> String {
    let Some(found) = &outcome.estimate else {
        return format!("no gain shown: too few whole blocks for an interval ({})", outcome.blocks);
    };
    let of = format!(
        "({:.1} to {:.1} %, {} % confidence, {})",
        found.low_percent,
        found.high_percent,
        (1.0 - rule.alpha) * 100.0,
        counted(found.blocks, "block")
    );
    match outcome.verdict {
        Verdict::Gain => format!("gain shown: {:.1} % faster on 2 MiB pages {of}", found.gain_percent),
        Verdict::Loss => format!("loss shown: {:.1} % slower on 2 MiB pages {of}", -found.gain_percent),
        Verdict::TooSmall => {
            format!("no gain shown, and none above {} % is possible {of}", rule.margin_percent)
        }
        Verdict::NotShown => format!("no gain shown: the interval holds 0 {of}"),
    }
}

fn more_blocks(outcome: &Outcome, rule: &Rule) -> Option<String> {
    let found = outcome.estimate.as_ref().filter(|_| outcome.verdict == Verdict::NotShown)?;
    let wanted = found.gain_percent.abs().max(rule.margin_percent);
    let needed = rule.blocks_for(found, wanted)?;
    Some(format!(
        "blocks differ by {:.1} %: {wanted:.1} % would be shown 9 times of 10 by about {}; of longer periods it \
         takes fewer",
        found.block_deviation_percent,
        counted(needed, "block")
    ))
}

fn end(end: &End) -> String {
    match end {
        End::Signal => "ended early, as asked; what was measured until then counts".to_string(),
        End::TargetGone => "the target ended; what was measured until then counts".to_string(),
        End::Failed(gap) => format!("ended early: {gap}"),
    }
}

fn cost(after: &Aftermath, blocks: usize) -> String {
    let left = match after.as_found {
        None => "the target is gone, and its pages with it".to_string(),
        Some(all) if all >= blocks => "its memory is on the pages again that it was found on".to_string(),
        Some(some) => format!("{some} of {blocks} blocks are on the pages again that they were found on"),
    };
    let again = match after.faulted_in {
        0 => String::new(),
        bytes => format!(", {} were faulted in again before the periods", human(bytes)),
    };
    format!("{} took {:.1} s in all{again}; {left}", counted(after.switches, "change"), after.switch_seconds)
}

/// `marusa pages prove --json`.
#[derive(JsonSchema, Serialize)]
pub struct ProveDocument<'a> {
    #[serde(flatten)]
    head: Head,
    process: json::Subject<'a>,
    #[serde(flatten)]
    subject: &'a Subject,
    dry_run: bool,
    #[serde(flatten)]
    results: Option<Results<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct Results<'a> {
    text: String,
    #[serde(flatten)]
    outcome: &'a Outcome,
    ended_early: Option<String>,
    #[serde(flatten)]
    after: &'a Aftermath,
}

impl<'a> ProveDocument<'a> {
    /// What would be measured.
    pub fn dry_run(subject: &'a Subject) -> ProveDocument<'a> {
        ProveDocument {
            head: Head::now("marusa/pages-prove/2"),
            process: json::Subject { pid: subject.pid, command: &subject.command },
            subject,
            dry_run: true,
            results: None,
        }
    }

    pub fn of(subject: &'a Subject, outcome: &'a Outcome, after: &'a Aftermath) -> ProveDocument<'a> {
        let results = Results {
            text: sentence(outcome, &subject.design.rule),
            outcome,
            ended_early: outcome.end.as_ref().map(end),
            after,
        };
        ProveDocument { dry_run: false, results: Some(results), ..ProveDocument::dry_run(subject) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Why;
    use crate::experiment::abab::Measured;
    use crate::experiment::stats::{Estimate, Method};

    fn outcome(verdict: Verdict, low_percent: f64, high_percent: f64) -> Outcome {
        let estimate = Estimate {
            gain_percent: (low_percent + high_percent) / 2.0,
            low_percent,
            high_percent,
            block_deviation_percent: 3.0,
            method: Method::PairedT,
            blocks: 6,
        };
        Outcome { periods: Vec::new(), estimate: Some(estimate), verdict, blocks: 6, end: None }
    }

    #[test]
    fn each_verdict_in_a_sentence() {
        let rule = Rule::default();
        let said = |verdict, low, high| sentence(&outcome(verdict, low, high), &rule);
        assert_eq!(
            said(Verdict::Gain, 10.0, 14.0),
            "gain shown: 12.0 % faster on 2 MiB pages (10.0 to 14.0 %, 95 % confidence, 6 blocks)"
        );
        assert!(said(Verdict::Loss, -14.0, -10.0).starts_with("loss shown: 12.0 % slower"));
        assert!(said(Verdict::TooSmall, -1.0, 1.0).contains("none above 2 % is possible"));
        assert!(said(Verdict::NotShown, -4.0, 8.0).starts_with("no gain shown: the interval holds 0"));
        assert!(more_blocks(&outcome(Verdict::NotShown, -4.0, 8.0), &rule).is_some());
        let none = Outcome { estimate: None, blocks: 1, ..outcome(Verdict::NotShown, 0.0, 0.0) };
        assert!(sentence(&none, &rule).contains("too few whole blocks for an interval (1)"));
    }

    #[test]
    fn a_row_and_an_end_fit() {
        let left_out = Some("only 12 % were on 2 MiB pages".to_string());
        let row = Period {
            block: 0,
            arm: Arm::Huge,
            measured: Measured {
                value: Some(74.1234),
                huge_share: 0.12,
                seconds: 2.0,
                ..Measured::default()
            },
            left_out,
        };
        let mut out = Vec::new();
        period(&mut out, &row).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(
            text,
            "    1  2M             74.123      12 %      2.0  left out: only 12 % were on 2 MiB pages\n"
        );
        let failed = end(&End::Failed(Gap::new("x", Why::Gone)));
        assert_eq!(failed, "ended early: x: gone");
        assert_eq!((figure(1234567.8), figure(0.01234567)), ("1234568".to_string(), "0.012346".to_string()));
    }
}
