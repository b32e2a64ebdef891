//! `marusa bench fork` and `marusa bench touch` with real JVMs and real pools, small: that each arm lies on the pages it is about,
//! that what only a fork can cause is seen where there is a fork and nowhere else, and that the host is restored.

mod stopped;
mod touch;

use crate::common::host::{HUGETLB, Host};
use crate::common::{is_root, java, marusa, skip, text};
use serde_json::Value;
use std::fs::read_to_string;
use std::path::PathBuf;
use std::process::Output;

/// What a run leaves of its own lies below this, and is gone with it.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Place {
        let place =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a directory");
        Place(place)
    }
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn pool() -> String {
    read_to_string(format!("{HUGETLB}/hugepages-2048kB/nr_hugepages")).unwrap_or_default()
}

/// The JSON of a run that ends well.
pub fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}\n{}", text(&output.stderr), text(&output.stdout));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn home(jdk: &str) -> Option<String> {
    Some(java(jdk)?.ancestors().nth(2)?.display().to_string())
}

pub fn arm<'a>(report: &'a Value, pages: &str, mechanism: &str) -> &'a Value {
    let arms = report["arms"].as_array().expect("arms");
    let found = arms.iter().find(|one| one["arm"]["pages"] == pages && one["arm"]["mechanism"] == mechanism);
    found.unwrap_or_else(|| panic!("no arm {pages} {mechanism} in {report:#}"))
}

pub fn middle(value: &Value) -> f64 {
    value["median"].as_f64().unwrap_or_else(|| panic!("{value} is not a figure"))
}

#[test]
fn forks_are_paid_where_pages_are_small_and_the_launch_is_a_fork() {
    if !is_root() {
        return skip("only root may change the pool of huge pages");
    }
    let Some(jdk) = home("17") else { return };
    let _host = Host::lock();
    let before = pool();
    let place = Place::new("fork");
    let arguments = [
        "bench",
        "fork",
        "--quiet-wait",
        "0s",
        "--jdk",
        &jdk,
        "--heaps",
        "64M",
        "--children",
        "6",
        "--threads",
        "1,2",
    ];
    let rest = ["--rounds", "2", "--seed", "1", "--json", "--state", &place.path("state")];
    let report = json(&marusa(&[&arguments[..], &rest[..]].concat()));
    assert_eq!(report["schema"], "marusa/bench-fork/3");
    assert_eq!(report["complete"], true, "{:#}", report["gaps"]);
    assert_eq!(pool(), before, "the pool is as it was");
    // 3/4 of the heap is live: 12,288 pages, each of which is made read-only by a fork and by nothing else.
    let faults = |pages, mechanism| middle(&arm(&report, pages, mechanism)["sweep"]["more_faults"]);
    assert!(faults("4k", "FORK") > 0.9 * 12_288.0, "{}", faults("4k", "FORK"));
    assert!(faults("4k", "POSIX_SPAWN") < 0.1 * 12_288.0);
    assert!(faults("4k", "VFORK") < 0.1 * 12_288.0);
    assert!(faults("hugetlb-2m", "FORK") < 0.1 * 12_288.0);
    let tables = |pages| middle(&arm(&report, pages, "FORK")["page_table_bytes"]);
    // The tables of 64 MiB on small pages are 128 KiB.
    assert!(tables("4k") > tables("hugetlb-2m") + 64.0 * 1024.0);
    for pages in ["4k", "thp", "hugetlb-2m"] {
        for mechanism in ["FORK", "VFORK", "POSIX_SPAWN"] {
            let arm = arm(&report, pages, mechanism);
            assert!(middle(&arm["pages_share_before"]) >= 0.9, "{arm:#}");
            for by in arm["children"].as_array().expect("by threads") {
                assert!(middle(&by["start_fastest_ms"]) > 0.0, "{by}");
                assert!(middle(&by["start_ms"]) >= middle(&by["start_fastest_ms"]), "{by}");
                assert!(middle(&by["total_ms"]) >= middle(&by["start_ms"]), "{by}");
                assert_eq!(by["each_ms"]["count"], 2);
            }
        }
    }
    let compared = report["small_pages_by_large"].as_array().expect("comparisons");
    assert_eq!(compared.len(), 3, "each mechanism");
    for ratios in compared.iter().map(|one| one["ratios"].as_array().expect("ratios")) {
        assert_eq!(ratios.len(), 2, "by one thread and by two");
        let is_within = |ratio: &Value| ratio["low"].as_f64() <= ratio["ratio"].as_f64();
        assert!(ratios.iter().all(|by| is_within(&by["each_ms"])), "{ratios:#?}");
    }
    assert_eq!(report["published"][3]["normal_seconds"], 67.062);
}

#[test]
fn which_jdk_has_which_mechanism_is_found_out() {
    let place = Place::new("had");
    for (jdk, has) in [("8", [true, true, false]), ("25", [true, true, true])] {
        let Some(home) = home(jdk) else { continue };
        let arguments = [
            "bench",
            "fork",
            "--quiet-wait",
            "0s",
            "--jdk",
            &home,
            "--heaps",
            "32M",
            "--pages",
            "as-is",
            "--children",
            "2",
        ];
        let rest = ["--rounds", "1", "--threads", "1", "--json", "--state", &place.path("state")];
        let report = json(&marusa(&[&arguments[..], &rest[..]].concat()));
        let tried = report["jdks"][0]["mechanisms"].as_array().expect("mechanisms").clone();
        let had: Vec<bool> = tried.iter().map(|one| one["why_not"].is_null()).collect();
        assert_eq!(had, has, "JDK {jdk}: {tried:#?}");
        if jdk == "8" {
            let why = tried[2]["why_not"].as_str().expect("why");
            assert!(why.contains("POSIX_SPAWN"), "in the JVM's words: {why}");
        } else {
            let said = tried[1]["said"].as_str().unwrap_or_default();
            assert!(said.contains("VFORK"), "JDK 25 warns of VFORK: {said}");
        }
        let arms = report["arms"].as_array().expect("arms").len();
        assert_eq!(arms, has.iter().filter(|has| **has).count());
    }
}

#[test]
fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let Some(jdk) = home("21") else { return };
    let _host = Host::lock();
    let (before, place) = (pool(), Place::new("dry"));
    let state = place.path("state");
    let arguments = [
        "bench",
        "fork",
        "--quiet-wait",
        "0s",
        "--jdk",
        &jdk,
        "--heaps",
        "64M",
        "--dry-run",
        "--state",
        &state,
    ];
    let output = marusa(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains("hugetlb-2m, FORK: java ") && said.contains("dry run: nothing was started or changed"),
        "{said}"
    );
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    assert_eq!(pool(), before);
    assert!(!PathBuf::from(state).exists());
}

#[test]
fn what_can_not_be_is_said() {
    let place = Place::new("bad");
    let state = place.path("state");
    let ends = |arguments: &[&str], status: i32, words: &str| {
        let output =
            marusa(&[&["bench", "fork", "--quiet-wait", "0s", "--state", &state], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    ends(&["--heaps", "64T"], 2, "does not fit");
    ends(&["--heaps", "100000"], 2, "whole MiB");
    ends(&["--launch", "CLONE"], 2, "none of FORK, VFORK, POSIX_SPAWN");
    ends(&["--pages", "8k"], 2, "hugetlb-2m");
    ends(&["--jdk", "/etc"], 2, "is not a JDK");
    ends(&["--jdk", "3"], 2, "no JDK 3 was found");
    ends(&["--save", "/proc/none/file"], 2, "--save /proc/none/file");
}
