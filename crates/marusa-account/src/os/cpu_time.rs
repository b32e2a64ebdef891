//! CPU time of threads and processes: of a thread in nanoseconds (`schedstat`), of a process in clock ticks of 10 ms, its ended
//! threads included (`stat`). And which threads of the kernel work on pages: khugepaged, kcompactd and kswapd.
//!
//! Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat"; proc_pid_stat(5).

use super::host::{self, text};
use super::process::{Process, stat_fields};
use crate::base::limits::THREADS_MAX;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::time::Duration;

/// A thread of the kernel that works on pages.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema, serde::Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Daemon {
    Khugepaged,
    Kcompactd,
    Kswapd,
}

impl Daemon {
    pub const ALL: [Daemon; 3] = [Daemon::Khugepaged, Daemon::Kcompactd, Daemon::Kswapd];

    pub fn word(self) -> &'static str {
        match self {
            Daemon::Khugepaged => "khugepaged",
            Daemon::Kcompactd => "kcompactd",
            Daemon::Kswapd => "kswapd",
        }
    }

    fn named(name: &str) -> Option<Daemon> {
        Daemon::ALL.into_iter().find(|daemon| {
            let number = name.strip_prefix(daemon.word());
            number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
        })
    }
}

/// Which thread of the kernel is which, by pid. Empty in a pid namespace of a container: they are not in it.
pub fn daemons() -> BTreeMap<i32, Daemon> {
    let of = |pid: i32| {
        let stat = ProcessTime::parse(&text(format!("/proc/{pid}/stat")).ok()?)?;
        // All threads of the kernel but kthreadd itself are its children; a user's program could take the name, not the parent.
        let is_kernels = stat.parent == 2;
        Some((pid, Daemon::named(&stat.name).filter(|_| is_kernels)?))
    };
    host::pids().unwrap_or_default().into_iter().filter_map(of).collect()
}

/// What `/proc/PID/stat` says of the CPU time of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessTime {
    pub name: String,
    pub parent: i32,
    /// User and system.
    pub cpu_ticks: u64,
    pub system_ticks: u64,
    pub start_ticks: u64,
}

impl ProcessTime {
    pub fn read(pid: i32) -> Option<ProcessTime> {
        ProcessTime::parse(&text(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<ProcessTime> {
        let (name, fields) = stat_fields(text)?;
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(ProcessTime {
            name: name.to_string(),
            parent: number(4)? as i32,
            cpu_ticks: number(14)?.saturating_add(number(15)?),
            system_ticks: number(15)?,
            start_ticks: number(22)?,
        })
    }

    /// Ticks of a process and of the children that it waited for, and theirs.
    pub fn parse_with_children(text: &str) -> Option<u64> {
        let (_, fields) = stat_fields(text)?;
        // utime, stime, cutime and cstime.
        let ticks: Vec<u64> = fields.iter().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
        (ticks.len() == 4).then(|| ticks.iter().sum())
    }

    pub fn cpu_ms(&self) -> f64 {
        milliseconds(self.cpu_ticks)
    }

    pub fn user_ms(&self) -> f64 {
        milliseconds(self.cpu_ticks.saturating_sub(self.system_ticks))
    }

    pub fn system_ms(&self) -> f64 {
        milliseconds(self.system_ticks)
    }
}

pub fn milliseconds(ticks: u64) -> f64 {
    ticks as f64 * 1e3 / host::ticks_per_second() as f64
}

/// CPU time so far of each thread of a process, in nanoseconds. Threads that have ended are not in it.
pub fn of_threads(process: &Process) -> BTreeMap<i32, u64> {
    let Ok(entries) = std::fs::read_dir(process.path("task")) else { return BTreeMap::new() };
    let of = |entry: std::fs::DirEntry| {
        let tid: i32 = entry.file_name().to_str()?.parse().ok()?;
        Some((tid, schedstat(&text(entry.path().join("schedstat")).ok()?)?))
    };
    entries.flatten().take(THREADS_MAX).filter_map(of).collect()
}

/// CPU time so far of one thread, in nanoseconds: of a daemon.
pub fn of_thread(tid: i32) -> Option<u64> {
    schedstat(&text(format!("/proc/{tid}/schedstat")).ok()?)
}

/// CPU time of this very process so far, all of its threads.
pub fn own() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread so far.
pub fn of_this_thread() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

fn clock(clock: ClockId) -> Duration {
    clock_gettime(clock).try_into().unwrap_or_default()
}

/// "time on the CPU, time waiting for one, turns": only the first is used. The second is not a stall of memory.
fn schedstat(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything_and_the_daemons_are_the_kernels() {
        let text = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 0 0 0 30 12 0 0 20 0 29 0 8123 3487563776 5";
        let time = ProcessTime::parse(text).expect("a good line");
        assert_eq!((time.name.as_str(), time.parent), ("a) b (c)", 7));
        assert_eq!((time.cpu_ticks, time.system_ticks, time.start_ticks), (42, 12, 8123));
        assert_eq!(Daemon::named("kswapd0"), Some(Daemon::Kswapd));
        assert_eq!(
            (Daemon::named("kcompactd12"), Daemon::named("khugepaged")),
            (Some(Daemon::Kcompactd), Some(Daemon::Khugepaged))
        );
        assert_eq!((Daemon::named("kswapdx"), Daemon::named("xkswapd")), (None, None));
    }

    #[test]
    fn the_first_number_is_the_time_on_the_cpu() {
        assert_eq!(schedstat("1234567 99 3\n"), Some(1_234_567));
        assert_eq!(schedstat(""), None);
        let me = Process::open(std::process::id() as i32).expect("myself");
        let threads = of_threads(&me);
        assert!(threads.contains_key(&me.pid), "{threads:?}");
        let mine = ProcessTime::read(me.pid).expect("my stat");
        assert_eq!(mine.start_ticks, me.start_ticks);
        assert!(own() > Duration::ZERO);
    }
}
