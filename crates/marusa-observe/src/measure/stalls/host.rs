//! What the whole host did in the meantime: its own counters, which need no tracing and no rights. They say how much, never who.

use crate::base::{Bytes, Gap, Known, Why};
use crate::os::buddyinfo::{self, FreeBlocks};
use crate::os::cpu_time::{self, Daemon};
use crate::os::machine::{base_page, huge_page};
use crate::os::pressure::{self, Pressure};
use crate::os::process::Process;
use crate::os::thp_stats::{self, SizeStats};
use crate::os::{extfrag, host, vmstat};
use std::collections::BTreeMap;
use std::time::Instant;

/// The counters of /proc/vmstat that tell of huge pages, compaction and reclaim.
pub const COUNTERS: [&str; 31] = [
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_fault_fallback_charge",
    "thp_collapse_alloc",
    "thp_collapse_alloc_failed",
    "thp_file_alloc",
    "thp_file_fallback",
    "thp_split_page",
    "thp_split_page_failed",
    "thp_split_pmd",
    "thp_deferred_split_page",
    "thp_underused_split_page",
    "compact_stall",
    "compact_success",
    "compact_fail",
    "compact_isolated",
    "compact_migrate_scanned",
    "compact_free_scanned",
    "compact_daemon_wake",
    "compact_daemon_migrate_scanned",
    "compact_daemon_free_scanned",
    "allocstall_dma",
    "allocstall_dma32",
    "allocstall_normal",
    "allocstall_movable",
    "pgsteal_direct",
    "pgscan_direct",
    "pgscan_direct_throttle",
    "pgsteal_kswapd",
    "pgscan_kswapd",
    "pgsteal_khugepaged",
];

/// The state at one moment.
pub struct HostLook {
    at: Instant,
    vmstat: Known<BTreeMap<String, u64>>,
    sizes: Known<Vec<SizeStats>>,
    pressure: Known<Pressure>,
    group: Option<Known<Pressure>>,
    /// CPU time so far, in nanoseconds, by pid.
    daemons: BTreeMap<i32, (Daemon, u64)>,
}

impl HostLook {
    /// With the pressure of the cgroup of `process`, and the CPU time of these threads of the kernel.
    pub fn take(process: Option<&Process>, daemons: &BTreeMap<i32, Daemon>) -> HostLook {
        let cpu = |(pid, daemon): (&i32, &Daemon)| Some((*pid, (*daemon, cpu_time::of_thread(*pid)?)));
        HostLook {
            at: Instant::now(),
            vmstat: vmstat::read(),
            sizes: thp_stats::read(),
            pressure: pressure::host(),
            group: process.map(pressure::of_group),
            daemons: daemons.iter().filter_map(cpu).collect(),
        }
    }

    /// What happened since.
    pub fn since(&self, first: &HostLook) -> HostFigures {
        let pressed =
            |first, now| both(first, now).map(|(first, now): (&Pressure, &Pressure)| now.since(first));
        HostFigures {
            seconds: self.at.saturating_duration_since(first.at).as_secs_f64(),
            vmstat: self.grown(first),
            sizes: both(&first.sizes, &self.sizes).map(|(first, now)| thp_stats::grown(first, now)),
            daemons: self.cpu(first),
            pressure: pressed(&first.pressure, &self.pressure),
            group: first.group.as_ref().zip(self.group.as_ref()).map(|(first, now)| pressed(first, now)),
            free: Free::now(),
        }
    }

    fn grown(&self, first: &HostLook) -> Known<BTreeMap<&'static str, u64>> {
        let (first, now) = both(&first.vmstat, &self.vmstat)?;
        let of = |name: &&'static str| Some((*name, now.get(*name)?.saturating_sub(*first.get(*name)?)));
        Ok(COUNTERS.iter().filter_map(of).collect())
    }

    fn cpu(&self, first: &HostLook) -> Known<BTreeMap<Daemon, f64>> {
        if self.daemons.is_empty() {
            return Err(Gap::new("CPU time of khugepaged, kcompactd and kswapd", Why::NotRead).hint(
                "threads of the kernel are not in a container's pid namespace; run marusa on the host",
            ));
        }
        let mut sums: BTreeMap<Daemon, f64> = BTreeMap::new();
        for (pid, (daemon, ns)) in &self.daemons {
            let before = first.daemons.get(pid).map_or(*ns, |(_, before)| *before);
            *sums.entry(*daemon).or_default() += ns.saturating_sub(before) as f64 / 1e6;
        }
        Ok(sums)
    }
}

fn both<'a, T>(first: &'a Known<T>, now: &'a Known<T>) -> Known<(&'a T, &'a T)> {
    Ok((first.as_ref().map_err(Gap::clone)?, now.as_ref().map_err(Gap::clone)?))
}

