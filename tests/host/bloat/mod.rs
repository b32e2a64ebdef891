//! Pages of zeros in the huge pages of real JVMs: the same to the byte as a count of our own (`counted`), and what a split
//! gives back is what was predicted. The JVMs are stopped while both read.

mod counted;

use crate::common::host::{HUGETLB, Host, THP};
use crate::common::*;
use counted::Counter;
use marusa::doctor::{Facts, Finding, HostFacts, JvmFacts, Level, examine};
use marusa::os::process::Process;
use serde_json::Value;
use std::process::Command;

const MIB: u64 = 1 << 20;
/// RSS after a split, against the prediction.
const SHARE_MAX: f64 = 0.02;

/// Whether huge pages are given to who asks; khugepaged fills no holes, so that what a split gave back stays so.
fn host() -> Option<Host> {
    if !is_root() || std::fs::File::open("/proc/kpageflags").is_err() {
        skip("only CAP_SYS_ADMIN may read the frames of pages");
        return None;
    }
    let mut host = Host::lock();
    let set = host
        .set(format!("{THP}/enabled"), "madvise")
        .and_then(|()| host.set(format!("{THP}/khugepaged/max_ptes_none"), "0"));
    if let Err(why) = set {
        skip(&why);
        return None;
    }
    Some(host)
}

/// Hardly any of its 256 MiB is used.
fn idle(jdk: &str, gc: &str, options: &[&str]) -> Option<Jvm> {
    let java = java(jdk)?;
    let row = row(jdk, gc);
    let mut all: Vec<&str> = row.options.iter().map(String::as_str).collect();
    all.extend(["-Xms256m", "-Xmx256m", "-XX:ReservedCodeCacheSize=48m"]);
    all.extend(options);
    Some(Jvm::start(&java, &all, &["marusa.Idle"]))
}

/// Runs `look` while no thread of the JVM runs.
fn stopped<T>(jvm: &Jvm, look: impl FnOnce() -> T) -> T {
    signal(jvm.pid, libc::SIGSTOP);
    let is_stopped = || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", jvm.pid)).expect("threads").flatten();
        let stats =
            threads.map(|thread| std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default());
        stats.into_iter().all(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T")))
    };
    for _ in 0..10_000 {
        if is_stopped() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let seen = look();
    signal(jvm.pid, libc::SIGCONT);
    seen
}

fn zeros(pid: i32) -> Value {
    let zeros = all_zeros(pid);
    assert_eq!(zeros["sampled"], false, "{zeros:#}");
    zeros
}

fn all_zeros(pid: i32) -> Value {
    let output = marusa(&["map", &pid.to_string(), "--by", "page-size", "--zeros", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let map: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    check_laws(&map);
    let zeros = map["zeros"].clone();
    for key in ["large_bytes", "zero_bytes"] {
        let areas = zeros["areas"].as_array().expect("areas");
        let sum: u64 = areas.iter().map(|area| number(&area[key])).sum();
        assert_eq!(sum, number(&zeros["total"][key]), "the areas sum to {key}");
    }
    zeros
}

fn of_area<'a>(zeros: &'a Value, name: &str) -> &'a Value {
    static NONE: Value = Value::Null;
    zeros["areas"]
        .as_array()
        .and_then(|areas| areas.iter().find(|area| area["area"] == name))
        .unwrap_or(&NONE)
}

fn resident(pid: i32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("smaps_rollup");
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).expect("Rss");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("kB") << 10
}

