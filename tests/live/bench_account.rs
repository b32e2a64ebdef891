//! The experiments that hold the account against the paper of 2010, on real JVMs: direct buffers in full, the others small.

use crate::common::*;
use serde_json::Value;
use std::path::Path;

/// The home of a test JDK.
fn home(jdk: &str) -> Option<String> {
    Some(java(jdk)?.parent().and_then(Path::parent).expect("bin/java").display().to_string())
}

/// `marusa bench ARGUMENTS --json`, with its exit status.
fn bench(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = marusa(&[&["bench"], arguments, &["--json"]].concat());
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)));
    assert_eq!(text(&output.stderr), "", "nothing to complain about, and no bar without a terminal");
    (output.status.code(), json)
}

#[test]
fn direct_buffers_are_what_the_program_took_and_freed_ones_are_held_or_returned() {
    let mut broken = Vec::new();
    let all = [("8", "1"), ("17", "1,8"), ("25", "1"), ("11", "1"), ("21", "1"), ("25", "8")];
    for (jdk, threads) in &all[..if is_long() { all.len() } else { 3 }] {
        let Some(home) = home(jdk) else { continue };
        let (status, json) = bench(&["direct-buffers", "--jdk", &home, "--runs", "1", "--threads", threads]);
        assert_eq!(json["schema"], "marusa/bench-direct-buffers/3");
        for run in json["trials"].as_array().expect("trials") {
            let share = |key: &str| run[key].as_f64().unwrap_or(f64::INFINITY);
            let (direct, freed) = (share("direct_off_share"), share("freed_off_share"));
            let name = format!("JDK {jdk}, {} threads", run["arm"]["threads"]);
            println!("{name}: direct off by {:.3} %, freed off by {:.3} %", direct * 100.0, freed * 100.0);
            assert_eq!(json["settings"]["expected_bytes"], 10_000 * 32 * 1024);
            if status != Some(0) || direct.abs() > 0.01 || freed.abs() > 0.01 {
                broken.push(format!("{name}: {run:#}"));
            }
            let steps = run["steps"].as_array().expect("steps");
            assert_eq!(steps.len(), 4, "{name}: {}", run["not_trimmed"]);
            // What the account predicted came back.
            let (held, trimmed) = (number(&steps[2]["trimmable_bytes"]), run["trimmed_bytes"].as_i64());
            let apart = (trimmed.expect("trimmed") as f64 - held as f64).abs();
            assert!(apart < 0.01 * held as f64 + (2 << 20) as f64, "{name}: {held} and {trimmed:?}");
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_page_more_for_each_buffer_is_what_the_paper_measured() {
    let Some(home) = home("17") else { return };
    let (status, json) =
        bench(&["direct-buffers", "--jdk", &home, "--runs", "1", "--threads", "1", "--page-aligned"]);
    let run = &json["trials"][0];
    assert_eq!(status, Some(0), "{run:#}");
    let taken = number(&run["steps"][1]["areas"]["direct_buffers_resident_bytes"]) as f64 / 1048576.0;
    assert!((taken - 351.7).abs() < 3.5, "{taken} MiB");
}

fn point<'a>(json: &'a Value, accessors: &str, calls: u64) -> &'a Value {
    let arms = json["arms"].as_array().expect("arms");
    let is_it = |arm: &Value| arm["accessors"] == accessors && arm["calls"] == calls;
    let found = arms.iter().find(|one| is_it(&one["arm"]));
    found.unwrap_or_else(|| panic!("no {accessors} {calls}"))
}

#[test]
fn accessors_that_are_called_often_become_classes_where_the_jdk_makes_them() {
    const SMALL: [&str; 8] = ["--fields", "600", "--classes", "6", "--calls", "10,100", "--runs", "1"];
    let classes = |json: &Value, accessors: &str, calls: u64| {
        point(json, accessors, calls)["classes"]["median"].as_f64().expect("classes")
    };
    let metadata = |json: &Value, calls: u64| {
        point(json, "default", calls)["class_metadata_bytes"]["median"].as_f64().expect("bytes")
    };
    if let Some(home) = home("17") {
        let jdk = 17;
        let (status, json) = bench(&[&["reflection", "--jdk", &home][..], &SMALL].concat());
        assert_eq!((status, &json["schema"]), (Some(0), &"marusa/bench-reflection/3".into()));
        let more = classes(&json, "default", 100) - classes(&json, "default", 10);
        assert!((1200.0..1300.0).contains(&more), "JDK {jdk}: {more} classes more for 1,200 accessors");
        let none = classes(&json, "native", 100) - classes(&json, "native", 10);
        assert!(none < 50.0, "JDK {jdk}: {none} classes more without inflation");
        let grown = metadata(&json, 100) - metadata(&json, 10);
        assert!(grown > 1200.0 * 1024.0, "JDK {jdk}: {grown} bytes of metadata more");
    }
    let Some(home) = home("25") else { return };
    let (_, json) = bench(&[&["reflection", "--jdk", &home][..], &SMALL].concat());
    let more = classes(&json, "default", 100) - classes(&json, "default", 10);
    assert!(more < 100.0, "method handles: {more} classes more");
    assert!(
        point(&json, "default", 100)["jit_code_bytes"]["median"].as_f64().is_some_and(|bytes| bytes > 0.0)
    );
}

#[test]
fn what_giving_back_costs_is_a_ratio_with_an_interval() {
    let Some(home) = home("25") else { return };
    let arguments =
        ["--part", "jit", "--rounds", "2", "--classes", "2", "--arms", "marusa,jdk interval,unmapped"];
    let (status, json) = bench(
        &[&["trim", "--jdk", &home, "--quiet-wait", "0s", "--every", "500ms"][..], &arguments].concat(),
    );
    assert_eq!((status, &json["schema"]), (Some(0), &"marusa/bench-trim/3".into()));
    let arms = json["arms"].as_array().expect("arms");
    assert_eq!(arms.len(), 4);
    for arm in arms {
        let peak = arm["jit"]["peak_resident_bytes"]["median"].as_f64().expect("looked at");
        println!("{}: {} {peak}", arm["arm"]["way"], arm["jit"]["time_ratio"]);
        assert_eq!(arm["counted"], 2, "{arm:#}");
        assert!(peak > f64::from(20 << 20));
    }
    for arm in &arms[1..] {
        let ratio = &arm["jit"]["time_ratio"];
        assert!(ratio["low"].as_f64() <= ratio["ratio"].as_f64() && ratio["rounds"] == 2, "{ratio}");
    }
    let freed = |arm: &Value| arm["jit"]["malloc_freed_bytes"]["median"].as_f64().expect("walked");
    let unmapped = arms.iter().find(|arm| arm["arm"]["way"] == "unmapped").expect("there");
    assert!(freed(unmapped) < freed(&arms[0]), "blocks that are unmapped when they are freed are not held");
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    for (arguments, says) in [
        (&["direct-buffers", "--jdk", "/no/such"][..], "is not a JDK"),
        (&["direct-buffers", "--size", "0"], "--size"),
        (&["direct-buffers", "--threads", "0"], "0"),
        (&["reflection", "--accessors", "quick"], "generated"),
        (&["reflection", "--fields", "3", "--classes", "4"], "--classes"),
        (&["trim", "--arms", "wishes"], "unmapped"),
        (&["trim", "--rounds", "1"], "1"),
    ] {
        let output = marusa(&[&["bench"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(says), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_dry_run_starts_nothing() {
    let Some(home) = home("17") else { return };
    for arguments in [&["direct-buffers"][..], &["reflection"], &["trim", "--part", "jit"]] {
        let output = marusa(&[&["bench"], arguments, &["--jdk", &home, "--dry-run"]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(said.contains("dry run: nothing was started"), "{said}");
        assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    }
}
