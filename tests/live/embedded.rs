//! JVMs that another program than the launcher of Java loads (tests/native/embed_jvm.c): from a file that exists in memory only, and
//! with arguments that are not those of the JVM.

use crate::common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const JDKS: [&str; 3] = ["17", "21", "25"];

fn program() -> Option<PathBuf> {
    native::compiled("embed_jvm", "embed_jvm", &["-rdynamic"], &["-ldl".to_string()])
}

/// A JVM of `program`: from a memory file of that name, with that title; "-" is neither.
fn start(jdk: &str, memory_file: &str, title: &str, options: &[&str]) -> Option<Jvm> {
    let (java, program) = (java(jdk)?, program()?);
    Some(Jvm::of(command(&program, &java, memory_file, title, options)))
}

fn command(program: &Path, java: &Path, memory_file: &str, title: &str, options: &[&str]) -> Command {
    let home = java.parent().and_then(Path::parent).expect("HOME/bin/java");
    let mut command = Command::new(program);
    command.arg(home).args([memory_file, title]).args(options);
    command.arg(format!("-Djava.class.path={}", root().join("java/build-out").display()));
    command.args(["--", "marusa.Idle"]);
    command
}

fn listed(pid: i32) -> Value {
    let list: Value = serde_json::from_slice(&marusa(&["list", "--json"]).stdout).expect("JSON");
    let jvms = list["jvms"].as_array().expect("an array");
    jvms.iter().find(|jvm| jvm["pid"] == pid).unwrap_or_else(|| panic!("no {pid} in {list}")).clone()
}

#[test]
fn a_library_in_memory_is_read_as_any_other() {
    // The second name says nothing; the third is none.
    for (jdk, name) in JDKS.into_iter().zip(["libjvm.so", "vm", ""]) {
        let Some(jvm) = start(jdk, name, "-", &["-Xmx48m", "-XX:+UseSerialGC"]) else { continue };
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", jvm.pid)).expect("maps");
        assert!(maps.contains(&format!("/memfd:{name} (deleted)")) && !maps.contains("/libjvm.so"), "{maps}");
        let listed = listed(jvm.pid);
        assert_eq!(listed["vm"], "hotspot");
        assert_eq!((&listed["gc"], number(&listed["max_heap_bytes"])), (&Value::from("serial"), 48 << 20));
        assert!(listed["version"].as_str().is_some_and(|version| version.starts_with(jdk)), "{listed}");
        let map = map_json(jvm.pid);
        assert!(number(&area(&map, "java_heap")["resident_bytes"]) > 0, "jdk {jdk}: {}", map["gaps"]);
        let code = &area(&map, "code")["parts"];
        assert!(code.as_array().is_some_and(|parts| !parts.is_empty()), "jdk {jdk}: {code}");
    }
}
