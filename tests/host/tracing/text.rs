//! Against the kernel's own text, of an instance that the test makes.

use super::{directory, now_ns, of, own_tid, touch, tracing_of_all};
use crate::common::host::{Host, THP};
use marusa::act::tracing::Wanted;
use marusa::os::trace::{Event, What};
use std::collections::BTreeMap;
use std::path::PathBuf;

const EVENTS: [(&str, &str); 18] = [
    ("compaction/mm_compaction_begin", ""),
    ("compaction/mm_compaction_end", ""),
    ("compaction/mm_compaction_try_to_compact_pages", ""),
    ("compaction/mm_compaction_deferred", ""),
    ("compaction/mm_compaction_kcompactd_wake", ""),
    ("compaction/mm_compaction_kcompactd_sleep", ""),
    ("vmscan/mm_vmscan_direct_reclaim_begin", ""),
    ("vmscan/mm_vmscan_direct_reclaim_end", ""),
    ("vmscan/mm_vmscan_memcg_reclaim_begin", ""),
    ("vmscan/mm_vmscan_memcg_reclaim_end", ""),
    ("vmscan/mm_vmscan_kswapd_wake", ""),
    ("vmscan/mm_vmscan_kswapd_sleep", ""),
    ("kmem/mm_page_alloc", "order >= 2"),
    ("kmem/mm_page_alloc_extfrag", ""),
    ("huge_memory/mm_khugepaged_scan_pmd", ""),
    ("huge_memory/mm_khugepaged_scan_file", ""),
    ("huge_memory/mm_collapse_huge_page", ""),
    ("huge_memory/mm_khugepaged_collapse_file", ""),
];

/// An instance that is read as text.
struct Other {
    directory: PathBuf,
}

