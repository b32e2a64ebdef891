//! A program is run once, and what it took is known exactly: wall time, CPU time, page faults and the largest resident set, its
//! ended children included. All experiments start their programs here.
//!
//! The program runs in a process group of its own, below us as the reaper of orphans (PR_SET_CHILD_SUBREAPER), with a word of ours
//! in its environment: so whatever it starts is found again, even a daemon that left its group. When the program ends, or has to
//! end, all of that is ended too, and what outlived it is reported. Two clocks must not disturb the figures: the end is noted by
//! a thread that does nothing but wait for it, and CPU time and faults are the kernel's own sums (`wait4`), which count a process
//! only when its parent has waited for it. What never ended before it was killed is in them too, since we wait for it.
//!
//! `ru_maxrss` of wait4(2) is that of the largest single process, starts at the resident set of whoever forked it (fs/exec.c,
//! `exec_mmap`: some 20 MB of ours), and leaves out pages of hugetlb.

mod family;

use super::signals::{Waiting, Woken};
use crate::os::signal_set::SignalSet;
use crate::os::{file_mode, pidfd, place};
use family::{Family, Usage};
use rustix::process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use family::Left;

/// How long a program may take to end when it is asked to (SIGTERM): a JVM runs its shutdown hooks and closes its logs. And when
/// marusa was interrupted: its figures are thrown away, and whoever pressed Ctrl-C waits.
const GRACE: Duration = Duration::from_secs(5);
const GRACE_AFTER_SIGNAL: Duration = Duration::from_millis(400);
/// How long what it started may live on after it, as the rest of a pipe does.
const LINGER: Duration = Duration::from_millis(250);
/// Most bytes that it may print before it is ended.
const OUTPUT_BYTES_MAX: u64 = 1 << 30;
/// The word in the environment by which its descendants are known.
pub const MARK: &str = "MARUSA_TRIAL";

/// What is started, and where its output goes.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program first; it is looked up in PATH.
    pub command: Vec<String>,
    /// Set next to what we have ourselves.
    pub environment: Vec<(String, String)>,
    pub removed: Vec<String>,
    pub directory: Option<PathBuf>,
    /// Standard input; nothing where it is not given.
    pub input: Option<PathBuf>,
    pub output: PathBuf,
    /// The same file as `output`: both go there.
    pub errors: PathBuf,
    pub limit: Duration,
}

impl Start {
    pub fn new(command: Vec<String>, output: PathBuf, errors: PathBuf, limit: Duration) -> Start {
        let (environment, removed, directory, input) = (Vec::new(), Vec::new(), None, None);
        Start { command, environment, removed, directory, input, output, errors, limit }
    }
}

/// Why it could not be run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("there is no command to run")]
    NoCommand,
    #[error("{program} is not there: {error}; give its path, or install it{}", hint(program))]
    Missing { program: String, error: io::Error },
    #[error("{program} cannot be started: {error}")]
    NotStarted { program: String, error: io::Error },
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("the program cannot be waited for: {0}")]
    Wait(io::Error),
}

fn hint(program: &str) -> &'static str {
    let is_java = program.rsplit('/').next() == Some("java");
    if is_java { " (a JDK: Debian's openjdk-21-jdk-headless, or https://adoptium.net)" } else { "" }
}

impl TrialError {
    /// No room: what was saved before is whole.
    pub fn is_full(&self) -> bool {
        match self {
            TrialError::File { error, .. } => error.kind() == io::ErrorKind::StorageFull,
            _ => false,
        }
    }
}

/// Why a wait came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The time that was asked for.
    Time,
    Ended,
    /// It ran for as long as it may.
    Limit,
    /// It printed more than is kept.
    Output,
    /// Ctrl-C, or another signal to end us.
    Signal,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Exit(i32),
    Signal(i32),
}

/// Why it had to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    ByItself,
    Limit,
    Output,
    /// Marusa was interrupted.
    Signal,
    /// The experiment had what it wanted.
    Asked,
}

/// What a run took.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct Ended {
    pub stop: Stop,
    pub how: How,
    pub wall_seconds: f64,
    #[serde(flatten)]
    pub usage: Usage,
    /// Processes next to the first that were seen at the samples.
    pub forked: usize,
    /// Who outlived the program and was ended by us.
    pub left: Vec<Left>,
}

