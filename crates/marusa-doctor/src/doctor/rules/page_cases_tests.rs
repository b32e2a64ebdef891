//! JVMs that asked for large pages, for the tests of the rules about them: changes to a JVM without findings.

use crate::base::{Addr, Bytes, Range};
use crate::doctor::examine;
pub use crate::doctor::facts::made_up::M;
use crate::doctor::facts::made_up::{HEAP, healthy_host, healthy_jvm, joined, set_flags, view};
use crate::doctor::{Facts, Finding, HostFacts, JvmFacts, Level};
use crate::jvm::Gc;
use crate::os::host_pages::HostPages;
use crate::os::hugetlb::Pool;
use crate::os::page_kind::{Backing, PageKind, SizeRun};
use crate::os::pagemap::PageRun;
use crate::os::thp::{Thp, ThpSize};
use crate::snapshot::page_settings::Advice;

/// Tables of the collector, from the first address on.
pub const TABLES: Range = Range { start: Addr(0x7f50_0000_0000), end: Addr(0x7f51_0000_0000) };
const HUGE: Bytes = 2 << 20;

pub fn flag(jvm: &mut JvmFacts, name: &str, value: &str) {
    set_flags(jvm, &[(name, value)]);
}

/// All on small pages, as of a pool that was empty.
pub fn asks_hugetlb() -> JvmFacts {
    let mut jvm = healthy_jvm();
    flag(&mut jvm, "UseLargePages", "true");
    jvm.snapshot
        .os
        .process
        .set_arguments(crate::base::redact::words_of("java -Xmx2g -XX:+UseLargePages -jar /srv/app.jar"));
    jvm
}

/// All on small pages.
pub fn asks_transparent() -> JvmFacts {
    let mut jvm = healthy_jvm();
    set_flags(&mut jvm, &[("UseLargePages", "true"), ("UseTransparentHugePages", "true")]);
    jvm.snapshot.os.process.set_arguments(crate::base::redact::words_of(
        "java -Xmx2g -XX:+UseTransparentHugePages -jar /srv/app.jar",
    ));
    jvm
}

pub fn settings(jvm: &mut JvmFacts) -> &mut HostPages {
    &mut jvm.snapshot.taken.page_settings.as_mut().expect("it was made up").host
}
pub fn thp(jvm: &mut JvmFacts) -> &mut Thp {
    settings(jvm).thp.as_mut().expect("it was made up")
}
/// The first is of 2 MiB.
pub fn pools(jvm: &mut JvmFacts) -> &mut Vec<Pool> {
    &mut settings(jvm).pools
}

/// The words of the switches of 2 MiB and of 64 KiB.
pub fn sizes(jvm: &mut JvmFacts, huge: &str, small: &str) {
    let size = |bytes, word: &str| ThpSize { bytes, enabled: Some(word.to_string()), shmem_enabled: None };
    thp(jvm).sizes = vec![size(64 << 10, small), size(HUGE, huge)];
}

/// The JVM on a host with the settings that it was read with.
pub fn alone(mut jvm: JvmFacts) -> Facts {
    let pages = settings(&mut jvm).clone();
    Facts { host: HostFacts { pages, ..healthy_host() }, jvms: vec![jvm] }
}

/// That one rule, and no other above info, has something to say.
pub fn only_warning(jvm: JvmFacts, id: &str) -> Finding {
    let mut found = examine(&alone(jvm), &[]);
    found.retain(|finding| finding.level > Level::Info);
    assert_eq!(found.iter().map(|finding| finding.id).collect::<Vec<_>>(), [id], "{found:#?}");
    found.remove(0)
}

/// A host with these counters at the start and at the end of `seconds`.
pub fn counted(counters: &[(&str, u64, u64)], seconds: f64) -> HostFacts {
    let mut host = healthy_host();
    host.seconds = seconds;
    for (name, first, last) in counters {
        host.vmstat_first.insert(name.to_string(), *first);
        host.vmstat.insert(name.to_string(), *last);
    }
    host
}

pub fn with_modes(mut host: HostFacts, enabled: &str, defrag: &str) -> HostFacts {
    let thp = host.pages.thp.as_mut().expect("it was made up");
    (thp.enabled, thp.defrag) = (enabled.to_string(), Some(defrag.to_string()));
    host
}

/// As with MADV_HUGEPAGE on every mapping.
pub fn advise(jvm: &mut JvmFacts) {
    let all =
        jvm.snapshot.os.mappings.iter().map(|mapping| (mapping.range.start, Advice::HugePages)).collect();
    jvm.snapshot.taken.page_settings.as_mut().expect("it was made up").advice = Some(all);
    *jvm = joined(jvm);
}

