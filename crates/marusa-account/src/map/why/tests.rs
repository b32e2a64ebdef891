use super::reason::KnownBy;
use super::*;
use crate::base::{Addr, Range};
use crate::jvm::Kind;
use crate::map::join;
use crate::map::made_up::{extent, run, snapshot};
use crate::map::types::Instance;
use crate::os::host_pages::HostPages;
use crate::os::hugetlb::{Limit, Pool};
use crate::os::page_kind::{Backing, PageKind, PageSizes, SizeRun};
use crate::os::thp::tests::host;
use crate::snapshot::page_settings::{Advice, PageSettings};

const MIB: u64 = 1 << 20;
const HEAP: &str = "40000000-41000000 rw-p 00000000 00:00 0 \n";

/// A heap of 16 MiB, all of it in memory.
fn full_heap() -> Snapshot {
    let pages = vec![run(0x4000_0000, 0x4100_0000, 1)];
    let mut taken =
        snapshot(HEAP, pages, vec![extent(0x4000_0000, 0x4100_0000, Kind::JavaHeap, "eden", None)]);
    taken.taken.kernel = "6.18.44".to_string();
    let thp = Some(host("madvise", "never", "inherit", "never"));
    let pools = vec![Pool { page_bytes: 2 * MIB, ..Pool::default() }];
    let host = HostPages { thp, pools, file_huge_pages: Some(false), ..HostPages::default() };
    taken.taken.page_settings = Some(PageSettings { host, advice: None });
    taken
}

fn settings(taken: &mut Snapshot) -> &mut PageSettings {
    taken.taken.page_settings.as_mut().expect("settings")
}

fn flags(taken: &mut Snapshot, flags: &[(&str, &str)]) {
    let jvm = taken.jvm.as_mut().expect("a JVM");
    jvm.flags = flags.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
}

/// The reasons with their bytes; of a part they sum to what it has on small pages.
fn reasons(taken: &Snapshot) -> Vec<(CauseId, u64)> {
    let map = join(taken);
    let found = findings(taken, &map);
    let sum: u64 =
        found.iter().filter(|f| f.reason != Reason::NeverTouched).map(|finding| finding.bytes).sum();
    let small: u64 = map.balance.total.by_page_size.range(..2 * MIB).map(|(_, bytes)| bytes).sum();
    assert_eq!(sum, small, "{found:?}");
    assert!(found.iter().all(|finding| finding.reason.text().len() <= 62 && finding.remedy().len() > 10));
    found.iter().map(|finding| (finding.reason.id(), finding.bytes)).collect()
}

#[test]
fn a_heap_that_nobody_advised() {
    let mut taken = full_heap();
    assert_eq!(reasons(&taken), [(CauseId::NotAdvised, 16 * MIB)]);
    let map = join(&taken);
    assert_eq!(findings(&taken, &map)[0].remedy(), "start the JVM with -XX:+UseTransparentHugePages");
    settings(&mut taken).advice = Some(BTreeMap::from([(Addr(0x4000_0000), Advice::HugePages)]));
    assert_eq!(reasons(&taken), [(CauseId::NotYet, 16 * MIB)]);
    settings(&mut taken).advice = Some(BTreeMap::from([(Addr(0x4000_0000), Advice::NoHugePages)]));
    assert_eq!(reasons(&taken), [(CauseId::AdvisedAgainst, 16 * MIB)]);
}

#[test]
fn without_vmflags_the_flag_of_the_jvm_is_the_evidence() {
    let mut taken = full_heap();
    flags(&mut taken, &[("UseTransparentHugePages", "true"), ("UseLargePages", "true")]);
    assert_eq!(reasons(&taken), [(CauseId::NotYet, 16 * MIB)]);
    settings(&mut taken).advice = Some(BTreeMap::new());
    let map = join(&taken);
    let text = findings(&taken, &map)[0].reason.text();
    assert_eq!(text, "not advised (flag on); transparent_hugepage/enabled is madvise");
    settings(&mut taken).advice = None;
    settings(&mut taken).host.vmstat.insert("thp_fault_fallback".to_string(), 7);
    let map = join(&taken);
    assert_eq!(findings(&taken, &map)[0].reason, Reason::NotYet { fallbacks: true });
}

