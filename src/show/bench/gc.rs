//! `marusa bench gc`: the table of the arms, and what pages and threads change.

use super::cells::{lines, mean, middle, number, percent, ratio};
use super::fork::machine;
use super::trials;
use crate::base::{Gap, Why};
use crate::experiment::bench::gc::{
    Arm, ArmFigures, Comparison, Planned, Report, Settings, ThreadCounts, Trial, report,
};
use crate::experiment::bench::trials::Arm as _;
use crate::map::model::GapRow;
use crate::pages::subject::size;
use crate::show::json::Head;
use crate::show::others;
use crate::show::table::Table;
use crate::show::units::prose;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

const SCHEMA: &str = "marusa/bench-gc/2";

#[derive(JsonSchema, Serialize)]
pub struct Results<'a> {
    pub settings: &'a Settings,
    #[serde(skip)]
    pub arms: &'a [Arm],
    /// Collectors that a JDK does not have, and why.
    #[serde(skip)]
    pub lacking: &'a [String],
    pub trials: &'a [Trial],
    /// A signal ended it before its time.
    pub stopped: bool,
}

const PUBLISHED: &str = "published (UltraSPARC T1, 32 virtual processors, parallel collector): system CPU above 20 % with \
    the 32 GC threads that the JVM took, until -XX:ParallelGCThreads limited them";

pub fn text(out: &mut dyn Write, results: &Results) -> io::Result<()> {
    head(out, results.settings)?;
    let found = report(results.arms, results.trials);
    table(out, &found.arms)?;
    if !found.by_threads.is_empty() {
        comparisons(out, "against the JVM's own threads", &found.by_threads)?;
    }
    if !found.by_pages.is_empty() {
        comparisons(out, "against 4k pages", &found.by_pages)?;
    }
    writeln!(out)?;
    lines(out, PUBLISHED, 0)?;
    trials::not_counted(out, results.trials)?;
    let others = others::line(results.trials.iter().map(|trial| trial.others));
    others.iter().try_for_each(|line| prose(out, line))?;
    results.lacking.iter().try_for_each(|why| lines(out, &format!("left out: {why}"), 0))?;
    match results.stopped {
        true => prose(out, "ended by a signal: the trials above are all that there are"),
        false => Ok(()),
    }
}

fn head(out: &mut dyn Write, settings: &Settings) -> io::Result<()> {
    let what = format!(
        "collectors at work: {} alive of a heap of {}, {} threads that allocate, {} s after {} s of warm-up, {} rounds, seed {}",
        size(settings.live_bytes),
        size(settings.heap_bytes),
        settings.workers,
        settings.seconds,
        settings.warm_up_seconds,
        settings.rounds,
        settings.seed
    );
    lines(out, &what, 0)?;
    lines(out, &format!("JDK {}; {}", settings.jdks.join(", "), machine(&settings.machine)), 0)
}

/// "23/6 (2/1)": the ones that it has, and by the formula here.
fn threads(threads: &ThreadCounts) -> String {
    let count = |count: Option<u32>| count.map_or("-".to_string(), |count| count.to_string());
    match (threads.parallel, threads.concurrent) {
        (None, None) => "1".to_string(),
        (parallel, concurrent) => {
            let formula = (count(threads.parallel_by_formula), count(threads.concurrent_by_formula));
            format!("{}/{} ({}/{})", count(parallel), count(concurrent), formula.0, formula.1)
        }
    }
}

fn table(out: &mut dyn Write, arms: &[ArmFigures]) -> io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new([
        "JDK",
        "collector",
        "pages",
        "GC threads",
        ">operations/s",
        ">GCs/min",
        ">stop ms",
        ">longest",
        ">concurrent",
        ">system",
        ">pages",
    ]);
    for one in arms {
        table.row([
            one.arm.jdk.to_string(),
            one.arm.gc.to_string(),
            one.arm.pages.name().to_string(),
            threads(&one.threads),
            mean(one.operations_per_second),
            middle(one.collections_per_minute),
            middle(one.mean_stop_ms),
            one.longest_stop_ms.map_or("-".to_string(), number),
            middle(one.concurrent_ms_per_second),
            percent(one.system_share.map(|share| share.mean)),
            percent(one.page_share_min).replace(" %", "%"),
        ]);
    }
    table.write(out)?;
    lines(
        out,
        "GC threads: for stops / next to the program, in parentheses by the JVM's formula for this machine. concurrent: ms of each \
         second in which it worked while the program ran. system: of the CPU time. pages: of the heap in memory on them, at worst.",
        0,
    )
}

fn comparisons(out: &mut dyn Write, title: &str, all: &[Comparison]) -> io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new([title, ">operations", ">mean stop", ">system share"]);
    for one in all {
        let [operations, stop, system] = [one.operations, one.mean_stop, one.system_share].map(ratio);
        table.row([one.arm.name(), operations, stop, system]);
    }
    table.write(out)
}

/// `marusa bench gc --json`.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum BenchGcDocument<'a> {
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
        arms: &'a [Planned],
        lacking: &'a [String],
        gaps: [GapRow; 0],
    },
}

impl<'a> BenchGcDocument<'a> {
    pub fn of(results: &'a Results) -> BenchGcDocument<'a> {
        let lacking = results.lacking.iter().map(|why| GapRow::from(&Gap::new(why, Why::NotInThisRuntime)));
        BenchGcDocument::Measured {
            head: Head::now(SCHEMA),
            results,
            report: report(results.arms, results.trials),
            published: PUBLISHED,
            gaps: trials::gaps(results.trials).into_iter().chain(lacking).collect(),
        }
    }

    pub fn dry_run(
        settings: &'a Settings,
        arms: &'a [Planned],
        lacking: &'a [String],
    ) -> BenchGcDocument<'a> {
        BenchGcDocument::DryRun { head: Head::now(SCHEMA), dry_run: true, settings, arms, lacking, gaps: [] }
    }
}

pub fn dry_run(
    out: &mut dyn Write,
    settings: &Settings,
    planned: &[Planned],
    lacking: &[String],
) -> io::Result<()> {
    head(out, settings)?;
    let seconds = settings.seconds + settings.warm_up_seconds + SECONDS_BESIDE;
    trials::length(out, settings.rounds * planned.len(), seconds)?;
    planned.iter().try_for_each(|one| trials::planned(out, &one.planned))?;
    lacking.iter().try_for_each(|why| lines(out, &format!("left out: {why}"), 0))?;
    prose(out, "\ndry run: nothing was started or changed")
}

/// To ask the JDK, to start, to build the live set, and for two readings of the pages.
const SECONDS_BESIDE: f64 = 4.0;
