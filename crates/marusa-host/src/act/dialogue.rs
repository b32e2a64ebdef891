//! A program of ours that is started, takes commands line by line, and is ended: between two lines it can be read from
//! outside, which is not possible with a program that runs through.

use super::launched::{self, Launched};
use super::signals;
use crate::base::{Gap, Known, Why};
use crate::os::{busy, loaded, maps};
use std::io;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How often it is looked whether we are interrupted (where that is blocked: act/signals.rs).
const LOOK: Duration = Duration::from_millis(50);

/// A program that answers. It is ended, with all that it started, when this is dropped.
pub struct Dialogue {
    program: Launched,
    what: String,
    /// The JVM: the child, or below it where a wrapper starts it.
    pub pid: i32,
}

impl Dialogue {
    /// Starts it in `directory` and waits for its line that begins with "READY", whose rest is given too.
    pub fn start(
        what: &str,
        java: &Path,
        arguments: &[String],
        directory: &Path,
        limit: Duration,
    ) -> Known<(Dialogue, String)> {
        let gap = |error: io::Error| Gap::new(what, Why::Gone).hint(format!("{}: {error}", java.display()));
        let mut command = launched::java(java);
        let program = Launched::start(command.args(arguments).current_dir(directory)).map_err(gap)?;
        let pid = program.pid();
        let mut dialogue = Dialogue { program, what: what.to_string(), pid };
        let ready = loop {
            let line = dialogue.line(limit)?;
            if let Some(rest) = line.strip_prefix("READY") {
                break rest.trim().to_string();
            }
        };
        dialogue.pid = jvm_below(pid).ok_or_else(|| Gap::new(what, Why::Gone).hint("it is not a JVM"))?;
        Ok((dialogue, ready))
    }

    /// Says a line and gives the answer to it. One that begins with "FAILED" is a gap.
    pub fn ask(&mut self, line: &str, limit: Duration) -> Known<String> {
        if let Err(error) = self.program.say(line) {
            return Err(self.gone(&error.to_string()));
        }
        let answer = self.line(limit)?;
        match answer.strip_prefix("FAILED") {
            Some(why) => Err(Gap::new(self.what.clone(), Why::NotMeasured).hint(why.trim())),
            None => Ok(answer),
        }
    }

    /// What it wrote to standard error so far: warnings of the JVM.
    pub fn complaints(&self) -> String {
        self.program.complaints()
    }

    fn line(&mut self, limit: Duration) -> Known<String> {
        let end = Instant::now() + limit;
        let answer = loop {
            let answer = self.program.lines.recv_timeout(LOOK);
            match answer {
                Err(RecvTimeoutError::Timeout) if signals::pending() => {
                    return Err(Gap::new(self.what.clone(), Why::Gone).hint("marusa was interrupted"));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                answer => break answer,
            }
        };
        match answer {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(Gap::new(self.what.clone(), Why::OverLimit)
                .hint(format!("it did not answer within {} s", limit.as_secs()))),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.program.status();
                Err(self.gone(&status))
            }
        }
    }

    fn gone(&self, why: &str) -> Gap {
        let said = self.complaints();
        let said = if said.is_empty() { "it said nothing".to_string() } else { said.replace('\n', "; ") };
        Gap::new(self.what.clone(), Why::Gone).hint(format!("{why}: {said}"))
    }
}

/// The process itself or the descendant that maps libjvm.so: JDK 8 of a small root runs below `unshare`.
pub fn jvm_below(pid: i32) -> Option<i32> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    if !loaded::hotspot(&maps::parse(&text).0).is_empty() {
        return Some(pid);
    }
    busy::children(pid).into_iter().find_map(jvm_below)
}
