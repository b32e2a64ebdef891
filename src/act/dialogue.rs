//! A program of ours that is started, takes commands line by line, and is ended: between two lines it can be read from
//! outside, which is not possible with a program that runs through.

use super::ask_jdk::OF_THE_SHELL;
use super::{signals, trial};
use crate::base::{Gap, Known, Why};
use crate::os::{loaded, maps};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Most bytes of one answer: 100,000 numbers.
const LINE_BYTES_MAX: u64 = 2 << 20;
/// Lines that it may be ahead of us; it waits then, so that a flood of them does not fill our memory.
const LINES_WAITING_MAX: usize = 1024;
/// Maximum bytes of stderr that are quoted in an error.
const SAID_BYTES_MAX: usize = 1000;

/// How often it is looked whether we are interrupted (where that is blocked: act/signals.rs).
const LOOK: Duration = Duration::from_millis(50);

/// A program that answers. It is ended, with all that it started, when this is dropped.
pub struct Dialogue {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    errors: File,
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
        let errors = tempfile::tempfile().map_err(gap)?;
        let mut command = Command::new(java);
        command.args(arguments).current_dir(directory).process_group(0);
        for name in OF_THE_SHELL {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors.try_clone().map_err(gap)?);
        trial::ends_with_us(&mut command);
        let mut child = command.spawn().map_err(gap)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let Some((input, output)) = pipes else {
            trial::end(&mut child);
            return Err(gap(io::Error::other("it has no pipes")));
        };
        let pid = child.id() as i32;
        let mut dialogue =
            Dialogue { child, input, lines: lines_of(output), errors, what: what.to_string(), pid };
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
        if let Err(error) = writeln!(self.input, "{line}").and_then(|()| self.input.flush()) {
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
        // Where it writes next is not to move.
        let mut bytes = [0; SAID_BYTES_MAX];
        let read = self.errors.read_at(&mut bytes, 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).trim().to_string()
    }

    fn line(&mut self, limit: Duration) -> Known<String> {
        let end = Instant::now() + limit;
        let answer = loop {
            let answer = self.lines.recv_timeout(LOOK);
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
                // Standard output closes a moment before the status is there.
                let status = (0..100).find_map(|_| match self.child.try_wait() {
                    Ok(None) => {
                        thread::sleep(Duration::from_millis(5));
                        None
                    }
                    status => status.ok().flatten(),
                });
                let status = status.map_or("it closed its output".to_string(), |status| status.to_string());
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

impl Drop for Dialogue {
    fn drop(&mut self) {
        trial::end(&mut self.child);
    }
}

pub(super) fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES_WAITING_MAX);
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut line = String::new();
            match output.by_ref().take(LINE_BYTES_MAX).read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if sender.send(line.trim_end().to_string()).is_err() => return,
                Ok(_) => {}
            }
        }
    });
    receiver
}

/// The process itself or the descendant that maps libjvm.so: JDK 8 of a small root runs below `unshare`.
pub fn jvm_below(pid: i32) -> Option<i32> {
    let text = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    if !loaded::hotspot(&maps::parse(&text("maps")).0).is_empty() {
        return Some(pid);
    }
    let children = text(&format!("task/{pid}/children"));
    let children = String::from_utf8_lossy(&children).into_owned();
    children.split_whitespace().filter_map(|child| child.parse().ok()).find_map(jvm_below)
}
