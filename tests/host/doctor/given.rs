//! What doctor is given: ids that there are not, JVMs of others, JVMs that end, files, and what its answers look like to
//! programs.

use super::made::Examined;
use crate::common::*;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

const NOBODY: u32 = 65534;

fn status(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn an_id_that_is_none_is_an_error_that_lists_them() {
    for arguments in [["doctor", "--ignore", "no-such-id"], ["doctor", "--explain", "no-such-id"]] {
        let output = marusa(&arguments);
        assert_eq!(status(&output), Some(2));
        let error = text(&output.stderr);
        assert!(error.contains("'no-such-id' is not a finding; these are: "), "{error}");
    }
    for arguments in
        [&["doctor", "1", "--host"][..], &["doctor", "--watch", "0"], &["doctor", "--fail-on", "bad"]]
    {
        assert_eq!(status(&marusa(arguments)), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_list_and_the_pages() {
    let list = marusa(&["doctor", "--list"]);
    let rules: Value = serde_json::from_slice(&marusa(&["doctor", "--list", "--json"]).stdout).expect("JSON");
    for rule in rules["rules"].as_array().expect("rules") {
        let id = rule["id"].as_str().expect("an id");
        assert!(text(&list.stdout).contains(id));
        let page = text(&marusa(&["doctor", "--explain", id]).stdout);
        assert!(page.starts_with("# ") && page.contains(id), "{page}");
    }
}

#[test]
fn the_host_alone_needs_no_jvm_and_no_rights() {
    let output = as_nobody(&["doctor", "--host", "--json", "--watch", "100ms"]);
    assert_eq!(status(&output), Some(0), "{}", text(&output.stderr));
    let examined: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(examined["host"]["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    assert_eq!(examined["jvms"], Value::Array(Vec::new()));
}

#[test]
fn what_is_no_jvm_or_gone_exits_with_3() {
    assert_eq!(status(&marusa(&["doctor", "4194304"])), Some(3));
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("sleep");
    let output = marusa(&["doctor", &sleeper.id().to_string()]);
    sleeper.kill().and_then(|()| sleeper.wait()).expect("killed");
    assert_eq!(status(&output), Some(3));
    assert!(text(&output.stderr).contains("is not a JVM"));
}

#[test]
fn another_users_jvm_leaves_the_host_and_exits_with_4() {
    if !is_root() {
        return skip("only root can run marusa as another user");
    }
    let Some(java) = java("17") else { return };
    let jvm = Jvm::start(&java, &["-XX:+UseSerialGC", "-Xmx64m"], &["marusa.Idle"]);
    let output = as_nobody(&["doctor", &jvm.pid.to_string(), "--watch", "100ms"]);
    assert_eq!(status(&output), Some(4));
    let (answer, error) = (text(&output.stdout), text(&output.stderr));
    assert!(answer.contains("the host") && answer.contains("could not be read"), "{answer}");
    assert!(answer.contains("CAP_SYS_PTRACE") && error.contains("no JVM could be read"), "{answer}{error}");
}

/// One of three JVMs ends while they are read: the others are examined.
#[test]
fn a_jvm_that_ends_during_the_reading_leaves_the_others() {
    let Some(java) = java("17") else { return };
    let start = || Jvm::start(&java, &["-XX:+UseSerialGC", "-Xmx64m"], &["marusa.Idle"]);
    let (first, last) = (start(), start());
    let (pid, watch) = (first.pid, std::time::Duration::from_millis(150));
    let killer = std::thread::spawn(move || {
        std::thread::sleep(watch);
        drop(first);
    });
    let examined = Examined::run(&["--watch", "1s"]);
    killer.join().expect("it ends");
    let jvms = examined.0["jvms"].as_array().expect("JVMs");
    let of = |pid: i32| jvms.iter().find(|jvm| jvm["pid"] == pid);
    assert_eq!(of(last.pid).expect("it lives")["examined"], true);
    // Caught before, in the meantime or after: never a failure.
    assert!(of(pid).is_none_or(|jvm| jvm["examined"].is_boolean()));
}

#[test]
fn programs_get_sarif_and_a_status() {
    let Some(java) = java("21") else { return };
    // Found at once, whatever else: Native Memory Tracking was left on.
    let options = ["-XX:+UseSerialGC", "-Xmx64m", "-XX:NativeMemoryTracking=detail"];
    let jvm = Jvm::start(&java, &options, &["marusa.Idle"]);
    let pid = jvm.pid.to_string();
    let run = |more: &[&str]| {
        let mut arguments = vec!["doctor", &pid, "--watch", "100ms"];
        arguments.extend(more);
        marusa(&arguments)
    };
    let sarif: Value = serde_json::from_slice(&run(&["--sarif"]).stdout).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let driver = &sarif["runs"][0]["tool"]["driver"];
    let rules = driver["rules"].as_array().expect("rules");
    for result in sarif["runs"][0]["results"].as_array().expect("results") {
        let index = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["note", "warning", "error"].iter().any(|level| result["level"] == *level));
        assert!(!result["message"]["text"].as_str().unwrap_or_default().is_empty());
    }
    assert!(rules.iter().all(|rule| {
        let page = rule["help"]["markdown"].as_str().unwrap_or_default();
        rule["id"].as_str().is_some_and(|id| page.starts_with("# ") && page.contains(id))
    }));
    let found = Examined::jvm(jvm.pid, "100ms").of_jvm(jvm.pid);
    assert!(found.iter().any(|it| it.id == "nmt-on"), "{found:?}");
    assert_eq!(status(&run(&[])), Some(0));
    assert_eq!(status(&run(&["--fail-on", "info"])), Some(1));
    let left: Vec<String> = found.iter().filter(|it| it.id != "nmt-on").map(|it| it.id.clone()).collect();
    let ignored = Examined::run(&[&pid, "--watch", "100ms", "--ignore", "nmt-on"]).of_jvm(jvm.pid);
    assert_eq!(ignored.iter().map(|it| it.id.clone()).collect::<Vec<_>>(), left);
}

#[test]
fn a_frozen_jvm_is_examined_without_its_host() {
    let Some(java) = java("21") else { return };
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("doctor.frozen");
    let file = file.to_string_lossy();
    let options = ["-XX:+UseSerialGC", "-Xmx64m", "-XX:NativeMemoryTracking=detail"];
    let jvm = Jvm::start(&java, &options, &["marusa.Idle"]);
    assert_eq!(status(&marusa(&["freeze", &jvm.pid.to_string(), "-o", &file, "--force"])), Some(0));
    let examined = Examined::run(&["--from", &file]);
    assert!(examined.found().iter().any(|it| it.id == "nmt-on"), "{:?}", examined.found());
    assert!(examined.found().iter().all(|it| it.pid.is_some()) && examined.0["host"].is_null());
    assert!(examined.0["gaps"].as_array().is_some_and(|gaps| !gaps.is_empty()));
    let _ = std::fs::remove_file(&*file);
}

/// Names and options that would move a cursor, end a line or a string, or are no text at all.
#[test]
fn a_hostile_command_line_is_shown_without_harm() {
    use std::os::unix::ffi::OsStrExt;
    let Some(java) = java("17") else { return };
    let directory = std::env::temp_dir().join(format!("marusa-\u{1b}[2J\n\"-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let jar = directory.join("ev\u{1b}]0;il\u{7}\\.jar");
    let classes = root().join("java/build-out");
    let mut pack = Command::new("jar");
    pack.arg("--create").arg("--file").arg(&jar).args(["--main-class", "marusa.Idle", "-C"]);
    let is_packed = pack.arg(&classes).arg("marusa").status().is_ok_and(|status| status.success());
    let mut command = Command::new(java);
    command.env("JAVA_TOOL_OPTIONS", "-Djdk.lang.Process.launchMechanism=FORK -Dx=\u{1b}[31m");
    command.args(["-XX:+UseSerialGC", "-Xmx64m", "-XX:NativeMemoryTracking=summary"]);
    command
        .arg("-Dnasty=\u{1b}[2J\u{7}\"\\\n\u{9b}31m")
        .arg(std::ffi::OsStr::from_bytes(b"-Draw=\xff\xfe\x80"));
    match is_packed {
        true => command.arg("-jar").arg(&jar),
        false => command.arg("-cp").arg(&classes).arg("marusa.Idle"),
    };
    let jvm = Jvm::of(command);
    let pid = jvm.pid.to_string();
    let examined = Examined::jvm(jvm.pid, "100ms");
    assert!(examined.of_jvm(jvm.pid).iter().any(|it| it.id == "nmt-on"), "{:?}", examined.found());
    let sarif = marusa(&["doctor", &pid, "--watch", "100ms", "--sarif"]);
    serde_json::from_slice::<Value>(&sarif.stdout).expect("JSON");
    for arguments in [&["doctor", &pid, "--watch", "100ms"][..], &["stalls", &pid, "100ms", "1"]] {
        let output = marusa(arguments);
        for bytes in [&output.stdout, &output.stderr] {
            let shown = text(bytes);
            let bad = shown.chars().find(|letter| letter.is_control() && *letter != '\n');
            assert_eq!(bad, None, "{arguments:?}: {shown:?}");
            assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
        }
    }
    drop(jvm);
    std::fs::remove_dir_all(&directory).expect("it is ours");
}

/// From a copy that others may read.
fn as_nobody(arguments: &[&str]) -> Output {
    let directory = std::env::temp_dir().join(format!("marusa-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let copy = directory.join("marusa");
    std::fs::copy(env!("CARGO_BIN_EXE_marusa"), &copy).expect("a copy");
    let mut command = Command::new(&copy);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.args(arguments).output().expect("marusa runs");
    let _ = std::fs::remove_dir_all(&directory);
    output
}