/// What happened on the host in one interval.
#[derive(Clone, Debug)]
pub struct HostFigures {
    pub seconds: f64,
    /// How much each of `COUNTERS` grew; a kernel that does not have one leaves it out.
    pub vmstat: Known<BTreeMap<&'static str, u64>>,
    /// Allocations, fallbacks and splits by page size.
    pub sizes: Known<Vec<SizeStats>>,
    /// CPU time in milliseconds, of all nodes together.
    pub daemons: Known<BTreeMap<Daemon, f64>>,
    pub pressure: Known<Pressure>,
    /// The pressure of the target's cgroup; `None` without a target.
    pub group: Option<Known<Pressure>>,
    pub free: Known<Free>,
}

impl HostFigures {
    pub fn grown(&self, counter: &str) -> Option<u64> {
        self.vmstat.as_ref().ok()?.get(counter).copied()
    }

    /// Allocations that had to reclaim themselves, in all zones: the kernel counts each by its zone.
    pub fn allocation_stalls(&self) -> Option<u64> {
        let vmstat = self.vmstat.as_ref().ok()?;
        let zones = vmstat.iter().filter(|(name, _)| name.starts_with("allocstall_"));
        zones.map(|(_, count)| *count).reduce(u64::saturating_add)
    }
}

/// Free memory now, and in how large blocks.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Free {
    #[serde(rename = "free_bytes")]
    pub bytes: Bytes,
    /// In blocks of at least a huge page.
    #[serde(rename = "free_huge_bytes")]
    pub huge_bytes: Bytes,
    /// Blocks of 2^n base pages, of all zones but that for devices.
    #[serde(rename = "blocks_by_order")]
    pub by_order: Vec<u64>,
    /// Why a huge page was not available: -1 it was, towards 0 memory is short, towards 1 it is in pieces.
    #[serde(rename = "fragmentation_index", serialize_with = "crate::base::or_null")]
    #[schemars(with = "Option<f64>")]
    pub index: Known<f64>,
}

impl Free {
    fn now() -> Known<Free> {
        let text = host::text("/proc/buddyinfo")
            .map_err(|error| crate::os::process::gap("free blocks (/proc/buddyinfo)", &error))?;
        let zones = buddyinfo::parse(&text);
        let index = extfrag::best(&zones, buddyinfo::order(huge_page()))
            .ok_or_else(|| Gap::new("fragmentation index (/proc/buddyinfo)", Why::NotInThisKernel));
        Ok(Free::of(&zones, index))
    }

    fn of(zones: &[FreeBlocks], index: Known<f64>) -> Free {
        let mut free = Free { bytes: 0, huge_bytes: 0, by_order: Vec::new(), index };
        for zone in zones.iter().filter(|zone| !buddyinfo::is_for_devices(&zone.zone)) {
            for (order, blocks) in zone.blocks.iter().enumerate() {
                if free.by_order.len() <= order {
                    free.by_order.resize(order + 1, 0);
                }
                free.by_order[order] = free.by_order[order].saturating_add(*blocks);
                let bytes = blocks.saturating_mul(base_page() << order);
                free.bytes = free.bytes.saturating_add(bytes);
                if order >= buddyinfo::order(huge_page()) {
                    free.huge_bytes = free.huge_bytes.saturating_add(bytes);
                }
            }
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_by_the_size_of_its_blocks_without_that_for_devices() {
        let text = "Node 0, zone DMA 1 1 1 1 1 1 1 1 1 1 1\nNode 0, zone DMA32 2 0 0 0 0 0 0 0 0 3 4\nNode 1, zone Normal 6 0 0 0 0 0 0 0 0 1 0\n";
        let free = Free::of(&buddyinfo::parse(text), Ok(-1.0));
        assert_eq!(free.by_order, [8, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4]);
        assert_eq!((free.bytes, free.huge_bytes), (8 * 4096 + (24 << 20), 24 << 20));
    }

    #[test]
    fn what_grew_in_between() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        let daemons = cpu_time::daemons();
        let first = HostLook::take(Some(&me), &daemons);
        let mut now = HostLook::take(Some(&me), &daemons);
        if let Ok(vmstat) = &mut now.vmstat {
            for (name, more) in [("allocstall_normal", 3), ("allocstall_movable", 4)] {
                *vmstat.entry(name.to_string()).or_default() += more;
            }
        }
        let figures = now.since(&first);
        assert!(figures.allocation_stalls().is_some_and(|stalls| stalls >= 7));
        assert!(figures.grown("compact_stall").is_none_or(|stalls| stalls < 1_000_000));
        assert!(figures.free.is_ok_and(|free| free.bytes > 1 << 20));
        match figures.daemons {
            Ok(cpu) => assert!(cpu.values().all(|ms| *ms < 10_000.0)),
            Err(gap) => assert!(daemons.is_empty(), "{gap}"),
        }
    }
}
