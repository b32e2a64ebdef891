//! `marusa bench account`: the steady state by the paper's areas, two runs side by side, and the areas over time.

mod html;

use super::cells::lines;
use super::fork::machine;
use crate::experiment::bench::account_series::{
    self as experiment, LATE_SHARE, Mirror, PUBLISHED_NON_JAVA_MB, PUBLISHED_THREADS, Program, Row, Run,
    Settings, WARM_UP_SHARE,
};
use crate::pages::subject::size;
use crate::show::json::gap;
pub use html::html;
use serde_json::{Map, Value, json as value};
use std::io::{self, Write};

pub const SCHEMA: &str = "marusa/bench-account/1";

pub struct Results<'a> {
    pub settings: &'a Settings,
    pub runs: &'a [Run],
    /// A signal ended it before its time.
    pub stopped: bool,
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
        runs.iter().try_for_each(|run| one_run(out, run, results.settings))?;
        if let [first, second, ..] = runs.as_slice() {
            side_by_side(out, first, second)?;
        }
    }
    if results.stopped {
        writeln!(out, "\nended by a signal: the last run above is shorter than it was to be")?;
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
    match run.program {
        Program::DayTrader => format!("DayTrader on TomEE, run {}: {} clients", run.run, settings.clients),
        Program::Compiler => format!("Scala's compiler, run {}", run.run),
    }
}

fn one_run(out: &mut dyn Write, run: &Run, settings: &Settings) -> io::Result<()> {
    writeln!(out)?;
    let mut facts =
        vec![title(run, settings), run.jvm_options.join(" "), format!("{} looks", run.samples.len())];
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
        writeln!(out, "NOT complete: it was looked at for a part of its time only")?;
    }
    let rows = experiment::steady(run);
    let Some(sum) = rows.iter().find(|row| row.row.is_none()) else {
        writeln!(out, "nothing was seen after the first tenth of the time")?;
        return gaps(out, run);
    };
    let published = if run.program == Program::DayTrader { "  2010 (WebSphere, J9)" } else { "" };
    writeln!(
        out,
        "{:<24} {:>9} {:>9} {:>9} {:>9} {:>7}{published}",
        "MiB resident",
        format!("at {}", at(run, LATE_SHARE)),
        "mean",
        "lowest",
        "highest",
        "share"
    )?;
    for row in &rows {
        let (name, said) = match row.row {
            Some(one) => (one.title(), one.published().to_string()),
            None => ("all but the Java heap", format!("{PUBLISHED_NON_JAVA_MB} MB after 9 minutes")),
        };
        let said = if run.program == Program::DayTrader { said } else { String::new() };
        let share = match row.row {
            Some(Row::JavaHeap) => String::new(),
            _ => format!("{:.1} %", row.late_bytes * 100.0 / sum.late_bytes.max(1.0)),
        };
        let line = format!(
            "{name:<24} {:>9} {:>9} {:>9} {:>9} {share:>7}  {said}",
            mib(row.late_bytes),
            mib(row.mean_bytes),
            mib(row.low_bytes),
            mib(row.high_bytes)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    if let Some(last) = run.samples.last() {
        let beside = match run.program {
            Program::DayTrader => format!(" (2010: {PUBLISHED_THREADS})"),
            Program::Compiler => String::new(),
        };
        writeln!(out, "{:<24} {:>9}{beside}", "threads", last.threads)?;
    }
    let text = format!(
        "at {}: the mean of the last tenth of the time; mean, lowest and highest: from {} on",
        at(run, LATE_SHARE),
        at(run, WARM_UP_SHARE)
    );
    lines(out, &text, 0)?;
    mirror(out, experiment::mirror(run))?;
    gaps(out, run)
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
        "JIT work and malloc-then-freed go together by {} (what there is), {} (what changes between looks); -1 is a mirror",
        figure(mirror.levels),
        figure(mirror.changes)
    );
    lines(out, &text, 0)
}

fn gaps(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let torn = run.samples.iter().filter(|sample| sample.is_torn).count();
    if torn > 0 {
        let text = format!(
            "in {torn} of {} looks the program changed what was being read; what could not be told then is unattributed",
            run.samples.len()
        );
        lines(out, &text, 0)?;
    }
    run.gaps.iter().try_for_each(|gap| lines(out, &format!("gap: {gap}"), 0))
}

