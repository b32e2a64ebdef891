//! How many CPUs a JVM would count in a process: those it may run on, or fewer where its cgroup has a quota.
//!
//! `os::active_processor_count`, src/hotspot/os/linux/os_linux.cpp and cgroupUtil_linux.cpp (JDK 17 to 25): the smaller of the
//! affinity and the quota divided by the period, rounded up. Up to JDK 23 only the innermost group counts; JDK 24 looks at
//! those above it too (JDK-8322420).

use super::cgroup::directories;
use super::host::{field, text};
use super::process::Process;
use crate::base::{Gap, Known, Why};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cpus {
    /// By affinity.
    pub allowed: u32,
    /// The quota of the cgroup: 1.5 CPUs' time.
    pub quota: Option<f64>,
}

impl Cpus {
    pub fn count(&self) -> u32 {
        let quota = self.quota.map_or(u32::MAX, |quota| quota.ceil() as u32);
        self.allowed.min(quota).max(1)
    }
}

/// The CPUs of a process; `above`: groups above its own count too.
pub fn of(process: &Process, above: bool) -> Known<Cpus> {
    let status = process.text("status").map_err(|error| super::process::gap("/proc/PID/status", &error))?;
    let allowed = allowed(&status)
        .ok_or_else(|| Gap::new("the CPUs of the process", Why::NotInThisKernel).hint("give --cpus"))?;
    let groups = process.text("cgroup").unwrap_or_default();
    let quotas = groups.lines().flat_map(|line| {
        let directories = directories(line, "cpu");
        let wanted = if above { directories.len() } else { 1 };
        directories
            .into_iter()
            .take(wanted)
            .filter_map(|directory| quota_in(&directory))
            .collect::<Vec<f64>>()
    });
    Ok(Cpus { allowed, quota: quotas.min_by(f64::total_cmp) })
}

/// "Cpus_allowed:\tff,ffffffff": bits in groups of 32.
fn allowed(status: &str) -> Option<u32> {
    let mask = field(status, "Cpus_allowed:")?;
    mask.chars().filter(|letter| *letter != ',').map(|digit| Some(digit.to_digit(16)?.count_ones())).sum()
}

pub(super) fn quota_in(directory: &Path) -> Option<f64> {
    let read = |name: &str| text(directory.join(name)).ok();
    match read("cpu.max") {
        Some(line) => quota_of(&line),
        None => {
            quota_of(&format!("{} {}", read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?.trim()))
        }
    }
}

/// "150000 100000"; "max 100000" and "-1 100000" are not a quota.
fn quota_of(line: &str) -> Option<f64> {
    let mut words = line.split_ascii_whitespace();
    let (quota, period): (f64, f64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_affinity_and_quota_rounded_up() {
        assert_eq!(allowed("Name:\tx\nCpus_allowed:\tff,0000000f\n"), Some(12));
        assert_eq!(
            (quota_of("150000 100000\n"), quota_of("max 100000"), quota_of("-1 100000")),
            (Some(1.5), None, None)
        );
        assert_eq!(Cpus { allowed: 12, quota: Some(1.5) }.count(), 2);
        assert_eq!(Cpus { allowed: 1, quota: Some(4.0) }.count(), 1);
        assert_eq!(Cpus { allowed: 0, quota: None }.count(), 1);
    }

    #[test]
    fn this_process_has_some() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        assert!(of(&me, true).expect("/proc").count() >= 1);
        assert_eq!(directories("2:cpu,cpuacct:/a", "cpu")[0], Path::new("/sys/fs/cgroup/cpu,cpuacct/a"));
    }
}
