//! Six cases in which a JVM reports a page size that it does not have (docs/page-reasons.md), each made with a real JVM: the
//! claim must be shown, and be called false. And `--require`, which would have caught them all.

use crate::common::host::{HUGETLB, Host, THP};
use crate::common::*;
use serde_json::Value;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const READY_MAX: Duration = Duration::from_secs(60);
const HEAP: &[&str] = &["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch", "-XX:ReservedCodeCacheSize=48m"];
/// Enough for the code cache, which is reserved first, and too few for the heap.
const TOO_FEW_PAGES: &str = "30";

/// A JVM whose output goes to a file, so that what it logs can be read.
struct Logging {
    child: Child,
    log: PathBuf,
}

impl Logging {
    fn start(jdk: &str, options: &[&str], thp_disabled: bool) -> Option<Logging> {
        let java = java(jdk)?;
        let log =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pagesize-{jdk}-{}", std::process::id()));
        let output = File::create(&log).expect("a log file");
        let mut command = Command::new(java);
        command.args(HEAP).arg("-Xlog:pagesize").args(options).arg("-cp").arg(root().join("java/build-out"));
        command.args(["marusa.Load", "quiet=1"]);
        command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::null());
        if thp_disabled {
            let disable = || {
                // SAFETY: prctl with these arguments only sets a flag of the new process.
                unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
                Ok(())
            };
            // SAFETY: the closure allocates nothing and calls only prctl.
            unsafe { command.pre_exec(disable) };
        }
        let jvm = Logging { child: command.spawn().expect("java starts"), log };
        let started = Instant::now();
        while !jvm.output().contains("READY") {
            assert!(started.elapsed() < READY_MAX, "not ready: {}", jvm.output());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(jvm)
    }

    fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The account with claims and reasons; `ask`: the JVM's own words too.
    fn pages(&self, ask: bool) -> Value {
        let pid = self.pid();
        let mut arguments = vec!["map", &pid, "--by", "page-size", "--json"];
        arguments.extend(ask.then_some("--ask"));
        let output = marusa(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let map: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        check_laws(&map);
        check_findings(&map);
        map
    }

    /// Exit status and output of `map --require`.
    fn require(&self, requirement: &str) -> (Option<i32>, String) {
        let output = marusa(&["map", &self.pid(), "--require", requirement]);
        (output.status.code(), text(&output.stdout))
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

/// The reasons of each part sum to what it has on small pages.
fn check_findings(map: &Value) {
    let findings = map["page_findings"].as_array().expect("findings");
    for area in map["areas"].as_array().expect("areas") {
        for part in area["parts"].as_array().expect("parts") {
            let sizes = part["by_page_size"].as_object().expect("sizes");
            let is_small = |size: &str| size.parse::<u64>().is_ok_and(|size| size < 2 << 20);
            let small: u64 =
                sizes.iter().filter(|(size, _)| is_small(size)).map(|(_, bytes)| number(bytes)).sum();
            let found = findings.iter().filter(|f| {
                f["area"] == area["area"] && f["part"] == part["part"] && f["reason"] != "never_touched"
            });
            let found: u64 = found.map(|finding| number(&finding["bytes"])).sum();
            assert_eq!(found, small, "{} / {}", area["area"], part["part"]);
        }
    }
}

/// What was claimed by `source` about memory, and the verdict.
fn claim(map: &Value, source: &str, about: &str) -> (String, String) {
    let claims = map["page_claims"].as_array().expect("claims");
    let found = claims.iter().find(|claim| claim["source"] == source && claim["about"] == about);
    let found = found.unwrap_or_else(|| panic!("no claim of {source} about {about}: {claims:#?}"));
    let word = |key: &str| found[key].as_str().unwrap_or_default().to_string();
    (word("says"), word("verdict"))
}

fn says(claim: &str, verdict: &str) -> (String, String) {
    (claim.to_string(), verdict.to_string())
}

/// Bytes of the heap that have one reason.
fn heap_bytes_by(map: &Value, reason: &str) -> u64 {
    let findings = map["page_findings"].as_array().expect("findings").iter();
    findings.filter(|f| f["area"] == "java_heap" && f["reason"] == reason).map(|f| number(&f["bytes"])).sum()
}

fn heap_pages(map: &Value, size: &str) -> u64 {
    area(map, "java_heap")["by_page_size"][size].as_u64().unwrap_or(0)
}

fn overcommit(pages: &str) -> (String, &str) {
    (format!("{HUGETLB}/hugepages-2048kB/nr_overcommit_hugepages"), pages)
}
fn thp(file: &str, word: &'static str) -> (String, &'static str) {
    (format!("{THP}/{file}"), word)
}

#[test]
fn false_report_1_jdk_11_logs_large_pages_for_a_heap_that_has_none() {
    let Some(_host) = Host::with(&[overcommit(TOO_FEW_PAGES)]) else { return };
    let Some(jvm) = Logging::start("11", &["-XX:+UseLargePages", "-XX:+UseParallelGC"], false) else {
        return;
    };
    let map = jvm.pages(false);
    assert_eq!(heap_pages(&map, "2097152"), 0, "{}", jvm.output());
    assert_eq!(claim(&map, "-Xlog:pagesize", "Heap"), says("page_size=2M", "false"));
    assert_eq!(claim(&map, "-XX:+UseLargePages", "Java heap"), says("hugetlb", "false"));
    assert_eq!(claim(&map, "-XX:+UseLargePages", "JIT code").1, "true", "it came first");
    assert_eq!(heap_bytes_by(&map, "pool_short"), heap_pages(&map, "4096"));
}

#[test]
fn false_report_2_large_page_support_is_enabled_explicit_and_the_heap_is_on_small_pages() {
    for jdk in ["17", "21", "25"] {
        let Some(_host) = Host::with(&[overcommit(TOO_FEW_PAGES)]) else { return };
        let Some(jvm) = Logging::start(jdk, &["-XX:+UseLargePages", "-XX:+UseParallelGC"], false) else {
            return;
        };
        let map = jvm.pages(true);
        assert_eq!(heap_pages(&map, "2097152"), 0, "JDK {jdk}: {}", jvm.output());
        let support = claim(&map, "VM.info", "Java heap");
        assert_eq!(support, says("Large Page Support: Enabled (Explicit)", "false"), "JDK {jdk}");
        assert_eq!(claim(&map, "-XX:+UseLargePages", "Java heap").1, "false", "JDK {jdk}");
        let (status, line) = jvm.require("heap=hugetlb-2M");
        assert!(status == Some(1) && line.contains("no, 0.0 %"), "JDK {jdk}: {line}");
        assert!(line.contains("pool of 2M pages too small at start"), "JDK {jdk}: {line}");
        assert_eq!(jvm.require("code-cache=hugetlb").0, Some(0), "JDK {jdk}");
    }
}

#[test]
fn false_report_3_zgc_is_enabled_transparent_where_shared_memory_gets_no_huge_pages() {
    for jdk in ["17", "21"] {
        let Some(_host) = Host::with(&[thp("enabled", "madvise"), thp("shmem_enabled", "never")]) else {
            return;
        };
        let Some(jvm) = Logging::start(jdk, &["-XX:+UseTransparentHugePages", "-XX:+UseZGC"], false) else {
            return;
        };
        let map = jvm.pages(true);
        let support = claim(&map, "VM.info", "Java heap");
        assert_eq!(support, says("Large Page Support: Enabled (Transparent)", "false"), "JDK {jdk}");
        assert_eq!(claim(&map, "-XX:+UseTransparentHugePages", "Java heap").1, "false", "JDK {jdk}");
        let (status, line) = jvm.require("heap=thp");
        assert!(
            status == Some(1) && line.contains("transparent_hugepage/shmem_enabled is never"),
            "JDK {jdk}: {line}"
        );
    }
}

#[test]
fn false_report_4_the_log_says_2m_for_a_heap_on_folios_of_64k() {
    let files = ["hugepages-2048kB/enabled", "hugepages-64kB/enabled"];
    let Some(_host) =
        Host::with(&[thp("enabled", "madvise"), thp(files[0], "never"), thp(files[1], "madvise")])
    else {
        return;
    };
    let options = ["-XX:+UseTransparentHugePages", "-XX:+UseParallelGC"];
    let Some(jvm) = Logging::start("25", &options, false) else { return };
    let map = jvm.pages(false);
    assert!(heap_pages(&map, "65536") > 60 << 20, "{:?}", area(&map, "java_heap")["by_page_size"]);
    assert_eq!(claim(&map, "-Xlog:pagesize", "Heap"), says("page_size=2M", "false"));
    assert_eq!(heap_bytes_by(&map, "other_size"), heap_pages(&map, "65536"));
    assert_eq!(jvm.require("heap>=90%@64K").0, Some(0));
    let (status, line) = jvm.require("heap=2M");
    assert!(status == Some(1) && line.contains("64K pages were chosen"), "{line}");
}

#[test]
fn false_report_5_the_log_is_of_the_reservation_and_no_page_came() {
    let Some(_host) = Host::with(&[thp("enabled", "madvise")]) else { return };
    let options = ["-XX:+UseTransparentHugePages", "-XX:+UseParallelGC"];
    for jdk in ["17", "25"] {
        let Some(jvm) = Logging::start(jdk, &options, true) else { return };
        let map = jvm.pages(false);
        assert_eq!(claim(&map, "-Xlog:pagesize", "Heap"), says("page_size=2M", "false"), "JDK {jdk}");
        assert_eq!(heap_bytes_by(&map, "process_disabled"), heap_pages(&map, "4096"), "JDK {jdk}");
        let (status, line) = jvm.require("heap=thp");
        assert!(status == Some(1) && line.contains("THP_enabled: 0"), "JDK {jdk}: {line}");
    }
}

#[test]
fn false_report_6_system_map_says_4k_for_a_heap_on_2m() {
    let Some(_host) = Host::with(&[thp("enabled", "madvise")]) else { return };
    let options = ["-XX:+UseTransparentHugePages", "-XX:+UseParallelGC"];
    for jdk in ["21", "25"] {
        let Some(jvm) = Logging::start(jdk, &options, false) else { return };
        let map = jvm.pages(true);
        // The column is wrong, the note next to it right.
        assert_eq!(claim(&map, "System.map", "Java heap"), says("pgsz 4K", "false"), "JDK {jdk}");
        let claims = map["page_claims"].as_array().expect("claims");
        let note = claims.iter().find(|claim| claim["says"] == "notes thp" && claim["about"] == "Java heap");
        assert_eq!(note.map(|claim| &claim["verdict"]), Some(&Value::from("true")), "JDK {jdk}");
        let (status, line) = jvm.require("heap=2M");
        assert!(status == Some(0) && line.starts_with("heap=2M: yes, 100 %"), "JDK {jdk}: {line}");
    }
}

/// The kernel's own word for each mapping: whether it may have huge pages at all.
fn eligible(pid: &str) -> Vec<(u64, bool)> {
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("smaps");
    let mut found: Vec<(u64, bool)> = Vec::new();
    for line in smaps.lines() {
        let start = line.split_once('-').and_then(|(start, _)| u64::from_str_radix(start, 16).ok());
        match (start, line.strip_prefix("THPeligible:")) {
            (Some(start), _) => found.push((start, false)),
            (_, Some(flag)) => found.last_mut().expect("a mapping").1 = flag.trim() == "1",
            _ => {}
        }
    }
    found
}

#[test]
fn a_reason_that_blames_the_mapping_is_what_the_kernel_says_of_it() {
    let cases = [
        ("25", "-XX:+UseParallelGC", "madvise", "never", "-XX:+UseTransparentHugePages"),
        ("17", "-XX:+UseG1GC", "madvise", "never", "-XX:-UseTransparentHugePages"),
        ("25", "-XX:+UseZGC", "always", "advise", "-XX:+UseTransparentHugePages"),
        ("21", "-XX:+UseSerialGC", "never", "never", "-XX:+UseTransparentHugePages"),
    ];
    for (jdk, gc, mode, shmem, flag) in cases {
        let Some(_host) = Host::with(&[thp("enabled", mode), thp("shmem_enabled", shmem)]) else { return };
        let Some(jvm) = Logging::start(jdk, &[gc, flag], false) else { return };
        let output = marusa(&["map", &jvm.pid(), "--by", "mapping", "--json"]);
        let map: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let eligible = eligible(&jvm.pid());
        let (mut agreed, mut blamed) = (0, 0);
        for span in map["mappings"].as_array().expect("mappings") {
            let Some(reason) = span["why_not_larger"].as_str() else { continue };
            let start = span["start"]
                .as_str()
                .and_then(|at| u64::from_str_radix(&at[2..], 16).ok())
                .expect("a start");
            let (_, may) = eligible[eligible.partition_point(|(at, _)| *at <= start) - 1];
            // What is not a whole block says nothing of the mapping; private copies are eligible but never collapse.
            match reason {
                "edge" | "split" | "private_copy" => {}
                "not_yet" | "hole" => {
                    assert!(may, "JDK {jdk} {gc}: {span:#}");
                    agreed += 1;
                }
                _ => {
                    assert!(!may, "JDK {jdk} {gc}: {span:#}");
                    blamed += 1;
                }
            }
        }
        assert!(
            blamed > 20 && (mode == "never" || agreed + blamed > 25),
            "JDK {jdk} {gc}: {agreed} {blamed}"
        );
    }
}

#[test]
fn a_requirement_of_a_frozen_file_and_requirements_that_make_no_sense() {
    let Some(_host) = Host::with(&[thp("enabled", "madvise")]) else { return };
    let Some(jvm) = Logging::start("17", &["-XX:+UseParallelGC"], false) else { return };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("require-{}.frozen", std::process::id()));
    let name = file.to_string_lossy().into_owned();
    assert!(marusa(&["freeze", &jvm.pid(), "-o", &name]).status.success());
    for arguments in [["map", "--from", &name], ["map", &jvm.pid(), "--json"]] {
        let output = marusa(&[&arguments[..], &["--require", "heap=2M", "--require", "all=4K"]].concat());
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        match serde_json::from_str::<Value>(&said) {
            Ok(map) => {
                assert_eq!(map["requirements"][0]["met"], false);
                assert_eq!(map["requirements"][0]["reasons"][0]["reason"], "not_advised");
                assert_eq!(map["requirements"][1]["met"], true);
            }
            Err(_) => {
                assert!(said.starts_with("heap=2M: no, ") && said.contains("\nall=4K: yes, 100 %"), "{said}")
            }
        }
    }
    std::fs::remove_file(file).expect("the file is ours");
    for bad in ["heap", "heap=3M", "no such part=2M", "heap>=2M"] {
        let output = marusa(&["map", &jvm.pid(), "--require", bad]);
        assert_eq!(output.status.code(), Some(2), "{bad}: {}", text(&output.stderr));
    }
    assert_eq!(marusa(&["map", &jvm.pid(), "--ask"]).status.code(), Some(2), "--ask without --by page-size");
}