impl Other {
    fn start() -> Other {
        let directory = directory().join(format!("instances/test-of-marusa-{}", std::process::id()));
        std::fs::create_dir(&directory).expect("an instance");
        let other = Other { directory };
        other.write("trace_clock", "mono");
        other.write("buffer_size_kb", "8192");
        for (event, filter) in EVENTS {
            if !filter.is_empty() {
                other.write(&format!("events/{event}/filter"), filter);
            }
            other.write(&format!("events/{event}/enable"), "1");
        }
        other
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.directory.join(file), text).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// One line: CPU, thread, microseconds, and what it says in the words of `said`.
fn parsed(line: &str) -> Option<(u32, i32, u64, String)> {
    let pattern =
        regex::Regex::new(r"-(\d+) +\[(\d+)\] (\S+) +(\d+)\.(\d{6}): (\w+): (.*)$").expect("a pattern");
    let found = pattern.captures(line)?;
    let number = |index: usize| found[index].parse::<u64>().expect("digits");
    let rest = &found[7];
    let tid = if is_interrupt(&found[3]) { 0 } else { number(1) as i32 };
    let value = |key: &str| {
        let after = rest.split_once(&format!("{key}="))?.1;
        after.split([' ', ',']).next().map(str::to_string)
    };
    let said = |name: &str, keys: &[&str]| {
        let values = keys.iter().map(|key| value(key).unwrap_or_else(|| panic!("{key} in {line}")));
        std::iter::once(name.to_string()).chain(values).collect::<Vec<_>>().join(" ")
    };
    let said = match &found[6] {
        "mm_compaction_begin" => said("compaction begin", &["mode"]),
        "mm_compaction_end" => said("compaction end", &["mode", "status"]),
        "mm_compaction_try_to_compact_pages" => said("compaction try", &["order"]),
        "mm_compaction_deferred" => said("compaction deferred", &["order"]),
        "mm_compaction_kcompactd_wake" => said("kcompactd wake", &["nid", "order"]),
        "mm_compaction_kcompactd_sleep" => said("kcompactd sleep", &["nid"]),
        "mm_vmscan_direct_reclaim_begin" => said("reclaim begin", &["order"]),
        "mm_vmscan_direct_reclaim_end" => said("reclaim end", &["nr_reclaimed"]),
        "mm_vmscan_memcg_reclaim_begin" => said("group reclaim begin", &["order"]),
        "mm_vmscan_memcg_reclaim_end" => said("group reclaim end", &["nr_reclaimed"]),
        "mm_vmscan_kswapd_wake" => said("kswapd wake", &["nid", "order"]),
        "mm_vmscan_kswapd_sleep" => said("kswapd sleep", &["nid"]),
        "mm_page_alloc" => said("page alloc", &["order"]),
        "mm_page_alloc_extfrag" => said("extfrag", &["alloc_order", "fallback_order", "fragmenting"]),
        "mm_khugepaged_scan_pmd" => said("scan", &["status"]),
        "mm_khugepaged_scan_file" => said("scan file", &["result"]),
        "mm_collapse_huge_page" => said("collapse", &["status"]),
        "mm_khugepaged_collapse_file" => said("collapse file", &["result"]),
        other => panic!("{other} was not asked for"),
    };
    Some((number(2) as u32, tid, number(4) * 1_000_000 + number(5), said))
}

/// An event in the same words; `None`: the other instance does not have those.
fn said(event: &Event) -> Option<String> {
    let mode = |is_sync: bool| if is_sync { "sync" } else { "async" };
    let file = |is_file: bool| if is_file { " file" } else { "" };
    Some(match event.what {
        What::CompactionBegin { is_sync } => format!("compaction begin {}", mode(is_sync)),
        What::CompactionEnd { is_sync, status } => {
            format!("compaction end {} {}", mode(is_sync), status)
        }
        What::CompactionTry { order } => format!("compaction try {order}"),
        What::CompactionDeferred { order } => format!("compaction deferred {order}"),
        What::ReclaimBegin { order } => format!("reclaim begin {order}"),
        What::ReclaimEnd { pages } => format!("reclaim end {pages}"),
        What::GroupReclaimBegin { order } => format!("group reclaim begin {order}"),
        What::GroupReclaimEnd { pages } => format!("group reclaim end {pages}"),
        What::PageAlloc { order, .. } => format!("page alloc {order}"),
        What::ExtFrag { order, fallback_order, is_fragmenting } => {
            format!("extfrag {order} {fallback_order} {}", u8::from(is_fragmenting))
        }
        What::KhugepagedScan { status, is_file, .. } => format!("scan{} {}", file(is_file), status),
        What::Collapse { status, is_file, .. } => format!("collapse{} {}", file(is_file), status),
        What::KcompactdWake { node, order } => format!("kcompactd wake {node} {order}"),
        What::KcompactdSleep { node } => format!("kcompactd sleep {node}"),
        What::KswapdWake { node, order } => format!("kswapd wake {node} {order}"),
        What::KswapdSleep { node } => format!("kswapd sleep {node}"),
        What::PageTable | What::Throttled { .. } => return None,
    })
}

/// The kernel's text names who was on the CPU; its flags, `irqs-off`, `need-resched`, then `h`, `H`, `s` or `z`, that it was
/// interrupted.
fn is_interrupt(flags: &str) -> bool {
    flags.chars().nth(2).is_some_and(|letter| "hHsZz".contains(letter))
}

/// Asks the kernel for the collapse of a range that was written 4 KiB at a time.
fn collapse() {
    const HUGE: usize = 2 << 20;
    const COLLAPSE: i32 = 25;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a mapping of our own, touched within its bounds and unmapped at the end.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), 2 * HUGE, access, kind, -1, 0);
        assert!(start != libc::MAP_FAILED);
        libc::madvise(start, 2 * HUGE, libc::MADV_NOHUGEPAGE);
        let block = start.byte_add(start.align_offset(HUGE).min(HUGE));
        (0..HUGE).step_by(4096).for_each(|offset| block.cast::<u8>().add(offset).write_volatile(1));
        libc::madvise(start, 2 * HUGE, libc::MADV_HUGEPAGE);
        assert_eq!(libc::madvise(block, HUGE, COLLAPSE), 0, "{}", std::io::Error::last_os_error());
        libc::munmap(start, 2 * HUGE);
    }
}

/// Between the two instances' times of one event.
const APART_US_MAX: u64 = 10_000;