#[test]
fn no_remedy_is_what_is_already_so() {
    let transparent = Asked { transparent: true, ..Asked::default() };
    let refused = Asked { refused: true, ..Asked::default() };
    let never = Reason::PolicyOff { file: "enabled".to_string(), mode: "never".to_string() };
    let not_advised = Reason::NotAdvised {
        file: "enabled".to_string(),
        mode: "madvise".to_string(),
        known_by: KnownBy::Kernel,
    };
    for asked in [transparent, refused] {
        for reason in [&never, &not_advised] {
            let remedy = reason.remedy(Area::JavaHeap, &asked);
            assert!(remedy.contains("restart the JVM") && !remedy.contains("-XX:"), "{remedy}");
        }
        assert!(Reason::TooSmall.remedy(Area::Gc, &asked).starts_with("none: the JVM lays it out so"));
    }
    let remedy = Reason::TooSmall.remedy(Area::Gc, &Asked::default());
    assert_eq!(remedy, "with large pages asked for, the JVM lays it out in whole huge pages");
    let mut owner = Owner {
        area: Area::Gc,
        part: "collector's objects".to_string(),
        instance: Instance::Mmapped,
        how: String::new(),
    };
    let remedy = |owner: &Owner, reason: &Reason| reason.remedy(lies_as(owner), &transparent);
    assert!(remedy(&owner, &not_advised).contains("GLIBC_TUNABLES"));
    assert!(remedy(&owner, &Reason::TooSmall).starts_with("none: only a larger mapping"));
    owner.instance = Instance::None;
    assert_eq!(lies_as(&owner), Area::Gc);
}

/// The message for a requirement that is not met.
fn said(taken: &Snapshot, requirement: &str) -> String {
    let map = join(taken);
    let found = findings(taken, &map);
    let requirement = requirement.parse().expect("a requirement");
    let answer = crate::map::require::check(&requirement, taken, &map, &found).expect("a heap");
    assert!(!answer.met);
    answer.text(|bytes| format!("{} MiB", bytes >> 20))
}

#[test]
fn the_reason_is_of_the_pages_that_were_required() {
    let mut taken = full_heap();
    flags(&mut taken, &[("UseTransparentHugePages", "false"), ("UseLargePages", "true")]);
    let thp = said(&taken, "heap=thp");
    assert!(thp.contains("why: 16 MiB: -XX:+UseLargePages asks for HugeTLB, not for thp"), "{thp}");
    assert!(thp.ends_with("start the JVM with -XX:+UseTransparentHugePages, which asks for thp"), "{thp}");
    let giant = said(&taken, "heap>=50%@1G");
    assert!(giant.contains("16 MiB: the JVM asks for no HugeTLB 1G pages"), "{giant}");
    assert!(
        giant.contains(
            "hugepages-1048576kB/nr_hugepages, then start the JVM with -XX:LargePageSizeInBytes=1g"
        )
    );
    for same in ["heap=2M", "heap=hugetlb", "heap=hugetlb-2M"] {
        let said = said(&taken, same);
        assert!(said.contains("no pool of 2M pages") && said.contains("hugepages-2048kB"), "{said}");
    }
    settings(&mut taken).host.thp = Some(host("never", "never", "inherit", "never"));
    let never = said(&taken, "heap=thp");
    assert!(never.contains("madvise in /sys/kernel/mm/transparent_hugepage/enabled, then start"), "{never}");
    flags(&mut taken, &[("UseTransparentHugePages", "true"), ("UseLargePages", "true")]);
    let wanted = said(&taken, "heap=hugetlb-1G");
    assert!(wanted.contains("-XX:+UseLargePages, -XX:LargePageSizeInBytes=1g"), "{wanted}");
    assert!(wanted.ends_with(" and without -XX:+UseTransparentHugePages"), "{wanted}");
    flags(&mut taken, &[("UseLargePages", "true"), ("LargePageSizeInBytes", "1073741824")]);
    let asked = said(&taken, "heap=1G");
    assert!(asked.contains("this kernel has no 1G pages") && asked.contains("hugepagesz=1G"), "{asked}");
}

