//! Ends a command that does not answer a signal to end. A command that blocks such signals answers between two rounds, and
//! long readings stop for them (`os::budget`); but a thread may wait in the kernel where nothing wakes it, or work through what
//! was read. For commands that only read and that leave files whole at any moment, it is better to be ended then. A command
//! that changes the host has to restore it and is never ended so.

use super::signals::{Blocked, pending};
use crate::os::cpu_time;
use crate::os::process::Stat;
use std::fs::DirEntry;
use std::time::{Duration, Instant};

/// An answer takes no longer than this: of our own CPU time, or of waiting in the kernel.
const ANSWER: Duration = Duration::from_millis(850);
/// However busy the machine is.
const ANSWER_MOST: Duration = Duration::from_secs(10);
const TURN: Duration = Duration::from_millis(25);

/// Watches from a thread of its own, until the process ends. Signals to end must be blocked in the caller.
pub fn start() {
    let _blocked = Blocked::start();
    // Without it, all that is lost is the guarantee.
    let _ = std::thread::Builder::new().name("watchdog".to_string()).spawn(|| {
        super::signals::until_pending();
        if is_answered() {
            // Whoever asks a second time does not want to wait for the end of the work.
            super::signals::until_pending();
        }
        super::signals::exit_as_ended();
    });
}

/// Whether a thread takes the pending signal in time. On a machine so busy that we do not run, time does not count.
fn is_answered() -> bool {
    let (started, cpu) = (Instant::now(), cpu_time::own());
    let mut waited = Duration::ZERO;
    while pending() {
        std::thread::sleep(TURN);
        waited = if is_waiting() { waited + TURN } else { Duration::ZERO };
        let worked = cpu_time::own().saturating_sub(cpu);
        if worked >= ANSWER || waited >= ANSWER || started.elapsed() >= ANSWER_MOST {
            return false;
        }
    }
    true
}

/// Whether none of our threads runs, or would if there were a CPU, but this one.
fn is_waiting() -> bool {
    let me = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let others = tasks.filter(|task| Some(task.file_name().as_os_str()) != me.file_name());
    let state = |task: DirEntry| Stat::parse(&std::fs::read_to_string(task.path().join("stat")).ok()?);
    !others.filter_map(state).any(|stat| stat.state == 'R')
}