/// Huge pages, a collapse and compaction, under the host's lock.
#[test]
fn what_is_read_is_what_the_kernel_prints() {
    let Some(mut tracing) = tracing_of_all(&Wanted::default()) else { return };
    assert_eq!(tracing.gaps(), [], "this kernel has them all");
    let mut host = Host::lock();
    host.set(format!("{THP}/enabled"), "madvise").expect("huge pages on request");
    let other = Other::start();
    let from_us = now_ns().div_ceil(1000);
    touch(16 << 20, 2 << 20, libc::MADV_HUGEPAGE, true);
    collapse();
    std::fs::write("/proc/sys/vm/compact_memory", "1").expect("compaction");
    let to_us = now_ns() / 1000;
    let text = std::fs::read_to_string(other.directory.join("trace")).expect("text");
    drop((other, host));
    let batch = tracing.read().expect("events");
    assert_eq!((batch.lost, batch.undecoded), (0, 0));
    assert!(batch.holes.is_empty() && batch.events.is_sorted_by_key(|event| event.at_ns));

    let mut ours: BTreeMap<(u32, i32), Vec<(u64, String)>> = BTreeMap::new();
    let rounded = |at_ns: u64| (at_ns + 500) / 1000;
    for event in batch.events.iter().filter(|event| (from_us..to_us).contains(&rounded(event.at_ns))) {
        if let Some(words) = said(event) {
            ours.entry((event.cpu, event.tid)).or_default().push((rounded(event.at_ns), words));
        }
    }
    let mut kernels: BTreeMap<(u32, i32), Vec<(u64, String)>> = BTreeMap::new();
    for (cpu, tid, at_us, words) in text.lines().filter(|line| !line.starts_with('#')).filter_map(parsed) {
        if (from_us..to_us).contains(&at_us) {
            kernels.entry((cpu, tid)).or_default().push((at_us, words));
        }
    }
    assert_eq!(ours.keys().collect::<Vec<_>>(), kernels.keys().collect::<Vec<_>>());
    let mut count = 0;
    for (of, list) in &ours {
        let words = |list: &[(u64, String)]| list.iter().map(|(_, words)| words.clone()).collect::<Vec<_>>();
        assert_eq!(words(list), words(&kernels[of]), "CPU and thread {of:?}");
        for ((our_us, words), (their_us, _)) in list.iter().zip(&kernels[of]) {
            // Two instances take the time one after the other; a hypervisor may come between.
            assert!(our_us.abs_diff(*their_us) <= APART_US_MAX, "{words} at {our_us} and at {their_us}");
        }
        count += list.len();
    }
    println!("{count} events alike in both, {} bytes for {} events", batch.bytes, batch.events.len());

    let own = of(&batch, own_tid());
    let begins = own.iter().filter(|event| matches!(event.what, What::CompactionBegin { .. })).count();
    let ends = own.iter().filter(|event| matches!(event.what, What::CompactionEnd { .. })).count();
    assert!(begins > 0 && begins == ends, "{begins} begins and {ends} ends");
    let is_known = |event: &Event| {
        !matches!(event.what, What::CompactionEnd { status: "other", .. })
            && !matches!(
                event.what,
                What::KhugepagedScan { status: "other", .. } | What::Collapse { status: "other", .. }
            )
    };
    assert!(batch.events.iter().all(is_known), "each status has its word");
    let collapsed = |event: &&Event| matches!(event.what, What::Collapse { status: "succeeded", .. });
    assert_eq!(own.iter().filter(collapsed).count(), 1);
    assert_eq!(batch.tgids.get(&own_tid()), Some(&(std::process::id() as i32)));
}

/// The time from a huge page to its page table is the time of its fault.
#[test]
fn the_time_of_a_huge_fault_is_that_of_the_clock() {
    let Some(mut tracing) = tracing_of_all(&Wanted::default()) else { return };
    if let Err(gap) = tracing.fault_times() {
        return crate::common::skip(&gap.to_string());
    }
    let mut host = Host::lock();
    host.set(format!("{THP}/enabled"), "madvise").expect("huge pages on request");
    tracing.read().expect("events of before");
    let took_ns = touch(128 << 20, 2 << 20, libc::MADV_HUGEPAGE, true);
    let own = of(&tracing.read().expect("events"), own_tid());
    let mut zeroing_ns = 0;
    let mut faults = 0;
    let mut page = None;
    for event in own {
        match event.what {
            What::PageAlloc { order: 9, is_failed: false } => page = Some(event.at_ns),
            What::PageTable => {
                if let Some(began) = page.take() {
                    zeroing_ns += event.at_ns - began;
                    faults += 1;
                }
            }
            _ => page = None,
        }
    }
    println!("{faults} faults: {zeroing_ns} ns of {took_ns} ns");
    assert_eq!(faults, 64);
    assert!(zeroing_ns <= took_ns && zeroing_ns * 10 >= took_ns * 6);
}
