//! JVMs that another program than the launcher of Java loads (tests/native/embed_jvm.c): from a file that exists in memory only,
//! and
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

#[test]
fn a_library_in_memory_is_attached_to_and_trimmed_as_any_other() {
    let Some(jvm) = start("21", "vm", "-", &["-Xmx48m", "-XX:+UseSerialGC"]) else { return };
    let pid = jvm.pid.to_string();
    let planned = marusa(&["trim", &pid, "--dry-run"]);
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    let audit = marusa(&["audit", &pid]);
    assert!(text(&audit.stdout).contains("java_heap"), "{} {}", text(&audit.stdout), text(&audit.stderr));
}

/// The head of the account, as text and as JSON.
fn commands(pid: i32) -> [String; 2] {
    let shown = text(&marusa(&["map", &pid.to_string()]).stdout);
    let head = shown.lines().take(3).collect::<Vec<_>>().join(" ");
    [head, map_json(pid)["process"]["command"].as_str().unwrap_or_default().to_string()]
}

/// A program that loads the VM and gives it options that are on no command line, below a title of its own.
#[test]
fn a_program_with_a_title_has_the_command_that_the_vm_was_given() {
    let options = [
        "-Xmx48m",
        "-Dpassword=hunter2",
        "-XX:OnError=hunter2 -Xhunter2",
        "-Dsun.java.command=marusa.Idle --token=hunter2 hunter2",
    ];
    for (jdk, perf_data) in JDKS.into_iter().zip(["-XX:+UsePerfData", "-XX:-UsePerfData", "-XX:+UsePerfData"])
    {
        let options = [&options[..], &[perf_data]].concat();
        let Some(jvm) = start(jdk, "-", "orders: hunter2 is idle", &options) else { continue };
        let line = std::fs::read_to_string(format!("/proc/{}/cmdline", jvm.pid)).expect("its own");
        assert!(line.starts_with("orders: hunter2 is idle\0") && !line.contains("Xmx"), "{line}");
        let shown = commands(jvm.pid);
        // A line of text is cut in its middle.
        assert!(shown[1].contains("/embed_jvm -Xmx48m "), "jdk {jdk}: {}", shown[1]);
        for shown in shown {
            assert!(shown.contains("marusa.Idle"), "jdk {jdk}: {shown}");
            assert!(!shown.contains("hunter2"), "jdk {jdk}: {shown}");
        }
        let listed = listed(jvm.pid);
        assert_eq!(
            (&listed["main"], number(&listed["max_heap_bytes"])),
            (&Value::from("marusa.Idle"), 48 << 20)
        );
        let whole = marusa(&["--show-arguments", "map", &jvm.pid.to_string(), "--json"]);
        let whole: Value = serde_json::from_slice(&whole.stdout).expect("JSON");
        let command = whole["process"]["command"].as_str().expect("a command");
        assert!(
            command.contains("-Dpassword=hunter2") && command.ends_with("--token=hunter2 hunter2"),
            "{command}"
        );
    }
}

/// The launcher of Java under another name: a part of what it was given looks like the arguments of any program.
#[test]
fn a_launcher_of_another_name() {
    let Some(java) = java("21") else { return };
    let mut command = Command::new(&java);
    std::os::unix::process::CommandExt::arg0(&mut command, "orders");
    command.args(["-Xmx48m", "-cp"]).arg(root().join("java/build-out")).args(["marusa.Idle", "hunter2"]);
    let jvm = Jvm::of(command);
    for shown in commands(jvm.pid) {
        assert!(shown.contains("/bin/java -Xmx48m marusa.Idle …"), "{shown}");
    }
    assert_eq!(listed(jvm.pid)["main"], "marusa.Idle");
}
