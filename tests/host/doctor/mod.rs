//! `marusa doctor` on real JVMs: the ones that are healthy give no finding of warn or critical, each fault that is made is found
//! and nothing else at its level, and bad input gets a clear answer.

pub mod busy;
mod faults;
mod faults_of_host;
pub mod faults_of_memory;
mod faults_of_page_work;
mod faults_of_pages;
mod faults_of_reach;
mod given;
mod group;
pub mod made;
mod swap;

use crate::common::*;
use group::Group;
use made::{Examined, Fault};
use serde_json::Value;
use std::time::Instant;

/// What the healthy JVMs do: a bit of everything, all the time.
const WORK: &[&str] =
    &["heap=40m", "threads=10", "garbage=10m/s", "direct=8m", "classes=500", "jit=1", "deflate=1"];
const HEALTHY: [(&str, &str, &str); 6] = [
    ("8", "parallel", "-Xmx256m"),
    ("11", "g1", "-Xmx256m"),
    ("17", "g1", "-Xmx300m"),
    ("21", "z-generational", "-Xmx400m"),
    ("25", "g1", "-Xmx256m"),
    ("25", "serial", "-Xmx200m"),
];

fn faults() -> impl Iterator<Item = &'static Fault> {
    let of_pages = faults_of_pages::FAULTS.iter().chain(faults_of_page_work::FAULTS);
    let others = faults::FAULTS.iter().chain(faults_of_host::FAULTS).chain(of_pages);
    others.chain(faults_of_reach::FAULTS).chain(faults_of_pages::WAITED_FOR)
}

/// With the ones that tests/host/doctor_host makes.
fn all_faults() -> impl Iterator<Item = &'static Fault> {
    faults().chain(faults_of_memory::WHOLE).chain(faults_of_memory::IN_PIECES)
}

