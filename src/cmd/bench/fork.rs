//! `marusa bench fork`: starts /bin/false again and again from JVMs of every size of heap, on every kind of pages, by every
//! launch mechanism that the JDK has.

mod live;

use super::jdk::{Jdk, JdkArgs};
use super::machine;
use super::rounds::{self, ArmsArgs, whole_mib};
use crate::base::{Bytes, Refused, refuse};
use crate::cmd::{Failure, amount};
use crate::experiment::bench::fork::{Mechanism, Settings, Support};
use crate::os::{host, meminfo};
use crate::show::bench::fork::Found;
use live::Live;
use std::collections::BTreeMap;

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
    /// Rounds of one run of each arm, in random order, compared ones in a row; at least two for an interval
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    arms: ArmsArgs,
    /// Machine-readable, schema marusa/bench-fork/3
    #[arg(long)]
    json: bool,
}

/// As published, and on.
const HEAPS: [Bytes; 7] = [128 << 20, 256 << 20, 512 << 20, 1 << 30, 2 << 30, 4 << 30, 8 << 30];
/// Next to the heap: the JVM itself and the other processes.
const RESERVE: Bytes = 1 << 30;
/// The JVM needs room for the program's classes and threads.
const HEAP_MIN: Bytes = 16 << 20;

fn mechanism(text: &str) -> Result<Mechanism, Refused> {
    let found = Mechanism::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| Refused(format!("'{text}' is none of FORK, VFORK, POSIX_SPAWN")))
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdks = args.jdk.given_or_newest()?;
    let settings = settings(args, &jdks, &heaps(&args.heaps)?);
    let is_dry_run = args.arms.saved.turns.dry_run;
    let support = match is_dry_run {
        // Nothing is tried, so each JDK may have all of them.
        true => jdks.iter().map(|jdk| Support::untried(&jdk.version, &settings.mechanisms)).collect(),
        false => live::support(&jdks, &settings.mechanisms)?,
    };
    let arms = settings.arms(&support);
    let found = Found { jdks: if is_dry_run { Vec::new() } else { support } };
    let live = Live { jdks: &jdks, subjects: BTreeMap::new() };
    rounds::run(live, settings, &arms, &found, &args.arms.saved, args.json)
}

fn settings(args: &Args, jdks: &[Jdk], heaps: &[Bytes]) -> Settings {
    let mut threads: Vec<usize> = args.threads.iter().map(|count| *count as usize).collect();
    threads.sort_unstable();
    threads.dedup();
    Settings {
        machine: machine::here(),
        jdks: jdks.iter().map(|jdk| jdk.version.clone()).collect(),
        heaps: heaps.to_vec(),
        pages: args.arms.pages.clone(),
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
        refuse!(
            "a heap of {} MiB does not fit: {} MiB are available, of which {} are kept for other programs",
            heap >> 20,
            available >> 20,
            RESERVE >> 20
        );
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
