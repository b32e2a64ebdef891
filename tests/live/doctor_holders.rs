//! `doctor --holders` on real JVMs: instances that are never closed, and blocks whose addresses were lost.

use crate::common::*;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Asks until the finding is there.
fn finding(program: &str, id: &str) -> Option<Value> {
    let java = java("17")?;
    let program: Vec<&str> = std::iter::once("marusa.Leak").chain(program.split(' ')).collect();
    let jvm = Jvm::start(&java, &["-Xmx256m", "-XX:+UseSerialGC"], &program);
    let pid = jvm.pid.to_string();
    let started = Instant::now();
    let found = |options: &[&str]| {
        let output = marusa(&[&["doctor", &pid, "--watch", "10ms", "--json"][..], options].concat());
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let mut findings = document["findings"].as_array().expect("findings").iter();
        findings.find(|finding| finding["id"] == id).cloned()
    };
    loop {
        if let Some(finding) = found(&["--holders"]) {
            assert_eq!(found(&[]), None, "the holders are read only where they are asked for");
            return Some(finding);
        }
        assert!(started.elapsed() < Duration::from_secs(90), "{id} is not found");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn inflaters_that_are_never_ended_are_named_with_their_field() {
    let Some(found) = finding("kind=inflater rate=30m/s until=150m", "native-memory-not-closed") else {
        return;
    };
    let title = found["title"].as_str().expect("a title");
    assert!(title.contains("java.util.zip.Inflater"), "{title}");
    assert!(number(&found["cost"]["bytes"]) >= 32 << 20, "{found}");
}

#[test]
fn blocks_whose_addresses_were_lost_are_named() {
    // Garbage has their addresses until it is collected.
    let Some(found) = finding("kind=unsafe rate=60m/s until=200m churn=60m/s", "native-memory-unreached")
    else {
        return;
    };
    assert!(number(&found["cost"]["bytes"]) >= 64 << 20, "{found}");
}
