//! Without rights, without the kernel's help, without memory; ended by Ctrl-C, by the end of the target, by kill -9.

use super::steady::{Steady, rollup};
use super::{State, pages, small};
use crate::common::*;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const COLLAPSE: i32 = 25;

/// `marusa pages collapse`, slow enough to be met in the middle.
fn begin(pid: i32, state: &State) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args([
        "pages",
        "collapse",
        &pid.to_string(),
        "--json",
        "--cpu-budget",
        "4%",
        "--compact",
        "--stall-budget",
        "200ms",
    ]);
    command.arg("--state").arg(&state.0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("marusa runs")
}

fn until(what: &str, met: impl Fn() -> bool) {
    let started = Instant::now();
    while !met() {
        assert!(started.elapsed() < Duration::from_secs(60), "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn receipt(state: &State) -> String {
    let directory = std::fs::read_dir(state.0.join("promotions")).expect("receipts").flatten();
    let paths: Vec<_> = directory.map(|entry| entry.path().display().to_string()).collect();
    assert_eq!(paths.len(), 1);
    paths[0].clone()
}

#[test]
fn ctrl_c_ends_it_between_two_blocks_and_the_receipt_takes_all_back() {
    let Some(mut jvm) = small("g1") else { return };
    let state = State::new();
    let child = begin(jvm.pid, &state);
    until("huge page", || rollup(jvm.pid, "AnonHugePages") >= 20 * MIB);
    signal(child.id() as i32, libc::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(1), ""));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["done"]["stopped"]["why"], "signal");
    assert!(number(&json["done"]["blocks_not_tried"]) > 0);
    let huge = rollup(jvm.pid, "AnonHugePages");
    assert_eq!(number(&json["done"]["changed_bytes"]), huge, "what it says is so");
    let (status, json, errors) = pages("split", jvm.pid, &["--receipt", &receipt(&state)], &state);
    assert_eq!((status, rollup(jvm.pid, "AnonHugePages")), (Some(0), 0), "{errors} {json:#}");
    assert_eq!(jvm.wrong(), 0);
}

#[test]
fn after_kill_9_the_receipt_takes_all_back() {
    let Some(mut jvm) = small("parallel") else { return };
    let state = State::new();
    for round in 0..5 {
        let mut child = begin(jvm.pid, &state);
        until("huge page", || rollup(jvm.pid, "AnonHugePages") >= (3 + round * 5) * MIB);
        signal(child.id() as i32, libc::SIGKILL);
        child.wait().expect("it ends");
        let path = receipt(&state);
        let (status, json, errors) = pages("split", jvm.pid, &["--receipt", &path], &state);
        assert_eq!((status, rollup(jvm.pid, "AnonHugePages")), (Some(0), 0), "{errors} {json:#}");
        std::fs::remove_file(path).expect("removed");
    }
    assert_eq!(jvm.wrong(), 0);
}

#[test]
fn a_target_that_ends_during_the_call_is_reported_and_its_receipt_is_not_for_another() {
    let Some(mut jvm) = small("g1") else { return };
    let Some(other) = small("serial") else { return };
    let state = State::new();
    let child = begin(jvm.pid, &state);
    until("huge page", || rollup(jvm.pid, "AnonHugePages") >= 10 * MIB);
    jvm.end();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("ended"), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("what was done is reported");
    assert_eq!(json["done"]["stopped"]["why"], "target_ended");
    let (status, _, errors) = pages("split", other.pid, &["--receipt", &receipt(&state)], &state);
    assert_eq!(status, Some(3));
    assert!(errors.contains("another process"), "{errors}");
    let (status, _, errors) = pages("split", jvm.pid, &[], &state);
    assert_eq!(status, Some(3), "{errors}");
}

#[test]
fn without_rights_it_says_which_and_nothing_is_done() {
    let Some(jvm) = small("serial") else { return };
    let directory = State::new();
    let (pid, state) = (jvm.pid.to_string(), directory.0.display().to_string());
    let as_other = |words: &[&str]| {
        let marusa = env!("CARGO_BIN_EXE_marusa");
        let collapse = ["pages", "collapse", &pid, "--json", "--state", &state];
        Command::new("setpriv").args(words).arg(marusa).args(collapse).output()
    };
    // Root without its capabilities may read its own process, and no more.
    let ways: [(&[&str], &str); 2] = [
        (&["--bounding-set=-sys_nice", "--inh-caps=-all"], "CAP_SYS_NICE"),
        (&["--reuid=65534", "--regid=65534", "--clear-groups"], "CAP_SYS_PTRACE"),
    ];
    for (words, capability) in ways {
        let Ok(output) = as_other(words) else { return skip("no setpriv") };
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{words:?}: {errors}");
        assert!(errors.contains(capability), "{words:?}: {errors}");
    }
    assert_eq!(rollup(jvm.pid, "AnonHugePages"), 0);
    assert!(!directory.0.exists());
    // A receipt that cannot be written: nothing is begun.
    let file = format!("{}/file", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&file, "").expect("written");
    let output = marusa(&["pages", "collapse", &pid, "--state", &file]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("--state"), "{}", text(&output.stderr));
    assert_eq!(rollup(jvm.pid, "AnonHugePages"), 0);
}

