//! The page size of every resident byte of real JVMs, against a reading of every single page that shares no line with ours
//! (`walker`). The JVMs are stopped while both read, so that both see the same moment.

mod regions;
mod walker;

use crate::common::host::{HUGETLB, Host, THP};
use crate::common::*;
use marusa::os::folios::{self, Effort};
use marusa::os::pagemap;
use marusa::os::process::Process;
use serde_json::Value;
use std::collections::BTreeMap;
use walker::Walker;

const MIB: u64 = 1 << 20;
const LOAD: &[&str] = &["heap=30m", "threads=4", "classes=100", "quiet=1"];
const HEAP: &[&str] = &["-Xms96m", "-Xmx96m", "-XX:+AlwaysPreTouch", "-XX:ReservedCodeCacheSize=48m"];

fn may_run() -> bool {
    let may = is_root() && std::fs::File::open("/proc/kpageflags").is_ok();
    if !may {
        skip("only CAP_SYS_ADMIN may read the frames of pages");
    }
    may
}

fn jvm(jdk: &str, gc: &str, options: &[&str]) -> Option<Jvm> {
    Jvm::under_load(&row(jdk, gc), &[HEAP, options].concat(), LOAD)
}

fn sizes(value: &Value) -> BTreeMap<u64, u64> {
    let sizes = value.as_object().expect("sizes").iter();
    sizes
        .map(|(size, bytes)| (size.parse().expect("a size"), number(bytes)))
        .filter(|(_, b)| *b > 0)
        .collect()
}

