use super::*;
use crate::base::Addr;
use crate::jvm::Kind;
use crate::map::law;
use crate::map::made_up::{extent, run, snapshot};

/// (part, resident bytes) of each share of each span.
fn spans(map: &MemoryMap) -> Vec<(&str, u64)> {
    map.shares().map(|(owner, share)| (owner.part.as_str(), share.figures.resident)).collect()
}

#[test]
fn an_inner_claim_refines_an_outer_one_and_the_rest_stays_unattributed() {
    let extents = vec![
        extent(0x2000, 0x8000, Kind::JavaHeap, "uncommitted", None),
        extent(0x3000, 0x5000, Kind::JavaHeap, "eden", Some(0x1800)),
    ];
    let pages = vec![run(0x1000, 0x4000, 1), run(0x4000, 0x9000, 1)];
    let snapshot = snapshot("1000-9000 rw-p 0 00:00 0 \n", pages, extents);
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    let expected = [
        ("anonymous memory", 0x1000),
        ("uncommitted", 0x1000),
        ("eden", 0x2000),
        ("uncommitted", 0x3000),
        ("anonymous memory", 0x1000),
    ];
    assert_eq!(spans(&map), expected);
    assert_eq!(map.balance.unattributed, 0x2000);
    let eden = map.owners.iter().position(|owner| owner.part == "eden").expect("eden");
    assert_eq!(map.in_use[eden], Some(0x1800));
}

#[test]
fn a_page_of_two_owners_is_split_by_bytes() {
    let extents = vec![
        extent(0x1000, 0x1800, Kind::Gc, "card table", None),
        extent(0x1800, 0x2000, Kind::CodeHeapSegmap, "code heap segment map", None),
    ];
    let snapshot = snapshot("1000-2000 rw-p 0 00:00 0 \n", vec![run(0x1000, 0x2000, 1)], extents);
    let map = join(&snapshot);
    assert_eq!(spans(&map), [("card table", 0x800), ("code heap segment map", 0x800)]);
}

#[test]
fn claims_that_overlap_without_nesting_are_a_gap_that_names_both() {
    let extents = vec![
        extent(0x1000, 0x3000, Kind::Gc, "card table", None),
        extent(0x2000, 0x4000, Kind::Metaspace, "metaspace node", None),
    ];
    let snapshot = snapshot("1000-4000 rw-p 0 00:00 0 \n", vec![run(0x1000, 0x4000, 1)], extents);
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("every byte still has one owner");
    let is_reported =
        map.gaps.iter().any(|gap| gap.what.contains("card table") && gap.what.contains("metaspace node"));
    assert!(is_reported, "{:?}", map.gaps);
}

#[test]
fn shared_memory_at_two_addresses_counts_once() {
    let maps = "1000-5000 rw-s 0 00:01 77 /memfd:java_heap (deleted)\n8000-c000 rw-s 0 00:01 77 /memfd:java_heap (deleted)\n";
    let pages = vec![run(0x1000, 0x3000, 1), run(0x8000, 0xb000, 2)];
    let snapshot = snapshot(maps, pages, Vec::new());
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    assert_eq!((map.balance.total.resident, map.balance.total.aliased), (0x3000, 0x2000));
}

#[test]
fn unknown_sharing_leaves_no_proportional_sum() {
    let snapshot = snapshot(
        "1000-3000 rw-p 0 00:00 0 \n",
        vec![run(0x1000, 0x2000, 4), run(0x2000, 0x3000, 0)],
        Vec::new(),
    );
    let map = join(&snapshot);
    assert_eq!(map.balance.total.proportional, 0x400 + 0x1000);
    assert_eq!(map.balance.proportional, None);
}

#[test]
fn claims_beyond_every_mapping_and_hostile_ranges_change_nothing() {
    let extents = vec![
        extent(0, u64::MAX, Kind::JavaHeap, "everything", Some(u64::MAX)),
        extent(0x7000_0000, 0x8000_0000, Kind::JavaHeap, "nowhere", Some(u64::MAX)),
        extent(0x2000, 0x2000, Kind::Gc, "nothing", None),
    ];
    let snapshot = snapshot("1000-3000 rw-p 0 00:00 0 \n", vec![run(0x1000, 0x3000, 1)], extents);
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    assert_eq!(spans(&map), [("everything", 0x2000)]);
    assert_eq!(map.spans[0].range, Range::new(Addr(0x1000), Addr(0x3000)));
}

#[test]
fn a_stack_that_is_all_guard_pages_has_no_span_under_its_own_name() {
    let stack = vec![extent(0x1000, 0x3000, Kind::Stack, "stack", Some(0x1000))];
    let snapshot = snapshot("1000-3000 ---p 00000000 00:00 0 \n", Vec::new(), stack);
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    assert_eq!(spans(&map), [("stack guard pages", 0)]);
    assert_eq!(map.in_use.len(), map.owners.len());
}
