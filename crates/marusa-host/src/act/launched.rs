//! Programs that are started for an answer: with pipes, in a group of their own, and ended when we are gone.

use super::{signals, trial};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Variables of the shell that would give every JVM options which are not the user's question.
pub(super) const OF_THE_SHELL: [&str; 4] =
    ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "OPENJ9_JAVA_OPTIONS"];
/// Most bytes of one line: 100,000 numbers.
const LINE_BYTES_MAX: u64 = 2 << 20;
/// Lines that it may be ahead of us; it waits then, so that a flood of them does not fill our memory.
const LINES_WAITING_MAX: usize = 1024;
/// Maximum bytes of stderr that are quoted in an error.
const SAID_BYTES_MAX: usize = 1000;
/// How often it is looked whether it has ended, and whether we are interrupted (where that is blocked: act/signals.rs).
const LOOK: Duration = Duration::from_millis(5);

/// A command without an input.
pub(super) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    trial::ends_with_us(&mut command);
    command
}

/// A command that starts a JVM.
pub(super) fn java(program: &Path) -> Command {
    let mut command = command(program);
    OF_THE_SHELL.iter().for_each(|name| {
        command.env_remove(name);
    });
    command
}

/// Runs it: its status, and the first bytes of its standard output and, where that is piped, standard error. `None`: it had not
/// ended within `limit`, or before a signal to end; then it is ended with all that it started.
pub(super) fn answer(
    command: &mut Command,
    limit: Duration,
    bytes_max: u64,
) -> io::Result<Option<(ExitStatus, String, String)>> {
    let mut child = command.spawn()?;
    let (out, err) = (drained(child.stdout.take(), bytes_max), drained(child.stderr.take(), bytes_max));
    let end = Instant::now() + limit;
    let goes_on = || Instant::now() < end && !signals::pending();
    if let Some((out, err)) = text_of(&out, goes_on).zip(text_of(&err, goes_on)) {
        loop {
            match child.try_wait()? {
                Some(status) => return Ok(Some((status, out, err))),
                None if goes_on() => thread::sleep(LOOK),
                None => break,
            }
        }
    }
    trial::end(&mut child);
    Ok(None)
}

/// What was read of a pipe; `None`: it was not to its end while `goes_on`.
fn text_of(pipe: &Receiver<String>, goes_on: impl Fn() -> bool) -> Option<String> {
    loop {
        match pipe.recv_timeout(LOOK) {
            Ok(text) => return Some(text),
            Err(RecvTimeoutError::Timeout) if goes_on() => {}
            Err(_) => return None,
        }
    }
}

/// What a pipe gives until its end, at most `bytes_max`; the rest is thrown away so that the writer does not hang.
fn drained(pipe: Option<impl Read + Send + 'static>, bytes_max: u64) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(bytes_max).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// A program that is talked to. It is ended, with all that it started, when this is dropped.
pub(super) struct Launched {
    child: Child,
    input: ChildStdin,
    /// What it prints on standard output.
    pub lines: Receiver<String>,
    errors: File,
}

impl Launched {
    pub fn start(command: &mut Command) -> io::Result<Launched> {
        let errors = tempfile::tempfile()?;
        let mut child = command.stdin(Stdio::piped()).stderr(errors.try_clone()?).spawn()?;
        let Some((input, output)) = child.stdin.take().zip(child.stdout.take()) else {
            trial::end(&mut child);
            return Err(io::Error::other("it has no pipes"));
        };
        Ok(Launched { child, input, lines: lines_of(output), errors })
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn say(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.input, "{line}").and_then(|()| self.input.flush())
    }

    /// What it wrote to standard error so far.
    pub fn complaints(&self) -> String {
        // Where it writes next is not to move.
        let mut bytes = [0; SAID_BYTES_MAX];
        let read = self.errors.read_at(&mut bytes, 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).trim().to_string()
    }

    /// How it ended. Standard output closes a moment before the status is there.
    pub fn status(&mut self) -> String {
        let status = (0..100).find_map(|_| match self.child.try_wait() {
            Ok(None) => {
                thread::sleep(LOOK);
                None
            }
            status => status.ok().flatten(),
        });
        status.map_or("it closed its output".to_string(), |status| status.to_string())
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        trial::end(&mut self.child);
    }
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
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
