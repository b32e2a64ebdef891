//! `marusa pages prove` on running JVMs: a program whose time goes into address translation gains, one that works in registers
//! does not, and the memory is afterwards as it was found. `cargo bench --bench prove` does each 20 times.

mod program;

use crate::common::{Jvm, area, is_root, java, kernel_is_at_least, map_json, marusa, number, signal, skip};
use program::{Program, json};
use serde_json::Value;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

const QUICK: [&str; 6] = ["--period", "200ms", "--settle", "100ms", "--blocks", "14"];
const SEARCHES_MAX: usize = 6;

fn may_collapse() -> bool {
    if !is_root() {
        skip("pages of another process can be changed by root only");
    }
    is_root()
}

fn huge_bytes(program: &Program) -> u64 {
    let map = map_json(program.child.id() as i32);
    area(&map, "java_heap")["by_page_size"]["2097152"].as_u64().unwrap_or(0)
}

fn gain(json: &Value, which: &str) -> f64 {
    json["gain_percent"][which].as_f64().unwrap_or_else(|| panic!("no interval: {json:#}"))
}

#[test]
fn random_access_gains_and_is_left_as_it_was_found() {
    if !may_collapse() {
        return;
    }
    let Some(program) = Program::random_access("21", "256m", "640m") else { return };
    // A machine that does much else may need another search; none may say the opposite.
    for search in 1..=SEARCHES_MAX {
        let output = program.prove(&QUICK);
        let json = json(&output);
        assert_ne!(json["verdict"], "loss", "{json:#}");
        let periods = json["periods"].as_array().expect("periods");
        let huge = periods.iter().filter(|period| period["arm"] == "huge").count();
        assert_eq!(huge * 2, periods.len());
        assert_eq!(json["blocks_2m_as_found"], json["blocks_2m"]);
        assert_eq!(huge_bytes(&program), 0, "on small pages again");
        if json["verdict"] == "gain" {
            assert_eq!(output.status.code(), Some(0));
            assert!(gain(&json, "low") > 0.0 && gain(&json, "low") < gain(&json, "high"), "{json:#}");
            return;
        }
        assert_eq!(output.status.code(), Some(1));
        assert!(search < SEARCHES_MAX, "no gain in {SEARCHES_MAX} searches: {json:#}");
    }
}

#[test]
fn work_in_registers_gains_nothing() {
    if !may_collapse() {
        return;
    }
    let Some(program) = Program::spin("17", "128m") else { return };
    // One search in 20 may claim what is not so; two in a row, no.
    let claims = (0..2).take_while(|_| {
        let output = program.prove(&[&QUICK[..4], &["--blocks", "6"]].concat());
        let json = json(&output);
        assert!(number(&json["blocks"]) >= 4, "{json:#}");
        assert_eq!(output.status.success(), json["verdict"] == "gain");
        json["verdict"] == "gain"
    });
    assert!(claims.count() < 2, "a gain where none can be");
}

#[test]
fn ctrl_c_and_the_end_of_the_target_leave_nothing_behind() {
    if !may_collapse() {
        return;
    }
    let Some(mut program) = Program::random_access("21", "64m", "192m") else { return };
    let save = program.log.with_extension("periods");
    let mut prove = program.command(&["--period", "200ms", "--save"]);
    let prove = prove.arg(&save).stdout(Stdio::piped()).spawn().expect("marusa runs");
    let periods = || std::fs::read_to_string(&save).unwrap_or_default().lines().count();
    while periods() < 3 {
        sleep(Duration::from_millis(20));
    }
    signal(prove.id() as i32, libc::SIGINT);
    let output = prove.wait_with_output().expect("it ends");
    let ended = json(&output);
    assert_eq!(output.status.code(), Some(1), "nothing was shown");
    assert!(ended["ended_early"].as_str().is_some_and(|text| text.contains("as asked")), "{ended:#}");
    assert_eq!(huge_bytes(&program), 0);
    let saved = std::fs::read_to_string(&save).expect("saved");
    let lines: Vec<Value> = saved.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), ended["periods"].as_array().map_or(0, Vec::len), "each period was saved");
    std::fs::remove_file(&save).expect("removed");

    let mut prove = program.command(&["--period", "200ms"]);
    let prove = prove.stdout(Stdio::piped()).spawn().expect("marusa runs");
    sleep(Duration::from_millis(1500));
    program.child.kill().expect("killed");
    let output = prove.wait_with_output().expect("it ends");
    let ended = json(&output);
    assert_eq!(output.status.code(), Some(3), "{ended:#}");
    assert!(ended["blocks_2m_as_found"].is_null());
}

