//! `marusa bench gc`: what a collector costs a program that gives it work, by collector, page size and number of GC threads.

mod live;

use super::jdk::{Jdk, JdkArgs};
use super::machine;
use super::rounds::{self, ArmsArgs};
use crate::base::{Bytes, refuse};
use crate::cmd::{Failure, amount};
use crate::experiment::arm_pages::PageMode;
use crate::experiment::bench::gc::{Arm, Settings, Threads};
use crate::pages::Vm;
use crate::show::bench::gc::Lacking;
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
    /// Rounds of one run of each arm, in random order, compared ones in a row; at least two for an interval
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    arms: ArmsArgs,
    /// Machine-readable, schema marusa/bench-gc/2
    #[arg(long)]
    json: bool,
}

const HEAP_SHARE: Bytes = 3;
/// The initial heap of the JVMs of all collectors.
const HEAP_MIN: Bytes = 32 << 20;

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdks = jdks(args)?;
    let settings = settings(args, &jdks)?;
    let (arms, lacking) = arms(args, &jdks)?;
    rounds::run(Live { jdks: &jdks }, settings, &arms, &Lacking { lacking }, &args.arms.saved, args.json)
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
        refuse!(
            "--live {} MiB: the live set must be something, and at most half of the heap of {} MiB",
            args.live >> 20,
            heap_bytes >> 20
        );
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
        seed: args.arms.saved.turns.seed(),
    })
}

/// All combinations that there are, and the collectors that a JDK lacks.
fn arms(args: &Args, jdks: &[Jdk]) -> anyhow::Result<(Vec<Arm>, Vec<String>)> {
    let (mut arms, mut lacking) = (Vec::new(), Vec::new());
    for jdk in jdks {
        for gc in &args.gc {
            if let Err(why) = live::has(jdk, gc) {
                lacking.push(why.0);
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
