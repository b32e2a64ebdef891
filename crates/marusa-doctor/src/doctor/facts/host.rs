//! The host: its settings and counters, at the start and at the end of the time that it was watched.

use crate::base::{Bytes, Gap, Known, Why};
use crate::doctor::Evidence;
use crate::os::buddyinfo::FreeBlocks;
use crate::os::cpu_time::{self, ProcessTime};
use crate::os::host::text;
use crate::os::host_pages::HostPages;
use crate::os::namespaces::View;
use crate::os::numa::{self, Node};
use crate::os::pressure::{self, Pressure};
use crate::os::pressure_averages::{self, Averages};
use crate::os::process::Process;
use crate::os::{buddyinfo, host, meminfo, vmstat};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Settings that rules look at, below /proc/sys.
const SYSCTLS: [&str; 5] = [
    "vm/compaction_proactiveness",
    "vm/overcommit_memory",
    "vm/swappiness",
    "vm/zone_reclaim_mode",
    "vm/max_map_count",
];

/// What happens in less is not a rate: CPU time is counted in steps of 10 ms.
const SECONDS_MIN: f64 = 0.5;

#[derive(Clone, Debug, Default)]
pub struct HostFacts {
    /// From where all of this was read.
    pub view: View,
    pub kernel: String,
    pub cpus: u32,
    /// Settings of huge pages; limits are those of no process.
    pub pages: HostPages,
    /// Bytes by the names of /proc/meminfo.
    pub meminfo: BTreeMap<String, u64>,
    /// /proc/vmstat at the start and at the end.
    pub vmstat_first: BTreeMap<String, u64>,
    pub vmstat: BTreeMap<String, u64>,
    /// Between both; 0: counters are since the host was started.
    pub seconds: f64,
    /// The part of it in which at least one task waited for memory (/proc/pressure/memory, "some"). `None`: a kernel without PSI.
    pub waited_ms: Option<f64>,
    pub daemons: Vec<Daemon>,
    /// Text by name: "vm/swappiness".
    pub sysctl: BTreeMap<String, String>,
    /// The controllers that version 1 of the cgroups has and that are enabled (/proc/cgroups).
    pub v1_controllers: Option<BTreeSet<String>>,
    pub nodes: Vec<Node>,
    pub free: Vec<FreeBlocks>,
    /// How long tasks waited for memory, and for input and output; `None`: PSI is off.
    pub memory_pressure: Option<Averages>,
    pub io_pressure: Option<Averages>,
    /// What a fork copies for each GiB of memory on small pages, measured here; `None`: not needed.
    pub fork_ms_per_gib: Option<f64>,
    pub gaps: Vec<Gap>,
}

/// One thread of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Daemon {
    /// "kswapd0".
    pub name: String,
    /// CPU time since the host was started, in milliseconds.
    pub cpu_ms: f64,
    /// The part of it in the time that was watched.
    pub watched_ms: f64,
}

impl HostFacts {
    /// How much a counter of vmstat grew while it was watched.
    pub fn grown(&self, counter: &str) -> Option<u64> {
        Some(self.vmstat.get(counter)?.saturating_sub(*self.vmstat_first.get(counter)?))
    }

