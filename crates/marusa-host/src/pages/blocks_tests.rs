use super::*;
use crate::jvm::Kind;
use crate::map::made_up::{extent, snapshot};

const M2: u64 = 2 << 20;

fn run(start: u64, end: u64) -> PageRun {
    PageRun { range: Range::of(start, end), bits: PageRun::PRESENT, page_bytes: 4096, mapped_times: 1 }
}

fn huge(start: u64, end: u64) -> PageRun {
    PageRun { page_bytes: M2 as u32, ..run(start, end) }
}

/// A heap of eight blocks at 1 GiB, whose mapping begins 4 KiB before and ends 4 KiB behind.
const BASE: u64 = 1 << 30;

fn planned(maps: &str, flags: &str, runs: Vec<PageRun>, wanted: &Wanted) -> BlockPlan {
    let heap = extent(BASE - 4096, BASE + 8 * M2 + 4096, Kind::JavaHeap, "old", None);
    let mut snapshot = snapshot(maps, runs, vec![heap]);
    let text = maps.lines().map(|line| format!("{line}\nRss: 0 kB\nVmFlags: {flags}\n")).collect::<String>();
    snapshot.os.smaps = Some(Ok(smaps::parse(&text)));
    let map = crate::map::join(&snapshot);
    let plan = plan(&snapshot, &map, wanted).expect("the place is known");
    for area in &plan.areas {
        let parts = area.on_2m + area.planned + area.left.values().sum::<u64>();
        assert_eq!(parts, area.resident, "the books balance: {area:?}");
    }
    plan
}

fn anonymous() -> String {
    format!("{:x}-{:x} rw-p 00000000 00:00 0 \n", BASE - 4096, BASE + 8 * M2 + 4096)
}

fn wanted() -> Wanted {
    Wanted { areas: vec![Area::JavaHeap], density: 0.9, growth: 0.01 }
}

fn starts(plan: &BlockPlan) -> Vec<u64> {
    plan.blocks.iter().map(|block| (block.range.start.0 - BASE) / M2).collect()
}

fn left(plan: &BlockPlan, why: Left) -> u64 {
    plan.areas.iter().map(|area| area.left.get(&why).copied().unwrap_or(0)).sum()
}

