//! The plan: a file that a person can read before it is applied, and that `verify` holds the JVM against afterwards.

use crate::act::door::content::{Memlock, Put};
pub use crate::act::door::identity::HostId;
pub use crate::act::door::step::{Change, Step};
use crate::base::{Bytes, Gap};
use crate::jvm::Gc;
use crate::map::Area;
use crate::os::machine::huge_page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const SCHEMA: &str = "marusa/pages-plan/2";
pub const PAGE_2M: Bytes = 2 << 20;
pub const PAGE_1G: Bytes = 1 << 30;

/// Which pages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Pages of the processor's huge page size, where that is not 2M: 32M with base pages of 16 KiB, 512M with 64.
    #[serde(rename = "hugetlb")]
    HugeTlb,
    #[serde(rename = "hugetlb-2m")]
    HugeTlb2M,
    #[serde(rename = "hugetlb-1g")]
    HugeTlb1G,
    Thp,
}

impl Mode {
    /// Pages that a JVM takes with -XX:+UseLargePages and nothing else, where the host's default is the processor's.
    pub fn hugetlb() -> Mode {
        if huge_page() == PAGE_2M { Mode::HugeTlb2M } else { Mode::HugeTlb }
    }

    /// The largest pages of the mode.
    pub fn page_bytes(self) -> Bytes {
        match self {
            Mode::HugeTlb1G => PAGE_1G,
            Mode::HugeTlb2M => PAGE_2M,
            Mode::HugeTlb | Mode::Thp => huge_page(),
        }
    }
}

/// The implementation of the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vm {
    HotSpot,
    OpenJ9,
}

/// The JVM that the plan is for: all that the sizes of its reservations follow from.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Subject {
    pub vm: Vm,
    /// 8, 11, 17, 21, 25.
    pub feature: u32,
    /// "17.0.15+6", where a JDK or a JVM said so.
    pub version: Option<String>,
    pub java_home: Option<String>,
    pub gc: Gc,
    pub heap_initial_bytes: Bytes,
    pub heap_max_bytes: Bytes,
    /// CPUs that the JVM counts (`os::initial_active_processor_count`).
    pub cpus: u32,
    /// Flags that differ from the default of this JDK or that a JVM has set, by name, in the text of -XX:+PrintFlagsFinal:
    /// ReservedCodeCacheSize, G1HeapRegionSize, ParallelGCThreads, ...
    pub flags: BTreeMap<String, String>,
}

/// One reservation of the JVM, and the pages that it takes.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Need {
    pub area: Area,
    /// As the account names it: "CodeHeap 'non-nmethods'", "mark bitmap".
    pub part: String,
    pub bytes: Bytes,
    /// On which pages it comes to lie: 4096 where the JVM asks for no larger ones.
    pub page_bytes: Bytes,
    pub pages: u64,
    /// What it takes in any case. Less than `pages` where the place of the mapping decides whether the last page fits (8 and
    /// 11), or where the JVM takes the rest when the heap grows (ZGC).
    pub pages_at_least: u64,
    /// What the JVM does where the pages lack.
    pub without: Without,
    /// The rule, with its source: "heap / 64, JDK 21 g1ConcurrentMarkBitMap".
    pub rule: String,
}

impl Need {
    /// All of it on pages of one size, or on 4K pages.
    pub fn new(area: Area, part: &str, bytes: Bytes, page_bytes: Bytes, rule: &str) -> Need {
        let pages = bytes.div_ceil(page_bytes);
        Need {
            area,
            part: part.to_string(),
            bytes,
            page_bytes,
            pages,
            pages_at_least: pages,
            without: Without::SmallPages,
            rule: rule.to_string(),
        }
    }
}

/// What becomes of a reservation for which the pool has too few pages. A reservation gets all of them or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Without {
    /// It comes to lie on 4K pages.
    SmallPages,
    /// It takes the next smaller size of large pages, and 4K pages only where those lack too (21 and later).
    NextSmaller,
    /// The VM does not start.
    VmExits,
    /// The VM waits for pages, then makes the heap smaller, and may not start (ZGC of 11).
    HeapShrinks,
}