/// Stops every thread of the JVM.
fn stop(jvm: &Jvm) {
    signal(jvm.pid, libc::SIGSTOP);
    let is_stopped = || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", jvm.pid)).expect("threads").flatten();
        let stats =
            threads.map(|thread| std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default());
        stats.into_iter().all(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T")))
    };
    let started = std::time::Instant::now();
    while !is_stopped() {
        assert!(started.elapsed().as_secs() < 20, "the JVM does not stop");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Both readings of a stopped process; they must be the same to the byte, and sum to what is resident.
fn compared(name: &str, jvm: &Jvm) -> (Value, BTreeMap<u64, u64>) {
    stop(jvm);
    let output = marusa(&["map", &jvm.pid.to_string(), "--by", "page-size", "--json"]);
    let slow = Walker::new(jvm.pid).by_page_size(&walker::vmas(jvm.pid));
    signal(jvm.pid, libc::SIGCONT);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let map: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    check_laws(&map);
    let ours = sizes(&map["page_sizes"]["by_page_size"]);
    assert_eq!(ours, slow, "{name}");
    assert_eq!(ours.values().sum::<u64>(), number(&map["totals"]["resident_bytes"]), "{name}");
    assert_eq!(map["page_sizes"]["estimated"], false, "{name} is small enough to be read whole");
    for area in map["areas"].as_array().expect("areas") {
        let kinds: u64 = area["by_page_kind"].as_object().iter().flat_map(|k| k.values()).map(number).sum();
        assert_eq!(kinds, number(&area["resident_bytes"]), "{name}: kinds of {}", area["area"]);
    }
    println!("{name}: {ours:?}");
    (map, ours)
}

fn heap(map: &Value) -> BTreeMap<u64, u64> {
    sizes(&area(map, "java_heap")["by_page_size"])
}

const ROWS: [(&str, &str); 6] = [
    ("17", "parallel"),
    ("17", "z"),
    ("25", "g1"),
    ("17", "g1"),
    ("25", "parallel"),
    ("25", "z-generational"),
];

/// The first three, of which each is of another kind; all in `make test-long`.
fn chosen() -> &'static [(&'static str, &'static str)] {
    if is_long() { &ROWS } else { &ROWS[..3] }
}

#[test]
fn on_small_pages() {
    if !may_run() {
        return;
    }
    for &(jdk, gc) in chosen() {
        let Some(jvm) = jvm(jdk, gc, &[]) else { return };
        let (map, _) = compared(&format!("4K, jdk {jdk} {gc}"), &jvm);
        assert_eq!(heap(&map).into_keys().collect::<Vec<_>>(), [4096]);
    }
}

#[test]
fn on_transparent_huge_pages() {
    if !may_run() {
        return;
    }
    for &(jdk, gc) in chosen() {
        let mut host = Host::lock();
        let set = host
            .set(format!("{THP}/enabled"), "madvise")
            .and_then(|()| host.set(format!("{THP}/shmem_enabled"), "advise"));
        if let Err(why) = set {
            return skip(&why);
        }
        let Some(jvm) = jvm(jdk, gc, &["-XX:+UseTransparentHugePages"]) else { return };
        drop(host);
        let (map, _) = compared(&format!("THP, jdk {jdk} {gc}"), &jvm);
        let huge = heap(&map).get(&(2 << 20)).copied().unwrap_or(0);
        // JDK 17 touches the heap of ZGC before it asks for huge pages.
        assert!(huge > 0 || gc == "z", "jdk {jdk} {gc} has huge pages");
    }
}

/// No interface but kpageflags tells of these: smaps and the JVM itself say 4 KiB and 2 MiB.
#[test]
fn on_folios_of_64_kib() {
    if !may_run() {
        return;
    }
    for (jdk, gc) in [("17", "parallel"), ("25", "g1"), ("25", "z-generational")] {
        let mut host = Host::lock();
        let set = host
            .set(format!("{THP}/enabled"), "madvise")
            .and_then(|()| host.set(format!("{THP}/hugepages-2048kB/enabled"), "never"))
            .and_then(|()| host.set(format!("{THP}/hugepages-64kB/enabled"), "madvise"))
            .and_then(|()| host.set(format!("{THP}/shmem_enabled"), "advise"))
            .and_then(|()| host.set(format!("{THP}/hugepages-2048kB/shmem_enabled"), "never"))
            .and_then(|()| host.set(format!("{THP}/hugepages-64kB/shmem_enabled"), "advise"));
        if let Err(why) = set {
            return skip(&why);
        }
        let Some(jvm) = jvm(jdk, gc, &["-XX:+UseTransparentHugePages"]) else { return };
        drop(host);
        let (map, _) = compared(&format!("64K folios, jdk {jdk} {gc}"), &jvm);
        let folios = heap(&map).get(&(64 << 10)).copied().unwrap_or(0);
        assert!(folios > 20 * MIB, "jdk {jdk} {gc} has {:?}", heap(&map));
    }
}

#[test]
fn on_hugetlb_pages_of_2_mib() {
    if !may_run() {
        return;
    }
    for (jdk, gc) in [("17", "parallel"), ("17", "g1"), ("25", "g1"), ("25", "z-generational")] {
        let mut host = Host::lock();
        if let Err(why) = host.set(format!("{HUGETLB}/hugepages-2048kB/nr_overcommit_hugepages"), "256") {
            return skip(&why);
        }
        let Some(jvm) = jvm(jdk, gc, &["-XX:+UseLargePages"]) else { return };
        let (map, _) = compared(&format!("hugetlb 2M, jdk {jdk} {gc}"), &jvm);
        let kinds = &area(&map, "java_heap")["by_page_kind"];
        assert!(
            kinds["hugetlb_2m"].as_u64().is_some_and(|bytes| bytes >= 64 * MIB),
            "jdk {jdk} {gc}: {kinds}"
        );
    }
}

#[test]
fn on_hugetlb_pages_of_1_gib() {
    if !may_run() {
        return;
    }
    let mut host = Host::lock();
    let pool = format!("{HUGETLB}/hugepages-1048576kB/nr_hugepages");
    let set = host
        .set(pool.clone(), "1")
        .or_else(|_| {
            // Moves what can be moved together, and changes nothing else.
            let _ = std::fs::write("/proc/sys/vm/compact_memory", "1");
            host.set(pool, "1")
        })
        .and_then(|()| host.set(format!("{HUGETLB}/hugepages-2048kB/nr_overcommit_hugepages"), "64"));
    if let Err(why) = set {
        // Memory may be too fragmented, which is not a fault of ours.
        println!("skipped: {why}");
        return;
    }
    let options =
        ["-XX:+UseLargePages", "-XX:LargePageSizeInBytes=1g", "-Xms1g", "-Xmx1g", "-XX:-AlwaysPreTouch"];
    let Some(jvm) = jvm("17", "parallel", &options) else { return };
    let (map, ours) = compared("hugetlb 1G, jdk 17 parallel", &jvm);
    assert_eq!(ours.get(&(1 << 30)), Some(&(1 << 30)), "{ours:?}");
    assert_eq!(number(&area(&map, "java_heap")["by_page_kind"]["hugetlb_1g"]), 1 << 30);
}

/// As it is after reclaim split some: huge pages, and small ones between.
#[test]
fn on_a_heap_of_huge_and_small_pages() {
    if !may_run() {
        return;
    }
    let mut host = Host::lock();
    if let Err(why) = host.set(format!("{THP}/enabled"), "madvise") {
        return skip(&why);
    }
    let Some(jvm) = jvm("25", "parallel", &["-XX:+UseTransparentHugePages"]) else { return };
    drop(host);
    stop(&jvm);
    let split = regions::split_some(jvm.pid, &walker::vmas(jvm.pid));
    let file = std::env::temp_dir().join(format!("marusa-page-sizes-{}.frozen", std::process::id()));
    let path = file.to_str().expect("UTF-8");
    let frozen = marusa(&["freeze", &jvm.pid.to_string(), "-o", path]);
    assert!(frozen.status.success(), "{}", text(&frozen.stderr));
    let (map, ours) = compared("mixed, jdk 25 parallel", &jvm);
    if split {
        let heap = heap(&map);
        assert!(heap.len() > 1, "huge and small pages: {heap:?} of {ours:?}");
    }
    // What is frozen is what was live.
    let output = marusa(&["map", "--from", path, "--by", "page-size", "--json"]);
    let mapping = marusa(&["map", "--from", path, "--by", "mapping"]);
    let _ = std::fs::remove_file(&file);
    let thawed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // Not all of it: how many other processes share a library may change in the meantime.
    for known in map["areas"].as_array().expect("areas") {
        let name = known["area"].as_str().expect("a name");
        assert_eq!(area(&thawed, name)["by_page_kind"], known["by_page_kind"], "{name}");
    }
    assert_eq!(thawed["page_sizes"]["by_page_kind"], map["page_sizes"]["by_page_kind"]);
    let mapping = text(&mapping.stdout);
    let heap = mapping.lines().find(|line| line.contains(" eden")).expect("eden has a line");
    assert!(heap.contains("rw- hg"), "{heap}");
    assert!(mapping.lines().all(|line| line.chars().count() <= 100), "{mapping}");
}

/// A sample of a tenth of the memory, of a JVM whose folios are of two sizes: the interval holds what is there.
#[test]
fn a_sample_says_how_wrong_it_may_be() {
    if !may_run() {
        return;
    }
    let mut host = Host::lock();
    let set = host
        .set(format!("{THP}/enabled"), "madvise")
        .and_then(|()| host.set(format!("{THP}/hugepages-2048kB/enabled"), "never"))
        .and_then(|()| host.set(format!("{THP}/hugepages-64kB/enabled"), "madvise"));
    if let Err(why) = set {
        return skip(&why);
    }
    let Some(jvm) = jvm("25", "parallel", &["-XX:+UseTransparentHugePages"]) else { return };
    drop(host);
    let (_, exact) = compared("64K folios to be sampled", &jvm);
    stop(&jvm);
    let process = Process::open(jvm.pid).expect("the JVM");
    let mappings = process.mappings().expect("maps");
    let status = process.status().expect("status");
    let runs = pagemap::read(&process, &mappings, &status, None).expect("pages").runs;
    let effort = Effort { folio_bytes: 64 << 20, contiguity_bytes: 1 << 20, blocks: 6 };
    let sizes = folios::read_with(&process, &mappings, &runs, &status, effort).expect("sizes");
    assert!(sizes.is_estimated());
    let estimate: u64 =
        sizes.runs.iter().filter(|run| run.kind.page_bytes() == 64 << 10).map(|run| run.range.bytes()).sum();
    let error = sizes.error_bytes()[&(64 << 10)];
    let truth = exact[&(64 << 10)];
    println!("{} MiB ± {} MiB, and it is {} MiB", estimate >> 20, error >> 20, truth >> 20);
    assert!(error > 0 && estimate.abs_diff(truth) <= error, "{estimate} ± {error}, not {truth}");
}

/// Without the right to see frames: what is mapped 2 MiB at a time is still reported, the rest is reported missing.
#[test]
fn without_the_right_to_see_frames() {
    if !may_run() {
        return;
    }
    let Some(jvm) = jvm("25", "parallel", &[]) else { return };
    let mut command = std::process::Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", env!("CARGO_BIN_EXE_marusa"), "map"]);
    let output = command.args([&jvm.pid.to_string(), "--by", "page-size", "--json"]).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skip("setpriv cannot take CAP_SYS_ADMIN away");
    };
    let map: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let gaps = map["gaps"].as_array().expect("gaps");
    let hidden =
        gaps.iter().find(|gap| gap["what"].as_str().is_some_and(|what| what.starts_with("folios of")));
    let gap = hidden.unwrap_or_else(|| panic!("a gap names the folios: {gaps:?}"));
    assert!(
        gap["why"] == "denied" && gap["hint"].as_str().is_some_and(|hint| hint.contains("CAP_SYS_ADMIN"))
    );
    assert_eq!(
        sizes(&map["page_sizes"]["by_page_size"]).values().sum::<u64>(),
        number(&map["totals"]["resident_bytes"])
    );
    assert!(map["page_sizes"]["contiguous"].is_null());
}
