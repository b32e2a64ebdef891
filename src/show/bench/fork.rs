//! `marusa bench fork`: the tables, with the published one next to ours.

mod json;

use super::figures::hanging;
use super::rounds::{left_out, machine};
use crate::base::Bytes;
use crate::experiment::bench::fork::{
    Arm, Children, Figures, Mechanism, PUBLISHED, Planned, Ratio, Results, Settings, Spread, Support,
};
use crate::show::others;
use crate::show::table::Table;
use crate::show::units::{counted, human, paragraph, prose};
pub use json::BenchForkDocument;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// Everything that was found.
#[derive(JsonSchema, Serialize)]
pub struct Report {
    pub settings: Settings,
    #[serde(rename = "jdks")]
    pub support: Vec<Support>,
    #[serde(flatten)]
    pub results: Results,
    /// A signal ended it before its time.
    pub stopped: bool,
}

impl Report {
    /// Whether every arm that there is has a figure.
    pub fn is_complete(&self) -> bool {
        let has_figures = |arm: &Arm| self.results.spread(arm, &|_| Some(1.0)).is_some();
        !self.stopped && self.settings.arms(&self.support).iter().all(has_figures)
    }

    /// The pages that are compared: small ones by the largest that were measured.
    fn compared(&self) -> Option<(&str, &str)> {
        let has = |name: &str| self.settings.pages.iter().any(|pages| pages == name);
        let large = ["hugetlb-2m", "hugetlb-1g", "thp"].into_iter().find(|name| has(name))?;
        has("4k").then_some(("4k", large))
    }
}

type OfChildren = fn(&Children) -> f64;

/// The children that some threads start: wall time of all by their number, as published; the middle child from its start to
/// its end; `ProcessBuilder.start()` alone, of the middle child and of the fastest.
const OF_CHILDREN: [(&str, OfChildren); 4] = [
    ("each", |one| one.ms_each),
    ("total", |one| one.total_ms),
    ("start", |one| one.start_ms),
    ("start_fastest", |one| one.start_ms_min),
];

fn of_children(threads: usize, of: OfChildren) -> impl Fn(&Figures) -> Option<f64> {
    move |figures| figures.children.iter().find(|one| one.threads == threads).map(of)
}

fn total(threads: usize) -> impl Fn(&Figures) -> Option<f64> {
    of_children(threads, |one| one.total_ms)
}

pub fn text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    head(out, &report.settings)?;
    support(out, &report.support)?;
    for jdk in &report.support {
        for mechanism in jdk.had() {
            for threads in &report.settings.threads {
                by_heap(out, report, &jdk.jdk, mechanism, *threads)?;
            }
        }
        afterwards(out, report, &jdk.jdk)?;
    }
    published(out, report)?;
    let others = others::line(report.results.trials.iter().map(|trial| trial.others));
    others.iter().try_for_each(|line| prose(out, line))?;
    left_out(out, report.results.left_out(), report.stopped)
}

fn head(out: &mut dyn Write, settings: &Settings) -> io::Result<()> {
    let title = format!(
        "what it costs a JVM to start a process: /bin/false, {} children a figure, {}, seed {}",
        settings.children, settings.rounds, settings.seed
    );
    hanging(out, &title)?;
    hanging(out, &machine(&settings.machine))
}

