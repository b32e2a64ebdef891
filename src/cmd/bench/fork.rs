//! `marusa bench fork`: starts /bin/false again and again from JVMs of every size of heap, on every kind of pages, by every
//! launch mechanism that the JDK has.

mod live;

use super::answer;
use super::jdk::{Jdk, JdkArgs};
use super::machine;
use super::rounds::{ArmsArgs, Plan, whole_mib};
use super::saved::{self, Saved};
use crate::act::programs::Programs;
use crate::act::signals::Blocked;
use crate::base::Bytes;
use crate::cmd::{Failure, amount};
use crate::experiment::bench::fork::{Mechanism, Results, Settings};
use crate::os::{host, meminfo};
use crate::show::bench::fork as show;
use live::Live;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// Sizes of the heap, separated by commas [default: those of 128M to 8G that fit into free memory]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = amount::bytes)]
    heaps: Vec<Bytes>,
    /// How the JDK starts processes: FORK, VFORK, POSIX_SPAWN
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = mechanism,
        default_value = "FORK,VFORK,POSIX_SPAWN")]
    launch: Vec<Mechanism>,
    /// Children that are started for each figure
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    children: u32,
    /// Numbers of threads at once, separated by commas
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,4",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    threads: Vec<u32>,
    /// Rounds of one run of each arm, in random order; at least two for an interval
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    arms: ArmsArgs,
    /// Machine-readable, schema marusa/bench-fork/2
    #[arg(long)]
    json: bool,
}

const TRIALS_SCHEMA: &str = "marusa/bench-fork-trials/1";
/// As published, and on.
const HEAPS: [Bytes; 7] = [128 << 20, 256 << 20, 512 << 20, 1 << 30, 2 << 30, 4 << 30, 8 << 30];
/// Next to the heap: the JVM itself and the other processes.
const RESERVE: Bytes = 1 << 30;
/// The JVM needs room for the program's classes and threads.
const HEAP_MIN: Bytes = 16 << 20;

fn mechanism(text: &str) -> Result<Mechanism, String> {
    let found = Mechanism::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("'{text}' is none of FORK, VFORK, POSIX_SPAWN"))
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdks = args.jdk.given_or_newest()?;
    let mut settings = settings(args, &jdks, &heaps(&args.heaps)?);
    let turns = &args.arms.saved.turns;
    let state = turns.state_directory()?;
    if turns.dry_run {
        return dry_run(args, &settings, &jdks);
    }
    // Held to the end: what is changed is restored before a signal ends us.
    let blocked = Blocked::start();
    let programs = Programs::unpack().map_err(|gap| Failure::usage(gap.to_string()))?;
    let mut saved = Saved::open(args.arms.saved.save.as_deref(), TRIALS_SCHEMA, &mut settings)?;
    let mut live = Live::new(&jdks, &programs, state, &settings);
    let support = live.support();
    let arms = settings.arms(&support);
    let (rounds, seed) = (settings.rounds, settings.seed);
    let plan = Plan { name: "fork", arms: &arms, rounds, seed, quiet: turns.quiet };
    let mut trials = saved.take();
    let stopped = plan.measure(&mut trials, &mut saved, |round, arm| Ok(live.trial(round, arm)))?;
    drop(live);
    drop(programs);
    let report = show::Report { settings, support, results: Results { trials }, stopped };
    answer::print(args.json, || show::BenchForkDocument::of(&report), |out| show::text(out, &report))?;
    drop(blocked);
    Ok(if report.is_complete() { 0 } else { 1 })
}

impl saved::Settings for Settings {
    fn take_seed(&mut self, of: &Settings) {
        self.seed = of.seed;
    }

    /// More rounds may follow, nothing else may differ.
    fn goes_on(&self, was: &Settings) -> bool {
        *was == Settings { rounds: was.rounds, seed: was.seed, ..self.clone() }
    }
}

fn settings(args: &Args, jdks: &[Jdk], heaps: &[Bytes]) -> Settings {
    let mut threads: Vec<usize> = args.threads.iter().map(|count| *count as usize).collect();
    threads.sort_unstable();
    threads.dedup();
    Settings {
        machine: machine::here(),
        jdks: jdks.iter().map(|jdk| jdk.version.clone()).collect(),
        heaps: heaps.to_vec(),
        pages: args.arms.pages.iter().map(|pages| pages.name().to_string()).collect(),
        mechanisms: args.launch.clone(),
        children: args.children as usize,
        threads,
        rounds: args.rounds as usize,
        seed: args.arms.saved.turns.seed(),
    }
}

/// The ones that were asked for must fit; of the usual ones the ones that do are taken.
fn heaps(given: &[Bytes]) -> anyhow::Result<Vec<Bytes>> {
    let memory = meminfo::parse(&host::text("/proc/meminfo").unwrap_or_default());
    let available = memory.map_or(0, |memory| memory.available_bytes.unwrap_or(memory.free_bytes));
    let fits = |heap: Bytes| heap.saturating_add(heap / 8).saturating_add(RESERVE) <= available;
    let given = whole_mib(given, HEAP_MIN)?;
    if let Some(heap) = given.iter().find(|heap| !fits(**heap)) {
        return Err(Failure::usage(format!(
            "a heap of {} MiB does not fit: {} MiB are available, of which {} are kept for other programs",
            heap >> 20,
            available >> 20,
            RESERVE >> 20
        )));
    }
    let heaps = match given.is_empty() {
        true => HEAPS.into_iter().filter(|heap| fits(*heap)).collect(),
        false => given,
    };
    match heaps.is_empty() {
        true => Err(Failure::usage(format!("no heap fits: only {} MiB are available", available >> 20))),
        false => Ok(heaps),
    }
}

fn dry_run(args: &Args, settings: &Settings, jdks: &[Jdk]) -> anyhow::Result<u8> {
    let changes = live::planned(jdks, settings);
    answer::print(
        args.json,
        || show::BenchForkDocument::dry_run(settings, &changes),
        |out| show::dry_run(out, settings, &changes),
    )?;
    Ok(0)
}
