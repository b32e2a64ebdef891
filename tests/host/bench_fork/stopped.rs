//! Ended in the middle, and gone on with.

use super::{Place, home, json, pool};
use crate::common::host::Host;
use crate::common::{is_root, marusa, signal, skip, text};
use std::fs::read_to_string;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn trials_that_are_saved_are_not_made_again() {
    let Some(jdk) = home("21") else { return };
    let place = Place::new("save");
    let (save, state) = (place.path("trials"), place.path("state"));
    let run = |rounds: &str, children: &str| {
        let arguments = [
            "bench",
            "fork",
            "--quiet-wait",
            "0s",
            "--jdk",
            &jdk,
            "--heaps",
            "32M",
            "--pages",
            "as-is",
            "--launch",
        ];
        let rest = ["FORK", "--threads", "1", "--json", "--state", &state, "--save", &save];
        let last = ["--rounds", rounds, "--children", children];
        marusa(&[&arguments[..], &rest[..], &last[..]].concat())
    };
    let first = json(&run("1", "3"));
    let kept = read_to_string(&save).expect("the file");
    assert_eq!(kept.lines().count(), 2, "settings and one trial: {kept}");
    // As a crash in the middle of a line leaves it.
    std::fs::write(&save, format!("{kept}{{\"round\": 1, \"ar")).expect("written");
    let second = json(&run("2", "3"));
    let now = read_to_string(&save).expect("the file");
    assert!(now.starts_with(&kept), "what was kept stays");
    assert_eq!(now.lines().count(), 3, "one trial more: {now}");
    assert_eq!(second["settings"]["seed"], first["settings"]["seed"]);
    assert_eq!(second["trials"][0], first["trials"][0]);
    let other = run("2", "4");
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("other settings"), "{}", text(&other.stderr));
    assert_eq!(read_to_string(&save).expect("the file"), now);
}

#[test]
fn ctrl_c_puts_the_host_back_and_keeps_what_was_done() {
    if !is_root() {
        return skip("only root may change the pool of huge pages");
    }
    let Some(jdk) = home("17") else { return };
    let _host = Host::lock();
    let (before, place) = (pool(), Place::new("signal"));
    let (save, temporary) = (place.path("trials"), place.path("tmp"));
    std::fs::create_dir(&temporary).expect("a directory");
    let child = Command::new(env!("CARGO_BIN_EXE_marusa"))
        .args([
            "bench",
            "fork",
            "--quiet-wait",
            "0s",
            "--jdk",
            &jdk,
            "--heaps",
            "64M",
            "--pages",
            "hugetlb-2m",
            "--children",
            "20",
        ])
        .args(["--rounds", "1000", "--json", "--state", &place.path("state"), "--save", &save])
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("marusa starts");
    let started = Instant::now();
    let trials = || read_to_string(&save).unwrap_or_default().lines().count().saturating_sub(1);
    while !(pool() != before && trials() >= 3) {
        assert!(started.elapsed() < PATIENCE, "no trial within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(child.id() as i32, libc::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    assert!(started.elapsed() < 2 * PATIENCE);
    assert_eq!(pool(), before, "the pool is as it was");
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("what was found until then");
    assert_eq!((&report["stopped"], &report["complete"]), (&true.into(), &false.into()));
    assert_eq!(report["trials"].as_array().expect("trials").len(), trials());
    assert!(!output.status.success());
    let left: Vec<_> =
        std::fs::read_dir(&temporary).expect("there").flatten().map(|one| one.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Before: the signal came through again before the directory was removed.
#[test]
fn a_signal_leaves_no_programs_of_ours_behind() {
    let Some(jdk) = home("21") else { return };
    let place = Place::new("programs");
    let temporary = place.path("tmp");
    std::fs::create_dir(&temporary).expect("a directory");
    let entries = || std::fs::read_dir(&temporary).expect("there").count();
    for experiment in ["reflection", "direct-buffers"] {
        let child = Command::new(env!("CARGO_BIN_EXE_marusa"))
            .args(["bench", experiment, "--jdk", &jdk, "--runs", "100"])
            .env("TMPDIR", &temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("marusa starts");
        let started = Instant::now();
        while entries() == 0 {
            assert!(started.elapsed() < PATIENCE, "{experiment}: nothing was unpacked");
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(child.id() as i32, libc::SIGTERM);
        let output = child.wait_with_output().expect("it ends");
        assert!(!output.status.success(), "{experiment}");
        assert_eq!(entries(), 0, "{experiment}: {}", text(&output.stderr));
    }
}