fn replace_heap(jvm: &mut JvmFacts, pieces: Vec<PageRun>) {
    let runs = jvm.snapshot.os.pages.as_mut().expect("they were made up");
    runs.retain(|run| !run.range.overlaps(HEAP));
    runs.extend(pieces);
    runs.sort_by_key(|run| run.range.start);
    *jvm = joined(jvm);
}

fn heap_run(start: Bytes, bytes: Bytes, page_bytes: Bytes) -> PageRun {
    let range = Range::sized(HEAP.start.plus(start), bytes);
    PageRun { range, bits: PageRun::PRESENT, page_bytes: page_bytes as u32, mapped_times: 1 }
}

/// Places `bytes` of the heap's 900 MiB on huge pages.
pub fn give_huge(jvm: &mut JvmFacts, bytes: Bytes) {
    let pieces = [heap_run(0, bytes, HUGE), heap_run(bytes, 900 * M - bytes, 4096)];
    replace_heap(jvm, pieces.into_iter().filter(|run| !run.range.is_empty()).collect());
}

/// Leaves only `bytes` of the heap in memory, on the pages that it is on.
pub fn touch_only(jvm: &mut JvmFacts, bytes: Bytes) {
    let wanted = Range::sized(HEAP.start, bytes);
    let runs = jvm.snapshot.os.pages.as_ref().expect("they were made up");
    let cut = |run: &PageRun| PageRun { range: run.range.intersect(wanted), ..*run };
    let pieces = runs.iter().map(cut).filter(|run| !run.range.is_empty()).collect();
    replace_heap(jvm, pieces);
}

/// Touches the first bytes of each of `huge_pages` huge pages.
pub fn touch_each(jvm: &mut JvmFacts, huge_pages: u64, bytes: Bytes) {
    replace_heap(jvm, (0..huge_pages).map(|number| heap_run(number * HUGE, bytes, 4096)).collect());
}

/// All of the heap on folios of this size, mapped page by page.
pub fn give_folios(jvm: &mut JvmFacts, folio_bytes: Bytes) {
    let kind = PageKind { entry_bytes: 4096, ..PageKind::of_folio(Backing::Anonymous, folio_bytes) };
    if let Some(Ok(sizes)) = &mut jvm.snapshot.os.page_sizes {
        sizes.runs = vec![SizeRun { range: Range::sized(HEAP.start, 900 * M), kind, estimated: false }];
    }
    *jvm = joined(jvm);
}

/// Heap, code and tables from pools, whole.
pub fn give_hugetlb(jvm: &mut JvmFacts) {
    let jit = crate::doctor::facts::made_up::CODE_HEAPS.iter().map(|heap| heap.1 * M).sum();
    let code = Range::sized(Addr(0x7f20_0000_0000), jit);
    for (inode, mapping) in jvm.snapshot.os.mappings.iter_mut().enumerate() {
        let range = mapping.range;
        if range.overlaps(HEAP) || range.overlaps(code) || range.overlaps(TABLES) {
            (mapping.path, mapping.inode) = ("/anon_hugepage (deleted)".to_string(), inode as u64 + 100);
        }
    }
    let runs = jvm.snapshot.os.pages.as_mut().expect("they were made up");
    for run in runs.iter_mut() {
        if run.range.overlaps(HEAP) || run.range.overlaps(code) || run.range.overlaps(TABLES) {
            run.page_bytes = HUGE as u32;
        }
    }
    *jvm = joined(jvm);
}

/// Takes back what `give_hugetlb` gave there.
pub fn take_hugetlb(jvm: &mut JvmFacts, range: Range) {
    for mapping in jvm.snapshot.os.mappings.iter_mut().filter(|mapping| mapping.range.overlaps(range)) {
        (mapping.path, mapping.inode) = (String::new(), 0);
    }
    let runs = jvm.snapshot.os.pages.as_mut().expect("they were made up");
    runs.iter_mut().filter(|run| run.range.overlaps(range)).for_each(|run| run.page_bytes = 4096);
    *jvm = joined(jvm);
}

/// The heap as ZGC has it.
pub fn share_heap(jvm: &mut JvmFacts, gc: Gc) {
    for (number, mapping) in jvm.snapshot.os.mappings.iter_mut().enumerate() {
        if mapping.range.overlaps(HEAP) {
            mapping.path = "/memfd:java_heap (deleted)".to_string();
            (mapping.inode, mapping.offset) = (77, mapping.range.start.0 - HEAP.start.0);
            (mapping.rights.shared, mapping.device) = (true, format!("00:0{number}"));
        }
    }
    let runs = jvm.snapshot.os.pages.as_mut().expect("they were made up");
    runs.iter_mut().filter(|run| run.range.overlaps(HEAP)).for_each(|run| run.bits |= PageRun::FILE);
    view(jvm).gc = Ok(gc);
    set_flags(jvm, &[("UseG1GC", "false"), ("UseZGC", "true")]);
    *jvm = joined(jvm);
}
