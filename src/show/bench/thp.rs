//! `marusa bench thp`: the table of the policies, and what turning to another one changes.

use super::cells::{lines, mean, middle, number, percent, ratio};
use super::fork::machine;
use super::trials;
use crate::base::counted;
use crate::experiment::bench::thp::{Arm, ArmFigures, Comparison, Report, Settings, Trial, report};
use crate::experiment::bench::trials::{Arm as _, Planned};
use crate::map::model::GapRow;
use crate::pages::subject::size;
use crate::show::json::Head;
use crate::show::others;
use crate::show::table::Table;
use crate::show::units::prose;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

const SCHEMA: &str = "marusa/bench-thp/2";

#[derive(JsonSchema, Serialize)]
pub struct Results<'a> {
    pub settings: &'a Settings,
    #[serde(skip)]
    pub arms: &'a [Arm],
    pub trials: &'a [Trial],
    /// A signal ended it before its time.
    pub stopped: bool,
}

const PUBLISHED: &str = "published (24 threads, 36 GB, Linux 2.6.32 of RHEL 6): with transparent huge pages and 4 builds at once \
    35 % of the CPU time and more, mostly in the kernel, and the machine stood still for 3 to 5 s; with them off 5 %, and 8 \
    builds at once were possible";
/// To start and end, and for the memory in small pieces.
const SECONDS_PER_STEP: f64 = 3.0;

pub fn text(out: &mut dyn Write, results: &Results) -> io::Result<()> {
    head(out, results.settings)?;
    let found = report(results.arms, results.trials);
    table(out, &found.arms)?;
    memory(out, &found.arms)?;
    if !found.against_always.is_empty() {
        comparisons(out, &found.against_always)?;
    }
    writeln!(out)?;
    lines(out, PUBLISHED, 0)?;
    trials::not_counted(out, results.trials)?;
    let others = others::line(results.trials.iter().map(|trial| trial.others));
    others.iter().try_for_each(|line| prose(out, line))?;
    match results.stopped {
        true => prose(out, "ended by a signal: the trials above are all that there are"),
        false => Ok(()),
    }
}

fn head(out: &mut dyn Write, settings: &Settings) -> io::Result<()> {
    let what = format!(
        "a build server: {} in each trial, each with a heap of at most {}; {} free in small pieces; {}, seed {}",
        counted(settings.steps, "JVM"),
        size(settings.heap_bytes),
        size(settings.free_bytes),
        counted(settings.rounds, "round"),
        settings.seed
    );
    lines(out, &what, 0)?;
    lines(out, &format!("JDK {}; {}", settings.jdk, machine(&settings.machine)), 0)
}

fn table(out: &mut dyn Write, arms: &[ArmFigures]) -> io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new([
        "policy",
        ">JVMs/min",
        ">kernel",
        ">of host",
        ">waited ms",
        ">longest ms",
        ">step s",
        ">bystander ms",
    ]);
    for one in arms {
        let longest = |figure: Option<f64>| figure.map_or("-".to_string(), number);
        table.row([
            one.arm.name(),
            mean(one.steps_per_minute),
            percent(one.kernel_share.map(|share| share.mean)),
            percent(one.host_kernel_share.map(|share| share.mean)),
            middle(one.waited_ms_per_step),
            longest(one.longest_stall_ms),
            longest(one.longest_step_seconds),
            longest(one.bystander_late_ms),
        ]);
    }
    table.write(out)?;
    lines(
        out,
        "kernel: its part of the JVMs' CPU time; of host: of the time of all CPUs. waited: for memory, all threads of a JVM \
         together, by the kernel's trace; longest: the longest single wait. step: the JVM that took longest. bystander: how late a \
         thread was at worst that wakes every 10 ms.",
        0,
    )
}

fn memory(out: &mut dyn Write, arms: &[ArmFigures]) -> io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new([
        "policy",
        ">free blocks",
        ">huge faults",
        ">fallbacks",
        ">khugepaged ms",
        ">kcompactd ms",
    ]);
    for one in arms {
        let cells =
            [one.free_huge_blocks, one.huge_faults, one.huge_fallbacks, one.khugepaged_ms, one.kcompactd_ms];
        table.row(std::iter::once(one.arm.name()).chain(cells.map(middle)));
    }
    table.write(out)?;
    lines(out, "In each trial, of the whole host. free blocks: of the size of a huge page, when it began.", 0)
}

fn comparisons(out: &mut dyn Write, all: &[Comparison]) -> io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new(["against always", ">JVMs/min", ">kernel"]);
    for one in all {
        table.row([one.arm.name(), ratio(one.steps_per_minute), ratio(one.kernel_share)]);
    }
    table.write(out)
}

/// `marusa bench thp --json`.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum BenchThpDocument<'a> {
    Measured {
        #[serde(flatten)]
        head: Head,
        #[serde(flatten)]
        results: &'a Results<'a>,
        #[serde(flatten)]
        report: Report,
        published: &'static str,
        gaps: Vec<GapRow>,
    },
    DryRun {
        #[serde(flatten)]
        head: Head,
        dry_run: bool,
        settings: &'a Settings,
        arms: &'a [Planned<Arm>],
        gaps: [GapRow; 0],
    },
}

impl<'a> BenchThpDocument<'a> {
    pub fn of(results: &'a Results) -> BenchThpDocument<'a> {
        BenchThpDocument::Measured {
            head: Head::now(SCHEMA),
            results,
            report: report(results.arms, results.trials),
            published: PUBLISHED,
            gaps: trials::gaps(results.trials),
        }
    }

    pub fn dry_run(settings: &'a Settings, arms: &'a [Planned<Arm>]) -> BenchThpDocument<'a> {
        BenchThpDocument::DryRun { head: Head::now(SCHEMA), dry_run: true, settings, arms, gaps: [] }
    }
}

pub fn dry_run(out: &mut dyn Write, settings: &Settings, planned: &[Planned<Arm>]) -> io::Result<()> {
    head(out, settings)?;
    trials::length(out, settings.rounds * planned.len(), settings.steps as f64 * SECONDS_PER_STEP)?;
    planned.iter().try_for_each(|one| trials::planned(out, one))?;
    prose(out, "\ndry run: nothing was started or changed")
}
