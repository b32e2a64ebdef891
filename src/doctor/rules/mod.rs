//! One file a finding; this is the list of them. A line names the file, the id, and the levels that it may find.

use super::types::{Entry, Rule};

macro_rules! rules {
    ($($file:ident $id:literal [$($level:ident),+];)*) => {
        /// In the order in which they are explained.
        pub const RULES: &[&Rule] = &[$(&$file::RULE),*];

        /// The same, each with its levels and the page that explains it.
        pub const CATALOG: &[Entry] = &[$(Entry {
            rule: &$file::RULE,
            levels: &[$(crate::doctor::Level::$level),+],
            page: include_str!(concat!("../../../docs/findings/", $id, ".md")),
        }),*];
    };
}

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
mod large_pages_group_limit;
mod large_pages_not_got;
mod large_pages_switched_off;
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
mod thp_not_got;
mod thp_off_by_prctl;
mod thp_other_size;
mod thp_sizes_odd;
mod thp_sparse_heap;
mod thp_stacks;
pub mod thread_pool_large;
mod thread_stacks;
mod threads_near_limit;
pub mod unattributed_large;
mod vfork_deprecated;
mod zgc_shmem_thp_off;
mod zone_reclaim;

pub use fork_large_heap::is_forking;

rules! {
    // Page sizes.
    large_pages_not_got "large-pages-not-got" [Info, Warn];
    large_pages_switched_off "large-pages-switched-off" [Info, Warn];
    large_pages_group_limit "large-pages-group-limit" [Info, Warn];
    thp_not_got "thp-not-got" [Warn];
    thp_other_size "thp-other-size" [Warn];
    zgc_shmem_thp_off "zgc-shmem-thp-off" [Warn];
    thp_off_by_prctl "thp-off-by-prctl" [Warn];
    heap_page_split "heap-page-split" [Info, Warn];
    page_size_misreported "page-size-misreported" [Info];
    hugetlb_pool_unused "hugetlb-pool-unused" [Info, Warn];
    hugetlb_surplus "hugetlb-surplus" [Info];
    hugetlb_node_split "hugetlb-node-split" [Info, Warn];
    thp_always_harm "thp-always-harm" [Info, Warn];
    thp_defrag_stalls "thp-defrag-stalls" [Info, Warn];
    khugepaged_busy "khugepaged-busy" [Info, Warn];
    thp_sparse_heap "thp-sparse-heap" [Info];
    thp_sizes_odd "thp-sizes-odd" [Info];
    large_heap_small_pages "large-heap-small-pages" [Info];
    code_cache_small_pages "code-cache-small-pages" [Info];
    text_small_pages "text-small-pages" [Info];
    page_tables_large "page-tables-large" [Info, Warn];
    // Huge pages that hold nothing.
    thp_bloat "thp-bloat" [Info, Warn];
    thp_stacks "thp-stacks" [Warn];
    thp_malloc_arenas "thp-malloc-arenas" [Warn];
    // Memory of the JVM
    container_limit "container-limit" [Info, Warn, Critical];
    limit_filled "limit-filled" [Info, Warn];
    malloc_freed_held "malloc-freed-held" [Info, Warn];
    malloc_arenas "malloc-arenas" [Info, Warn];
    no_trim_set "no-trim-set" [Info];
    direct_buffers_near_limit "direct-buffers-near-limit" [Warn, Critical];
    explicit_gc_disabled "explicit-gc-disabled" [Info, Warn];
    code_cache_near_full "code-cache-near-full" [Info, Warn, Critical];
    metaspace_near_limit "metaspace-near-limit" [Warn, Critical];
    metaspace_fragmentation "metaspace-fragmentation" [Info, Warn];
    heap_committed_untouched "heap-committed-untouched" [Info];
    heap_can_shrink "heap-can-shrink" [Info];
    swap_heap "swap-heap" [Warn, Critical];
    nmt_on "nmt-on" [Info, Warn];
    thread_stacks "thread-stacks" [Info, Warn];
    memory_grows "memory-grows" [Info, Warn];
    class_loaders_many "class-loaders-many" [Info, Warn];
    mapped_files_many "mapped-files-many" [Info, Warn];
    thread_pool_large "thread-pool-large" [Info, Warn];
    humongous_tails "humongous-tails" [Info, Warn];
    unattributed_large "unattributed-large" [Info];
    jni_library_memory "jni-library-memory" [Info];
    native_memory_unreached "native-memory-unreached" [Info, Warn];
    nio_cache_large "nio-cache-large" [Info, Warn];
    native_memory_not_closed "native-memory-not-closed" [Warn];
    // CPUs, the release, limits, and the host
    gc_threads "gc-threads" [Info, Warn];
    compiler_threads "compiler-threads" [Info, Warn];
    container_support_off "container-support-off" [Warn];
    cpu_throttled "cpu-throttled" [Info, Warn];
    numa_imbalance "numa-imbalance" [Warn];
    numa_off "numa-off" [Info];
    zone_reclaim "zone-reclaim" [Info, Warn];
    fork_large_heap "fork-large-heap" [Info, Warn];
    vfork_deprecated "vfork-deprecated" [Info];
    jdk_known_fix "jdk-known-fix" [Info, Warn];
    jdk_replaced "jdk-replaced" [Warn];
    kcompactd_busy "kcompactd-busy" [Warn, Critical];
    kswapd_busy "kswapd-busy" [Warn, Critical];
    memory_pressure "memory-pressure" [Warn, Critical];
    swapping "swapping" [Warn, Critical];
    ksm_on_heap "ksm-on-heap" [Info];
    commit_limit_near "commit-limit-near" [Warn, Critical];
    max_map_count_near "max-map-count-near" [Info, Warn, Critical];
    threads_near_limit "threads-near-limit" [Warn, Critical];
    files_near_limit "files-near-limit" [Info, Warn];
    perf_data_on_disk "perf-data-on-disk" [Info];
}
