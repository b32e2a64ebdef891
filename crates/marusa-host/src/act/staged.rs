//! A program of ours that waits at stages (java/bench/Stages.java): it prints `STAGE name key=number ...` and goes on after a
//! line of input. In between it is read from outside, or watched while it works.
//!
//! It ends with us, whatever we end by: the kernel kills it when the thread that started it is gone (PR_SET_PDEATHSIG), so start
//! it from the thread that lives as long as the experiment. Signals that end us must be blocked (`signals::Blocked`): they are
//! noticed at the next sample, so that what was changed for the experiment is restored.

use super::dialogue::jvm_below;
use super::launched::{self, Launched};
use super::signals;
use rustix::fs::{Mode, OFlags};
use rustix::process::{getpid, getppid};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How often signals are checked, and the program is watched.
pub const LOOK: Duration = Duration::from_millis(50);

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
    program: Launched,
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
        let mut command = launched::java(&launch.program);
        command.args(&launch.arguments).current_dir(&launch.directory);
        command.envs(launch.environment.iter().cloned());
        starts_in(&mut command, launch.group.as_deref()).map_err(failed)?;
        Ok(Staged { program: Launched::start(&mut command).map_err(failed)?, what: what.to_string() })
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
            match self.program.lines.recv_timeout(LOOK) {
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
        self.program.say("").map_err(|_| self.ended())
    }

    /// The JVM: the program itself, or below it where a wrapper starts it.
    pub fn jvm(&self) -> Result<i32, StageError> {
        jvm_below(self.pid()).ok_or_else(|| StageError::NoJvm { what: self.what.clone() })
    }

    /// The pid of the program itself, which may be a wrapper.
    pub fn pid(&self) -> i32 {
        self.program.pid()
    }

    /// For a program that ends by itself: the lines that it printed, and whether it did end. It is ended after `limit`.
    pub fn rest(self, limit: Duration) -> (Vec<String>, bool) {
        let started = Instant::now();
        let mut lines = Vec::new();
        loop {
            match self.program.lines.recv_timeout(LOOK) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => return (lines, true),
                Err(RecvTimeoutError::Timeout) if started.elapsed() > limit || signals::pending() => {
                    return (lines, false);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn ended(&mut self) -> StageError {
        let status = self.program.status();
        let said = self.program.complaints().replace('\n', "; ");
        let said = if said.is_empty() { said } else { format!(": {said}") };
        StageError::Ended { what: self.what.clone(), status, said }
    }
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

/// It does not start when we are gone, and is in its group before it takes any memory.
fn starts_in(command: &mut Command, group: Option<&str>) -> io::Result<()> {
    let members = group.map(|directory| CString::new(format!("{directory}/cgroup.procs"))).transpose()?;
    let us = getpid();
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