#[test]
fn full_blocks_are_planned_and_edges_are_left() {
    let plan = planned(&anonymous(), "rd wr", vec![run(BASE - 4096, BASE + 8 * M2 + 4096)], &wanted());
    assert_eq!(starts(&plan), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((plan.growth, left(&plan, Left::NoBlock)), (0, 8192));
    assert_eq!(plan.areas[0].planned, 8 * M2);
}

#[test]
fn holes_are_filled_only_as_far_as_the_process_may_grow() {
    // Seven blocks lack a page each, the eighth lacks half.
    let mut runs: Vec<PageRun> =
        (0..7).map(|index| run(BASE + index * M2 + 4096, BASE + (index + 1) * M2)).collect();
    runs.push(run(BASE + 7 * M2, BASE + 7 * M2 + M2 / 2));
    let some = Wanted { growth: 3.5 * 4096.0 / (7.5 * M2 as f64), ..wanted() };
    let plan = planned(&anonymous(), "rd wr", runs.clone(), &some);
    assert_eq!((starts(&plan), plan.growth), (vec![0, 1, 2], 3 * 4096));
    assert_eq!(left(&plan, Left::Growth), 4 * (M2 - 4096));
    assert_eq!(left(&plan, Left::Sparse), M2 / 2);
    let none = Wanted { growth: 0.0, ..wanted() };
    assert!(planned(&anonymous(), "rd wr", runs.clone(), &none).blocks.is_empty());
    let dense = Wanted { density: 1.0, ..wanted() };
    assert!(planned(&anonymous(), "rd wr", runs, &dense).blocks.is_empty());
}

#[test]
fn holes_of_shared_memory_are_never_filled_and_one_address_of_several_is_enough() {
    let view =
        |at: u64| format!("{:x}-{:x} rw-s 00000000 00:01 77 /memfd:java_heap (deleted)\n", at, at + 2 * M2);
    let (first, second) = (BASE, BASE + 4 * M2);
    let runs = vec![run(first, first + 2 * M2), run(second, second + 2 * M2 - 4096)];
    let much = Wanted { density: 0.0, growth: 1.0, ..wanted() };
    let plan = planned(&(view(first) + &view(second)), "rd wr sh", runs.clone(), &much);
    assert_eq!(starts(&plan), [0, 1], "at the second address the first block is the same memory");
    assert_eq!((left(&plan, Left::Alias), left(&plan, Left::SharedSparse)), (M2, M2 - 4096));
    let shifted = view(first).replace("00000000", "00001000");
    assert!(planned(&shifted, "rd wr sh", runs[..1].to_vec(), &much).blocks.is_empty());
}

#[test]
fn what_is_huge_is_left_and_can_be_split() {
    let runs = vec![huge(BASE, BASE + 2 * M2), run(BASE + 2 * M2, BASE + 3 * M2)];
    let plan = planned(&anonymous(), "rd wr hg", runs.clone(), &wanted());
    assert_eq!((starts(&plan), plan.on_2m.len(), plan.areas[0].on_2m), (vec![2], 2, 2 * M2));
    let hugetlb = planned(&anonymous(), "rd wr ht", runs, &wanted());
    assert!(hugetlb.blocks.is_empty() && hugetlb.on_2m.is_empty());
    assert_eq!(left(&hugetlb, Left::Hugetlb), 3 * M2);
}

#[test]
fn each_mapping_that_may_not_be_huge_says_why() {
    let runs = || vec![run(BASE, BASE + M2)];
    for (flags, why) in [("rd wr nh", Left::NoThp), ("rd wr lo", Left::Locked)] {
        let plan = planned(&anonymous(), flags, runs(), &wanted());
        assert_eq!((plan.blocks.len(), left(&plan, why)), (0, M2), "{flags}");
    }
    let file = anonymous().replace("00:00 0 ", "fe:00 9 /usr/lib/x.so");
    assert_eq!(left(&planned(&file, "rd wr", runs(), &wanted()), Left::File), M2);
    let swapped = vec![
        run(BASE, BASE + M2 - 4096),
        PageRun { bits: PageRun::SWAPPED, ..run(BASE + M2 - 4096, BASE + M2) },
    ];
    assert_eq!(left(&planned(&anonymous(), "rd wr", swapped, &wanted()), Left::Swapped), M2 - 4096);
    let forked = vec![PageRun { mapped_times: 2, ..run(BASE, BASE + M2) }];
    assert_eq!(left(&planned(&anonymous(), "rd wr", forked, &wanted()), Left::OtherProcess), M2);
    let unplaced = vec![PageRun { bits: PageRun::PRESENT | PageRun::PLACE_UNKNOWN, ..run(BASE, BASE + M2) }];
    assert_eq!(left(&planned(&anonymous(), "rd wr", unplaced, &wanted()), Left::NoPlace), M2);
}

#[test]
fn a_block_that_another_area_has_a_part_of_is_left() {
    let heap = extent(BASE, BASE + M2 + M2 / 2, Kind::JavaHeap, "old", None);
    let table = extent(BASE + M2 + M2 / 2, BASE + 2 * M2, Kind::Gc, "card table", None);
    let maps = format!("{:x}-{:x} rw-p 00000000 00:00 0 \n", BASE, BASE + 2 * M2);
    let snapshot = snapshot(&maps, vec![run(BASE, BASE + 2 * M2)], vec![heap, table]);
    let map = crate::map::join(&snapshot);
    let only_heap = plan(&snapshot, &map, &wanted()).expect("known");
    assert_eq!(starts(&only_heap), [0]);
    assert_eq!(left(&only_heap, Left::OtherArea), M2 / 2);
    let both = Wanted { areas: vec![Area::JavaHeap, Area::Gc], ..wanted() };
    assert_eq!(starts(&plan(&snapshot, &map, &both).expect("known")), [0, 1]);
}
