//! `marusa bench gc`: the table of the arms, and what pages and threads change.

use super::cells::{lines, mean, middle, number, percent, ratio};
use super::picture::Picture;
use super::rounds::{Experiment, Results, RowOf, machine, named};
use crate::base::{Gap, Why};
use crate::experiment::bench::gc::{
    Arm, ArmFigures, Collector, Comparison, Figures, Report, Settings, ThreadCounts, Trial, figures, report,
};
use crate::experiment::bench::rounds::Mean;
use crate::experiment::bench::trials::{Arm as _, ArmRow, OfArm};
use crate::map::model::GapRow;
use crate::pages::subject::size;
use crate::show::table::Table;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// Collectors that a JDK does not have, and why.
#[derive(JsonSchema, Serialize)]
pub struct Lacking {
    pub lacking: Vec<String>,
}

/// To ask the JDK, to start, to build the live set, and for two readings of the pages.
const SECONDS_BESIDE: f64 = 4.0;

impl Experiment for Settings {
    named!("gc", 2, 1, figures);
    type Arm = Arm;
    type Figures = Figures;
    type OfArm = Collector;
    type Found = Lacking;
    type Summary = ArmFigures;
    type Report = Report;
    type Published = &'static str;
    const PUBLISHED: &'static str = "published (UltraSPARC T1, 32 virtual processors, parallel collector): system CPU above \
        20 % with the 32 GC threads that the JVM took, until -XX:ParallelGCThreads limited them";

    fn report(&self, arms: &[Arm], _rows: &[RowOf<Settings>], trials: &[Trial]) -> Report {
        report(arms, trials)
    }

    fn seconds_each(&self) -> f64 {
        self.seconds + self.warm_up_seconds + SECONDS_BESIDE
    }

    fn head(&self) -> [String; 2] {
        let what = format!(
            "collectors at work: {} alive of a heap of {}, {} threads that allocate, {} s after {} s of warm-up, {} rounds, \
             seed {}",
            size(self.live_bytes),
            size(self.heap_bytes),
            self.workers,
            self.seconds,
            self.warm_up_seconds,
            self.rounds,
            self.seed
        );
        [what, format!("JDK {}; {}", self.jdks.join(", "), machine(&self.machine))]
    }

    fn tables(out: &mut dyn Write, Results { arms, report, .. }: &Results<Settings>) -> io::Result<()> {
        table(out, arms)?;
        if !report.by_threads.is_empty() {
            comparisons(out, "against the JVM's own threads", &report.by_threads)?;
        }
        if !report.by_pages.is_empty() {
            comparisons(out, "against 4k pages", &report.by_pages)?;
        }
        writeln!(out)?;
        lines(out, Self::PUBLISHED, 0)
    }

    fn picture(Results { arms, .. }: &Results<Settings>) -> Picture {
        let mut picture = Picture::new("The system's share of CPU time, by GC threads", "%", Some(0.0));
        picture.published("32 threads, T1", 20.0, "above 20 %");
        for row in arms {
            picture.mean(row.arm.name(), row.figures.system_share.map(Mean::percent));
        }
        picture
    }

    fn found(out: &mut dyn Write, Lacking { lacking }: &Lacking) -> io::Result<()> {
        lacking.iter().try_for_each(|why| lines(out, &format!("left out: {why}"), 0))
    }

    fn gaps(Lacking { lacking }: &Lacking) -> Vec<GapRow> {
        lacking.iter().map(|why| GapRow::from(&Gap::new(why, Why::NotInThisRuntime))).collect()
    }
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

fn table(out: &mut dyn Write, arms: &[RowOf<Settings>]) -> io::Result<()> {
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
    ])
    .without_room(&[10, 7, 8]);
    for ArmRow { arm, figures: one, page_share_min, .. } in arms {
        table.row([
            arm.jdk.to_string(),
            arm.gc.to_string(),
            arm.pages.name().to_string(),
            threads(&one.threads),
            mean(one.operations_per_second),
            middle(one.collections_per_minute),
            middle(one.mean_stop_ms),
            one.longest_stop_ms.map_or("-".to_string(), number),
            middle(one.concurrent_ms_per_second),
            percent(one.system_share.map(|share| share.mean)),
            percent(*page_share_min).replace(" %", "%"),
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