fn side_by_side(out: &mut dyn Write, first: &Run, second: &Run) -> io::Result<()> {
    writeln!(
        out,
        "\n{}: runs {} and {} side by side, moment by moment",
        first.program, first.run, second.run
    )?;
    writeln!(
        out,
        "{:<24} {:>10} {:>10} {:>14} {:>14} {:>10}",
        "MiB resident", "first", "second", "mean distance", "most", "of both"
    )?;
    for one in experiment::differences(first, second) {
        writeln!(
            out,
            "{:<24} {:>10} {:>10} {:>14} {:>14} {:>10}",
            one.row.title(),
            mib(one.mean_first_bytes),
            mib(one.mean_second_bytes),
            mib(one.distance_bytes),
            mib(one.distance_max_bytes),
            one.relative.map_or("-".to_string(), |share| format!("{:.1} %", share * 100.0))
        )?;
    }
    Ok(())
}

pub fn json(results: &Results) -> Value {
    let runs: Vec<Value> = results.runs.iter().map(run_json).collect();
    let pairs = results.settings.programs.iter().filter_map(|program| {
        let runs = results.of(*program);
        let [first, second, ..] = runs.as_slice() else { return None };
        Some(value!({
            "program": program,
            "first_run": first.run,
            "second_run": second.run,
            "rows": experiment::differences(first, second).iter().map(difference).collect::<Vec<_>>(),
        }))
    });
    let gaps: Vec<Value> = results.runs.iter().flat_map(|run| run.gaps.iter().map(gap)).collect();
    value!({
        "schema": SCHEMA,
        "at": results.at,
        "settings": results.settings,
        "stopped": results.stopped,
        "published": {"non_java_mb_after_9_minutes": PUBLISHED_NON_JAVA_MB, "threads": PUBLISHED_THREADS, "clients": 30},
        "runs": runs,
        "side_by_side": pairs.collect::<Vec<_>>(),
        "gaps": gaps,
    })
}

fn difference(one: &experiment::Difference) -> Value {
    value!({
        "area": one.row.name(),
        "mean_first_bytes": one.mean_first_bytes,
        "mean_second_bytes": one.mean_second_bytes,
        "distance_bytes": one.distance_bytes,
        "distance_max_bytes": one.distance_max_bytes,
        "relative": one.relative,
    })
}

fn run_json(run: &Run) -> Value {
    let steady: Vec<Value> = experiment::steady(run)
        .iter()
        .map(|row| {
            value!({
                "area": row.row.map_or("all_but_java_heap", Row::name),
                "late_bytes": row.late_bytes,
                "mean_bytes": row.mean_bytes,
                "low_bytes": row.low_bytes,
                "high_bytes": row.high_bytes,
            })
        })
        .collect();
    let series: Map<String, Value> = Row::all()
        .into_iter()
        .map(|row| (format!("{}_bytes", row.name()), value!(run.series(row))))
        .collect();
    let of =
        |figure: fn(&experiment::Sample) -> Value| run.samples.iter().map(figure).collect::<Vec<Value>>();
    value!({
        "program": run.program,
        "run": run.run,
        "complete": run.is_complete,
        "jvm_options": run.jvm_options,
        "load": run.load,
        "cpu_share": run.cpu_share,
        "said": run.said,
        "late_from_seconds": run.wanted_seconds * LATE_SHARE,
        "steady_from_seconds": run.wanted_seconds * WARM_UP_SHARE,
        "steady": steady,
        "jit_work_and_malloc_freed": experiment::mirror(run),
        "seconds": run.seconds(),
        "took_ms": of(|sample| value!(sample.took_ms)),
        "threads": of(|sample| value!(sample.threads)),
        "kernel_resident_bytes": of(|sample| value!(sample.kernel_resident_bytes)),
        "torn": of(|sample| value!(sample.is_torn)),
        "series": series,
        "gaps": run.gaps.iter().map(gap).collect::<Vec<_>>(),
    })
}

pub fn dry_run(out: &mut dyn Write, settings: &Settings, missing: &[&str]) -> io::Result<()> {
    head(out, settings)?;
    let runs = settings.runs * settings.programs.len();
    let minutes = runs as f64 * (settings.seconds + SECONDS_BESIDE) / 60.0;
    writeln!(out, "\n{runs} runs, some {:.0} minutes in all:", minutes.ceil())?;
    for program in &settings.programs {
        let what = match program {
            Program::DayTrader => {
                format!("daytrader: -Xmx{}, {} clients", size(settings.heap_bytes), settings.clients)
            }
            Program::Compiler => format!("compiler: -Xmx{}", size(settings.batch_heap_bytes)),
        };
        lines(out, &format!("{what} {}", settings.options.join(" ")), 2)?;
    }
    missing.iter().try_for_each(|why| lines(out, why, 0))?;
    writeln!(out, "\ndry run: nothing was started")
}

/// To start the server and to fill its database.
const SECONDS_BESIDE: f64 = 20.0;

pub fn dry_run_json(settings: &Settings, missing: &[&str]) -> Value {
    value!({"schema": SCHEMA, "dry_run": true, "settings": settings, "missing": missing, "gaps": []})
}
