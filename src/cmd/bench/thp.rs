//! `marusa bench thp`: what the kernel's policy for transparent huge pages costs a build server.

mod bystander;
mod live;

use super::answer;
use super::jdk::JdkArgs;
use super::machine;
use super::rounds::{Plan, RoundsArgs};
use super::saved::{self, Saved};
use crate::act::fragments;
use crate::act::programs::Programs;
use crate::act::signals::{self, Blocked};
use crate::base::Bytes;
use crate::cmd::{Failure, amount};
use crate::experiment::bench::thp::{Arm, Memory, Policy, Settings, Trial, report};
use crate::show::bench::thp as show;
use live::Live;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// Policies, with commas: enabled and defrag are always always, always defer, madvise madvise, never never
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "always,defer,madvise,never"
    )]
    policies: Vec<Policy>,
    /// Free memory, with commas: in small pieces, as after weeks of work; in pieces between pages that the kernel cannot move; or as
    /// it is on this machine
    #[arg(long, value_enum, value_name = "KINDS", value_delimiter = ',', default_value = "pieces")]
    memory: Vec<Memory>,
    /// Builds at once, with commas
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "4",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    builds: Vec<u16>,
    /// JVMs in each trial
    #[arg(long, value_name = "COUNT", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    steps: u32,
    /// The heap of each JVM, at most
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, default_value = "512m")]
    heap: Bytes,
    /// What stays free in small pieces; if not given, 640 MiB for each build at once, and 2.5 GiB at least
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes)]
    free: Option<Bytes>,
    /// Rounds of one run of each arm, in random order; at least two for an interval
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Save each trial in this file as it ends, and continue from an existing file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    #[command(flatten)]
    turns: RoundsArgs,
    /// Machine-readable, schema marusa/bench-thp/2
    #[arg(long)]
    json: bool,
    /// How the process that holds memory is started (act/fragments.rs)
    #[arg(long, value_name = "BYTES", hide = true)]
    hold_fragments: Option<Bytes>,
    #[arg(long, hide = true, requires = "hold_fragments")]
    pinned_fragments: bool,
}

const TRIALS_SCHEMA: &str = "marusa/bench-thp-trials/1";
const FREE_PER_BUILD: Bytes = 640 << 20;
const FREE_MIN: Bytes = 2560 << 20;

pub fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(leave) = args.hold_fragments {
        fragments::hold(leave, args.pinned_fragments).map_err(|gap| Failure::usage(gap.to_string()))?;
    }
    let jdk = args.jdk.one()?;
    let most_builds = args.builds.iter().copied().max().unwrap_or(1);
    let mut settings = Settings {
        machine: machine::here(),
        jdk: jdk.version.clone(),
        steps: args.steps as usize,
        heap_bytes: args.heap,
        free_bytes: args.free.unwrap_or(FREE_MIN.max(FREE_PER_BUILD * u64::from(most_builds))),
        rounds: args.rounds as usize,
        seed: args.turns.seed(),
    };
    let arms = arms(args);
    let state = args.turns.state_directory()?;
    // Held to the end: what is changed is restored before a signal ends us.
    let blocked = Blocked::start();
    let programs = Programs::unpack().map_err(|gap| Failure::usage(gap.to_string()))?;
    let live = |settings| Live { jdk: &jdk, programs: &programs, state, settings, fragments: None };
    if args.turns.dry_run {
        return dry_run(args, &live(&settings), &arms);
    }
    let mut saved = Saved::open(args.save.as_deref(), TRIALS_SCHEMA, &mut settings)?;
    let mut trials: Vec<Trial> = saved.take();
    let mut live = live(&settings);
    let plan = Plan {
        name: "bench thp",
        arms: &arms,
        rounds: settings.rounds,
        seed: settings.seed,
        quiet: args.turns.quiet,
    };
    let stopped = plan.measure(&mut trials, &mut saved, |round, arm| {
        let trial = live.trial(round, arm);
        Ok((!signals::pending()).then_some(trial))
    })?;
    let results = show::Results { settings: &settings, arms: &arms, trials: &trials, stopped };
    answer::print(args.json, || show::BenchThpDocument::of(&results), |out| show::text(out, &results))?;
    drop(live);
    drop(programs);
    drop(blocked);
    let is_complete = report(&arms, &trials).arms.iter().all(|arm| arm.counted > 0);
    Ok(if is_complete && !stopped { 0 } else { 1 })
}

/// All combinations.
fn arms(args: &Args) -> Vec<Arm> {
    let mut arms = Vec::new();
    for memory in &args.memory {
        for builds in &args.builds {
            let of = |policy: &Policy| Arm { memory: *memory, policy: *policy, builds: usize::from(*builds) };
            arms.extend(args.policies.iter().map(of));
        }
    }
    arms
}

impl saved::Settings for Settings {
    fn take_seed(&mut self, of: &Settings) {
        self.seed = of.seed;
    }
}

fn dry_run(args: &Args, live: &Live, arms: &[Arm]) -> anyhow::Result<u8> {
    let planned: Vec<_> = arms.iter().map(|arm| live.planned(arm)).collect();
    answer::print(
        args.json,
        || show::BenchThpDocument::dry_run(live.settings, &planned),
        |out| show::dry_run(out, live.settings, &planned),
    )?;
    Ok(0)
}
