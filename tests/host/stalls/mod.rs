//! `marusa stalls`: real stalls of a cgroup that is full, found with their owners; and what is reported without tracefs,
//! without rights, and of a target that ends.

mod bad_input;
mod delays;
mod group_reclaim;

use crate::common::*;
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Whether this machine lets us trace: root, and tracefs. `false` says why.
fn may_trace() -> bool {
    let may = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .iter()
        .any(|directory| std::fs::read_dir(format!("{directory}/instances")).is_ok());
    if !may || !is_root() {
        skip("tracefs cannot be read here: it takes root and scripts/tracefs");
    }
    may && is_root()
}

fn begin(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.arg("stalls").args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("marusa runs")
}

fn end(child: Child) -> (Output, Vec<Value>) {
    let (started, pid) = (Instant::now(), child.id());
    let output = child.wait_with_output().expect("it ends");
    assert!(started.elapsed() < Duration::from_secs(30), "it hung");
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
    assert!(instances(pid).is_empty(), "left behind: {:?}", instances(pid));
    let tables = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .map(|it| it.unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout))))
        .collect();
    (output, tables)
}

/// Milliseconds of one kind of stall in a row.
fn ms(row: &Value, stall: &str) -> f64 {
    let stalls = row["stalls"].as_array().expect("stalls").iter();
    stalls.filter(|it| it["stall"] == stall).filter_map(|it| it["total_ms"].as_f64()).sum()
}

fn has_gap(table: &Value, words: &str) -> bool {
    let gaps = table["gaps"].as_array().expect("gaps");
    gaps.iter().any(|gap| format!("{} {} {}", gap["what"], gap["why"], gap["hint"]).contains(words))
}

/// What is in every object, traced or not: each null has its reason.
fn check_schema(table: &Value) {
    assert_eq!(table["schema"], "marusa/stalls/2");
    for key in ["taken", "by", "host", "gaps"] {
        assert!(!table[key].is_null(), "{key} of {table}");
    }
    let host = &table["host"];
    assert!(host["vmstat"]["pgsteal_direct"].is_u64() && host["free"]["free_bytes"].is_u64(), "{host}");
    assert!(host["free"]["blocks_by_order"].as_array().is_some_and(|orders| orders.len() > 9), "{host}");
    let reasons = [
        ("by_page_size", "allocations by page size"),
        ("daemon_cpu_ms", "CPU time of"),
        ("pressure", "pressure of memory"),
    ];
    for (key, gap) in reasons {
        assert!(!host[key].is_null() || has_gap(table, gap), "{key} is null without a reason: {table}");
    }
    let is_traced = table["taken"]["source"] == "tracepoints";
    for key in ["rows", "total", "daemons", "missing", "events"] {
        assert_eq!(!table[key].is_null(), is_traced, "{key} of {table}");
    }
    if !is_traced {
        return assert!(has_gap(table, "trac"), "{table}");
    }
    for row in table["rows"].as_array().expect("rows").iter().chain([&table["total"]]) {
        for stall in row["stalls"].as_array().expect("stalls") {
            let bars = stall["histogram"].as_array().expect("bars");
            let in_bars: u64 = bars.iter().map(|bar| number(&bar["count"])).sum();
            assert_eq!(in_bars, number(&stall["count"]), "{stall}");
        }
    }
}

/// Waits until a process of ours traces.
fn until_traced(pid: u32) {
    let started = Instant::now();
    let is_on = |name: &String| {
        let directories = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].iter();
        let mut states = directories.map(|directory| format!("{directory}/instances/{name}/tracing_on"));
        states.any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "1"))
    };
    while !instances(pid).iter().any(is_on) {
        assert!(started.elapsed() < Duration::from_secs(60), "pid {pid} does not trace");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Instances of tracefs that a process of ours made.
fn instances(pid: u32) -> Vec<String> {
    let ours = format!("marusa-{pid}-");
    let directories = ["/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"];
    let entries =
        directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&ours)).collect()
}
