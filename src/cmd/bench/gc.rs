//! `marusa bench gc`: what a collector costs a program that gives it work, by collector, page size and number of GC threads.

mod live;

use super::answer;
use super::jdk::{Jdk, JdkArgs};
use super::machine;
use super::rounds::{ArmsArgs, Plan};
use super::saved::{self, Saved};
use crate::act::programs::Programs;
use crate::act::signals::{self, Blocked};
use crate::base::Bytes;
use crate::cmd::{Failure, amount};
use crate::experiment::arm_pages::PageMode;
use crate::experiment::bench::gc::{self as experiment, Arm, Settings, Threads, Trial};
use crate::pages::Vm;
use crate::show::bench::gc as show;
use live::Live;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// Collectors, with commas; one that a JDK does not have is left out and named
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "serial,parallel,g1,zgc,shenandoah"
    )]
    gc: Vec<String>,
    /// GC threads: own (what the JVM takes), 32-way (what it would take on such a machine), or a number
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "own,32-way,32")]
    gc_threads: Vec<Threads>,
    /// What the program keeps alive, with pointers of 4 bytes
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, default_value = "128m")]
    live: Bytes,
    /// The heap; three times the live set if not given
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes)]
    heap: Option<Bytes>,
    /// Threads that allocate; one a processor if not given
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    workers: Option<u32>,
    /// Work that is not measured, after each start
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "4s")]
    warm_up: Duration,
    /// How long each trial is measured
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "8s")]
    duration: Duration,
    /// Rounds of one run of each arm, in random order; at least two for an interval
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    arms: ArmsArgs,
    /// Machine-readable, schema marusa/bench-gc/2
    #[arg(long)]
    json: bool,
}

const TRIALS_SCHEMA: &str = "marusa/bench-gc-trials/1";
const HEAP_SHARE: Bytes = 3;
/// The initial heap of the JVMs of all collectors.
const HEAP_MIN: Bytes = 32 << 20;

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdks = jdks(args)?;
    let mut settings = settings(args, &jdks)?;
    let (arms, lacking) = arms(args, &jdks)?;
    let state = args.arms.turns.state_directory()?;
    // Held to the end: what is changed is restored before a signal ends us.
    let blocked = Blocked::start();
    let programs = Programs::unpack().map_err(|gap| Failure::usage(gap.to_string()))?;
    if args.arms.turns.dry_run {
        return dry_run(
            args,
            &Live { jdks: &jdks, programs: &programs, state, settings: &settings },
            &arms,
            &lacking,
        );
    }
    let mut saved = Saved::open(args.arms.save.as_deref(), TRIALS_SCHEMA, &mut settings)?;
    let mut trials: Vec<Trial> = saved.take();
    let live = Live { jdks: &jdks, programs: &programs, state, settings: &settings };
    let plan = Plan {
        name: "bench gc",
        arms: &arms,
        rounds: settings.rounds,
        seed: settings.seed,
        quiet: args.arms.turns.quiet,
    };
    let stopped = plan.measure(&mut trials, &mut saved, |round, arm| {
        let trial = live.trial(round, arm);
        // One that a signal cut has no log.
        Ok((trial.figures.gc.is_some() || !signals::pending()).then_some(trial))
    })?;
    let results =
        show::Results { settings: &settings, arms: &arms, lacking: &lacking, trials: &trials, stopped };
    answer::print(args.json, || show::BenchGcDocument::of(&results), |out| show::text(out, &results))?;
    drop(programs);
    drop(blocked);
    let is_complete = experiment::report(&arms, &trials).arms.iter().all(|arm| arm.counted > 0);
    Ok(if is_complete && !stopped { 0 } else { 1 })
}

fn jdks(args: &Args) -> anyhow::Result<Vec<Jdk>> {
    let jdks = args.jdk.given_or_newest()?;
    match jdks.iter().find(|jdk| jdk.vm != Vm::HotSpot) {
        Some(other) => {
            Err(Failure::usage(format!("{} is not HotSpot: its collectors are others", other.home.display())))
        }
        None => Ok(jdks),
    }
}

fn settings(args: &Args, jdks: &[Jdk]) -> anyhow::Result<Settings> {
    let heap_bytes =
        args.heap.unwrap_or(args.live.saturating_mul(HEAP_SHARE)).next_multiple_of(1 << 20).max(HEAP_MIN);
    if args.live == 0 || args.live > heap_bytes / 2 {
        return Err(Failure::usage(format!(
            "--live {} MiB: the live set must be something, and at most half of the heap of {} MiB",
            args.live >> 20,
            heap_bytes >> 20
        )));
    }
    let machine = machine::here();
    Ok(Settings {
        workers: args.workers.unwrap_or(machine.processors.max(1)),
        machine,
        jdks: jdks.iter().map(|jdk| jdk.version.clone()).collect(),
        live_bytes: args.live,
        heap_bytes,
        warm_up_seconds: args.warm_up.as_secs_f64(),
        seconds: args.duration.as_secs_f64(),
        rounds: args.rounds as usize,
        seed: args.arms.turns.seed(),
    })
}

impl saved::Settings for Settings {
    fn take_seed(&mut self, of: &Settings) {
        self.seed = of.seed;
    }
}

/// All combinations that there are, and the collectors that a JDK lacks.
fn arms(args: &Args, jdks: &[Jdk]) -> anyhow::Result<(Vec<Arm>, Vec<String>)> {
    let (mut arms, mut lacking) = (Vec::new(), Vec::new());
    for jdk in jdks {
        for gc in &args.gc {
            if let Err(why) = live::has(jdk, gc) {
                lacking.push(why);
                continue;
            }
            let one = |threads: &Threads| live::takes_threads(jdk, gc) || *threads == Threads::Own;
            for threads in args.gc_threads.iter().filter(|threads| one(threads)) {
                let of = |pages: &PageMode| Arm {
                    jdk: jdk.feature,
                    gc: gc.clone(),
                    pages: *pages,
                    threads: *threads,
                };
                arms.extend(args.arms.pages.iter().map(of));
            }
        }
    }
    match arms.is_empty() {
        true => Err(Failure::usage(format!("nothing is left to measure: {}", lacking.join("; ")))),
        false => Ok((arms, lacking)),
    }
}

fn dry_run(args: &Args, live: &Live, arms: &[Arm], lacking: &[String]) -> anyhow::Result<u8> {
    let planned: Vec<experiment::Planned> = arms.iter().map(|arm| live.planned(arm)).collect();
    answer::print(
        args.json,
        || show::BenchGcDocument::dry_run(live.settings, &planned, lacking),
        |out| show::dry_run(out, live.settings, &planned, lacking),
    )?;
    Ok(0)
}
