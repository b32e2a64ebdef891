//! `marusa why` on JVMs with one fault each, which all grow at the same time: each fault is named in the first five lines. On JVMs
//! that do a bit of everything, nothing is named.

use crate::common::native::cpp_library;
use crate::common::*;
use crate::record::Directory;
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// Asked again until it is named: a loaded machine may hold a program up for longer than it is watched.
const NAMED_WITHIN: Duration = Duration::from_secs(150);
const WATCHED: &str = "12s";

struct Fault {
    program: Vec<String>,
    /// All of them stand in the first five lines.
    named: &'static [&'static str],
    /// What the next command of one of the answers has in it.
    next: &'static str,
}

fn fault(program: &str, named: &'static [&'static str], next: &'static str) -> Fault {
    Fault { program: program.split(' ').map(str::to_string).collect(), named, next }
}

fn faults(directory: &Directory) -> Vec<Fault> {
    let leak = |kind: &str| format!("marusa.Leak {kind} dir={}", directory.0.display());
    let mut faults = vec![
        fault(&leak("kind=inflater rate=500k/s"), &["not closed", "java.util.zip.Inflater"], "--by holder"),
        fault(&leak("kind=loader rate=300k/s"), &["class loaders", "marusa.Generated"], "--by loader"),
        fault(&leak("kind=unsafe rate=500k/s"), &["Unsafe.allocateMemory", "thread leak"], "--by holder"),
        fault(&leak("kind=threads rate=500k/s"), &["threads", "leaked-#"], "Thread.print"),
        fault(&leak("kind=direct rate=500k/s"), &["direct buffers", "marusa.Leak.KEPT"], "--by buffer"),
        fault(&leak("kind=nio rate=500k/s"), &["NIO cache", "nio-pool-#"], "-Djdk.nio.maxCachedBufferSize"),
        fault(&leak("kind=mapped rate=500k/s"), &["mapped files", "leak-#.mapped"], "--by mapping"),
        fault(
            "marusa.FreedBuffers threads=8 buffers=8000 kept=2",
            &["freed", "arenas of malloc"],
            "marusa trim",
        ),
        fault("marusa.Compiling", &["JIT compiler arenas", "marusa.Long"], "CompileCommand=exclude"),
    ];
    if let Some(library) = cpp_library("held") {
        let program = format!("marusa.Holding lib={} leak=500k/s", library.display());
        faults.push(fault(&program, &["nothing points to", "libheld.so", "native-leak"], "--by holder"));
    }
    match root().join("java/build-out/marusa/Native.class").exists() {
        true => {
            let program = format!(
                "marusa.Native dir={} cache=10m buffers=8m readers=1 open=50",
                directory.file("rocks")
            );
            faults.push(fault(&program, &["not closed", "org.rocksdb.RocksIterator"], "--by holder"));
        }
        false => skip("no RocksDB; java/fetch-native brings it"),
    }
    faults
}

fn start(java: &std::path::Path, program: &[String]) -> Jvm {
    let mut command = Command::new(java);
    let jars = root().join("java/native/lib/*");
    let path = format!("{}:{}", root().join("java/build-out").display(), jars.display());
    command.args(["-Xmx256m", "-XX:+UseSerialGC", "-cp", &path]).args(program);
    Jvm::of(command)
}

fn why(pid: i32, arguments: &[&str]) -> (String, Option<i32>) {
    let output = marusa(&[&["why", &pid.to_string(), "--width", "80"], arguments].concat());
    assert_eq!(text(&output.stderr), "");
    (text(&output.stdout), output.status.code())
}

/// Asks until the fault is named; the last answer, where it is not.
fn named(jvm: &Jvm, fault: &Fault) -> Option<String> {
    let started = Instant::now();
    loop {
        let (answer, status) = why(jvm.pid, &[WATCHED, "--fail-on", "warn"]);
        assert!(answer.lines().all(|line| line.chars().count() <= 80), "{answer}");
        // A name may be broken by the end of a line.
        let first: Vec<&str> = answer.lines().take(5).collect();
        let first = first.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        let mut next = answer.lines().filter_map(|line| line.trim_start().strip_prefix("next"));
        if fault.named.iter().all(|word| first.contains(word))
            && next.any(|next| next.contains(fault.next))
            && status == Some(1)
        {
            return None;
        }
        if started.elapsed() > NAMED_WITHIN {
            return Some(format!("{:?} in {:?}:\n{answer}", fault.named, fault.program));
        }
    }
}

