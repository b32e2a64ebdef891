use super::*;
use crate::base::{Gap, Why};
use crate::os::hugetlb::Limit;
use crate::os::pagetypeinfo::BlockTypes;
use crate::pages::made_up::host;

const GIB: Bytes = 1 << 30;

fn ask(pages: u64) -> Ask {
    Ask { pages: vec![(2 << 20, pages)], feature: 21, ..Ask::default() }
}

fn one(host: &HostMemory, ask: &Ask) -> (How, u64, Feasible, String) {
    let answer = answer(host, ask).expect("the pool is there");
    let need = answer.pools[0].clone();
    (need.how, need.add_pages, answer.feasible, need.why)
}

#[test]
fn what_free_blocks_give_is_sure_and_what_compaction_adds_is_not() {
    let (how, add, feasible, _) = one(&host(), &ask(2000));
    assert_eq!((how, add, feasible), (How::Pool, 2000, Feasible::Yes));
    let (how, _, feasible, why) = one(&host(), &ask(2001));
    assert_eq!((how, feasible), (How::Pool, Feasible::Perhaps), "{why}");
    assert!(why.contains("2000 of 2M available at once, up to 5120"), "{why}");
}

#[test]
fn the_rest_of_the_host_keeps_its_share() {
    let answer = answer(&host(), &ask(4800)).expect("a pool");
    let (need, boot) = (&answer.pools[0], &answer.boot);
    assert_eq!((need.how, answer.feasible), (How::Boot, Feasible::No));
    assert!(need.why.starts_with("9600 MiB would leave 640 MiB"), "{}", need.why);
    assert_eq!(boot.join(" "), "hugepagesz=2M hugepages=4800");
    assert_eq!(answer.memory.taken_bytes, 0, "nothing is taken now");
    let (how, _, feasible, why) = one(&host(), &ask(9000));
    assert_eq!((how, feasible), (How::Pool, Feasible::No));
    assert!(why.ends_with("this host is too small"), "{why}");
}

#[test]
fn a_heap_in_pieces_needs_the_boot_parameter() {
    let mut host = host();
    host.blocks = Ok(BlockTypes { block_bytes: 2 << 20, zones: Vec::new() });
    let (how, _, feasible, why) = one(&host, &ask(2001));
    assert_eq!((how, feasible), (How::Boot, Feasible::No));
    assert!(why.starts_with("memory is in pieces"), "{why}");
    host.blocks = Err(Gap::new("/proc/pagetypeinfo", Why::Denied));
    assert_eq!(one(&host, &ask(2001)).2, Feasible::Perhaps, "not known, so it may be tried");
}

#[test]
fn what_is_there_is_not_asked_for_again() {
    let mut host = host();
    host.pages.pools[0] = Pool { pages: 500, free: 400, reserved: 100, ..host.pages.pools[0].clone() };
    assert_eq!(one(&host, &ask(300)).0, How::Free);
    assert_eq!(one(&host, &ask(301)).1, 1);
    host.pages.pools[0].overcommit = 50;
    let (how, add, _, _) = one(&host, &ask(350));
    assert_eq!((how, add), (How::Overcommit, 0), "as much is allowed already");
    let lent = Ask { preference: Preference::Pool, ..ask(350) };
    host.pages.pools[0].surplus = 7;
    assert_eq!(one(&host, &lent).1, 57, "the pool counts in first what others hold beyond it");
    host.pages.pools[0].surplus = 0;
    let held = Ask { held: vec![(2 << 20, 100)], ..ask(400) };
    assert_eq!(one(&host, &held).0, How::Free, "the JVM gives its own pages back first");
}

#[test]
fn a_pool_that_is_asked_for_does_not_count_what_is_only_lent() {
    let mut host = host();
    host.pages.pools[0] =
        Pool { page_bytes: 2 << 20, pages: 250, surplus: 250, overcommit: 250, ..Pool::default() };
    let running = Ask { held: vec![(2 << 20, 250)], ..ask(250) };
    assert_eq!(one(&host, &running).0, How::Free, "allowed again when the JVM has ended");
    let pool = Ask { preference: Preference::Pool, ..running };
    assert_eq!(one(&host, &pool).1, 250);
}

#[test]
fn overcommit_where_it_can_be() {
    let wanted = |pages| Ask { preference: Preference::Overcommit, ..ask(pages) };
    assert_eq!(one(&host(), &wanted(100)).0, How::Overcommit);
    let (_, _, feasible, why) = one(&host(), &Ask { feature: 26, ..wanted(100) });
    assert!(feasible == Feasible::No && why.contains("filter_pre_allocated_hugepages"), "{why}");
    let large = Ask { pages: vec![(GIB, 2)], ..wanted(0) };
    let (_, _, feasible, why) = one(&host(), &large);
    assert!(feasible == Feasible::No && why.contains("EINVAL"), "{why}");
}

#[test]
fn a_running_jvm_that_holds_the_memory_gets_it_again_by_overcommit() {
    let running = Ask { released_bytes: 9 * GIB, ..ask(4800) };
    let (how, add, feasible, why) = one(&host(), &running);
    assert_eq!((how, add, feasible), (How::Overcommit, 4800, Feasible::Perhaps), "{why}");
}

#[test]
fn pages_of_a_gigabyte_are_tried_and_sure_at_boot() {
    let answer = answer(&host(), &Ask { pages: vec![(GIB, 4)], ..ask(0) }).expect("a pool");
    assert_eq!((answer.pools[0].how, answer.feasible), (How::Pool, Feasible::Perhaps));
    assert_eq!(answer.boot.join(" "), "hugepagesz=1G hugepages=4");
    let eleven = Ask { pages: vec![(GIB, 4)], default_only: true, ..ask(0) };
    let answer = super::answer(&host(), &eleven).expect("a pool");
    assert_eq!(answer.boot.join(" "), "default_hugepagesz=1G hugepagesz=1G hugepages=4");
    assert_eq!(answer.feasible, Feasible::No);
}

#[test]
fn a_limit_of_the_control_group_is_named() {
    let mut host = host();
    let file = "/sys/fs/cgroup/a/hugetlb.2MB.max".to_string();
    host.pages.limits =
        vec![Limit { page_bytes: 2 << 20, limit_bytes: 20 << 20, used_bytes: Some(4 << 20), file }];
    let (_, _, feasible, why) = one(&host, &ask(9));
    assert_eq!(feasible, Feasible::No);
    assert_eq!(why, "the cgroup may have 8 pages of 2M: raise /sys/fs/cgroup/a/hugetlb.2MB.max");
}

#[test]
fn a_kernel_without_hugetlb_says_so() {
    let mut host = host();
    host.pages.pools.remove(1);
    let error =
        answer(&host, &Ask { pages: vec![(GIB, 1)], ..ask(0) }).map(|_| ()).expect_err("no such size");
    assert_eq!(error, "this host has no 1G huge pages, only of 2M".into());
    host.pages.pools.clear();
    assert!(answer(&host, &ask(1)).map(|_| ()).expect_err("none").0.starts_with("there is no hugetlb here"));
}
