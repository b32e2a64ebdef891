//! `marusa bench thp`: what the kernel's policy for transparent huge pages costs a build server.

mod bystander;
mod live;

use super::jdk::JdkArgs;
use super::machine;
use super::rounds::{self, SavedArgs};
use crate::act::fragments;
use crate::base::Bytes;
use crate::cmd::{Failure, amount};
use crate::experiment::bench::thp::{Arm, Memory, Policy, Settings};
use crate::show::bench::rounds::Nothing;
use itertools::iproduct;
use live::Live;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// Policies, with commas: enabled and defrag are always always, with a heap that asks (asked) or does not (always), always
    /// defer, madvise madvise, never never
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "always,defer,madvise,never"
    )]
    policies: Vec<Policy>,
    /// Free memory, with commas: in small pieces, as after weeks of work (the page cache is dropped first); the same between pages
    /// that the kernel cannot move; or as it is on this machine
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
    /// Rounds of one run of each arm, in random order, compared ones in a row; at least two for an interval
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    saved: SavedArgs,
    /// Machine-readable, schema marusa/bench-thp/2
    #[arg(long)]
    json: bool,
    /// How the process that holds memory is started (act/fragments.rs)
    #[arg(long, value_name = "BYTES", hide = true)]
    hold_fragments: Option<Bytes>,
    #[arg(long, hide = true, requires = "hold_fragments")]
    pinned_fragments: bool,
}

const FREE_PER_BUILD: Bytes = 640 << 20;
const FREE_MIN: Bytes = 2560 << 20;

pub fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(leave) = args.hold_fragments {
        fragments::hold(leave, args.pinned_fragments).map_err(|gap| Failure::usage(gap.to_string()))?;
    }
    let jdk = args.jdk.one()?;
    let most_builds = args.builds.iter().copied().max().unwrap_or(1);
    let settings = Settings {
        machine: machine::here(),
        jdk: jdk.version.clone(),
        steps: args.steps as usize,
        heap_bytes: args.heap,
        free_bytes: args.free.unwrap_or(FREE_MIN.max(FREE_PER_BUILD * u64::from(most_builds))),
        rounds: args.rounds as usize,
        seed: args.saved.turns.seed(),
    };
    let live = Live { jdk: &jdk, fragments: None };
    rounds::run(live, settings, &arms(args), &Nothing {}, &args.saved, args.json)
}

/// All combinations.
fn arms(args: &Args) -> Vec<Arm> {
    let all = iproduct!(&args.memory, &args.builds, &args.policies);
    all.map(|(&memory, &builds, &policy)| Arm { memory, policy, builds: usize::from(builds) }).collect()
}
