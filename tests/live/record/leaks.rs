//! Eight programs that leak in eight ways, and three that do not, recorded together: whenever one asks, the headline of `leak`
//! names what leaks, or nothing. With `MARUSA_LONG_TESTS=1` as users would see it, at every minute from 2 to 20, with the
//! verdicts; else the programs leak faster, it is asked every few seconds until each leak was named, and no verdict is due yet.

use super::*;
use std::collections::BTreeSet;

struct Program {
    arguments: &'static str,
    jvm: &'static str,
    /// What may be named first; empty: nothing may be named with a verdict.
    leaks: &'static [&'static str],
    /// Named by the end.
    is_certain: bool,
    /// By this factor in the short test.
    faster: u64,
}

const fn leak(arguments: &'static str, leaks: &'static [&'static str]) -> Program {
    Program { arguments, jvm: "-Xmx512m -XX:+UseSerialGC", leaks, is_certain: true, faster: 8 }
}

/// Where an account counts malloc's blocks depends on what the JVM's symbols and Native Memory Tracking say of their owners.
const MALLOC: &[&str] =
    &["jvm_work", "native_library", "direct_buffers", "malloc_unknown", "unattributed", "malloc"];

fn programs() -> [Program; 11] {
    [
        // Loaders that come too fast cannot be walked.
        Program { faster: 2, ..leak("kind=loader rate=300k/s", &["class_metadata"]) },
        Program {
            jvm: "-Xmx500m -XX:+UseSerialGC -XX:MinHeapFreeRatio=5 -XX:MaxHeapFreeRatio=10",
            // Unknown until whole collections were seen.
            is_certain: false,
            ..leak("kind=heap rate=150k/s churn=4m/s", &["heap_after_collections"])
        },
        leak("kind=direct rate=200k/s", &["direct_buffers"]),
        leak("kind=unsafe rate=200k/s", MALLOC),
        leak("kind=inflater rate=200k/s", MALLOC),
        leak("kind=threads rate=150k/s", &["stack"]),
        // Not on a host that is short of memory: there the kernel reclaims the pages.
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

/// How long is asked, and how often.
struct Length {
    is_long: bool,
    ask_every: Duration,
    end: Duration,
    /// From here on, each leak that is certain has its verdict.
    known_by: Duration,
}

fn length() -> Length {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    match is_long() {
        true => Length { is_long: true, ask_every: minutes(1), end: minutes(20), known_by: minutes(15) },
        false => Length {
            is_long: false,
            ask_every: Duration::from_secs(8),
            end: minutes(3),
            known_by: minutes(4),
        },
    }
}

/// The arguments of a program, with "rate=200k/s" times a factor.
fn arguments(program: &Program, faster: u64, directory: &Directory) -> Vec<String> {
    let of = |word: &str| match word.strip_prefix("rate=").and_then(|rate| rate.strip_suffix("k/s")) {
        Some(rate) => format!("rate={}k/s", rate.parse::<u64>().expect("a number") * faster),
        None => word.to_string(),
    };
    let mut words: Vec<String> = program.arguments.split(' ').map(of).collect();
    words.extend([format!("dir={}", directory.0.display())]);
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

/// Asks once: what is wrong, per program. The programs that are named correctly are added to `certain`.
fn asked(
    length: &Length,
    after: Duration,
    path: &str,
    jvms: &[Jvm],
    certain: &mut BTreeSet<&str>,
) -> Vec<String> {
    let leak = marusa(&["leak", path, "--json"]);
    assert!(leak.status.success(), "{}", text(&leak.stderr));
    let leak: Value = serde_json::from_slice(&leak.stdout).expect("JSON");
    let all = leak["jvms"].as_array().expect("a list");
    let mut wrong = Vec::new();
    for (program, jvm) in programs().iter().zip(jvms) {
        let Some(judged) = all.iter().find(|judged| judged["process"]["pid"] == jvm.pid) else { continue };
        let said = format!("{:>4} s  {:<34} {}", after.as_secs(), program.arguments, judged["answer"]);
        println!("{said}");
        let named = named(judged);
        let is_right = match &named {
            Some((_, name)) if program.leaks.contains(&name.as_str()) => {
                certain.insert(program.arguments);
                true
            }
            // By how much something grew is true whatever comes, but with a leak it must be the leak.
            Some((is_verdict, _)) => !is_verdict && program.leaks.is_empty(),
            None => true,
        };
        let is_known = named.is_some_and(|(is_verdict, _)| is_verdict) || !program.is_certain;
        if !is_right || after >= length.known_by && !is_known {
            wrong.push(said);
        }
    }
    wrong
}

#[test]
fn eight_leaks_recorded_together_are_named_or_nothing_is() {
    let Some(java) = java("17") else { return };
    let (directory, length) = (Directory::new("leaks"), length());
    let start = |program: &Program| {
        let options: Vec<&str> = program.jvm.split(' ').collect();
        let words = arguments(program, if length.is_long { 1 } else { program.faster }, &directory);
        Jvm::start(&java, &options, &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let programs = programs();
    let jvms: Vec<Jvm> = programs.iter().map(start).collect();
    let path = directory.file("all.marusa");
    let recorder = Recorder::start(&["--all", "-o", &path, "--cpu", "60"]);
    let started = Instant::now();
    let leaks = programs.iter().filter(|program| program.is_certain).count();
    let (mut certain, mut wrong) = (BTreeSet::new(), Vec::new());
    let mut next = if length.is_long { Duration::from_secs(120) } else { length.ask_every };
    while next <= length.end && (length.is_long || certain.len() < leaks) {
        std::thread::sleep(next.saturating_sub(started.elapsed()));
        wrong.extend(asked(&length, next, &path, &jvms, &mut certain));
        next = (next + length.ask_every).max(started.elapsed());
    }
    assert!(recorder.stop().status.success());
    let is_named = |program: &&Program| certain.contains(program.arguments);
    let missing: Vec<&str> = programs
        .iter()
        .filter(|program| program.is_certain && !is_named(program))
        .map(|program| program.arguments)
        .collect();
    assert!(wrong.is_empty() && missing.is_empty(), "wrong:\n{}\nnever named: {missing:?}", wrong.join("\n"));
}
