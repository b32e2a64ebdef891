//! `marusa bench touch`: what the first touch costs by page size, and the page tables that it leaves.

use super::figures::hanging;
use super::rounds::{gaps_of, left_out, machine};
use crate::base::{Bytes, Known, tally};
use crate::experiment::bench::fork::Spread;
use crate::experiment::bench::touch::{Arm, By, Figures, Planned, Settings, Trial, ZeroFault, spread};
use crate::experiment::bench::trials::Arm as _;
use crate::map::model::GapRow;
use crate::show::json::Head;
use crate::show::others;
use crate::show::table::Table;
use crate::show::units::{counted, human, prose};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

const SCHEMA: &str = "marusa/bench-touch/2";

/// Everything that was found.
#[derive(JsonSchema, Serialize)]
pub struct Report {
    pub settings: Settings,
    /// `Ok(None)`: our own memory was not asked for.
    #[serde(skip)]
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
        tally(self.trials.iter().filter_map(|trial| {
            let Trial { arm, left_out, .. } = trial;
            Some(format!("{}, {}: {}", arm.by.name(), arm.pages.name(), left_out.as_ref()?))
        }))
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
    let others = others::line(report.trials.iter().map(|trial| trial.others));
    others.iter().try_for_each(|line| prose(out, line))?;
    left_out(out, report.left_out(), report.stopped)
}

fn head(out: &mut dyn Write, settings: &Settings) -> io::Result<()> {
    let Settings { bytes, rounds, seed, .. } = settings;
    let title = format!("the first touch of {}, {}, seed {seed}", human(*bytes), counted(*rounds, "round"));
    hanging(out, &title)?;
    hanging(out, &machine(&settings.machine))
}

fn table(out: &mut dyn Write, report: &Report, by: By, arms: &[&Arm]) -> io::Result<()> {
    let title = match (by, &report.settings.jdk) {
        (By::Jvm, Some(jdk)) => {
            format!("heap of JDK {jdk}: a start with -XX:+AlwaysPreTouch less one without")
        }
        _ => "memory of our own".to_string(),
    };
    writeln!(out, "\n{title}")?;
    let mut table = Table::new([
        "ns a 4 KiB",
        ">threads",
        ">wall",
        ">CPU (least to most)",
        ">zeroing",
        ">rest",
        ">GB/s",
        ">faults",
        ">tables/GiB",
    ]);
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
        table.row([
            arm.pages.name().to_string(),
            arm.threads.to_string(),
            cell(middle(&|figures| Some(figures.ns_per_4k())), 0),
            cpu,
            cell(middle(&Figures::fill_ns_per_4k), 0),
            cell(middle(&Figures::rest_ns_per_4k), 0),
            cell(middle(&|figures| Some(figures.gb_per_second())), 2),
            cell(middle(&|figures| Some(figures.faults? as f64)), 0),
            tables,
        ]);
    }
    table.write(out)
}

fn notes(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let note = match &report.zero_fault {
        Ok(None) => return Ok(()),
        Ok(Some(zero)) => format!("a fault that maps the zero page: {:.0} ns, one thread", zero.ns_per_fault),
        Err(gap) => format!("a fault that maps the zero page: {gap}"),
    };
    writeln!(out)?;
    hanging(
        out,
        "CPU: of all threads together, and of it zeroing: what writing all bytes once more takes; rest: the faults, taking \
         the pages, page tables",
    )?;
    hanging(out, &note)
}

pub fn dry_run(out: &mut dyn Write, settings: &Settings, planned: &[Planned]) -> io::Result<()> {
    head(out, settings)?;
    for Planned { arm, steps, why_not } in planned {
        let what = match (why_not, steps.as_deref().unwrap_or_default()) {
            (Some(why), _) => format!("cannot be: {why}"),
            (None, []) => "the host stays as it is".to_string(),
            (None, steps) => format!("for as long as it takes: {}", steps.join("; ")),
        };
        hanging(out, &format!("{}: {what}", arm.name()))?;
    }
    prose(out, "dry run: nothing was touched or changed")
}

/// `marusa bench touch --json`.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum BenchTouchDocument<'a> {
    Measured {
        #[serde(flatten)]
        head: Head,
        #[serde(flatten)]
        report: &'a Report,
        complete: bool,
        zero_fault_ns: Option<f64>,
        arms: Vec<ArmRow<'a>>,
        gaps: Vec<GapRow>,
    },
    DryRun {
        #[serde(flatten)]
        head: Head,
        dry_run: bool,
        settings: &'a Settings,
        planned: &'a [Planned],
    },
}

#[derive(JsonSchema, Serialize)]
pub struct ArmRow<'a> {
    #[serde(flatten)]
    arm: &'a Arm,
    #[serde(flatten)]
    figures: BTreeMap<&'static str, Option<Spread>>,
}

impl<'a> BenchTouchDocument<'a> {
    pub fn of(report: &'a Report) -> BenchTouchDocument<'a> {
        let arm = |arm| ArmRow {
            arm,
            figures: Figures::ALL.map(|(name, figure)| (name, report.of(arm, &figure))).into(),
        };
        let zero = report.zero_fault.as_ref();
        let left_out = gaps_of(report.left_out());
        BenchTouchDocument::Measured {
            head: Head::now(SCHEMA),
            report,
            complete: report.is_complete(),
            zero_fault_ns: zero.ok().and_then(|zero| Some(zero.as_ref()?.ns_per_fault)),
            arms: report.settings.arms.iter().map(arm).collect(),
            gaps: left_out.into_iter().chain(zero.err().map(GapRow::from)).collect(),
        }
    }

    pub fn dry_run(settings: &'a Settings, planned: &'a [Planned]) -> BenchTouchDocument<'a> {
        BenchTouchDocument::DryRun { head: Head::now(SCHEMA), dry_run: true, settings, planned }
    }
}
