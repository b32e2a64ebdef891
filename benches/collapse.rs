//! What it costs a JVM to be put on huge pages while it works: its worst pauses and its throughput in the meantime, against the
//! same
//! JVM that is left alone before and after. `cargo bench --bench collapse`; needs root, and 3 GiB of free memory.
//!
//! The program (java/marusa/Steady.java) reads and writes half of a heap of 2 GiB at random, checks each number that it finds,
//! and times every 64 accesses; next to it a thread sleeps for 1 ms again and again and times that, as jHiccup does.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/host/pages_collapse/steady.rs"]
mod steady;

use common::{Row, is_root, java, row};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;
use steady::{Figures, Steady, rollup};

const HEAP_MIB: u64 = 2048;
const WARM: Duration = Duration::from_secs(8);
const ROUNDS: usize = 1;
/// The way that is the default, and as fast as it goes.
const WAYS: [(&str, &[&str], usize); 2] = [
    ("10 % of a CPU, calls of 5 ms", &[], ROUNDS),
    ("a whole CPU, calls of any length", &["--cpu-budget", "100%", "--stall-budget", "10s"], 1),
];

fn main() {
    if !is_root() || java("25").is_none() {
        return println!("skipped: needs root and JDK 25 (scripts/jdks 25)");
    }
    println!(
        "JVM of {HEAP_MIB} MiB, all of it resident in 4 KiB pages, JDK 25; 1 GiB worked on at random by one thread"
    );
    for gc in ["g1", "parallel"] {
        for (name, options, rounds) in WAYS {
            for round in 1..=rounds {
                println!("\n{gc}, {name}, round {round}");
                measure(&row("25", gc), options);
            }
        }
    }
}

fn measure(row: &Row, options: &[&str]) {
    let (min, max) = (format!("-Xms{HEAP_MIB}m"), format!("-Xmx{HEAP_MIB}m"));
    let all = [min.as_str(), &max, "-XX:+AlwaysPreTouch", "-XX:-UseTransparentHugePages"];
    let Some(mut jvm) = Steady::start(row, &all, &["data=1g", "churn=5m/s"]) else { return };
    std::thread::sleep(WARM);
    println!(
        "{:<22} {:>7} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "s", "Mops/s", "worst10ms", "work99.9", "work worst", "idle99.9", "idle worst"
    );
    let resident = rollup(jvm.pid, "Rss");
    let state = std::env::temp_dir().join(format!("marusa-bench-{}", std::process::id()));
    let mut collapse = Command::new(env!("CARGO_BIN_EXE_marusa"));
    collapse
        .args(["pages", "collapse", &jvm.pid.to_string(), "--json", "--compact"])
        .args(options)
        .arg("--state")
        .arg(&state);
    let control = Duration::from_secs(if options.is_empty() { 25 } else { 5 });
    window(&mut jvm, "left alone, on 4 KiB", || std::thread::sleep(control));
    let mut json = Value::Null;
    window(&mut jvm, "collapsing", || json = run(&mut collapse));
    let after = rollup(jvm.pid, "Rss");
    window(&mut jvm, "left alone, on 2 MiB", || std::thread::sleep(control));
    let mut split = Command::new(env!("CARGO_BIN_EXE_marusa"));
    split.args(["pages", "split", &jvm.pid.to_string(), "--json"]).args(options);
    window(&mut jvm, "splitting", || {
        run(&mut split);
    });
    tell(&json, resident, after);
    println!("numbers that are not what they must be: {}", jvm.wrong());
    let _ = std::fs::remove_dir_all(&state);
}

fn window(jvm: &mut Steady, name: &str, during: impl FnOnce()) {
    jvm.begin();
    during();
    let figures: Figures = jvm.figures();
    let (million, ms) = (|key: &str| figures[key] / 1e6, |key: &str| figures[key] / 1e3);
    println!(
        "{name:<22} {:>7.1} {:>9.2} {:>10.2} {:>7.2} ms {:>7.2} ms {:>7.2} ms {:>7.2} ms",
        figures["seconds"],
        million("ops_per_s"),
        million("worst_10ms"),
        ms("work_p999_us"),
        ms("work_worst_us"),
        ms("sleep_p999_us"),
        ms("sleep_worst_us"),
    );
}

fn run(command: &mut Command) -> Value {
    let output = command.stderr(Stdio::inherit()).output().expect("marusa runs");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn tell(json: &Value, before: u64, after: u64) {
    let areas = json["areas"].as_array().expect("areas");
    let heap = areas.iter().find(|area| area["area"] == "java_heap").expect("a heap");
    let share = heap["on_2m_after_bytes"].as_u64().unwrap_or(0) as f64 / (HEAP_MIB << 20) as f64 * 100.0;
    let price = &json["done"]["price"];
    let figure = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    println!(
        "{share:.2} % of the heap on 2 MiB, RSS {:+.2} %; {:.1} s, {:.2} s of CPU; calls: {:.2} ms median, {:.2} ms p99, \
         {:.2} ms the longest, {} over the budget, {} retries{}",
        (after as f64 / before as f64 - 1.0) * 100.0,
        figure(&price["wall_ms"]) / 1e3,
        figure(&price["cpu_ms"]) / 1e3,
        figure(&price["calls"]["median_ms"]),
        figure(&price["calls"]["p99_ms"]),
        figure(&price["calls"]["max_ms"]),
        price["over_budget"],
        price["retries"],
        json["done"]["stopped"]["words"]
            .as_str()
            .map_or(String::new(), |words| format!("; stopped: {words}"))
    );
}
