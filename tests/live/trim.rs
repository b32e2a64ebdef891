//! The direct buffers of the 2010 paper, freed: what `marusa trim` says would come back is what comes back, by the JVM's own
//! command where it has one and by the library where it has none; and nothing else is left changed.

use crate::common::*;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The share of the prediction by which the result may differ.
const ERROR_SHARE_MAX: f64 = 0.01;
const OPTIONS: &[&str] = &["-Xmx16m", "-XX:+UseSerialGC", "-XX:MaxDirectMemorySize=400m"];

fn freed_buffers(jdk: &str, threads: u32, options: &[&str]) -> Option<Jvm> {
    let java = java(jdk)?;
    let options = [OPTIONS, options].concat();
    // Without the kept ones malloc may have given most of it back by itself: there is nothing to trim then.
    Some(Jvm::start(&java, &options, &["marusa.FreedBuffers", &format!("threads={threads}"), "kept=4"]))
}

fn trim(pid: i32, options: &[&str]) -> (Option<i32>, Value) {
    let pid = pid.to_string();
    let output = marusa(&[&["trim", &pid, "--json"], options].concat());
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    (output.status.code(), json)
}

fn resident(pid: i32) -> u64 {
    let sums = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("smaps_rollup");
    let line = sums.lines().find_map(|line| line.strip_prefix("Rss:")).expect("Rss");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Files of Marusa in the target's directories, and mappings of its library. A `jcmd` of another test that was killed leaves its
/// `.attach_pidN`, with the number of another JVM.
fn traces(pid: i32) -> (Vec<String>, usize) {
    let directories = ["tmp", "var/tmp", "dev/shm"].map(|directory| format!("/proc/{pid}/root/{directory}"));
    let names =
        directories.iter().flat_map(|directory| std::fs::read_dir(directory).into_iter().flatten().flatten());
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    let library = maps.lines().filter(|line| line.contains(".marusa-trim-") && line.contains("r-xp")).count();
    let trigger = format!(".attach_pid{pid}");
    (names.filter(|name| name.starts_with(".marusa") || *name == trigger).collect(), library)
}

fn threads(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).expect("tasks").count()
}

