//! A program of ours that waits at stages (java/bench/Stages.java): it prints `STAGE name key=number ...` and goes on after a
//! line of input. In between it is read from outside, or watched while it works.
//!
//! It ends with us, whatever we end by: the kernel kills it when the thread that started it is gone (PR_SET_PDEATHSIG), so start
//! it from the thread that lives as long as the experiment. Signals that end us must be blocked (`signals::Blocked`): they are
//! noticed at the next sample, so that what was changed for the experiment is restored.

use super::ask_jdk::OF_THE_SHELL;
use super::dialogue::{jvm_below, lines_of};
use super::{signals, trial};
use rustix::fs::{Mode, OFlags};
use rustix::process::{getpid, getppid};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often signals are checked, and the program is watched.
pub const LOOK: Duration = Duration::from_millis(50);
/// Maximum bytes of stderr that are quoted in an error.
const SAID_BYTES_MAX: u64 = 1000;

/// What is started, and how.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Next to ours, without what changes every JVM's options.
    pub environment: Vec<(String, String)>,
    pub directory: PathBuf,
    /// A cgroup that it is put into before it starts: the directory of it.
    pub group: Option<String>,
}

/// A program that waits.
pub struct Staged {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    errors: File,
    what: String,
}

/// Where it is, and what it measured itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    pub name: String,
    pub figures: BTreeMap<String, u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error("{what} does not start: {error}")]
    NotStarted { what: String, error: io::Error },
    #[error("{what} ended: {status}{said}")]
    Ended { what: String, status: String, said: String },
    #[error("{what} was not at '{wanted}' after {} s and was ended", limit.as_secs())]
    TooSlow { what: String, wanted: String, limit: Duration },
    #[error("{what} says '{said}' where it should be at '{wanted}'")]
    Unexpected { what: String, wanted: String, said: String },
    #[error("{what} is not a JVM")]
    NoJvm { what: String },
    #[error("stopped by a signal")]
    Stopped,
}

impl Staged {
    pub fn start(what: &str, launch: &Launch) -> Result<Staged, StageError> {
        let failed = |error: io::Error| StageError::NotStarted { what: what.to_string(), error };
        let errors = tempfile::tempfile().map_err(failed)?;
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments).current_dir(&launch.directory).process_group(0);
        for name in OF_THE_SHELL {
            command.env_remove(name);
        }
        command.envs(launch.environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(errors.try_clone().map_err(failed)?);
        ends_with_us(&mut command, launch.group.as_deref()).map_err(failed)?;
        let mut child = command.spawn().map_err(failed)?;
        let Some((input, output)) = child.stdin.take().zip(child.stdout.take()) else {
            trial::end(&mut child);
            return Err(failed(io::Error::other("it has no pipes")));
        };
        Ok(Staged { child, input, lines: lines_of(output), errors, what: what.to_string() })
    }