impl Ended {
    /// It ended by itself and says that all went well.
    pub fn is_good(&self) -> bool {
        self.stop == Stop::ByItself && self.how == How::Exit(0)
    }

    /// "exit status 3", "ended by SIGKILL", "ended after its time limit".
    pub fn words(&self) -> String {
        match (self.stop, self.how) {
            (Stop::Limit, _) => "it ran longer than its time limit and was ended".to_string(),
            (Stop::Output, _) => format!("it printed more than {OUTPUT_BYTES_MAX} bytes and was ended"),
            (Stop::Signal, _) => "it was ended because marusa was interrupted".to_string(),
            (Stop::Asked, _) => "it was ended when all was measured".to_string(),
            (Stop::ByItself, How::Exit(status)) => format!("it ended with exit status {status}"),
            (Stop::ByItself, How::Signal(number)) => format!("it was ended by signal {number}"),
        }
    }
}

/// A program on its way. Dropped, it is ended with all that it started.
pub struct Running {
    pid: i32,
    waiting: Waiting,
    started: Instant,
    limit: Duration,
    outputs: Vec<PathBuf>,
    watcher: Option<JoinHandle<Instant>>,
    family: Family,
    stop: Stop,
    how: Option<How>,
    _reaper: Reaper,
}

/// Starts it. The thread that calls must outlive the program: the kernel ends the program when that thread ends.
pub fn start(wanted: &Start) -> Result<Running, TrialError> {
    let Some((program, arguments)) = wanted.command.split_first() else { return Err(TrialError::NoCommand) };
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut command = Command::new(program);
    command.args(arguments).process_group(0).env(MARK, &mark);
    command.envs(wanted.environment.iter().map(|(name, value)| (name, value)));
    wanted.removed.iter().for_each(|name| {
        command.env_remove(name);
    });
    if let Some(directory) = &wanted.directory {
        command.current_dir(directory);
    }
    let input = match &wanted.input {
        Some(path) => Stdio::from(opened(path, File::open(path))?),
        None => Stdio::null(),
    };
    let output = opened(&wanted.output, place::afresh(&wanted.output, file_mode::wanted()))?;
    let errors = match wanted.errors == wanted.output {
        true => opened(&wanted.output, output.try_clone())?,
        false => opened(&wanted.errors, place::afresh(&wanted.errors, file_mode::wanted()))?,
    };
    command.stdin(input).stdout(output).stderr(errors);
    ends_with_us(&mut command);
    let reaper = Reaper::new();
    let started = Instant::now();
    let child = command.spawn().map_err(|error| not_started(program, error))?;
    let pid = child.id() as i32;
    let family = Family::new(pid, mark);
    let watch = || Ok::<_, io::Error>((Waiting::on_child(pid)?, watcher(pid)?));
    let (waiting, watcher) = match watch() {
        Ok(both) => both,
        Err(error) => {
            Family::kill_group(pid);
            family::wait(pid, true);
            return Err(TrialError::Wait(error));
        }
    };
    let mut outputs = vec![wanted.output.clone(), wanted.errors.clone()];
    outputs.dedup();
    let (watcher, limit, stop) = (Some(watcher), wanted.limit, Stop::ByItself);
    Ok(Running { pid, waiting, started, limit, outputs, watcher, family, stop, how: None, _reaper: reaper })
}

fn opened(path: &std::path::Path, file: io::Result<File>) -> Result<File, TrialError> {
    file.map_err(|error| TrialError::File { path: path.to_path_buf(), error })
}

fn not_started(program: &str, error: io::Error) -> TrialError {
    let program = program.to_string();
    match error.kind() {
        io::ErrorKind::NotFound => TrialError::Missing { program, error },
        _ => TrialError::NotStarted { program, error },
    }
}

/// Has the program end with us, and get the signals that are blocked here (act/signals.rs).
pub(super) fn ends_with_us(command: &mut Command) {
    let in_the_child = || {
        SignalSet::of([]).block_only();
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    };
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe { command.pre_exec(in_the_child) };
}

