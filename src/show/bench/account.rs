//! `marusa bench account`: the steady state by the paper's areas, all runs together, and the areas over time.

mod html;

use super::cells::lines;
use super::rounds::machine;
use crate::base::Bytes;
use crate::experiment::bench::account_series::{
    self as experiment, LATE_SHARE, Mirror, PUBLISHED, Program, Published, Row, Run, Settings, WARM_UP_SHARE,
};
use crate::experiment::bench::http_load::HttpLoad;
use crate::map::model::GapRow;
use crate::pages::subject::size;
use crate::show::json::Head;
use crate::show::table::Table;
use crate::show::units::{counted, prose};
pub use html::{html, svg};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

const SUM: &str = "all but the Java heap";
const SCHEMA: &str = "marusa/bench-account/3";

#[derive(JsonSchema, Serialize)]
pub struct Results<'a> {
    pub settings: &'a Settings,
    #[serde(skip)]
    pub runs: &'a [Run],
    /// A signal ended it before its time.
    pub stopped: bool,
    #[serde(skip)]
    pub at: String,
}

impl Results<'_> {
    fn of(&self, program: Program) -> Vec<&Run> {
        self.runs.iter().filter(|run| run.program == program).collect()
    }
}

pub fn text(out: &mut dyn Write, results: &Results) -> io::Result<()> {
    head(out, results.settings)?;
    for program in &results.settings.programs {
        let runs = results.of(*program);
        for (at, run) in runs.iter().enumerate() {
            one_run(out, run, results.settings, at == 0 || runs.len() == 2)?;
        }
        over_runs(out, &runs)?;
    }
    if results.stopped {
        prose(out, "\nended by a signal: the last run above is shorter than it was to be")?;
    }
    Ok(())
}

fn head(out: &mut dyn Write, settings: &Settings) -> io::Result<()> {
    let what = format!(
        "the account over time: {} s a run, every {} s, JDK {}",
        settings.seconds, settings.interval_seconds, settings.jdk
    );
    lines(out, &what, 0)?;
    lines(out, &machine(&settings.machine), 0)
}

fn title(run: &Run, settings: &Settings) -> String {
    let clients = run.program.is_server().then(|| format!(": {} clients", settings.clients));
    format!("{}, run {}{}", run.program.title(), run.run, clients.unwrap_or_default())
}

/// Of more than two runs only the first has a table of its own: the table of all of them follows, and `--json` has each.
fn one_run(out: &mut dyn Write, run: &Run, settings: &Settings, has_table: bool) -> io::Result<()> {
    writeln!(out)?;
    let mut facts =
        vec![title(run, settings), run.jvm_options.join(" "), counted(run.samples.len(), "sample")];
    facts.extend(run.took_ms_median().map(|ms| format!("{ms:.0} ms each (median)")));
    facts.extend(run.cpu_share.map(|share| format!("{:.0} % of one CPU", share * 100.0)));
    facts.extend(run.load.as_ref().map(|load| {
        format!(
            "{:.0} requests/s, p99 {:.0} ms, {} errors",
            load.requests_per_second, load.p99_ms, load.errors
        )
    }));
    facts.extend(run.said.clone());
    lines(out, &facts.join(", "), 0)?;
    if !run.is_complete {
        prose(out, "NOT complete: it was looked at for a part of its time only")?;
    }
    let rows = experiment::steady(run);
    let Some(sum) = rows.iter().find(|row| row.row.is_none()) else {
        prose(out, "nothing was seen after the first tenth of the time")?;
        return gaps(out, run);
    };
    if has_table {
        steady_table(out, run, &rows, sum.late_bytes)?;
    }
    mirror(out, experiment::mirror(run))?;
    gaps(out, run)
}

