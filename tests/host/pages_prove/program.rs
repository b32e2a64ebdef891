//! A Java program that writes how fast it is into a file, for `marusa pages prove` to read.

use crate::common::{java, root};
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub struct Program {
    pub child: Child,
    pub log: PathBuf,
    pub pattern: &'static str,
}

impl Program {
    /// Random access to as many bytes as `array` says: its time goes into address translation.
    pub fn random_access(jdk: &str, array: &str, heap: &str) -> Option<Program> {
        let program =
            ["marusa.RandomAccess", &format!("heap={array}"), "accesses=200k", "rounds=1m", "clock=cpu"];
        Program::start(jdk, heap, &program, r"^dependent ([\d.]+)")
    }

    /// Work in registers, in a JVM whose heap is in memory but is not used.
    pub fn spin(jdk: &str, heap: &str) -> Option<Program> {
        Program::start(jdk, heap, &["marusa.Spin", "steps=20m"], r"^spin ([\d.]+)")
    }

    fn start(jdk: &str, heap: &str, program: &[&str], pattern: &'static str) -> Option<Program> {
        let java = java(jdk)?;
        let name = format!("marusa-prove-{}-{}.log", std::process::id(), program[0]);
        let log = std::env::temp_dir().join(name);
        let output = File::create(&log).expect("a log");
        let child = Command::new(java)
            .args([format!("-Xms{heap}"), format!("-Xmx{heap}"), "-Xmn16m".to_string()])
            .args(["-XX:+UseParallelGC", "-XX:+AlwaysPreTouch", "-XX:-UseTransparentHugePages", "-cp"])
            .arg(root().join("java/build-out"))
            .args(program)
            .stdin(Stdio::null())
            .stdout(output)
            .spawn()
            .expect("java runs");
        let program = Program { child, log, pattern };
        program.wait();
        Some(program)
    }

    /// Waits until it has printed its figure a few times.
    fn wait(&self) {
        let started = Instant::now();
        let has_printed = || std::fs::read_to_string(&self.log).unwrap_or_default().lines().count() > 5;
        while !has_printed() {
            assert!(started.elapsed() < Duration::from_secs(120), "{} tells nothing", self.log.display());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn prove(&self, more: &[&str]) -> Output {
        self.command(more).output().expect("marusa runs")
    }

    pub fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.args(["pages", "prove", &self.child.id().to_string(), "--better", "lower", "--json"]);
        command.arg("--metric-log").arg(&self.log).args(["--pattern", self.pattern]).args(more);
        command
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {} {}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}
