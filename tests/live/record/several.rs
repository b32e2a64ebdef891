//! All JVMs of the host, the ones that start and end in the meantime, and a ring of files.

use super::*;
use serde_json::json;

#[test]
fn jvms_that_start_and_end_are_followed() {
    let Some(first) = grow(&[], &[]) else { return };
    let directory = Directory::new("all");
    let path = directory.file("host.marusa");
    let recorder = Recorder::start(&["--all", "-o", &path, "--every", "500ms", "--cpu", "50"]);
    wait_for_bytes(&path, 1000);
    let moments = |pid: i32| -> Vec<u64> {
        let (lines, _) = exported(&path);
        let of_it = of(&lines, "process").into_iter().filter(|line| line["pid"] == pid);
        of_it.map(|line| number(&line["steady_ms"])).collect()
    };
    let wait_for = |pid: i32, count: usize| {
        let started = Instant::now();
        while moments(pid).len() < count {
            assert!(started.elapsed() < Duration::from_secs(100), "pid {pid} has only {:?}", moments(pid));
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    let one = first.pid;
    // The file may have grown by other JVMs of this host.
    wait_for(one, 1);
    let Some(second) = grow(&[], &[]) else { return };
    let other = second.pid;
    wait_for(one, 4);
    wait_for(other, 3);
    drop(first);
    wait_for(other, 3 + moments(other).len());
    let output = recorder.stop();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (one_at, other_at) = (moments(one), moments(other));
    assert!(one_at.last() < other_at.last(), "the first ended");
    assert!(other_at.first() > one_at.first(), "the second came later");
    // Other JVMs may run on this host, so the command must name one.
    let leak = marusa(&["leak", &path, "--jvm", &other.to_string(), "--json"]);
    assert!(leak.status.success(), "{}", text(&leak.stderr));
    // Linux 6.15 and later say how: it was killed.
    let leak = marusa(&["leak", &path, "--jvm", &one.to_string(), "--json"]);
    let leak: Value = serde_json::from_slice(&leak.stdout).expect("JSON");
    let is_known = kernel_is_at_least(6, 15);
    let expected = if is_known { json!({"exit": {"signal": 9}}) } else { json!("ended") };
    assert_eq!(leak["jvms"][0]["ended"], expected, "{leak:#}");
    let answer = leak["jvms"][0]["answer"].as_str().expect("text");
    assert_eq!(answer.contains("It ended by signal 9 (SIGKILL)."), is_known, "{answer}");
    let all = marusa(&["leak", &path]);
    assert!(
        all.status.success() && text(&all.stdout).contains(&format!("pid {one}")),
        "{}",
        text(&all.stderr)
    );
    let two = marusa(&["diff", &path]);
    assert_eq!(two.status.code(), Some(2), "{}", text(&two.stderr));
    assert!(text(&two.stderr).contains(&format!("pid {one}")), "{}", text(&two.stderr));
}

/// A ring comes round after half a minute at the earliest: in `make test-long` only. Else it stays within what was asked for.
#[test]
fn a_ring_has_the_last_of_it_and_no_more_than_was_asked_for() {
    let Some(jvm) = grow(&[], &["churn=10m/s"]) else { return };
    let directory = Directory::new("ring");
    let path = directory.file("a.marusa");
    let pid = jvm.pid.to_string();
    let arguments = [pid.as_str(), "-o", &path, "--every", "20ms", "--account-every", "20ms", "--cpu", "100"];
    let (keep, seconds) = if is_long() { ("10s", 40) } else { ("512K", 4) };
    let length = format!("{seconds}s");
    let output =
        Recorder::start(&[&arguments[..], &["--keep", keep, "--for", &length, "--json"]].concat()).wait();
    let recorded: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let names: Vec<_> = std::fs::read_dir(&directory.0).expect("ours").flatten().collect();
    let bytes: u64 = names.iter().map(|entry| entry.metadata().map_or(0, |facts| facts.len())).sum();
    assert_eq!(names.len() as u64, number(&recorded["files"]));
    assert!(bytes <= (512 << 10) + (96 << 10), "{bytes}");
    let (lines, said) = exported(&path);
    let process = of(&lines, "process");
    assert!(said.is_empty() && process.is_sorted_by_key(|line| number(&line["steady_ms"])));
    if is_long() {
        assert!(number(&recorded["files_dropped"]) > 0, "it came round: {recorded}");
        assert!(number(&process[0]["steady_ms"]) > 10_000, "the start is gone");
    }
    let last = process.last().map(|line| number(&line["steady_ms"]));
    assert!(last.is_some_and(|last| last > (seconds - 2) * 1000), "the end is there: {last:?}");
    assert_eq!(process[0]["subject"], "process");
    assert!(of(&lines, "part").len() > 10, "each file names its series");
}
