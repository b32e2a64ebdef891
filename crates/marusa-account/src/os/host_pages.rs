//! What the host says of page sizes: the settings of transparent huge pages, the pools of hugetlb, the limits of the
//! target's cgroup, and the one option of the kernel without which files have no huge pages. Some 50 small files:
//! under a millisecond.

use super::hugetlb::{self, Limit, Pool};
use super::machine::huge_page;
use super::process::Process;
use super::thp::{self, Thp};
use super::{host, kernel_config, vmstat};
use crate::base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters of /proc/vmstat that show whether huge pages were available.
const COUNTERS: [&str; 9] = [
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_fault_fallback_charge",
    "thp_collapse_alloc",
    "thp_collapse_alloc_failed",
    "thp_split_page",
    "thp_split_pmd",
    "htlb_buddy_alloc_success",
    "htlb_buddy_alloc_fail",
];

/// The settings of the moment of the snapshot; a JVM asks for hugetlb when it starts, and they may have changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct HostPages {
    /// `None`: this kernel has no transparent huge pages.
    pub thp: Option<Thp>,
    /// By size; empty: this kernel has no hugetlb.
    pub pools: Vec<Pool>,
    /// The limits of the target's cgroup and of the ones above it.
    pub limits: Vec<Limit>,
    /// CONFIG_READ_ONLY_THP_FOR_FS; `None`: the kernel's configuration cannot be read.
    pub file_huge_pages: Option<bool>,
    pub vmstat: BTreeMap<String, u64>,
}

impl HostPages {
    pub fn read(process: &Process) -> HostPages {
        let pools = hugetlb::pools(hugetlb::DIRECTORY);
        let below = |file: &str| host::text(format!("{}/{file}", thp::DIRECTORY)).ok();
        HostPages {
            thp: Thp::parse(&below, &hugetlb::sizes(thp::DIRECTORY)),
            limits: limits(process, &pools),
            pools,
            file_huge_pages: kernel_config::option("CONFIG_READ_ONLY_THP_FOR_FS"),
            vmstat: counters(&host::text("/proc/vmstat").unwrap_or_default()),
        }
    }

    pub fn pool(&self, page_bytes: Bytes) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.page_bytes == page_bytes)
    }
    /// What one entry of the second-lowest page table maps.
    pub fn pmd_bytes(&self) -> Bytes {
        self.thp.as_ref().map_or_else(huge_page, |thp| thp.pmd_bytes)
    }
    /// The limit that leaves least.
    pub fn tightest(&self, page_bytes: Bytes) -> Option<&Limit> {
        self.limits
            .iter()
            .filter(|limit| limit.page_bytes == page_bytes)
            .min_by_key(|limit| limit.left_bytes())
    }
}

fn limits(process: &Process, pools: &[Pool]) -> Vec<Limit> {
    let mounts = host::text("/proc/self/mounts").unwrap_or_default();
    let Some(group) = hugetlb::group(&process.text("cgroup").unwrap_or_default(), &mounts) else {
        return Vec::new();
    };
    let read = |file: &str| host::text(file).ok();
    let of = |directory: &String| {
        pools.iter().flat_map(|pool| group.limits(directory, pool.page_bytes, &read)).collect::<Vec<_>>()
    };
    group.directories().iter().flat_map(of).collect()
}

/// The ones that are kept.
fn counters(text: &str) -> BTreeMap<String, u64> {
    vmstat::parse(text).into_iter().filter(|(name, _)| COUNTERS.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_that_are_kept() {
        let kept = counters("nr_free_pages 7\nthp_fault_alloc 12\nthp_fault_fallback 0\nbroken\n");
        assert_eq!(kept.len(), 2);
        assert_eq!(kept["thp_fault_alloc"], 12);
    }

    #[test]
    fn this_host_has_pages() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        let pages = HostPages::read(&me);
        assert!(pages.pmd_bytes().is_power_of_two() && pages.pmd_bytes() >= 2 << 20);
        assert_eq!(pages.pool(1234), None);
    }
}
