//! Running JVMs on huge pages and off them again, by the real command, while the program in them works and checks its data.
//! Nothing of the host is changed for it.

mod bad_input;
mod steady;

use crate::common::*;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use steady::{Steady, rollup};

const MIB: u64 = 1 << 20;
/// The share of a dense heap that must be on huge pages.
const SHARE_MIN: f64 = 0.99;
const GROWTH_MAX: f64 = 0.01;
const GROWTH_OF_ZGC_MAX: f64 = 0.02;
/// A directory for receipts, removed when dropped.
struct State(PathBuf);

impl State {
    fn new() -> State {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("state-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        State(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn may_run() -> bool {
    let may = is_root();
    if !may {
        skip("collapsing needs CAP_SYS_NICE");
    }
    may
}

/// 512 MiB; for JDK 25 2 GiB in `make test-long`, where there is room.
fn heap_mib(jdk: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: u64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let is_large = jdk == "25" && is_long() && kib > 5 << 20;
    if is_large { 2048 } else { 512 }
}

fn small(gc: &str) -> Option<Steady> {
    if !may_run() {
        return None;
    }
    Steady::start(
        &row("25", gc),
        &["-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch"],
        &["data=120m", "churn=2m/s"],
    )
}

/// Fast, and also on a machine that has much else to do.
fn pages(verb: &str, pid: i32, options: &[&str], state: &State) -> (Option<i32>, Value, String) {
    pages_at("100%", verb, pid, options, state)
}

fn pages_at(
    cpu_budget: &str,
    verb: &str,
    pid: i32,
    options: &[&str],
    state: &State,
) -> (Option<i32>, Value, String) {
    let (pid, state) = (pid.to_string(), state.0.display().to_string());
    let mut arguments =
        vec!["pages", verb, &pid, "--json", "--stall-budget", "200ms", "--cpu-budget", cpu_budget];
    arguments.extend(options);
    if verb == "collapse" {
        // Also where the free memory of this host is in small pieces.
        arguments.extend(["--compact", "--state", &state]);
    }
    let output = marusa(&arguments);
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), json, text(&output.stderr))
}

fn area<'a>(json: &'a Value, name: &str) -> &'a Value {
    let areas = json["areas"].as_array().expect("areas");
    areas.iter().find(|area| area["area"] == name).unwrap_or_else(|| panic!("no {name} in {json:#}"))
}

