//! A descriptor of a process (pidfd, Linux 5.3): it never comes to mean another process that was given the pid since, so it is what
//! a process is advised, signalled and waited for by, and what tells how it ended.

use super::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// Of a process that is known by its pid alone, as a child that was not waited for yet.
pub fn of_pid(pid: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Of exactly this process: it is the same after its pid was opened. `Err`: ESRCH where it is gone.
pub fn of(process: &Process) -> io::Result<OwnedFd> {
    let pidfd = of_pid(process.pid)?;
    if process.is_same() { Ok(pidfd) } else { Err(rustix::io::Errno::SRCH.into()) }
}

/// Whether the process ended within this time; `None`: waits until it has.
pub fn ended_within(pidfd: &OwnedFd, time: Option<Duration>) -> bool {
    let mut watched = [PollFd::new(pidfd, PollFlags::IN)];
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    poll(&mut watched, time.as_ref()) == Ok(1)
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// A signal of this number ended it.
    Signal(i32),
}

impl Exit {
    /// "exited with status 1", "ended by signal 6 (SIGABRT)".
    pub fn in_words(self) -> String {
        match self {
            Exit::Status(status) => format!("exited with status {status}"),
            Exit::Signal(signal) => match NAMES.iter().find(|(number, _)| *number == signal) {
                Some((_, name)) => format!("ended by signal {signal} ({name})"),
                None => format!("ended by signal {signal}"),
            },
        }
    }

    /// A fault that HotSpot, too, ends with, after it has written hs_err_pid<PID>.log.
    pub fn is_crash(self) -> bool {
        let faults = [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
        matches!(self, Exit::Signal(signal) if faults.contains(&signal))
    }

    /// Of the words of wait(2).
    fn of(code: i32) -> Exit {
        match code & 0x7f {
            0 => Exit::Status((code >> 8) & 0xff),
            signal => Exit::Signal(signal),
        }
    }
}

/// The same on x86-64 and AArch64.
const NAMES: [(i32, &str); 10] = [
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGTERM, "SIGTERM"),
];

/// include/uapi/linux/pidfd.h, Linux 6.15: `struct pidfd_info` of its first version.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    pids_and_users: [u32; 11],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// _IOWR(0xFF, 11, struct pidfd_info).
const PIDFD_GET_INFO: libc::c_ulong = 3 << 30 | (size_of::<Info>() as libc::c_ulong) << 16 | 0xff << 8 | 11;

/// How it ended, of a process whose parent has collected it. `None`: not yet, or a kernel before 6.15.
pub fn exit(pidfd: &OwnedFd) -> Option<Exit> {
    let mut info = Info { mask: PIDFD_INFO_EXIT, ..Info::default() };
    // SAFETY: the descriptor is open, and `info` has the size that is a part of the request and outlives the call.
    let failed = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, &raw mut info) } != 0;
    (!failed && info.mask & PIDFD_INFO_EXIT != 0).then(|| Exit::of(info.exit_code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn how_a_process_ended_is_known_once_it_was_waited_for() {
        for (script, expected) in
            [("exit 3", Exit::Status(3)), ("kill -TERM $$", Exit::Signal(libc::SIGTERM))]
        {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("read word; {script}")]).stdin(std::process::Stdio::piped());
            let mut child = shell.spawn().expect("sh runs");
            let pidfd = of_pid(child.id() as i32).expect("its pid");
            assert!(!ended_within(&pidfd, Some(Duration::ZERO)));
            assert_eq!(exit(&pidfd), None, "it runs");
            drop(child.stdin.take());
            assert!(ended_within(&pidfd, None));
            child.wait().expect("ours");
            // Linux before 6.15 does not say.
            assert!([None, Some(expected)].contains(&exit(&pidfd)), "{script}: {:?}", exit(&pidfd));
        }
    }
}
