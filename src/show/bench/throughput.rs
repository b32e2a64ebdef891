//! `marusa bench throughput`: the table of the arms, and what large pages and a large heap give next to the figures published in
//! 2008.

use super::cells::{lines, mean, middle, number, percent, ratio};
use super::picture::Picture;
use super::rounds::{Experiment, Nothing, Results, RowOf, machine, named};
use crate::experiment::bench::throughput::{
    Arm, ArmFigures, Comparison, Figures, Report, Settings, Trial, figures, report,
};
use crate::experiment::bench::trials::{Arm as _, ArmRow, OfArm};
use crate::show::table::Table;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// The published gain of large pages with 3.5 GB, and of that heap without them.
#[derive(Clone, Copy, JsonSchema, Serialize)]
pub struct Published {
    what: &'static str,
    said: &'static str,
}

/// The reason that the server is missing, for a dry run.
#[derive(JsonSchema, Serialize)]
pub struct Lacking {
    pub missing: Option<String>,
}

/// To start the server, fill its database, look at its pages and end it.
const SECONDS_BESIDE: f64 = 25.0;

impl Experiment for Settings {
    named!("throughput", 2, 1, figures);
    type Arm = Arm;
    type Figures = Figures;
    type OfArm = Nothing;
    type Found = Lacking;
    type Summary = ArmFigures;
    type Report = Report;
    type Published = [Published; 2];
    const PUBLISHED: [Published; 2] = [
        Published {
            what: "2008, 3.5 GB on large pages",
            said: "throughput more than 3 times in all, 60 to 70 % of it from this; a third of the collections; a third of their \
             time; each stop much shorter",
        },
        Published { what: "2008, 3.5 GB on small pages", said: "nothing gained over smaller heaps" },
    ];

    fn report(&self, arms: &[Arm], _rows: &[RowOf<Settings>], trials: &[Trial]) -> Report {
        report(arms, trials)
    }

    fn is_complete(row: &RowOf<Settings>) -> bool {
        row.page_share_min.is_some() && row.figures.is_complete()
    }

    fn seconds_each(&self) -> f64 {
        self.seconds + self.warm_up_seconds + SECONDS_BESIDE
    }

    fn head(&self) -> [String; 2] {
        let pace = self.rate.map_or(String::new(), |rate| format!(" at {rate:.0} requests a second"));
        let what = format!(
            "DayTrader on TomEE with Derby, JDK {}, {} collector, {} clients{pace}, {} s after {} s of warm-up, {} rounds, seed {}",
            self.jdk, self.gc, self.clients, self.seconds, self.warm_up_seconds, self.rounds, self.seed
        );
        [what, machine(&self.machine)]
    }

    fn tables(
        out: &mut dyn Write,
        Results { settings, arms, report, .. }: &Results<Settings>,
    ) -> io::Result<()> {
        table(out, arms)?;
        let compared = [
            ("against 4k pages, same heap", &report.by_pages),
            ("against the smallest heap on 4k", &report.by_heap),
            ("against the least data kept alive", &report.by_live),
            ("against a heap that is touched at its first use", &report.by_touch),
        ];
        let compared = compared.iter().filter(|(_, all)| !all.is_empty());
        for (title, all) in compared.clone() {
            comparisons(out, title, all, settings.rate.is_some())?;
        }
        if compared.count() > 0 {
            lines(
                out,
                "CPU, collections and stopped time are a request: they do not depend on how much of the processors others left.",
                0,
            )?;
        }
        writeln!(out)?;
        Self::PUBLISHED.iter().try_for_each(|one| lines(out, &format!("{}: {}", one.what, one.said), 0))
    }

    fn picture(Results { report, .. }: &Results<Settings>) -> Picture {
        let title = "Requests a second, against small pages and the same heap";
        let mut picture = Picture::new(title, "times as many", Some(1.0));
        for one in &report.by_pages {
            picture.ratio(one.arm.name(), one.throughput);
        }
        picture
    }

    fn found(out: &mut dyn Write, lacking: &Lacking) -> io::Result<()> {
        let Some(missing) = &lacking.missing else { return Ok(()) };
        writeln!(out)?;
        lines(out, missing, 0)
    }

    fn ending(results: &Results<Settings>) -> Option<&'static str> {
        Some(match results.complete {
            _ if results.stopped => {
                "NOT complete: a signal ended it; the trials above are all that there are"
            }
            true => "complete: every arm has its figures, on pages that were verified in each trial",
            false => "NOT complete: an arm above lacks a figure",
        })
    }
}

fn table(out: &mut dyn Write, arms: &[RowOf<Settings>]) -> io::Result<()> {
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
    for ArmRow { arm, figures: one, counted, trials, page_share_min, .. } in arms {
        table.row([
            arm.heap(),
            arm.pages.name().to_string(),
            format!("{counted}/{trials}"),
            mean(one.requests_per_second),
            middle(one.p50_ms),
            middle(one.p99_ms),
            middle(one.p999_ms),
            one.errors.map_or("-".to_string(), |errors| errors.to_string()),
            middle(one.cpu_ms_per_request),
            percent(*page_share_min),
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
    for ArmRow { arm, figures: one, .. } in arms {
        table.row([
            arm.heap(),
            arm.pages.name().to_string(),
            mean(one.collections_per_minute),
            mean(one.collections_per_1000_requests),
            mean(one.gc_stopped_ms_per_second),
            mean(one.mean_stop_ms),
            one.longest_stop_ms.map_or("-".to_string(), number),
        ]);
    }
    table.write(out)?;
    lines(
        out,
        "CPU ms: of the server, a request. on pages: of the heap in memory, in the worst trial that counts.",
        0,
    )
}

/// At a fixed rate the throughput and the collections are the load's, and the latencies the server's.
fn comparisons(out: &mut dyn Write, title: &str, all: &[Comparison], at_rate: bool) -> io::Result<()> {
    writeln!(out, "\n{title}")?;
    let [first, third] = if at_rate { [">p50", ">p99"] } else { [">throughput", ">collections"] };
    let mut table = Table::new(["", first, ">CPU", third, ">stopped time", ">mean stop"]);
    for one in all {
        let [first, third] =
            if at_rate { [one.p50, one.p99] } else { [one.throughput, one.collections_per_request] };
        let cells = [first, one.cpu_per_request, third, one.gc_stopped_per_request, one.mean_stop].map(ratio);
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
