//! `marusa bench fork`: the tables, with the published one next to ours.

use super::cells::{lines, number, ratio, spread};
use super::picture::Picture;
use super::rounds::{Experiment, Nothing, Results, RowOf, machine, named};
use crate::base::{Bytes, counted};
use crate::experiment::arm_pages::PageMode;
use crate::experiment::bench::fork::{
    Arm, ArmFigures, Figures, Mechanism, OfChildren, PUBLISHED, Published, Report, Settings, Support, Trial,
    figures, report,
};
use crate::experiment::bench::rounds::Ratio;
use crate::experiment::bench::spread::Spread;
use crate::experiment::bench::trials::{ArmRow, OfArm};
use crate::show::table::Table;
use crate::show::units::{human, paragraph, prose};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// The mechanisms of each JDK; a dry run tries none.
#[derive(JsonSchema, Serialize)]
pub struct Found {
    pub jdks: Vec<Support>,
}

/// To start a JVM, to fill its heap and look at it, and for a child of a middle heap.
const SECONDS_BESIDE: f64 = 5.0;
const SECONDS_PER_CHILD: f64 = 0.03;

impl Experiment for Settings {
    named!("fork", 3, 2);
    type Arm = Arm;
    type Figures = Figures;
    type OfArm = Nothing;
    type Found = Found;
    type Summary = ArmFigures;
    type Report = Report;
    type Published = [Published; 4];
    const PUBLISHED: [Published; 4] = PUBLISHED;

    fn summary(&self, of: &OfArm<Arm, Figures>) -> ArmFigures {
        figures(self, of)
    }

    fn report(&self, _arms: &[Arm], rows: &[RowOf<Settings>], trials: &[Trial]) -> Report {
        report(self, rows, trials)
    }

    fn seconds_each(&self) -> f64 {
        // Once more while another thread writes.
        SECONDS_BESIDE + (self.children * (self.threads.len() + 1)) as f64 * SECONDS_PER_CHILD
    }

    fn head(&self) -> [String; 2] {
        let what = format!(
            "what it costs a JVM to start a process: /bin/false, {} children a figure, {}, seed {}",
            self.children,
            counted(self.rounds, "round"),
            self.seed
        );
        [what, machine(&self.machine)]
    }

    fn tables(out: &mut dyn Write, results: &Results<Settings>) -> io::Result<()> {
        let jdks = &results.found.jdks;
        support(out, jdks)?;
        let ways =
            jdks.iter().flat_map(|jdk| jdk.had().into_iter().map(|mechanism| (jdk.jdk.as_str(), mechanism)));
        let ways: Vec<_> = ways
            .flat_map(|(jdk, by)| (0..results.settings.threads.len()).map(move |at| Way { jdk, by, at }))
            .collect();
        match (results.settings.heaps.as_slice(), ways.len()) {
            (&[heap], 2..) => by_way(out, results, &ways, heap)?,
            _ => ways.iter().try_for_each(|way| by_heap(out, results, way))?,
        }
        afterwards(out, results)?;
        published(out, results)
    }

    fn picture(Results { report, .. }: &Results<Settings>) -> Picture {
        let title = "Starting a process: small pages by large ones";
        let mut picture = Picture::new(title, "times as long", Some(1.0));
        for one in &report.by_pages {
            let heap = heap_name(one.arm.heap_bytes);
            for known in PUBLISHED.iter().filter(|known| known.heap_bytes == one.arm.heap_bytes) {
                picture.published(format!("{heap}, 2008"), known.ratio, &number(known.ratio));
            }
            picture.ratio(heap, one.ratios.first().and_then(|of| of.total_ms));
        }
        picture
    }

    fn found(out: &mut dyn Write, found: &Found) -> io::Result<()> {
        match found.jdks.is_empty() {
            true => lines(out, "a mechanism that a JDK does not have is left out", 0),
            false => Ok(()),
        }
    }
}

