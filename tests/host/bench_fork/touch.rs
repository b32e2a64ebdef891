//! `marusa bench touch`: each size of pages is really had, and its faults and page tables are the ones that it must have.

use super::{Place, home, json, middle, pool};
use crate::common::host::{Host, THP};
use crate::common::{is_root, marusa, skip, text};
use serde_json::Value;
use std::fs::read_to_string;

fn arm<'a>(report: &'a Value, by: &str, pages: &str) -> &'a Value {
    let arms = report["arms"].as_array().expect("arms");
    let is_it = |arm: &Value| arm["by"] == by && arm["pages"] == pages && arm["threads"] == 1;
    let found = arms.iter().find(|one| is_it(&one["arm"]));
    found.unwrap_or_else(|| panic!("no arm {by} {pages} in {report:#}"))
}

#[test]
fn every_size_has_its_faults_and_its_page_tables() {
    if !is_root() {
        return skip("only root may change the pool of huge pages");
    }
    let setting = format!("{THP}/hugepages-64kB/enabled");
    let Ok(before) = read_to_string(&setting) else {
        return skip("this kernel has no transparent 64 KiB pages (Linux 6.8)");
    };
    let _host = Host::lock();
    let (pool_before, place) = (pool(), Place::new("touch"));
    let pages = "4k,thp-64k,thp-2m,hugetlb-2m";
    let arguments = [
        "bench",
        "touch",
        "--quiet-wait",
        "0s",
        "--by",
        "own",
        "--bytes",
        "64M",
        "--pages",
        pages,
        "--threads",
        "1,2",
    ];
    let rest = ["--rounds", "2", "--json", "--state", &place.path("state")];
    let report = json(&marusa(&[&arguments[..], &rest[..]].concat()));
    assert_eq!((&report["schema"], &report["complete"]), (&"marusa/bench-touch/3".into(), &true.into()));
    assert_eq!(read_to_string(&setting).expect("there"), before, "the setting is as it was");
    assert_eq!(pool(), pool_before, "the pool is as it was");
    for (pages, faults) in [("4k", 16_384.0), ("thp-64k", 1024.0), ("thp-2m", 32.0), ("hugetlb-2m", 32.0)] {
        let arm = arm(&report, "own", pages);
        assert!(middle(&arm["share"]) >= 0.99, "{arm:#}");
        // Threads and figures take some of their own.
        let found = middle(&arm["faults"]);
        assert!((faults..faults + 400.0).contains(&found), "{pages}: {found} faults");
        assert!(middle(&arm["ns_per_4k"]) > 0.0 && middle(&arm["zeroing_ns_per_4k"]) > 0.0);
    }
    // 8 bytes for each 4 KiB; for a transparent page of 2 MiB a table is put by, for one of hugetlb none.
    let tables = |pages| middle(&arm(&report, "own", pages)["page_table_bytes_per_gib"]);
    let full = f64::from(2 << 20);
    assert!((0.9 * full..3.0 * full).contains(&tables("4k")), "{}", tables("4k"));
    assert!((0.9 * full..3.0 * full).contains(&tables("thp-2m")), "{}", tables("thp-2m"));
    assert!(tables("hugetlb-2m") < tables("4k") / 2.0, "{}", tables("hugetlb-2m"));
    assert!(report["zero_fault_ns"].as_f64().is_some_and(|ns| ns > 0.0));
}

#[test]
fn a_jvm_that_touches_its_heap_is_seen_to() {
    let Some(jdk) = home("21") else { return };
    let place = Place::new("touch-jvm");
    let arguments = [
        "bench",
        "touch",
        "--quiet-wait",
        "0s",
        "--by",
        "jvm",
        "--jdk",
        &jdk,
        "--bytes",
        "128M",
        "--pages",
        "4k",
    ];
    let rest = ["--threads", "1", "--rounds", "1", "--json", "--state", &place.path("state")];
    let _host = Host::lock();
    let output = marusa(&[&arguments[..], &rest[..]].concat());
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("JSON: {}", text(&output.stderr)));
    let arm = arm(&report, "jvm", "4k");
    assert!(middle(&arm["share"]) >= 0.99, "{report:#}");
    // Each page of the heap, less the few that a JVM touches anyway.
    assert!(middle(&arm["faults"]) > 0.8 * 32_768.0, "{arm:#}");
    assert!(middle(&arm["page_table_bytes_per_gib"]) > 0.8 * f64::from(2 << 20));
    assert!(arm["zeroing_ns_per_4k"].is_null(), "of a JVM the zeroing is not distinguished");
}
