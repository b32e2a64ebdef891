//! The real command: ended by Ctrl-C, by the end of the target, without rights, with few open files, and where the processor
//! has no counters. `--software` counts what every kernel has, so that this runs on every machine.

use crate::common::*;
use marusa::measure::events;
use marusa::os::{cpu, perf};
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn storm() -> Option<Jvm> {
    if !super::may_count() {
        return None;
    }
    let java = java("21")?;
    let program = ["marusa.Storm", "heap=8m", "workers=1", "rate=200", "quiet=1"];
    Some(Jvm::start(&java, &["-Xmx64m", "-XX:+UseSerialGC"], &program))
}

fn begin(pid: i32, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args(["tlb", &pid.to_string()]).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("marusa runs")
}

fn end(child: Child) -> (Output, Vec<Value>) {
    let started = Instant::now();
    let output = child.wait_with_output().expect("it ends");
    assert!(started.elapsed() < Duration::from_secs(30), "it hung");
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
    let tables = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .map(|it| it.expect("JSON"))
        .collect();
    (output, tables)
}

fn total(table: &Value, event: &str, mode: &str) -> Option<f64> {
    let counts = table["total"]["counts"].as_array().expect("counts");
    let count = counts.iter().find(|count| count["event"] == event && count["mode"] == mode)?;
    count["scaled"].as_f64()
}

fn who(rows: &[Value]) -> String {
    let lines = rows.iter().map(|row| format!("{} {} {}\n", row["tid"], row["kind"], row["name"]));
    lines.collect()
}

fn has_gap(table: &Value, words: &str) -> bool {
    let gaps = table["gaps"].as_array().expect("gaps");
    gaps.iter().any(|gap| format!("{} {} {}", gap["what"], gap["why"], gap["hint"]).contains(words))
}

#[test]
fn without_counters_of_the_processor_it_says_what_gives_them_and_prints_no_table() {
    let Err(gap) = events::choose(&cpu::read()) else {
        return println!("skipped: this machine has counters");
    };
    let Some(jvm) = storm() else { return };
    for arguments in [&[][..], &["1s", "2", "--json"], &["--by", "thread"]] {
        let output = begin(jvm.pid, arguments).wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "this machine cannot count");
        let (printed, error) = (text(&output.stdout), text(&output.stderr));
        // The page sizes are known anyway; no table of zeros.
        assert!(!printed.contains("dtlb-miss/s") && !printed.contains("walks_per_second"), "{printed}");
        match serde_json::from_str::<Value>(&printed) {
            Ok(alone) => {
                assert!(alone["total"].is_null() && has_gap(&alone, &gap.what), "{alone}");
                assert!(alone["mapped_by_page_size"]["4096"].as_u64().is_some_and(|bytes| bytes > 10 << 20));
                assert!(error.contains(&gap.what) && printed.lines().count() == 1, "{printed}");
            }
            Err(_) => {
                let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
                let answer = words.find("address translation: not known").expect("the answer");
                assert!(
                    answer < words.find("PAGE SIZE").expect("the sizes"),
                    "the answer comes first: {printed}"
                );
                assert_eq!(
                    (words.matches(&gap.what).count(), error.as_str()),
                    (1, ""),
                    "said once: {printed}"
                );
                assert!(words.contains("bare metal") && words.contains("vPMU"), "{printed}");
            }
        }
    }
}

