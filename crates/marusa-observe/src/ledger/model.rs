//! The ledger as every face shows it, serialised as a part of `marusa/container/1`.

use crate::base::{Bytes, Gap};
use crate::map::model::GapRow;
use crate::os::group_memory::GroupMemory;
use crate::os::group_stat::GroupStat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure of the kernel, and what it is made of.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Ledger {
    /// The directory of the cgroup; `None`: the host.
    pub cgroup: Option<String>,
    /// The version of the cgroup hierarchy; `None`: the host.
    pub version: Option<u8>,
    /// memory.current or memory.usage_in_bytes; `None`: the host.
    pub cgroup_bytes: Option<Bytes>,
    /// What the rows sum to: `cgroup_bytes`, or MemTotal of the host.
    pub total_bytes: Bytes,
    /// In the order of `Item`, the largest of each first; the last is the remainder.
    pub rows: Vec<Row>,
    /// Used less inactive_file, as kubelet counts it; `None`: the host.
    pub working_set_bytes: Option<Bytes>,
    /// `None`: no limit, or it is not known.
    pub limit: Option<Limit>,
    /// What the kernel would reclaim, in its order.
    pub reclaim: Vec<Reclaim>,
    /// memory.events: how often a limit was met, and what was killed.
    pub events: BTreeMap<String, u64>,
    /// Memory that belongs to it but that its figure does not count.
    pub outside: Vec<Row>,
    /// TCP and UDP sockets with data in their queues, the most first. The buffers charged for it are larger.
    pub sockets: Vec<Socket>,
    pub processes: u64,
    /// Processes or files were left out because time or memory ran short.
    #[serde(skip)]
    pub is_given_up: bool,
    pub gaps: Vec<GapRow>,
}

/// One item of a ledger.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Row {
    pub item: Item,
    /// The process, file or mount; `None`: all of the item.
    pub name: Option<String>,
    pub pid: Option<i32>,
    /// Negative only in the remainder, where the kernel's counters moved.
    pub bytes: i64,
    /// What the process or file has in all, where that is more than the cgroup was charged.
    pub seen_bytes: Option<Bytes>,
    /// Where the figure is from.
    pub how: String,
    /// The areas of a JVM, the largest first: their anonymous memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    pub bytes: Bytes,
}

/// Data that waits in a socket.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Socket {
    pub pid: i32,
    pub command: String,
    /// Address and port of the peer, else of the socket itself.
    pub peer: String,
    pub to_send_bytes: Bytes,
    pub received_bytes: Bytes,
}

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// Anonymous memory of a process.
    Anonymous,
    /// Anonymous memory of no process that was seen.
    AnonymousOther,
    /// Anonymous memory that no page table maps: the swap cache, and the rest of huge pages that were unmapped in part.
    AnonymousUnmapped,
    /// Cached pages of a file that is open or mapped.
    PageCache,
    /// Cached pages of files that no process has open, and of ones that cannot be asked.
    PageCacheOther,
    /// A file on tmpfs or shared memory that is open or mapped.
    SharedMemory,
    /// Files on a tmpfs that no process has open, by mount.
    Tmpfs,
    /// Other tmpfs and shared memory.
    SharedMemoryOther,
    /// Dentries, inodes and other caches of the kernel.
    SlabReclaimable,
    SlabUnreclaimable,
    KernelStacks,
    PageTables,
    SecondaryPageTables,
    Percpu,
    Vmalloc,
    Zswap,
    Sockets,
    /// The kernel's memory of other use; in version 1 slab, per-CPU memory and all else.
    KernelOther,
    Hugetlb,
    /// On the host: cached blocks of disks.
    Buffers,
    /// On the host.
    Free,
    Remainder,
}

impl Item {
    pub fn title(self) -> &'static str {
        match self {
            Item::Anonymous => "anonymous memory",
            Item::AnonymousOther => "anonymous memory of no process seen",
            Item::AnonymousUnmapped => "anonymous memory, unmapped",
            Item::PageCache => "page cache",
            Item::PageCacheOther => "other page cache",
            Item::SharedMemory => "tmpfs and shared memory",
            Item::Tmpfs => "tmpfs: files that are not open",
            Item::SharedMemoryOther => "other tmpfs and shared memory",
            Item::SlabReclaimable => "slab, reclaimable (dentries, inodes)",
            Item::SlabUnreclaimable => "slab, unreclaimable",
            Item::KernelStacks => "kernel stacks",
            Item::PageTables => "page tables",
            Item::SecondaryPageTables => "page tables of guests and devices",
            Item::Percpu => "per-CPU memory of the kernel",
            Item::Vmalloc => "vmalloc",
            Item::Zswap => "zswap",
            Item::Sockets => "socket buffers",
            Item::KernelOther => "other kernel memory",
            Item::Hugetlb => "hugetlb",
            Item::Buffers => "buffers of block devices",
            Item::Free => "free",
            Item::Remainder => "remainder",
        }
    }
}

/// The limit that leaves least.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Limit {
    /// The directory of the cgroup that has it: this one, or one above.
    pub cgroup: String,
    pub limit_bytes: Bytes,
    /// memory.high: above it the kernel slows the cgroup down.
    pub high_bytes: Option<Bytes>,
    /// What may still be taken before used memory must be reclaimed.
    pub left_bytes: Bytes,
    /// What may be swapped out; `None`: no limit, or swap is not counted.
    pub swap_limit_bytes: Option<Bytes>,
}

impl From<&GroupMemory> for Limit {
    fn from(group: &GroupMemory) -> Limit {
        Limit {
            cgroup: group.path.clone(),
            limit_bytes: group.limit_bytes,
            high_bytes: group.high_bytes,
            left_bytes: group.left_bytes(),
            swap_limit_bytes: group.swap_limit_bytes,
        }
    }
}

/// Memory by how the kernel would take it back.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Reclaim {
    /// As memory.stat calls it: "inactive_file".
    pub what: String,
    pub bytes: Bytes,
    pub how: String,
}

impl Ledger {
    /// All rows of some items together.
    pub fn sum_of(&self, items: &[Item]) -> i64 {
        self.rows.iter().filter(|row| items.contains(&row.item)).map(|row| row.bytes).sum()
    }

    pub fn with_gaps(mut self, gaps: &[Gap]) -> Ledger {
        self.is_given_up = gaps.iter().any(|gap| gap.why.is_given_up());
        self.gaps = gaps.iter().map(GapRow::from).collect();
        self
    }

    pub fn remainder_bytes(&self) -> i64 {
        self.sum_of(&[Item::Remainder])
    }
}

/// In the order of mm/vmscan.c: the lists of files first, the inactive one before the active one, with the caches of slab next to
/// them; anonymous memory and tmpfs only where there is swap.
pub fn reclaim(stat: &GroupStat) -> Vec<Reclaim> {
    let row = |what: &str, bytes, how: &str| Reclaim { what: what.to_string(), bytes, how: how.to_string() };
    let mut rows = vec![
        row("inactive_file", stat.inactive_file_bytes, "dropped at once; dirty pages are written first"),
        row("active_file", stat.active_file_bytes, "later: read again when it is used"),
    ];
    let slab = "dentries and inodes, with the lists of files";
    rows.extend(stat.slab_reclaimable_bytes.map(|bytes| row("slab_reclaimable", bytes, slab)));
    let anon = stat.inactive_anon_bytes.saturating_add(stat.active_anon_bytes);
    rows.push(row("anon", anon, "anonymous memory and tmpfs: only where there is swap"));
    rows.push(row("unevictable", stat.unevictable_bytes, "never: locked, or ramfs"));
    rows
}
