//! `marusa record` and what reads its files, on real JVMs: the recorder may be killed at any moment, the JVM too; a ring, a full
//! disk, a
//! newer form; what grew is named.

mod bad_input;
mod classes;
mod clock;
mod diff;
mod holders;
mod killed;
mod leaks;
mod out_of_memory;
pub mod parquet;
mod several;

use crate::common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// An empty directory for one test, removed at its end.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("marusa-record-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A JVM that grows on request, or the reason why there is none was printed.
pub fn grow(options: &[&str], program: &[&str]) -> Option<Jvm> {
    let java = java("17")?;
    let options = [&["-Xmx64m", "-XX:+UseSerialGC"][..], options].concat();
    Some(Jvm::start(&java, &options, &[&["marusa.Grow"][..], program].concat()))
}

/// A recorder at work, ended when dropped.
pub struct Recorder(pub Child);

impl Recorder {
    pub fn start(arguments: &[&str]) -> Recorder {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.arg("record").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        Recorder(command.spawn().expect("marusa runs"))
    }

    /// As Ctrl-C does.
    pub fn stop(self) -> Output {
        signal(self.0.id() as i32, libc::SIGINT);
        self.wait()
    }

    pub fn wait(mut self) -> Output {
        let started = Instant::now();
        // A full disk is noticed after a page of samples.
        while started.elapsed() < Duration::from_secs(120) {
            if self.0.try_wait().expect("ours").is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(self.0.try_wait().expect("ours").is_some(), "it hung");
        let stdout = self.0.stdout.take().expect("a pipe");
        let stderr = self.0.stderr.take().expect("a pipe");
        let all = |pipe: &mut dyn std::io::Read| {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).expect("read");
            bytes
        };
        let (mut stdout, mut stderr) = (stdout, stderr);
        let status = self.0.wait().expect("ours");
        let output = Output { status, stdout: all(&mut stdout), stderr: all(&mut stderr) };
        assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
        output
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lines of a recording, as `export --json-lines` has them, and the messages on stderr.
pub fn exported(path: &str) -> (Vec<Value>, String) {
    let output = marusa(&["export", path, "--json-lines", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    (lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(), text(&output.stderr))
}

pub fn of<'a>(lines: &'a [Value], subject: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["subject"] == subject).collect()
}

/// The lines with an account that was read anew: its time is another than that of the line before.
pub fn accounts<'a>(process: &[&'a Value]) -> Vec<&'a Value> {
    let mut before = None;
    let is_new = |line: &&&Value| {
        let read_at = line["account_age_ms"].as_u64().map(|age| number(&line["steady_ms"]) - age);
        read_at.is_some() && std::mem::replace(&mut before, read_at) != read_at
    };
    process.iter().filter(is_new).copied().collect()
}

/// Waits until a file is there and has grown past its first records.
pub fn wait_for_bytes(path: &str, bytes: u64) {
    let started = Instant::now();
    while std::fs::metadata(Path::new(path)).map_or(0, |facts| facts.len()) < bytes {
        assert!(started.elapsed() < Duration::from_secs(20), "{path} does not grow");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every moment has the kernel's sums, an account sums to what is resident, and each says how old it is.
#[test]
fn what_is_recorded_is_what_the_kernel_and_the_account_say() {
    // What is touched between the kernel's sum and the account is then little, however slow the machine is.
    let Some(jvm) = grow(&["-XX:+AlwaysPreTouch"], &["churn=20m/s"]) else { return };
    let directory = Directory::new("plain");
    let path = directory.file("a.marusa");
    let pid = jvm.pid.to_string();
    let arguments = [
        pid.as_str(),
        "-o",
        &path,
        "--every",
        "100ms",
        "--account-every",
        "500ms",
        "--cpu",
        "50",
        "--json",
        "--for",
        "5s",
    ];
    let output = Recorder::start(&arguments).wait();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let recorded: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(recorded["schema"], "marusa/recorded/2");
    let (lines, said) = exported(&path);
    assert_eq!(said, "", "nothing is torn");
    let process = of(&lines, "process");
    assert_eq!(process.len() as u64, number(&recorded["samples"]));
    // One each 100 ms, and the last: on a slow machine fewer, never more.
    assert!((3..=52).contains(&process.len()), "{} samples in 5 s", process.len());
    assert!(process.iter().all(|line| number(&line["kernel_resident_bytes"]) > 10 << 20));
    assert!(process.iter().any(|line| line["heap_used_bytes"].is_u64()), "the runtime's counters");
    let accounts: Vec<u64> = accounts(&process).iter().map(|line| number(&line["steady_ms"])).collect();
    assert!(accounts.len() >= 3, "{} accounts", accounts.len());
    assert_eq!(
        accounts.last(),
        process[process.len() - 1]["steady_ms"].as_u64().as_ref(),
        "it ends with an account"
    );
    for at in accounts {
        let areas = of(&lines, "area").into_iter().filter(|line| line["steady_ms"] == at);
        let parts = of(&lines, "part").into_iter().filter(|line| line["steady_ms"] == at);
        let sum = |lines: &mut dyn Iterator<Item = &Value>| {
            lines.map(|line| number(&line["resident_bytes"])).sum::<u64>()
        };
        let (areas, parts) = (sum(&mut areas.into_iter()), sum(&mut parts.into_iter()));
        assert_eq!(areas, parts, "the parts sum to the areas");
        let kernel = process.iter().find(|line| line["steady_ms"] == at).expect("a sample");
        let away = number(&kernel["kernel_resident_bytes"]).abs_diff(areas);
        assert!(away < 16 << 20, "{away} bytes away from the kernel's sum of a moment before");
    }
}

/// What is in the Parquet is `parquet`'s to look at.
#[test]
fn parquet_and_csv_have_as_many_lines_as_json() {
    let Some(jvm) = grow(&[], &[]) else { return };
    let directory = Directory::new("export");
    let path = directory.file("a.marusa");
    Recorder::start(&[&jvm.pid.to_string(), "-o", &path, "--every", "200ms", "--for", "2s"]).wait();
    let (csv, parquet) = (directory.file("a.csv"), directory.file("a.parquet"));
    let output = marusa(&["export", &path, "--csv", &csv, "--parquet", &parquet]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = exported(&path).0.len();
    let csv = std::fs::read_to_string(csv).expect("ours");
    assert_eq!(csv.lines().count(), lines + 1);
    let bytes = std::fs::read(&parquet).expect("ours");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}
