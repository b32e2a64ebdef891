//! A program whose time goes into address translation is not slower on larger pages. How much
//! faster it gets is for `cargo bench --bench prove`.

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
