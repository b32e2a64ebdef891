//! A healthy host.

use super::{G, M};
use crate::doctor::facts::HostFacts;
use crate::os::host_pages::HostPages;
use crate::os::hugetlb::Pool;
use crate::os::numa::Node;
use crate::os::thp::{Thp, ThpSize};
use std::collections::BTreeMap;

/// 4 CPUs, 16 GiB of which 8 are available, THP for the ones that ask, and nothing that happened in the second it was watched.
pub fn healthy_host() -> HostFacts {
    let named = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
        pairs.iter().map(|(name, number)| (name.to_string(), *number)).collect()
    };
    let vmstat = named(&VMSTAT);
    let sysctl = SYSCTL.iter().map(|(name, text)| (name.to_string(), text.to_string()));
    HostFacts {
        kernel: "6.12.0".to_string(),
        cpus: 4,
        pages: HostPages { vmstat: vmstat.clone(), ..pages() },
        meminfo: named(&[
            ("MemTotal", 16 * G),
            ("MemFree", 6 * G),
            ("MemAvailable", 8 * G),
            ("SwapTotal", 2 * G),
            ("SwapFree", 2 * G),
            ("CommitLimit", 10 * G),
            ("Committed_AS", 5 * G),
            ("AnonHugePages", 0),
            ("Hugepagesize", 2 * M),
        ]),
        vmstat_first: vmstat.clone(),
        vmstat,
        seconds: 1.0,
        sysctl: sysctl.collect(),
        nodes: vec![Node { number: 0, total_bytes: 16 * G, free_bytes: 6 * G, pools: Vec::new() }],
        ..HostFacts::default()
    }
}

const VMSTAT: [(&str, u64); 16] = [
    ("nr_free_pages", 1_500_000),
    ("pgfault", 90_000_000),
    ("pgmajfault", 4_000),
    ("pswpin", 0),
    ("pswpout", 0),
    ("allocstall_normal", 0),
    ("allocstall_movable", 0),
    ("compact_stall", 0),
    ("compact_fail", 0),
    ("compact_success", 0),
    ("thp_fault_alloc", 1_000),
    ("thp_fault_fallback", 0),
    ("thp_collapse_alloc", 10),
    ("thp_collapse_alloc_failed", 0),
    ("thp_split_page", 0),
    ("numa_pages_migrated", 0),
];
const SYSCTL: [(&str, &str); 5] = [
    ("vm/compaction_proactiveness", "20"),
    ("vm/overcommit_memory", "0"),
    ("vm/swappiness", "60"),
    ("vm/zone_reclaim_mode", "0"),
    ("vm/max_map_count", "1048576"),
];

/// THP for the ones that ask for it, and no pools.
pub fn pages() -> HostPages {
    let word = |text: &str| Some(text.to_string());
    let size = ThpSize { bytes: 2 * M, enabled: word("inherit"), shmem_enabled: word("inherit") };
    let khugepaged = [("pages_to_scan", 4096), ("scan_sleep_millisecs", 10_000), ("max_ptes_none", 511)];
    let thp = Thp {
        enabled: "madvise".to_string(),
        defrag: word("madvise"),
        shmem_enabled: word("never"),
        use_zero_page: Some(true),
        pmd_bytes: 2 * M,
        sizes: vec![size],
        khugepaged: khugepaged.map(|(name, number)| (name.to_string(), number)).into(),
    };
    let pools = [2 * M, G].map(|page_bytes| Pool { page_bytes, ..Pool::default() });
    HostPages { thp: Some(thp), pools: pools.into(), ..HostPages::default() }
}
