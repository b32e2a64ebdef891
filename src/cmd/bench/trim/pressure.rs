//! Two servers in a cgroup with less memory than both would like to have, once for each way of giving memory back.

use super::super::account_of::failed;
use super::Job;
use super::host::Scarcity;
use super::jit::trimmer;
use crate::act::programs::Programs;
use crate::act::signals::Blocked;
use crate::act::staged::{self, Launch, Staged};
use crate::base::{Bytes, Gap, Known, Why};
use crate::cmd::Failure;
use crate::cmd::bench::jdk::Jdk;
use crate::experiment::bench::trim::{Pressed, Settings, Trial, Way};
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
fn heap(live: Bytes) -> Bytes {
    live + live / 3
}

pub fn options(live: Bytes, burst: Bytes) -> Vec<String> {
    let heap = heap(live) >> 10;
    vec![
        format!("-Xms{heap}k"),
        format!("-Xmx{heap}k"),
        "-XX:+UseSerialGC".to_string(),
        format!("-XX:MaxDirectMemorySize={}k", (2 * burst) >> 10),
    ]
}

/// Both fit with one burst, and not with two.
fn for_one_burst(settings: &Settings, server: Bytes) -> Bytes {
    SERVERS * server + settings.burst_bytes * 3 / 2
}

/// What `memory` will be about, before a server was asked.
pub fn expected(settings: &Settings) -> Bytes {
    for_one_burst(settings, settings.live_bytes + JVM_BYTES)
}

/// What both may have: by what a server takes when it is ready, files aside, which were read before and count for others.
pub fn memory(jdk: &Jdk, settings: &Settings, options: &[String]) -> anyhow::Result<Bytes> {
    let _blocked = Blocked::start();
    let programs = Programs::unpack().map_err(|gap| Failure::target(gap.to_string()))?;
    let means = &Way::AsItIs.means(Duration::ZERO);
    let server = start(&Job { jdk, settings, programs: &programs, options, means }, "a server", None, 0)?;
    let anonymous = server.process.status().ok().and_then(|status| status.resident_anon_bytes);
    Ok(anonymous.map_or(expected(settings), |anonymous| for_one_burst(settings, anonymous)))
}

/// Whatever both may take.
pub fn swap_bytes(settings: &Settings) -> Bytes {
    SERVERS * (heap(settings.live_bytes) + JVM_BYTES + 2 * settings.burst_bytes)
}

/// A server, and what makes it give memory back.
struct Server {
    program: Staged,
    process: Process,
    _trimmer: Option<Staged>,
}

pub fn one(job: &Job, scarcity: &Scarcity, trial: &mut Trial) -> anyhow::Result<()> {
    let mut servers = Vec::new();
    for number in 0..SERVERS {
        servers.push(start(job, trial.arm.way.name(), Some(&scarcity.group), number)?);
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
    let mut moved =
        |name: &str| pages(&swap_before, &swap_after, name).map_err(|gap| trial.gaps.push(gap)).ok();
    let pressed = Pressed {
        memory_bytes: scarcity.memory_bytes,
        work_ms,
        objects_visited: figures.get("visits").copied().unwrap_or(0),
        bursts_ms: figures.get("burst_ms").copied(),
        swapped_out_bytes: moved("pswpout"),
        swapped_in_bytes: moved("pswpin"),
        major_faults: faults_before.zip(faults(&servers)).map(|(before, after)| after.saturating_sub(before)),
        peak_swap_bytes,
    };
    trial.figures.swap = Some(pressed);
    Ok(())
}

fn swapped(processes: &[Process]) -> Option<Bytes> {
    processes.iter().map(|process| process.status().ok()?.swapped_bytes).sum()
}

fn start(job: &Job, name: &str, group: Option<&str>, number: u64) -> anyhow::Result<Server> {
    let settings = job.settings;
    let arguments = [
        format!("live_mb={}", settings.live_bytes >> 20),
        format!("burst_mb={}", settings.burst_bytes >> 20),
        format!("rounds={}", settings.bursts),
        format!("calm_ms={}", CALM.as_millis()),
        // Their bursts are not to meet.
        format!("offset_ms={}", u128::from(number) * CALM.as_millis() / 2),
    ];
    let directory = job.programs.directory();
    let launch = Launch {
        environment: job.means.environment.clone(),
        group: group.map(str::to_string),
        ..staged::java(&job.jdk.java(), job.options, "bench.Pressure", &arguments, directory)
    };
    let mut program = Staged::start(name, &launch).map_err(failed)?;
    program.reach("ready", STAGE_LIMIT, || {}).map_err(failed)?;
    let pid = program.jvm().map_err(failed)?;
    let process = Process::open(pid)?;
    let trimmer = job.means.trimmed_every.map(|every| trimmer(&process, every)).transpose()?;
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
