//! What bounds a JVM next to memory: CPU time and its past, files, threads; and how the kernel is set to treat its pages.

use crate::base::{Bytes, Gap};
use crate::os::ceilings::{self, Ceiling};
use crate::os::cpu_stat::{self, CpuStat};
use crate::os::cpus::{self, Cpus};
use crate::os::machine::base_page;
use crate::os::process::{Process, gap};

#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// Figures of the cgroup whose quota stopped it most, when watching began and when it ended; `None`: no quota.
    pub cpu_stat_first: Option<CpuStat>,
    pub cpu_stat: Option<CpuStat>,
    /// Version 1; `None` where the controller is not mounted so.
    pub cpu_shares: Option<u64>,
    /// CPUs by the process's own group only, and by all groups above it as well.
    pub inner_cpus: Option<Cpus>,
    pub outer_cpus: Option<Cpus>,
    /// Whether its memory is limited through version 2 of the cgroups.
    pub is_unified: bool,
    /// Whether the CPU controller is one of version 1, whose files have other names.
    pub has_cpu_of_version_1: bool,
    pub files: Option<Ceiling>,
    pub threads: Vec<Ceiling>,
    /// Bytes of its pages that ksmd has merged with others (`/proc/PID/ksm_merging_pages`, Linux 5.19).
    pub ksm_merged_bytes: Option<Bytes>,
}

impl Bounds {
    /// `threads` and `uid` of the process.
    pub fn read(process: &Process, threads: u64, uid: u32, gaps: &mut Vec<Gap>) -> Bounds {
        let cpu_stat = cpu_stat::of(process).unwrap_or_else(|gap| {
            gaps.push(gap);
            None
        });
        let files = ceilings::files(process);
        gaps.extend(files.as_ref().err().cloned());
        let groups = process.text("cgroup").unwrap_or_else(|error| {
            gaps.push(gap("/proc/PID/cgroup", &error));
            String::new()
        });
        let merged = process.text("ksm_merging_pages").ok().and_then(|text| text.trim().parse::<u64>().ok());
        Bounds {
            cpu_stat_first: None,
            cpu_stat,
            cpu_shares: cpu_stat::shares(process),
            inner_cpus: cpus::of(process, false).ok(),
            outer_cpus: cpus::of(process, true).ok(),
            is_unified: is_unified(&groups),
            has_cpu_of_version_1: has_controller(&groups, "cpu"),
            files: files.ok(),
            threads: ceilings::threads(process, threads, uid),
            ksm_merged_bytes: merged.map(|pages| pages.saturating_mul(base_page())),
        }
    }

    /// The files of its cgroup that hold the quota of CPU time.
    pub fn quota_files(&self) -> &'static str {
        if self.has_cpu_of_version_1 { "cpu.cfs_quota_us, cpu.cfs_period_us" } else { "cpu.max" }
    }

    /// Ends the watching that began when this was read.
    pub fn watched(&mut self) {
        self.cpu_stat_first = self.cpu_stat.take();
        self.cpu_stat = self.cpu_stat_first.as_ref().and_then(CpuStat::again);
    }

    /// What the quota did while the JVM was watched.
    pub fn throttled(&self) -> Option<CpuStat> {
        let (first, last) = (self.cpu_stat_first.as_ref()?, self.cpu_stat.as_ref()?);
        (first.path == last.path).then(|| last.since(first))
    }
}

/// No hierarchy of version 1 has the memory controller.
fn is_unified(groups: &str) -> bool {
    groups.lines().any(|line| line.starts_with("0::")) && !has_controller(groups, "memory")
}

/// Whether a hierarchy of version 1 has this controller.
fn has_controller(groups: &str, name: &str) -> bool {
    let names = |line: &str| line.split(':').nth(1).unwrap_or("").to_string();
    groups.lines().any(|line| names(line).split(',').any(|word| word == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_quota_are_those_of_its_version() {
        let files = |groups: &str| {
            let bounds = Bounds { has_cpu_of_version_1: has_controller(groups, "cpu"), ..Bounds::default() };
            bounds.quota_files()
        };
        assert_eq!(files("0::/a.service\n"), "cpu.max");
        assert_eq!(files("4:memory:/a\n1:cpu,cpuacct:/\n0::/\n"), "cpu.cfs_quota_us, cpu.cfs_period_us");
    }

    #[test]
    fn version_2_is_what_no_hierarchy_of_version_1_has() {
        assert!(is_unified("0::/system.slice/a.service\n"));
        assert!(!is_unified("4:memory:/a\n1:cpu,cpuacct:/\n0::/\n"), "both are mounted");
        assert!(is_unified("1:name=systemd:/\n0::/a\n") && !is_unified(""));
    }

    #[test]
    fn only_what_grew_in_the_same_group_counts() {
        let stat =
            |path: &str, throttled| CpuStat { path: path.to_string(), throttled, ..CpuStat::default() };
        let bounds =
            |first, last| Bounds { cpu_stat_first: Some(first), cpu_stat: Some(last), ..Bounds::default() };
        assert_eq!(bounds(stat("a", 3), stat("a", 5)).throttled().map(|grown| grown.throttled), Some(2));
        assert_eq!(bounds(stat("a", 3), stat("b", 5)).throttled(), None);
        assert_eq!(Bounds::default().throttled(), None);
    }
}