/// Most of what it allocates are pages of zeros, which a split leaves out and the next allocations fault in.
#[test]
fn what_a_split_leaves_out_is_faulted_in_again_before_a_period() {
    if !may_collapse() {
        return;
    }
    if !kernel_is_at_least(6, 12) {
        return skip("before Linux 6.12 a split leaves nothing out");
    }
    let Some(java) = java("21") else { return };
    let options = ["-Xms128m", "-Xmx128m", "-Xmn64m", "-XX:+UseParallelGC", "-XX:+AlwaysPreTouch"];
    let jvm = Jvm::start(&java, &options, &["marusa.Grow", "churn=80m/s"]);
    let runs = std::env::temp_dir().join(format!("marusa-prove-runs-{}", jvm.pid));
    let metric = format!("echo >> {}; sleep 0.2; echo 1", runs.display());
    let prove = ["pages", "prove", &jvm.pid.to_string(), "--json", "--better", "higher", "--settle", "100ms"];
    let output = marusa(&[&prove[..], &["--blocks", "2", "--metric-command", &metric]].concat());
    let found = json(&output);
    let periods = found["periods"].as_array().expect("periods");
    let small = periods.iter().filter(|period| period["arm"] == "small");
    let settling = number(&found["faulted_in_settling_bytes"]);
    assert!(settling > 8 << 20, "{found:#}");
    for period in small {
        let faulted_in = number(&period["faulted_in_bytes"]);
        assert!(!period["left_out"].is_null() || faulted_in * 8 < settling, "{found:#}");
    }
    let lines = std::fs::read_to_string(&runs).expect("written by the command").lines().count() as u64;
    // The last change is the one that restores.
    assert!(lines >= periods.len() as u64 + number(&found["changes"]) - 1, "{lines} runs: {found:#}");
    std::fs::remove_file(&runs).expect("ours");
}

/// Before: the command was waited for, for its ten minutes.
#[test]
fn a_signal_ends_the_command_that_measures() {
    if !may_collapse() {
        return;
    }
    let Some(program) = Program::random_access("21", "64m", "192m") else { return };
    let begun = program.log.with_extension("begun");
    let metric = format!("touch {}; sleep 600; echo 1", begun.display());
    let prove = std::process::Command::new(env!("CARGO_BIN_EXE_marusa"))
        .args(["pages", "prove", &program.child.id().to_string(), "--json", "--better", "higher"])
        .args(["--metric-command", &metric])
        .stdout(Stdio::piped())
        .spawn()
        .expect("marusa runs");
    let started = Instant::now();
    while !begun.exists() {
        assert!(started.elapsed() < Duration::from_secs(120), "the command was not started");
        sleep(Duration::from_millis(5));
    }
    let started = Instant::now();
    signal(prove.id() as i32, libc::SIGTERM);
    let output = prove.wait_with_output().expect("it ends");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let ended = json(&output);
    assert_eq!(output.status.code(), Some(1), "{ended:#}");
    assert!(ended["ended_early"].as_str().is_some_and(|text| text.contains("as asked")), "{ended:#}");
    assert_eq!(huge_bytes(&program), 0);
    std::fs::remove_file(&begun).expect("ours");
}

#[test]
fn a_measure_that_can_not_be_read_is_an_error_before_anything_changes() {
    if !may_collapse() {
        return;
    }
    let Some(program) = Program::spin("21", "64m") else { return };
    let pid = program.child.id().to_string();
    let refused = |arguments: &[&str]| {
        let output = marusa(&[&["pages", "prove", &pid], arguments].concat());
        (output.status.code(), crate::common::text(&output.stderr))
    };
    let (status, said) = refused(&["--metric-log", "/nowhere/log", "--pattern", "x", "--better", "lower"]);
    assert!(status == Some(2) && said.contains("/nowhere/log"), "{said}");
    let (status, said) = refused(&["--metric-command", "echo 1"]);
    assert!(status == Some(2) && said.contains("--better"), "{said}");
    let (status, said) =
        refused(&["--metric-url", "http://127.0.0.1:1/", "--series", "a", "--better", "higher"]);
    assert!(status == Some(2) && said.contains("127.0.0.1:1"), "{said}");
    let (status, said) = refused(&["--metric-log", "/dev/null", "--pattern", "(", "--better", "lower"]);
    assert!(status == Some(2) && said.contains("pattern"), "{said}");
    if !std::path::Path::new("/sys/bus/event_source/devices/cpu").exists() {
        let (status, said) = refused(&[]);
        assert!(status == Some(3) && said.contains("--metric-log"), "{said}");
    }
    assert_eq!(huge_bytes(&program), 0);
}
