//! All that a program started: found by parents, by the process group, and by a word in the environment, so that a daemon that
//! left its parent and its group is found too.

use super::{How, MARK};
use crate::os::busy;
use crate::os::cpu_time::ProcessTime;
use crate::os::host;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Most bytes of an environment that are searched for the word.
const ENVIRONMENT_BYTES_MAX: u64 = 1 << 20;
/// A process that cannot be ended within this is in the hands of the kernel (state D).
const KILL_MAX: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
/// How often, and how far apart, a child is looked at that seems to be in an execve.
const EXEC_LOOKS_MAX: usize = 20;
const EXEC_PAUSE: Duration = Duration::from_millis(1);

/// A process that outlived the program.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct Left {
    pub pid: i32,
    pub name: String,
    /// It could not be ended.
    pub lives: bool,
}

/// What wait4 says.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, schemars::JsonSchema, serde::Serialize, serde::Deserialize,
)]
pub struct Usage {
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// The peak of the largest single process, without pages of hugetlb.
    pub peak_resident_bytes: u64,
}

impl Usage {
    pub fn add(&mut self, other: &Usage) {
        self.user_seconds += other.user_seconds;
        self.system_seconds += other.system_seconds;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.peak_resident_bytes = self.peak_resident_bytes.max(other.peak_resident_bytes);
    }
}

/// Waits for a child of ours; `None`: it is none, or has not ended and `block` is false.
pub fn wait(pid: i32, block: bool) -> Option<(How, Usage)> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is one to write to.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let options = if block { 0 } else { libc::WNOHANG };
    let waited = loop {
        // SAFETY: both outlive the call.
        let waited = unsafe { libc::wait4(pid, &mut status, options, &mut usage) };
        let interrupted = waited < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        if !interrupted {
            break waited;
        }
    };
    if waited != pid {
        return None;
    }
    let how = match libc::WIFEXITED(status) {
        true => How::Exit(libc::WEXITSTATUS(status)),
        false => How::Signal(libc::WTERMSIG(status)),
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    let usage = Usage {
        user_seconds: seconds(usage.ru_utime),
        system_seconds: seconds(usage.ru_stime),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        // In kilobytes, getrusage(2).
        peak_resident_bytes: count(usage.ru_maxrss) << 10,
    };
    Some((how, usage))
}

/// Empty in the middle of an execve, when the new memory has none yet (fs/proc/base.c, `environ_open`), and of a zombie.
fn environment(pid: i32) -> Option<Vec<u8>> {
    host::read_start(format!("/proc/{pid}/environ"), ENVIRONMENT_BYTES_MAX).ok()
}

/// The descendants of one program.
pub struct Family {
    root: i32,
    mark: String,
    /// By pid: when it started, and its name. The ones that live.
    members: BTreeMap<i32, ProcessTime>,
    /// All that were ever seen, as pid and start.
    seen: BTreeSet<(i32, u64)>,
    /// The usage of orphans that we waited for.
    pub usage: Usage,
}

impl Family {
    pub fn new(root: i32, mark: String) -> Family {
        let (members, seen, usage) = (BTreeMap::new(), BTreeSet::new(), Usage::default());
        Family { root, mark, members, seen, usage }
    }

    /// The ones that live, the program first.
    pub fn pids(&self) -> Vec<i32> {
        std::iter::once(self.root).chain(self.members.keys().copied()).collect()
    }

    pub fn seen(&self) -> usize {
        self.seen.len()
    }

    /// Who lives now; orphans that have ended are waited for.
    pub fn look(&mut self) {
        let all = busy::by_process();
        let mut found = BTreeSet::from([self.root]);
        found.extend(all.iter().filter(|(pid, one)| self.is_orphan(**pid, one)).map(|(pid, _)| *pid));
        // A child may have a smaller number than its parent, where numbers start anew.
        loop {
            let more: Vec<i32> = (all.iter())
                .filter(|(pid, one)| !found.contains(pid) && found.contains(&one.parent))
                .map(|(pid, _)| *pid)
                .collect();
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        found.remove(&self.root);
        self.members = all.into_iter().filter(|(pid, _)| found.contains(pid)).collect();
        self.seen.extend(self.members.iter().map(|(pid, one)| (*pid, one.start_ticks)));
        self.reap();
    }

    /// A child of ours that the program, or a descendant of it, has left behind.
    fn is_orphan(&self, pid: i32, one: &ProcessTime) -> bool {
        if one.parent != std::process::id() as i32 || pid == self.root {
            return false;
        }
        // Not by `rustix`, whose pids are never 0: the group may be that of another pid namespace.
        // SAFETY: a system call with a number.
        let group = unsafe { libc::getpgid(pid) };
        group == self.root || self.seen.contains(&(pid, one.start_ticks)) || self.is_marked(pid)
    }

    fn is_marked(&self, pid: i32) -> bool {
        let wanted = format!("{MARK}={}", self.mark);
        for _ in 0..EXEC_LOOKS_MAX {
            let Some(bytes) = environment(pid) else { return false };
            if !bytes.is_empty() {
                return bytes.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes());
            }
            std::thread::sleep(EXEC_PAUSE);
        }
        false
    }

    fn reap(&mut self) {
        let me = std::process::id() as i32;
        let orphans: Vec<i32> =
            self.members.iter().filter(|(_, one)| one.parent == me).map(|(pid, _)| *pid).collect();
        for pid in orphans {
            if let Some((_, usage)) = wait(pid, false) {
                self.usage.add(&usage);
                self.members.remove(&pid);
            }
        }
    }

    /// To the group of the program, and to each that left it.
    pub fn signal(&self, signal: Signal) {
        // The program is not waited for, so the group is still its own, and the others were found just now.
        Family::signal_group(self.root, signal);
        for pid in self.members.keys().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Of a child that is not waited for.
    pub fn kill_group(root: i32) {
        Family::signal_group(root, Signal::KILL);
    }

    fn signal_group(root: i32, signal: Signal) {
        if let Some(root) = Pid::from_raw(root) {
            let _ = kill_process_group(root, signal);
        }
    }

    /// After the program has ended: waits a little, then ends who is left, and says who that was.
    pub fn end_all(&mut self, linger: Duration) -> Vec<Left> {
        let started = Instant::now();
        self.look();
        while !self.members.is_empty() && started.elapsed() < linger {
            std::thread::sleep(PAUSE);
            self.look();
        }
        let mut left: Vec<Left> = Vec::new();
        let deadline = Instant::now() + KILL_MAX;
        while !self.members.is_empty() && Instant::now() < deadline {
            for (pid, one) in &self.members {
                if !left.iter().any(|one| one.pid == *pid) {
                    left.push(Left { pid: *pid, name: one.name.clone(), lives: false });
                }
            }
            self.signal(Signal::KILL);
            std::thread::sleep(PAUSE);
            self.look();
        }
        left.iter_mut().for_each(|one| one.lives = self.members.contains_key(&one.pid));
        left
    }
}
