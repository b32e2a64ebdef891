//! `marusa bench touch`: what the first touch costs by page size, and the page tables that it leaves.

use super::fork::{left_out, lines, machine};
use crate::base::{Bytes, Gap, Known, Why};
use crate::experiment::bench::fork::Spread;
use crate::experiment::bench::touch::{Arm, By, Figures, Settings, Trial, ZeroFault, spread};
use crate::show::json::gap;
use crate::show::units::human;
use serde_json::{Value, json};
use std::io::{self, Write};

const SCHEMA: &str = "marusa/bench-touch/1";

/// Everything that was found.
pub struct Report {
    pub at: String,
    pub settings: Settings,
    /// `Ok(None)`: our own memory was not asked for.
    pub zero_fault: Known<Option<ZeroFault>>,
    pub trials: Vec<Trial>,
    /// A signal ended it before its time.
    pub stopped: bool,
}

impl Report {
    /// Whether every arm has a figure.
    pub fn is_complete(&self) -> bool {
        let has = |arm: &Arm| spread(&self.trials, arm, &|_| Some(1.0)).is_some();
        !self.stopped && self.settings.arms.iter().all(has)
    }

    fn of(&self, arm: &Arm, figure: &dyn Fn(&Figures) -> Option<f64>) -> Option<Spread> {
        spread(&self.trials, arm, figure)
    }

    fn left_out(&self) -> Vec<(String, usize)> {
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for trial in &self.trials {
            let Some(why) = &trial.left_out else { continue };
            let text = format!("{}, {}: {why}", who(trial.arm.by), trial.arm.pages.name());
            match reasons.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) => *count += 1,
                None => reasons.push((text, 1)),
            }
        }
        reasons
    }
}

fn who(by: By) -> &'static str {
    match by {
        By::Own => "own memory",
        By::Jvm => "heap of a JVM",
    }
}

pub fn text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    head(out, &report.settings)?;
    for by in [By::Own, By::Jvm] {
        let arms: Vec<&Arm> = report.settings.arms.iter().filter(|arm| arm.by == by).collect();
        if !arms.is_empty() {
            table(out, report, by, &arms)?;
        }
    }
    notes(out, report)?;
    left_out(out, report.left_out(), report.stopped)
}

fn head(out: &mut dyn Write, settings: &Settings) -> io::Result<()> {
    let Settings { bytes, rounds, seed, .. } = settings;
    let title = format!("the first touch of {}, {rounds} rounds, seed {seed}", human(*bytes));
    lines(out, &title)?;
    lines(out, &machine(&settings.machine))
}

fn table(out: &mut dyn Write, report: &Report, by: By, arms: &[&Arm]) -> io::Result<()> {
    let title = match (by, &report.settings.jdk) {
        (By::Jvm, Some(jdk)) => {
            format!("heap of JDK {jdk}: a start with -XX:+AlwaysPreTouch less one without")
        }
        _ => "memory of our own".to_string(),
    };
    writeln!(out, "\n{title}")?;
    writeln!(
        out,
        "{:<11}{:>8}{:>9}{:>24}{:>9}{:>8}{:>8}{:>10}{:>13}",
        "ns a 4 KiB",
        "threads",
        "wall",
        "CPU (least to most)",
        "zeroing",
        "rest",
        "GB/s",
        "faults",
        "tables/GiB"
    )?;
    for arm in arms {
        let middle = |figure: &dyn Fn(&Figures) -> Option<f64>| report.of(arm, figure).map(|one| one.middle);
        let cell = |number: Option<f64>, digits: usize| {
            number.map_or("-".to_string(), |number| format!("{number:.digits$}"))
        };
        let cpu = report
            .of(arm, &Figures::cpu_ns_per_4k)
            .map_or("-".to_string(), |Spread { middle, from, to, .. }| {
                format!("{middle:.0} ({from:.0} to {to:.0})")
            });
        let tables = middle(&Figures::tables_per_gib).map_or("-".to_string(), |bytes| human(bytes as Bytes));
        writeln!(
            out,
            "{:<11}{:>8}{:>9}{:>24}{:>9}{:>8}{:>8}{:>10}{:>13}",
            arm.pages.name(),
            arm.threads,
            cell(middle(&|figures| Some(figures.ns_per_4k())), 0),
            cpu,
            cell(middle(&Figures::fill_ns_per_4k), 0),
            cell(middle(&Figures::rest_ns_per_4k), 0),
            cell(middle(&|figures| Some(figures.gb_per_second())), 2),
            cell(middle(&|figures| Some(figures.faults? as f64)), 0),
            tables,
        )?;
    }
    Ok(())
}

