//! Native Memory Tracking on: what our walk gives to each tag is what NMT's own counters say, to the byte; also under other
//! allocators than glibc's, which are named with their version.

use crate::common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How often a JVM that moves between the counters and the walk is read again.
const TRIES_MAX: usize = 5;
const LOAD: [&str; 6] = ["marusa.Load", "quiet=1", "heap=20m", "classes=500", "direct=16m", "threads=10"];

/// The account of a JVM while it is stopped; a JVM that is stopped within malloc is let go and stopped again.
fn stopped_map(pid: i32, is_good: impl Fn(&Value) -> bool) -> Value {
    let mut map = Value::Null;
    for _ in 0..TRIES_MAX {
        signal(pid, libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(50));
        map = map_json(pid);
        signal(pid, libc::SIGCONT);
        if is_good(&map) {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    map
}

/// Sum over all tags of how far ours is from NMT's counters, and NMT's sum.
fn apart(map: &Value) -> (u64, u64) {
    let tags = map["malloc"]["nmt_tags"].as_array().cloned().unwrap_or_default();
    let difference =
        |tag: &Value| tag["counter_difference_bytes"].as_i64().map_or(u64::MAX / 64, i64::unsigned_abs);
    (tags.iter().map(difference).sum(), tags.iter().filter_map(|tag| tag["counter_bytes"].as_u64()).sum())
}

fn start(jdk: &str, options: &[&str], preload: Option<&Path>, program: &[&str]) -> Option<Jvm> {
    let mut command = Command::new(java(jdk)?);
    command.args(options).arg("-cp").arg(root().join("java/build-out")).args(program);
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    Some(Jvm::of(command))
}

#[test]
fn each_tag_is_what_nmt_counts() {
    for (jdk, share_max) in [("8", 0.01), ("11", 0.01), ("17", 0.0), ("21", 0.0), ("25", 0.0)] {
        for mode in ["summary", "detail"] {
            let nmt = format!("-XX:NativeMemoryTracking={mode}");
            let Some(jvm) = start(jdk, &["-Xmx100m", &nmt], None, &LOAD) else { continue };
            let is_good = |map: &Value| {
                let (apart, sum) = apart(map);
                sum > 5 << 20 && apart as f64 <= sum as f64 * share_max
            };
            let map = stopped_map(jvm.pid, is_good);
            let (difference, sum) = apart(&map);
            println!("jdk {jdk}, {mode}: {difference} of {sum} bytes apart");
            assert!(
                is_good(&map),
                "jdk {jdk} {mode}: {difference} of {sum}: {:#}",
                map["malloc"]["nmt_tags"]
            );
        }
    }
}

#[test]
fn direct_buffers_are_known() {
    let wanted = 10_000.0 * f64::from(32 << 10);
    for jdk in ["11", "17", "21", "25"] {
        let options = ["-Xmx32m", "-XX:MaxDirectMemorySize=400m", "-XX:NativeMemoryTracking=summary"];
        let program = ["marusa.Direct", "count=10000", "size=32k"];
        let Some(jvm) = start(jdk, &options, None, &program) else { continue };
        let map = map_json(jvm.pid);
        let buffers = &area(&map, "direct_buffers")["in_use_bytes"];
        let share = buffers.as_u64().unwrap_or(0) as f64 / wanted;
        assert!((0.99..=1.01).contains(&share), "jdk {jdk}: {share} of them: {:#}", map["malloc"]["owners"]);
    }
}

/// Installed allocators: name, start of the version, library.
fn allocators() -> Vec<(&'static str, &'static str, PathBuf)> {
    let known = [
        ("jemalloc", "5.", "libjemalloc.so.2"),
        ("tcmalloc", "(gperftools 2.", "libtcmalloc_minimal.so.4"),
        ("mimalloc", "2.", "libmimalloc.so.2"),
    ];
    let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];
    let find = |file: &str| {
        directories.iter().map(|directory| Path::new(directory).join(file)).find(|path| path.exists())
    };
    let found = known.into_iter().filter_map(|(name, version, file)| Some((name, version, find(file)?)));
    found.collect()
}

#[test]
fn other_allocators_are_named_and_what_the_vm_has_of_them_is_reported() {
    let found = allocators();
    if found.is_empty() {
        return skip("no other allocator: apt-get install libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0");
    }
    for (name, version, library) in found {
        let options = ["-Xmx100m", "-XX:NativeMemoryTracking=summary"];
        let Some(jvm) = start("21", &options, Some(&library), &LOAD) else { return };
        let map = stopped_map(jvm.pid, |map| apart(map).0 == 0);
        let other = &map["malloc"]["other"];
        assert_eq!(other["allocator"], name);
        assert!(other["version"].as_str().is_some_and(|text| text.starts_with(version)), "{other:#}");
        let (difference, sum) = apart(&map);
        assert!(
            difference == 0 && sum > 20 << 20,
            "{name}: {difference} of {sum}: {:#}",
            map["malloc"]["nmt_tags"]
        );
        let unattributed = number(&map["totals"]["unattributed_bytes"]);
        let total = number(&map["totals"]["resident_bytes"]);
        assert!(unattributed * 100 < total, "{name}: {unattributed} of {total} unattributed");
        let gap = map["gaps"].as_array().and_then(|gaps| {
            gaps.iter().find(|gap| gap["what"].as_str().is_some_and(|what| what.contains("free lists of")))
        });
        assert!(gap.is_some_and(|gap| gap["hint"].to_string().contains("own figures")), "{:#}", map["gaps"]);
    }
}

#[test]
fn without_nmt_the_memory_of_another_allocator_is_still_named() {
    for (name, _, library) in allocators() {
        let Some(jvm) = start("17", &["-Xmx100m"], Some(&library), &LOAD) else { return };
        let map = map_json(jvm.pid);
        let other = &map["malloc"]["other"];
        assert_eq!(other["allocator"], name);
        // The direct buffers alone are 16 MiB.
        assert!(number(&other["not_walked_resident_bytes"]) > 20 << 20, "{other:#}");
        assert_eq!(number(&other["in_use_by_vm_bytes"]), 0);
        assert_eq!(map["malloc"]["nmt_tags"], Value::Null);
        assert!(map["gaps"].to_string().contains("NativeMemoryTracking=summary"), "{:#}", map["gaps"]);
    }
}
