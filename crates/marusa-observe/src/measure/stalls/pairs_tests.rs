use super::*;
use crate::measure::stalls::Stall;
use crate::measure::stalls::interval::{Figures, Missing};
use crate::os::trace::Hole as Lost;

const MS: u64 = 1_000_000;

fn event(ms: u64, tid: i32, what: What) -> Event {
    Event { at_ns: ms * MS, cpu: 0, tid, what }
}

fn on(cpu: u32, event: Event) -> Event {
    Event { cpu, ..event }
}

fn begin(ms: u64, tid: i32) -> Event {
    event(ms, tid, What::CompactionBegin { is_sync: true })
}

fn end(ms: u64, tid: i32) -> Event {
    event(ms, tid, What::CompactionEnd { is_sync: true, status: "success" })
}

fn batch(until_ms: u64, events: &[Event]) -> Batch {
    let tids = events.iter().map(|event| event.tid);
    Batch {
        events: events.to_vec(),
        until_ns: until_ms * MS,
        names: tids.clone().map(|tid| (tid, format!("thread-{tid}"))).collect(),
        tgids: tids.map(|tid| (tid, 100)).collect(),
        ..Batch::default()
    }
}

fn pairs() -> Pairs {
    let daemons = [(90, Daemon::Khugepaged), (91, Daemon::Kcompactd), (92, Daemon::Kswapd)];
    Pairs::new(0, daemons.into_iter().collect(), 9, true)
}

/// The milliseconds of each key of one interval.
fn times(interval: &Interval) -> Vec<(i32, Stall, Option<u32>, u64)> {
    let of = |(key, figures): (&Key, &Figures)| (key.tid, key.stall, key.order, figures.ns / MS);
    interval.stalls.iter().map(of).collect()
}

fn one(until_ms: u64, events: &[Event]) -> Interval {
    let mut pairs = pairs();
    pairs.feed(batch(until_ms, events));
    pairs.turn()
}

#[test]
fn a_try_names_the_order_of_the_zones_that_follow() {
    let interval = one(
        100,
        &[
            event(10, 7, What::CompactionTry { order: 9 }),
            begin(10, 7),
            end(15, 7),
            begin(15, 7),
            end(18, 7),
            event(19, 7, What::PageAlloc { order: 9, is_failed: true }),
            begin(20, 7),
            end(21, 7),
        ],
    );
    let compaction = Stall::DirectCompaction;
    assert_eq!(times(&interval), [(7, compaction, None, 1), (7, compaction, Some(9), 8)]);
    let figures = &interval.stalls[&Key { tid: 7, stall: compaction, order: Some(9) }];
    assert_eq!((figures.count, figures.worst_ns, figures.histogram.count()), (2, 5 * MS, 2));
    assert_eq!(interval.counts[&7].allocations[&9], (0, 1));
    assert_eq!(interval.seen[&7], Seen { pid: Some(100), name: Some("thread-7".into()) });
    assert_eq!(interval.missing, Missing::default());
}

#[test]
fn a_stall_over_three_intervals_has_its_part_in_each_and_counts_once() {
    let mut pairs = pairs();
    pairs.feed(batch(100, &[event(80, 7, What::ReclaimBegin { order: 3 })]));
    let first = pairs.turn();
    pairs.feed(batch(200, &[]));
    let second = pairs.turn();
    pairs.feed(batch(300, &[event(250, 7, What::ReclaimEnd { pages: 1 })]));
    let third = pairs.turn();
    let figures = |interval: &Interval| {
        let figures = interval.stalls.values().next().expect("one").clone();
        (figures.ns / MS, figures.count, figures.going_on, figures.worst_ns / MS)
    };
    assert_eq!(figures(&first), (20, 0, 1, 20));
    assert_eq!(figures(&second), (100, 0, 1, 120));
    assert_eq!(figures(&third), (50, 1, 0, 170));
    assert_eq!((third.from_ns, third.until_ns, third.seconds()), (200 * MS, 300 * MS, 0.1));
    assert_eq!(third.seen[&7].name.as_deref(), Some("thread-7"), "still known");
    assert!(pairs.turn().stalls.is_empty());
}

#[test]
fn time_belongs_to_the_innermost_so_the_sum_is_no_longer_than_the_clock() {
    let interval = one(
        100,
        &[
            event(10, 7, What::PageAlloc { order: 9, is_failed: false }),
            event(12, 7, What::GroupReclaimBegin { order: 9 }),
            event(13, 7, What::Throttled { delayed_us: 500 }),
            event(20, 7, What::GroupReclaimEnd { pages: 512 }),
            event(25, 7, What::PageTable),
        ],
    );
    let (group, fault) = (Stall::GroupReclaim, Stall::HugeFault);
    assert_eq!(times(&interval), [(7, group, Some(9), 8), (7, fault, Some(9), 7)]);
    let reclaim = &interval.stalls[&Key { tid: 7, stall: group, order: Some(9) }];
    assert_eq!(reclaim.throttled_ns, 500_000);
}

