//! What the host counts of its folios, and what that proves of any process without a reading of a page.
//!
//! `hugepages-<size>kB/stats/nr_anon` (Linux 6.12) is the number of anonymous folios of that size on the whole host: it is
//! raised where one is first mapped (mm/rmap.c, `folio_add_new_anon_rmap`), copied (mm/migrate.c) or left by a split
//! (mm/huge_memory.c, `__split_unmapped_folio`), and lowered where one is split or freed (mm/page_alloc.c,
//! `free_pages_prepare`), never while it is mapped. So where it is 0 for every size below 2 MiB, no anonymous page of any
//! process sits on such a folio; hugetlb pages that migrate may raise it too often (until 6.19), which proves less but
//! nothing wrong. AnonHugePages of /proc/meminfo counts the folios of 2 MiB that one entry maps at least once (mm/rmap.c,
//! `__folio_mod_stat`): where it is all of them, none is mapped in pieces only.
//!
//! For shared memory only the allocations since boot are counted (mm/shmem.c, `shmem_alloc_and_add_folio`). Where there was
//! none, and none was collapsed and split later, there is no folio.

use super::machine::{base_page, huge_page};
use super::{host, meminfo, vmstat};
use crate::base::Bytes;
use std::collections::BTreeMap;

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";
/// Sizes that are asked for: 8 KiB to a huge page.
const SMALLEST_SHIFT: u32 = 13;

/// The counters; what this kernel does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFolios {
    /// By size of the folio.
    sizes: BTreeMap<Bytes, Counts>,
    anon_huge_bytes: Option<Bytes>,
    shmem_huge_bytes: Option<Bytes>,
    /// Shared memory that got huge pages where it was touched, collapsed ranges of any memory, and huge pages that were split,
    /// all since boot.
    file_allocated: Option<u64>,
    collapsed: Option<u64>,
    split: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    anon: Option<u64>,
    shmem_allocated: Option<u64>,
}

impl HostFolios {
    pub fn read() -> HostFolios {
        let mut sizes = BTreeMap::new();
        for shift in SMALLEST_SHIFT..=huge_page().trailing_zeros() {
            let directory = format!("{DIRECTORY}/hugepages-{}kB/stats", (1_u64 << shift) >> 10);
            let counts = Counts {
                anon: host::number(format!("{directory}/nr_anon")),
                shmem_allocated: host::number(format!("{directory}/shmem_alloc")),
            };
            if counts != Counts::default() {
                sizes.insert(1 << shift, counts);
            }
        }
        let text = |path| host::text(path).unwrap_or_default();
        let mut counters = parse(&text("/proc/meminfo"), &text("/proc/vmstat"));
        counters.sizes = sizes;
        counters
    }

    /// Whether no anonymous page of the host lies on a folio of more than a page and less than 2 MiB.
    pub fn has_no_small_anon_folio(&self) -> bool {
        let is_none = |(_, counts): (&Bytes, &Counts)| counts.anon == Some(0);
        // The smallest anonymous folio above a page has four (Documentation/admin-guide/mm/transhuge.rst).
        let smallest = 4 * base_page();
        // Order 1 is for shared memory only: an anonymous folio of two pages has no room for what the kernel notes in it.
        self.sizes.range(huge_page()..).any(|(_, counts)| counts.anon.is_some())
            && self.sizes.range(smallest..).next().is_some_and(|(size, _)| *size == smallest)
            && self.sizes.range(smallest..huge_page()).all(is_none)
            && self.sizes.range(..smallest).all(|(_, counts)| counts.anon.unwrap_or(0) == 0)
    }

    /// Whether every anonymous folio of 2 MiB is mapped by one entry somewhere.
    pub fn maps_all_huge_whole(&self) -> bool {
        let folios = self.sizes.get(&huge_page()).and_then(|counts| counts.anon);
        let bytes = folios.and_then(|folios| folios.checked_mul(huge_page()));
        bytes.is_some() && bytes == self.anon_huge_bytes
    }

    /// Whether shared memory never had a folio of more than a page that may still be there.
    pub fn has_no_shmem_folio(&self) -> bool {
        let none = |(_, counts): (&Bytes, &Counts)| counts.shmem_allocated == Some(0);
        let never_split = self.collapsed == Some(0) || self.split == Some(0);
        self.sizes.contains_key(&huge_page())
            && self.sizes.iter().all(none)
            && self.file_allocated == Some(0)
            && self.shmem_huge_bytes == Some(0)
            && never_split
    }
}

/// What two files say; the sizes come from files of their own.
pub fn parse(meminfo: &str, vmstat: &str) -> HostFolios {
    let (meminfo, vmstat) = (meminfo::fields(meminfo), vmstat::parse(vmstat));
    let counter = |name| vmstat.get(name).copied();
    HostFolios {
        sizes: BTreeMap::new(),
        anon_huge_bytes: meminfo.get("AnonHugePages").copied(),
        shmem_huge_bytes: meminfo.get("ShmemHugePages").copied(),
        file_allocated: counter("thp_file_alloc"),
        collapsed: counter("thp_collapse_alloc"),
        split: counter("thp_split_page"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: Bytes = 2 << 20;

    const MEMINFO: &str = "MemTotal: 24683724 kB\nAnonHugePages:      4096 kB\nShmemHugePages:        0 kB\n";
    const VMSTAT: &str =
        "thp_fault_alloc 75354\nthp_file_alloc 0\nthp_collapse_alloc 2\nthp_split_page 0\nodd\n";

    fn counters(anon: [Option<u64>; 3]) -> HostFolios {
        let mut counters = parse(MEMINFO, VMSTAT);
        for (size, anon) in [16 << 10, 64 << 10, HUGE].into_iter().zip(anon) {
            counters.sizes.insert(size, Counts { anon, shmem_allocated: Some(0) });
        }
        counters
    }

    #[test]
    fn counters_prove_only_what_they_say() {
        let plain = counters([Some(0), Some(0), Some(2)]);
        assert!(plain.has_no_small_anon_folio() && plain.maps_all_huge_whole() && plain.has_no_shmem_folio());
        assert!(!counters([Some(0), Some(1), Some(2)]).has_no_small_anon_folio());
        assert!(!counters([None, Some(0), Some(2)]).has_no_small_anon_folio(), "before 6.12");
        assert!(!counters([Some(0), Some(0), Some(3)]).maps_all_huge_whole(), "one is mapped in pieces");
        assert!(
            !HostFolios::default().has_no_small_anon_folio() && !HostFolios::default().has_no_shmem_folio()
        );
        assert!(!HostFolios { split: Some(1), ..plain.clone() }.has_no_shmem_folio());
        assert!(!HostFolios { shmem_huge_bytes: Some(HUGE), ..plain }.has_no_shmem_folio());
    }

    #[test]
    fn nonsense_is_unknown() {
        let counters =
            parse("AnonHugePages: 18446744073709551615 kB\nShmemHugePages:\n", "thp_split_page -1\n");
        assert_eq!(counters, HostFolios::default());
    }
}
