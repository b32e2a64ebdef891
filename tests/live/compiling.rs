//! What compiler threads compile: `map --by thread` on JVMs whose compilers always have a long method at hand.

use crate::common::*;
use crate::record::{Directory, Recorder};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The most letters of a sentence about eight methods.
const SENTENCE_CHARS: usize = 1_000;

/// The rows of compiler threads that compile one of the program's methods with C2.
fn compiled(map: &Value) -> Vec<Value> {
    let threads = map["threads"].as_array().expect("threads").iter();
    let is_ours = |compiling: &&Value| {
        let method = compiling["method"].as_str().unwrap_or_default();
        method.starts_with("marusa.Long") && method.ends_with("::applyAsInt") && compiling["level"] == 4
    };
    threads
        .filter(|thread| thread["kind"] == "compiler")
        .map(|thread| &thread["compiling"])
        .filter(is_ours)
        .cloned()
        .collect()
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
    }
}

fn map(arguments: &[&str]) -> Value {
    let output = marusa(&[&["map", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_method_its_level_and_its_arenas_are_named_live_and_in_a_frozen_file() {
    for jdk in ["8", "17", "25", "28"] {
        let Some(java) = java(jdk) else { continue };
        let jvm = Jvm::start(&java, &["-Xmx64m", "-XX:+UseSerialGC"], &["marusa.Compiling"]);
        let pid = jvm.pid.to_string();
        // The first arenas of a compilation have some hundred kilobytes, its last ones 12 MiB.
        let has_arenas = |row: &Value| row["arena_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20);
        until("no long method is compiled", || {
            let map = map(&[&pid]);
            let row = compiled(&map).into_iter().find(|row| has_arenas(row))?;
            assert!(number(&row["arena_bytes"]) < 40 << 20, "{row}");
            assert_eq!(row["is_osr"], false, "it has no loop: {row}");
            Some(())
        });
        until("the table names no long method", || {
            let table = text(&marusa(&["map", &pid, "--by", "thread", "--width", "100"]).stdout);
            table.lines().any(|line| line.contains("marusa.Long") && line.contains(" 4 ")).then_some(())
        });
        let (directory, stopped) = (Directory::new("compiling"), Stopped::at_compilation(jvm.pid));
        let file = directory.file("a.frozen");
        assert!(marusa(&["freeze", &pid, "-o", &file]).status.success());
        let without_arenas = |map: Value| -> Vec<Value> {
            let named = |row: &Value| serde_json::json!([row["method"], row["level"], row["is_osr"]]);
            compiled(&map).iter().map(named).collect()
        };
        let (live, frozen) = (without_arenas(map(&[&pid])), without_arenas(map(&["--from", &file])));
        assert!(!live.is_empty() && live == frozen, "{jdk}: {live:?} {frozen:?}");
        drop(stopped);
    }
}

/// JIT work has less than a mebibyte before the first long method, and 8 to 12 MiB more while it is compiled.
#[test]
fn a_recording_keeps_what_was_compiled_when_jit_work_jumped() {
    let Some(java) = java("17") else { return };
    let directory = Directory::new("compiled");
    let path = directory.file("a.marusa");
    until("no jump is recorded", || {
        let mut jvm = Jvm::start(&java, &["-Xmx64m", "-XX:+UseSerialGC"], &["marusa.Compiling", "later"]);
        let pid = jvm.pid.to_string();
        let often = ["--every", "250ms", "--account-every", "3s", "--for", "10s", "--cpu", "200"];
        let recorder = Recorder::start(&[&[pid.as_str(), "-o", &path][..], &often].concat());
        until_open(recorder.0.id() as i32, "a.marusa");
        jvm.tell("go");
        assert!(recorder.wait().status.success());
        let leak = marusa(&["leak", &path, "--json"]);
        let leak: Value = serde_json::from_slice(&leak.stdout).expect("JSON");
        let jump = leak["jvms"][0]["jit_work_jumps"].get(0).cloned();
        jump.is_some_and(|jump| {
            let methods = jump["methods"].as_array().expect("methods");
            number(&jump["grown_bytes"]) >= 8 << 20
                && methods
                    .iter()
                    .any(|it| it["method"].as_str().is_some_and(|it| it.starts_with("marusa.Long")))
        })
        .then_some(())
        .or_else(|| std::fs::remove_file(&path).ok().and(None))
    });
    // Others may be compiled at the same moment.
    let names_ours = |shown: &str| {
        let (_, then) = shown.split_once("compiled then: ").unwrap_or_default();
        then.chars().take(SENTENCE_CHARS).collect::<String>().contains("marusa.Long")
    };
    let leak = text(&marusa(&["leak", &path]).stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(names_ours(&leak), "{leak}");
    let report = text(&marusa(&["report", &path, "-o", "-"]).stdout);
    assert!(
        report.split("compiled then: ").skip(1).any(|then| names_ours(&format!("compiled then: {then}")))
    );
}

/// A JVM that does not run while it compiles one of its methods.
struct Stopped(i32);

impl Stopped {
    fn at_compilation(pid: i32) -> Stopped {
        until("it never stops within a compilation", || {
            signal(pid, libc::SIGSTOP);
            if !compiled(&map(&[&pid.to_string()])).is_empty() {
                return Some(Stopped(pid));
            }
            signal(pid, libc::SIGCONT);
            std::thread::sleep(Duration::from_millis(50));
            None
        })
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(self.0, libc::SIGCONT);
    }
}
