use super::*;
use crate::alloc::State;
use crate::base::Range;
use crate::jvm::Kind;
use crate::map::account::by_area;
use crate::map::made_up::{MAPS, arena, everything, extent, interval, run, snapshot, unknown, view};
use crate::map::{join, law};
use crate::os::pagemap::PageRun;

/// (area, part) to reserved and resident bytes.
fn part(map: &MemoryMap, area: Area, part: &str) -> (u64, u64) {
    let areas = by_area(map);
    let area = areas.iter().find(|sum| sum.area == area).expect("the area");
    let part = area.parts.iter().find(|sum| sum.part == part).expect("the part");
    (part.figures.reserved, part.figures.resident)
}

#[test]
fn every_state_is_an_owner_and_all_bytes_are_somebodys() {
    let snapshot = everything(vec![run(0x10_0000, 0x11_0000, 1), run(0x20_0000, 0x20_4000, 1)]);
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    assert_eq!(part(&map, Area::MallocUnknown, "malloc, owner unknown"), (0x1001, 0x1001));
    assert_eq!(part(&map, Area::JitWork, "C2 arenas"), (0x5fe5, 0x5fe5));
    assert_eq!(part(&map, Area::MallocFreed, "in thread caches"), (7, 7));
    assert_eq!(part(&map, Area::MallocFreed, "in large bins"), (0x2fff, 0x2fff));
    assert_eq!(part(&map, Area::MallocFreed, "tops of thread arenas"), (0x1000, 0x1000));
    assert_eq!(part(&map, Area::MallocFreed, "malloc arenas, not in use yet"), (0x8000, 0x8000));
    assert_eq!(part(&map, Area::Overhead, "malloc, chunk headers and rounding"), (0x1013, 0x1013));
    assert_eq!(part(&map, Area::Unattributed, "malloc, unresolved"), (1, 1));
    assert_eq!(map.balance.unattributed, 1);
    let areas = by_area(&map);
    let in_use = |area| areas.iter().find(|sum| sum.area == area).expect("the area").in_use;
    assert_eq!(in_use(Area::JitWork), Some(0x5fe5));
    assert_eq!(in_use(Area::MallocFreed), Some(0));
    assert_eq!(in_use(Area::Unattributed), None, "whether it is in use is unknown");
}

#[test]
fn odd_pages_are_split_so_that_every_sum_stays_exact() {
    let swapped = PageRun { bits: PageRun::SWAPPED, ..run(0x10_5000, 0x10_6000, 0) };
    let big = PageRun { page_bytes: 65_536, ..run(0x10_2000, 0x10_3000, 3) };
    let pages = vec![
        run(0x10_0000, 0x10_1000, 7),
        run(0x10_1000, 0x10_2000, 0),
        big,
        swapped,
        run(0x10_6000, 0x10_8000, 5),
        run(0x20_1000, 0x20_2000, 1),
    ];
    let snapshot = everything(pages);
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    let total = &map.balance.total;
    assert_eq!((total.resident, total.swapped, total.sharing_unknown), (0x6000, 0x1000, 0x1000));
    assert_eq!(total.proportional, 4096 / 7 + 4096 + 4096 / 3 + 4096 / 5 + 4096 / 5 + 4096);
    assert_eq!(total.by_page_size, [(4096, 0x5000), (65_536, 0x1000)].into());
    let sum = sum(&snapshot, &map).expect("malloc");
    for divided in [&sum.total, &sum.mmapped, &sum.arenas[0].divided] {
        let mut parts = Figures::default();
        let Divided { whole, in_use, freed, overhead, beyond, unresolved, unwalked } = divided;
        [in_use, freed, overhead, beyond, unresolved, unwalked].iter().for_each(|part| parts.add(part));
        assert_eq!(&parts, whole);
    }
    assert_eq!(sum.mmapped.whole.resident, 0x1000);
    assert_eq!(sum.figures.map(|figures| figures.trimmable_bytes), Ok(0x2000));
}

#[test]
fn a_claim_of_the_runtime_within_a_interval_wins_and_the_rest_is_apportioned() {
    let mut snapshot = everything(vec![run(0x10_0000, 0x11_0000, 1)]);
    let table = extent(0x10_0001, 0x10_1004, Kind::Gc, "card table", None);
    snapshot.jvm.iter_mut().for_each(|jvm| jvm.extents.push(table.clone()));
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    assert_eq!(part(&map, Area::Gc, "card table"), (0x1003, 0x1003));
    let rest: u64 = map
        .spans
        .iter()
        .filter(|span| span.range.end.0 <= 0x10_4000 && span.shares.len() > 1)
        .map(|span| span.figures().resident)
        .sum();
    assert!(rest <= 0x4000 - 0x1003 && rest > 0x2ff0, "{rest:#x}");
}

#[test]
fn an_arena_that_was_not_walked_stays_whole_and_has_no_sums() {
    let mut snapshot = snapshot(MAPS, vec![run(0x10_0000, 0x10_8000, 1)], Vec::new());
    let chunk = Range::of(0x20_0000, 0x20_4000);
    snapshot.alloc = Ok(view(vec![arena(1, unknown())], vec![chunk], Vec::new()));
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    assert_eq!(part(&map, Area::MallocUnknown, "malloc thread arenas"), (0x8000, 0x8000));
    assert_eq!(part(&map, Area::MallocUnknown, "malloc mmapped chunks"), (0x4000, 0));
    assert_eq!(part(&map, Area::MallocFreed, "malloc arenas, not in use yet"), (0x8000, 0));
    let sum = sum(&snapshot, &map).expect("malloc");
    assert!(sum.figures.is_err());
    assert_eq!(sum.total.unwalked.reserved, 0xc000);
}

#[test]
fn blocks_are_counted_by_the_owner_that_the_runtime_names() {
    let snapshot = everything(Vec::new());
    let map = join(&snapshot);
    let sum = sum(&snapshot, &map).expect("malloc");
    let owners: Vec<(Option<&str>, u64)> =
        sum.owners.iter().map(|sum| (sum.owner.map(|owner| owner.part.as_str()), sum.count.bytes)).collect();
    assert_eq!(owners, [(None, 0x1001), (Some("C2 arenas"), 0x2ff5)]);
}

#[test]
fn memory_of_another_allocator_is_distinguished_and_is_not_in_glibcs_sums() {
    let mut snapshot = everything(vec![run(0x10_0000, 0x11_0000, 1), run(0x20_0000, 0x20_4000, 1)]);
    let shares = [(State::InUse(1), 0x1000), (State::Overhead, 0x12), (State::NotWalked, 0x2fee)];
    let mut alloc = view(Vec::new(), Vec::new(), vec![interval(0x20_0000, 0x20_4000, None, &shares)]);
    alloc.other = Some(crate::alloc::OtherAllocator {
        name: "jemalloc".to_string(),
        version: Some("5.3.0".to_string()),
        path: "/usr/lib/libjemalloc.so.2".to_string(),
        how: "around blocks of the VM".to_string(),
    });
    snapshot.alloc = Ok(alloc);
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    let sum = sum(&snapshot, &map).expect("an allocator");
    assert_eq!((sum.other.in_use.resident, sum.other.overhead.resident), (0x1000, 0x12));
    assert_eq!((sum.other.unwalked.resident, sum.total.whole.resident), (0x2fee, 0));
    let unknown = by_area(&map).into_iter().find(|area| area.area == Area::MallocUnknown).expect("there");
    assert_eq!(unknown.parts[0].part, "jemalloc 5.3.0: free, its own tables, other libraries'");
}
