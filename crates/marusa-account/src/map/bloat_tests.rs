use super::*;
use crate::base::Addr;
use crate::map::{Balance, Figures, Owner, Share};

const M: u64 = 1 << 20;
const HEAP: u64 = 0x1_0000_0000;
const ARENA: u64 = 0x2_0000_0000;

fn owner(area: Area, part: &str, instance: Instance) -> Owner {
    Owner { area, part: part.to_string(), instance, how: String::new() }
}

fn span(start: u64, bytes: u64, shares: &[(usize, u64)]) -> Span {
    let share = |(owner, resident): &(usize, u64)| Share {
        owner: *owner,
        figures: Figures { resident: *resident, reserved: *resident, ..Figures::default() },
    };
    Span { range: Range::sized(Addr(start), bytes), mapping: 0, shares: shares.iter().map(share).collect() }
}

/// A heap of 3 MiB eden and the rest old, an arena whose pages two owners share, and a stack.
fn account(heap_bytes: u64) -> MemoryMap {
    let owners = vec![
        owner(Area::JavaHeap, "eden", Instance::None),
        owner(Area::JavaHeap, "old", Instance::None),
        owner(Area::JvmWork, "symbols", Instance::Arena(0)),
        owner(Area::MallocFreed, "large bins", Instance::Arena(0)),
        owner(Area::Stack, "Java thread stack", Instance::Thread(7)),
    ];
    let spans = vec![
        span(HEAP, 3 * M, &[(0, 3 * M)]),
        span(HEAP + 3 * M, heap_bytes - 3 * M, &[(1, heap_bytes - 3 * M)]),
        span(ARENA, 2 * M, &[(2, M / 2), (3, 3 * M / 2)]),
        span(0x3_0000_0000, 2 * M, &[(4, 2 * M)]),
    ];
    let in_use = vec![None; owners.len()];
    MemoryMap { spans, owners, in_use, balance: Balance::default(), gaps: Vec::new() }
}

fn seen(start: u64, stands_for_bytes: u64, zeros: &[(u64, u64)]) -> Seen {
    let zeros = zeros.iter().map(|(at, bytes)| Range::sized(Addr(start + at), *bytes)).collect();
    Seen { sort: Sort::Thp, stands_for_bytes, read: vec![Range::sized(Addr(start), 2 * M)], zeros }
}

#[test]
fn zeros_go_to_the_owners_of_their_pages() {
    let map = account(6 * M);
    let stack = Seen { sort: Sort::Folio, ..seen(0x3_0000_0000, 2 * M, &[(0, M)]) };
    let zeros = Zeros {
        candidates: vec![
            (Range::sized(Addr(HEAP), 6 * M), Sort::Thp),
            (Range::sized(Addr(ARENA), 2 * M), Sort::Thp),
            (Range::sized(Addr(0x3_0000_0000), 2 * M), Sort::Folio),
        ],
        seen: vec![
            seen(HEAP, 2 * M, &[(0, M / 2)]),
            // Lies over the border of eden and old: half of a MiB of zeros on each side.
            seen(HEAP + 2 * M, 2 * M, &[(M / 2, M), (2 * M - 4096, 4096)]),
            seen(HEAP + 4 * M, 2 * M, &[(0, 2 * M)]),
            seen(ARENA, 2 * M, &[(0, 8192)]),
            stack,
        ],
        shrinker: Shrinker { is_on: Some(true), max_ptes_none: Some(409) },
        ..Zeros::default()
    };
    let bloat = Bloat::of("6.18.44-generic", &map, &zeros);
    let part = |area, name: &str| bloat.parts[&(area, name.to_string())].of(Sort::Thp);
    let eden = part(Area::JavaHeap, "eden");
    assert_eq!((eden.resident_bytes, eden.read_bytes), (3 * M, 3 * M));
    assert_eq!(eden.zero, Estimate::exactly(M));
    assert_eq!((eden.mostly_zero_bytes, eden.all_zero_bytes), (M, 0));
    let old = part(Area::JavaHeap, "old");
    assert_eq!(old.zero, Estimate::exactly(2 * M + M / 2 + 4096));
    assert_eq!((old.mostly_zero_bytes, old.all_zero_bytes, old.shrinker_bytes), (3 * M, 2 * M, 2 * M));
    assert_eq!(part(Area::JvmWork, "symbols").zero, Estimate::exactly(2048), "a quarter of the pages");
    assert_eq!(bloat.malloc.of(Sort::Thp).zero, Estimate::exactly(8192));
    let all = bloat.total.of(Sort::Thp);
    assert_eq!(all.zero.bytes, 3 * M + M / 2 + 4096 + 8192);
    assert_eq!(bloat.split_returns(&bloat.total), all.zero);
    assert_eq!((bloat.threads_on_large, bloat.area(Area::Stack).large_zero().bytes), (1, M));
    assert_eq!(bloat.total.large_bytes(), 10 * M);
    let old_kernel = Bloat::of("6.8.0-45-generic", &map, &zeros);
    assert_eq!(old_kernel.split_returns(&bloat.total).bytes, 0);
}

/// Every eighth block of 1 GiB is read; each is a quarter zeros.
#[test]
fn a_sample_stands_for_the_rest_and_says_how_sure_it_is() {
    let map = account(1024 * M);
    let cell = 16 * M;
    let blocks: Vec<Seen> =
        (0..64).map(|number| seen(HEAP + number * cell + 2 * M, cell, &[(0, M / 2)])).collect();
    let zeros = Zeros {
        candidates: vec![(Range::sized(Addr(HEAP), 1024 * M), Sort::Thp)],
        seen: blocks.clone(),
        is_sampled: true,
        ..Zeros::default()
    };
    let bloat = Bloat::of("6.12.0", &map, &zeros);
    let found = bloat.area(Area::JavaHeap).of(Sort::Thp);
    assert_eq!((found.zero.bytes, found.read_bytes), (256 * M, 128 * M));
    // All alike: at most 3 blocks in 64 may be otherwise.
    assert!(found.zero.low < 256 * M && found.zero.low > 200 * M, "{found:?}");
    assert!(found.zero.high > 256 * M && found.zero.high < 310 * M, "{found:?}");
    // Of what no block was read, all may be zeros, or nothing.
    let unseen = Zeros { seen: Vec::new(), ..zeros };
    let found = Bloat::of("6.12.0", &map, &unseen).area(Area::JavaHeap).of(Sort::Thp);
    assert_eq!(found.zero, Estimate { bytes: 0, low: 0, high: 1024 * M });
}

#[test]
fn releases_of_the_kernel() {
    assert!(is_since("6.12.0", (6, 12)) && is_since("7.0-rc1", (6, 12)) && is_since("6.18.44-fc", (6, 12)));
    assert!(is_since("6.7.0-rc1", (6, 7)) && is_since("7.0", (6, 7)) && !is_since("6.6.114-generic", (6, 7)));
    assert!(!is_since("6.8.0-45-generic", (6, 12)) && !is_since("5.15.0", (6, 12)) && !is_since("", (6, 12)));
}
