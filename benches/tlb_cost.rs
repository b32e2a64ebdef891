//! What the counting of `marusa tlb` costs its target: rounds of work for each second of CPU time with and without it, taken
//! in turns on the same JVM, and the CPU time that the counting itself takes. With the events of the processor where it has
//! counters, else with those of the kernel. `cargo bench --bench tlb_cost`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::work::{cpu_seconds, rounds};
use common::{Jvm, java};
use marusa::measure::counters::Counters;
use marusa::measure::events::{self, EventSet};
use marusa::os::cpu;
use marusa::os::perf::Mode;
use marusa::os::process::Process;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ROUNDS: usize = 15;
const TURN: Duration = Duration::from_secs(1);
const LIMIT: f64 = 0.01;

fn main() {
    let Some(java) = java("21") else { return };
    let set = events::choose(&cpu::read()).unwrap_or_else(|gap| {
        println!("{gap}\nso: software events");
        events::software()
    });
    measure(&java, &set, "2 threads that read at random places", &["workers=2"]);
    measure(&java, &set, "the same, and 500 threads born a second", &["workers=2", "rate=500"]);
}

fn measure(java: &Path, set: &EventSet, what: &str, load: &[&str]) {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tlb-cost-rounds");
    let _ = std::fs::remove_file(&file);
    let rounds = format!("rounds={}", file.display());
    let mut program = vec!["marusa.Storm", "heap=16m", &rounds];
    program.extend(load);
    let jvm = Jvm::start(java, &["-Xmx128m", "-XX:+UseSerialGC"], &program);
    std::thread::sleep(Duration::from_secs(4));
    let (mut without, mut with, mut own, mut theirs) = (Vec::new(), Vec::new(), 0.0, 0.0);
    for _ in 0..ROUNDS {
        without.push(rate(jvm.pid, &file, || std::thread::sleep(TURN)));
        let (before, target_before) = (cpu_seconds(0), cpu_seconds(jvm.pid));
        with.push(rate(jvm.pid, &file, || count(jvm.pid, set)));
        own += cpu_seconds(0) - before;
        theirs += cpu_seconds(jvm.pid) - target_before;
    }
    let _ = std::fs::remove_file(&file);
    let (fast, slow) = (median(&mut without), median(&mut with));
    let quartiles = |rates: &[f64]| (rates[ROUNDS / 4], rates[ROUNDS - 1 - ROUNDS / 4]);
    println!("\n{what}, JDK 21, {}; median of {ROUNDS} turns of {TURN:?} (middle half)", set.name);
    for (name, middle, rates) in [("without", fast, &without), ("counting", slow, &with)] {
        let (low, high) = quartiles(rates);
        println!("{name:<10} {middle:>9.1} rounds for a second of CPU time ({low:.1} to {high:.1})");
    }
    println!("slower by  {:>9.2} % (at most {:.0})", (fast / slow - 1.0) * 100.0, LIMIT * 100.0);
    println!("own CPU    {:>9.3} % of the target's (at most {:.0})", own / theirs * 100.0, LIMIT * 100.0);
}

/// As `marusa tlb PID 500ms`: opened, read twice, closed.
fn count(pid: i32, set: &EventSet) {
    let process = Process::open(pid).expect("the JVM");
    let mut counters = Counters::open(&process, set.clone(), &[Mode::User, Mode::Kernel]).expect("may count");
    for _ in 0..2 {
        std::thread::sleep(TURN / 2);
        let interval = counters.turn();
        assert!(!interval.threads.is_empty() && !interval.is_last);
    }
}

/// Rounds of work for each second of the target's CPU time.
fn rate(pid: i32, file: &Path, run: impl FnOnce()) -> f64 {
    let (rounds, seconds) = (rounds(file), cpu_seconds(pid));
    run();
    (common::work::rounds(file) - rounds) / (cpu_seconds(pid) - seconds)
}

/// Sorts them, too.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
