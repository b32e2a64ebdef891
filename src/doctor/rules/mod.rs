//! One file a finding, or a family of findings; this is the list of them. A line names the id, the rule, and the levels that
//! it may find.

use super::types::{Entry, Rule};

macro_rules! rules {
    ($($id:literal $rule:path [$($level:ident),+];)*) => {
        /// In the order in which they are explained.
        pub const RULES: &[&Rule] = &[$(&$rule),*];

        /// The same, each with its levels and the page that explains it.
        pub const CATALOG: &[Entry] = &[$(Entry {
            rule: &$rule,
            levels: &[$(crate::doctor::Level::$level),+],
            page: include_str!(concat!("../../../docs/findings/", $id, ".md")),
        }),*];
    };
}

mod asked_not_got;
mod class_loaders_many;
mod code_cache_near_full;
mod code_cache_small_pages;
mod commit_limit_near;
mod compiler_threads;
pub mod container_limit;
mod container_support_off;
mod cpu_throttled;
mod direct_buffers_near_limit;
mod explicit_gc_disabled;
mod files_near_limit;
mod fork_large_heap;
mod gc_threads;
mod heap_can_shrink;
mod heap_committed_untouched;
mod heap_page_split;
mod hugetlb_node_split;
mod hugetlb_pool_unused;
mod hugetlb_surplus;
mod humongous_tails;
mod jdk_known_fix;
mod jdk_replaced;
mod jni_library_memory;
mod kcompactd_busy;
mod khugepaged_busy;
mod known_conditions;
mod known_fixes;
mod ksm_on_heap;
mod kswapd_busy;
mod large_heap_small_pages;
mod limit_filled;
mod malloc_arenas;
pub mod malloc_freed_held;
pub mod mapped_files_many;
mod max_map_count_near;
pub mod memory_grows;
mod memory_pressure;
mod metaspace_fragmentation;
mod metaspace_near_limit;
pub mod native_memory_not_closed;
mod native_memory_unreached;
pub mod nio_cache_large;
mod nmt_on;
mod no_trim_set;
mod numa_imbalance;
mod numa_off;
#[cfg(test)]
#[path = "page_cases_tests.rs"]
pub mod page_cases;
mod page_size_misreported;
mod page_tables_large;
mod perf_data_on_disk;
mod swap_heap;
mod swapping;
mod text_small_pages;
mod thp_always_harm;
mod thp_bloat;
mod thp_defrag_stalls;
mod thp_malloc_arenas;
mod thp_sizes_odd;
mod thp_sparse_heap;
mod thp_stacks;
pub mod thread_pool_large;
mod thread_stacks;
mod threads_near_limit;
pub mod unattributed_large;
mod vfork_deprecated;
mod zone_reclaim;

pub use fork_large_heap::is_forking;

