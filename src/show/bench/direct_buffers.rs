//! `marusa bench direct-buffers`: the account at each step, freed memory and where it is, and the published figures.

use super::figures::{gaps, lines, mib, off, range};
use crate::base::Bytes;
use crate::experiment::bench::account_row::{self, AccountRow};
use crate::experiment::bench::direct_buffers::{Buffers, OFF_MAX, PUBLISHED, Published, Run, Step};
use crate::experiment::bench::spread::Spread;
use crate::map::model::GapRow;
use crate::map::{Account, Area};
use crate::show::json::Head;
use crate::show::table::Table;
use crate::show::units::{counted, human, indented, paragraph};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// What was asked for, and where.
#[derive(JsonSchema, Serialize)]
pub struct Setup {
    pub machine: String,
    pub options: String,
    pub jdks: Vec<String>,
    #[serde(skip)]
    pub runs: u64,
    pub buffers: u64,
    #[serde(rename = "buffer_bytes")]
    pub size: Bytes,
    pub page_aligned: bool,
}

const STEPS: [Step; 4] = [Step::Before, Step::Allocated, Step::Freed, Step::Trimmed];
/// The areas of the table; what else there is, is one column.
const COLUMNS: [(&str, &[Area]); 5] = [
    ("JAVA HEAP", &[Area::JavaHeap]),
    ("DIRECT", &[Area::DirectBuffers]),
    ("JVM WORK", &[Area::JvmWork]),
    ("FREED", &[Area::MallocFreed]),
    ("OVERHEAD", &[Area::Overhead]),
];

pub fn dry_run(out: &mut dyn Write, setup: &Setup) -> io::Result<()> {
    head(out, setup)?;
    lines(
        out,
        &format!("dry run: nothing was started. It would be, for each of {}:", setup.jdks.join(", ")),
    )?;
    lines(out, &format!("java {}", setup.options))
}

fn head(out: &mut dyn Write, setup: &Setup) -> io::Result<()> {
    let each =
        if setup.page_aligned { format!("{} and a page", human(setup.size)) } else { human(setup.size) };
    lines(
        out,
        &format!("{} direct buffers of {each}, taken, freed, trimmed; {}", setup.buffers, setup.options),
    )?;
    lines(
        out,
        &format!("{}; {} of each kind; MiB resident, medians", setup.machine, counted(setup.runs, "JVM")),
    )?;
    writeln!(out)
}

pub fn text(out: &mut dyn Write, setup: &Setup, runs: &[Run], ended: Option<&str>) -> io::Result<()> {
    head(out, setup)?;
    for ((jdk, threads), runs) in kinds(runs) {
        writeln!(out, "JDK {jdk}, {threads} {}", if threads == 1 { "thread" } else { "threads" })?;
        let of_columns = COLUMNS.iter().map(|(title, _)| format!(">{title}"));
        let titles = ["STEP", ">RSS"].map(str::to_string).into_iter().chain(of_columns);
        let rest = [">THE REST", ">TRIMMABLE"].map(str::to_string);
        let mut table = Table::new(titles.chain(rest)).indented(2);
        STEPS.iter().for_each(|step| table.row(row(*step, &runs)));
        table.write(out)?;
        verdict(out, &runs)?;
        writeln!(out)?;
    }
    published(out, setup)?;
    ended.map_or(Ok(()), |why| writeln!(out, "\nnot complete: {why}"))
}

/// By JDK and threads, in the order in which they ran.
fn kinds(runs: &[Run]) -> Vec<((&str, u64), Vec<&Run>)> {
    let mut kinds: Vec<((&str, u64), Vec<&Run>)> = Vec::new();
    for run in runs {
        let key = (run.jdk.as_str(), run.buffers.threads);
        match kinds.iter_mut().find(|(one, _)| *one == key) {
            Some((_, runs)) => runs.push(run),
            None => kinds.push((key, vec![run])),
        }
    }
    kinds
}

fn row(step: Step, runs: &[&Run]) -> Vec<String> {
    let accounts: Vec<&Account> = runs.iter().filter_map(|run| run.at(step)).collect();
    let spread = |figure: &dyn Fn(&Account) -> Option<Bytes>| {
        mib(Spread::of(accounts.iter().map(|account| figure(account).map(|bytes| bytes as f64))))
    };
    let mut cells =
        vec![step.word().to_string(), spread(&|account| Some(account.kernel_or_resident_bytes()))];
    cells.extend(COLUMNS.iter().map(|(_, areas)| spread(&|account| account.known_sum(areas))));
    cells.extend([spread(&rest), spread(&|account| account.trimmable_bytes())]);
    cells
}

fn rest(account: &Account) -> Option<Bytes> {
    let shown: Option<Bytes> = COLUMNS.iter().map(|(_, areas)| account.known_sum(areas)).sum();
    Some(account.totals.resident_bytes.saturating_sub(shown?))
}

