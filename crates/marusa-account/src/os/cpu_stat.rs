//! What a cgroup's CPU controller says of the past: how often its processes were stopped since their quota was used up.
//!
//! `cpu.stat`: Documentation/scheduler/sched-bwc.rst, "Statistics" (version 1, nanoseconds) and admin-guide/cgroup-v2.rst, "CPU
//! Interface Files" (version 2, microseconds). Throttled time is summed over CPUs, so it may grow faster than the clock.

use super::cgroup::directories;
use super::cpus::quota_in;
use super::host::{field, number, text};
use super::process::{Process, gap};
use crate::base::Known;
use std::path::Path;

/// Since the group was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// The file.
    pub path: String,
    /// Periods in which something of the group ran.
    pub periods: u64,
    /// The number of these at whose end it had been stopped.
    pub throttled: u64,
    pub throttled_us: u64,
}

impl CpuStat {
    /// The same group, later.
    pub fn again(&self) -> Option<CpuStat> {
        parse(&text(&self.path).ok()?, &self.path)
    }

    pub fn since(&self, first: &CpuStat) -> CpuStat {
        CpuStat {
            path: self.path.clone(),
            periods: self.periods.saturating_sub(first.periods),
            throttled: self.throttled.saturating_sub(first.throttled),
            throttled_us: self.throttled_us.saturating_sub(first.throttled_us),
        }
    }
}

/// The group that stopped it longest, of all with a quota from the process's to the root; `None`: no quota.
pub fn of(process: &Process) -> Known<Option<CpuStat>> {
    let groups = process.text("cgroup").map_err(|error| gap("/proc/PID/cgroup", &error))?;
    let directories = groups.lines().flat_map(|line| directories(line, "cpu"));
    let limited = directories.filter(|directory| quota_in(directory).is_some());
    Ok(limited.filter_map(|directory| read(&directory)).max_by_key(|stat| stat.throttled_us))
}

/// `cpu.shares` of the process's own group, where version 1 has it (1024: as set at birth).
pub fn shares(process: &Process) -> Option<u64> {
    let groups = process.text("cgroup").ok()?;
    let own = groups.lines().filter_map(|line| directories(line, "cpu").into_iter().next());
    own.filter_map(|directory| number(directory.join("cpu.shares"))).next()
}

fn read(directory: &Path) -> Option<CpuStat> {
    let path = directory.join("cpu.stat");
    parse(&text(&path).ok()?, &path.to_string_lossy())
}

fn parse(text: &str, path: &str) -> Option<CpuStat> {
    let number = |name: &str| field(text, name)?.parse::<u64>().ok();
    let throttled_us = number("throttled_usec ").or_else(|| Some(number("throttled_time ")? / 1000))?;
    Some(CpuStat {
        path: path.to_string(),
        periods: number("nr_periods ")?,
        throttled: number("nr_throttled ")?,
        throttled_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let first =
            parse("nr_periods 120\nnr_throttled 30\nthrottled_time 4500000\nnr_bursts 0\n", "/a/cpu.stat");
        let first = first.expect("version 1");
        assert_eq!((first.periods, first.throttled, first.throttled_us), (120, 30, 4500));
        let text = "usage_usec 9\nuser_usec 8\nsystem_usec 1\nnr_periods 130\nnr_throttled 35\nthrottled_usec 5500\n";
        let second = parse(text, "/a/cpu.stat").expect("version 2");
        let grown = second.since(&first);
        assert_eq!((grown.periods, grown.throttled, grown.throttled_us), (10, 5, 1000));
        assert_eq!(first.since(&second).periods, 0, "a group that was made anew");
        // The root of version 2 has no bandwidth.
        assert_eq!(parse("usage_usec 9\nuser_usec 8\n", "x"), None);
    }

    #[test]
    fn this_process_is_read() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        assert!(of(&me).is_ok());
        assert!(shares(&me).is_none_or(|shares| shares > 0));
    }
}