rules! {
    // Page sizes.
    "large-pages-not-got" asked_not_got::POOL [Info, Warn];
    "large-pages-switched-off" asked_not_got::SWITCHED_OFF [Info, Warn];
    "large-pages-group-limit" asked_not_got::GROUP_LIMIT [Info, Warn];
    "thp-not-got" asked_not_got::TRANSPARENT [Warn];
    "thp-other-size" asked_not_got::OTHER_SIZE [Warn];
    "zgc-shmem-thp-off" asked_not_got::SHARED_OFF [Warn];
    "thp-off-by-prctl" asked_not_got::PROCESS_DISABLED [Warn];
    "heap-page-split" heap_page_split::RULE [Info, Warn];
    "page-size-misreported" page_size_misreported::RULE [Info];
    "hugetlb-pool-unused" hugetlb_pool_unused::RULE [Info, Warn];
    "hugetlb-surplus" hugetlb_surplus::RULE [Info];
    "hugetlb-node-split" hugetlb_node_split::RULE [Info, Warn];
    "thp-always-harm" thp_always_harm::RULE [Info, Warn];
    "thp-defrag-stalls" thp_defrag_stalls::RULE [Info, Warn];
    "khugepaged-busy" khugepaged_busy::RULE [Info, Warn];
    "thp-sparse-heap" thp_sparse_heap::RULE [Info];
    "thp-sizes-odd" thp_sizes_odd::RULE [Info];
    "large-heap-small-pages" large_heap_small_pages::RULE [Info];
    "code-cache-small-pages" code_cache_small_pages::RULE [Info];
    "text-small-pages" text_small_pages::RULE [Info];
    "page-tables-large" page_tables_large::RULE [Info, Warn];
    // Huge pages that hold nothing.
    "thp-bloat" thp_bloat::RULE [Info, Warn];
    "thp-stacks" thp_stacks::RULE [Warn];
    "thp-malloc-arenas" thp_malloc_arenas::RULE [Warn];
    // Memory of the JVM
    "container-limit" container_limit::RULE [Info, Warn, Critical];
    "limit-filled" limit_filled::RULE [Info, Warn];
    "malloc-freed-held" malloc_freed_held::RULE [Info, Warn];
    "malloc-arenas" malloc_arenas::RULE [Info, Warn];
    "no-trim-set" no_trim_set::RULE [Info];
    "direct-buffers-near-limit" direct_buffers_near_limit::RULE [Warn, Critical];
    "explicit-gc-disabled" explicit_gc_disabled::RULE [Info, Warn];
    "code-cache-near-full" code_cache_near_full::RULE [Info, Warn, Critical];
    "metaspace-near-limit" metaspace_near_limit::RULE [Warn, Critical];
    "metaspace-fragmentation" metaspace_fragmentation::RULE [Info, Warn];
    "heap-committed-untouched" heap_committed_untouched::RULE [Info];
    "heap-can-shrink" heap_can_shrink::RULE [Info];
    "swap-heap" swap_heap::RULE [Warn, Critical];
    "nmt-on" nmt_on::RULE [Info, Warn];
    "thread-stacks" thread_stacks::RULE [Info, Warn];
    "memory-grows" memory_grows::RULE [Info, Warn];
    "class-loaders-many" class_loaders_many::RULE [Info, Warn];
    "mapped-files-many" mapped_files_many::RULE [Info, Warn];
    "thread-pool-large" thread_pool_large::RULE [Info, Warn];
    "humongous-tails" humongous_tails::RULE [Info, Warn];
    "unattributed-large" unattributed_large::RULE [Info];
    "jni-library-memory" jni_library_memory::RULE [Info];
    "native-memory-unreached" native_memory_unreached::RULE [Info, Warn];
    "nio-cache-large" nio_cache_large::RULE [Info, Warn];
    "native-memory-not-closed" native_memory_not_closed::RULE [Warn];
    // CPUs, the release, limits, and the host
    "gc-threads" gc_threads::RULE [Info, Warn];
    "compiler-threads" compiler_threads::RULE [Info, Warn];
    "container-support-off" container_support_off::RULE [Warn];
    "cpu-throttled" cpu_throttled::RULE [Info, Warn];
    "numa-imbalance" numa_imbalance::RULE [Warn];
    "numa-off" numa_off::RULE [Info];
    "zone-reclaim" zone_reclaim::RULE [Info, Warn];
    "fork-large-heap" fork_large_heap::RULE [Info, Warn];
    "vfork-deprecated" vfork_deprecated::RULE [Info];
    "jdk-known-fix" jdk_known_fix::RULE [Info, Warn];
    "jdk-replaced" jdk_replaced::RULE [Warn];
    "kcompactd-busy" kcompactd_busy::RULE [Warn, Critical];
    "kswapd-busy" kswapd_busy::RULE [Warn, Critical];
    "memory-pressure" memory_pressure::RULE [Warn, Critical];
    "swapping" swapping::RULE [Warn, Critical];
    "ksm-on-heap" ksm_on_heap::RULE [Info];
    "commit-limit-near" commit_limit_near::RULE [Warn, Critical];
    "max-map-count-near" max_map_count_near::RULE [Info, Warn, Critical];
    "threads-near-limit" threads_near_limit::RULE [Warn, Critical];
    "files-near-limit" files_near_limit::RULE [Info, Warn];
    "perf-data-on-disk" perf_data_on_disk::RULE [Info];
}
