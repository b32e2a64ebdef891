use super::*;
use crate::doctor::facts::made_up::rule_finds;
use crate::doctor::rules::page_cases::{self, M, only_warning};
use crate::jvm::Gc;
use crate::os::hugetlb::{Limit, Pool};

#[test]
fn a_pool_that_was_too_small_and_one_that_was_not() {
    let mut jvm = page_cases::asks_hugetlb();
    page_cases::pools(&mut jvm)[0] = Pool { page_bytes: 2 * M, pages: 200, free: 80, ..Pool::default() };
    let found = only_warning(jvm, "large-pages-not-got");
    assert!(found.title.contains("HugeTLB 2M pages") && found.title.contains("too small by"), "{found:?}");
    assert!(found.remedies[0].text().contains("marusa pages plan 4711 --mode hugetlb-2m"));
    let mut jvm = page_cases::asks_hugetlb();
    page_cases::give_hugetlb(&mut jvm);
    assert_eq!(rule_finds("large-pages-not-got", &page_cases::alone(jvm)), []);
}

#[test]
fn a_table_of_a_few_pages_is_only_worth_knowing() {
    let mut jvm = page_cases::asks_hugetlb();
    page_cases::give_hugetlb(&mut jvm);
    page_cases::take_hugetlb(&mut jvm, page_cases::TABLES);
    let found = rule_finds("large-pages-not-got", &page_cases::alone(jvm));
    assert_eq!(found.iter().map(|found| found.level).collect::<Vec<_>>(), [Level::Info], "{found:#?}");
}

#[test]
fn a_flag_that_is_off_though_the_command_line_says_on() {
    let mut jvm = page_cases::asks_hugetlb();
    page_cases::flag(&mut jvm, "UseLargePages", "false");
    let found = only_warning(jvm, "large-pages-switched-off");
    assert!(found.title.contains("the heap is on 4K 100 %") && found.title.contains("pool"), "{found:?}");
    assert_eq!(
        rule_finds("large-pages-switched-off", &page_cases::alone(page_cases::asks_hugetlb())),
        [],
        "the flag is still on"
    );
}

#[test]
fn a_limit_below_what_is_missing_and_one_above() {
    let mut jvm = page_cases::asks_hugetlb();
    page_cases::pools(&mut jvm)[0] = Pool { page_bytes: 2 * M, pages: 4000, free: 4000, ..Pool::default() };
    let file = "/sys/fs/cgroup/app/hugetlb.2MB.max".to_string();
    let limit = Limit { page_bytes: 2 * M, limit_bytes: 64 * M, used_bytes: Some(0), file: file.clone() };
    page_cases::settings(&mut jvm).limits = vec![limit];
    let found = rule_finds("large-pages-group-limit", &page_cases::alone(jvm.clone()));
    assert_eq!((found.len(), found[0].level), (1, Level::Warn));
    assert!(found[0].remedies.iter().any(|remedy| remedy.text().contains(&file)), "{found:?}");
    page_cases::settings(&mut jvm).limits[0].limit_bytes = 8192 * M;
    assert_eq!(
        rule_finds("large-pages-group-limit", &page_cases::alone(jvm)),
        [],
        "alone, the cgroup is not the cause"
    );
}

#[test]
fn a_policy_that_says_never_and_pages_that_did_not_come() {
    let mut jvm = page_cases::asks_transparent();
    page_cases::thp(&mut jvm).enabled = "never".to_string();
    // As the JVM leaves them.
    page_cases::flag(&mut jvm, "UseLargePages", "false");
    page_cases::flag(&mut jvm, "UseTransparentHugePages", "false");
    let found = only_warning(jvm, "thp-not-got");
    assert!(found.title.contains("transparent_hugepage/enabled is never"), "{found:?}");
    let mut jvm = page_cases::asks_transparent();
    page_cases::advise(&mut jvm);
    let found = only_warning(jvm, "thp-not-got");
    assert_eq!(found.remedies[0], Remedy::command("marusa pages collapse 4711"));
}

#[test]
fn a_tenth_and_32_mib_are_the_edge() {
    let mut jvm = page_cases::asks_transparent();
    page_cases::advise(&mut jvm);
    page_cases::give_huge(&mut jvm, 900 * M);
    assert_eq!(rule_finds("thp-not-got", &page_cases::alone(jvm)), []);
    let broken = |whole, missing| {
        let mut jvm = page_cases::asks_transparent();
        page_cases::advise(&mut jvm);
        let broken = promise::broken(&jvm).expect("nothing is large");
        promise::Broken { whole_bytes: whole, missing_bytes: missing, ..broken }.is_worth_it()
    };
    assert!(broken(320 * M, 32 * M) && !broken(320 * M, 32 * M - 1) && !broken(321 * M, 32 * M));
}

#[test]
fn folios_of_64_kib_instead_of_2_mib() {
    let mut jvm = page_cases::asks_transparent();
    page_cases::advise(&mut jvm);
    page_cases::give_folios(&mut jvm, 64 << 10);
    page_cases::sizes(&mut jvm, "never", "madvise");
    let found = only_warning(jvm, "thp-other-size");
    assert!(found.title.contains("64K transparent"), "{found:?}");
    let mut jvm = page_cases::asks_transparent();
    page_cases::advise(&mut jvm);
    assert_eq!(rule_finds("thp-other-size", &page_cases::alone(jvm)), [], "small pages are another matter");
}

#[test]
fn a_heap_in_shared_memory() {
    let mut jvm = page_cases::asks_transparent();
    page_cases::share_heap(&mut jvm, Gc::Z);
    let found = only_warning(jvm.clone(), "zgc-shmem-thp-off");
    assert!(found.title.contains("shmem_enabled is never"), "{found:?}");
    page_cases::thp(&mut jvm).shmem_enabled = Some("advise".to_string());
    page_cases::give_huge(&mut jvm, 900 * M);
    assert_eq!(rule_finds("zgc-shmem-thp-off", &page_cases::alone(jvm)), []);
    assert_eq!(
        rule_finds("zgc-shmem-thp-off", &page_cases::alone(page_cases::asks_transparent())),
        [],
        "no shared memory"
    );
}

#[test]
fn off_for_a_process_that_asks() {
    let mut jvm = page_cases::asks_transparent();
    jvm.snapshot.os.status.thp_enabled = Some(false);
    let found = only_warning(jvm.clone(), "thp-off-by-prctl");
    assert!(found.title.contains("THP_enabled: 0"), "{found:?}");
    jvm.snapshot.os.status.thp_enabled = None;
    assert_eq!(rule_finds("thp-off-by-prctl", &page_cases::alone(jvm)), [], "an old kernel does not tell");
    let mut nobody_asks = crate::doctor::facts::made_up::healthy_jvm();
    nobody_asks.snapshot.os.status.thp_enabled = Some(false);
    assert_eq!(rule_finds("thp-off-by-prctl", &page_cases::alone(nobody_asks)), []);
}

#[test]
fn a_heap_that_is_not_touched_yet_too() {
    let mut jvm = page_cases::asks_transparent();
    jvm.snapshot.os.status.thp_enabled = Some(false);
    page_cases::touch_only(&mut jvm, 4 * M);
    assert_eq!(rule_finds("thp-off-by-prctl", &page_cases::alone(jvm)).len(), 1);
}
