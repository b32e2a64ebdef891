//! Reading leaves no trace: the target has the same threads, signals, files and voluntary stops as without us, and a JVM
//! that cannot answer gives the same account.

use crate::common::*;
use std::collections::BTreeSet;

const LOAD: &[&str] = &["heap=60m", "threads=10", "classes=200", "quiet=1"];

/// What a reader could change in its target.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    threads: BTreeSet<String>,
    signals: Vec<String>,
    files_in_tmp: BTreeSet<String>,
    open_files: usize,
    page_faults: String,
}

fn traces(pid: i32) -> Traces {
    let list = |path: String| -> BTreeSet<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    let fields: Vec<&str> = stat[stat.rfind(')').expect("a name") + 2..].split(' ').collect();
    Traces {
        threads: list(format!("/proc/{pid}/task")),
        // SigQ counts the pending signals of the whole user.
        signals: status
            .lines()
            .filter(|line| {
                (line.starts_with("Sig") && !line.starts_with("SigQ")) || line.starts_with("ShdPnd")
            })
            .map(str::to_string)
            .collect(),
        files_in_tmp: list(format!("/proc/{pid}/root/tmp"))
            .into_iter()
            .filter(|name| name.contains(&pid.to_string()))
            .collect(),
        open_files: list(format!("/proc/{pid}/fd")).len(),
        // Major faults of the process: field 12 of stat; minor ones go on by themselves.
        page_faults: fields[9].to_string(),
    }
}

fn voluntary_stops(pid: i32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("tasks").flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
        .filter_map(|status| {
            status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok())
        })
        .sum()
}

#[test]
fn the_target_does_not_notice() {
    for jdk in ["17", "25"] {
        let Some(jvm) = Jvm::under_load(&row(jdk, "g1"), &["-Xmx200m"], LOAD) else { continue };
        let before = traces(jvm.pid);
        for _ in 0..3 {
            map_json(jvm.pid);
        }
        let pid = jvm.pid.to_string();
        for arguments in [
            &["map", &pid, "--by", "holder"][..],
            &["map", &pid, "--by", "loader"],
            &["map", &pid, "--by", "buffer"],
            &["heap", &pid, "--duplicates"],
        ] {
            let output = marusa(arguments);
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        assert_eq!(traces(jvm.pid), before, "JDK {jdk}");
    }
}

/// A quiet JVM wakes a few times a second by itself (its periodic thread); reading must not add to that. The same time is
/// watched without and with readings.
#[test]
fn the_target_is_not_stopped() {
    let Some(jvm) = Jvm::under_load(&row("17", "serial"), &["-Xmx200m"], LOAD) else { return };
    std::thread::sleep(std::time::Duration::from_secs(2));
    let watch = |read: bool| {
        let before = voluntary_stops(jvm.pid);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(3);
        let mut readings = 0;
        while std::time::Instant::now() < until {
            if read {
                map_json(jvm.pid);
                readings += 1;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        (voluntary_stops(jvm.pid) - before, readings)
    };
    let (alone, _) = watch(false);
    let (watched, readings) = watch(true);
    println!("voluntary stops in 3 s: {alone} alone, {watched} with {readings} readings");
    assert!(readings >= 5);
    // One stop a reading would add `readings`; the periodic threads vary by a few.
    assert!(watched <= alone + alone / 5 + 5, "{watched} stops with {readings} readings, {alone} without");
}

#[test]
fn a_stopped_jvm_gives_the_same_account() {
    for jdk in ["8", "17", "25"] {
        let Some(jvm) = Jvm::under_load(&row(jdk, "serial"), &["-Xmx200m"], LOAD) else { continue };
        let running = map_json(jvm.pid);
        signal(jvm.pid, libc::SIGSTOP);
        let stopped = map_json(jvm.pid);
        signal(jvm.pid, libc::SIGCONT);
        for name in ["java_heap", "class_metadata", "jit_code", "stack", "gc"] {
            let (one, two) = (
                area(&running, name)["resident_bytes"].as_u64(),
                area(&stopped, name)["resident_bytes"].as_u64(),
            );
            let (one, two) = (one.expect("an area"), two.expect("an area"));
            assert!(one.abs_diff(two) <= 256 << 10, "JDK {jdk} {name}: {one} running, {two} stopped");
        }
    }
}

#[test]
fn a_jvm_that_refuses_attach_is_read_all_the_same() {
    let options = ["-Xmx200m", "-XX:+DisableAttachMechanism", "-XX:-UsePerfData"];
    let Some(jvm) = Jvm::under_load(&row("21", "g1"), &options, LOAD) else { return };
    let map = map_json(jvm.pid);
    assert!(number(&map["totals"]["unattributed_bytes"]) * 200 <= number(&map["totals"]["resident_bytes"]));
    assert!(map["jvm"]["heap"]["used_bytes"].as_u64().is_some_and(|bytes| bytes > 50 << 20));
}