#[test]
fn the_file_that_says_never_is_named() {
    let mut taken = full_heap();
    settings(&mut taken).host.thp = Some(host("always", "never", "never", "never"));
    let map = join(&taken);
    let found = findings(&taken, &map);
    assert_eq!(found[0].reason.text(), "transparent_hugepage/hugepages-2048kB/enabled is never");
    settings(&mut taken).host.thp = Some(host("never", "never", "inherit", "never"));
    assert_eq!(reasons(&taken), [(CauseId::PolicyOff, 16 * MIB)]);
    taken.os.status.thp_enabled = Some(false);
    assert_eq!(reasons(&taken), [(CauseId::ProcessDisabled, 16 * MIB)]);
    settings(&mut taken).host.thp = None;
    assert_eq!(reasons(&taken), [(CauseId::NoTransparent, 16 * MIB)]);
    taken.taken.page_settings = None;
    assert_eq!(reasons(&taken), [(CauseId::NotKnown, 16 * MIB)]);
}

#[test]
fn hugetlb_that_was_asked_for_and_not_given() {
    let mut taken = full_heap();
    flags(&mut taken, &[("UseTransparentHugePages", "false"), ("UseLargePages", "true")]);
    assert_eq!(reasons(&taken), [(CauseId::PoolEmpty, 16 * MIB)]);
    settings(&mut taken).host.pools[0] = Pool { page_bytes: 2 * MIB, pages: 4, free: 4, ..Pool::default() };
    assert_eq!(reasons(&taken), [(CauseId::PoolShort, 16 * MIB)]);
    let file = "/sys/fs/cgroup/a/hugetlb.2MB.max".to_string();
    let limit = Limit { page_bytes: 2 * MIB, limit_bytes: 4 * MIB, used_bytes: None, file };
    settings(&mut taken).host.limits.push(limit);
    assert_eq!(reasons(&taken), [(CauseId::CgroupLimit, 16 * MIB)]);
    // A JVM that got none at all has switched its flag off.
    flags(&mut taken, &[("UseTransparentHugePages", "false"), ("UseLargePages", "false")]);
    assert_eq!(reasons(&taken), [(CauseId::NotAdvised, 16 * MIB)]);
    taken.os.process.set_arguments(crate::base::redact::words_of("java -XX:+UseLargePages Main"));
    assert_eq!(reasons(&taken), [(CauseId::CgroupLimit, 16 * MIB)]);
}

#[test]
fn what_is_no_whole_block_of_its_mapping() {
    let maps = "40100000-40700000 rw-p 0 00:00 0 \n50000000-50100000 rw-p 0 00:00 0 \n60100000-60300000 rw-p 0 00:00 0 \n";
    let pages = vec![
        run(0x4010_0000, 0x4070_0000, 1),
        run(0x5000_0000, 0x5010_0000, 1),
        run(0x6010_0000, 0x6030_0000, 1),
    ];
    let extents = vec![extent(0x4010_0000, 0x4070_0000, Kind::JavaHeap, "eden", None)];
    let taken = Snapshot { taken: full_heap().taken, ..snapshot(maps, pages, extents) };
    let mut found = reasons(&taken);
    found.sort_by_key(|(id, _)| format!("{id:?}"));
    assert_eq!(
        found,
        [
            (CauseId::Edge, 2 * MIB),
            (CauseId::NotAdvised, 4 * MIB),
            (CauseId::TooSmall, MIB),
            (CauseId::Unaligned, 2 * MIB)
        ]
    );
}

#[test]
fn a_block_that_is_partly_touched_and_what_was_never_touched() {
    let mut taken = full_heap();
    taken.os.pages = Ok(vec![run(0x4000_0000, 0x4010_0000, 1), run(0x4018_0000, 0x4040_0000, 1)]);
    flags(&mut taken, &[("UseTransparentHugePages", "true")]);
    let map = join(&taken);
    let found = findings(&taken, &map);
    assert_eq!(reasons(&taken), [(CauseId::NotYet, 7 * MIB / 2), (CauseId::NeverTouched, 25 * MIB / 2)]);
    assert_eq!(found[0].partly_touched_bytes, 3 * MIB / 2, "the first of two blocks");
    let thp = settings(&mut taken).host.thp.as_mut().expect("huge pages");
    thp.khugepaged.insert("max_ptes_none".to_string(), 64);
    assert_eq!(reasons(&taken)[..2], [(CauseId::NotYet, 2 * MIB), (CauseId::Hole, 3 * MIB / 2)]);
}

