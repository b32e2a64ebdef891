//! Ctrl-C, a full disk, and going on: what was measured is kept, and only the same comparison goes on.

use super::{Directory, assert_refused, begun, command, compare, json, runs, saved_runs};
use crate::common::{is_root, signal, skip, text};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ARMS: [&str; 6] = ["--arm", "base=", "--arm", "other=Y=1", "--seed", "3"];

#[test]
fn ctrl_c_keeps_the_runs_and_resume_goes_on_in_the_same_order() {
    let directory = Directory::new("ctrl-c");
    let save = directory.path("save");
    let program = ["--save", &save, "--runs", "5", "--", "sh", "-c", "sleep 0.4"];
    let arguments = [&["--json"], &ARMS[..], &program].concat();
    let child = begun(&directory, &arguments);
    let deadline = Instant::now() + Duration::from_secs(60);
    while saved_runs(&directory.0.join("save")) < 3 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(child.id() as i32, libc::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let done = runs(&found).len();
    assert!((3..10).contains(&done) && done == saved_runs(&directory.0.join("save")), "{done}");
    assert!(
        found["ended_early"].as_str().is_some_and(|text| text.contains("--resume continues")),
        "{found:#}"
    );

    let changed = ["--arm", "base=", "--arm", "other=Y=2", "--seed", "3", "--resume"];
    let refused = compare(&directory, &[&changed[..], &program].concat());
    assert_refused(&refused, 2, &["the list of arms has other values"]);
    let other =
        [&ARMS[..], &["--resume", "--save", &save, "--runs", "5", "--", "sh", "-c", "sleep 0.5"]].concat();
    assert_refused(&compare(&directory, &other), 2, &["the command has other values"]);
    assert_refused(
        &compare(&directory, &[&ARMS[..], &program].concat()),
        2,
        &["a comparison is there already", "--resume"],
    );

    // What a crash leaves of a line is dropped.
    let path = directory.0.join("save/trials.jsonl");
    let whole = std::fs::read_to_string(&path).expect("lines");
    std::fs::write(&path, format!("{whole}{{\"schema\":\"marusa/com")).expect("written");
    let found = json(&directory, 0, &[&ARMS[..], &["--resume"], &program].concat());
    assert_eq!((runs(&found).len(), saved_runs(&directory.0.join("save"))), (10, 10));
    assert_eq!(found["design"]["resumed_runs"], done);
    let order = |found: &serde_json::Value| -> Vec<String> {
        runs(found).iter().map(|run| format!("{} {}", run["block"], run["arm"])).collect()
    };
    let fresh = directory.path("fresh");
    let again = ["--save", &fresh, "--runs", "5", "--", "true"];
    assert_eq!(
        order(&found),
        order(&json(&directory, 0, &[&ARMS[..], &again].concat())),
        "as without a break"
    );
}

#[test]
fn two_at_once_do_not_write_into_one_directory() {
    let directory = Directory::new("twice");
    let save = directory.path("save");
    let arguments = [&ARMS[..], &["--save", &save, "--runs", "2", "--", "sh", "-c", "sleep 0.5"]].concat();
    let mut child = command(&directory, &arguments).stdout(Stdio::null()).spawn().expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while saved_runs(&directory.0.join("save")) < 1 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let second = compare(
        &directory,
        &[&ARMS[..], &["--resume", "--save", &save, "--runs", "2", "--", "sh", "-c", "sleep 0.5"]].concat(),
    );
    assert_refused(&second, 2, &["another marusa works on this comparison now"]);
    assert!(child.wait().expect("it ends").success());
}

/// A small file system of a given size in KiB, unmounted when dropped.
struct Small<'a>(&'a str);

impl Small<'_> {
    fn mount(at: &str, kib: u64) -> Option<Small<'_>> {
        std::fs::create_dir_all(at).expect("a directory");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "none", at]).status();
        mounted.is_ok_and(|status| status.success()).then_some(Small(at))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_keeps_what_was_saved_and_resume_goes_on_when_there_is_room() {
    if !is_root() {
        return skip("only root mounts");
    }
    let directory = Directory::new("full");
    let save = directory.path("save");
    let Some(_small) = Small::mount(&save, 16) else { return skip("no tmpfs can be mounted") };
    let program = ["--save", &save, "--runs", "8", "--", "true"];
    let output = compare(&directory, &[&ARMS[..], &program].concat());
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert!(!output.status.success() && !error.contains("panicked"), "{said}{error}");
    assert!(format!("{said}{error}").contains("No space left on device"), "{said}{error}");
    let kept = saved_runs(&directory.0.join("save"));
    assert!((1..16).contains(&kept), "{kept}");
    let grown = Command::new("mount").args(["-o", "remount,size=4m", &save]).status();
    assert!(grown.is_ok_and(|status| status.success()));
    let found = json(&directory, 0, &[&ARMS[..], &["--resume"], &program].concat());
    assert_eq!((runs(&found).len(), found["design"]["resumed_runs"].as_u64()), (16, Some(kept as u64)));
}

#[test]
fn a_program_that_does_not_end_when_asked_is_gone_after_a_signal() {
    let directory = Directory::new("stubborn");
    let path = directory.path("pid");
    let script = format!("trap '' TERM INT; echo $$ > {path}; while :; do sleep 1; done");
    let arguments = [&["--json"], &ARMS[..], &["--runs", "2", "--", "sh", "-c", &script]].concat();
    let child = begun(&directory, &arguments);
    let deadline = Instant::now() + Duration::from_secs(60);
    let pid = loop {
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        if let Ok(pid) = found.trim().parse::<i32>() {
            break pid;
        }
        assert!(Instant::now() < deadline, "the program does not start");
        std::thread::sleep(Duration::from_millis(5));
    };
    signal(child.id() as i32, libc::SIGTERM);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}
