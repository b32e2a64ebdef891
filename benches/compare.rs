//! What `marusa compare` claims: of two identical arms a difference in at most one of 20 comparisons, of an arm that does 5 % more
//! work a difference within as many runs as a short comparison before it estimated. `cargo bench --bench compare`; one alone with
//! `-- identical` or `-- slowed`. Judged is the CPU time of a pass, since other programs disturb the time by the wall.

#[path = "../tests/common/mod.rs"]
mod common;

use serde_json::Value;
use std::process::Command;
use std::time::Instant;

const COMPARISONS: usize = 20;
const BLOCKS: usize = 8;
const PILOT_BLOCKS: usize = 6;
const SEARCHES: usize = 10;
/// No user waits for more.
const BLOCKS_MAX: u64 = 400;

fn main() {
    let Some(java) = common::java("17") else { return };
    let java = java.display().to_string();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    if is_wanted("identical") {
        identical(&java);
    }
    if is_wanted("slowed") {
        slowed(&java);
    }
}

/// The arms' words go to the program.
fn compare(java: &str, arms: &[&str], runs: u64) -> Value {
    let classes = common::root().join("java/build-out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args(["compare", "--json", "--worth", "5", "--runs", &runs.to_string()]);
    command.args(["--metric", r"cpu[ms]=cpu: ([\d.]+)"]);
    command.args(arms.iter().flat_map(|arm| ["--arm", arm]));
    command.args(["--", java, "-Xmx64m", "-Xms64m", "-XX:+UseSerialGC", "-cp"]).arg(classes);
    command.args(["marusa.Work", "data=128k", "rounds=2000", "{}"]);
    let output = command.output().expect("marusa runs");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", common::text(&output.stderr)))
}

/// The verdict and its words. A comparison that has none is not a figure of this bench.
fn said(found: &Value) -> (String, String) {
    let verdict = &found["verdicts"][0];
    match (verdict["verdict"].as_str(), verdict["text"].as_str()) {
        (Some(word), Some(text)) => (word.to_string(), text.to_string()),
        _ => panic!("no verdict: {}, {}", found["ended_early"], found["given_up"]),
    }
}

fn identical(java: &str) {
    println!("{COMPARISONS} comparisons of two identical arms, {BLOCKS} blocks each");
    let mut claims = 0;
    for number in 1..=COMPARISONS {
        let started = Instant::now();
        let (verdict, text) = said(&compare(java, &["a=spin=0", "b=spin=0"], BLOCKS as u64));
        claims += usize::from(verdict != "not_shown");
        println!("  {number:>2}: {text} ({:.0} s)", started.elapsed().as_secs_f64());
    }
    println!("  a difference is claimed in {claims} of {COMPARISONS}");
}

fn slowed(java: &str) {
    println!(
        "{SEARCHES} searches for 5 % more work: {PILOT_BLOCKS} blocks of identical arms say how many runs it takes"
    );
    let mut shown = 0;
    for number in 1..=SEARCHES {
        let pilot = compare(java, &["a=spin=0", "b=spin=0"], PILOT_BLOCKS as u64);
        let needed = &pilot["figures"][0]["arms"][1]["difference"]["runs_needed"];
        let runs = needed["at_most"].as_u64().unwrap_or(BLOCKS_MAX).clamp(2, BLOCKS_MAX);
        let (verdict, text) = said(&compare(java, &["base=spin=0", "slow=spin=5"], runs));
        shown += usize::from(verdict == "more");
        println!("  {number:>2}: estimated {} to {} runs; {text}", needed["likely"], needed["at_most"]);
    }
    println!("  shown within the runs that were estimated in {shown} of {SEARCHES}");
}
