//! The mode alone is not a finding; harm that was measured is.

use super::*;
use crate::doctor::facts::Daemon;
use crate::doctor::rules::page_cases::{counted, with_modes};

fn facts(enabled: &str, defrag: &str, counters: &[(&str, u64, u64)]) -> Facts {
    Facts { host: with_modes(counted(counters, 2.0), enabled, defrag), jvms: Vec::new() }
}

fn levels(facts: &Facts) -> Vec<Level> {
    find(facts).iter().map(|found| found.level).collect()
}

const STALLS: &[(&str, u64, u64)] = &[("compact_stall", 100, 400), ("thp_fault_alloc", 1, 5)];

#[test]
fn always_without_harm_is_no_finding() {
    assert_eq!(levels(&facts("always", "always", &[])), []);
    assert_eq!(levels(&facts("always", "madvise", STALLS)), [], "no fault waits that did not ask");
    assert_eq!(levels(&facts("madvise", "always", STALLS)), [], "another finding");
}

#[test]
fn threads_that_wait_now_or_did_before() {
    let mut now = facts("always", "always", STALLS);
    now.host.waited_ms = Some(640.0);
    let found = [find(&now).expect("a finding")];
    assert_eq!((found[0].level, found[0].cost.stall_ms), (Level::Warn, Some(640.0)));
    assert!(found[0].title.contains("300 times in 2.0 s"), "{found:#?}");
    assert!(found[0].remedies[0].text().starts_with("echo madvise >"));
    let before = [("compact_stall", 5000, 5000), ("thp_fault_alloc", 10_000, 10_000)];
    assert_eq!(levels(&facts("always", "always", &before)), [Level::Info]);
}

#[test]
fn kcompactd_at_a_fifth_of_a_cpu() {
    let daemon = |watched_ms| {
        let mut facts = facts("always", "defer", &[]);
        facts.host.daemons = vec![Daemon { name: "kcompactd0".to_string(), cpu_ms: 9e9, watched_ms }];
        facts
    };
    assert_eq!(levels(&daemon(390.0)), []);
    assert_eq!(levels(&daemon(400.0)), [Level::Warn]);
    assert_eq!(find(&daemon(400.0)).expect("a finding").cost.cpu_percent, Some(20.0));
}

#[test]
fn huge_pages_that_are_not_to_be_had() {
    let of = |got, not| {
        levels(&facts("always", "defer", &[("thp_fault_alloc", 0, got), ("thp_fault_fallback", 0, not)]))
    };
    assert_eq!(of(1000, 1000), [Level::Info]);
    assert_eq!((of(1001, 1000), of(0, 999)), (vec![], vec![]));
}
