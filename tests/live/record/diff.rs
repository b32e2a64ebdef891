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
    let broken = marusa(&["diff", &json, &pid, "--fail-on", "16M"]);
    assert_eq!(broken.status.code(), Some(1), "{}", text(&broken.stderr));
    assert!(text(&broken.stderr).contains("more than 16.0 MiB"), "{}", text(&broken.stderr));
    let kept =
        marusa(&["diff", &json, &pid, "--fail-if-grown", "1G", "--fail-if-grown", "class_metadata=64M"]);
    assert_eq!(kept.status.code(), Some(0), "{}", text(&kept.stderr));
}

/// Yesterday's recording has two JVMs; the one of today has another pid.
#[test]
fn the_same_jvm_is_found_by_its_main_class() {
    let Some(grown) = grow(&[], &[]) else { return };
    let load = ["heap=5m", "quiet=1"];
    let Some(loaded) = Jvm::under_load(&row("17", "g1"), &["-Xmx60m"], &load) else { return };
    let directory = Directory::new("yesterday");
    let path = directory.file("yesterday.marusa");
    for (pid, append) in [(grown.pid, &[][..]), (loaded.pid, &["--append"])] {
        let pid = pid.to_string();
        let arguments =
            [&[pid.as_str(), "-o", &path, "--for", "1s", "--every", "200ms"][..], append].concat();
        let output = Recorder::start(&arguments).wait();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let before = grown.pid;
    drop(grown);
    let Some(today) = grow(&[], &[]) else { return };
    let diff = |arguments: &[&str]| {
        let output = marusa(&[&["diff"][..], arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["before"]["pid"].clone()
    };
    let pid = today.pid.to_string();
    assert_eq!(diff(&[&path, &pid]), before);
    assert_eq!(diff(&[&path, &loaded.pid.to_string()]), loaded.pid);
    let of_today = directory.file("today.marusa");
    let output = Recorder::start(&[&pid, "-o", &of_today, "--for", "1s", "--every", "200ms"]).wait();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(diff(&[&path, &of_today]), before);
    assert_eq!(diff(&[&path, &of_today, "--jvm", &pid]), before);
    let kept = marusa(&["record", &pid, "-o", &of_today, "--for", "1s"]);
    assert_eq!(kept.status.code(), Some(2), "{}", text(&kept.stderr));
    let over = marusa(&["record", &pid, "-o", &of_today, "--for", "1s", "--force"]);
    assert!(over.status.success(), "{}", text(&over.stderr));
}

/// script(1) makes a terminal.
fn on_a_terminal(environment: &str, arguments: &str) -> String {
    let line = format!("{environment} exec {} {arguments}", env!("CARGO_BIN_EXE_marusa"));
    let output = Command::new("script").args(["-qefc", &line, "/dev/null"]).stdin(Stdio::null()).output();
    let output = output.expect("script(1)");
    assert!(output.status.success(), "{line}: {}", text(&output.stdout));
    text(&output.stdout)
}

#[test]
fn a_terminal_sees_how_far_it_is_and_nobody_else_does() {
    let Some(jvm) = grow(&[], &[]) else { return };
    let directory = Directory::new("status");
    let (pid, file) = (jvm.pid, |name: &str| directory.file(name));
    let seen = on_a_terminal("TERM=xterm", &format!("record {pid} -o {} --for 2s", file("a.marusa")));
    assert!(seen.contains(" of 2 s: 1 JVM, ") && seen.contains("\r\x1b[2K"), "{seen:?}");
    let seen = on_a_terminal("TERM=xterm", &format!("freeze {pid} -o {}", file("a.frozen")));
    assert!(seen.contains(&format!("reading pid {pid}")), "{seen:?}");
    let dumb = on_a_terminal("TERM=dumb", &format!("record {pid} -o {} --for 1s", file("b.marusa")));
    assert!(!dumb.contains(" of 1 s: ") && !dumb.contains('\x1b'), "{dumb:?}");
    let output = Recorder::start(&[&pid.to_string(), "-o", &file("c.marusa"), "--for", "1s"]).wait();
    assert!(!text(&output.stderr).contains(" of 1 s: "), "{}", text(&output.stderr));
}
