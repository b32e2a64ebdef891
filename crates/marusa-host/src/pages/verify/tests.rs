//! Promises against hand-made snapshots.

use super::*;
use crate::base::{Gap, Why};
use crate::jvm::{Gc, Kind};
use crate::map::join;
use crate::map::made_up::{extent, run, snapshot};
use crate::map::why;
use crate::map::why::CauseId;
use crate::os::host_pages::HostPages;
use crate::os::hugetlb::{Limit, Pool};
use crate::os::pagemap::PageRun;
use crate::os::thp::tests::host;
use crate::pages::types::{Vm, Without};
use crate::snapshot::page_settings::PageSettings;

const MIB: u64 = 1 << 20;
const HUGE: u64 = 2 * MIB;
const HEAP_AT: u64 = 0x4000_0000;
const CODE_AT: u64 = 0x7f00_0000_0000;

/// The same run of huge pages.
fn huge(start: u64, bytes: u64) -> PageRun {
    PageRun { page_bytes: HUGE as u32, ..run(start, start + bytes, 1) }
}

/// A heap of 16 MiB and a code cache of 8 MiB, each of hugetlb or not; 2 MiB of the code cache are touched.
fn jvm(heap_has: bool, code_has: bool, heap_is_touched: bool) -> Snapshot {
    let name = |has: bool, inode: u64| {
        if has { format!("{inode} /anon_hugepage (deleted)") } else { "0 ".to_string() }
    };
    let maps = format!(
        "40000000-41000000 rw-p 00000000 00:0f {}\n7f0000000000-7f0000800000 rwxp 00000000 00:0f {}\n",
        name(heap_has, 11),
        name(code_has, 12)
    );
    let part = |at: u64, bytes: u64, has: bool| if has { huge(at, bytes) } else { run(at, at + bytes, 1) };
    let mut pages = Vec::new();
    if heap_is_touched {
        pages.push(part(HEAP_AT, 16 * MIB, heap_has));
    }
    pages.push(part(CODE_AT, 2 * MIB, code_has));
    let extents = vec![
        extent(HEAP_AT, HEAP_AT + 4 * MIB, Kind::JavaHeap, "eden", None),
        extent(HEAP_AT + 4 * MIB, HEAP_AT + 16 * MIB, Kind::JavaHeap, "old generation", None),
        extent(CODE_AT, CODE_AT + 8 * MIB, Kind::CodeHeap, "code heap 'CodeCache'", None),
    ];
    let mut taken = snapshot(&maps, pages, extents);
    taken.taken.kernel = "6.18.44".to_string();
    let pool = Pool { page_bytes: HUGE, pages: 11, free: 7, ..Pool::default() };
    let host = HostPages {
        thp: Some(host("madvise", "never", "inherit", "never")),
        pools: vec![pool],
        ..HostPages::default()
    };
    taken.taken.page_settings = Some(PageSettings { host, advice: None });
    taken.os.process.set_arguments(crate::base::redact::words_of("java -XX:+UseLargePages Main"));
    flags(&mut taken, &[("UseLargePages", "true"), ("MaxHeapSize", "16777216")]);
    let view = taken.jvm.as_mut().expect("a JVM");
    (view.major, view.gc) = (Ok(25), Ok(Gc::Serial));
    view.library = "/opt/jdk/lib/server/libjvm.so".to_string();
    taken
}

fn flags(taken: &mut Snapshot, flags: &[(&str, &str)]) {
    let flags = flags.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    taken.jvm.as_mut().expect("a JVM").flags.extend(flags);
}

fn pools(taken: &mut Snapshot) -> &mut HostPages {
    &mut taken.taken.page_settings.as_mut().expect("settings").host
}

fn need(area: Area, part: &str, bytes: Bytes) -> Need {
    let (part, pages) = (part.to_string(), bytes.div_ceil(HUGE));
    let without = Without::SmallPages;
    Need { area, part, bytes, page_bytes: HUGE, pages, pages_at_least: pages, without, rule: String::new() }
}