fn verdict(out: &mut dyn Write, runs: &[&Run]) -> io::Result<()> {
    let worst = |figure: &dyn Fn(&Run) -> Option<f64>| {
        Spread::of(runs.iter().map(|run| figure(run).map(f64::abs))).map(|spread| spread.max)
    };
    let signed = |bytes: Option<i64>| bytes.map(|bytes| bytes as f64);
    let spread = |figure: &dyn Fn(&Run) -> Option<f64>| range(Spread::of(runs.iter().map(|run| figure(run))));
    let expected = runs.first().map_or(0, |run| run.buffers.expected_bytes());
    let lines = [
        format!(
            "direct buffers against the {} that the program took: off by {} at most",
            human(expected),
            off(worst(&Run::direct_off))
        ),
        format!(
            "freed: {} held as malloc-then-freed, {} returned by itself; together off by {} at most",
            spread(&|run| signed(run.held_bytes())),
            spread(&|run| signed(run.returned_bytes())),
            off(worst(&Run::freed_off))
        ),
        match runs.iter().find_map(|run| run.trimmed.as_ref().err()) {
            Some(why) => format!("not trimmed: {why}"),
            None => format!("trimming gave {} back", spread(&|run| signed(run.trimmed_bytes()))),
        },
    ];
    for line in lines {
        paragraph(out, "  ", "  ", &line)?;
    }
    if runs.iter().any(|run| run.survivors().is_some_and(|left| left > 0)) {
        indented(out, "some buffers outlived System.gc()", 2)?;
    }
    let broken = runs.iter().filter(|run| !run.holds()).count();
    if broken > 0 {
        indented(out, &format!("{broken} of {} are off by more than {}", runs.len(), off(Some(OFF_MAX))), 2)?;
    }
    Ok(())
}

fn published(out: &mut dyn Write, setup: &Setup) -> io::Result<()> {
    let Published { jvm_work_mib, buffers_mib, freed_jvm_work_growth_mib, freed_malloc_growth_mib } =
        PUBLISHED;
    let page = Buffers { count: 10_000, bytes: 32 << 10, threads: 1, page_aligned: true };
    let text = format!(
        "published (OOPSLA 2010; 10,000 x 32 KB, heap 8 MB, 32-bit J9 Java 6, x86): JVM work {jvm_work_mib} MB, of it \
         buffers {buffers_mib}; after freeing and System.gc() JVM work {freed_jvm_work_growth_mib} and malloc-then-freed \
         +{freed_malloc_growth_mib}. Before JDK 7 a buffer took a page more than its bytes: 10,000 x 36 KiB are {} MiB{}",
        page.expected_bytes() as f64 / 1048576.0,
        if setup.page_aligned { "" } else { " (--page-aligned measures that)" }
    );
    paragraph(out, "", "", &text)
}

/// `marusa bench direct-buffers --json`.
#[derive(JsonSchema, Serialize)]
pub struct BenchDirectBuffersDocument<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    setup: &'a Setup,
    published: Published,
    runs: Vec<RunRow<'a>>,
    ended: Option<&'a str>,
    gaps: Vec<&'a GapRow>,
}

#[derive(JsonSchema, Serialize)]
struct RunRow<'a> {
    jdk: &'a str,
    run: usize,
    threads: u64,
    expected_bytes: Bytes,
    steps: Vec<StepRow<'a>>,
    direct_off_share: Option<f64>,
    held_bytes: Option<i64>,
    returned_bytes: Option<i64>,
    freed_off_share: Option<f64>,
    surviving_buffers: Option<u64>,
    trimmed_bytes: Option<i64>,
    trimmed_by: Option<&'a str>,
    not_trimmed: Option<&'a str>,
}

#[derive(JsonSchema, Serialize)]
struct StepRow<'a> {
    #[serde(flatten, serialize_with = "account_row::serialize")]
    #[schemars(with = "AccountRow")]
    account: &'a Account,
    step: Step,
}

impl<'a> BenchDirectBuffersDocument<'a> {
    pub fn of(setup: &'a Setup, runs: &'a [Run], ended: Option<&'a str>) -> BenchDirectBuffersDocument<'a> {
        BenchDirectBuffersDocument {
            head: Head::now("marusa/bench-direct-buffers/2"),
            setup,
            published: PUBLISHED,
            runs: runs.iter().map(RunRow::of).collect(),
            ended,
            gaps: gaps(runs.iter().flat_map(|run| run.steps.iter().map(|(_, account)| account))),
        }
    }
}

impl RunRow<'_> {
    fn of(run: &Run) -> RunRow<'_> {
        RunRow {
            jdk: &run.jdk,
            run: run.run,
            threads: run.buffers.threads,
            expected_bytes: run.buffers.expected_bytes(),
            steps: run.steps.iter().map(|(step, account)| StepRow { account, step: *step }).collect(),
            direct_off_share: run.direct_off(),
            held_bytes: run.held_bytes(),
            returned_bytes: run.returned_bytes(),
            freed_off_share: run.freed_off(),
            surviving_buffers: run.survivors(),
            trimmed_bytes: run.trimmed_bytes(),
            trimmed_by: run.trimmed.as_deref().ok(),
            not_trimmed: run.trimmed.as_ref().err().map(String::as_str),
        }
    }
}
