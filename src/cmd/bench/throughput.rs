//! `marusa bench throughput`: a real Java EE server under load, with small and large heaps, on small and large pages. Each trial
//! starts the server anew, on pages that were planned and made for it, and looks at its page tables before it counts.

mod live;

use super::answer;
use super::jdk::{Jdk, JdkArgs};
use super::machine;
use super::rounds::{ArmsArgs, Plan};
use super::saved::{self, Saved};
use crate::act::server::ServerError;
use crate::act::server::recipe::Recipe;
use crate::act::signals::Blocked;
use crate::base::Bytes;
use crate::cmd::{Failure, amount};
use crate::experiment::bench::throughput::{self as experiment, Arm, Settings, Trial};
use crate::experiment::bench::trials::Planned;
use crate::show::bench::throughput as show;
use live::{Live, Stop};
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// Sizes of the heap, with commas
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = amount::bytes, default_value = "256m,3584m")]
    heaps: Vec<Bytes>,
    /// The collector; the source's JVM had the parallel one
    #[arg(long, value_name = "NAME", default_value = "parallel")]
    gc: String,
    /// Clients that ask again as soon as they are answered
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// Load that is not measured, after each start
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "30s")]
    warm_up: Duration,
    /// How long each trial is measured; whole seconds
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "60s")]
    duration: Duration,
    /// Rounds of one run of each arm, in random order; at least two for an interval
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// A directory in which a recipe has put the server
    #[arg(long, value_name = "DIR")]
    server: Option<PathBuf>,
    /// Bring the server from Maven Central where it is missing, into the cache
    #[arg(long, conflicts_with = "server")]
    fetch: bool,
    #[command(flatten)]
    arms: ArmsArgs,
    /// Machine-readable, schema marusa/bench-throughput/2
    #[arg(long)]
    json: bool,
}

const TRIALS_SCHEMA: &str = "marusa/bench-throughput-trials/1";
/// The server does not start with less.
const HEAP_MIN: Bytes = 96 << 20;

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdk = server_jdk(&args.jdk)?;
    let mut settings = settings(args, &jdk)?;
    let arms = experiment::arms(&settings.heaps, &settings.pages);
    let state = args.arms.turns.state_directory()?;
    if args.arms.turns.dry_run {
        return dry_run(args, &settings, &jdk, &arms);
    }
    let recipe = Recipe::DayTrader.directory(args.server.as_deref(), args.fetch);
    let installed = recipe.map_err(|error| Failure::usage(error.to_string()))?;
    // Held to the end: what is changed is restored before a signal ends us.
    let blocked = Blocked::start();
    let mut saved = Saved::open(args.arms.save.as_deref(), TRIALS_SCHEMA, &mut settings)?;
    let mut trials: Vec<Trial> = saved.take();
    let live = Live { jdk: &jdk, installed: &installed, state, settings: &settings };
    let plan = Plan {
        name: "bench throughput",
        arms: &arms,
        rounds: settings.rounds,
        seed: settings.seed,
        quiet: args.arms.turns.quiet,
    };
    let stopped = plan.measure(&mut trials, &mut saved, |round, arm| match live.trial(round, *arm) {
        Ok(trial) => Ok(Some(trial)),
        Err(Stop::Signal) => Ok(None),
        Err(Stop::Failed(error)) => Err(error),
    })?;
    let results = show::Results { settings: &settings, arms: &arms, trials: &trials, stopped };
    answer::print(
        args.json,
        || show::BenchThroughputDocument::of(&results),
        |out| show::text(out, &results),
    )?;
    drop(blocked);
    Ok(if experiment::report(&arms, &trials).is_complete && !stopped { 0 } else { 1 })
}

/// The one that was named, or the newest on which the server runs.
pub(super) fn server_jdk(args: &JdkArgs) -> anyhow::Result<Jdk> {
    /// On 25 OpenEJB does not: it sets a policy of security, which that release has no more.
    const FEATURE_MAX: u32 = 21;
    let mut jdks = args.all()?;
    if !args.is_given() {
        jdks.retain(|jdk| jdk.feature <= FEATURE_MAX);
    }
    match jdks.as_slice() {
        [.., last] if !args.is_given() => Ok(last.clone()),
        [one] if one.feature <= FEATURE_MAX => Ok(one.clone()),
        [one] => Err(Failure::usage(format!(
            "the server runs on JDK 8 to {FEATURE_MAX}, and this is {}",
            one.feature
        ))),
        _ => {
            Err(Failure::usage(format!("the server needs one JDK of 8 to {FEATURE_MAX}: name it with --jdk")))
        }
    }
}

fn settings(args: &Args, jdk: &Jdk) -> anyhow::Result<Settings> {
    if let Some(heap) = args.heaps.iter().find(|heap| **heap < HEAP_MIN || !heap.is_multiple_of(1 << 20)) {
        let least = HEAP_MIN >> 20;
        return Err(Failure::usage(format!(
            "a heap of {heap} bytes: it must be whole MiB, {least} at least"
        )));
    }
    crate::pages::collectors::named(&args.gc, jdk.feature).map_err(Failure::usage)?;
    let mut heaps = args.heaps.clone();
    heaps.sort_unstable();
    heaps.dedup();
    let mut pages = args.arms.pages.clone();
    pages.dedup();
    Ok(Settings {
        machine: machine::here(),
        jdk: jdk.version.clone(),
        heaps,
        pages,
        gc: args.gc.clone(),
        clients: args.clients,
        warm_up_seconds: args.warm_up.as_secs_f64().ceil(),
        seconds: args.duration.as_secs_f64().ceil(),
        rounds: args.rounds as usize,
        seed: args.arms.turns.seed(),
    })
}

impl saved::Settings for Settings {
    fn take_seed(&mut self, of: &Settings) {
        self.seed = of.seed;
    }
}

fn dry_run(args: &Args, settings: &Settings, jdk: &Jdk, arms: &[Arm]) -> anyhow::Result<u8> {
    let planned: Vec<Planned<Arm>> = arms.iter().map(|arm| live::planned(jdk, settings, *arm)).collect();
    let missing =
        Recipe::DayTrader.directory(args.server.as_deref(), false).err().map(|error| error.to_string());
    answer::print(
        args.json,
        || show::BenchThroughputDocument::dry_run(settings, &planned, missing.as_deref()),
        |out| show::dry_run(out, settings, &planned, missing.as_deref()),
    )?;
    Ok(0)
}

/// How a failure that no trial can have without ends the command.
pub(super) fn failed(error: ServerError) -> anyhow::Error {
    match error {
        ServerError::NoLoad(_) => Failure::usage(error.to_string()),
        error => Failure::target(error.to_string()),
    }
}
