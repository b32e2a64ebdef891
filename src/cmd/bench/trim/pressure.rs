//! Two servers in a cgroup with less memory than both would like to have, once for each way of giving memory back.

use super::super::account_of::failed;
use super::jit::trimmer;
use super::{Args, Experiment};
use crate::act::staged::{self, Launch, Staged};
use crate::base::{Bytes, Gap, Known, Why};
use crate::cmd::Failure;
use crate::experiment::bench::trim::{Arm, Pressed};
use crate::os::machine::base_page;
use crate::os::process::Process;
use crate::os::vmstat;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A JVM next to its heap: metadata, JIT code, malloc, stacks.
const JVM_BYTES: Bytes = 28 << 20;
/// From one burst to the next.
const CALM: Duration = Duration::from_millis(3000);
const STAGE_LIMIT: Duration = Duration::from_secs(1200);
const SERVERS: u64 = 2;

/// The heap of each server: a collector that moves objects needs some room next to them.
fn heap(args: &Args) -> Bytes {
    args.live + args.live / 3
}

pub fn options(args: &Args) -> Vec<String> {
    let heap = heap(args) >> 10;
    vec![
        format!("-Xms{heap}k"),
        format!("-Xmx{heap}k"),
        "-XX:+UseSerialGC".to_string(),
        format!("-XX:MaxDirectMemorySize={}k", (2 * args.burst) >> 10),
    ]
}

/// Both fit with one burst, and not with two.
fn for_one_burst(args: &Args, server: Bytes) -> Bytes {
    SERVERS * server + args.burst * 3 / 2
}

/// What `memory` will be about, before a server was asked.
pub fn expected(args: &Args) -> Bytes {
    args.memory.unwrap_or(for_one_burst(args, args.live + JVM_BYTES))
}

/// What both may have: by what a server takes when it is ready, files aside, which were read before and count for others.
pub fn memory(experiment: &Experiment) -> anyhow::Result<Bytes> {
    let args = experiment.args;
    if let Some(memory) = args.memory {
        return Ok(memory);
    }
    let arm = experiment.arms.first().ok_or_else(|| Failure::usage("cannot be measured"))?;
    let server = start(experiment, arm, None, 0)?;
    let anonymous = server.process.status().ok().and_then(|status| status.resident_anon_bytes);
    Ok(anonymous.map_or(expected(args), |anonymous| for_one_burst(args, anonymous)))
}

/// Whatever both may take.
pub fn swap(args: &Args) -> Bytes {
    SERVERS * (heap(args) + JVM_BYTES + 2 * args.burst)
}

/// A server, and what makes it give memory back.
struct Server {
    program: Staged,
    process: Process,
    _trimmer: Option<Staged>,
}

pub fn one(experiment: &Experiment, arm: &Arm, group: &str) -> anyhow::Result<Pressed> {
    let mut servers = Vec::new();
    for number in 0..SERVERS {
        servers.push(start(experiment, arm, Some(group), number)?);
    }
    let faults = |servers: &[Server]| -> Option<u64> {
        servers.iter().map(|server| server.process.major_faults().ok()).sum()
    };
    let (swap_before, faults_before) = (vmstat::read(), faults(&servers));
    let started = Instant::now();
    for server in &mut servers {
        server.program.go_on().map_err(failed)?;
    }
    let mut figures: BTreeMap<String, u64> = BTreeMap::new();
    let mut peak_swap_bytes = None;
    let processes: Vec<Process> =
        servers.iter().flat_map(|server| Process::open(server.process.pid)).collect();
    for server in &mut servers {
        let look = || peak_swap_bytes = peak_swap_bytes.max(swapped(&processes));
        let stage = server.program.reach("done", STAGE_LIMIT, look).map_err(failed)?;
        for (key, number) in stage.figures {
            *figures.entry(key).or_default() += number;
        }
    }
    let work_ms = started.elapsed().as_secs_f64() * 1e3;
    let swap_after = vmstat::read();
    let moved = |name: &str| pages(&swap_before, &swap_after, name);
    Ok(Pressed {
        work_ms,
        visits: figures.get("visits").copied().unwrap_or(0),
        burst_ms: figures.get("burst_ms").map_or(f64::NAN, |ms| *ms as f64),
        swapped_out_bytes: moved("pswpout"),
        swapped_in_bytes: moved("pswpin"),
        major_faults: faults_before.zip(faults(&servers)).map(|(before, after)| after.saturating_sub(before)),
        peak_swap_bytes,
    })
}

fn swapped(processes: &[Process]) -> Option<Bytes> {
    processes.iter().map(|process| process.status().ok()?.swapped_bytes).sum()
}

fn start(experiment: &Experiment, arm: &Arm, group: Option<&str>, number: u64) -> anyhow::Result<Server> {
    let args = experiment.args;
    let mut options = options(args);
    options.extend(arm.options.iter().cloned());
    let arguments = [
        format!("live_mb={}", args.live >> 20),
        format!("burst_mb={}", args.burst >> 20),
        format!("rounds={}", args.bursts),
        format!("calm_ms={}", CALM.as_millis()),
        // Their bursts are not to meet.
        format!("offset_ms={}", u128::from(number) * CALM.as_millis() / 2),
    ];
    let directory = experiment.programs.directory();
    let launch = Launch {
        environment: arm.environment.clone(),
        group: group.map(str::to_string),
        ..staged::java(&experiment.jdk.java(), &options, "bench.Pressure", &arguments, directory)
    };
    let mut program = Staged::start(arm.name, &launch).map_err(failed)?;
    program.reach("ready", STAGE_LIMIT, || {}).map_err(failed)?;
    let pid = program.jvm().map_err(failed)?;
    let process = Process::open(pid).map_err(|error| Failure::target(error.to_string()))?;
    let trimmer = arm.trimmed_every.map(|every| trimmer(&process, every)).transpose()?;
    Ok(Server { program, process, _trimmer: trimmer })
}

fn pages(
    before: &Known<BTreeMap<String, u64>>,
    after: &Known<BTreeMap<String, u64>>,
    name: &str,
) -> Known<Bytes> {
    let counter = |counters: &Known<BTreeMap<String, u64>>| -> Known<u64> {
        let counters = counters.as_ref().map_err(Gap::clone)?;
        let missing = || Gap::new(format!("/proc/vmstat {name}"), Why::NotInThisKernel);
        counters.get(name).copied().ok_or_else(missing)
    };
    Ok(counter(after)?.saturating_sub(counter(before)?) * base_page())
}
