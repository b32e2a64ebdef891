//! The real binary against bad input: each gets a clear error with its exit status, or an account with a gap; never a
//! panic, a hang or a wrong zero.

mod arguments;
mod core;
mod list;
mod recycled;
mod reduced;
mod secrets;
mod top;
mod trim;

use crate::common::*;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const NOBODY: u32 = 65534;
const LOAD: &[&str] = &["heap=40m", "threads=5", "classes=100", "quiet=1"];

fn assert_fails(output: &Output, status: i32, words: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in: {error}");
    }
    assert!(!error.contains("panicked") && error.starts_with("marusa: "), "{error}");
    assert!(output.stdout.is_empty(), "nothing is printed as a result");
}

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("marusa-test-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory");
    directory
}

#[test]
fn usage_errors_exit_with_2() {
    for arguments in
        [&["map"][..], &["map", "1", "--by", "color"], &["nonsense"], &["map", "1", "--from", "f"]]
    {
        let output = marusa(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_pid_that_is_not_there_or_no_jvm_exits_with_3() {
    assert_fails(&marusa(&["map", "4194304"]), 3, &["no process with pid 4194304"]);
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("sleep");
    let output = marusa(&["map", &sleeper.id().to_string()]);
    sleeper.kill().expect("killed");
    // Killed, but not waited for: a zombie.
    std::thread::sleep(Duration::from_millis(100));
    let zombie = marusa(&["map", &sleeper.id().to_string()]);
    sleeper.wait().expect("waited for");
    assert_fails(&output, 3, &["is not a JVM", "marusa list"]);
    assert_fails(&zombie, 3, &["zombie"]);
}

#[test]
fn a_kernel_thread_exits_with_3() {
    if !std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        return skip("no kernel threads in this pid namespace");
    }
    assert_fails(&marusa(&["map", "2"]), 3, &["kernel thread"]);
}

#[test]
fn another_users_jvm_exits_with_4_and_says_what_everybody_may_read() {
    if !is_root() {
        return skip("only root can run marusa as another user");
    }
    let Some(jvm) = Jvm::under_load(&row("17", "serial"), &["-Xmx100m"], LOAD) else { return };
    let output = as_nobody(&["map", &jvm.pid.to_string()]);
    assert_fails(&output, 4, &["CAP_SYS_PTRACE", "resident", "anonymous"]);
}

/// The binary under another user, copied to where that user may reach it.
fn as_nobody(arguments: &[&str]) -> Output {
    let copy = directory("nobody").join("marusa");
    std::fs::copy(env!("CARGO_BIN_EXE_marusa"), &copy).expect("copied");
    let output = Command::new(&copy).args(arguments).uid(NOBODY).gid(NOBODY).output().expect("runs");
    let _ = std::fs::remove_dir_all(directory("nobody"));
    output
}

#[test]
fn a_jvm_that_exits_in_the_middle_is_an_account_or_an_error_never_a_hang() {
    let Some(java) = java("17") else { return };
    for delay_ms in [0, 2, 5, 10, 20, 40] {
        let jvm = Jvm::start(&java, &["-Xmx100m"], &["marusa.Load", "heap=30m", "quiet=1"]);
        let started = Instant::now();
        let mut reader = Command::new(env!("CARGO_BIN_EXE_marusa"));
        let reader = reader.args(["map", &jvm.pid.to_string(), "--json"]);
        let reader = reader.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
        std::thread::sleep(Duration::from_millis(delay_ms));
        signal(jvm.pid, libc::SIGKILL);
        let output = reader.wait_with_output().expect("ends");
        assert!(started.elapsed() < Duration::from_secs(20), "it hung");
        let error = text(&output.stderr);
        assert!(!error.contains("panicked"), "{error}");
        match output.status.code() {
            Some(0) => check_laws(&serde_json::from_slice(&output.stdout).expect("JSON")),
            Some(3) => assert!(error.contains(&jvm.pid.to_string()), "{error}"),
            status => panic!("{status:?}: {error}"),
        }
    }
}

/// A copy of the JDK 17 of the tests, which a test may damage.
fn jdk_copy(name: &str) -> Option<(PathBuf, PathBuf)> {
    let java = java("17")?;
    let home = java.parent()?.parent()?;
    let copy = directory(name);
    let status = Command::new("cp").arg("-aL").arg(home.join(".")).arg(&copy).status().expect("cp");
    assert!(status.success());
    let java = copy.join("bin/java");
    Some((copy, java))
}

#[test]
fn a_libjvm_replaced_on_disk_is_read_from_the_process() {
    let Some((home, java)) = jdk_copy("deleted") else { return };
    let jvm = Jvm::start(&java, &["-Xmx100m"], &["marusa.Load", "heap=40m", "quiet=1"]);
    std::fs::remove_dir_all(home.join("lib")).expect("the upgrade removes the old files");
    let map = map_json(jvm.pid);
    assert!(map["jvm"]["library"].as_str().is_some_and(|path| path.ends_with("libjvm.so (deleted)")));
    assert!(map["jvm"]["heap"]["used_bytes"].as_u64().is_some_and(|bytes| bytes > 30 << 20));
    assert!(number(&map["totals"]["unattributed_bytes"]) * 100 <= number(&map["totals"]["resident_bytes"]));
    std::fs::remove_dir_all(home).expect("removed");
}

#[test]
fn a_stripped_libjvm_is_read_by_its_exported_tables() {
    let Some((home, java)) = jdk_copy("stripped") else { return };
    let stripped = Command::new("strip").arg(home.join("lib/server/libjvm.so")).status();
    if !stripped.is_ok_and(|status| status.success()) {
        return skip("no strip (binutils)");
    }
    for options in [["-XX:+UseG1GC", "-Xmx100m"], ["-XX:+UseParallelGC", "-Xmx100m"]] {
        let jvm =
            Jvm::start(&java, &options, &["marusa.Load", "heap=40m", "threads=5", "classes=100", "quiet=1"]);
        let map = map_json(jvm.pid);
        let unattributed = number(&map["totals"]["unattributed_bytes"]);
        let resident = number(&map["totals"]["resident_bytes"]);
        println!("stripped, {}: {unattributed} of {resident} bytes unattributed", options[0]);
        assert!(unattributed * 200 <= resident, "{options:?}: {unattributed} of {resident}");
    }
    std::fs::remove_dir_all(home).expect("removed");
}

#[test]
fn truncated_and_foreign_frozen_files_exit_with_3() {
    let directory = directory("frozen");
    let file = directory.join("a.frozen");
    let path = file.to_str().expect("UTF-8");
    assert_fails(&marusa(&["map", "--from", path]), 3, &["cannot read"]);
    std::fs::write(&file, b"GIF89a, or anything else").expect("written");
    assert_fails(&marusa(&["map", "--from", path]), 3, &["neither a frozen snapshot"]);
    let Some(jvm) = Jvm::under_load(&row("17", "g1"), &["-Xmx100m"], LOAD) else { return };
    assert!(marusa(&["freeze", &jvm.pid.to_string(), "-o", path, "--force"]).status.success());
    assert!(marusa(&["map", "--from", path]).status.success());
    let whole = std::fs::read(&file).expect("read");
    for length in [20, whole.len() / 2, whole.len() - 9] {
        std::fs::write(&file, &whole[..length]).expect("written");
        assert_fails(&marusa(&["map", "--from", path]), 3, &["truncated or damaged"]);
    }
    std::fs::remove_dir_all(directory).expect("removed");
}

#[test]
fn a_frozen_jvm_gives_the_account_of_the_live_one() {
    let directory = directory("replay");
    let file = directory.join("a.frozen");
    let path = file.to_str().expect("UTF-8");
    let tracking = "-XX:NativeMemoryTracking=summary";
    let jvms: [(_, _, &[&str]); 6] = [
        ("8", "parallel", &[]),
        ("17", "g1", &[]),
        ("25", "z-generational", &[]),
        ("8", "serial", &[tracking]),
        ("21", "g1", &[tracking]),
        // Symbols in malloc.
        ("21", "serial", &["-Xshare:off"]),
    ];
    for (jdk, gc, options) in jvms {
        let options: Vec<&str> = ["-Xmx100m"].iter().chain(options).copied().collect();
        let Some(jvm) = Jvm::under_load(&row(jdk, gc), &options, LOAD) else { continue };
        signal(jvm.pid, libc::SIGSTOP);
        let mut live = map_json(jvm.pid);
        assert!(marusa(&["freeze", &jvm.pid.to_string(), "-o", path, "--force"]).status.success());
        let output = marusa(&["map", "--from", path, "--json"]);
        let mut frozen: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        check_laws(&frozen);
        // Other processes that share libraries come and go between the two readings.
        without_key(&mut live, "proportional_bytes");
        without_key(&mut frozen, "proportional_bytes");
        let in_use = number(&live["malloc"]["in_use_bytes"]);
        assert!(in_use > 1 << 20, "malloc is walked: {in_use} bytes in use");
        for part in ["areas", "totals", "malloc"] {
            assert_eq!(frozen[part], live[part], "JDK {jdk} {gc} {options:?}");
        }
        assert_eq!(frozen["process"]["command"], "", "the command line may hold secrets");
    }
    std::fs::remove_dir_all(directory).expect("removed");
}

fn without_key(value: &mut serde_json::Value, key: &str) {
    match value {
        serde_json::Value::Object(map) => {
            map.remove(key);
            map.values_mut().for_each(|value| without_key(value, key));
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| without_key(value, key)),
        _ => {}
    }
}