#[test]
fn a_huge_page_is_a_fault_or_a_collapse_by_its_end_and_else_nothing() {
    let mm = crate::os::trace::Mm(1);
    let got = |ms, tid| event(ms, tid, What::PageAlloc { order: 9, is_failed: false });
    let collapsed = |ms, tid| event(ms, tid, What::Collapse { status: "succeeded", is_file: false, mm });
    let interval = one(
        500,
        &[
            got(10, 7),
            got(11, 7),
            event(12, 7, What::PageTable),
            event(13, 7, What::PageTable),
            got(14, 8),
            collapsed(16, 8),
            got(20, 90),
            collapsed(23, 90),
            event(24, 90, What::KhugepagedScan { status: "succeeded", is_file: false, mm }),
            got(30, 9),
            event(200, 9, What::PageTable),
        ],
    );
    let expected = [
        (7, Stall::HugeFault, Some(9), 1),
        (8, Stall::Collapse, Some(9), 2),
        (90, Stall::Khugepaged, Some(9), 3),
    ];
    assert_eq!(times(&interval), expected);
    assert_eq!(interval.scans["succeeded"], 1);
    let mut untimed = Pairs::new(0, BTreeMap::new(), 9, false);
    untimed.feed(batch(100, &[got(10, 7), event(11, 7, What::PageTable)]));
    assert!(untimed.turn().stalls.is_empty());
}

#[test]
fn the_daemons_have_kinds_of_their_own() {
    let interval = one(
        100,
        &[
            event(1, 92, What::KswapdSleep { node: 0 }),
            event(10, 92, What::KswapdWake { node: 0, order: 0 }),
            event(20, 92, What::KswapdWake { node: 0, order: 0 }),
            event(30, 92, What::KswapdSleep { node: 0 }),
            event(40, 91, What::KcompactdWake { node: 0, order: 9 }),
            begin(40, 91),
            end(45, 91),
            event(46, 91, What::KcompactdSleep { node: 0 }),
            begin(50, 91),
            end(52, 91),
            event(60, 90, What::CompactionTry { order: 9 }),
            begin(60, 90),
            end(64, 90),
        ],
    );
    let expected = [
        (90, Stall::Khugepaged, Some(9), 4),
        (91, Stall::Kcompactd, None, 2),
        (91, Stall::Kcompactd, Some(9), 5),
        (92, Stall::Kswapd, None, 20),
    ];
    assert_eq!(times(&interval), expected);
    assert_eq!(interval.missing, Missing::default());
}

#[test]
fn events_that_were_read_too_early_wait_for_those_before_them() {
    let mut pairs = pairs();
    pairs.feed(batch(100, &[on(1, end(110, 7))]));
    assert!(pairs.turn().stalls.is_empty());
    pairs.feed(batch(200, &[begin(105, 7)]));
    let interval = pairs.turn();
    assert_eq!(times(&interval), [(7, Stall::DirectCompaction, None, 5)]);
    assert_eq!(interval.missing, Missing::default());
}

#[test]
fn begins_and_ends_without_each_other_are_counted_and_have_no_time() {
    let interval = one(100, &[end(10, 7), begin(20, 8), begin(40, 8), end(45, 8)]);
    assert_eq!(times(&interval), [(8, Stall::DirectCompaction, None, 5)]);
    assert_eq!((interval.missing.begins, interval.missing.ends), (1, 1));
}

#[test]
fn after_a_loss_only_pairs_of_one_cpu_without_a_loss_count() {
    let mut pairs = pairs();
    let events = [
        // Ends with the last event before the hole.
        on(0, begin(8, 5)),
        on(0, end(9, 5)),
        // 6 is on the CPU that loses events, 7 stays away from it, 8 moves.
        on(0, begin(9, 6)),
        on(1, begin(11, 7)),
        on(1, begin(12, 8)),
        on(0, end(50, 6)),
        on(1, end(51, 7)),
        on(2, end(52, 8)),
        // Begun in the hole.
        on(1, begin(30, 9)),
        on(1, end(33, 9)),
        // After it.
        on(0, begin(60, 6)),
        on(0, end(64, 6)),
    ];
    let lost = Lost { cpu: 0, before_ns: 50 * MS, lost: Some(3) };
    pairs.feed(Batch { lost: 3, holes: vec![lost], ..batch(100, &events) });
    let interval = pairs.turn();
    let compaction = Stall::DirectCompaction;
    assert_eq!(
        times(&interval),
        [
            (5, compaction, None, 1),
            (6, compaction, None, 4),
            (7, compaction, None, 40),
            (9, compaction, None, 3)
        ]
    );
    let holes = [(0, 1)].into_iter().collect();
    assert_eq!(interval.missing, Missing { lost: 3, holes, begins: 2, ends: 2, ..Missing::default() });
}

#[test]
fn what_is_uncertain_is_not_counted_before_it_has_ended() {
    let mut pairs = pairs();
    pairs.feed(batch(100, &[on(1, begin(50, 7))]));
    assert_eq!(times(&pairs.turn())[0].3, 50);
    let lost = Lost { cpu: 0, before_ns: 150 * MS, lost: None };
    pairs.feed(Batch { lost: 1, holes: vec![lost], ..batch(200, &[on(0, begin(150, 8))]) });
    let second = pairs.turn();
    assert_eq!(times(&second), [(8, Stall::DirectCompaction, None, 50)], "7 may have ended unseen");
    pairs.feed(batch(300, &[on(1, end(210, 7)), on(0, end(220, 8))]));
    let third = pairs.turn();
    assert_eq!(
        times(&third),
        [(7, Stall::DirectCompaction, None, 110), (8, Stall::DirectCompaction, None, 20)]
    );
}
