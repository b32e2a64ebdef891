//! `marusa bench trim`: what giving freed memory back costs a program that compiles all the time, and what it brings two servers
//! that share too little memory.

mod host;
mod jit;
mod pressure;

use super::account_of::count;
use super::jdk::{Jdk, JdkArgs};
use super::machine;
use super::rounds::{self, Bench, Run, SavedArgs};
use crate::act::ask_jdk;
use crate::act::programs::Programs;
use crate::base::{Bytes, refuse};
use crate::cmd::{Failure, amount};
use crate::experiment::arm_pages::ArmError;
use crate::experiment::bench::trials::Arranged;
use crate::experiment::bench::trim::{Arm, Means, Part, Settings, Way};
use crate::show::bench::trim::Found;
use host::Scarcity;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// jit: a program that compiles all the time; swap: two servers that share too little memory, which needs root; with commas
    #[arg(long, value_name = "PARTS", value_delimiter = ',', default_value = "jit,swap", value_enum)]
    part: Vec<Part>,
    /// Rounds of the first part: one JVM of each way
    #[arg(long, value_name = "COUNT", default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..=100))]
    rounds: u32,
    /// Rounds of the second part: two JVMs of each way
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=100))]
    swap_rounds: u32,
    /// Only these methods of returning memory, separated by commas; none is always run
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    arms: Vec<String>,
    /// Interval at which memory is returned, for methods by time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = amount::duration)]
    every: Duration,
    /// Classes that one JVM of the first part compiles
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    classes: u32,
    /// Live heap of each server
    #[arg(long, value_name = "SIZE", default_value = "96M", value_parser = amount::bytes)]
    live: Bytes,
    /// Memory of malloc's that a burst of a server takes and frees
    #[arg(long, value_name = "SIZE", default_value = "96M", value_parser = amount::bytes)]
    burst: Bytes,
    /// Bursts of each server
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    bursts: u32,
    /// Memory that both share; by default both fit with one burst, and not with two, by a measured server
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes)]
    memory: Option<Bytes>,
    #[command(flatten)]
    saved: SavedArgs,
    /// Machine-readable, schema marusa/bench-trim/3
    #[arg(long)]
    json: bool,
}

/// A run of an arm, or a measurement before all.
struct Job<'a> {
    jdk: &'a Jdk,
    settings: &'a Settings,
    programs: &'a Programs,
    options: &'a [String],
    means: &'a Means,
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdk = args.jdk.one()?;
    let (ways, mut missing) = ways(args, &jdk)?;
    let swap_options = pressure::options(args.live, args.burst);
    let settings = Settings {
        machine: machine::here(),
        jdk: jdk.version.clone(),
        every_seconds: args.every.as_secs_f64(),
        jit_options: jit::OPTIONS.join(" "),
        swap_options: swap_options.join(" "),
        classes: args.classes,
        live_bytes: args.live,
        burst_bytes: args.burst,
        bursts: args.bursts,
        rounds: args.rounds as usize,
        swap_rounds: args.swap_rounds as usize,
        seed: args.saved.turns.seed(),
    };
    let state = args.saved.turns.state_directory()?;
    let mut memory_bytes = args.memory.unwrap_or(pressure::expected(&settings));
    let plan = |memory: Bytes| Scarcity::plan(&state, memory, pressure::swap_bytes(&settings));
    let mut scarcity = match args.part.contains(&Part::Swap).then(|| plan(memory_bytes)).transpose() {
        Ok(scarcity) => scarcity,
        // The first part needs no right.
        Err(error) if args.part.contains(&Part::Jit) => {
            missing.push(format!("the part with swap: {error:#}"));
            None
        }
        Err(error) => return Err(error),
    };
    if scarcity.is_some() && args.memory.is_none() && !args.saved.turns.dry_run {
        memory_bytes = pressure::memory(&jdk, &settings, &swap_options)?;
        scarcity = Some(plan(memory_bytes)?);
    }
    let has = |part: &Part| args.part.contains(part) && (*part == Part::Jit || scarcity.is_some());
    let parts = [Part::Jit, Part::Swap].into_iter().filter(has);
    let arms: Vec<Arm> = parts.flat_map(|part| ways.iter().map(move |way| Arm { part, way: *way })).collect();
    let live = Live { jdk: &jdk, every: args.every, swap_options, scarcity };
    rounds::run(live, settings, &arms, &Found { memory_bytes, missing }, &args.saved, args.json)
}

/// The ways that this JDK has, and which not.
fn ways(args: &Args, jdk: &Jdk) -> anyhow::Result<(Vec<Way>, Vec<String>)> {
    let unlock = ["-XX:+UnlockExperimentalVMOptions".to_string()];
    let flags = ask_jdk::flags(&jdk.home, &unlock).map_err(|error| Failure::usage(error.to_string()))?;
    let (mut ways, mut missing) = (Way::ALL.to_vec(), Vec::new());
    if !flags.flags.contains("TrimNativeHeapInterval") {
        ways.retain(|way| *way != Way::JdkInterval);
        missing.push("jdk interval: this JDK has no -XX:TrimNativeHeapInterval".to_string());
    }
    let unknown = args.arms.iter().find(|name| !ways.iter().any(|way| way.name() == name.as_str()));
    if let Some(name) = unknown {
        let names: Vec<&str> = ways.iter().map(|way| way.name()).collect();
        refuse!("method '{name}' is unavailable with JDK {}; available: {}", jdk.version, names.join(", "));
    }
    if !args.arms.is_empty() {
        ways.retain(|way| *way == Way::AsItIs || args.arms.iter().any(|name| name == way.name()));
    }
    Ok((ways, missing))
}

struct Live<'a> {
    jdk: &'a Jdk,
    every: Duration,
    swap_options: Vec<String>,
    /// `None`: the part with swap is not run.
    scarcity: Option<Scarcity>,
}

impl Bench for Live<'_> {
    type Of = Settings;

    fn arranged(&mut self, _settings: &Settings, arm: &Arm) -> Result<Arranged<Means>, ArmError> {
        let means = arm.way.means(self.every);
        let (mut options, steps) = match (arm.part, &self.scarcity) {
            (Part::Swap, Some(scarcity)) => (self.swap_options.clone(), scarcity.steps()),
            _ => (jit::OPTIONS.map(str::to_string).to_vec(), Vec::new()),
        };
        options.extend(means.options.iter().cloned());
        Ok(Arranged { options, more: means, steps })
    }

    fn trial(&mut self, run: Run<Settings>) -> anyhow::Result<bool> {
        let Run { settings, programs, options, more, trial } = run;
        let job = Job { jdk: self.jdk, settings, programs, options: &options, means: &more };
        let done = match (trial.arm.part, &self.scarcity) {
            (Part::Swap, Some(scarcity)) => pressure::one(&job, scarcity, trial),
            _ => jit::one(&job, trial),
        };
        count(done, trial)
    }
}
