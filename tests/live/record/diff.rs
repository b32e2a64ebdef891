//! What grew, from every kind of file and from a running JVM.

use super::*;

/// A leak of direct buffers and a step of threads.
#[test]
fn what_leaks_is_named_from_frozen_files_json_recordings_and_now() {
    // It leaks for longer than a slow machine takes to freeze it.
    let options = ["-Xss512k", "-XX:MaxDirectMemorySize=512m"];
    let Some(jvm) = grow(&options, &["direct=8m/s", "until=400m", "threads=40"]) else { return };
    let directory = Directory::new("diff");
    let pid = jvm.pid.to_string();
    let (frozen, json, recording) =
        (directory.file("a.frozen"), directory.file("a.json"), directory.file("a.marusa"));
    assert!(marusa(&["freeze", &pid, "-o", &frozen]).status.success());
    std::fs::write(&json, marusa(&["map", &pid, "--json"]).stdout).expect("ours");
    let options = ["--every", "250ms", "--account-every", "500ms", "--cpu", "50"];
    let recorder = Recorder::start(&[&[pid.as_str(), "-o", &recording][..], &options[..]].concat());
    until_step_is_there(jvm.pid);
    // It ends with an account.
    recorder.stop();
    let end = format!("{recording}@end");
    for pair in [[&frozen, &pid], [&json, &pid], [&recording, &pid], [&recording, &end], [&json, &end]] {
        let output = marusa(&["diff", pair[0], pair[1], "--json"]);
        assert!(output.status.success(), "{pair:?}: {}", text(&output.stderr));
        let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(diff["schema"], "marusa/diff/2");
        assert_eq!(diff["causes"][0]["area"], "direct_buffers", "{pair:?}: {}", diff["answer"]);
        let areas = diff["areas"].as_array().expect("areas").iter();
        let sum: i64 = areas.map(|area| area["resident_grown_bytes"].as_i64().expect("bytes")).sum();
        assert_eq!(Some(sum), diff["resident_grown_bytes"].as_i64(), "the areas sum exactly");
        let threads =
            diff["threads"].as_array().expect("threads").iter().find(|row| row["threads_named"] == "step-#");
        assert_eq!(threads.map(|row| number(&row["threads_now"])), Some(40), "{pair:?}");
    }
    let text_of = text(&marusa(&["diff", &recording]).stdout);
    assert!(
        text_of.contains("direct buffers") && text_of.lines().all(|line| line.chars().count() <= 100),
        "{text_of}"
    );
    for by in ["part", "arena", "library", "thread"] {
        assert!(marusa(&["diff", &recording, "--by", by]).status.success(), "{by}");
    }
}

/// The last of the threads that `marusa.Grow` starts after five seconds.
fn until_step_is_there(pid: i32) {
    let started = Instant::now();
    let is_there = || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
        let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
        names.into_iter().any(|name| name.trim() == "step-39")
    };
    while !is_there() {
        assert!(started.elapsed() < Duration::from_secs(60), "it starts no threads");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_limit_that_was_passed_is_status_1() {
    let options = ["-XX:MaxDirectMemorySize=512m"];
    let Some(jvm) = grow(&options, &["direct=16m/s", "until=400m"]) else { return };
    let directory = Directory::new("limit");
    let (pid, json) = (jvm.pid.to_string(), directory.file("a.json"));
    std::fs::write(&json, marusa(&["map", &pid, "--json"]).stdout).expect("ours");
    let direct = || number(&area(&map_json(jvm.pid), "direct_buffers")["resident_bytes"]);
    let (before, started) = (direct(), Instant::now());
    while direct() < before + (32 << 20) {
        assert!(started.elapsed() < Duration::from_secs(60), "it does not grow");
    }
    let broken = marusa(&["diff", &json, &pid, "--fail-if-grown", "16M"]);
    assert_eq!(broken.status.code(), Some(1), "{}", text(&broken.stderr));
    assert!(text(&broken.stderr).contains("more than 16.0 MiB"), "{}", text(&broken.stderr));
    let kept =
        marusa(&["diff", &json, &pid, "--fail-if-grown", "1G", "--fail-if-grown", "class_metadata=64M"]);
    assert_eq!(kept.status.code(), Some(0), "{}", text(&kept.stderr));
}