    /// The same of several counters, as evidence.
    pub fn watched<const N: usize>(&self, counters: [&'static str; N]) -> impl Iterator<Item = Evidence> {
        let grown = counters.into_iter().filter_map(|counter| Some((counter, self.grown(counter)?)));
        grown.map(|(counter, grown)| {
            Evidence::count(format!("{counter} while watched"), grown, "/proc/vmstat")
        })
    }

    /// The same in a second. `None` where too short a time was watched to say.
    pub fn rate(&self, counter: &str) -> Option<f64> {
        self.grown(counter).filter(|_| self.seconds >= SECONDS_MIN).map(|grown| grown as f64 / self.seconds)
    }

    pub fn thp_mode(&self) -> &str {
        self.pages.thp.as_ref().map_or("", |thp| &thp.enabled)
    }

    pub fn memory_bytes(&self) -> Option<Bytes> {
        self.meminfo.get("MemTotal").copied()
    }

    /// The state at the start; `finish` adds what happened until then.
    pub fn start() -> Watched {
        Watched {
            vmstat: vmstat::read().unwrap_or_default(),
            waited: pressure::host().ok(),
            daemons: daemons(),
            at: Instant::now(),
        }
    }
}

/// A watch that runs.
pub struct Watched {
    vmstat: BTreeMap<String, u64>,
    waited: Option<Pressure>,
    daemons: Vec<(String, f64)>,
    at: Instant,
}

impl Watched {
    /// `me`: our own process, whose limits are left out.
    pub fn finish(self, me: &Process) -> HostFacts {
        let mut gaps = Vec::new();
        let pages = HostPages { limits: Vec::new(), ..HostPages::read(me) };
        let vmstat = known(vmstat::read(), &mut gaps).unwrap_or_default();
        let view = View::read();
        if view.is_container {
            let hint = "marusa runs in a container: outside of it, on the host, it sees them";
            gaps.push(
                Gap::new("CPU time of the kernel's threads (khugepaged, kcompactd)", Why::NotRead).hint(hint),
            );
        }
        let before: BTreeMap<String, f64> = self.daemons.into_iter().collect();
        let daemon = |(name, cpu_ms): (String, f64)| {
            // One that ended and came again, as khugepaged does, counts from 0.
            let watched_ms = (cpu_ms - before.get(&name).copied().unwrap_or(cpu_ms)).max(0.0);
            Daemon { name, cpu_ms, watched_ms }
        };
        let sysctl = |name: &&str| {
            Some((name.to_string(), text(format!("/proc/sys/{name}")).ok()?.trim().to_string()))
        };
        HostFacts {
            view,
            kernel: host::kernel_release(),
            cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
            pages,
            meminfo: meminfo::fields(&text("/proc/meminfo").unwrap_or_default()),
            vmstat_first: self.vmstat,
            vmstat,
            seconds: self.at.elapsed().as_secs_f64(),
            waited_ms: pressure::host()
                .ok()
                .zip(self.waited)
                .map(|(now, first)| now.since(&first).some_us as f64 / 1000.0),
            daemons: daemons().into_iter().map(daemon).collect(),
            sysctl: SYSCTLS.iter().filter_map(sysctl).collect(),
            v1_controllers: text("/proc/cgroups").ok().map(|text| v1_controllers(&text)),
            nodes: numa::read(),
            free: buddyinfo::parse(&text("/proc/buddyinfo").unwrap_or_default()),
            memory_pressure: known(pressure_averages::host("memory"), &mut gaps),
            io_pressure: known(pressure_averages::host("io"), &mut gaps),
            fork_ms_per_gib: None,
            gaps,
        }
    }
}

fn known<T>(read: Known<T>, gaps: &mut Vec<Gap>) -> Option<T> {
    gaps.extend(read.as_ref().err().cloned());
    read.ok()
}

/// "memory 4 10 1": name, hierarchy, groups, and whether it is enabled.
fn v1_controllers(text: &str) -> BTreeSet<String> {
    let enabled = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().filter(|name| !name.starts_with('#'))?;
        (words.nth(2)? == "1").then(|| name.to_string())
    };
    text.lines().filter_map(enabled).collect()
}

/// CPU time of the kernel's threads that work on pages; in a pid namespace of its own there are none.
fn daemons() -> Vec<(String, f64)> {
    let times = cpu_time::daemons().into_keys().filter_map(ProcessTime::read);
    times.map(|time| (time.name.clone(), time.cpu_ms())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_counts_where_it_is_enabled() {
        let text = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t51\t1\nmemory\t0\t51\t0\n";
        assert_eq!(v1_controllers(text), BTreeSet::from(["cpu".to_string()]));
    }

    #[test]
    fn this_host_is_read() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        let facts = HostFacts::start().finish(&me);
        assert!(facts.memory_bytes().is_some_and(|bytes| bytes > 1 << 26));
        assert!(facts.grown("pgfault").is_some() && facts.cpus > 0);
    }
}