#[test]
fn each_of_many_faults_is_named_in_the_first_five_lines() {
    let Some(java) = java("17") else { return };
    let directory = Directory::new("why");
    let faults = faults(&directory);
    let jvms: Vec<Jvm> = faults.iter().map(|fault| start(&java, &fault.program)).collect();
    let missing: Vec<String> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            jvms.iter().zip(&faults).map(|(jvm, fault)| scope.spawn(move || named(jvm, fault))).collect();
        asked.into_iter().filter_map(|asked| asked.join().expect("it answers")).collect()
    });
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    check_document(jvms[0].pid);
}

/// Checks the document of a program with unclosed Inflaters.
fn check_document(pid: i32) {
    let (answer, status) = why(pid, &["6s", "--json"]);
    let document: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!((document["schema"].as_str(), status), (Some("marusa/why/1"), Some(0)), "no --fail-on");
    let gaps = document["gaps"].as_array().expect("gaps");
    for (place, answer) in document["answers"].as_array().expect("answers").iter().enumerate() {
        for key in ["what", "how", "sure", "level"] {
            assert!(answer[key].is_string(), "{key}: {answer}");
        }
        for key in ["who", "bytes", "bytes_per_hour", "next"] {
            let what = format!("answers[{place}].{key}");
            let is_gap = gaps.iter().any(|gap| gap["what"] == what.as_str());
            assert!(answer.get(key).is_some_and(|value| value.is_null() == is_gap), "{what}: {answer}");
        }
    }
}

#[test]
fn of_healthy_jvms_nothing_is_named() {
    let jvms: Vec<Jvm> = [("8", "parallel"), ("17", "g1"), ("21", "z-generational"), ("25", "serial")]
        .into_iter()
        .filter_map(|(jdk, gc)| Jvm::under_load(&row(jdk, gc), &["-Xmx256m"], &HEALTHY))
        .collect();
    std::thread::scope(|scope| {
        for jvm in &jvms {
            scope.spawn(|| {
                for time in ["8s", "0s"] {
                    let (answer, status) = why(jvm.pid, &[time, "--fail-on", "info"]);
                    assert!(answer.contains("Nothing unusual"), "{answer}");
                    assert_eq!(status, Some(0));
                }
            });
        }
    });
}

/// A bit of everything, all the time.
const HEALTHY: [&str; 7] =
    ["heap=40m", "threads=10", "garbage=10m/s", "direct=8m", "classes=500", "jit=1", "deflate=1"];

#[test]
fn what_cannot_be_watched_is_an_error_that_says_what_to_do() {
    let directory = Directory::new("why-bad");
    let file = directory.file("a.marusa");
    let Some(java) = java("17") else { return };
    let jvm = Jvm::start(&java, &["-Xmx64m"], &["marusa.Idle"]);
    let recorded = marusa(&["record", &jvm.pid.to_string(), "-o", &file, "--for", "1s"]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let refused = |arguments: &[&str]| {
        let output = marusa(arguments);
        (output.status.code(), text(&output.stderr))
    };
    let (status, said) = refused(&["why", &file]);
    assert!(status == Some(2) && said.contains("marusa leak"), "{said}");
    assert_eq!(refused(&["why", &jvm.pid.to_string(), "2d"]).0, Some(2));
    assert_eq!(refused(&["why", &std::process::id().to_string(), "0s"]).0, Some(3), "not a JVM");
}

#[test]
fn a_jvm_that_ends_while_it_is_watched_gets_an_answer_of_the_looks_so_far() {
    let Some(java) = java("17") else { return };
    let jvm = Jvm::start(&java, &["-Xmx64m", "-XX:+UseSerialGC"], &["marusa.Idle"]);
    let pid = jvm.pid;
    let asked = std::thread::spawn(move || why(pid, &["300s"]));
    std::thread::sleep(Duration::from_secs(5));
    drop(jvm);
    let (answer, status) = asked.join().expect("it answers");
    assert!(answer.contains("Nothing unusual") && answer.contains("Fewer samples than planned"), "{answer}");
    assert_eq!(status, Some(0));
}
