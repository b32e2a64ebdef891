//! What the memory controller counts for one cgroup, with the cgroups below it: its sum, and what the sum is for.
//!
//! Version 2: Documentation/admin-guide/cgroup-v2.rst, "Memory Interface Files". Version 1: cgroup-v1/memory.rst, and
//! mm/memcontrol-v1.c of Linux 6.18 for what its counters have been since 5.x. There the kernel's memory is one sum
//! (memory.kmem.usage_in_bytes), and TCP's buffers are a counter of their own (memory.kmem.tcp.usage_in_bytes) that is not part of
//! memory.usage_in_bytes.

use super::group::Group;
use super::group_memory::Reads;
use super::vmstat::parse as numbers;
use crate::base::{Bytes, Gap, Known, Why};
use std::collections::BTreeMap;

/// How often the files are read until the sum stands still, and by what part of it it may move.
const READS_MAX: usize = 4;
const MOVED_PARTS: Bytes = 1_000;

/// The figures of a cgroup. What this kernel or version does not count is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStat {
    pub version: u8,
    /// memory.current, memory.usage_in_bytes.
    pub usage_bytes: Bytes,
    /// Anonymous memory that page tables map.
    pub anon_bytes: Bytes,
    /// Pages of files, shared memory and the swap cache together.
    pub file_bytes: Bytes,
    /// The part of `file_bytes` in tmpfs and shared memory.
    pub shmem_bytes: Bytes,
    /// The part of `file_bytes` in anonymous pages with a copy in swap; they may be in `anon_bytes` too.
    pub swap_cache_bytes: Bytes,
    /// The kernel's memory as a sum.
    pub kernel_bytes: Option<Bytes>,
    pub kernel_stack_bytes: Option<Bytes>,
    pub page_table_bytes: Option<Bytes>,
    /// Page tables of guests and devices (KVM, IOMMU).
    pub secondary_page_table_bytes: Option<Bytes>,
    pub percpu_bytes: Option<Bytes>,
    pub vmalloc_bytes: Option<Bytes>,
    pub slab_reclaimable_bytes: Option<Bytes>,
    pub slab_unreclaimable_bytes: Option<Bytes>,
    /// The compressed copies of swapped pages.
    pub zswap_bytes: Option<Bytes>,
    /// Buffers of sockets. Version 1: TCP's, outside of `usage_bytes`.
    pub socket_bytes: Option<Bytes>,
    /// Hugetlb pages, where they are in `usage_bytes` (the mount option memory_hugetlb_accounting).
    pub hugetlb_bytes: Option<Bytes>,
    pub inactive_anon_bytes: Bytes,
    pub active_anon_bytes: Bytes,
    pub inactive_file_bytes: Bytes,
    pub active_file_bytes: Bytes,
    pub unevictable_bytes: Bytes,
    /// On the swap device.
    pub swapped_bytes: Option<Bytes>,
    /// memory.events; of version 1 "oom_kill", and "max" as memory.failcnt counts it.
    pub events: BTreeMap<String, u64>,
    /// The sum kept changing while the rest was read: by how much.
    pub moved_bytes: Bytes,
}

impl Group {
    pub fn stat(&self) -> Known<GroupStat> {
        GroupStat::read(self.version, &|name| self.text(name))
    }
}

impl GroupStat {
    /// Pages of files on a disk or a network.
    pub fn page_cache_bytes(&self) -> Bytes {
        self.file_bytes.saturating_sub(self.shmem_bytes).saturating_sub(self.swap_cache_bytes)
    }

    /// Anonymous memory that no page table maps any more: the swap cache, and the rest of huge pages that were unmapped in part.
    /// The lists of reclaim have it (anonymous memory, tmpfs and shared memory alike); locked memory is on a list of its own, so
    /// with it this is a lower bound.
    pub fn unmapped_anon_bytes(&self) -> Bytes {
        let listed = self.inactive_anon_bytes.saturating_add(self.active_anon_bytes);
        listed.saturating_sub(self.anon_bytes).saturating_sub(self.shmem_bytes)
    }

    /// The working set of kubelet and cAdvisor (container/libcontainer/handler.go, `setMemoryStats`): what is used less
    /// inactive_file. Kubernetes evicts pods by it.
    pub fn working_set_bytes(&self) -> Bytes {
        self.usage_bytes.saturating_sub(self.inactive_file_bytes)
    }

    /// `read` gives a file of the cgroup's directory.
    pub(super) fn read(version: u8, read: Reads) -> Known<GroupStat> {
        let usage_file = if version == 1 { "memory.usage_in_bytes" } else { "memory.current" };
        let usage = || read(usage_file).and_then(|text| text.trim().parse::<u64>().ok());
        let no_usage = || match read("cgroup.procs") {
            Some(_) => Gap::new(usage_file, Why::NotInThisKernel)
                .hint("the root has no figure of its own, nor has a cgroup without the memory controller"),
            None => Gap::new(usage_file, Why::Gone).hint("the cgroup was removed"),
        };
        let mut before = usage().ok_or_else(no_usage)?;
        let mut found = GroupStat::default();
        for _ in 0..READS_MAX {
            let text = read("memory.stat").ok_or_else(|| Gap::new("memory.stat", Why::Gone))?;
            found = if version == 1 {
                version_1(&numbers(&text), read)
            } else {
                version_2(&numbers(&text), read)
            };
            let after = usage().ok_or_else(|| Gap::new(usage_file, Why::Gone))?;
            found.moved_bytes = after.abs_diff(before);
            found.usage_bytes = after;
            if found.moved_bytes <= after / MOVED_PARTS {
                break;
            }
            before = after;
        }
        Ok(found)
    }
}