#[test]
fn shared_memory_files_and_private_copies() {
    let maps = "40000000-41000000 rw-s 00000000 00:01 7     /memfd:java_heap (deleted)\n\
                50000000-50400000 r-xp 00000000 fe:00 8     /usr/lib/libjvm.so\n\
                50400000-50800000 rw-p 00400000 fe:00 8     /usr/lib/libjvm.so\n\
                60000000-60400000 rw-s 00000000 fe:00 9     /var/data\n";
    let file = |start, end| PageRun { bits: PageRun::PRESENT | PageRun::FILE, ..run(start, end, 1) };
    let pages = vec![
        file(0x4000_0000, 0x4100_0000),
        file(0x5000_0000, 0x5040_0000),
        run(0x5040_0000, 0x5080_0000, 1),
        file(0x6000_0000, 0x6020_0000),
    ];
    let extents = vec![extent(0x4000_0000, 0x4100_0000, Kind::JavaHeap, "small pages", None)];
    let taken = Snapshot { taken: full_heap().taken, ..snapshot(maps, pages, extents) };
    let map = join(&taken);
    assert_eq!(findings(&taken, &map)[0].reason.text(), "transparent_hugepage/shmem_enabled is never");
    let found = reasons(&taken);
    assert_eq!(found[0], (CauseId::PolicyOff, 16 * MIB));
    assert!(
        found.contains(&(CauseId::NoKernelOption, 4 * MIB))
            && found.contains(&(CauseId::PrivateCopy, 4 * MIB))
    );
    assert!(found.contains(&(CauseId::FileSystem, 2 * MIB)));
}

#[test]
fn a_stack_is_kept_small_since_linux_6_7() {
    let mut taken = full_heap();
    let jvm = taken.jvm.as_mut().expect("a JVM");
    jvm.extents = vec![extent(0x4000_0000, 0x4100_0000, Kind::Stack, "Java thread stacks", None)];
    assert_eq!(reasons(&taken), [(CauseId::AdvisedAgainst, 16 * MIB)]);
    taken.taken.kernel = "6.1.0".to_string();
    assert_eq!(reasons(&taken), [(CauseId::NotAdvised, 16 * MIB)]);
}

#[test]
fn pages_whose_place_is_not_known_and_a_run_past_all_sense() {
    let mut taken = full_heap();
    let unplaced =
        PageRun { bits: PageRun::PRESENT | PageRun::PLACE_UNKNOWN, ..run(0x4000_0000, 0x4040_1000, 1) };
    taken.os.pages = Ok(vec![unplaced]);
    assert_eq!(reasons(&taken)[0], (CauseId::NotAdvised, 4 * MIB + 4096));
    let blocks = blocks::Blocks::new(Range::of(0, u64::MAX), &[run(0x1000, u64::MAX - 0xfff, 1)], 2 * MIB);
    let mut sum = 0_u64;
    blocks.each(&run(0x1000, u64::MAX - 0xfff, 1), Range::of(0x1000, u64::MAX - 0xfff), &mut |_, bytes| {
        sum += bytes
    });
    assert_eq!(sum, u64::MAX - 0x1fff);
}

#[test]
fn another_size_and_a_huge_page_in_pieces() {
    let mut taken = full_heap();
    let kind = |folio_bytes| PageKind::of_folio(Backing::Anonymous, folio_bytes);
    let size_run = |start, end, folio_bytes| SizeRun {
        range: Range::of(start, end),
        kind: kind(folio_bytes),
        estimated: false,
    };
    taken.os.page_sizes = Some(Ok(PageSizes {
        runs: vec![size_run(0x4000_0000, 0x4040_0000, 64 << 10), size_run(0x4040_0000, 0x4060_0000, 2 * MIB)],
        looks: Vec::new(),
        contiguous: Err(crate::base::Gap::new("not looked at", crate::base::Why::NotRead)),
        hugetlb: Vec::new(),
        shmem_devices: Vec::new(),
        seed: 0,
        gaps: Vec::new(),
    }));
    assert_eq!(
        reasons(&taken),
        [(CauseId::NotAdvised, 10 * MIB), (CauseId::OtherSize, 4 * MIB), (CauseId::Split, 2 * MIB)]
    );
    let map = join(&taken);
    assert_eq!(findings(&taken, &map)[1].reason.text(), "64K pages were chosen");
}
