//! Programs that behave: what is measured, how it is reported, and where the options of the arms go.

use super::{Directory, classes, compare, json, runs};
use crate::common::{java, number, text};

#[test]
fn a_java_program_with_its_figures_its_account_and_its_verdict() {
    let Some(java) = java("17") else { return };
    let directory = Directory::new("java");
    let (java, classes) = (java.display().to_string(), classes());
    let command =
        [&java, "-Xmx48m", "-Xms48m", "-cp", &classes, "marusa.Work", "data=8m", "rounds=40", "wait=700"];
    let save = directory.path("saved");
    let arms = ["--arm", "base=", "--arm", "slow=-Xint", "--runs", "3", "--save", &save];
    let metric = ["--metric", r"rate[/s]=rate: ([\d.]+)", "--seed", "7"];
    let found = json(&directory, 0, &[&arms[..], &metric, &["--"], &command].concat());
    assert_eq!((&found["about"], &found["verdicts"][0]["verdict"]), (&"metric:rate".into(), &"less".into()));
    assert!(found["verdicts"][0]["text"].as_str().expect("text").starts_with("worse: "), "{found:#}");
    assert_eq!(runs(&found).len(), 6);
    for run in runs(&found) {
        let figures = &run["figures"];
        for key in
            ["wall_seconds", "cpu_seconds", "user_seconds", "system_seconds", "minor_faults", "major_faults"]
        {
            assert!(figures[key].is_number(), "{key} in {run:#}");
        }
        assert!(figures["gc_pauses"].as_f64() > Some(0.0), "{run:#}");
        let stop = |key: &str| figures[key].as_f64();
        assert!(stop("gc_pause_p99_ms") > Some(0.0) && stop("gc_pause_p99_ms") <= stop("gc_pause_max_ms"));
        assert!(stop("gc_pause_ms") >= stop("gc_pause_max_ms"), "{run:#}");
        let (wall, user) = (figures["wall_seconds"].as_f64(), figures["user_seconds"].as_f64());
        assert!(wall > Some(0.7) && user > Some(0.0) && run["left_out"].is_null(), "{run:#}");
        let (end, peak) = (&run["account_end"], &run["account_peak"]);
        let areas = end["areas"].as_array().expect("areas");
        let sum: u64 = areas.iter().map(|area| number(&area["resident_bytes"])).sum();
        assert_eq!(sum, number(&end["resident_bytes"]), "the areas sum exactly");
        assert!(number(&peak["resident_bytes"]) >= sum);
        assert!(figures["peak_resident_bytes"].as_f64() >= Some(sum as f64 * 0.9), "{run:#}");
        assert!(run["heap_pages"]["text"].is_string(), "{run:#}");
    }
    let host_json = &found["host"];
    assert!(host_json["kernel"].is_string() && host_json["cpus"].is_number());
    assert!(std::fs::read_dir(directory.0.join("saved/output")).expect("outputs").count() >= 12);
}

#[test]
fn the_text_says_it_in_a_line_for_each_arm_and_fits() {
    let directory = Directory::new("text");
    let script = "i=0; while [ $i -lt $N ]; do i=$((i+1)); done; echo \"took $i\"";
    let arms = ["--arm", "base=N=20000", "--arm", "twice=N=200000", "--arm", "same=N=20000"];
    let output = compare(&directory, &[&arms[..], &["--runs", "4", "--", "sh", "-c", script]].concat());
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let verdict = said.lines().find(|line| line.starts_with("  twice  worse: ")).expect("a verdict");
    assert!(verdict.contains("more wall time than base"), "{said}");
    assert!(said.contains("  same   "), "{said}");
    assert!(said.contains("95 % confidence over all arms together (Holm)"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    assert!(!said.contains("trials.jsonl"), "nothing stays: {said}");
}

#[test]
fn options_reach_the_jvm_of_a_script_and_the_place_in_a_command() {
    let Some(java) = java("17") else { return };
    let directory = Directory::new("script");
    let script = directory.path("start");
    let line = format!("#!/bin/sh\nexec {} -cp {} marusa.Work data=1m rounds=1\n", java.display(), classes());
    std::fs::write(&script, line).expect("a script");
    let arms = ["--arm", "base=", "--arm", "show=-XX:+PrintCommandLineFlags -XX:NewSize=5m", "--runs", "2"];
    let save = directory.path("saved");
    let found = json(&directory, 0, &[&arms[..], &["--save", &save, "--", "sh", &script]].concat());
    assert_eq!(found["arms"][1]["placed"], "tool_options");
    let printed = |arm: &str| {
        let run = runs(&found).iter().find(|run| run["arm"] == arm).expect("a run");
        let path = directory.0.join("saved").join(run["output"].as_str().expect("a file"));
        std::fs::read_to_string(path).expect("its output")
    };
    assert!(printed("show").contains("-XX:NewSize=5242880") && !printed("base").contains("NewSize"));
    // What the arms have may be the program's: the log of collections is still the JVM's.
    let program = ["--", &java.display().to_string(), "-Xmx32m", "-cp", &classes(), "marusa.Work", "{}"];
    let arms = ["--arm", "few=rounds=1", "--arm", "many=rounds=200", "--runs", "2"];
    let found = json(&directory, 0, &[&arms[..], &program].concat());
    let has_log = |run: &serde_json::Value| run["figures"]["gc_pauses"].is_number();
    assert!(runs(&found).len() == 4 && runs(&found).iter().all(has_log), "{found:#}");
    let place = [
        "--show-arguments",
        "--arm",
        "a=",
        "--arm",
        "b='x y'",
        "--runs",
        "2",
        "--save",
        &directory.path("place"),
    ]
    .map(String::from);
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    let found = json(&directory, 0, &[&place[..], &["--", "sh", "-c", "echo got:$1", "sh", "{}"]].concat());
    assert_eq!(found["arms"][1]["command"][4], "x y");
}

#[test]
fn a_dry_run_runs_nothing_and_says_what_would_be_run() {
    let directory = Directory::new("dry");
    let made = directory.path("made");
    let arms = [
        "--arm",
        "a=",
        "--arm",
        "b=X=1",
        "--dry-run",
        "--save",
        &directory.path("save"),
        "--",
        "touch",
        &made,
    ];
    let found = json(&directory, 0, &arms);
    assert_eq!(
        (&found["dry_run"], &found["first_blocks"][0].as_array().map(Vec::len)),
        (&true.into(), &Some(2))
    );
    assert!(!directory.0.join("made").exists() && !directory.0.join("save").exists());
    let said = text(&compare(&directory, &arms).stdout);
    assert!(said.contains("dry run: nothing was run or changed"), "{said}");
}
