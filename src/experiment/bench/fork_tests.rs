use super::*;

fn arm(heap_mib: u64, pages: &str) -> Arm {
    Arm {
        jdk: "17.0.9".to_string(),
        heap_bytes: heap_mib << 20,
        pages: pages.to_string(),
        mechanism: Mechanism::Fork,
    }
}

fn trial(round: usize, arm: Arm, ms: f64) -> Trial {
    let children =
        Children { threads: 1, children: 10, ms_each: ms, total_ms: ms, start_ms: ms, start_ms_min: ms };
    let figures = Figures {
        pages_share_before: 1.0,
        pages_share_after: None,
        page_table_bytes: Some(1 << 20),
        children: vec![children],
        sweep: None,
        sweep_while: None,
    };
    Trial { round, arm, left_out: None, figures: Some(figures), others: None }
}

fn each(figures: &Figures) -> Option<f64> {
    Some(figures.children.first()?.ms_each)
}

#[test]
fn answers_of_the_program() {
    let found = children(
        "forked 40000000 started 1000000,3000000,2000000,9000000 ended 4000000,5000000,6000000,7000000",
        2,
    )
    .expect("good");
    assert_eq!((found.children, found.threads, found.ms_each), (4, 2, 10.0));
    assert_eq!((found.total_ms, found.start_ms, found.start_ms_min), (5.5, 2.5, 1.0));
    for bad in ["", "forked", "forked x started 1 ended 1", "forked 1 started  ended", "swept 1 pages 2"] {
        assert_eq!(children(bad, 1), None, "{bad}");
    }
    assert_eq!(swept("swept 2500000 pages 10"), Some((2.5, 10)));
    assert_eq!(swept("swept 2500000"), None);
    let during = swept_while("sweeps 4 took 8000000 started 3000000", 10, Some(50)).expect("good");
    assert_eq!((during.sweep_ms, during.start_ms, during.faults_per_child), (2.0, 3.0, Some(5.0)));
    assert_eq!(swept_while("sweeps 0 took 0 started 1", 10, None), None);
}

#[test]
fn arms_are_compared_round_by_round_and_what_does_not_count_is_left_out() {
    let (small, huge) = (arm(1024, "4k"), arm(1024, "hugetlb-2m"));
    let mut results = Results::default();
    // The second round is twice as slow for both: the ratio does not see it.
    for (round, (ms, by)) in [(20.0, 1.0), (40.0, 2.0), (22.0, 1.1), (18.0, 0.9)].into_iter().enumerate() {
        results.trials.push(trial(round, small.clone(), ms));
        results.trials.push(trial(round, huge.clone(), by));
    }
    let mut without = trial(4, huge.clone(), 500.0);
    without.left_out = Some("only 3 % were on 2 MiB pages".to_string());
    results.trials.push(without);
    results.trials.push(trial(4, small.clone(), 1.0));
    let ratio = results.ratio(&small, &huge, &each).expect("four rounds");
    assert!((ratio.ratio - 20.0).abs() < 1e-9 && ratio.rounds == 4, "{ratio:?}");
    assert!(ratio.low <= 20.0 && ratio.high >= 19.999);
    let spread = results.spread(&huge, &each).expect("four rounds");
    assert_eq!((spread.from, spread.to, spread.rounds), (0.9, 2.0, 4));
    assert_eq!(results.left_out().len(), 1);
    assert_eq!(results.ratio(&small, &arm(512, "4k"), &each), None);
}

#[test]
fn the_line_through_the_heaps() {
    let mut results = Results::default();
    let arms: Vec<Arm> = [512, 1024, 2048].map(|mib| arm(mib, "4k")).to_vec();
    for arm in &arms {
        let ms = 2.0 + 60.0 * arm.heap_bytes as f64 / (1_u64 << 30) as f64;
        results.trials.push(trial(0, arm.clone(), ms));
    }
    assert!((results.ms_per_gib(&arms, &each).expect("three") - 60.0).abs() < 1e-9);
    assert_eq!(results.ms_per_gib(&arms[..1], &each), None);
}
