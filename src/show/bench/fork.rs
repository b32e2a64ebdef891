//! `marusa bench fork`: the tables, with the published one next to ours.

use super::cells::{lines, number, ratio, spread};
use super::picture::Picture;
use super::rounds::{Experiment, Nothing, Results, RowOf, machine};
use crate::base::{Bytes, counted};
use crate::experiment::arm_pages::PageMode;
use crate::experiment::bench::fork::{
    Arm, ArmFigures, Figures, Mechanism, PUBLISHED, Published, Report, Settings, Support, Trial, figures,
    report,
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
    const NAME: &'static str = "fork";
    const SCHEMA: &'static str = "marusa/bench-fork/3";
    const TRIALS_SCHEMA: &'static str = "marusa/bench-fork-trials/2";
    const DOCUMENT: &'static str = "BenchForkDocument";
    type Arm = Arm;
    type Figures = Figures;
    type OfArm = Nothing;
    type Found = Found;
    type Summary = ArmFigures;
    type Report = Report;
    type Published = [Published; 4];
    const PUBLISHED: [Published; 4] = PUBLISHED;

    fn turns(&mut self) -> (&mut usize, &mut u64) {
        (&mut self.rounds, &mut self.seed)
    }

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
        support(out, &results.found.jdks)?;
        for jdk in &results.found.jdks {
            for mechanism in jdk.had() {
                let mut all = 0..results.settings.threads.len();
                all.try_for_each(|at| by_heap(out, results, &jdk.jdk, mechanism, at))?;
            }
            afterwards(out, results, &jdk.jdk)?;
        }
        published(out, results)
    }

    fn picture(Results { report, .. }: &Results<Settings>) -> Option<Picture> {
        let title = "Starting a process: small pages by large ones";
        let mut picture = Picture::new(title, "times as long", Some(1.0));
        for one in &report.by_pages {
            let heap = heap_name(one.arm.heap_bytes);
            for known in PUBLISHED.iter().filter(|known| known.heap_bytes == one.arm.heap_bytes) {
                picture.published(format!("{heap}, 2008"), known.ratio, None, &number(known.ratio));
            }
            picture.ratio(heap, one.ratios.first().and_then(|of| of.total_ms));
        }
        Some(picture)
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

/// Of the children that a number of threads started: the one at this place of the settings.
fn total(rows: &[RowOf<Settings>], arm: &Arm, at: usize) -> Option<Spread> {
    rows.iter().find(|row| row.arm == *arm)?.figures.children.get(at)?.total_ms
}

/// Small pages by large ones.
fn by_pages(report: &Report, arm: &Arm, at: usize) -> Option<Ratio> {
    report.by_pages.iter().find(|one| one.arm == *arm)?.ratios.get(at)?.total_ms
}

fn by_heap(
    out: &mut dyn Write,
    Results { settings, arms, report, .. }: &Results<Settings>,
    jdk: &str,
    mechanism: Mechanism,
    at: usize,
) -> io::Result<()> {
    let (pages, threads) = (&settings.pages, settings.threads[at]);
    let title = format!(
        "\nJDK {jdk}, {}, {}: ms from start to end, median of the children (of all rounds)",
        mechanism.name(),
        counted(threads, "thread")
    );
    prose(out, &title)?;
    let compared = settings.compared();
    let ratio_title = compared.map(|(small, large)| format!(">{small} / {large}"));
    let titles = std::iter::once("heap".to_string()).chain(pages.iter().map(|pages| format!(">{pages}")));
    let mut table = Table::new(titles.chain(ratio_title)).without_room(&[pages.len() + 1, pages.len()]);
    for heap in &settings.heaps {
        let arm = |pages| Arm { jdk: jdk.to_string(), heap_bytes: *heap, pages, mechanism };
        let of = |pages: &PageMode| spread(total(arms, &arm(*pages), at));
        let found = compared.map(|(small, _)| ratio(by_pages(report, &arm(small), at)));
        table.row(std::iter::once(heap_name(*heap)).chain(pages.iter().map(of)).chain(found));
    }
    if settings.heaps.len() > 1 {
        let slope = |pages: &PageMode| {
            let mut lines = report.by_gib.iter().filter(|one| one.jdk == jdk && one.mechanism == mechanism);
            let line = lines.find(|one| one.pages == *pages && one.threads == threads);
            line.and_then(|one| one.ms_per_gib).map_or("-".to_string(), |ms| format!("{ms:+.2} ms"))
        };
        table.row(std::iter::once("by GiB".to_string()).chain(pages.iter().map(slope)));
    }
    table.write(out)
}

/// What fork leaves behind: pages that the next write must make writable again.
fn afterwards(out: &mut dyn Write, results: &Results<Settings>, jdk: &str) -> io::Result<()> {
    let is_fork = |one: &&RowOf<Settings>| one.arm.jdk == jdk && one.arm.mechanism == Mechanism::Fork;
    let mut forked: Vec<_> = results.arms.iter().filter(is_fork).collect();
    if forked.is_empty() {
        return Ok(());
    }
    forked.sort_by_key(|one| one.arm.heap_bytes);
    prose(out, &format!("\nJDK {jdk}, FORK: writing once into each page of 3/4 of the heap"))?;
    let mut table = Table::new([
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
            ratio(by_pages(report, &arm(small), 0)),
        ]);
    }
    table.write(out)
}
