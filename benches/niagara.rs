//! The Niagara example in miniature: a program whose time goes into address translation, on 4 KiB and 2 MiB pages; what
//! was predicted from the costs of walks on this machine, and the saving that then came. `cargo bench --bench niagara`.
//!
//! The two kinds of pages take turns, each in a JVM of its own, with a calibration before each pair, so that a machine that gets
//! slower or faster in the meantime hits all alike. Figures are printed as they are; noise fails nothing.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{java, map_json, marusa, number, text};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const ROUNDS: usize = 5;
const HEAP: [&str; 3] = ["-Xms1200m", "-Xmx1200m", "-Xmn100m"];
/// Steps whose time a table row is made of.
const KINDS: [(&str, u64); 2] = [("dependent", 1), ("independent", 8)];

fn main() {
    let Some(java) = java("21") else { return };
    let mut runs: Vec<[Vec<f64>; 2]> = Vec::new();
    let mut saved: Vec<Vec<f64>> = vec![Vec::new(); KINDS.len()];
    let mut counted: Vec<String> = Vec::new();
    println!(
        "random access to 1 GiB of long[], JDK 21, Parallel; {ROUNDS} rounds of 4 KiB and 2 MiB in turn"
    );
    for round in 0..ROUNDS {
        for (kind, (_, chains)) in KINDS.iter().enumerate() {
            saved[kind].extend(saved_by_walk(&calibration(), *chains));
        }
        let small = Program::start(&java, "-XX:-UseTransparentHugePages");
        counted.extend(small.counted_prediction());
        let small = small.finish(0.0..=0.02);
        let huge = Program::start(&java, "-XX:+UseTransparentHugePages").finish(0.9..=1.0);
        if let (Some(small), Some(huge)) = (small, huge) {
            println!("round {round}: 4 KiB {small:.1?} ns, 2 MiB {huge:.1?} ns");
            runs.push([small, huge]);
        }
    }
    for (kind, (name, chains)) in KINDS.iter().enumerate() {
        report(name, *chains, kind, &runs, &saved);
    }
    for prediction in counted {
        println!("by counted walks: {prediction}");
    }
}

/// A JVM that runs `marusa.RandomAccess`.
struct Program {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Program {
    fn start(java: &std::path::Path, pages: &str) -> Program {
        let mut child = Command::new(java)
            .args(HEAP)
            .args(["-XX:+UseParallelGC", pages, "-cp"])
            .arg(common::root().join("java/build-out"))
            .args(["marusa.RandomAccess", "heap=1g", "accesses=10m", "rounds=2"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("java runs");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it gets ready");
        assert!(line.starts_with("READY"), "{line}");
        Program { child, output }
    }

    /// What `marusa tlb` predicts for THP by walks that it counted. Without counters, nothing.
    fn counted_prediction(&self) -> Option<String> {
        let output = marusa(&["tlb", &self.child.id().to_string(), "--json"]);
        let json: Value = serde_json::from_slice(&output.stdout).ok()?;
        let percent = &json["larger_pages"][0]["cpu_saved_percent"];
        Some(format!("{:.1} to {:.1} %", percent["low"].as_f64()?, percent["high"].as_f64()?))
    }

    /// Nanoseconds of an access, dependent and independent: the best of its rounds. `None`: its pages are not as asked for.
    fn finish(mut self, huge_share: std::ops::RangeInclusive<f64>) -> Option<Vec<f64>> {
        let map = map_json(self.child.id() as i32);
        let heap = common::area(&map, "java_heap");
        let huge = heap["by_page_size"]["2097152"].as_u64().unwrap_or(0);
        let share = huge as f64 / number(&heap["resident_bytes"]).max(1) as f64;
        let lines: Vec<String> = self.output.lines().map_while(Result::ok).collect();
        assert!(self.child.wait().is_ok_and(|status| status.success()), "the program ends well");
        if !huge_share.contains(&share) {
            println!("left out: {:.0} % of the heap are on 2 MiB pages", share * 100.0);
            return None;
        }
        let column = |index: usize| {
            let values = lines.iter().filter_map(|line| line.split(' ').nth(index)?.parse::<f64>().ok());
            values.min_by(f64::total_cmp)
        };
        Some(vec![column(1)?, column(3)?])
    }
}

fn calibration() -> Value {
    let output = marusa(&["tlb", "--calibrate", "--footprint", "1G", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Round by round, what a step through 4 KiB pages took more than one through 2 MiB pages, in nanoseconds.
fn saved_by_walk(calibration: &Value, chains: u64) -> Vec<f64> {
    let steps = |page_bytes: u64| -> Vec<f64> {
        let timings = calibration["timings"].as_array().into_iter().flatten();
        let found = timings
            .filter(|timing| timing["side"] == "data" && timing["nodes"] == "spread")
            .find(|timing| timing["page_bytes"] == page_bytes && timing["chains"] == chains);
        let times = found.and_then(|timing| timing["step_ns"].as_array()).into_iter().flatten();
        times.filter_map(Value::as_f64).collect()
    };
    steps(4096).iter().zip(steps(2 << 20)).map(|(small, huge)| small - huge).collect()
}

fn report(name: &str, chains: u64, kind: usize, runs: &[[Vec<f64>; 2]], saved: &[Vec<f64>]) {
    let (small, huge): (Vec<f64>, Vec<f64>) =
        runs.iter().map(|[small, huge]| (small[kind], huge[kind])).unzip();
    let shares: Vec<f64> =
        small.iter().zip(&huge).map(|(small, huge)| (small - huge) / small * 100.0).collect();
    let (Some(before), Some(came)) = (median(&small), median(&shares)) else {
        println!("\n{name}: nothing was measured");
        return;
    };
    let after = median(&huge).unwrap_or(0.0);
    println!("\n{name} accesses: {before:.1} ns on 4 KiB, {after:.1} ns on 2 MiB");
    println!("  came:      {came:5.1} % saved ({})", range(&shares));
    // One walk an access: the array has 85 times the pages that the TLB of a Zen 4 holds.
    let percent = |ns: f64| (ns / before * 100.0).clamp(0.0, 100.0);
    if let Some(middle) = median(&saved[kind]) {
        let quarters = quartiles(&saved[kind]);
        verdict(&format!("predicted for {chains} at once"), percent(quarters.0), percent(quarters.1), came);
        println!(
            "             middle {:.1} %, by {middle:.1} ns a walk, one walk an access assumed",
            percent(middle)
        );
    }
    if let (Some(low), Some(high)) = (median(&saved[1]), median(&saved[0])) {
        verdict("predicted, kind of access unknown", percent(low), percent(high), came);
    }
}

fn verdict(what: &str, low: f64, high: f64, came: f64) {
    let says = match came {
        came if (low..=high).contains(&came) => "contains it",
        came if (low / 2.0..=high * 2.0).contains(&came) => "within factor 2",
        _ => "off by more than factor 2",
    };
    println!("  {what}: {low:.1} to {high:.1} %: {says}");
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn median(values: &[f64]) -> Option<f64> {
    sorted(values).get(values.len() / 2).copied()
}

fn quartiles(values: &[f64]) -> (f64, f64) {
    let sorted = sorted(values);
    let quarter = sorted.len().saturating_sub(1) / 4;
    (sorted[quarter], sorted[sorted.len() - 1 - quarter])
}

fn range(values: &[f64]) -> String {
    let sorted = sorted(values);
    format!("{:.1} to {:.1} in {} rounds", sorted[0], sorted[sorted.len() - 1], sorted.len())
}
