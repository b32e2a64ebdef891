//! marusa.Steady: a JVM that works on its memory and checks it, and answers.
#![allow(dead_code, reason = "the test and the bench use their own parts")]

use crate::common::{Row, java, root};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long an answer may take on a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(120);

pub struct Steady {
    child: Child,
    pub pid: i32,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// What `stop` tells: figures by their names.
pub type Figures = BTreeMap<String, f64>;

impl Steady {
    /// `None`: that JDK is not there.
    pub fn start(row: &Row, options: &[&str], program: &[&str]) -> Option<Steady> {
        let mut command = Command::new(java(&row.jdk)?);
        command.args(&row.options).args(options);
        Some(Steady::of(command, program))
    }

    /// `command` is java with its options, perhaps below another program that becomes it.
    pub fn of(mut command: Command, program: &[&str]) -> Steady {
        command.arg("-cp").arg(root().join("java/build-out")).arg("marusa.Steady").args(program);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (send, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let input = child.stdin.take().expect("a pipe");
        let pid = child.id() as i32;
        let steady = Steady { child, pid, input, lines };
        steady.answer("READY");
        steady
    }

    fn answer(&self, begin: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(ANSWER_MAX).expect("an answer");
            if line.starts_with(begin) {
                return line;
            }
        }
    }

    pub fn ask(&mut self, word: &str, begin: &str) -> Figures {
        writeln!(self.input, "{word}").and_then(|()| self.input.flush()).expect("the program reads");
        let line = self.answer(begin);
        let pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_string(), value.parse().expect("a number"))).collect()
    }

    pub fn begin(&mut self) {
        self.ask("start", "STARTED");
    }

    pub fn figures(&mut self) -> Figures {
        self.ask("stop", "FIGURES")
    }

    /// How many of its numbers are not what they must be.
    pub fn wrong(&mut self) -> u64 {
        self.ask("check", "CHECKED")["wrong"] as u64
    }

    pub fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        self.end();
    }
}

/// A kernel figure of smaps_rollup, in bytes.
pub fn rollup(pid: i32, key: &str) -> u64 {
    let sums = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("smaps_rollup");
    let line = sums.lines().find_map(|line| line.strip_prefix(&format!("{key}:"))).expect("the key");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