fn support(out: &mut dyn Write, support: &[Support]) -> io::Result<()> {
    for one in support {
        let had: Vec<String> = one.had().into_iter().map(Mechanism::name).collect();
        let had = if had.is_empty() { "none".to_string() } else { had.join(", ") };
        writeln!(out, "JDK {} has {had}", one.jdk)?;
        for tried in &one.mechanisms {
            let words = match (&tried.why_not, &tried.said) {
                (Some(why), _) => format!("not {}: {why}", tried.mechanism.name()),
                (None, Some(said)) => format!("{} says: {}", tried.mechanism.name(), said.replace('\n', " ")),
                (None, None) => continue,
            };
            paragraph(out, "  ", "  ", &words)?;
        }
    }
    Ok(())
}

/// Heaps are whole MiB.
fn heap_name(bytes: Bytes) -> String {
    match bytes.is_multiple_of(1 << 30) {
        true => format!("{} GiB", bytes >> 30),
        false => format!("{} MiB", bytes >> 20),
    }
}

fn ms(figure: Option<Spread>) -> String {
    figure.map_or("-".to_string(), |one| format!("{} ms", number(one.median)))
}

/// One way to start processes: the JDK, its mechanism, and how many threads do it, by the place in the settings.
struct Way<'a> {
    jdk: &'a str,
    by: Mechanism,
    at: usize,
}

impl Way<'_> {
    fn arm(&self, heap_bytes: Bytes, pages: PageMode) -> Arm {
        Arm { jdk: self.jdk.to_string(), heap_bytes, pages, mechanism: self.by }
    }

    /// A cell for each kind of pages, and the ratio of the two that are compared.
    fn cells(
        &self,
        Results { settings, arms, report, .. }: &Results<Settings>,
        heap: Bytes,
        cell: fn(Option<Spread>) -> String,
    ) -> Vec<String> {
        let of = |pages: &PageMode| cell(total(arms, &self.arm(heap, *pages), self.at));
        let found = settings.compared().map(|(small, _)| by_pages(report, &self.arm(heap, small), self.at));
        let found = found.map(|found| ratio(found.and_then(|found| found.total_ms)));
        settings.pages.iter().map(of).chain(found).collect()
    }
}

/// Of the children that a number of threads started: the one at this place of the settings.
fn total(rows: &[RowOf<Settings>], arm: &Arm, at: usize) -> Option<Spread> {
    rows.iter().find(|row| row.arm == *arm)?.figures.children.get(at)?.total_ms
}

/// Small pages by large ones.
fn by_pages<'a>(report: &'a Report, arm: &Arm, at: usize) -> Option<&'a OfChildren<Ratio>> {
    report.by_pages.iter().find(|one| one.arm == *arm)?.ratios.get(at)
}

const FROM_START_TO_END: &str = "ms from start to end, median of the children";

/// The titles of `Way::cells`.
fn titles(settings: &Settings) -> Vec<String> {
    let ratio = settings.compared().map(|(small, large)| format!(">{small} / {large}"));
    settings.pages.iter().map(|pages| format!(">{pages}")).chain(ratio).collect()
}

fn by_heap(out: &mut dyn Write, results: &Results<Settings>, way: &Way) -> io::Result<()> {
    let Results { settings, report, .. } = results;
    let (pages, threads) = (&settings.pages, settings.threads[way.at]);
    let who = format!("JDK {}, {}, {}", way.jdk, way.by.name(), counted(threads, "thread"));
    prose(out, &format!("\n{who}: {FROM_START_TO_END} (of all rounds)"))?;
    let titles = std::iter::once("heap".to_string()).chain(titles(settings));
    let mut table = Table::new(titles).without_room(&[pages.len() + 1, pages.len()]);
    for heap in &settings.heaps {
        table.row(std::iter::once(heap_name(*heap)).chain(way.cells(results, *heap, spread)));
    }
    if settings.heaps.len() > 1 {
        let slope = |pages: &PageMode| {
            let mut lines = report.by_gib.iter().filter(|one| one.jdk == way.jdk && one.mechanism == way.by);
            let line = lines.find(|one| one.pages == *pages && one.threads == threads);
            line.and_then(|one| one.ms_per_gib).map_or("-".to_string(), |ms| format!("{ms:+.2} ms"))
        };
        table.row(std::iter::once("by GiB".to_string()).chain(pages.iter().map(slope)));
    }
    table.write(out)?;
    let Some((small, large)) = settings.compared() else { return Ok(()) };
    let start = |heap: &Bytes| {
        let found = by_pages(report, &way.arm(*heap, small), way.at)?.start_ms?;
        Some(format!("{} {}", heap_name(*heap), ratio(Some(found))))
    };
    let starts: Vec<String> = settings.heaps.iter().filter_map(start).collect();
    if starts.is_empty() {
        return Ok(());
    }
    lines(out, &format!("{small} / {large} of start() alone: {}", starts.join(", ")), 0)
}

