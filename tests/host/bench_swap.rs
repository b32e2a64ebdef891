//! `marusa bench trim --part swap`: two servers that share too little memory. The host gets a file to swap to and a cgroup, and
//! is restored, also after Ctrl-C and kill -9.

use crate::common::host::Host;
use crate::common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SMALL: [&str; 14] = [
    "--part",
    "swap",
    "--swap-rounds",
    "2",
    "--live",
    "32M",
    "--burst",
    "48M",
    "--bursts",
    "2",
    "--arms",
    "marusa",
    "--every",
    "300ms",
];

/// The home of a test JDK.
fn home(jdk: &str) -> Option<String> {
    Some(java(jdk)?.parent().and_then(Path::parent).expect("bin/java").display().to_string())
}

/// What the experiment changes.
#[derive(Debug, PartialEq)]
struct Changed {
    swaps: String,
    groups: Vec<String>,
    state: Vec<String>,
}

/// A state directory of the test's own, and the host's lock: others swap too.
struct Place {
    state: PathBuf,
    _host: Host,
}

impl Place {
    fn new() -> Option<Place> {
        let host = Host::lock();
        if !is_root() {
            skip("only root may swap to a file and make cgroups");
            return None;
        }
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-trim-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&state);
        let place = Place { state, _host: host };
        let output = marusa(&["bench", "trim", "--dry-run", "--state", &place.directory(), "--part", "swap"]);
        if output.status.code() == Some(4) {
            skip(&text(&output.stderr));
            return None;
        }
        Some(place)
    }
    fn directory(&self) -> String {
        self.state.display().to_string()
    }
    fn now(&self) -> Changed {
        let names = |directory: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let groups =
            ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(|directory| names(Path::new(directory))).concat();
        Changed {
            swaps: std::fs::read_to_string("/proc/swaps").expect("swaps"),
            groups: groups.into_iter().filter(|name| name.starts_with("marusa-bench")).collect(),
            state: names(&self.state).into_iter().filter(|name| name.starts_with("bench")).collect(),
        }
    }
    fn start(&self, home: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command
            .args(["bench", "trim", "--quiet-wait", "0s", "--state", &self.directory(), "--jdk", home])
            .args(SMALL);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("marusa runs")
    }
    /// Until two servers are at work in the group.
    fn wait_for_servers(&self) -> Vec<i32> {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < Duration::from_secs(120), "no servers: {:?}", self.now());
            for group in self.now().groups {
                let procs = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].iter().find_map(|directory| {
                    std::fs::read_to_string(format!("{directory}/{group}/cgroup.procs")).ok()
                });
                let pids: Vec<i32> = procs.unwrap_or_default().lines().flat_map(str::parse).collect();
                if pids.len() >= 2 {
                    return pids;
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A test that failed may have left something.
        let output = marusa(&["pages", "undo", "--all", "--state", &self.directory()]);
        drop(output);
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

fn gone(pid: i32) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(20) {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn with_giving_back_less_is_swapped_and_the_host_is_as_before() {
    let (Some(place), Some(home)) = (Place::new(), home("25")) else { return };
    let before = place.now();
    let first =
        ["bench", "trim", "--quiet-wait", "0s", "--state", &place.directory(), "--jdk", &home, "--json"];
    let output = marusa(&[&first[..], &SMALL].concat());
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{json:#}");
    assert_eq!(place.now(), before);
    assert_eq!(json["gaps"].as_array().map(Vec::len), Some(0), "{json:#}");
    let out = |arm: usize| json["arms"][arm]["swap"]["swapped_out_bytes"]["median"].as_f64().expect("known");
    println!("swapped out: {} without, {} with giving back", out(0), out(1));
    assert!(out(0) > f64::from(8 << 20), "without pressure it proves nothing: {}", out(0));
    assert!(out(1) < out(0), "{} with, {} without", out(1), out(0));
}

#[test]
fn ctrl_c_ends_the_servers_and_puts_the_host_back() {
    let (Some(place), Some(home)) = (Place::new(), home("25")) else { return };
    let before = place.now();
    let child = place.start(&home);
    let servers = place.wait_for_servers();
    assert_ne!(place.now(), before);
    signal(child.id() as i32, libc::SIGTERM);
    let output = child.wait_with_output().expect("it ends");
    assert!(
        text(&output.stdout).contains("ended by a signal"),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(servers.into_iter().all(gone), "the servers are ended");
    assert_eq!(place.now(), before);
}

#[test]
fn after_kill_9_the_servers_are_gone_and_undo_puts_the_host_back() {
    let (Some(place), Some(home)) = (Place::new(), home("25")) else { return };
    let before = place.now();
    let mut child = place.start(&home);
    let servers = place.wait_for_servers();
    signal(child.id() as i32, libc::SIGKILL);
    child.wait().expect("it ends");
    assert!(servers.into_iter().all(gone), "the servers end with it");
    assert_ne!(place.now(), before);
    let output = marusa(&["pages", "undo", "--all", "--state", &place.directory()]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(place.now(), before);
}
