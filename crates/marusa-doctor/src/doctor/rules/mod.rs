//! One file a finding, or a family of findings; this is the list of them. A line has the id, the title, the function that finds it
//! and what that judges at once (`Find`), and the levels that it may find.

use super::facts::Facts;
use super::types::{Entry, Find, Finding, Rule};

macro_rules! rules {
    ($($id:literal $title:literal $of:ident($find:path) [$($level:ident),+];)*) => {
        /// In the order in which they are explained.
        pub const CATALOG: &[Entry] = &[$(Entry {
            rule: &Rule { id: $id, title: $title, find: Find::$of($find) },
            levels: &[$(crate::doctor::Level::$level),+],
            page: include_str!(concat!("../../../../../docs/findings/", $id, ".md")),
        }),*];
    };
}

mod asked_not_got;
mod class_loaders_many;
mod code_cache_near_full;
pub mod container_limit;
mod container_support_off;
mod cpu_throttled;
mod direct_buffers;
mod fork_by_library;
mod heap_unused;
mod hugetlb_node_split;
mod hugetlb_pools;
mod jdk_known_fix;
mod jdk_replaced;
mod jni_library_memory;
mod kernel_threads;
mod known_conditions;
mod known_fixes;
mod ksm_on_heap;
mod launch_mechanism;
mod limit_filled;
pub mod malloc_freed_held;
pub mod mapped_files_many;
mod memory_nodes;
mod memory_pressure;
mod metaspace;
pub mod native_memory_not_closed;
mod native_memory_unreached;
mod near_limits;
pub mod nio_cache_large;
mod nmt_on;
#[cfg(test)]
#[path = "page_cases_tests.rs"]
pub mod page_cases;
mod page_size_misreported;
mod page_tables_large;
mod perf_data_on_disk;
mod small_pages;
mod swap;
mod thp_always_harm;
mod thp_bloat;
mod thp_defrag_stalls;
mod thp_malloc_arenas;
mod thp_sizes_odd;
mod thp_sparse_heap;
mod thp_stacks;
pub mod thread_pool_large;
mod thread_stacks;
pub mod unattributed_large;
mod vm_threads;

pub use launch_mechanism::is_forking;