fn version_2(stat: &BTreeMap<String, u64>, read: Reads) -> GroupStat {
    let row = |name: &str| stat.get(name).copied();
    let all = |name: &str| row(name).unwrap_or(0);
    GroupStat {
        version: 2,
        anon_bytes: all("anon"),
        file_bytes: all("file"),
        shmem_bytes: all("shmem"),
        swap_cache_bytes: all("swapcached"),
        kernel_bytes: row("kernel"),
        kernel_stack_bytes: row("kernel_stack"),
        page_table_bytes: row("pagetables"),
        secondary_page_table_bytes: row("sec_pagetables"),
        percpu_bytes: row("percpu"),
        vmalloc_bytes: row("vmalloc"),
        slab_reclaimable_bytes: row("slab_reclaimable"),
        slab_unreclaimable_bytes: row("slab_unreclaimable"),
        zswap_bytes: row("zswap"),
        socket_bytes: row("sock"),
        hugetlb_bytes: row("hugetlb"),
        inactive_anon_bytes: all("inactive_anon"),
        active_anon_bytes: all("active_anon"),
        inactive_file_bytes: all("inactive_file"),
        active_file_bytes: all("active_file"),
        unevictable_bytes: all("unevictable"),
        swapped_bytes: read("memory.swap.current").and_then(|text| text.trim().parse().ok()),
        events: numbers(&read("memory.events").unwrap_or_default()),
        ..GroupStat::default()
    }
}

/// The rows with "total_" have what the cgroups below have.
fn version_1(stat: &BTreeMap<String, u64>, read: Reads) -> GroupStat {
    let row = |name: &str| stat.get(&format!("total_{name}")).copied();
    let all = |name: &str| row(name).unwrap_or(0);
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let mut events = numbers(&read("memory.oom_control").unwrap_or_default());
    events.retain(|name, _| name == "oom_kill");
    events.extend(number("memory.failcnt").map(|times| ("max".to_string(), times)));
    GroupStat {
        version: 1,
        anon_bytes: all("rss"),
        file_bytes: all("cache"),
        shmem_bytes: all("shmem"),
        swap_cache_bytes: all("swapcached"),
        kernel_bytes: number("memory.kmem.usage_in_bytes"),
        socket_bytes: number("memory.kmem.tcp.usage_in_bytes"),
        inactive_anon_bytes: all("inactive_anon"),
        active_anon_bytes: all("active_anon"),
        inactive_file_bytes: all("inactive_file"),
        active_file_bytes: all("active_file"),
        unevictable_bytes: all("unevictable"),
        swapped_bytes: row("swap"),
        events,
        ..GroupStat::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(files: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |file| files.iter().find(|(name, _)| *name == file).map(|(_, text)| text.to_string())
    }

    #[test]
    fn version_2_by_its_files() {
        let files = [
            ("cgroup.procs", "7\n"),
            ("memory.current", "1000\n"),
            ("memory.swap.current", "40\n"),
            ("memory.events", "low 0\nhigh 2\nmax 3\noom 1\noom_kill 1\n"),
            (
                "memory.stat",
                "anon 300\nfile 400\nkernel 200\nkernel_stack 16\npagetables 20\nsec_pagetables 0\npercpu 8\nsock 50\n\
                 vmalloc 4\nshmem 100\nzswap 12\nzswapped 36\nfile_dirty 5\nswapcached 10\ninactive_anon 320\n\
                 active_anon 95\ninactive_file 200\nactive_file 90\nunevictable 0\nslab_reclaimable 60\n\
                 slab_unreclaimable 30\nslab 90\n",
            ),
        ];
        let stat = GroupStat::read(2, &read(&files)).expect("read");
        assert_eq!((stat.usage_bytes, stat.page_cache_bytes(), stat.unmapped_anon_bytes()), (1000, 290, 15));
        assert_eq!(
            (stat.working_set_bytes(), stat.swapped_bytes, stat.socket_bytes),
            (800, Some(40), Some(50))
        );
        assert_eq!((stat.zswap_bytes, stat.hugetlb_bytes, stat.events["oom_kill"]), (Some(12), None, 1));
    }

    #[test]
    fn version_1_counts_what_lies_below_and_the_kernels_memory_as_one() {
        let files = [
            ("memory.usage_in_bytes", "900\n"),
            ("memory.kmem.usage_in_bytes", "100\n"),
            ("memory.kmem.tcp.usage_in_bytes", "0\n"),
            ("memory.failcnt", "7\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            (
                "memory.stat",
                "cache 1\nrss 2\ntotal_cache 500\ntotal_rss 290\ntotal_shmem 100\ntotal_inactive_file 250\n",
            ),
        ];
        let stat = GroupStat::read(1, &read(&files)).expect("read");
        assert_eq!((stat.anon_bytes, stat.page_cache_bytes(), stat.kernel_bytes), (290, 400, Some(100)));
        assert_eq!(
            (stat.kernel_stack_bytes, stat.socket_bytes, stat.working_set_bytes()),
            (None, Some(0), 650)
        );
        assert_eq!(stat.events, [("max".to_string(), 7), ("oom_kill".to_string(), 2)].into());
    }

    #[test]
    fn a_cgroup_that_was_removed_and_the_root() {
        assert_eq!(GroupStat::read(2, &read(&[])).expect_err("gone").why, Why::Gone);
        let root = [("cgroup.procs", "1\n"), ("memory.stat", "anon 1\n")];
        assert_eq!(GroupStat::read(2, &read(&root)).expect_err("the root").why, Why::NotInThisKernel);
        let nonsense = [("memory.current", "99\n"), ("memory.stat", "anon -1\nfile x\n\u{0}\n")];
        assert_eq!(GroupStat::read(2, &read(&nonsense)).expect("read").anon_bytes, 0);
    }
}