/// Ends a child that is not waited for yet, and all that it started: a JVM below a script has its memory, and CPU time that is
/// ours, until somebody has waited for it.
pub(super) fn end(child: &mut Child) {
    let (_reaper, pid) = (Reaper::new(), child.id() as i32);
    let mut family = Family::new(pid, String::new());
    family.look();
    Family::kill_group(pid);
    family.end_all(Duration::ZERO);
    let _ = child.wait();
}

/// Notes when the program ends, to the microsecond.
fn watcher(pid: i32) -> io::Result<JoinHandle<Instant>> {
    let ended = pidfd::of_pid(pid)?;
    std::thread::Builder::new().name("trial-end".to_string()).spawn(move || {
        while !pidfd::ended_within(&ended, None) {}
        Instant::now()
    })
}

/// While one of these lives, orphans of our programs come to us instead of to process 1.
struct Reaper;

static REAPERS: AtomicUsize = AtomicUsize::new(0);

impl Reaper {
    fn new() -> Reaper {
        if REAPERS.fetch_add(1, Ordering::SeqCst) == 0 {
            let _ = set_child_subreaper(Some(getpid()));
        }
        Reaper
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if REAPERS.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _ = set_child_subreaper(None);
        }
    }
}

impl Running {
    pub fn pid(&self) -> i32 {
        self.pid
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The program and all that it started and that lives now: the program first.
    pub fn pids(&mut self) -> Vec<i32> {
        self.family.look();
        self.family.pids()
    }

    /// Until a moment, or until something happens.
    pub fn until(&mut self, deadline: Instant) -> Turn {
        let end = self.started + self.limit;
        let turn = match self.waiting.until(deadline.min(end)) {
            Woken::Time if deadline >= end => Turn::Limit,
            Woken::Time => Turn::Time,
            Woken::Ended => Turn::Ended,
            Woken::Signal => Turn::Signal,
        };
        self.family.look();
        let printed = |path: &PathBuf| std::fs::metadata(path).map_or(0, |facts| facts.len());
        let turn = match turn {
            Turn::Time if self.outputs.iter().any(|path| printed(path) > OUTPUT_BYTES_MAX) => Turn::Output,
            turn => turn,
        };
        self.stop = match turn {
            Turn::Limit => Stop::Limit,
            Turn::Output => Stop::Output,
            Turn::Signal => Stop::Signal,
            Turn::Time | Turn::Ended => return turn,
        };
        turn
    }

    /// The signal to end us was taken elsewhere.
    pub fn interrupted(&mut self) {
        self.stop = Stop::Signal;
    }

    /// Ends it where it has not ended, with all that it started.
    pub fn end(mut self) -> Ended {
        if self.stop == Stop::ByItself && !self.waiting.has_ended() {
            self.stop = Stop::Asked;
        }
        if self.stop != Stop::ByItself {
            self.ask_to_end();
        }
        self.finish()
    }

    /// SIGTERM to all, then a while; what is left is ended by `finish`.
    fn ask_to_end(&mut self) {
        self.family.look();
        self.family.signal(Signal::TERM);
        let deadline = Instant::now() + if self.stop == Stop::Signal { GRACE_AFTER_SIGNAL } else { GRACE };
        while !self.waiting.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !self.waiting.has_ended() {
            Family::kill_group(self.pid);
        }
    }

    fn finish(&mut self) -> Ended {
        let at_the_end = self.watcher.take().and_then(|watcher| watcher.join().ok());
        let wall = at_the_end.unwrap_or_else(Instant::now).saturating_duration_since(self.started);
        // The program is not waited for yet, so its pid is its own and that of its group.
        let left = self.family.end_all(if self.stop == Stop::ByItself { LINGER } else { Duration::ZERO });
        let (how, own) =
            family::wait(self.pid, true).unwrap_or((How::Signal(libc::SIGKILL), Usage::default()));
        self.how = Some(how);
        let mut usage = own;
        usage.add(&self.family.usage);
        Ended {
            stop: self.stop,
            how,
            wall_seconds: wall.as_secs_f64(),
            usage,
            forked: self.family.seen(),
            left,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.how.is_none() {
            Family::kill_group(self.pid);
            self.stop = Stop::Asked;
            self.finish();
        }
    }
}

#[cfg(test)]
#[path = "trial/tests.rs"]
mod tests;