fn notes(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let note = match &report.zero_fault {
        Ok(None) => return Ok(()),
        Ok(Some(zero)) => format!("a fault that maps the zero page: {:.0} ns, one thread", zero.ns_per_fault),
        Err(gap) => format!("a fault that maps the zero page: {gap}"),
    };
    writeln!(out)?;
    lines(
        out,
        "CPU: of all threads together, and of it zeroing: what writing all bytes once more takes; rest: the faults, taking \
         the pages, page tables",
    )?;
    lines(out, &note)
}

pub fn dry_run(
    out: &mut dyn Write,
    settings: &Settings,
    planned: &[(Arm, Result<Vec<String>, String>)],
) -> io::Result<()> {
    head(out, settings)?;
    for (arm, steps) in planned {
        let what = match steps.as_deref() {
            Err(why) => format!("can not be: {why}"),
            Ok([]) => "the host stays as it is".to_string(),
            Ok(steps) => format!("for as long as it takes: {}", steps.join("; ")),
        };
        lines(out, &format!("{}, {}, threads {}: {what}", who(arm.by), arm.pages.name(), arm.threads))?;
    }
    writeln!(out, "dry run: nothing was touched or changed")
}

pub fn json(report: &Report) -> Value {
    let arms: Vec<Value> = report.settings.arms.iter().map(|one| arm(report, one)).collect();
    let left_out = report.left_out();
    let mut gaps: Vec<Value> = left_out
        .iter()
        .map(|(why, count)| {
            let hint = format!("{count} trials do not count");
            gap(&Gap::new(why.clone(), Why::NotMeasured).hint(hint))
        })
        .collect();
    gaps.extend(report.zero_fault.as_ref().err().map(gap));
    let zero = report.zero_fault.as_ref().ok().and_then(|zero| zero.as_ref());
    json!({
        "schema": SCHEMA,
        "at": report.at,
        "stopped": report.stopped,
        "complete": report.is_complete(),
        "settings": settings(&report.settings),
        "zero_fault_ns": zero.map(|zero| zero.ns_per_fault),
        "arms": arms,
        "trials": report.trials.iter().map(trial).collect::<Vec<_>>(),
        "gaps": gaps,
    })
}

fn settings(settings: &Settings) -> Value {
    let Settings { machine, jdk, bytes, rounds, seed, .. } = settings;
    json!({"machine": machine, "jdk": jdk, "bytes": bytes, "rounds": rounds, "seed": seed})
}

fn name(arm: &Arm) -> Value {
    json!({
        "by": arm.by,
        "pages": arm.pages.name(),
        "page_bytes": arm.pages.bytes(),
        "threads": arm.threads,
    })
}

fn arm(report: &Report, arm: &Arm) -> Value {
    let of = |figure: &dyn Fn(&Figures) -> Option<f64>| report.of(arm, figure);
    let mut value = name(arm);
    value["ns_per_4k"] = json!(of(&|figures| Some(figures.ns_per_4k())));
    value["cpu_ns_per_4k"] = json!(of(&Figures::cpu_ns_per_4k));
    value["zeroing_ns_per_4k"] = json!(of(&Figures::fill_ns_per_4k));
    value["rest_ns_per_4k"] = json!(of(&Figures::rest_ns_per_4k));
    value["gb_per_second"] = json!(of(&|figures| Some(figures.gb_per_second())));
    value["faults"] = json!(of(&|figures| Some(figures.faults? as f64)));
    value["page_table_bytes_per_gib"] = json!(of(&Figures::tables_per_gib));
    value["share"] = json!(of(&|figures| Some(figures.share)));
    value
}

fn trial(trial: &Trial) -> Value {
    let mut value = name(&trial.arm);
    value["round"] = json!(trial.round);
    value["left_out"] = json!(trial.left_out);
    value["figures"] = json!(trial.figures);
    value
}

pub fn dry_run_json(settings_given: &Settings, planned: &[(Arm, Result<Vec<String>, String>)]) -> Value {
    let planned: Vec<Value> = planned
        .iter()
        .map(|(arm, steps)| {
            let mut value = name(arm);
            value["steps"] = json!(steps.as_ref().ok());
            value["why_not"] = json!(steps.as_ref().err());
            value
        })
        .collect();
    json!({"schema": SCHEMA, "dry_run": true, "settings": settings(settings_given), "planned": planned})
}
