//! `marusa bench trim`: what giving freed memory back costs a program that compiles all the time, and what it brings two servers
//! that share too little memory.

mod host;
mod jit;
mod pressure;

use super::account_of;
use super::answer;
use super::jdk::{Jdk, JdkArgs};
use crate::act::ask_jdk;
use crate::act::programs::Programs;
use crate::act::signals::Blocked;
use crate::base::Bytes;
use crate::cmd::quiet::{Quiet, QuietArgs};
use crate::cmd::{Failure, amount, progress};
use crate::experiment::bench::trim::{self as experiment, Arm, Round};
use crate::experiment::order;
use crate::os::busy::Others;
use crate::show::bench::trim as show;
use std::path::PathBuf;
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
    /// Seed that repeats the order of the methods
    #[arg(long)]
    seed: Option<u64>,
    /// Where the journal of changes of the host and the file to swap to are [default: $MARUSA_STATE, or /var/lib/marusa]
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,
    /// Show what would be run and changed, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    quiet: QuietArgs,
    /// Machine-readable, schema marusa/bench-trim/2
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Jit,
    Swap,
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdk = args.jdk.one()?;
    let (arms, missing) = arms(args, &jdk)?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let mut setup = show::Setup {
        machine: account_of::machine(),
        jdk: account_of::name(&jdk),
        arms,
        missing,
        every_seconds: args.every.as_secs_f64(),
        seed,
        jit_options: jit::OPTIONS.join(" "),
        swap_options: pressure::options(args).join(" "),
        classes: args.classes,
        live_bytes: args.live,
        burst_bytes: args.burst,
        bursts: args.bursts,
        memory_bytes: pressure::expected(args),
        steps: Vec::new(),
        is_dry_run: args.dry_run,
    };
    let scarcity = args
        .part
        .contains(&Part::Swap)
        .then(|| host::Scarcity::plan(args, pressure::expected(args)))
        .transpose();
    let mut results = show::Results {
        jit: Vec::new(),
        swap: Vec::new(),
        notes: Vec::new(),
        others: Vec::new(),
        ended: None,
    };
    let scarcity = match scarcity {
        Ok(scarcity) => scarcity,
        // The first part needs no right.
        Err(error) if args.part.contains(&Part::Jit) => {
            results.notes.push(format!("the part with swap was left out: {error:#}"));
            None
        }
        Err(error) => return Err(error),
    };
    setup.steps = scarcity.iter().flat_map(|one| one.steps.iter().map(|step| step.what.clone())).collect();
    let (mut error, mut held) = (None, None);
    if !args.dry_run {
        let programs = Programs::unpack().map_err(|gap| Failure::target(gap.to_string()))?;
        // A signal ends the experiment between two samples; the host is restored, and what was measured is shown.
        let blocked = Blocked::start();
        let arms = setup.arms.clone();
        let experiment = Experiment { args, jdk: &jdk, programs: &programs, arms: &arms, seed };
        error = experiment.run(scarcity.is_some(), &mut setup, &mut results).err();
        results.ended = error.as_ref().map(|error| format!("{error:#}"));
        held = Some((programs, blocked));
    }
    answer::print(
        args.json,
        || show::BenchTrimDocument::of(&setup, &results),
        |out| show::text(out, &setup, &results),
    )?;
    drop(held);
    answer::status(error, 0)
}

/// The ways that this JDK and this host have, and which not.
fn arms(args: &Args, jdk: &Jdk) -> anyhow::Result<(Vec<Arm>, Vec<String>)> {
    let unlock = ["-XX:+UnlockExperimentalVMOptions".to_string()];
    let flags = ask_jdk::flags(&jdk.home, &unlock).map_err(|error| Failure::usage(error.to_string()))?;
    let has_interval = flags.flags.contains("TrimNativeHeapInterval");
    let (mut arms, missing) = experiment::arms(has_interval, args.every, Ok(()));
    let unknown = args.arms.iter().find(|name| !arms.iter().any(|arm| arm.name == name.as_str()));
    if let Some(name) = unknown {
        let names: Vec<&str> = arms.iter().map(|arm| arm.name).collect();
        return Err(Failure::usage(format!(
            "method '{name}' is unavailable with JDK {}; available: {}",
            jdk.version,
            names.join(", ")
        )));
    }
    if !args.arms.is_empty() {
        arms.retain(|arm| {
            arm.name == experiment::AS_IT_IS || args.arms.iter().any(|name| name.as_str() == arm.name)
        });
    }
    Ok((arms, missing))
}

/// What both parts need.
struct Experiment<'a> {
    args: &'a Args,
    jdk: &'a Jdk,
    programs: &'a Programs,
    arms: &'a [Arm],
    seed: u64,
}

impl Experiment<'_> {
    fn run(
        &self,
        with_swap: bool,
        setup: &mut show::Setup,
        results: &mut show::Results,
    ) -> anyhow::Result<()> {
        let mut quiet = self.args.quiet.begin();
        if self.args.part.contains(&Part::Jit) {
            let one = |arm: &Arm| jit::one(self, arm);
            self.rounds(self.args.rounds, "", &mut quiet, &mut results.jit, &mut results.others, one)?;
        }
        if !with_swap {
            return Ok(());
        }
        setup.memory_bytes = pressure::memory(self)?;
        let scarce = host::Scarcity::plan(self.args, setup.memory_bytes)?.make()?;
        let one = |arm: &Arm| pressure::one(self, arm, &scarce.group);
        let (swap, others) = (&mut results.swap, &mut results.others);
        let measured = self.rounds(self.args.swap_rounds, "swap, ", &mut quiet, swap, others, one);
        results.notes.extend(scarce.undo()?);
        measured
    }

    /// Each arm once a round, in an order of its own.
    fn rounds<T>(
        &self,
        rounds: u32,
        part: &str,
        quiet: &mut Quiet,
        results: &mut Vec<Round<T>>,
        all_others: &mut Vec<Others>,
        one: impl Fn(&Arm) -> anyhow::Result<T>,
    ) -> anyhow::Result<()> {
        let arms = self.arms;
        let bar = progress::bar("bench trim", arms.len() * rounds as usize, "runs");
        for round in 0..rounds as usize {
            results.push((0..arms.len()).map(|_| None).collect());
            for at in order::block(self.seed, round, arms.len()) {
                bar.set_message(format!("{part}round {}, {}", round + 1, arms[at].name));
                if let Some((made, others)) = quiet.trial(|| one(&arms[at]).map(Some))? {
                    results[round][at] = Some(made);
                    all_others.extend(others);
                }
                bar.inc(1);
            }
        }
        Ok(())
    }
}