    /// Waits until it is at a stage; `look` is called again and again in the meantime.
    pub fn reach(
        &mut self,
        wanted: &str,
        limit: Duration,
        mut look: impl FnMut(),
    ) -> Result<Stage, StageError> {
        let started = Instant::now();
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => match stage(&line) {
                    Some(stage) if stage.name == wanted => return Ok(stage),
                    // What a JVM says on standard output (a warning of JDK 8) is not a stage.
                    None => {}
                    Some(_) => {
                        let (what, wanted) = (self.what.clone(), wanted.to_string());
                        return Err(StageError::Unexpected { what, wanted, said: line });
                    }
                },
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => look(),
            }
            if signals::pending() {
                return Err(StageError::Stopped);
            }
            if started.elapsed() > limit {
                let (what, wanted) = (self.what.clone(), wanted.to_string());
                return Err(StageError::TooSlow { what, wanted, limit });
            }
        }
    }

    /// Lets it go on.
    pub fn go_on(&mut self) -> Result<(), StageError> {
        writeln!(self.input).and_then(|()| self.input.flush()).map_err(|_| self.ended())
    }

    /// The JVM: the program itself, or below it where a wrapper starts it.
    pub fn jvm(&self) -> Result<i32, StageError> {
        jvm_below(self.pid()).ok_or_else(|| StageError::NoJvm { what: self.what.clone() })
    }

    /// The pid of the program itself, which may be a wrapper.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// For a program that ends by itself: the lines that it printed, and whether it did end. It is ended after `limit`.
    pub fn rest(mut self, limit: Duration) -> (Vec<String>, bool) {
        let started = Instant::now();
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => return (lines, true),
                Err(RecvTimeoutError::Timeout) if started.elapsed() > limit || signals::pending() => {
                    trial::end(&mut self.child);
                    return (lines, false);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn ended(&mut self) -> StageError {
        // Standard output closes a moment before the status is there.
        let status = (0..100).find_map(|_| match self.child.try_wait() {
            Ok(Some(status)) => Some(status.to_string()),
            _ => {
                std::thread::sleep(Duration::from_millis(5));
                None
            }
        });
        let status = status.unwrap_or_else(|| "it closed its output".to_string());
        StageError::Ended { what: self.what.clone(), status, said: said(&mut self.errors) }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        trial::end(&mut self.child);
    }
}

fn said(errors: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = errors.rewind().and_then(|()| errors.take(SAID_BYTES_MAX).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes).trim().replace('\n', "; ");
    if read.is_err() || text.is_empty() { String::new() } else { format!(": {text}") }
}

/// "STAGE name key=number ..."
fn stage(line: &str) -> Option<Stage> {
    let mut words = line.strip_prefix("STAGE ")?.split_whitespace();
    let name = words.next()?.to_string();
    let figure = |word: &str| {
        let (key, number) = word.split_once('=')?;
        Some((key.to_string(), number.parse().ok()?))
    };
    Some(Stage { name, figures: words.filter_map(figure).collect() })
}

/// It is killed when we are gone, gets our signals only by name, and is in its group before it takes any memory.
fn ends_with_us(command: &mut Command, group: Option<&str>) -> io::Result<()> {
    let members = group.map(|directory| CString::new(format!("{directory}/cgroup.procs"))).transpose()?;
    let us = getpid();
    trial::ends_with_us(command);
    let enter = move || {
        if getppid() != Some(us) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let Some(members) = &members else { return Ok(()) };
        let file = rustix::fs::open(members.as_c_str(), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        // "0" is the process that writes it.
        rustix::io::write(file, b"0")?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are made, on memory that was made before.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// A launch of a class of `act::programs`.
pub fn java(java: &Path, options: &[String], class: &str, arguments: &[String], directory: &Path) -> Launch {
    let classes = [OsString::from("-cp"), directory.into(), class.into()];
    let options = options.iter().map(OsString::from);
    Launch {
        program: java.to_path_buf(),
        arguments: options.chain(classes).chain(arguments.iter().map(OsString::from)).collect(),
        directory: directory.to_path_buf(),
        ..Launch::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Launch {
        Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            directory: "/".into(),
            ..Launch::default()
        }
    }

    #[test]
    fn it_waits_at_each_stage_and_its_figures_are_read() {
        let script =
            "echo STAGE one a=5 b=x c=7; read line; echo noise; echo STAGE two; read line; echo rest";
        let mut program = Staged::start("a shell", &shell(script)).expect("started");
        let first = program.reach("one", LIMIT, || {}).expect("there");
        assert_eq!(first.figures, BTreeMap::from([("a".to_string(), 5), ("c".to_string(), 7)]));
        program.go_on().expect("it goes on");
        program.reach("two", LIMIT, || {}).expect("there");
        assert!(matches!(program.jvm(), Err(StageError::NoJvm { .. })));
        program.go_on().expect("it goes on");
        assert_eq!(program.rest(LIMIT), (vec!["rest".to_string()], true));
    }

    #[test]
    fn one_that_ends_or_hangs_or_says_something_else_is_an_error_that_says_so() {
        let reach = |script: &str, limit| {
            Staged::start("a shell", &shell(script)).expect("started").reach("one", limit, || {})
        };
        let ended = reach("echo bad luck >&2; exit 3", LIMIT).expect_err("it ended").to_string();
        assert!(ended.contains("exit status: 3") && ended.contains("bad luck"), "{ended}");
        let slow = reach("sleep 60", Duration::from_millis(100)).expect_err("it hangs");
        assert!(matches!(slow, StageError::TooSlow { .. }), "{slow}");
        let other = reach("echo STAGE other; read line", LIMIT).expect_err("another stage");
        assert!(matches!(other, StageError::Unexpected { .. }), "{other}");
        let missing = Launch { program: "/no/such".into(), ..shell("") };
        assert!(matches!(Staged::start("it", &missing), Err(StageError::NotStarted { .. })));
        let group = Launch { group: Some("/no/such/group".into()), ..shell("echo STAGE one") };
        assert!(matches!(Staged::start("it", &group), Err(StageError::NotStarted { .. })));
    }
}