fn plan(mode: Mode) -> Promise {
    let subject = Subject {
        vm: Vm::HotSpot,
        feature: 25,
        version: None,
        java_home: None,
        gc: Gc::Serial,
        heap_initial_bytes: 16 * MIB,
        heap_max_bytes: 16 * MIB,
        cpus: 2,
        flags: Default::default(),
    };
    let needs = vec![need(Area::JitCode, "CodeCache", 8 * MIB), need(Area::JavaHeap, "Java heap", 16 * MIB)];
    let option = if mode == Mode::Thp { "-XX:+UseTransparentHugePages" } else { "-XX:+UseLargePages" };
    let jvm_options = vec!["-Xmx16m".to_string(), option.to_string()];
    Promise { plan: Some("plan.json".to_string()), mode, needs, subject: Some(subject), jvm_options }
}

fn report(promise: &Promise, taken: &Snapshot) -> Report {
    let map = join(taken);
    let findings = why::findings(taken, &map);
    let look = Look { snapshot: taken, map: &map, findings: &findings, logged: &[], claims: &[] };
    verify(promise, &look)
}

fn codes(causes: &[Cause]) -> Vec<CauseId> {
    causes.iter().map(|cause| cause.code).collect()
}

fn verdicts(report: &Report) -> Vec<(Verdict, u64)> {
    report.rows.iter().map(|row| (row.verdict, row.missing_pages)).collect()
}

#[test]
fn pages_of_a_pool_count_from_the_moment_they_are_mapped() {
    for touched in [true, false] {
        let report = report(&plan(Mode::HugeTlb2M), &jvm(true, true, touched));
        assert!(report.met, "{report:?}");
        assert_eq!(verdicts(&report), [(Verdict::Met, 0), (Verdict::Met, 0)]);
        assert_eq!((report.totals[0].promised_pages, report.totals[0].found_pages), (12, 12));
        assert!(report.causes.is_empty() && report.notes.is_empty());
    }
}

#[test]
fn one_page_too_few_and_the_heap_has_none() {
    for touched in [true, false] {
        let mut taken = jvm(false, true, touched);
        let report = report(&plan(Mode::HugeTlb2M), &taken);
        assert_eq!(verdicts(&report), [(Verdict::Met, 0), (Verdict::NotMet, 8)], "touched {touched}");
        assert_eq!(codes(&report.causes), [CauseId::PoolShort]);
        let cause = &report.causes[0];
        assert!(cause.what.contains("too small by 1 (8 missing, 7 free)"), "{}", cause.what);
        assert!(cause.what.contains("CodeCache 4 of 4, Java heap 0 of 8"), "{}", cause.what);
        assert!(cause.next.contains("marusa pages apply plan.json"), "{}", cause.next);
        assert!(cause.next.contains("12 in /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages (now 11)"));
        pools(&mut taken).pools[0].free = 8;
        let enough = super::tests::report(&plan(Mode::HugeTlb2M), &taken);
        assert!(enough.causes[0].next.starts_with("restart the JVM"), "{:?}", enough.causes);
    }
}

#[test]
fn no_pool_a_control_group_and_a_flag_that_the_jvm_switched_off() {
    let mut taken = jvm(false, false, true);
    flags(&mut taken, &[("UseLargePages", "false")]);
    pools(&mut taken).pools[0] = Pool { page_bytes: HUGE, ..Pool::default() };
    let without = report(&plan(Mode::HugeTlb2M), &taken);
    assert_eq!(codes(&without.causes), [CauseId::PoolEmpty]);
    let of_flags = Promise { plan: None, ..plan(Mode::HugeTlb2M) };
    assert_eq!(codes(&report(&of_flags, &taken).causes), [CauseId::SwitchedOff, CauseId::PoolEmpty]);
    let file = "/sys/fs/cgroup/hugetlb/app/hugetlb.2MB.limit_in_bytes".to_string();
    let mut taken = jvm(false, true, true);
    pools(&mut taken).limits = vec![Limit {
        page_bytes: HUGE,
        limit_bytes: 10 * MIB,
        used_bytes: Some(8 * MIB),
        file: file.clone(),
    }];
    let limited = report(&plan(Mode::HugeTlb2M), &taken);
    assert_eq!(codes(&limited.causes), [CauseId::CgroupLimit]);
    assert!(limited.causes[0].next.contains(&file), "{:?}", limited.causes);
}