fn steady_table(out: &mut dyn Write, run: &Run, rows: &[experiment::Steady], sum: f64) -> io::Result<()> {
    let (end, warm) = (at(run, LATE_SHARE), at(run, WARM_UP_SHARE));
    let late = format!(">at {end}");
    let titles = ["MiB resident", &late, ">mean", ">lowest", ">highest", ">share", "2010 (WebSphere, J9)"];
    let mut table = Table::new(titles);
    for row in rows {
        let (name, said) = match row.row {
            Some(one) => (one.title(), one.published().to_string()),
            None => (SUM, format!("{} MB after 9 minutes", PUBLISHED.non_java_mb_after_9_minutes)),
        };
        let said = if run.program.is_server() { said } else { String::new() };
        let share = match row.row {
            Some(Row::JavaHeap) => String::new(),
            _ => format!("{:.1} %", row.late_bytes * 100.0 / sum.max(1.0)),
        };
        let figures = [row.late_bytes, row.mean_bytes, row.low_bytes, row.high_bytes].map(mib);
        table.row([name.to_string()].into_iter().chain(figures).chain([share, said]));
    }
    if let Some(last) = run.samples.last() {
        let said = if run.program.is_server() { PUBLISHED.threads.to_string() } else { String::new() };
        let none = String::new;
        table.row(["threads".to_string(), last.threads.to_string(), none(), none(), none(), none(), said]);
    }
    table.write(out)?;
    let text = format!("at {end}: mean of the last tenth of the time; mean, lowest, highest: from {warm} on");
    lines(out, &text, 0)
}

/// "9 min", "54 s": a share of the time that was wanted.
fn at(run: &Run, share: f64) -> String {
    let seconds = run.wanted_seconds * share;
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

fn mib(bytes: f64) -> String {
    format!("{:.1}", bytes / 1048576.0)
}

fn mirror(out: &mut dyn Write, mirror: Mirror) -> io::Result<()> {
    let figure = |value: Option<f64>| value.map_or("unknown".to_string(), |value| format!("{value:+.2}"));
    let text = format!(
        "JIT work and malloc-then-freed go together by {} (what there is), {} (what changes between samples); -1 is a mirror",
        figure(mirror.levels),
        figure(mirror.changes)
    );
    lines(out, &text, 0)
}

fn gaps(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let torn = run.samples.iter().filter(|sample| sample.is_torn).count();
    if torn > 0 {
        let text = format!(
            "in {torn} of {} samples the program changed what was being read; what was then unclear is unattributed",
            run.samples.len()
        );
        lines(out, &text, 0)?;
    }
    run.gaps.iter().try_for_each(|gap| lines(out, &format!("gap: {gap}"), 0))
}

fn over_runs(out: &mut dyn Write, runs: &[&Run]) -> io::Result<()> {
    let [first, _, ..] = runs else { return Ok(()) };
    prose(out, &format!("\n{}: {} runs, and how far two of them are apart", first.program, runs.len()))?;
    let late = format!(">at {}", at(first, LATE_SHARE));
    let mut table = Table::new(["MiB resident", &late, ">least", ">most", ">two apart", ">of both"]);
    for one in experiment::over_runs(runs) {
        let late = one.late_bytes;
        table.row([
            one.row.map_or(SUM, Row::title).to_string(),
            format!("{} ±{}", mib(late.mean), late.plus_minus.map_or("-".to_string(), mib)),
            mib(one.late_low_bytes),
            mib(one.late_high_bytes),
            one.distance_bytes.map_or("-".to_string(), mib),
            one.relative.map_or("-".to_string(), |share| format!("{:.1} %", share * 100.0)),
        ]);
    }
    table.write(out)?;
    lines(out, "±: the 95 % interval of the mean; two apart: at the same moment, of all pairs of runs", 0)
}

/// `marusa bench account --json`.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum BenchAccountDocument<'a> {
    Measured {
        #[serde(flatten)]
        head: Head,
        #[serde(flatten)]
        results: &'a Results<'a>,
        published: Published,
        runs: Vec<RunRow<'a>>,
        over_runs: Vec<AllRuns>,
        gaps: Vec<GapRow>,
    },
    DryRun {
        #[serde(flatten)]
        head: Head,
        dry_run: bool,
        settings: &'a Settings,
        missing: &'a [&'a str],
        gaps: [GapRow; 0],
    },
}

/// A program that ran at least twice.
#[derive(JsonSchema, Serialize)]
pub struct AllRuns {
    program: Program,
    runs: usize,
    rows: Vec<experiment::OverRuns>,
}

