//! `marusa bench account`: the account every second over a run of a server under load and of a batch program that has much to
//! compile; what is steady of it, and how far two runs of the same program differ.

mod live;

use super::jdk::{Jdk, JdkArgs};
use super::machine;
use super::saved::{self, Saved};
use super::throughput::server_jdk;
use crate::act::programs::Programs;
use crate::act::server::recipe;
use crate::act::signals::{self, Blocked};
use crate::base::{Bytes, Refused, refuse, rfc3339};
use crate::cmd::{Failure, amount, answer, check_output, write_output};
use crate::experiment::bench::account_series::{self as experiment, Program, Run, Settings};
use crate::show::bench::account as show;
use live::Live;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// Which programs, with commas: a server under load, and batch programs that run again and again
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "daytrader,compiler")]
    program: Vec<Program>,
    /// How often each: two can be compared
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// How long each is looked at
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "10m")]
    duration: Duration,
    /// How often it is looked at
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "1s")]
    interval: Duration,
    /// Maximum Java heap for the server
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, default_value = "256m")]
    heap: Bytes,
    /// Maximum Java heap for a batch program: little, so that the rest is seen
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, default_value = "128m")]
    batch_heap: Bytes,
    /// Clients of the server that ask again as soon as they are answered
    #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// An option of the JVM, as often as needed
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    option: Vec<String>,
    /// A directory in which a recipe has put the server
    #[arg(long, value_name = "DIR")]
    server: Option<PathBuf>,
    /// A directory in which a recipe has put the compiler
    #[arg(long, value_name = "DIR")]
    compiler: Option<PathBuf>,
    /// Bring what is missing of them from Maven Central, into the cache
    #[arg(long)]
    fetch: bool,
    /// One offline page with the areas over time
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Draw the areas of the first run over time in this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Every sample of every run, for a spreadsheet
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Keep each run in this file as it ends, and go on from there when the file is given again
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Say what would be run; do nothing
    #[arg(long)]
    dry_run: bool,
    /// Machine-readable, schema marusa/bench-account/2
    #[arg(long)]
    json: bool,
}

const RUNS_SCHEMA: &str = "marusa/bench-account-runs/1";

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdk = server_jdk(&args.jdk)?;
    let mut settings = settings(args, &jdk)?;
    let installed = installed(args);
    if args.dry_run {
        return dry_run(args, &settings, &installed);
    }
    let installed: Vec<(Program, PathBuf)> = installed
        .into_iter()
        .map(|(program, directory)| directory.map(|directory| (program, directory)))
        .collect::<Result<_, _>>()?;
    [&args.csv, &args.html, &args.svg].into_iter().flatten().try_for_each(|path| check_output(path))?;
    // Held to the end: a signal ends the run that is under way, and what was seen until then is shown.
    let blocked = Blocked::start();
    let programs = Programs::unpack().map_err(|gap| Failure::usage(gap.to_string()))?;
    let mut saved = Saved::open(args.save.as_deref(), RUNS_SCHEMA, &mut settings)?;
    let mut runs: Vec<Run> = saved.take();
    let live = Live { jdk: &jdk, programs: &programs, settings: &settings };
    let stopped = measure(&live, &installed, &mut runs, &mut saved)?;
    let results = show::Results { settings: &settings, runs: &runs, stopped, at: rfc3339(SystemTime::now()) };
    if let Some(path) = &args.csv {
        write_output(path, &experiment::csv(&runs))?;
    }
    if let Some(path) = &args.html {
        write_output(path, &show::html(&results))?;
    }
    if let Some((path, picture)) = args.svg.as_ref().zip(show::svg(&results)) {
        write_output(path, &picture)?;
    }
    answer(args.json, || show::BenchAccountDocument::of(&results), |out| show::text(out, &results))?;
    drop(blocked);
    Ok(if !stopped && runs.iter().all(|run| run.is_complete) { 0 } else { 1 })
}

fn settings(args: &Args, jdk: &Jdk) -> anyhow::Result<Settings> {
    if args.interval > args.duration {
        refuse!("--interval is longer than --duration: nothing would be seen");
    }
    let mut programs = args.program.clone();
    programs.dedup();
    Ok(Settings {
        machine: machine::here(),
        jdk: jdk.version.clone(),
        programs,
        runs: args.runs as usize,
        seconds: args.duration.as_secs_f64(),
        interval_seconds: args.interval.as_secs_f64(),
        heap_bytes: args.heap,
        batch_heap_bytes: args.batch_heap,
        clients: args.clients,
        options: args.option.clone(),
    })
}

/// Nothing here hangs on chance.
impl saved::Settings for Settings {}

/// Where each program lies, or what would bring it.
fn installed(args: &Args) -> Vec<(Program, Result<PathBuf, Refused>)> {
    let fetch = args.fetch && !args.dry_run;
    let of = |program: &Program| {
        let (recipe, named) = match program {
            Program::DayTrader => (&recipe::DAY_TRADER, &args.server),
            Program::Compiler => (&recipe::COMPILER, &args.compiler),
            Program::Lucene => (&recipe::LUCENE, &None),
            Program::H2 => (&recipe::H2, &None),
            Program::Xalan => (&recipe::XALAN, &None),
            Program::Pmd => (&recipe::PMD, &None),
        };
        let directory = recipe.directory(named.as_deref(), fetch);
        (*program, directory.map_err(|error| error.to_string().into()))
    };
    args.program.iter().map(of).collect()
}

fn dry_run(
    args: &Args,
    settings: &Settings,
    installed: &[(Program, Result<PathBuf, Refused>)],
) -> anyhow::Result<u8> {
    let missing: Vec<&str> = installed
        .iter()
        .filter_map(|(_, directory)| directory.as_ref().err().map(|why| why.0.as_str()))
        .collect();
    answer(
        args.json,
        || show::BenchAccountDocument::dry_run(settings, &missing),
        |out| show::dry_run(out, settings, &missing),
    )?;
    Ok(0)
}

/// Whether a signal ended it before its time: the run until then is among the others, and is not saved.
fn measure(
    live: &Live,
    installed: &[(Program, PathBuf)],
    runs: &mut Vec<Run>,
    saved: &mut Saved<Run>,
) -> anyhow::Result<bool> {
    // Runs of the same program follow each other as late as may be: what a machine has kept of the one helps the next.
    for number in 1..=live.settings.runs {
        for (program, directory) in installed {
            if runs.iter().any(|run| run.program == *program && run.run == number) {
                continue;
            }
            let run = live.run(*program, directory, number)?;
            let is_stopped = !run.is_complete && live::is_interrupted(&run) || signals::pending();
            if !is_stopped {
                saved.add(&run)?;
            }
            runs.push(run);
            if is_stopped {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
