//! `marusa tlb --calibrate`: the costs of walks on this very machine, where they are kept, and what it does where it cannot
//! measure or keep them.

use super::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory of this test's own, removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("calibrate-{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }
    fn files(&self) -> Vec<PathBuf> {
        let kept = std::fs::read_dir(self.0.join("marusa")).into_iter().flatten().flatten();
        kept.map(|entry| entry.path()).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn calibrate(cache: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args(["tlb", "--calibrate"]).args(options).env("XDG_CACHE_HOME", cache);
    command.output().expect("marusa runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

fn gaps(json: &Value) -> String {
    json["gaps"].to_string()
}

/// Nanoseconds of a walk in a chain of dependent loads.
fn dependent_ns(json: &Value, page_bytes: u64) -> Option<f64> {
    let costs = json["costs"].as_array()?;
    let cost = costs.iter().find(|cost| cost["side"] == "data" && cost["page_bytes"] == page_bytes)?;
    assert_eq!(cost["footprint_bytes"], 64 << 20);
    cost["dependent_ns"]["middle"].as_f64()
}

#[test]
fn a_walk_costs_more_on_small_pages_and_the_costs_are_kept() {
    let directory = Directory::new("kept");
    let output = calibrate(&directory.0, &["--footprint", "64M", "--json"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "no bar on a pipe");
    let found = json(&output);
    assert_eq!(found["schema"], "marusa/calibration/1");
    let small = dependent_ns(&found, 4096).expect("4 KiB pages are everywhere");
    assert!((0.5..5000.0).contains(&small), "{small} ns");
    let files = directory.files();
    assert_eq!(found["kept"].as_str().map(Path::new), files.first().map(PathBuf::as_path));
    let kept: Value = serde_json::from_slice(&std::fs::read(&files[0]).expect("a file")).expect("JSON");
    assert_eq!((files.len(), &kept["timings"]), (1, &found["timings"]), "and nothing else is left there");

    // One of fewer footprints does not take its place, and says so.
    let smaller = json(&calibrate(&directory.0, &["--footprint", "16M", "--json"]));
    assert!(smaller["kept"].is_null(), "{smaller}");
    let why = smaller["not_kept"].as_str().expect("a reason");
    assert!(why.contains("other footprints, and it stays") && !gaps(&smaller).contains("kept"), "{smaller}");

    // Nor does one of a noisier machine: as if what is kept had been taken in perfect quiet.
    let mut quiet = kept.clone();
    quiet["waited_share"] = 0.0.into();
    for timing in quiet["timings"].as_array_mut().expect("timings") {
        let step_ns = if timing["nodes"] == "dense" { 2.0 } else { 20.0 };
        timing["step_ns"]
            .as_array_mut()
            .expect("rounds")
            .iter_mut()
            .for_each(|round| *round = step_ns.into());
    }
    std::fs::write(&files[0], quiet.to_string()).expect("written");
    let load: Vec<_> =
        (0..4).map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn()).collect();
    let output = calibrate(&directory.0, &["--footprint", "64M", "--json"]);
    for mut shell in load.into_iter().flatten() {
        shell.kill().and_then(|()| shell.wait()).expect("ended");
    }
    let noisy = json(&output);
    if noisy["waited_percent"].as_f64().is_some_and(|percent| percent > 20.0) {
        let why = noisy["not_kept"].as_str().expect("a reason");
        assert!(why.contains("the machine was quieter, its rounds 0 % apart, and it stays"), "{why}");
        let kept = std::fs::read_to_string(&files[0]).expect("a file");
        assert_eq!(kept, quiet.to_string(), "the quieter one is there");
    }

    let Some(huge) = dependent_ns(&found, 2 << 20) else {
        return skip(&format!("no 2 MiB pages on this machine: {}", gaps(&found)));
    };
    assert!(small > huge, "a walk takes {small} ns on 4 KiB and {huge} ns on 2 MiB");
}

#[test]
fn costs_that_can_not_be_kept_are_shown_all_the_same() {
    let directory = Directory::new("unwritable");
    // Not even root can make a directory in a file.
    let file = directory.0.join("file");
    std::fs::write(&file, "").expect("written");
    let output = calibrate(&file, &["--footprint", "16M", "32M"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("16 MiB") && shown.contains("32 MiB"), "two footprints: {shown}");
    assert!(shown.contains("4 KiB") && shown.contains("the calibration was not kept"), "{shown}");

    let unset = Command::new(env!("CARGO_BIN_EXE_marusa"))
        .args(["tlb", "--calibrate", "--footprint", "16M"])
        .env_remove("XDG_CACHE_HOME")
        .env_remove("HOME")
        .output()
        .expect("marusa runs");
    assert!(
        text(&unset.stdout).contains("neither XDG_CACHE_HOME nor HOME is set"),
        "{}",
        text(&unset.stdout)
    );
}

#[test]
fn without_memory_there_is_no_cost_of_data_and_nothing_is_kept() {
    let directory = Directory::new("memory");
    let limited = Command::new("sh")
        .args(["-c", "ulimit -v 150000; exec \"$0\" tlb --calibrate --footprint 128M --json"])
        .arg(env!("CARGO_BIN_EXE_marusa"))
        .env("XDG_CACHE_HOME", &directory.0)
        .output()
        .expect("sh runs");
    assert_eq!(limited.status.code(), Some(1), "{}", text(&limited.stderr));
    let found = json(&limited);
    assert!(gaps(&found).contains("memory to measure in"), "{found}");
    let costs = found["costs"].as_array().expect("costs");
    assert!(costs.iter().all(|cost| cost["side"] == "instruction"), "{found}");
    assert!(directory.files().is_empty());
}

#[test]
fn wrong_footprints_exit_with_2() {
    for arguments in [
        &["tlb"][..],
        &["tlb", "--calibrate", "--footprint", "4K"],
        &["tlb", "--calibrate", "--footprint", "much"],
        &["tlb", "--calibrate", "--footprint", "1T"],
        &["tlb", "--calibrate", "1"],
        &["tlb", "1", "--footprint", "64M"],
        &["tlb", "--calibrate", "--footprint", "64M", "4K"],
    ] {
        let output = marusa(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
    }
}