/// A run, with a figure a sample in each list.
#[derive(JsonSchema, Serialize)]
pub struct RunRow<'a> {
    program: Program,
    run: usize,
    complete: bool,
    jvm_options: &'a [String],
    load: &'a Option<HttpLoad>,
    cpu_share: Option<f64>,
    said: &'a Option<String>,
    late_from_seconds: f64,
    steady_from_seconds: f64,
    steady: Vec<experiment::Steady>,
    jit_work_and_malloc_freed: Mirror,
    seconds: Vec<f64>,
    took_ms: Vec<f64>,
    threads: Vec<usize>,
    kernel_resident_bytes: Vec<Option<Bytes>>,
    torn: Vec<bool>,
    /// By "jit_code_bytes".
    series: BTreeMap<String, Vec<f64>>,
    gaps: Vec<GapRow>,
}

impl<'a> BenchAccountDocument<'a> {
    pub fn of(results: &'a Results) -> BenchAccountDocument<'a> {
        let all = |program: &Program| {
            let runs = results.of(*program);
            let rows = experiment::over_runs(&runs);
            (runs.len() > 1).then_some(AllRuns { program: *program, runs: runs.len(), rows })
        };
        BenchAccountDocument::Measured {
            head: Head::now(SCHEMA),
            results,
            published: PUBLISHED,
            runs: results.runs.iter().map(RunRow::of).collect(),
            over_runs: results.settings.programs.iter().filter_map(all).collect(),
            gaps: results.runs.iter().flat_map(|run| &run.gaps).map(GapRow::from).collect(),
        }
    }

    pub fn dry_run(settings: &'a Settings, missing: &'a [&'a str]) -> BenchAccountDocument<'a> {
        BenchAccountDocument::DryRun { head: Head::now(SCHEMA), dry_run: true, settings, missing, gaps: [] }
    }
}

impl RunRow<'_> {
    fn of(run: &Run) -> RunRow<'_> {
        fn each<T>(run: &Run, figure: fn(&experiment::Sample) -> T) -> Vec<T> {
            run.samples.iter().map(figure).collect()
        }
        let series = |row: Row| (format!("{}_bytes", row.name()), run.series(row));
        RunRow {
            program: run.program,
            run: run.run,
            complete: run.is_complete,
            jvm_options: &run.jvm_options,
            load: &run.load,
            cpu_share: run.cpu_share,
            said: &run.said,
            late_from_seconds: run.wanted_seconds * LATE_SHARE,
            steady_from_seconds: run.wanted_seconds * WARM_UP_SHARE,
            steady: experiment::steady(run),
            jit_work_and_malloc_freed: experiment::mirror(run),
            seconds: run.seconds(),
            took_ms: each(run, |sample| sample.took_ms),
            threads: each(run, |sample| sample.threads),
            kernel_resident_bytes: each(run, |sample| sample.kernel_resident_bytes),
            torn: each(run, |sample| sample.is_torn),
            series: Row::all().into_iter().map(series).collect(),
            gaps: run.gaps.iter().map(GapRow::from).collect(),
        }
    }
}

pub fn dry_run(out: &mut dyn Write, settings: &Settings, missing: &[&str]) -> io::Result<()> {
    head(out, settings)?;
    let runs = settings.runs * settings.programs.len();
    let minutes = runs as f64 * (settings.seconds + SECONDS_BESIDE) / 60.0;
    prose(out, &format!("\n{}, about {:.0} min in all:", counted(runs, "run"), minutes.ceil()))?;
    for program in &settings.programs {
        let what = match program.is_server() {
            true => format!("{program}: -Xmx{}, {} clients", size(settings.heap_bytes), settings.clients),
            false => format!("{program}: -Xmx{}", size(settings.batch_heap_bytes)),
        };
        lines(out, &format!("{what} {}", settings.options.join(" ")), 2)?;
    }
    missing.iter().try_for_each(|why| lines(out, why, 0))?;
    prose(out, "\ndry run: nothing was started")
}

/// To start the server and to fill its database.
const SECONDS_BESIDE: f64 = 20.0;
