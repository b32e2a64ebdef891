//! `marusa bench throughput`: the table of the arms, and what large pages and a large heap give next to the figures published in
//! 2008.

use super::cells::{lines, mean, middle, percent, ratio};
use super::fork::machine;
use super::trials;
use crate::experiment::bench::throughput::{Arm, ArmFigures, Comparison, Report, Settings, Trial, report};
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

const SCHEMA: &str = "marusa/bench-throughput/2";

/// Everything that was found.
#[derive(JsonSchema, Serialize)]
pub struct Results<'a> {
    pub settings: &'a Settings,
    #[serde(skip)]
    pub arms: &'a [Arm],
    pub trials: &'a [Trial],
    /// A signal ended it before its time.
    pub stopped: bool,
}

/// The published gain of large pages with 3.5 GB, and of that heap without them.
#[derive(Clone, Copy, JsonSchema, Serialize)]
pub struct Published {
    what: &'static str,
    said: &'static str,
}

const PUBLISHED: [Published; 2] = [
    Published {
        what: "2008, 3.5 GB on large pages",
        said: "throughput more than 3 times in all, 60 to 70 % of it from this; a third of the collections; a third of their time; \
         each stop much shorter",
    },
    Published { what: "2008, 3.5 GB on small pages", said: "nothing gained over smaller heaps" },
];

pub fn text(out: &mut dyn Write, results: &Results) -> io::Result<()> {
    head(out, results.settings)?;
    let found = report(results.arms, results.trials);
    table(out, &found.arms)?;
    if !found.by_pages.is_empty() {
        comparisons(out, "against 4k pages, same heap", &found.by_pages)?;
    }
    if !found.by_heap.is_empty() {
        comparisons(out, "against the smallest heap on 4k", &found.by_heap)?;
    }
    if !found.by_pages.is_empty() || !found.by_heap.is_empty() {
        lines(
            out,
            "CPU, collections and stopped time are a request: they do not hang on how much of the processors others left.",
            0,
        )?;
    }
    writeln!(out)?;
    for Published { what, said } in PUBLISHED {
        lines(out, &format!("{what}: {said}"), 0)?;
    }
    trials::not_counted(out, results.trials)?;
    let others = others::line(results.trials.iter().map(|trial| trial.others));
    others.iter().try_for_each(|line| prose(out, line))?;
    match found.is_complete {
        _ if results.stopped => {
            prose(out, "NOT complete: a signal ended it; the trials above are all that there are")
        }
        true => prose(out, "complete: every arm has its figures, on pages that were verified in each trial"),
        false => prose(out, "NOT complete: an arm above lacks a figure"),
    }
}

fn head(out: &mut dyn Write, settings: &Settings) -> io::Result<()> {
    let what = format!(
        "DayTrader on TomEE with Derby, JDK {}, {} collector, {} clients, {} s after {} s of warm-up, {} rounds, seed {}",
        settings.jdk,
        settings.gc,
        settings.clients,
        settings.seconds,
        settings.warm_up_seconds,
        settings.rounds,
        settings.seed
    );
    lines(out, &what, 0)?;
    lines(out, &machine(&settings.machine), 0)
}