#[test]
fn a_healthy_jvm_gives_no_warning() {
    let mut bad = Vec::new();
    for (jdk, gc, heap) in HEALTHY {
        let Some(jvm) = Jvm::under_load(&row(jdk, gc), &[heap], WORK) else { continue };
        let examined = Examined::jvm(jvm.pid, "500ms");
        println!("jdk {jdk} {gc}: {:?}", examined.found());
        let of_jvm = examined.of_jvm(jvm.pid);
        bad.extend(of_jvm.into_iter().filter(|found| found.level != "info").map(|found| (jdk, gc, found)));
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// `MARUSA_FAULT=name` makes only those whose name contains it.
#[test]
fn each_fault_is_found_and_nothing_else_at_its_level() {
    let wanted = std::env::var("MARUSA_FAULT").unwrap_or_default();
    let mut wrong = Vec::new();
    let mut made = 0;
    busy::await_averages();
    for fault in faults().filter(|fault| fault.name.contains(&wanted)) {
        let started = Instant::now();
        match fault.check() {
            Ok(true) => made += 1,
            Ok(false) => {}
            Err(why) => wrong.push(format!("{}: {why}", fault.name)),
        }
        println!("{:<44} {:4.1} s", fault.name, started.elapsed().as_secs_f64());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{made} faults were made and found");
}

/// 64 MiB of heap in a limit of 300 MiB: a heap of 100 MiB fits, one of 400 MiB does not.
#[test]
fn whether_a_heap_of_another_size_fits_is_answered() {
    let Some(group) = Group::of_memory(300 << 20) else { return };
    let Some(jvm) =
        made::Program::new("17", &["-XX:+UseSerialGC", "-Xmx64m"], &["marusa.Idle"]).within(&group).start()
    else {
        return;
    };
    let pid = jvm.pid.to_string();
    let answer = |size: &str| marusa(&["doctor", &pid, "--watch", "200ms", "--if-xmx", size, "--json"]);
    let figures = |size: &str| -> Value {
        let document: Value = serde_json::from_slice(&answer(size).stdout).expect("JSON");
        document["if_xmx"].clone()
    };
    let (small, large) = (figures("100m"), figures("400m"));
    assert_eq!(
        (&small["fits"], &large["fits"]),
        (&Value::from(true), &Value::from(false)),
        "{small} {large}"
    );
    assert_eq!(small["limit_bytes"], 300 << 20);
    let more = |key: &str| large[key].as_u64().expect("bytes") - small[key].as_u64().expect("bytes");
    assert!((300 << 20..=310 << 20).contains(&more("needs_bytes")), "{small} {large}");
    let largest = small["largest_xmx_bytes"].as_u64().expect("bytes");
    assert!((100 << 20..300 << 20).contains(&largest), "{small}");
    assert_eq!((answer("100m").status.code(), answer("400m").status.code()), (Some(0), Some(1)));
}

#[test]
fn the_table_of_the_document_is_that_of_the_tests() {
    let text = std::fs::read_to_string(root().join("docs/doctor.md")).expect("docs/doctor.md");
    for Fault { name, expects, .. } in all_faults() {
        let found: Vec<String> = expects.iter().map(|(id, level)| format!("`{id}` {level}")).collect();
        let line = format!("| {name} | {} |", found.join(", "));
        assert!(text.contains(&line), "docs/doctor.md has no line:\n{line}");
    }
}

/// Documents that say how many rules are proved, and the line in which they do.
const COUNTED: [(&str, &str); 2] =
    [("SUPPORT.md", "| `doctor`: "), ("docs/doctor.md", "Faults are made for ")];

fn counted(path: &str, proved: usize, rules: usize) -> String {
    match path {
        "SUPPORT.md" => format!(
            "| `doctor`: {proved} of its {rules} rules | proved on faults that are made ([docs/doctor.md](docs/doctor.md)); \
             the others on made-up facts |"
        ),
        _ => format!("Faults are made for {proved} of the {rules} rules."),
    }
}

/// The faults of these tests are the one source of the figure; `MARUSA_BLESS=1` writes it into the documents.
#[test]
fn the_documents_say_how_many_rules_are_proved() {
    let list: Value = serde_json::from_slice(&marusa(&["doctor", "--list", "--json"]).stdout).expect("JSON");
    let rules = list["rules"].as_array().expect("rules");
    let proves = |id: &str, fault: &Fault| {
        fault.expects.iter().any(|(made, level)| *made == id && !level.ends_with("or none"))
    };
    let is_proved =
        |rule: &&Value| rule["id"].as_str().is_some_and(|id| all_faults().any(|fault| proves(id, fault)));
    let proved = rules.iter().filter(is_proved).count();
    for (path, start) in COUNTED {
        let text = std::fs::read_to_string(root().join(path)).expect("a document");
        let wanted = counted(path, proved, rules.len());
        let written: Vec<&str> = text.lines().filter(|line| line.starts_with(start)).collect();
        if std::env::var_os("MARUSA_BLESS").is_some() && written.len() == 1 {
            std::fs::write(root().join(path), text.replace(written[0], &wanted)).expect("written");
            continue;
        }
        assert_eq!(written, [wanted], "{path}: MARUSA_BLESS=1 writes the line anew");
    }
}

#[test]
fn every_rule_is_made_real_or_said_not_to_be() {
    let rules: Value = serde_json::from_slice(&marusa(&["doctor", "--list", "--json"]).stdout).expect("JSON");
    let text = std::fs::read_to_string(root().join("docs/doctor.md")).expect("docs/doctor.md");
    let (_, not_made) = text.split_once("## Not made real").expect("a part of its own");
    for rule in rules["rules"].as_array().expect("rules") {
        let id = rule["id"].as_str().expect("an id");
        let is_made = all_faults().any(|fault| fault.expects.iter().any(|(made, _)| *made == id));
        assert!(
            is_made || not_made.contains(&format!("`{id}`")),
            "{id} is neither made real nor said not to be"
        );
        assert!(
            !(is_made && not_made.contains(&format!("`{id}`"))),
            "{id} is made real: docs/doctor.md denies it"
        );
    }
}