fn support(out: &mut dyn Write, support: &[Support]) -> io::Result<()> {
    for one in support {
        let had: Vec<&str> = one.had().into_iter().map(Mechanism::name).collect();
        writeln!(
            out,
            "JDK {} has {}",
            one.jdk,
            if had.is_empty() { "none".to_string() } else { had.join(", ") }
        )?;
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

/// "12.1 (11.0 to 13.2)".
fn spread(spread: Option<Spread>) -> String {
    match spread {
        None => "-".to_string(),
        Some(Spread { middle, from, to, .. }) => format!("{} ({} to {})", ms(middle), ms(from), ms(to)),
    }
}

/// Three digits that count.
fn ms(number: f64) -> String {
    match number.abs() {
        100.0.. => format!("{number:.0}"),
        10.0..100.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

fn times(number: f64) -> String {
    match number {
        1000.0.. => "over 999".to_string(),
        100.0.. => format!("{number:.0}"),
        _ => format!("{number:.1}"),
    }
}

fn ratio(ratio: Option<Ratio>) -> String {
    match ratio {
        None => "-".to_string(),
        Some(Ratio { ratio, low, high, .. }) => {
            format!("{} ({} to {})", times(ratio), times(low), times(high))
        }
    }
}

/// Heaps are whole MiB.
fn heap_name(bytes: Bytes) -> String {
    match bytes.is_multiple_of(1 << 30) {
        true => format!("{} GiB", bytes >> 30),
        false => format!("{} MiB", bytes >> 20),
    }
}

fn by_heap(
    out: &mut dyn Write,
    report: &Report,
    jdk: &str,
    mechanism: Mechanism,
    threads: usize,
) -> io::Result<()> {
    let by = counted(threads, "thread");
    prose(
        out,
        &format!(
            "\nJDK {jdk}, {}, {by}: ms from start to end, median of the children (of all rounds)",
            mechanism.name()
        ),
    )?;
    let compared = report.compared();
    let pages = &report.settings.pages;
    let ratio_title = compared.map(|(small, large)| format!(">{small} / {large}"));
    let titles = std::iter::once("heap".to_string()).chain(pages.iter().map(|pages| format!(">{pages}")));
    let mut table = Table::new(titles.chain(ratio_title)).without_room(&[pages.len() + 1, pages.len()]);
    for heap in &report.settings.heaps {
        let arm = |pages: &str| Arm::new(jdk, *heap, pages, mechanism);
        let of = |pages: &String| spread(report.results.spread(&arm(pages), &total(threads)));
        let found = compared
            .map(|(small, large)| ratio(report.results.ratio(&arm(small), &arm(large), &total(threads))));
        table.row(std::iter::once(heap_name(*heap)).chain(pages.iter().map(of)).chain(found));
    }
    if report.settings.heaps.len() > 1 {
        let slope = |pages: &String| {
            let arms = report.settings.of_heaps(jdk, pages, mechanism);
            let slope = report.results.ms_per_gib(&arms, &total(threads));
            slope.map_or("-".to_string(), |ms| format!("{ms:+.2} ms"))
        };
        table.row(std::iter::once("by GiB".to_string()).chain(pages.iter().map(slope)));
    }
    table.write(out)
}

/// What fork leaves behind: pages that the next write must make writable again.
fn afterwards(out: &mut dyn Write, report: &Report, jdk: &str) -> io::Result<()> {
    let had = report.support.iter().find(|one| one.jdk == jdk).map(Support::had).unwrap_or_default();
    if !had.contains(&Mechanism::Fork) {
        return Ok(());
    }
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
    for heap in &report.settings.heaps {
        for pages in &report.settings.pages {
            let arm = Arm::new(jdk, *heap, pages, Mechanism::Fork);
            let of = |figure: &dyn Fn(&Figures) -> Option<f64>| {
                report.results.spread(&arm, figure).map(|spread| spread.middle)
            };
            let cell = |number: Option<f64>, unit: &str| {
                number.map_or("-".into(), |one| format!("{}{unit}", ms(one)))
            };
            let count = |number: Option<f64>| number.map_or("-".into(), |one| format!("{one:.0}"));
            let tables =
                of(&|figures| Some(figures.page_table_bytes? as f64)).map(|bytes| human(bytes as Bytes));
            table.row([
                heap_name(*heap),
                pages.clone(),
                tables.unwrap_or("-".into()),
                cell(of(&|figures| Some(figures.sweep.as_ref()?.before_ms)), " ms"),
                cell(of(&|figures| Some(figures.sweep.as_ref()?.after_ms)), " ms"),
                count(of(&|figures| Some(figures.sweep.as_ref()?.more_faults()? as f64))),
                cell(of(&|figures| Some(figures.sweep_while.as_ref()?.sweep_ms)), " ms"),
                count(of(&|figures| figures.sweep_while.as_ref()?.faults_per_child)),
            ]);
        }
    }
    table.write(out)?;
    hanging(
        out,
        "page tables: the parent's, of which fork copies those of private memory; before and after the children; while: \
         another thread writes all the time",
    )
}

/// Seconds there, milliseconds a child here: how many children those of 2008 were is not known.
fn published(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let Some((small, large)) = report.compared() else { return Ok(()) };
    let forking: Vec<&Support> =
        report.support.iter().filter(|one| one.had().contains(&Mechanism::Fork)).collect();
    let Some(jdk) = forking.last() else { return Ok(()) };
    let threads = report.settings.threads.first().copied().unwrap_or(1);
    prose(out, &format!("\npublished in 2008 (RHEL 5.2, 4 GB, JDK 1.6.0_10) next to JDK {}, FORK", jdk.jdk))?;
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
    for (mib, large_s, normal_s) in PUBLISHED {
        let arm = |pages: &str| Arm::new(&jdk.jdk, mib << 20, pages, Mechanism::Fork);
        let of = |pages: &str| {
            let found = report.results.spread(&arm(pages), &total(threads));
            found.map_or("-".to_string(), |found| format!("{} ms", ms(found.middle)))
        };
        table.row([
            heap_name(mib << 20),
            format!("{large_s} s"),
            format!("{normal_s} s"),
            format!("{:.2}", normal_s / large_s),
            of(large),
            of(small),
            ratio(report.results.ratio(&arm(small), &arm(large), &total(threads))),
        ]);
    }
    table.write(out)
}

pub fn dry_run(out: &mut dyn Write, settings: &Settings, planned: &[Planned]) -> io::Result<()> {
    head(out, settings)?;
    let names: Vec<&str> = settings.mechanisms.iter().map(|one| one.name()).collect();
    let trials = planned.len() * names.len() * settings.rounds;
    hanging(out, &format!("at most {}, a JVM each, by {}", counted(trials, "trial"), names.join(", ")))?;
    for one in planned {
        let Planned { jdk, pages, heap_bytes, steps, why_not } = one;
        let what = match (why_not, steps.as_slice()) {
            (Some(why), _) => format!("cannot be: {why}"),
            (None, []) => "the host stays as it is".to_string(),
            (None, steps) => format!("for as long as its trials take: {}", steps.join("; ")),
        };
        hanging(out, &format!("JDK {jdk}, {}, {pages}: {what}", heap_name(*heap_bytes)))?;
    }
    prose(out, "dry run: nothing was started or changed")
}
