//! What `marusa record` costs: CPU time, memory of its own and bytes on disk, of one large JVM that rests, of one that allocates,
//! and of
//! fifty small ones at once; and by what it slows down a JVM that works. `cargo bench --bench record`; `-- quick` takes short
//! turns,
//! `-- slower` measures the last alone.
//!
//! Limits: 1 % of a core, 60 MB and 600 bytes a sample for a JVM of 4 GB with 200 threads each second; 10 % of a core for 50 JVMs
//! each 5 seconds; 0.5 % of the speed of the JVM. `cargo bench --bench record -- 10`: ten minutes of each instead of thirty.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/host/pages_collapse/steady.rs"]
mod steady;

use common::{Jvm, java, row, signal, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use steady::Steady;

/// Half an hour of the steady state.
const LENGTH: Duration = Duration::from_secs(1800);
const LENGTH_QUICK: Duration = Duration::from_secs(60);
const WARM: Duration = Duration::from_secs(20);
const LOOKS: usize = 400;
const WINDOW: Duration = Duration::from_millis(150);
const WINDOWS_A_LOOK: usize = 6;
/// CPU time of the recorder's first thread in a window in which it looked; a sample takes it some 0.4 ms.
const LOOK_MIN: Duration = Duration::from_micros(100);
const SMALL_JVMS: usize = 50;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "quick");
    let minutes = std::env::args().find_map(|argument| argument.parse::<u64>().ok());
    let length = match minutes {
        _ if is_quick => LENGTH_QUICK,
        Some(minutes) => Duration::from_secs(60 * minutes),
        None => LENGTH,
    };
    let Some(java) = java("17") else { return };
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("record");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory");
    if std::env::args().any(|argument| argument == "slower") {
        return slower_each(&directory, is_quick);
    }
    let large = |more: &[&str]| {
        let program =
            [&["marusa.Load", "heap=3600m", "threads=200", "classes=3000", "deflate=1"][..], more].concat();
        Jvm::start(&java, &["-Xmx5g", "-XX:+UseG1GC"], &program)
    };
    {
        let jvm = large(&["quiet=1"]);
        one("4 GB, 200 threads, at rest", &jvm, &directory.join("rest"), length);
    }
    {
        let jvm = large(&["garbage=50m/s"]);
        one("4 GB, 200 threads, 50 MB/s of garbage", &jvm, &directory.join("busy"), length);
    }
    let small: Vec<Jvm> = (0..SMALL_JVMS)
        .map(|_| {
            Jvm::start(
                &java,
                &["-Xmx24m", "-XX:+UseSerialGC", "-Xshare:auto"],
                &["marusa.Load", "heap=4m", "threads=10", "quiet=1"],
            )
        })
        .collect();
    several(&directory.join("all"), length.min(Duration::from_secs(300)));
    drop(small);
    slower_each(&directory, is_quick);
    let _ = std::fs::remove_dir_all(&directory);
}

fn slower_each(directory: &Path, is_quick: bool) {
    for threads in [1, 2] {
        slower(directory, if is_quick { 20 } else { LOOKS }, threads);
    }
}

fn record(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.arg("record").args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("marusa runs")
}

fn one(what: &str, jvm: &Jvm, path: &Path, length: Duration) {
    let seconds = format!("{}s", length.as_secs());
    let child =
        record(&[&jvm.pid.to_string(), "-o", &path.display().to_string(), "--for", &seconds, "--json"]);
    report(what, child, length);
}

fn several(path: &Path, length: Duration) {
    let seconds = format!("{}s", length.as_secs());
    let child =
        record(&["--all", "--every", "5s", "-o", &path.display().to_string(), "--for", &seconds, "--json"]);
    report("50 JVMs each 5 s", child, length);
}

/// What it says of itself in the end, and the memory that it had at the most.
fn report(what: &str, child: Child, length: Duration) {
    std::thread::sleep(length.saturating_sub(Duration::from_secs(2)));
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let most =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim().to_string();
    let output = child.wait_with_output().expect("it ends");
    let recorded: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)));
    println!(
        "{what}: {:.2} % of a core, {most} at the most, {:.0} bytes a sample, {} samples of {} JVMs, {} accounts, in {} s",
        recorded["cpu_percent_of_a_core"].as_f64().unwrap_or(f64::NAN),
        recorded["sample_bytes_mean"].as_f64().unwrap_or(f64::NAN),
        recorded["samples"],
        recorded["jvms"],
        recorded["accounts"],
        length.as_secs()
    );
}

/// A JVM of the same size that works on its memory, in short windows one after the other: the ones in which the recorder took a
/// sample against the two next to them. Nothing else of the recorder's runs between its samples, and a second of this machine is a
/// fifth slower than the next by itself, so turns with and without a recorder tell nothing finer.
fn slower(directory: &Path, looks: usize, threads: usize) {
    let program = [&format!("threads={threads}"), "data=3600m", "churn=50m/s", "idle=200"];
    let Some(mut jvm) = Steady::start(&row("17", "g1"), &["-Xmx6g"], &program) else { return };
    let path = directory.join(format!("slower-{threads}")).display().to_string();
    let mut recorder = record(&[&jvm.pid.to_string(), "-o", &path]);
    std::thread::sleep(WARM);
    let windows: Vec<(f64, bool)> = (0..looks * WINDOWS_A_LOOK)
        .map(|_| {
            let before = ran(&recorder);
            jvm.begin();
            std::thread::sleep(WINDOW);
            (jvm.figures()["ops_per_s"], ran(&recorder) - before > LOOK_MIN)
        })
        .collect();
    signal(recorder.id() as i32, libc::SIGINT);
    recorder.wait().expect("it ends");
    let logs: Vec<f64> = seconds_lost(&windows).iter().map(|lost| -(1.0 - lost).ln()).collect();
    print!("4 GB, 200 threads that wait, {threads} that work: ");
    match marusa::experiment::stats::estimate(&logs, 0.05) {
        Some(found) => println!(
            "slower by {:.2} % ({:.2} to {:.2}), {} samples of one a second, windows of {WINDOW:?}",
            found.gain_percent, found.low_percent, found.high_percent, found.blocks
        ),
        None => println!("too few samples"),
    }
}

/// CPU time so far of the recorder's first thread, which waits between samples; the threads that help it end with each sample.
fn ran(recorder: &Child) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{}/schedstat", recorder.id())).expect("schedstat");
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok()).expect("nanoseconds");
    Duration::from_nanos(nanos)
}

/// For each sample, the work that the JVM did less than the mean of the windows on either side, in seconds of its work.
fn seconds_lost(windows: &[(f64, bool)]) -> Vec<f64> {
    let mut lost = Vec::new();
    let mut from = 0;
    for run in windows.chunk_by(|a, b| a.1 == b.1) {
        let next = from + run.len();
        if run[0].1 && from > 0 && next < windows.len() {
            let usual = (windows[from - 1].0 * windows[next].0).sqrt();
            let done: f64 = run.iter().map(|(rate, _)| rate / usual).sum();
            lost.push((run.len() as f64 - done) * WINDOW.as_secs_f64());
        }
        from = next;
    }
    lost
}
