//! Eight programs that leak in eight ways, and three that do not, recorded together: the headline of `leak` at each cut of the recording
//! names what leaks, or nothing. With `MARUSA_LONG_TESTS=1` as users would see it, at every minute from 2 to 20; else the programs leak
//! ten times as fast, and all cuts are too early for a verdict.

use super::*;
use std::collections::BTreeSet;

struct Program {
    arguments: &'static str,
    jvm: &'static str,
    /// What may be named first; empty: nothing may be named with a verdict.
    leaks: &'static [&'static str],
    /// Named by the end.
    is_certain: bool,
}

const fn leak(arguments: &'static str, leaks: &'static [&'static str]) -> Program {
    Program { arguments, jvm: "-Xmx512m -XX:+UseSerialGC", leaks, is_certain: true }
}

/// Where an account counts malloc's blocks depends on what the JVM's symbols and Native Memory Tracking say of their owners.
const MALLOC: &[&str] = &["jvm_work", "native_library", "direct_buffers", "unattributed", "malloc"];

fn programs() -> [Program; 11] {
    [
        leak("kind=loader rate=300k/s", &["class_metadata"]),
        Program {
            jvm: "-Xmx500m -XX:+UseSerialGC -XX:MinHeapFreeRatio=5 -XX:MaxHeapFreeRatio=10",
            // Until whole collections were seen, nobody knows.
            is_certain: false,
            ..leak("kind=heap rate=150k/s churn=4m/s", &["heap_after_collections"])
        },
        leak("kind=direct rate=200k/s", &["direct_buffers"]),
        leak("kind=unsafe rate=200k/s", MALLOC),
        leak("kind=inflater rate=200k/s", MALLOC),
        leak("kind=threads rate=150k/s", &["stack"]),
        leak("kind=mapped rate=200k/s", &["mapped_file"]),
        leak("kind=freed rate=200k/s", &["malloc_freed"]),
        // A pool that fills, garbage only, and a heap of fixed size that is touched step by step.
        Program { is_certain: false, ..leak("kind=direct rate=1m/s until=80m churn=1m/s", &[]) },
        Program { is_certain: false, ..leak("kind=heap rate=1 churn=3m/s", &[]) },
        Program {
            jvm: "-Xms512m -Xmx512m -XX:+UseG1GC",
            is_certain: false,
            ..leak("kind=heap rate=1 churn=4m/s", &[])
        },
    ]
}

/// How the recording is made and asked.
struct Length {
    seconds: u64,
    faster: u64,
    cuts: Vec<u64>,
    /// From this cut on, each leak that is certain has its verdict.
    known_by: u64,
}

fn length() -> Length {
    if std::env::var_os("MARUSA_LONG_TESTS").is_some() {
        let cuts = (2..=20).map(|minute| minute * 60).collect();
        return Length { seconds: 1215, faster: 1, cuts, known_by: 15 * 60 };
    }
    Length { seconds: 100, faster: 10, cuts: vec![30, 45, 60, 75, 90, 100], known_by: u64::MAX }
}

/// "rate=200k/s" times a factor.
fn arguments(program: &Program, faster: u64, folder: &Folder) -> Vec<String> {
    let of = |word: &str| match word.strip_prefix("rate=").and_then(|rate| rate.strip_suffix("k/s")) {
        Some(rate) => format!("rate={}k/s", rate.parse::<u64>().expect("a number") * faster),
        None => word.to_string(),
    };
    let mut words: Vec<String> = program.arguments.split(' ').map(of).collect();
    words.extend([format!("dir={}", folder.0.display())]);
    words.insert(0, "marusa.Leak".to_string());
    words
}

/// What the headline of one JVM names, and whether it has a verdict. `None`: it names nothing.
fn named(jvm: &Value) -> Option<(bool, String)> {
    let headline = &jvm["headline"];
    let first = headline["named"].get(0)?;
    let name = first["area"].as_str().or(first["kind"].as_str()).expect("a name").to_string();
    Some((headline["kind"] == "grows", name))
}

#[test]
fn eight_leaks_recorded_together_are_named_or_nothing_is() {
    let Some(java) = java("17") else { return };
    let folder = Folder::new("leaks");
    let length = length();
    let programs = programs();
    let jvms: Vec<Jvm> = programs
        .iter()
        .map(|program| {
            let options: Vec<&str> = program.jvm.split(' ').collect();
            let words = arguments(program, length.faster, &folder);
            Jvm::start(&java, &options, &words.iter().map(String::as_str).collect::<Vec<_>>())
        })
        .collect();
    let path = folder.file("all.marusa");
    let seconds = format!("{}s", length.seconds);
    let mut recorder = Recorder::start(&["--all", "-o", &path, "--for", &seconds, "--cpu", "60"]);
    while recorder.0.try_wait().expect("ours").is_none() {
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(recorder.wait().status.success());
    let mut certain = BTreeSet::new();
    let mut wrong = Vec::new();
    for cut in &length.cuts {
        let leak = marusa(&["leak", &path, "--to", &format!("+{cut}s"), "--json"]);
        assert!(leak.status.success(), "{}", text(&leak.stderr));
        let leak: Value = serde_json::from_slice(&leak.stdout).expect("JSON");
        for (program, jvm) in programs.iter().zip(&jvms) {
            let all = leak["jvms"].as_array().expect("a list");
            let Some(judged) = all.iter().find(|judged| judged["process"]["pid"] == jvm.pid) else {
                continue;
            };
            println!("{cut:>5} s  {:<40} {}", program.arguments, judged["answer"]);
            let is_right = match named(judged) {
                Some((_, name)) if program.leaks.contains(&name.as_str()) => {
                    certain.insert(program.arguments);
                    true
                }
                // It has grown by so much: true, whatever comes. Of a leak it must be the leak.
                Some((is_verdict, _)) => !is_verdict && program.leaks.is_empty(),
                None => true,
            };
            let is_known = matches!(named(judged), Some((true, _))) || !program.is_certain;
            if !is_right || *cut >= length.known_by && !is_known {
                wrong.push(format!("{cut} s, {}: {}", program.arguments, judged["answer"]));
            }
        }
    }
    let missing: Vec<&str> = programs
        .iter()
        .filter(|program| program.is_certain && !certain.contains(program.arguments))
        .map(|program| program.arguments)
        .collect();
    assert!(wrong.is_empty() && missing.is_empty(), "wrong:\n{}\nnever named: {missing:?}", wrong.join("\n"));
}