/// One size of pages: what is needed and how the host gives it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct PoolNeed {
    pub page_bytes: Bytes,
    pub pages: u64,
    /// Free in the pool now and not reserved.
    pub free_pages: u64,
    /// To be added.
    pub add_pages: u64,
    pub how: How,
    /// Why that way, and why it can be done now (or not).
    pub why: String,
}

/// By which way pages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// They are there.
    Free,
    /// `nr_hugepages`.
    Pool,
    /// `nr_overcommit_hugepages`: taken when the JVM asks, given back when it ends.
    Overcommit,
    /// Only from the kernel's command line, at the next start of the host.
    Boot,
}

/// Threads of the collector, where they are out of proportion to the CPUs.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct GcThreads {
    pub cpus: u32,
    pub parallel: u32,
    pub concurrent: Option<u32>,
    /// What the JVM's own formula gives for these CPUs.
    pub parallel_by_formula: u32,
    pub concurrent_by_formula: Option<u32>,
    pub advice: Option<String>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Plan {
    pub schema: String,
    pub made_at: String,
    pub made_by: String,
    pub host: HostId,
    pub subject: Subject,
    pub mode: Mode,
    pub needs: Vec<Need>,
    pub pools: Vec<PoolNeed>,
    /// What changes now, in this order.
    pub steps: Vec<Step>,
    /// What makes it stay over a restart of the host (`apply --persist`).
    pub persist: Vec<Step>,
    /// For the kernel's command line, where that is the only way.
    pub boot: Vec<String>,
    /// Options that the JVM must be started with.
    pub jvm_options: Vec<String>,
    pub gc_threads: Option<GcThreads>,
    pub costs: Vec<String>,
    pub risks: Vec<String>,
    pub gaps: Vec<Gap>,
    #[serde(default)]
    pub outlook: Outlook,
}

/// Whether something is available now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feasible {
    No,
    /// Known only by trying.
    #[default]
    Perhaps,
    Yes,
}

/// What the host can give now, next to what is asked of it.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Outlook {
    /// The name of the plan and of the files that `--persist` makes: letters, digits and dashes.
    pub name: String,
    pub feasible: Feasible,
    pub feasible_why: String,
    /// By which rule `--mode auto` chose; `None` where the user did.
    pub mode_why: Option<String>,
    /// JVMs of this kind that are to run at the same time.
    pub instances: u64,
    /// The `jvm_options` that the user did not give.
    #[serde(default)]
    pub recommended: Vec<String>,
    pub memory: MemoryOutlook,
    pub sizes: Vec<SizeOutlook>,
    /// What belongs into /etc/security/limits.d; empty where nothing is needed.
    #[serde(default)]
    pub memlock: Vec<Memlock>,
    /// The group and the limits of shared memory that the steps set.
    #[serde(default)]
    pub shm: Vec<Put>,
}

/// The memory of the host before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct MemoryOutlook {
    pub total_bytes: Bytes,
    /// What programs may take now without harm (MemAvailable).
    pub available_bytes: Bytes,
    /// What the steps take at once; overcommit takes it when the JVM starts.
    pub taken_bytes: Bytes,
    pub left_bytes: Bytes,
    /// Less than this is not left to the rest of the host.
    pub reserve_bytes: Bytes,
    pub nodes: Vec<NodeOutlook>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct NodeOutlook {
    pub node: u32,
    pub free_bytes: Bytes,
    /// 2 MiB pages that its free blocks give at once.
    pub at_once_pages: u64,
}

/// How many pages of one size are available.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SizeOutlook {
    pub page_bytes: Bytes,
    /// Lower bound: free blocks that are large enough, above the watermarks.
    pub at_once_pages: u64,
    /// Upper bound, with compaction and reclaim: never a promise.
    pub at_most_pages: u64,
    pub fragmentation_index: Option<f64>,
    /// The tightest limit of the cgroups, and its file.
    pub limit_pages: Option<u64>,
    pub limit_file: Option<String>,
}