fn table(out: &mut dyn Write, arms: &[ArmFigures]) -> io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new([
        "heap",
        "pages",
        ">runs",
        ">requests/s",
        ">p50 ms",
        ">p99",
        ">p99.9",
        ">errors",
        ">CPU ms",
        ">on pages",
        ">RSS MiB",
    ]);
    for one in arms {
        table.row([
            size(one.arm.heap_bytes),
            one.arm.pages.name().to_string(),
            format!("{}/{}", one.counted, one.trials),
            mean(one.requests_per_second),
            middle(one.p50_ms),
            middle(one.p99_ms),
            middle(one.p999_ms),
            one.errors.map_or("-".to_string(), |errors| errors.to_string()),
            middle(one.cpu_ms_per_request),
            percent(one.page_share_min),
            one.resident_bytes.map_or("-".to_string(), |bytes| format!("{:.0}", bytes.mean / 1048576.0)),
        ]);
    }
    table.write(out)?;
    writeln!(out)?;
    let mut table = Table::new([
        "heap",
        "pages",
        ">collections/min",
        ">a 1000 requests",
        ">stopped, ms a second",
        ">mean stop, ms",
        ">longest, ms",
    ]);
    for one in arms {
        table.row([
            size(one.arm.heap_bytes),
            one.arm.pages.name().to_string(),
            mean(one.collections_per_minute),
            mean(one.collections_per_1000_requests),
            mean(one.gc_stopped_ms_per_second),
            mean(one.mean_stop_ms),
            one.longest_stop_ms.map_or("-".to_string(), super::cells::number),
        ]);
    }
    table.write(out)?;
    lines(
        out,
        "CPU ms: of the server, a request. on pages: of the heap in memory, in the worst trial that counts.",
        0,
    )
}

fn comparisons(out: &mut dyn Write, title: &str, all: &[Comparison]) -> io::Result<()> {
    writeln!(out, "\n{title}")?;
    let mut table = Table::new(["", ">throughput", ">CPU", ">collections", ">stopped time", ">mean stop"]);
    for one in all {
        let (cpu, collections) = (one.cpu_per_request, one.collections_per_request);
        let cells = [one.throughput, cpu, collections, one.gc_stopped_per_request, one.mean_stop].map(ratio);
        // Intervals are wide: then each row has two lines.
        let parts = cells.each_ref().map(|cell| match cell.find(" (") {
            Some(at) => (&cell[..at], &cell[at + 1..]),
            None => (cell.as_str(), ""),
        });
        table.row([one.arm.name().as_str()].into_iter().chain(parts.map(|(ratio, _)| ratio)));
        if parts.iter().any(|(_, interval)| !interval.is_empty()) {
            table.row([""].into_iter().chain(parts.map(|(_, interval)| interval)));
        }
    }
    table.write(out)
}

/// `marusa bench throughput --json`.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum BenchThroughputDocument<'a> {
    Measured {
        #[serde(flatten)]
        head: Head,
        #[serde(flatten)]
        results: &'a Results<'a>,
        #[serde(flatten)]
        report: Report,
        published: [Published; 2],
        gaps: Vec<GapRow>,
    },
    DryRun {
        #[serde(flatten)]
        head: Head,
        dry_run: bool,
        settings: &'a Settings,
        arms: &'a [Planned<Arm>],
        missing: Option<&'a str>,
        gaps: [GapRow; 0],
    },
}

impl<'a> BenchThroughputDocument<'a> {
    pub fn of(results: &'a Results) -> BenchThroughputDocument<'a> {
        BenchThroughputDocument::Measured {
            head: Head::now(SCHEMA),
            results,
            report: report(results.arms, results.trials),
            published: PUBLISHED,
            gaps: trials::gaps(results.trials),
        }
    }

    pub fn dry_run(
        settings: &'a Settings,
        arms: &'a [Planned<Arm>],
        missing: Option<&'a str>,
    ) -> BenchThroughputDocument<'a> {
        BenchThroughputDocument::DryRun {
            head: Head::now(SCHEMA),
            dry_run: true,
            settings,
            arms,
            missing,
            gaps: [],
        }
    }
}

pub fn dry_run(
    out: &mut dyn Write,
    settings: &Settings,
    planned: &[Planned<Arm>],
    missing: Option<&str>,
) -> io::Result<()> {
    head(out, settings)?;
    let seconds = settings.seconds + settings.warm_up_seconds + SECONDS_BESIDE;
    trials::length(out, settings.rounds * planned.len(), seconds)?;
    planned.iter().try_for_each(|one| trials::planned(out, one))?;
    if let Some(missing) = missing {
        writeln!(out)?;
        lines(out, missing, 0)?;
    }
    prose(out, "\ndry run: nothing was started or changed")
}

/// To start the server, fill its database, look at its pages and end it.
const SECONDS_BESIDE: f64 = 25.0;
