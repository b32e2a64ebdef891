//! The build server: a policy for huge pages, and JVMs that start, compile and end, several at once.
#![allow(dead_code, reason = "the test and the bench use parts of it")]

use super::raw_trace::{RawTrace, Sums, of_processes};
use super::stalls::{Answer, Stalls, ends_with_us};
use crate::common::{host::Host, host::THP, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const JVM_MAX: Duration = Duration::from_secs(120);
const COUNTERS: [&str; 7] = [
    "compact_stall",
    "compact_fail",
    "compact_success",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "allocstall_normal",
    "compact_daemon_wake",
];

/// Words of /sys/kernel/mm/transparent_hugepage.
#[derive(Clone, Copy)]
pub struct Policy {
    pub enabled: &'static str,
    pub defrag: &'static str,
}

pub const HARM: Policy = Policy { enabled: "always", defrag: "always" };
pub const REMEDY: Policy = Policy { enabled: "madvise", defrag: "madvise" };

impl Policy {
    pub fn set(self, host: &mut Host) -> Result<(), String> {
        host.set(format!("{THP}/enabled"), self.enabled)?;
        host.set(format!("{THP}/defrag"), self.defrag)
    }
}

/// What the steps of the build are like.
#[derive(Clone)]
pub struct Work {
    pub java: PathBuf,
    pub options: Vec<String>,
    pub program: Vec<String>,
    pub count: usize,
    pub at_once: usize,
}

/// One step: its CPU as the kernel reported it at its end, and what it printed.
pub struct Step {
    pub pid: i32,
    pub wall: Duration,
    pub user: Duration,
    pub system: Duration,
    pub said: String,
}

pub struct Figures {
    pub wall: Duration,
    pub steps: Vec<Step>,
    pub trace: Sums,
    pub answer: Answer,
    pub counters: BTreeMap<&'static str, u64>,
}

/// All steps of the work, watched by `marusa stalls` and by the oracle, from before the first until after the last.
pub fn measure(work: &Work) -> Result<Figures, String> {
    let stalls = Stalls::start();
    let trace = RawTrace::start()?;
    let before = counters();
    let started = Instant::now();
    let steps = run(work);
    let wall = started.elapsed();
    let trace = trace.finish()?;
    let answer = stalls.finish();
    let counters = counters().into_iter().map(|(key, value)| (key, value - before[key])).collect();
    Ok(Figures { wall, steps, trace, answer, counters })
}

impl Figures {
    pub fn pids(&self) -> BTreeSet<i32> {
        self.steps.iter().map(|step| step.pid).collect()
    }

    /// What the JVMs waited in direct compaction, in milliseconds: by Marusa, and by the oracle. Processes that ended unnamed
    /// are taken for JVMs.
    pub fn direct_ms(&self) -> (f64, f64) {
        let pids = self.pids();
        let named: f64 = self.answer.direct_ms(&pids).values().fold(0.0, |sum, ms| sum + ms);
        (named + self.answer.ended_ms(), of_processes(&self.trace.compaction, &pids).seconds * 1e3)
    }
}

fn counters() -> BTreeMap<&'static str, u64> {
    let text = read_to_string("/proc/vmstat").unwrap_or_default();
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
    };
    COUNTERS.into_iter().map(|key| (key, value(key))).collect()
}

pub fn run(work: &Work) -> Vec<Step> {
    let next = AtomicUsize::new(0);
    let steps = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..work.at_once {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < work.count {
                    let step = step(work);
                    steps.lock().expect("no step failed").push(step);
                }
            });
        }
    });
    steps.into_inner().expect("no step failed")
}

#[allow(clippy::zombie_processes, reason = "`wait` reaps it, and learns its CPU time by that")]
fn step(work: &Work) -> Step {
    let started = Instant::now();
    let mut command = Command::new(&work.java);
    command.args(&work.options).arg("-cp").arg(root().join("java/build-out")).args(&work.program);
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = ends_with_us(command).spawn().expect("java starts");
    let pid = child.id() as i32;
    // A few bytes, which the pipe holds until the program has ended.
    let usage = wait(pid, started + JVM_MAX);
    let wall = started.elapsed();
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    let time = |of: libc::timeval| Duration::new(of.tv_sec as u64, of.tv_usec as u32 * 1000);
    Step {
        pid,
        wall,
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        said: said.trim().to_string(),
    }
}

/// Waits for the child, whose CPU time only this call tells; kills it when it takes too long.
fn wait(pid: i32, until: Instant) -> libc::rusage {
    loop {
        // SAFETY: all zero is a value of this plain structure.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is that of the structure above; the child is not reaped elsewhere.
        let ended = unsafe { libc::wait4(pid, std::ptr::null_mut(), libc::WNOHANG, &raw mut usage) };
        if ended == pid {
            return usage;
        }
        if ended < 0 || Instant::now() > until {
            // SAFETY: the child was not reaped, so the pid is its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            assert!(ended >= 0, "wait4 of {pid}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Builds of JDK 17 with the collector that it chooses, four at once.
pub fn work(java: PathBuf, count: usize) -> Work {
    let words = |text: &str| text.split_whitespace().map(str::to_string).collect();
    let program = words("bench.BuildServer units=60 threads=2 retain=200");
    Work { java, options: words("-Xmx512m -XX:+UseG1GC"), program, count, at_once: 4 }
}
