//! `marusa bench throughput`: a real Java EE server under load, with small and large heaps, on small and large pages. Each trial
//! starts the server anew, on pages that were planned and made for it, and looks at its page tables before it counts.

mod live;

use super::jdk::{Jdk, JdkArgs};
use super::machine;
use super::rounds::{self, ArmsArgs, whole_mib};
use crate::act::server::ServerError;
use crate::act::server::recipe;
use crate::base::{Bytes, refuse};
use crate::cmd::{Failure, amount};
use crate::experiment::bench::throughput::{FirstTouch, Settings, arms};
use crate::show::bench::throughput::Lacking;
use live::Live;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// Sizes of the heap, with commas
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = amount::bytes, default_value = "256m,3584m")]
    heaps: Vec<Bytes>,
    /// Data to keep alive besides the server's own, with commas: 0, or a size
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = amount::bytes, default_value = "0")]
    live: Vec<Bytes>,
    /// When pages of the heap are first touched, with commas: at their first use, or at the start (-XX:+AlwaysPreTouch)
    #[arg(long, value_name = "WHEN", value_delimiter = ',', default_value = "use")]
    first_touch: Vec<FirstTouch>,
    /// The collector; the source's JVM had the parallel one
    #[arg(long, value_name = "NAME", default_value = "parallel")]
    gc: String,
    /// Clients that ask again as soon as they are answered, or at fixed moments (--rate)
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// Requests a second of all clients, asked on time even if answers are late; latencies are from when a request was due
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
    /// Load that is not measured, after each start; as fast as it is answered
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "30s")]
    warm_up: Duration,
    /// How long each trial is measured; whole seconds
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "60s")]
    duration: Duration,
    /// Rounds of one run of each arm, in random order, compared ones in a row; at least two for an interval
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

/// The server does not start with less.
const HEAP_MIN: Bytes = 96 << 20;
/// The old generation of the parallel collector is two thirds of the heap (NewRatio=2).
const LIVE_PERCENT_MAX: u64 = 64;

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdk = server_jdk(&args.jdk)?;
    let settings = settings(args, &jdk)?;
    let arms = arms(&settings);
    let is_dry_run = args.arms.saved.turns.dry_run;
    let found = recipe::DAY_TRADER.directory(args.server.as_deref(), args.fetch && !is_dry_run);
    let (installed, missing) = match found {
        Ok(installed) => (installed, None),
        Err(error) if is_dry_run => (PathBuf::new(), Some(error.to_string())),
        Err(error) => return Err(Failure::usage(error.to_string())),
    };
    let live = Live { jdk: &jdk, installed: &installed };
    rounds::run(live, settings, &arms, &Lacking { missing }, &args.arms.saved, args.json)
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
    let heaps = whole_mib(&args.heaps, HEAP_MIN)?;
    crate::pages::collectors::named(&args.gc, jdk.feature)?;
    let mut pages = args.arms.pages.clone();
    pages.dedup();
    let live: BTreeSet<Bytes> = args.live.iter().copied().collect();
    if let (Some(heap), Some(live)) = (heaps.first(), live.last().filter(|live| **live > 0))
        && *live > heap.saturating_sub(HEAP_MIN) * LIVE_PERCENT_MAX / 100
    {
        refuse!(
            "--live {} MiB: a heap of {} MiB has room for {LIVE_PERCENT_MAX} % of what the server leaves of it ({} MiB)",
            live >> 20,
            heap >> 20,
            HEAP_MIN >> 20
        );
    }
    Ok(Settings {
        machine: machine::here(),
        jdk: jdk.version.clone(),
        heaps,
        live: live.into_iter().collect(),
        touch: BTreeSet::from_iter(args.first_touch.iter().copied()).into_iter().collect(),
        pages,
        gc: args.gc.clone(),
        clients: args.clients,
        rate: args.rate.map(f64::from),
        warm_up_seconds: args.warm_up.as_secs_f64().ceil(),
        seconds: args.duration.as_secs_f64().ceil(),
        rounds: args.rounds as usize,
        seed: args.arms.saved.turns.seed(),
    })
}

/// How a failure that no trial can have without ends the command.
pub(super) fn failed(error: ServerError) -> anyhow::Error {
    match error {
        ServerError::NoLoad(_) => Failure::usage(error.to_string()),
        error => Failure::target(error.to_string()),
    }
}
