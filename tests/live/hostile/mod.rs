//! Hostile processes of a foreign user next to healthy JVMs (200 and 20 in `make test-long`): FIFOs, symbolic links, truncated
//! libraries,
//! colliding symbols, forks, execs, mappings and threads that come and go, floods on the attach socket. Every command ends in
//! its time and below its memory bound, recording keeps its rate, and the accounts of the healthy JVMs stay what they were.

mod crowd;
mod finished;

use crate::common::*;
use crowd::Crowd;
use finished::{Finished, marusa_within};
use serde_json::Value;
use std::time::Duration;

/// How far an area of an idle JVM may move between two accounts: its own periodic tasks touch a few pages.
const MOVED_BYTES_MAX: u64 = 1 << 20;
/// Above the deadlines of all targets together (`base/limits.rs`), in a debug build on two busy cores.
const HOST_MAX: Duration = Duration::from_secs(150);
const TARGET_MAX: Duration = Duration::from_secs(60);
/// What a reader may have in memory at most, whatever its targets do.
const RESIDENT_MAX_KB: i64 = 400 << 10;

#[test]
fn hostile_processes_delay_no_command_and_change_no_account() {
    if !is_root() {
        return skip("hostile processes of another user need root");
    }
    let Some(java) = java("17") else { return };
    let options = ["-Xmx32m", "-XX:+UseSerialGC"];
    let healthy: Vec<Jvm> =
        (0..if is_long() { 20 } else { 4 }).map(|_| Jvm::start(&java, &options, &["marusa.Idle"])).collect();
    let before: Vec<Value> = healthy.iter().map(|jvm| map_json(jvm.pid)).collect();
    let Some(crowd) = Crowd::gather() else { return };

    the_host_is_seen(&healthy);
    each_kind_is_read(&crowd);
    a_healthy_jvm_is_read(&healthy[0]);
    the_recorder_keeps_its_rate(&healthy);

    for (jvm, before) in healthy.iter().zip(&before) {
        unchanged(before, &map_json(jvm.pid));
    }
}

/// Commands that look at every process of the host.
fn the_host_is_seen(healthy: &[Jvm]) {
    let list = marusa_within(&["list", "--json"], HOST_MAX);
    list.check(&[0], RESIDENT_MAX_KB);
    let jvms: Value = serde_json::from_slice(&list.stdout).expect("JSON");
    let pids: Vec<i64> =
        jvms["jvms"].as_array().expect("jvms").iter().filter_map(|jvm| jvm["pid"].as_i64()).collect();
    for jvm in healthy {
        assert!(pids.contains(&i64::from(jvm.pid)), "list misses the healthy pid {}", jvm.pid);
    }
    assert!(!pids.contains(&list.pid), "list names itself");
    marusa_within(&["list"], HOST_MAX).check(&[0], RESIDENT_MAX_KB);
    marusa_within(&["doctor"], HOST_MAX).check(&[0, 1], RESIDENT_MAX_KB);
    marusa_within(&["stalls", "1", "1"], HOST_MAX).check(&[0, 3, 4], RESIDENT_MAX_KB);
}

/// Commands on one hostile process of each kind: an account, a refusal, or a target that is gone.
fn each_kind_is_read(crowd: &Crowd) {
    let file = std::env::temp_dir().join(format!("marusa-hostile-{}.frozen", std::process::id()));
    let frozen = file.display().to_string();
    for (kind, pid) in crowd.one_of_each() {
        let pid = pid.to_string();
        for arguments in [
            &["map", &pid][..],
            &["map", &pid, "--json", "--by", "page-size"],
            &["map", &pid, "--by", "loader"],
            &["map", &pid, "--by", "holder"],
            &["map", &pid, "--by", "buffer"],
            &["heap", &pid, "--duplicates"],
            &["audit", &pid],
            &["freeze", &pid, "-o", &frozen],
            &["trim", &pid, "--dry-run"],
            &["doctor", &pid],
            &["pages", "verify", &pid],
            &["pages", "plan", &pid],
        ] {
            println!("{kind}: marusa {}", arguments.join(" "));
            marusa_within(arguments, TARGET_MAX).check(&[0, 1, 3, 4], RESIDENT_MAX_KB);
            let _ = std::fs::remove_file(&file);
        }
    }
}

