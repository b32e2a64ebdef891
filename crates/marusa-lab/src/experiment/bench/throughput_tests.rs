use super::*;
use crate::experiment::arm_pages::Verified;

fn settings(heaps: &[Bytes], pages: &[PageMode]) -> Settings {
    Settings {
        machine: Machine::default(),
        jdk: "17.0.15".to_string(),
        heaps: heaps.to_vec(),
        live: vec![0],
        touch: vec![FirstTouch::Use],
        pages: pages.to_vec(),
        gc: "parallel".to_string(),
        clients: 8,
        rate: None,
        warm_up_seconds: 1.0,
        seconds: 10.0,
        rounds: 3,
        seed: 5,
    }
}

fn load(rate: f64) -> HttpLoad {
    HttpLoad {
        requests: (rate * 10.0) as u64,
        seconds: 10.0,
        requests_per_second: rate,
        errors: 1,
        mean_ms: 1.0,
        p50_ms: 1.0,
        p90_ms: 1.0,
        p99_ms: 2.0,
        p999_ms: 3.0,
        max_ms: 4.0,
    }
}

fn trial(round: usize, arm: Arm, rate: f64, collections: u64) -> Trial {
    let gc = GcWork {
        window_seconds: 10.0,
        collections,
        stops: collections,
        full_collections: 0,
        stopped_ms: 5.0 * collections as f64,
        longest_stop_ms: Some(9.0),
        concurrent_ms: Some(0.0),
    };
    let (heap_resident_bytes, heap_wanted_bytes) = (1000, 990);
    let (text, why) = (String::new(), None);
    let seen = Verified { mode: arm.pages, heap_resident_bytes, heap_wanted_bytes, text, met: true, why };
    let figures = Figures {
        load: Some(load(rate)),
        gc: Some(gc),
        user_seconds: Some(8.0),
        system_seconds: Some(2.0),
        ..Figures::default()
    };
    Trial { figures, pages: vec![seen], ..Trial::of(round, arm) }
}

#[test]
fn arms_are_compared_by_pages_and_by_heap_round_by_round() {
    let arms = arms(&settings(&[256 << 20, 3584 << 20], &[PageMode::Small, PageMode::Thp]));
    assert_eq!(
        arms.iter().map(Arm::name).collect::<Vec<_>>(),
        ["256m 4k", "256m thp", "3584m 4k", "3584m thp"]
    );
    let mut trials = Vec::new();
    for round in 0..3 {
        // The whole machine is slower in each further round.
        let slow = 1.0 / (round + 1) as f64;
        let rates = [100.0, 110.0, 100.0, 150.0];
        let counts = [30, 30, 3, 1];
        trials.extend((0..4).map(|arm| trial(round, arms[arm], rates[arm] * slow, counts[arm])));
    }
    let found = report(&arms, &trials);
    assert!(arms.iter().all(|arm| figures(&OfArm::among(&trials, arm)).is_complete()));
    assert_eq!(found.by_pages.len(), 2);
    let large = &found.by_pages[1];
    assert_eq!((large.base, large.arm), (arms[2], arms[3]));
    let throughput = large.throughput.expect("three rounds");
    assert!((throughput.ratio - 1.5).abs() < 1e-9 && throughput.is_shown(), "{throughput:?}");
    // A third of the collections in the same time, for half as many requests more, which are whole ones.
    assert!((large.collections_per_request.expect("both").ratio - 2.0 / 9.0).abs() < 1e-3);
    assert_eq!(found.by_heap.iter().map(|one| one.arm).collect::<Vec<_>>(), [arms[2], arms[3]]);
    assert!((found.by_heap[0].throughput.expect("rounds").ratio - 1.0).abs() < 1e-9);
    let of_first = OfArm::among(&trials, &arms[0]);
    let first = of_first.row(figures(&of_first));
    assert_eq!((first.figures.errors, first.page_share_min), (Some(3), Some(0.99)));
    assert_eq!(first.figures.cpu_ms_per_request.expect("a mean").trials, 3);
}

#[test]
fn live_data_and_first_touch_are_compared_with_all_else_the_same() {
    let mut settings = settings(&[3584 << 20], &[PageMode::Small]);
    settings.live = vec![0, 2 << 30];
    settings.touch = vec![FirstTouch::Use, FirstTouch::Start];
    let arms = arms(&settings);
    let names: Vec<String> = arms.iter().map(Arm::name).collect();
    assert_eq!(names, ["3584m 4k", "3584m, touched 4k", "3584m, 2g alive 4k", "3584m, 2g alive, touched 4k"]);
    let rates = [100.0, 100.0, 50.0, 150.0];
    let trials: Vec<Trial> = (0..2)
        .flat_map(|round| (0..4).map(move |arm| (round, arm)))
        .map(|(round, arm)| trial(round, arms[arm], rates[arm], 3))
        .collect();
    let found = report(&arms, &trials);
    let factors = |all: &[Comparison]| {
        let of = |one: &Comparison| {
            (one.base.name(), one.arm.name(), one.throughput.map(|ratio| ratio.ratio.round()))
        };
        all.iter().map(of).collect::<Vec<_>>()
    };
    let row = |base: usize, arm: usize, ratio: f64| (names[base].clone(), names[arm].clone(), Some(ratio));
    assert_eq!(factors(&found.by_live), [row(0, 2, 1.0), row(1, 3, 2.0)]);
    assert_eq!(factors(&found.by_touch), [row(0, 1, 1.0), row(2, 3, 3.0)]);
    assert!(found.by_pages.is_empty() && found.by_heap.is_empty());
}

#[test]
fn a_trial_that_does_not_count_leaves_the_table_open() {
    let arms = arms(&settings(&[256 << 20], &[PageMode::Small, PageMode::HugeTlb2M]));
    let refused =
        Trial { not_counted: Some("the pool has no pages".to_string()), ..trial(0, arms[1], 9.0, 9) };
    let trials = [trial(0, arms[0], 5.0, 1), refused];
    let of_second = OfArm::among(&trials, &arms[1]);
    let second = of_second.row(figures(&of_second));
    assert!(!second.figures.is_complete());
    assert_eq!((second.trials, second.counted, second.figures.errors), (1, 0, None));
    let found = report(&arms, &trials);
    assert_eq!(found.by_pages[0].throughput, None);
    assert!(found.by_heap.is_empty(), "one heap");
}

#[test]
fn the_pages_of_a_heap_run_one_after_another() {
    let arms = arms(&settings(&[1 << 28, 1 << 29, 1 << 30], &[PageMode::Small, PageMode::HugeTlb2M]));
    let rounds: Vec<Vec<usize>> = (0..20).map(|round| trials::order(5, round, &arms)).collect();
    for order in &rounds {
        assert!(
            order.chunks(2).all(|pair| arms[pair[0]].heap_bytes == arms[pair[1]].heap_bytes),
            "{order:?}"
        );
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
    }
    let first = |order: &Vec<usize>| arms[order[0]];
    assert!(arms.iter().all(|arm| rounds.iter().any(|order| first(order) == *arm)), "by chance: {rounds:?}");
}