/// A gigabyte would be a sample: 256 MiB are read whole.
#[test]
fn zeros_are_those_that_another_count_finds_and_come_back_by_a_split() {
    for (jdk, gc) in [("17", "parallel"), ("25", "g1")] {
        let Some(host) = host() else { return };
        let Some(jvm) = idle(jdk, gc, &["-XX:+UseTransparentHugePages", "-XX:+AlwaysPreTouch"]) else {
            return;
        };
        let (zeros, counted) = stopped(&jvm, || (zeros(jvm.pid), Counter::new(jvm.pid).huge_pages()));
        let zero: u64 = counted.iter().map(|page| page.zero_pages * 4096).sum();
        let thp = &zeros["total"]["by_sort"]["thp"];
        assert_eq!(number(&thp["resident_bytes"]), counted.len() as u64 * 2 * MIB, "jdk {jdk} {gc}");
        assert_eq!(number(&thp["zero_bytes"]), zero, "jdk {jdk} {gc}");
        let empty: u64 = counted.iter().filter(|page| page.zero_pages == 512).count() as u64 * 2 * MIB;
        assert_eq!(number(&thp["all_zero_bytes"]), empty);
        let heap = of_area(&zeros, "java_heap");
        let said = number(&heap["split_gives_back_bytes"]);
        assert!(number(&heap["zero_bytes"]) > 200 * MIB, "nothing was put into it: {heap:#}");
        if zeros["split_gives_back"] != true {
            skip("before Linux 6.12 a split gives nothing back");
            continue;
        }
        let before = resident(jvm.pid);
        let pid = jvm.pid.to_string();
        let output = marusa(&[
            "pages",
            "split",
            &pid,
            "--area",
            "java_heap",
            "--cpu-budget",
            "100%",
            "--stall-budget",
            "200ms",
            "--json",
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let came = before.saturating_sub(resident(jvm.pid));
        println!(
            "jdk {jdk} {gc}: {} MiB on huge pages, {} zeros (counted {}); split of the heap: said {} KiB, came {} KiB ({:+.2} %)",
            number(&thp["resident_bytes"]) / MIB,
            number(&thp["zero_bytes"]),
            zero,
            said >> 10,
            came >> 10,
            (came as f64 / said as f64 - 1.0) * 100.0
        );
        assert!((came as f64 - said as f64).abs() <= said as f64 * SHARE_MAX, "said {said}, came {came}");
        drop(host);
    }
}

/// A sample is read of more than a gigabyte: its interval holds the truth, and is useful.
#[test]
fn of_a_larger_heap_a_sample_tells() {
    let Some(mut host) = host() else { return };
    if let Err(why) = host.set(format!("{THP}/defrag"), "always") {
        return skip(&why);
    }
    let Some(java) = java("17") else { return };
    let heap = ["-XX:+UseParallelGC", "-Xms1300m", "-Xmx1300m", "-Xmn60m"];
    let options = [&heap[..], &["-XX:+UseTransparentHugePages", "-XX:+AlwaysPreTouch"]].concat();
    let jvm = Jvm::start(&java, &options, &["marusa.Faults", "fill=500m"]);
    let (zeros, counted) = stopped(&jvm, || (all_zeros(jvm.pid), Counter::new(jvm.pid).huge_pages()));
    let thp = &zeros["total"]["by_sort"]["thp"];
    if counted.len() < 520 {
        return skip(&format!("the host gave {} huge pages only: nothing to sample", counted.len()));
    }
    assert_eq!(zeros["sampled"], true, "{zeros:#}");
    assert_eq!(number(&thp["resident_bytes"]), counted.len() as u64 * 2 * MIB);
    let truth = counted.iter().map(|page| page.zero_pages * 4096).sum::<u64>();
    let [low, said, high] = ["zero_bytes_low", "zero_bytes", "zero_bytes_high"].map(|key| number(&thp[key]));
    println!(
        "{} MiB on huge pages, {} MiB read: said {} to {} MiB of zeros, {}; counted {}",
        number(&thp["resident_bytes"]) / MIB,
        number(&thp["read_bytes"]) / MIB,
        low / MIB,
        high / MIB,
        said / MIB,
        truth / MIB
    );
    assert!(number(&thp["read_bytes"]) <= 600 * MIB, "a sample: {thp:#}");
    // In 95 of 100 cases it is within; as far again to each side it is in all but one of ten thousand.
    let width = high - low;
    assert!((low.saturating_sub(width / 2)..=high + width / 2).contains(&truth), "{thp:#}, counted {truth}");
    assert!(width < truth / 4, "an interval of {} MiB says nothing", width / MIB);
}

#[test]
fn a_jvm_on_small_pages_has_none() {
    let Some(_host) = host() else { return };
    let Some(jvm) = idle("25", "parallel", &["-XX:-UseTransparentHugePages", "-XX:+AlwaysPreTouch"]) else {
        return;
    };
    let found = stopped(&jvm, || zeros(jvm.pid));
    assert!(of_area(&found, "java_heap")["large_bytes"].as_u64().unwrap_or(0) == 0, "{found:#}");
    assert_eq!(number(&found["total"]["split_gives_back_bytes"]), 0, "{found:#}");
    let printed = text(&marusa(&["map", &jvm.pid.to_string(), "--by", "page-size", "--zeros"]).stdout);
    assert!(printed.contains("ZEROS IN LARGE PAGES"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    let findings = examined(&jvm);
    let of_bloat = |id: &str| ["thp-bloat", "thp-stacks", "thp-malloc-arenas"].contains(&id);
    assert!(findings.iter().all(|finding| !of_bloat(finding.id)), "{findings:#?}");
}

fn examined(jvm: &Jvm) -> Vec<Finding> {
    let me = Process::open(std::process::id() as i32).expect("myself");
    let target = Process::open(jvm.pid).expect("the JVM");
    let host = HostFacts::start().finish(&me);
    examine(&Facts { host, jvms: vec![JvmFacts::read(&target, false).expect("its facts")] }, &[])
}

fn level(jvm: &Jvm, id: &str) -> Option<Level> {
    let findings = examined(jvm);
    let found = findings.iter().find(|finding| finding.id == id)?;
    println!("{}: {} {:?}", found.id, found.title, found.cost.bytes);
    Some(found.level)
}

/// A heap of huge pages that nobody asked to be touched, and one that was.
#[test]
fn the_doctor_finds_a_heap_of_zeros() {
    let Some(_host) = host() else { return };
    let thp = "-XX:+UseTransparentHugePages";
    let Some(jvm) = idle("25", "parallel", &[thp, "-XX:+AlwaysPreTouch"]) else { return };
    assert_eq!(level(&jvm, "thp-bloat"), Some(Level::Info), "it was touched on purpose");
    drop(jvm);
    let Some(jvm) = idle("25", "parallel", &[thp, "-XX:-AlwaysPreTouch"]) else { return };
    assert_eq!(level(&jvm, "thp-bloat"), None, "what is not touched is not there");
    drop(jvm);
    let Some(java) = java("25") else { return };
    let options = ["-XX:+UseParallelGC", thp, "-Xms400m", "-Xmx400m", "-XX:-AlwaysPreTouch"];
    let jvm = Jvm::start(&java, &options, &["marusa.Zeros", "mib=200"]);
    assert_eq!(level(&jvm, "thp-bloat"), Some(Level::Warn));
}

#[test]
fn arenas_of_malloc_on_huge_pages() {
    let Some(mut host) = host() else { return };
    let Some(java) = java("25") else { return };
    // So that the memory is on huge pages for sure: what malloc asks for by madvise.
    let _ = host.set(format!("{THP}/defrag"), "always");
    // Of one arena: glibc advises only the main one as it grows (malloc/arena.c, `grow_heap` of 2.36 does not).
    let start = |tunable: &str| {
        let mut command = Command::new(&java);
        command.env("GLIBC_TUNABLES", format!("glibc.malloc.arena_max=1:{tunable}"));
        command.args(["-Xmx64m", "-XX:+UseSerialGC", "-XX:MaxDirectMemorySize=400m", "-cp"]);
        command.arg(root().join("java/build-out")).args([
            "marusa.FreedBuffers",
            "buffers=6000",
            "bytes=32k",
            "kept=4",
        ]);
        Jvm::of(command)
    };
    let jvm = start("glibc.malloc.hugetlb=1");
    let found = stopped(&jvm, || zeros(jvm.pid));
    let on_huge = number(&found["malloc"]["large_bytes"]);
    println!("malloc on huge pages: {} MiB", on_huge / MIB);
    if on_huge < 64 * MIB {
        return skip(
            "this glibc has no tunable glibc.malloc.hugetlb (2.35), or the host has no huge pages left",
        );
    }
    assert_eq!(level(&jvm, "thp-malloc-arenas"), Some(Level::Warn));
    drop(jvm);
    let jvm = start("glibc.malloc.hugetlb=0");
    assert_eq!(level(&jvm, "thp-malloc-arenas"), None);
}

/// Pages of hugetlb, and huge pages of shared memory.
#[test]
fn what_no_split_gives_back_is_distinguished() {
    let Some(mut host) = host() else { return };
    let pool = format!("{HUGETLB}/hugepages-2048kB/nr_overcommit_hugepages");
    let cases = [
        ("17", "parallel", "-XX:+UseLargePages", "hugetlb", pool, "400"),
        (
            "25",
            "z-generational",
            "-XX:+UseTransparentHugePages",
            "shared_memory",
            format!("{THP}/shmem_enabled"),
            "advise",
        ),
    ];
    for (jdk, gc, option, sort, file, value) in cases {
        if let Err(why) = host.set(file, value) {
            return skip(&why);
        }
        let Some(jvm) = idle(jdk, gc, &[option, "-XX:+AlwaysPreTouch"]) else { return };
        let found = stopped(&jvm, || zeros(jvm.pid));
        let heap = of_area(&found, "java_heap");
        let sum = &heap["by_sort"][sort];
        println!("jdk {jdk} {gc}: {sum}");
        if sum.is_null() {
            println!("skipped: the host had no such pages left");
            continue;
        }
        assert!(number(&sum["zero_bytes"]) <= number(&sum["resident_bytes"]));
        assert!(number(&sum["zero_bytes"]) > 100 * MIB, "{heap:#}");
        assert_eq!(number(&heap["split_gives_back_bytes"]), 0, "{heap:#}");
    }
}

#[test]
fn bad_questions_are_refused() {
    let output = marusa(&["map", &std::process::id().to_string(), "--zeros"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--by page-size"), "{}", text(&output.stderr));
    let output = marusa(&["map", &std::process::id().to_string(), "--zeros", "--by", "page-size"]);
    assert_eq!(output.status.code(), Some(3), "no JVM, and so not read");
}
