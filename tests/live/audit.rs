//! The account against the JVM's own word, with Native Memory Tracking on: `System.map` where the JVM has it (21, 25), else
//! the regions of NMT's detail report.

use crate::common::*;
use serde_json::Value;

/// The least share of the resident bytes that the JVM labels that must fall in our matching area.
const AGREED_SHARE_MIN: f64 = 0.995;
const LOAD: &[&str] =
    &["heap=100m", "threads=20", "direct=24m", "mapped=8m", "classes=1000", "jit=1", "deflate=1", "quiet=1"];

fn audit(pid: i32) -> (Option<i32>, Value) {
    let output = marusa(&["audit", &pid.to_string(), "--json"]);
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    (output.status.code(), json)
}

const ASKED_MAX: usize = 3;

#[test]
fn our_areas_agree_with_the_labels_of_the_jvm() {
    let mut broken = Vec::new();
    println!("{:<42} {:>8} {:>10}", "JVM", "MiB", "agreed");
    for row in chosen_rows() {
        // System.map came with 22 and 21.0.8; it needs no more than the summary.
        let has_both_modes = match row.jdk.as_str() {
            "21" | "25" => is_long() || row.gc == "g1" || row.jdk == "21",
            _ => false,
        };
        let modes: &[&str] = if has_both_modes { &["detail", "summary"] } else { &["detail"] };
        for mode in modes {
            let nmt = format!("-XX:NativeMemoryTracking={mode}");
            let Some(jvm) = Jvm::under_load(&row, &["-Xmx256m", &nmt], LOAD) else { continue };
            let name = format!("{}, NMT {mode}", row.name());
            // A compiler that works between our sample and the JVM's answer moves megabytes: what is wrong each time is wrong.
            for asked in 1..=ASKED_MAX {
                let wrong = wrong(&row, &name, audit(jvm.pid));
                if wrong.is_empty() {
                    break;
                }
                if asked == ASKED_MAX {
                    broken.extend(wrong);
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// What of an audit does not agree.
fn wrong(row: &Row, name: &str, (status, audit): (Option<i32>, Value)) -> Vec<String> {
    let mut wrong = Vec::new();
    let labels = &audit["labels"];
    let share = labels["agreed_share"].as_f64().unwrap_or(0.0);
    let bytes = labels["labelled_bytes"].as_u64().unwrap_or(0);
    println!("{name:<42} {:>8} {:>8.3} %", bytes >> 20, share * 100.0);
    if status != Some(0) || share < AGREED_SHARE_MIN || bytes < 100 << 20 {
        wrong.push(format!("{name}: {share} of {bytes}, exit {status:?}, {:#}", labels["disagreements"]));
    }
    check_sums(&audit, row, &mut wrong);
    check_malloc(&audit["malloc"], name, &mut wrong);
    wrong
}

/// Where both sides measure the same thing, they must say the same.
fn check_sums(audit: &Value, row: &Row, broken: &mut Vec<String>) {
    let rows = audit["rows"].as_array().cloned().unwrap_or_default();
    for (area, figure) in
        [("java_heap", "committed"), ("jit_code", "committed"), ("class_metadata", "committed")]
    {
        let Some(found) = rows.iter().find(|one| {
            one["area"] == area
                && one["ours"] == figure
                && one["theirs"].as_str().is_some_and(|name| name.starts_with("NMT"))
        }) else {
            broken.push(format!("{}: no row for {area} {figure}", row.name()));
            continue;
        };
        let theirs = number(&found["theirs_bytes"]);
        let apart = found["difference_bytes"].as_i64().unwrap_or(i64::MAX).unsigned_abs();
        if found["reason"].is_null() && apart * 50 > theirs + (1 << 20) {
            broken.push(format!("{}: {found:#}", row.name()));
        }
    }
}

/// Blocks by tag against NMT's counters; arenas against malloc_info, whose answer the JVM keeps in its own malloc in the meantime.
fn check_malloc(malloc: &Value, name: &str, broken: &mut Vec<String>) {
    let total = &malloc["total"];
    let (ours, counted) = (total["ours_bytes"].as_u64(), total["counter_bytes"].as_u64());
    let apart = total["counter_difference_bytes"].as_i64().map_or(u64::MAX, i64::unsigned_abs);
    if ours.is_none() || counted.is_none_or(|counted| apart > counted / 100) {
        broken.push(format!("{name}: {malloc:#}"));
    }
    for arena in malloc["arenas"].as_array().into_iter().flatten() {
        let apart = |ours: &str, theirs: &str| number(&arena[ours]).abs_diff(number(&arena[theirs]));
        let system = apart("ours_system_bytes", "malloc_info_system_bytes");
        let free = apart("ours_free_bytes", "malloc_info_free_bytes");
        if system > 4 << 20 || free > 4 << 20 {
            broken.push(format!("{name}: {arena}"));
        }
    }
}

#[test]
fn without_nmt_the_audit_says_what_would_help() {
    let Some(jvm) = Jvm::under_load(&row("17", "serial"), &["-Xmx100m"], &["heap=30m", "quiet=1"]) else {
        return;
    };
    let (status, audit) = audit(jvm.pid);
    assert_eq!(status, Some(0));
    assert!(audit["labels"].is_null());
    let gaps = audit["gaps"].to_string();
    assert!(gaps.contains("NativeMemoryTracking"), "{gaps}");
    let heap = audit["rows"].to_string();
    assert!(heap.contains("heap info"), "{heap}");
    assert_eq!(audit["taken"]["attached"], true);
    assert_eq!(audit["receipt"]["signal_sent"], "SIGQUIT");
}

#[test]
fn a_jvm_that_refuses_attach_or_is_stopped_is_not_disturbed() {
    let options = ["-Xmx100m", "-XX:+DisableAttachMechanism"];
    let Some(jvm) = Jvm::under_load(&row("17", "serial"), &options, &["heap=30m", "quiet=1"]) else { return };
    let output = marusa(&["audit", &jvm.pid.to_string()]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("DisableAttachMechanism"), "{}", text(&output.stderr));
    let Some(jvm) = Jvm::under_load(&row("25", "serial"), &["-Xmx100m"], &["heap=30m", "quiet=1"]) else {
        return;
    };
    signal(jvm.pid, libc::SIGSTOP);
    let output = marusa(&["audit", &jvm.pid.to_string()]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("stopped"), "{}", text(&output.stderr));
}