#[test]
fn a_table_that_the_account_does_not_name_is_found_by_its_mapping_or_by_the_sum() {
    let mut promise = plan(Mode::HugeTlb2M);
    promise.needs.push(need(Area::Gc, "mark bitmap", 4 * MIB));
    let short = report(&promise, &jvm(true, true, true));
    assert_eq!(short.rows[2].verdict, Verdict::NotMet, "14 pages promised, 12 there");
    let mut taken = jvm(true, true, true);
    let more = "50000000-50400000 rw-p 00000000 00:0f 13 /anon_hugepage (deleted)\n";
    taken.os.mappings.insert(1, crate::os::maps::parse(more.as_bytes()).0.remove(0));
    let found = report(&promise, &taken);
    assert_eq!((found.rows[2].verdict, found.rows[2].taken.pages_of(HUGE)), (Verdict::Met, 2));
    promise.needs[2].part = "card table".to_string();
    promise.needs[2].bytes = 3 * MIB;
    promise.needs.push(need(Area::Gc, "none", 0));
    assert!(report(&promise, &taken).met, "rounded up to whole pages");
    promise.needs[2] = need(Area::Gc, "card table", 2 * MIB);
    assert_eq!(report(&promise, &taken).rows[2].verdict, Verdict::InTheSum);
}

#[test]
fn a_plan_for_another_jvm() {
    let mut promise = plan(Mode::HugeTlb2M);
    let subject = promise.subject.as_mut().expect("a subject");
    (subject.feature, subject.gc, subject.heap_max_bytes) = (17, Gc::G1, 512 * MIB);
    let report = report(&promise, &jvm(true, true, true));
    assert!(!report.met);
    assert_eq!(codes(&report.causes), [CauseId::OtherJdk, CauseId::OtherGc, CauseId::OtherHeap]);
    assert!(
        report.causes.iter().all(|cause| cause.next.contains("marusa pages plan")),
        "{:?}",
        report.causes
    );
}

#[test]
fn options_that_are_missing_or_differ() {
    let mut taken = jvm(false, false, true);
    flags(&mut taken, &[("UseLargePages", "false"), ("LargePageSizeInBytes", "0")]);
    taken.os.process.set_arguments(crate::base::redact::words_of("java Main"));
    let mut promise = plan(Mode::HugeTlb2M);
    promise.jvm_options.push("-XX:LargePageSizeInBytes=1g".to_string());
    promise.jvm_options.push("-XX:+AlwaysPreTouch".to_string());
    let report = report(&promise, &taken);
    assert_eq!(codes(&report.causes), [CauseId::OptionsMissing, CauseId::OptionsDiffer]);
    let cause = &report.causes[0];
    assert_eq!(cause.next, "restart it with -XX:+UseLargePages -XX:+AlwaysPreTouch");
    assert!(report.causes[1].what.contains("-XX:LargePageSizeInBytes=1g (it is 0)"), "{:?}", report.causes);
}