#[test]
fn as_many_tables_as_asked_for_each_of_its_interval() {
    let Some(jvm) = storm() else { return };
    let (output, tables) = end(begin(jvm.pid, &["500ms", "3", "--software", "--json", "--by", "thread"]));
    assert!(output.status.success() && tables.len() == 3, "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 3, "a line each");
    for table in &tables {
        assert_eq!(table["schema"], "marusa/tlb/2");
        let seconds = table["taken"]["interval_seconds"].as_f64().expect("seconds");
        assert!((0.4..2.0).contains(&seconds), "{seconds}");
        assert!(total(table, "task-clock", "user").is_some_and(|time| time > 1e6), "{table}");
        let rows = table["rows"].as_array().expect("rows");
        assert!(
            rows.iter().any(|row| row["name"] == "storm" && row["kind"] == "application"),
            "{}",
            who(rows)
        );
        assert!(
            rows.iter().any(|row| row["kind"] == "vm") && rows.iter().any(|row| row["kind"] == "compiler"),
            "{}",
            who(rows)
        );
        assert!(table["total"]["time_share"].is_null(), "these counts tell nothing of translation");
        assert!(table["mapped_by_page_size"]["4096"].as_u64().is_some_and(|bytes| bytes > 10 << 20));
    }
    let output = begin(jvm.pid, &["200ms", "1", "--software"]).wait_with_output().expect("it ends");
    let table = text(&output.stdout);
    assert!(
        table.contains("page-faults") && table.lines().all(|line| line.chars().count() <= 100),
        "{table}"
    );
}

#[test]
fn ctrl_c_gives_the_table_so_far() {
    let Some(jvm) = storm() else { return };
    let child = begin(jvm.pid, &["60s", "--software", "--json"]);
    until_open(child.id() as i32, "perf_event");
    std::thread::sleep(Duration::from_secs(2));
    signal(child.id() as i32, libc::SIGINT);
    let (output, tables) = end(child);
    assert_eq!((output.status.code(), tables.len()), (Some(0), 1));
    assert!(tables[0]["taken"]["interval_seconds"].as_f64().is_some_and(|seconds| seconds < 30.0));
    assert!(total(&tables[0], "context-switches", "kernel").is_some_and(|count| count > 10.0));
}

#[test]
fn a_target_that_ends_leaves_the_table_of_what_it_did() {
    let Some(jvm) = storm() else { return };
    let child = begin(jvm.pid, &["60s", "2", "--software", "--json"]);
    until_open(child.id() as i32, "perf_event");
    std::thread::sleep(Duration::from_secs(2));
    drop(jvm);
    let (output, tables) = end(child);
    assert_eq!((output.status.code(), tables.len()), (Some(0), 1), "{}", text(&output.stderr));
    assert!(has_gap(&tables[0], "target ended") && tables[0]["taken"]["target_ended"] == true);
    assert!(total(&tables[0], "task-clock", "user").is_some_and(|time| time > 1e6));
}

/// Target and tool as root without any capability: what is left is what a user may do with programs of its own.
#[test]
fn without_the_right_to_count_the_kernel_user_mode_is_counted() {
    if !is_root() || perf::paranoid().is_none_or(|level| level < 2) {
        return println!(
            "skipped: kernel.perf_event_paranoid lets everybody count the kernel, or this is not root"
        );
    }
    if perf::paranoid().is_some_and(|level| level > 2) {
        return println!("skipped: kernel.perf_event_paranoid lets nobody count");
    }
    let Some(java) = java("21") else { return };
    let without = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"];
    let mut command = Command::new(without[0]);
    command.args(&without[1..]).arg(java).args(["-Xmx64m", "-cp"]).arg(root().join("java/build-out"));
    command.args(["marusa.Storm", "heap=8m", "workers=1", "quiet=1"]);
    let jvm = Jvm::of(command);
    let run = |pid: i32| {
        let mut command = Command::new(without[0]);
        command.args(&without[1..]).arg(env!("CARGO_BIN_EXE_marusa")).args([
            "tlb",
            &pid.to_string(),
            "1s",
            "1",
        ]);
        command.args(["--software", "--json"]).output().expect("marusa runs")
    };
    let output = run(jvm.pid);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(total(&table, "task-clock", "user").is_some_and(|time| time > 1e6), "{table}");
    assert_eq!(total(&table, "task-clock", "kernel"), None, "not counted is not zero");
    assert!(
        has_gap(&table, "counts of kernel mode") && has_gap(&table, "perf_event_paranoid is 2"),
        "{}",
        table["gaps"]
    );
    let Some(other) = storm() else { return };
    let output = run(other.pid);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
}

#[test]
fn few_open_files_give_a_part_of_the_threads_and_say_so() {
    let Some(jvm) = storm() else { return };
    let mut command = Command::new("prlimit");
    command.args(["--nofile=60:60", env!("CARGO_BIN_EXE_marusa"), "tlb", &jvm.pid.to_string()]);
    let output = command.args(["500ms", "3", "--software", "--json"]).output().expect("prlimit");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let tables: Vec<Value> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .map(|it| it.expect("JSON"))
        .collect();
    for table in &tables {
        assert!(has_gap(table, "ulimit -Hn"), "{}", table["gaps"]);
    }
    let threads = |table: &Value| table["total"]["threads"].as_u64();
    assert!(tables.iter().all(|table| threads(table).is_some_and(|count| (1..8).contains(&count))));
}