#[test]
fn a_dense_heap_comes_to_lie_on_huge_pages_and_goes_back() {
    if !may_run() {
        return;
    }
    for (jdk, gc) in [("17", "g1"), ("17", "parallel"), ("25", "g1"), ("25", "parallel")] {
        let heap = heap_mib(jdk);
        let (min, max, data) =
            (format!("-Xms{heap}m"), format!("-Xmx{heap}m"), format!("data={}m", heap / 2));
        let options = [min.as_str(), &max, "-XX:+AlwaysPreTouch", "-XX:-UseTransparentHugePages"];
        let Some(mut jvm) = Steady::start(&row(jdk, gc), &options, &[&data, "churn=5m/s"]) else { return };
        let state = State::new();
        let before = rollup(jvm.pid, "Rss");
        let (status, json, errors) = pages("collapse", jvm.pid, &[], &state);
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{json:#}");
        let wrong = jvm.wrong();
        let (after, huge) = (rollup(jvm.pid, "Rss"), rollup(jvm.pid, "AnonHugePages"));
        let of = area(&json, "java_heap");
        let share = number(&of["on_2m_after_bytes"]) as f64 / (heap * MIB) as f64;
        let growth = after as f64 / before as f64 - 1.0;
        let price = &json["done"]["price"];
        println!(
            "jdk {jdk} {gc}, {heap} MiB: {:.2} % on 2 MiB, RSS {:+.2} %, {} of CPU in {} ms, calls {}",
            share * 100.0,
            growth * 100.0,
            price["cpu_ms"],
            price["wall_ms"],
            price["calls"]
        );
        assert_eq!(wrong, 0, "data of the JVM changed");
        assert!(share >= SHARE_MIN && growth <= GROWTH_MAX, "{share} {growth} {json:#}");
        assert!(huge as f64 >= SHARE_MIN * (heap * MIB) as f64, "the kernel says so too: {huge}");
        let receipt = json["done"]["receipt"].as_str().expect("a receipt").to_string();
        let (status, json, errors) = pages("split", jvm.pid, &["--receipt", &receipt], &state);
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{json:#}");
        assert_eq!(jvm.wrong(), 0, "data of the JVM changed");
        let huge = rollup(jvm.pid, "AnonHugePages");
        assert_eq!(huge, 0, "split gives 4 KiB back: {json:#}");
        // All of it is in the receipt as undone.
        let (status, json, _) = pages("split", jvm.pid, &["--receipt", &receipt], &state);
        assert_eq!((status, &json["planned"]["blocks"]), (Some(0), &0.into()));
        assert!(json["done"].is_null());
    }
}

/// The heap of ZGC is shared memory, of which it gives pages back one by one: a collapse would fill the holes.
#[test]
fn holes_of_zgc_are_not_filled() {
    if !may_run() {
        return;
    }
    for (jdk, gc) in [("17", "z"), ("25", "z-generational")] {
        // With ZProactive it also collects once within the first seconds, for no need.
        let options = ["-Xms64m", "-Xmx1g", "-XX:-UseTransparentHugePages", "-XX:-ZProactive"];
        let Some(mut jvm) = Steady::start(&row(jdk, gc), &options, &["data=400m"]) else {
            return;
        };
        let state = State::new();
        // Without garbage the collector takes nothing in the meantime, once the cycles are done that it warms up with.
        wait_for_rest(jvm.pid);
        let (before, resident) = (shared_file_bytes(jvm.pid), rollup(jvm.pid, "Pss"));
        let (status, json, errors) =
            pages("collapse", jvm.pid, &["--area", "java_heap", "--density", "0"], &state);
        assert_eq!(status, Some(0), "{errors} {json:#}");
        let after = shared_file_bytes(jvm.pid);
        let resident_growth = rollup(jvm.pid, "Pss") as f64 / resident as f64 - 1.0;
        assert_eq!(jvm.wrong(), 0, "data of the JVM changed");
        let of = area(&json, "java_heap");
        println!(
            "jdk {jdk} {gc}: {} of {} MiB on 2 MiB; file {before} -> {after} bytes, PSS {:+.2} %; left {}",
            number(&of["on_2m_after_bytes"]) / MIB,
            number(&of["resident_after_bytes"]) / MIB,
            resident_growth * 100.0,
            of["left"]
        );
        assert!(number(&json["done"]["changed_bytes"]) > 0, "{json:#}");
        let grown = after as f64 / before as f64 - 1.0;
        assert!(grown <= GROWTH_OF_ZGC_MAX, "{before} -> {after}: {json:#}");
        assert!(resident_growth <= GROWTH_OF_ZGC_MAX, "{resident_growth}: {json:#}");
        let (status, json, errors) = pages("split", jvm.pid, &["--area", "java_heap"], &state);
        let left = rollup(jvm.pid, "ShmemPmdMapped");
        println!("split again: {} times, {left} bytes are left", json["done"]["price"]["retries"]);
        assert_eq!(jvm.wrong(), 0, "data of the JVM changed");
        // One that the JVM uses in every moment may stay huge; then it is reported.
        let refused = json["done"]["refused"].as_array().expect("refusals");
        let blocks: u64 = refused.iter().map(|refusal| number(&refusal["blocks"])).sum();
        assert_eq!((status, left), (Some(i32::from(blocks > 0)), blocks * 2 * MIB), "{errors} {json:#}");
        assert!(blocks <= 2, "jdk {jdk} {gc}: {json:#}");
    }
}

/// Until the workers of ZGC used no CPU time for a second, in which it looks many times for a reason to begin (zDirector.cpp).
fn wait_for_rest(pid: i32) {
    let started = Instant::now();
    let mut before = worker_ticks(pid);
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = worker_ticks(pid);
        if now == before {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "the collector does not come to rest");
        before = now;
    }
}

fn worker_ticks(pid: i32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads").flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let fields = stats.filter_map(|stat| {
        let (start, fields) = stat.rsplit_once(") ")?;
        start.contains("(ZWorker").then(|| fields.split(' ').map(str::to_string).collect::<Vec<String>>())
    });
    let ticks = |at: &String| at.parse::<u64>().expect("ticks");
    let each: Vec<u64> = fields.map(|fields| ticks(&fields[11]) + ticks(&fields[12])).collect();
    assert!(!each.is_empty(), "ZGC has workers");
    each.iter().sum()
}

