//! What `marusa stalls` costs: of a JVM that compiles again and again, and of javac started again and again. With and without it
//! in turns, each pair next to each other and in changing order; work for each second of CPU time of the one that works (which
//! holds what tracing adds to its faults), and the CPU time of marusa itself, each with its 95 % interval.
//! `cargo bench --bench stalls [-- PAIRS] [-- --no-allocations]`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::work::{cpu_seconds, rounds};
use common::{Jvm, root, signal};
use marusa::experiment::stats::estimate;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PAIRS: usize = 12;
/// At least; a turn ends with a round of work.
const TURN: Duration = Duration::from_secs(4);
/// How long tracing is on or off before a turn begins.
const SETTLE: Duration = Duration::from_secs(1);
const LIMIT_PERCENT: f64 = 1.0;
const ALPHA: f64 = 0.05;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let pairs = words.iter().find_map(|word| word.parse().ok()).unwrap_or(PAIRS);
    let options: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| *word == "--no-allocations").collect();
    let Some(javac) = javac() else { return println!("skipped: no javac on the path") };
    println!("marusa stalls {}", options.join(" "));
    one_jvm(&javac.with_file_name("java"), pairs, &options);
    many_jvms(&javac, pairs, &options);
}

/// That of the JDK that java/build uses: the test JDKs have none.
fn javac() -> Option<PathBuf> {
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).find_map(|directory| directory.join("javac").canonicalize().ok())
}

/// Work for each second of CPU time of the one that works, and of the clock.
#[derive(Clone, Copy)]
struct Rate {
    cpu: f64,
    clock: f64,
}

fn one_jvm(java: &Path, pairs: usize, options: &[&str]) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stalls-classes");
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("rounds");
    let _ = std::fs::remove_file(&file);
    let source = root().join("java/marusa/Load.java").display().to_string();
    let (rounds, classes) = (file.display().to_string(), directory.display().to_string());
    let program = ["marusa.CompileAgain", &rounds, &classes, "-nowarn", &source];
    let jvm = Jvm::start(java, &["-Xmx256m", "-XX:+UseSerialGC"], &program);
    std::thread::sleep(Duration::from_secs(30));
    let turn = |is_watched: bool| {
        let watch = is_watched.then(|| Watch::start(Some(jvm.pid), options));
        std::thread::sleep(SETTLE);
        let (first, mut last) = (round_ends(&file, jvm.pid), None);
        while last.is_none_or(|end: End| end.at - first.at < TURN) {
            last = Some(round_ends(&file, jvm.pid));
        }
        let last = last.expect("a round ended");
        let count = last.rounds - first.rounds;
        let rate =
            Rate { cpu: count / (last.cpu - first.cpu), clock: count / (last.at - first.at).as_secs_f64() };
        (rate, watch.map(Watch::stop))
    };
    turns("one JVM that compiles again and again (rounds)", pairs, turn);
    drop(jvm);
    let _ = std::fs::remove_dir_all(&directory);
}

/// The end of a round of work.
#[derive(Clone, Copy)]
struct End {
    rounds: f64,
    cpu: f64,
    at: Instant,
}

/// The next one: a part of a round would be a part of the figure.
fn round_ends(file: &Path, pid: i32) -> End {
    let before = rounds(file);
    loop {
        let now = rounds(file);
        if now > before {
            return End { rounds: now, cpu: cpu_seconds(pid), at: Instant::now() };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn many_jvms(javac: &Path, pairs: usize, options: &[&str]) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stalls-javac");
    std::fs::create_dir_all(&directory).expect("a directory");
    let source = root().join("java/marusa/Load.java");
    let turn = |is_watched: bool| {
        let watch = is_watched.then(|| Watch::start(None, options));
        std::thread::sleep(SETTLE);
        let (started, mut cpu, mut count) = (Instant::now(), 0.0, 0.0);
        while started.elapsed() < TURN {
            let mut command = Command::new(javac);
            command.args(["-J-Xmx128m", "-nowarn", "-cp"]).arg(root().join("java/build-out"));
            command.arg("-d").arg(&directory).arg(&source);
            cpu += waited(&command.spawn().expect("javac"));
            count += 1.0;
        }
        let rate = Rate { cpu: count / cpu, clock: count / started.elapsed().as_secs_f64() };
        (rate, watch.map(Watch::stop))
    };
    turns("javac started again and again (runs)", pairs, turn);
    let _ = std::fs::remove_dir_all(&directory);
}

fn turns(what: &str, pairs: usize, turn: impl Fn(bool) -> (Rate, Option<f64>)) {
    let (mut logs_cpu, mut logs_clock, mut own) = (Vec::new(), Vec::new(), Vec::new());
    turn(false);
    for number in 0..pairs {
        // Which is first changes, so that what drifts does so for both.
        let is_first = number % 2 == 0;
        let (first, second) = (turn(is_first), turn(!is_first));
        let (with, without) = if is_first { (first, second) } else { (second, first) };
        logs_cpu.push((with.0.cpu / without.0.cpu).ln());
        logs_clock.push((with.0.clock / without.0.clock).ln());
        own.extend(with.1);
    }
    println!("\n{what}; {pairs} pairs of turns of {TURN:?} and more; mean (95 % interval)");
    for (name, logs) in [("a second of CPU time", &logs_cpu), ("a second", &logs_clock)] {
        let Some(gain) = estimate(logs, ALPHA) else { continue };
        println!(
            "work for {name:<22} with it {:+.2} % ({:+.2} to {:+.2})",
            gain.gain_percent, gain.low_percent, gain.high_percent
        );
    }
    // On logarithms as well: a share is never negative.
    let logs: Vec<f64> = own.iter().map(|percent| (1.0 + percent / 100.0).ln()).collect();
    let Some(share) = estimate(&logs, ALPHA) else { return };
    let verdict = if share.high_percent <= LIMIT_PERCENT { "within" } else { "NOT within" };
    println!(
        "CPU time of marusa, of one CPU      {:.3} % ({:.3} to {:.3}): {verdict} {LIMIT_PERCENT} %, after its start",
        share.gain_percent, share.low_percent, share.high_percent
    );
}

/// `marusa stalls` that watches.
struct Watch {
    child: Child,
    cpu: f64,
    clock: Instant,
}

impl Watch {
    /// Once it watches: how it starts (it looks at the runtime once) is not part of the turn.
    fn start(pid: Option<i32>, options: &[&str]) -> Watch {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.arg("stalls");
        pid.iter().for_each(|pid| {
            command.arg(pid.to_string());
        });
        let command = command.args(["1s", "1000", "--json"]).args(options).stdout(Stdio::null());
        let child = command.spawn().expect("marusa runs");
        std::thread::sleep(Duration::from_secs(2));
        let cpu = cpu_seconds(child.id() as i32);
        Watch { child, cpu, clock: Instant::now() }
    }

    /// What it used since, in percent of one CPU.
    fn stop(self) -> f64 {
        let Watch { child, cpu, clock } = self;
        let used = (cpu_seconds(child.id() as i32) - cpu) * 100.0 / clock.elapsed().as_secs_f64();
        signal(child.id() as i32, libc::SIGINT);
        waited(&child);
        used
    }
}

/// Waits for its end: its CPU time, and that of the ones that it waited for.
fn waited(child: &Child) -> f64 {
    // SAFETY: an all-zero usage is one to write to.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    // SAFETY: both places to write to outlive the call; the child is ours and was not waited for.
    let pid = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    assert_eq!((pid, status), (child.id() as i32, 0), "it ended well");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