#[test]
fn transparent_pages_count_where_memory_is() {
    let promise = plan(Mode::Thp);
    let mut taken = jvm(false, false, false);
    flags(&mut taken, &[("UseLargePages", "true"), ("UseTransparentHugePages", "true")]);
    taken.os.pages = Ok(vec![huge(CODE_AT, 2 * MIB)]);
    let untouched = report(&promise, &taken);
    assert!(untouched.met, "{untouched:?}");
    assert_eq!(verdicts(&untouched), [(Verdict::Met, 0), (Verdict::NotTouched, 0)]);
    assert_eq!(codes(&untouched.notes), [CauseId::NotTouched]);

    taken.os.pages = Ok(vec![run(HEAP_AT, HEAP_AT + 4 * MIB, 1), huge(CODE_AT, 2 * MIB)]);
    taken.os.status.thp_enabled = Some(false);
    let disabled = report(&promise, &taken);
    assert_eq!(verdicts(&disabled), [(Verdict::Met, 0), (Verdict::NotMet, 2)]);
    assert_eq!(codes(&disabled.causes), [CauseId::ProcessDisabled]);
    taken.os.status.thp_enabled = Some(true);
    let late = report(&promise, &taken);
    assert_eq!(codes(&late.causes), [CauseId::NotYet]);
    assert!(late.causes[0].next.contains("marusa pages collapse"), "{:?}", late.causes);
}

#[test]
fn a_jvm_without_the_plans_flag_is_reported_once() {
    let mut taken = jvm(false, false, true);
    flags(&mut taken, &[("UseLargePages", "false"), ("UseTransparentHugePages", "false")]);
    taken.os.process.set_arguments(crate::base::redact::words_of("java Main"));
    let report = report(&plan(Mode::Thp), &taken);
    assert_eq!(codes(&report.causes), [CauseId::OptionsMissing]);
    assert_eq!(verdicts(&report), [(Verdict::NotMet, 1), (Verdict::NotMet, 8)]);
}

#[test]
fn pages_that_can_not_be_read_and_a_jvm_that_can_not_be_read() {
    let mut taken = jvm(true, true, true);
    taken.jvm = Err(Gap::new("the JVM", Why::Torn));
    let blind = report(&plan(Mode::HugeTlb2M), &taken);
    assert!(blind.met, "12 pages are mapped, whoever they are for: {blind:?}");
    assert_eq!(blind.rows[0].verdict, Verdict::Met, "a mapping of that size");
}

#[test]
fn what_flags_ask_for() {
    let asked = |hugetlb, transparent, page_bytes| Asked { hugetlb, transparent, refused: false, page_bytes };
    assert_eq!(Promise::mode_of(&Asked::default()), None);
    assert_eq!(Promise::mode_of(&asked(true, false, None)), Some(Mode::HugeTlb2M));
    assert_eq!(Promise::mode_of(&asked(true, false, Some(1 << 30))), Some(Mode::HugeTlb1G));
    assert_eq!(Promise::mode_of(&asked(false, true, None)), Some(Mode::Thp));
}

#[test]
fn three_views_of_one_heap_take_its_pages_once() {
    let view = |at: u64| {
        format!("{at:x}-{:x} rw-s 00000000 00:0f 21 /memfd:java_heap.hugetlb (deleted)\n", at + 16 * MIB)
    };
    let maps = [view(0x1000_0000_0000), view(0x2000_0000_0000), view(0x4000_0000_0000)].concat();
    let extents = [0x1000_0000_0000, 0x2000_0000_0000, 0x4000_0000_0000]
        .map(|at| extent(at, at + 16 * MIB, Kind::JavaHeap, "page", None));
    let mut taken = snapshot(&maps, vec![huge(0x1000_0000_0000, 4 * MIB)], extents.into());
    taken.taken.page_settings = jvm(true, true, true).taken.page_settings;
    let promise =
        Promise { needs: vec![need(Area::JavaHeap, "heap", 16 * MIB)], plan: None, ..plan(Mode::HugeTlb2M) };
    let report = report(&promise, &taken);
    assert_eq!((report.rows[0].taken.pages_of(HUGE), report.totals[0].found_pages), (8, 8));
}