/// What the file of ZGC's heap holds, mapped or not.
fn shared_file_bytes(pid: i32) -> u64 {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("descriptors").flatten();
    let heap = files.map(|entry| entry.path()).find(|path| {
        std::fs::read_link(path).is_ok_and(|link| link.to_string_lossy().contains("memfd:java_heap"))
    });
    let facts = std::fs::metadata(heap.expect("the heap's file")).expect("its size");
    std::os::unix::fs::MetadataExt::blocks(&facts) * 512
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let Some(mut jvm) = small("g1") else { return };
    let state = State::new();
    let (status, json, errors) = pages("collapse", jvm.pid, &["--dry-run"], &state);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    assert_eq!((&json["schema"], &json["dry_run"]), (&"marusa/pages-collapse/2".into(), &true.into()));
    assert!(json["done"].is_null() && json["not_done"].is_null());
    assert!(number(&json["planned"]["bytes"]) >= 250 * MIB, "{json:#}");
    for area in json["areas"].as_array().expect("areas") {
        let left: u64 =
            area["left"].as_array().expect("reasons").iter().map(|one| number(&one["bytes"])).sum();
        let parts = number(&area["on_2m_bytes"]) + number(&area["fit_bytes"]) + left;
        assert_eq!(parts, number(&area["resident_bytes"]), "the books balance: {area:#}");
    }
    assert_eq!(rollup(jvm.pid, "AnonHugePages"), 0);
    assert!(!state.0.exists(), "no receipt");
    // For people: within 100 columns, and the same after the doing.
    let state_text = state.0.display().to_string();
    let pid = jvm.pid.to_string();
    let output = marusa(&[
        "pages",
        "collapse",
        &pid,
        "--cpu-budget",
        "100%",
        "--compact",
        "--stall-budget",
        "100ms",
        "--state",
        &state_text,
    ]);
    let printed = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{printed}");
    let wide = printed.lines().find(|line| line.chars().count() > 100 && !line.contains("--receipt"));
    assert_eq!(wide, None, "{printed}");
    assert!(printed.contains("to take it back: marusa pages split"), "{printed}");
    assert_eq!(jvm.wrong(), 0);
    let (status, json, _) = pages("split", jvm.pid, &["--dry-run"], &state);
    assert_eq!((status, &json["schema"]), (Some(0), &"marusa/pages-split/2".into()));
    assert!(number(&json["planned"]["bytes"]) >= 250 * MIB);
    assert!(rollup(jvm.pid, "AnonHugePages") >= 250 * MIB);
}

/// A fifth of a CPU takes five times as long as the work.
#[test]
fn the_cpu_budget_is_kept() {
    let Some(jvm) = small("parallel") else { return };
    let state = State::new();
    let (status, json, errors) = pages_at("20%", "collapse", jvm.pid, &[], &state);
    assert_eq!(status, Some(0), "{errors}");
    let price = &json["done"]["price"];
    let share = price["cpu_ms"].as_f64().expect("ms") / price["wall_ms"].as_f64().expect("ms");
    assert!(share < 0.25, "{price:#}");
}

/// No call is as short as that.
#[test]
fn a_stall_budget_that_can_not_be_kept_ends_it() {
    let Some(jvm) = small("serial") else { return };
    let state = State::new();
    let pid = jvm.pid.to_string();
    let directory = state.0.display().to_string();
    let output = marusa(&["pages", "collapse", &pid, "--stall-budget", "0.001ms", "--state", &directory]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("--stall-budget allows more"), "{printed}");
    assert!(rollup(jvm.pid, "AnonHugePages") < 40 * MIB);
}