fn a_healthy_jvm_is_read(jvm: &Jvm) {
    let pid = jvm.pid.to_string();
    for arguments in [&["map", &pid][..], &["doctor", &pid], &["audit", &pid], &["pages", "plan", &pid]] {
        marusa_within(arguments, TARGET_MAX).check(&[0, 1], RESIDENT_MAX_KB);
    }
}

/// `record --all` next to the crowd: samples of the healthy JVMs come, the recorder ends in time when it is asked to, and what
/// it wrote is whole.
fn the_recorder_keeps_its_rate(healthy: &[Jvm]) {
    let directory = std::env::temp_dir().join(format!("marusa-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("all.marusa").display().to_string();
    let mut recorder = finished::Running::start(&["record", "--all", "--every", "1s", "-o", &path]);
    let samples = |pid: i32| exported_samples(&path, pid);
    for jvm in healthy {
        recorder.wait_until(HOST_MAX, || samples(jvm.pid) >= 5);
    }
    let ended = recorder.end_by(libc::SIGTERM, Duration::from_secs(20));
    println!("SIGTERM ended the recorder after {:?}; it used {:?} of CPU", ended.took, ended.cpu);
    ended.check(&[0], RESIDENT_MAX_KB);
    let counts: Vec<usize> = healthy.iter().map(|jvm| samples(jvm.pid)).collect();
    println!("samples of each healthy JVM in {:?}: {counts:?}", ended.lived);
    // One a second was asked for; the machine is busy with the crowd.
    let fewest = ended.lived.as_secs() as usize / 4;
    assert!(counts.iter().all(|count| *count >= fewest), "fewer than {fewest} samples: {counts:?}");
    std::fs::remove_dir_all(&directory).expect("ours");
}

/// The samples of one process in a recording, as `marusa export` reads them.
fn exported_samples(path: &str, pid: i32) -> usize {
    let output = marusa(&["export", path, "--json-lines", "-"]);
    let lines = text(&output.stdout);
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["subject"] == "process" && line["pid"] == pid).count()
}

/// The same areas with the same memory, and nothing without an owner.
fn unchanged(before: &Value, after: &Value) {
    let areas = |map: &Value| -> Vec<(String, u64)> {
        let areas = map["areas"].as_array().expect("areas").iter();
        areas.map(|area| (area["area"].to_string(), number(&area["resident_bytes"]))).collect()
    };
    let later = areas(after);
    for (area, bytes) in areas(before) {
        let now = later.iter().find(|(name, _)| *name == area).map_or(0, |(_, bytes)| *bytes);
        assert!(now.abs_diff(bytes) <= MOVED_BYTES_MAX, "{area}: {bytes} bytes before, {now} after");
    }
    let unattributed = number(&after["totals"]["unattributed_bytes"]);
    assert!(unattributed <= 64 << 10, "{unattributed} bytes have no owner");
}

impl Finished {
    /// Ended by itself with one of these statuses, below the memory bound, and without control bytes in what it printed.
    fn check(&self, statuses: &[i32], resident_max_kb: i64) {
        let said = format!("{}{}", text(&self.stdout), text(&self.stderr));
        assert!(!self.late, "{} was not done after {:?}:\n{said}", self.what, self.took);
        let status = self.status.unwrap_or(-1);
        assert!(statuses.contains(&status), "{} ended with {:?}:\n{said}", self.what, self.status);
        assert!(self.resident_kb <= resident_max_kb, "{} had {} KB resident", self.what, self.resident_kb);
        let bad = said.chars().find(|letter| letter.is_control() && !"\n\t".contains(*letter));
        assert_eq!(bad, None, "{} printed a control character", self.what);
    }
}