#[test]
fn what_is_predicted_comes_back() {
    let mut broken = Vec::new();
    println!("{:<16} {:>12} {:>12} {:>8} {:>9}", "JVM", "predicted", "came back", "error", "call ms");
    let ways = [
        ("25", ""),
        ("21", ""),
        ("17", ""),
        ("11", "--load-agent"),
        ("8", "--load-agent"),
        ("25", "--load-agent"),
    ];
    for (jdk, way) in ways {
        // One thread has one arena, which the first way shows; `make test-long` has it for each.
        for workers in
            [1, 8].into_iter().filter(|workers| *workers == 8 || is_long() || way.is_empty() && jdk == "25")
        {
            let Some(jvm) = freed_buffers(jdk, workers, &[]) else { continue };
            let options: &[&str] = if way.is_empty() { &[] } else { &[way] };
            let before = resident(jvm.pid);
            let (status, json) = trim(jvm.pid, options);
            let after = resident(jvm.pid);
            let outcome = &json["outcome"];
            let share = outcome["error_share"].as_f64().unwrap_or(f64::INFINITY);
            let (predicted, returned) = (&outcome["predicted_bytes"], &outcome["returned_bytes"]);
            let name = format!("{jdk}, {workers} threads");
            let call_ms = &outcome["call_ms"];
            println!("{name:<16} {predicted:>12} {returned:>12} {:>6.2} % {call_ms:>9.6}", share * 100.0);
            // What the tool says of itself, and what is seen without it: attaching adds some pages.
            let seen = before as f64 - after as f64;
            let apart = (seen - returned.as_f64().unwrap_or(0.0)).abs();
            if status != Some(0) || share.abs() > ERROR_SHARE_MAX || apart > (4 << 20) as f64 {
                broken.push(format!("{name}: {share}, seen {seen}, {outcome:#}, exit {status:?}"));
            }
            if predicted.as_u64().unwrap_or(0) < 20 << 20 {
                broken.push(format!("{name}: only {predicted} were to come back: this proves nothing"));
            }
            let (files, libraries) = traces(jvm.pid);
            // 16 and later unload it.
            let stays = usize::from(matches!(jdk, "8" | "11"));
            if !files.is_empty() || libraries != stays {
                broken.push(format!("{name}: left {files:?}, {libraries} libraries"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_dry_run_changes_nothing() {
    for (jdk, option) in [("25", "--json"), ("11", "--load-agent")] {
        let Some(jvm) = freed_buffers(jdk, 2, &[]) else { continue };
        let before = (resident(jvm.pid), threads(jvm.pid));
        let output = marusa(&["trim", &jvm.pid.to_string(), "--dry-run", option]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        if option == "--json" {
            let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!((&json["schema"], &json["way"]), (&"marusa/trim/2".into(), &"jvm_command".into()));
            assert!(json["dry_run"] == true && json["receipt"].is_null() && json["outcome"].is_null());
            let arenas = json["predicted"]["arenas"].as_array().expect("arenas");
            let sum: u64 = arenas.iter().map(|arena| number(&arena["trimmable_bytes"])).sum();
            assert_eq!(sum, number(&json["predicted"]["trimmable_bytes"]), "the arenas sum exactly");
        } else {
            let said = text(&output.stdout);
            assert!(said.contains("nothing was done") && said.contains("library"), "{said}");
        }
        let now = (resident(jvm.pid), threads(jvm.pid));
        assert_eq!(now.1, before.1, "no thread more");
        assert!(now.0.abs_diff(before.0) <= 64 << 10, "JDK {jdk}: {before:?}, then {now:?}");
        assert_eq!(traces(jvm.pid), (Vec::new(), 0));
        let socket = format!("/proc/{0}/root/tmp/.java_pid{0}", jvm.pid);
        assert!(!std::path::Path::new(&socket).exists(), "it did not attach");
    }
}

#[test]
fn without_the_command_it_is_refused_until_the_library_is_allowed_and_that_is_mapped_once() {
    for jdk in ["11", "8"] {
        let Some(mut jvm) = freed_buffers(jdk, 1, &[]) else { continue };
        let before = threads(jvm.pid);
        let (status, refused) = trim(jvm.pid, &[]);
        assert_eq!(status, Some(1));
        assert!(refused["not_done"].to_string().contains("--load-agent"), "{refused:#}");
        assert_eq!(threads(jvm.pid), before, "it did not attach");
        for round in 0..if is_long() { 3 } else { 2 } {
            let (status, json) = trim(jvm.pid, &["--load-agent"]);
            assert!(status == Some(0), "round {round}: {json:#}");
            assert_eq!(traces(jvm.pid), (Vec::new(), 1), "round {round}");
            jvm.tell("again");
            wait_until(|| resident(jvm.pid) > 60 << 20);
            std::thread::sleep(Duration::from_secs(2));
        }
    }
}

#[test]
fn a_jvm_that_takes_no_agents_is_left_alone() {
    let Some(jvm) = freed_buffers("11", 1, &["-XX:-EnableDynamicAgentLoading"]) else { return };
    let output = marusa(&["trim", &jvm.pid.to_string(), "--load-agent", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("EnableDynamicAgentLoading"), "{}", text(&output.stderr));
    assert_eq!(traces(jvm.pid), (Vec::new(), 0));
}

fn wait_until(met: impl Fn() -> bool) {
    let start = Instant::now();
    while !met() {
        assert!(start.elapsed() < Duration::from_secs(60), "it took too long");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// `marusa trim PID --every`, with its lines as they come.
fn repeated(pid: i32, above: &str) -> (std::process::Child, std::sync::mpsc::Receiver<Value>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args(["trim", &pid.to_string(), "--every", "500ms", "--above", above, "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("marusa runs");
    let (send, receive) = std::sync::mpsc::channel();
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = send.send(serde_json::from_str(&line).expect("one JSON object a line"));
        }
    });
    (child, receive)
}

#[test]
fn again_and_again_trims_only_above_the_line_and_ends_when_it_should() {
    let Some(mut jvm) = freed_buffers("21", 1, &[]) else { return };
    let (mut child, lines) = repeated(jvm.pid, "16M");
    let next = || lines.recv_timeout(Duration::from_secs(30)).expect("a round");
    let first = next();
    assert!(first["outcome"]["returned_bytes"].as_i64().is_some_and(|bytes| bytes > 16 << 20), "{first}");
    for _ in 0..2 {
        let idle = next();
        assert!(idle["outcome"].is_null(), "there is too little: {idle}");
    }
    jvm.tell("again");
    let start = Instant::now();
    while next()["outcome"].is_null() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never trimmed again");
    }
    signal(child.id() as i32, libc::SIGINT);
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "Ctrl-C is how it ends");
    let (child, lines) = repeated(jvm.pid, "16M");
    lines.recv_timeout(Duration::from_secs(30)).expect("a round");
    drop(jvm);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("ended"), "{}", text(&output.stderr));
}

#[test]
fn a_stopped_jvm_is_not_waited_for() {
    let Some(jvm) = freed_buffers("17", 1, &[]) else { return };
    signal(jvm.pid, libc::SIGSTOP);
    let output = marusa(&["trim", &jvm.pid.to_string(), "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("stopped"), "{}", text(&output.stderr));
}