rules! {
    // Page sizes.
    "large-pages-not-got" "HugeTLB pages were asked for, and the pool was too small" JvmHere(asked_not_got::pool) [Info, Warn];
    "large-pages-switched-off" "HugeTLB pages were asked for, and the JVM switched its flag off at start"
        JvmHere(asked_not_got::switched_off) [Info, Warn];
    "large-pages-group-limit" "HugeTLB pages were asked for, and a cgroup allows too few"
        Jvm(asked_not_got::group_limit) [Info, Warn];
    "thp-not-got" "transparent huge pages were asked for, and the memory is on small pages" Jvm(asked_not_got::transparent) [Warn];
    "thp-other-size" "transparent huge 2 MiB pages were asked for, and others were given" Jvm(asked_not_got::other_size) [Warn];
    "zgc-shmem-thp-off" "ZGC asked for transparent huge pages, and shared memory gets none" Jvm(asked_not_got::shared_off) [Warn];
    "thp-off-by-prctl" "transparent huge pages were asked for, and are switched off for the process"
        Jvm(asked_not_got::process_disabled) [Warn];
    "heap-page-split" "the Java heap is split between page sizes" Jvm(small_pages::heap_split) [Info, Warn];
    "page-size-misreported" "the JVM's own words about its page sizes are wrong" Jvm(page_size_misreported::of) [Info];
    "hugetlb-pool-unused" "pages of hugetlb are reserved and unused" Facts(hugetlb_pools::unused) [Info, Warn];
    "hugetlb-surplus" "pages of hugetlb are in use that nothing promises to the next start" Facts(hugetlb_pools::surplus) [Info];
    "hugetlb-node-split" "the pages of hugetlb are on the wrong nodes of memory" Facts(hugetlb_node_split::find) [Info, Warn];
    "thp-always-harm" "THP always does measured harm" One(thp_always_harm::find) [Info, Warn];
    "thp-defrag-stalls" "threads of JVMs wait for compaction at faults" One(thp_defrag_stalls::of) [Info, Warn];
    "khugepaged-busy" "khugepaged takes CPU time for the heaps of JVMs" One(kernel_threads::khugepaged) [Info, Warn];
    "thp-sparse-heap" "khugepaged may fill the holes of a sparse heap" JvmHere(thp_sparse_heap::find) [Info];
    "thp-sizes-odd" "the switches of THP's sizes contradict what a JVM reads" One(thp_sizes_odd::find) [Info];
    "large-heap-small-pages" "a large heap is on small pages, and nothing was asked for"
        JvmHere(small_pages::large_heap) [Info];
    "code-cache-small-pages" "JIT code is on small pages though large ones were asked for" Jvm(small_pages::code_cache) [Info];
    "text-small-pages" "libraries are on small pages and could be on large ones" JvmHere(small_pages::libraries) [Info];
    "page-tables-large" "page tables take memory out of proportion" Facts(page_tables_large::find) [Info, Warn];
    // Huge pages that hold nothing.
    "thp-bloat" "huge pages that are mostly pages of zeros" JvmHere(thp_bloat::of_jvm) [Info, Warn];
    "thp-stacks" "thread stacks blown up by huge pages" JvmHere(thp_stacks::of_jvm) [Warn];
    "thp-malloc-arenas" "malloc's arenas on huge pages that hold freed or unused memory" JvmHere(thp_malloc_arenas::of_jvm) [Warn];
    // Memory of the JVM
    "container-limit" "the memory limit against what the JVM needs with a full heap"
        Jvm(container_limit::find) [Info, Warn, Critical];
    "limit-filled" "tmpfs, sockets, slab or page cache that fill the limit" Several(limit_filled::find) [Info, Warn];
    "malloc-freed-held" "malloc holds memory that the program freed" Jvm(malloc_freed_held::find) [Info, Warn];
    "malloc-arenas" "many arenas of malloc each hold freed memory" Jvm(malloc_freed_held::many_arenas) [Info, Warn];
    "no-trim-set" "the JVM could trim malloc's memory by itself, and does not" Jvm(malloc_freed_held::no_trim_set) [Info];
    "direct-buffers-near-limit" "direct buffers are near their limit" Jvm(direct_buffers::near_limit) [Warn, Critical];
    "explicit-gc-disabled" "System.gc() is switched off, which frees direct buffers at their limit"
        Jvm(direct_buffers::explicit_gc_disabled) [Info, Warn];
    "code-cache-near-full" "the code cache is near its end" Jvm(code_cache_near_full::find) [Info, Warn, Critical];
    "metaspace-near-limit" "class metadata is near its limit" Jvm(metaspace::near_limit) [Warn, Critical];
    "metaspace-fragmentation" "much of the metaspace is committed and unused" Jvm(metaspace::fragmentation) [Info, Warn];
    "heap-committed-untouched" "part of the committed heap is not in memory yet" Jvm(heap_unused::untouched) [Info];
    "heap-can-shrink" "much of the heap is in memory and free" Jvm(heap_unused::can_shrink) [Info];
    "swap-heap" "part of the Java heap is swapped out" JvmHere(swap::heap) [Warn, Critical];
    "nmt-on" "Native Memory Tracking is on" Jvm(nmt_on::find) [Info, Warn];
    "thread-stacks" "the stacks of many threads hold much memory" Jvm(thread_stacks::find) [Info, Warn];
    "memory-grows" "an area grows, by a recording" Facts(only_recorded) [Info, Warn];
    "class-loaders-many" "very many class loaders of one class, or very much class metadata"
        Jvm(class_loaders_many::find) [Info, Warn];
    "mapped-files-many" "many mappings, or many bytes, of files that the program mapped" Jvm(mapped_files_many::find) [Info, Warn];
    "thread-pool-large" "very many threads of one name" Jvm(thread_pool_large::find) [Info, Warn];
    "humongous-tails" "much of the heap is lost behind humongous objects" Jvm(heap_unused::humongous_tails) [Info, Warn];
    "unattributed-large" "much memory has no known owner" Jvm(unattributed_large::find) [Info];
    "jni-library-memory" "A native library holds much memory" Jvm(jni_library_memory::find) [Info];
    "native-memory-unreached" "Nothing leads to much of malloc's memory in use: it probably leaked (with --holders)"
        Jvm(native_memory_unreached::find) [Info, Warn];
    "nio-cache-large" "Threads hold much memory in the JDK's temporary direct buffers (with --holders)"
        Jvm(nio_cache_large::find) [Info, Warn];
    "native-memory-not-closed" "Many instances of a class that must be closed hold much native memory (with --holders)"
        Several(native_memory_not_closed::find) [Warn];
    // CPUs, the release, limits, and the host
    "gc-threads" "the number of GC threads is far from what the JVM itself would take for its CPUs"
        Jvm(vm_threads::gc) [Info, Warn];
    "compiler-threads" "the JVM has far more compiler threads than it would itself take for its CPUs"
        Jvm(vm_threads::compiler) [Info, Warn];
    "container-support-off" "the JVM ignores the limits of its cgroup" JvmHere(container_support_off::of) [Warn];
    "cpu-throttled" "the CPU quota of the cgroup stops the JVM" Jvm(cpu_throttled::of) [Info, Warn];
    "numa-imbalance" "one node of memory is nearly full while another has plenty" One(memory_nodes::imbalance) [Warn];
    "numa-off" "a large heap spans nodes of memory, and UseNUMA is off" JvmHere(memory_nodes::numa_off) [Info];
    "zone-reclaim" "a full node of memory reclaims before it takes another node's" One(memory_nodes::zone_reclaim) [Info, Warn];
    "fork-large-heap" "the JVM starts processes by fork, which copies its page tables" JvmHere(launch_mechanism::fork) [Info, Warn];
    "fork-by-library" "a library starts processes by a fork of its own, which copies the JVM's page tables"
        JvmHere(fork_by_library::of) [Info, Warn];
    "vfork-deprecated" "the JVM starts processes by vfork, which its JDK has deprecated" Jvm(launch_mechanism::vfork) [Info];
    "jdk-known-fix" "a fault of this JDK shows here that a later release does not have" Several(jdk_known_fix::find) [Info, Warn];
    "jdk-replaced" "the JDK was replaced under the running JVM" Jvm(jdk_replaced::of) [Warn];
    "kcompactd-busy" "the kernel spends CPU time on compacting memory" One(kernel_threads::kcompactd) [Warn, Critical];
    "kswapd-busy" "the kernel spends CPU time on finding memory to take back" One(kernel_threads::kswapd) [Warn, Critical];
    "memory-pressure" "tasks wait for memory, or hardly any is available" One(memory_pressure::of) [Warn, Critical];
    "swapping" "pages come back from swap all the time" One(swap::swapping) [Warn, Critical];
    "ksm-on-heap" "ksmd merges pages of a JVM, which are copied again when written" JvmHere(ksm_on_heap::of) [Info];
    "commit-limit-near" "the kernel has promised nearly all memory that it may" One(near_limits::commit) [Warn, Critical];
    "max-map-count-near" "the JVM is near the limit of mappings" JvmHere(near_limits::mappings) [Info, Warn, Critical];
    "threads-near-limit" "a limit of threads is nearly reached" Jvm(near_limits::threads) [Warn, Critical];
    "files-near-limit" "the limit of open files is nearly reached" Jvm(near_limits::files) [Info, Warn];
    "perf-data-on-disk" "the JVM's counters are on a busy disk, and safepoints may wait for it"
        JvmHere(perf_data_on_disk::of) [Info];
}

/// Memory that grows: `recorded` finds it by the evidence of `leak`. One reading of a running JVM cannot.
fn only_recorded(_: &Facts) -> Vec<Finding> {
    Vec::new()
}