#[test]
fn a_jvm_without_huge_pages_by_prctl_is_left() {
    if !super::may_run() {
        return;
    }
    let (Some(under), Some(java)) = (native::program("under"), java("25")) else { return };
    let mut command = Command::new(under);
    command.arg("no-thp").arg(java).args(["-Xmx64m", "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch", "-Xms64m"]);
    let jvm = Steady::of(command, &["data=8m"]);
    let (status, json, errors) = pages("collapse", jvm.pid, &[], &State::new());
    assert_eq!(status, Some(1));
    assert!(errors.contains("PR_SET_THP_DISABLE"), "{errors}");
    assert!(json["not_done"].to_string().contains("THP_enabled: 0"), "{json:#}");
}

/// Each answer of the kernel, made by a filter of system calls.
#[test]
fn every_refusal_of_the_kernel_is_reported() {
    let Some(jvm) = small("serial") else { return };
    let Some(under) = native::program("under") else { return };
    let refused = |advice: i32, error: i32, verb: &str| {
        let directory = State::new();
        let mut command = Command::new(&under);
        command.args([advice.to_string(), error.to_string()]).arg(env!("CARGO_BIN_EXE_marusa"));
        command.args([
            "pages",
            verb,
            &jvm.pid.to_string(),
            "--json",
            "--cpu-budget",
            "100%",
            "--stall-budget",
            "1s",
        ]);
        if verb == "collapse" {
            command.args(["--compact", "--state"]).arg(&directory.0);
        }
        let output = command.output().expect("it runs");
        assert_ne!(output.status.code(), Some(125), "{}", text(&output.stderr));
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (output.status.code(), json, text(&output.stderr))
    };
    // Old kernels, and containers that hide the call: known before anything is begun.
    for (error, words) in [(libc::ENOSYS, "5.10"), (libc::EINVAL, "6.1"), (libc::EPERM, "CAP_SYS_NICE")] {
        let (status, json, errors) = refused(-1, error, "collapse");
        assert_eq!(status, Some(if error == libc::EPERM { 4 } else { 1 }), "{errors}");
        assert!(errors.contains(words) && json["done"].is_null(), "{errors}");
    }
    // It gives up after a few blocks where memory is short.
    for (error, name) in [(libc::ENOMEM, "ENOMEM"), (libc::EBUSY, "EBUSY")] {
        let (status, json, errors) = refused(COLLAPSE, error, "collapse");
        assert_eq!((status, errors.as_str()), (Some(1), ""));
        assert_eq!(json["done"]["stopped"]["why"], "refused");
        assert_eq!(
            (&json["done"]["refused"][0]["error"], &json["done"]["refused"][0]["blocks"]),
            (&name.into(), &4.into())
        );
    }
    let (status, json, _) = refused(COLLAPSE, libc::EINVAL, "collapse");
    assert_eq!((status, &json["done"]["refused"][0]["error"]), (Some(1), &"EINVAL".into()));
    assert_eq!(json["done"]["refused"][0]["blocks"], json["planned"]["blocks"], "each block is tried");
    assert_eq!(json["done"]["price"]["retries"], 0, "and once only");
    let (status, json, _) = refused(COLLAPSE, libc::EAGAIN, "collapse");
    assert_eq!((status, &json["done"]["refused"][0]["error"]), (Some(1), &"EAGAIN".into()));
    let tried = number(&json["planned"]["blocks"]);
    assert_eq!(json["done"]["price"]["retries"], tried * 4, "each block five times");
    assert_eq!(rollup(jvm.pid, "AnonHugePages"), 0);
}

#[test]
fn words_that_make_no_sense_are_usage_errors() {
    let Some(jvm) = small("serial") else { return };
    let pid = jvm.pid.to_string();
    let cases: [(&[&str], &str); 7] = [
        (&["collapse", &pid, "--area", "heap"], "java_heap"),
        (&["collapse", &pid, "--cpu-budget", "0"], "0.1 %"),
        (&["collapse", &pid, "--density", "101%"], "100 %"),
        (&["collapse", &pid, "--stall-budget", "5 parsecs"], "unit of time"),
        (&["split", &pid, "--receipt", "/nowhere"], "/nowhere"),
        (&["split", &pid, "--receipt", "/etc/hostname"], "is not a receipt"),
        (&["split", &pid, "--receipt", "x", "--area", "gc"], "cannot be used with"),
    ];
    for (words, said) in cases {
        let output = marusa(&[&["pages"], words].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
        assert!(errors.contains(said), "{words:?}: {errors}");
    }
}