/// One heap, started in several ways: they are compared.
fn by_way(out: &mut dyn Write, results: &Results<Settings>, ways: &[Way], heap: Bytes) -> io::Result<()> {
    let settings = results.settings;
    prose(out, &format!("\n{}: {FROM_START_TO_END}", heap_name(heap)))?;
    let mut table =
        Table::new(["JDK", "launch", ">threads"].map(String::from).into_iter().chain(titles(settings)));
    for way in ways {
        let who = [way.jdk.to_string(), way.by.name().to_string(), settings.threads[way.at].to_string()];
        table.row(who.into_iter().chain(
            way.cells(results, heap, |found| found.map_or("-".to_string(), |found| number(found.median))),
        ));
    }
    table.write(out)
}

/// What fork leaves behind: pages that the next write must make writable again.
fn afterwards(out: &mut dyn Write, results: &Results<Settings>) -> io::Result<()> {
    let jdks = &results.found.jdks;
    let is_fork = |one: &&RowOf<Settings>| one.arm.mechanism == Mechanism::Fork;
    let mut forked: Vec<_> = results.arms.iter().filter(is_fork).collect();
    if forked.is_empty() {
        return Ok(());
    }
    forked.sort_by_key(|one| (jdks.iter().position(|jdk| jdk.jdk == one.arm.jdk), one.arm.heap_bytes));
    prose(out, "\nFORK: writing once into each page of 3/4 of the heap")?;
    let mut table = Table::new([
        "JDK",
        "heap",
        "pages",
        ">page tables",
        ">before",
        ">after",
        ">faults",
        ">while",
        ">faults a child",
    ]);
    for ArmRow { arm, figures: ArmFigures { page_table_bytes, sweep, .. }, .. } in forked {
        let count =
            |figure: Option<Spread>| figure.map_or("-".to_string(), |one| format!("{:.0}", one.median));
        table.row([
            arm.jdk.clone(),
            heap_name(arm.heap_bytes),
            arm.pages.to_string(),
            page_table_bytes.map_or("-".to_string(), |bytes| human(bytes.median as Bytes)),
            ms(sweep.before_ms),
            ms(sweep.after_ms),
            count(sweep.more_faults),
            ms(sweep.while_ms),
            count(sweep.while_faults_per_child),
        ]);
    }
    table.write(out)?;
    let text = "page tables: the parent's, of which fork copies those of private memory; before and after the children; while: \
                another thread writes all the time";
    lines(out, text, 0)
}

/// Seconds there, milliseconds a child here: how many children those of 2008 were is not known.
fn published(out: &mut dyn Write, results: &Results<Settings>) -> io::Result<()> {
    let Results { settings, arms, report, .. } = results;
    let Some((small, large)) = settings.compared() else { return Ok(()) };
    let Some(forked) = arms.iter().rfind(|one| one.arm.mechanism == Mechanism::Fork) else {
        return Ok(());
    };
    let jdk = &forked.arm.jdk;
    prose(out, &format!("\npublished in 2008 (RHEL 5.2, 4 GB, JDK 1.6.0_10) next to JDK {jdk}, FORK"))?;
    let titles = [
        "heap",
        ">large",
        ">normal",
        ">ratio",
        &format!(">{large}"),
        &format!(">{small}"),
        ">ratio (interval)",
    ];
    let mut table = Table::new(titles);
    for Published { heap_bytes, large_seconds, normal_seconds, ratio: was } in PUBLISHED {
        let arm = |pages| Arm { heap_bytes, pages, ..forked.arm.clone() };
        let of = |pages| ms(total(arms, &arm(pages), 0));
        table.row([
            heap_name(heap_bytes),
            format!("{large_seconds} s"),
            format!("{normal_seconds} s"),
            format!("{was:.2}"),
            of(large),
            of(small),
            ratio(by_pages(report, &arm(small), 0).and_then(|found| found.total_ms)),
        ]);
    }
    table.write(out)
}
