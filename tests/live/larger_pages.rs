//! The Niagara example in the small: a program whose time goes into address translation is not slower on larger pages. How much
//! faster it gets is for `cargo bench --bench niagara`.

use crate::common::*;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 3;
/// What a busy machine may add to the best of all rounds.
const NOISE: f64 = 1.05;

/// Nanoseconds of a dependent access in each round of one run.
fn dependent_ns(java: &Path, pages: &str) -> Vec<f64> {
    let output = Command::new(java)
        .args(["-Xms320m", "-Xmx320m", "-Xmn32m", "-XX:+UseParallelGC", pages, "-cp"])
        .arg(root().join("java/build-out"))
        .args(["marusa.RandomAccess", "heap=256m", "accesses=2m", "rounds=3"])
        .output()
        .expect("java runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    lines
        .lines()
        .filter_map(|line| line.strip_prefix("dependent ")?.split(' ').next()?.parse().ok())
        .collect()
}

#[test]
fn random_access_is_not_slower_on_2_mib_pages() {
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !mode.contains("[madvise]") {
        return skip(&format!("transparent huge pages are not on request here: {:?}", mode.trim()));
    }
    let Some(java) = java("21") else { return };
    let (mut small, mut huge) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        small.extend(dependent_ns(&java, "-XX:-UseTransparentHugePages"));
        huge.extend(dependent_ns(&java, "-XX:+UseTransparentHugePages"));
    }
    assert_eq!((small.len(), huge.len()), (9, 9));
    let best = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let (small, huge) = (best(&small), best(&huge));
    assert!(huge < small * NOISE, "{huge} ns an access on 2 MiB pages, {small} ns on 4 KiB");
}

/// 2 MiB pages that a JVM with -Xms512m -Xmx512m takes from the pool at its start, as the pool counted them, against what is
/// predicted from one that runs on small pages.
#[test]
fn the_need_of_hugetlb_pages_is_within_what_is_predicted() {
    let taken = [
        ("17", "serial", 376),
        ("17", "parallel", 376),
        ("17", "g1", 384),
        ("17", "shenandoah", 393),
        ("17", "z", 376),
        ("25", "parallel", 377),
        ("25", "g1", 381),
        ("25", "shenandoah", 394),
    ];
    for (jdk, gc, pages) in taken {
        let Some(jvm) = Jvm::under_load(&row(jdk, gc), &["-Xms512m", "-Xmx512m"], &["quiet=1"]) else {
            return;
        };
        // Without counters there is no table, and the price anyway.
        let output = marusa(&["tlb", &jvm.pid.to_string(), "100ms", "1", "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let hugetlb = &json["larger_pages"][1];
        assert_eq!(hugetlb["choice"], "hugetlb_2m");
        let need = &hugetlb["pages_2m"];
        let (low, high) = (number(&need["low"]), number(&need["high"]));
        assert!(
            (low..=high).contains(&pages),
            "jdk {jdk} {gc}: {pages} were taken, {low} to {high} predicted"
        );
        assert!(high - low <= 32, "jdk {jdk} {gc}: {low} to {high} says little");
        assert!(json["larger_pages"][0]["memory_more_high_bytes"].is_u64(), "{}", json["larger_pages"][0]);
    }
}
