use super::*;
use crate::experiment::bench::trials::{ArmRow, OfArm};

fn arm(heap_mib: u64, pages: PageMode) -> Arm {
    Arm { jdk: "17.0.9".to_string(), heap_bytes: heap_mib << 20, pages, mechanism: Mechanism::Fork }
}

fn settings(heaps_mib: &[u64]) -> Settings {
    Settings {
        machine: Machine::default(),
        jdks: vec!["17.0.9".to_string()],
        heaps: heaps_mib.iter().map(|mib| mib << 20).collect(),
        pages: vec![PageMode::Small, PageMode::HugeTlb2M],
        mechanisms: vec![Mechanism::Fork],
        children: 10,
        threads: vec![1],
        rounds: 5,
        seed: 1,
    }
}

fn rows(settings: &Settings, arms: &[Arm], trials: &[Trial]) -> Vec<ArmRow<Arm, ArmFigures>> {
    let of_arms = arms.iter().map(|arm| OfArm::among(trials, arm));
    of_arms.map(|of| of.row(figures(settings, &of))).collect()
}

fn trial(round: usize, arm: &Arm, ms: f64) -> Trial {
    let children =
        Children { threads: 1, children: 10, ms_each: ms, total_ms: ms, start_ms: ms, start_ms_min: ms };
    let figures = Figures { children: vec![children], ..Figures::default() };
    Trial { figures, ..Trial::of(round, arm.clone()) }
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
    let arms = [arm(1024, PageMode::Small), arm(1024, PageMode::HugeTlb2M)];
    let mut trials = Vec::new();
    // The second round is twice as slow for both: the ratio does not see it.
    for (round, (ms, by)) in [(20.0, 1.0), (40.0, 2.0), (22.0, 1.1), (18.0, 0.9)].into_iter().enumerate() {
        trials.extend([trial(round, &arms[0], ms), trial(round, &arms[1], by)]);
    }
    let mut without = trial(4, &arms[1], 500.0);
    without.discount("only 3 % were on 2 MiB pages");
    trials.extend([without, trial(4, &arms[0], 1.0)]);
    let rows = rows(&settings(&[1024]), &arms, &trials);
    let found = report(&settings(&[1024]), &rows, &trials);
    assert_eq!(found.by_pages.len(), 1);
    assert_eq!((&found.by_pages[0].arm, &found.by_pages[0].base), (&arms[0], &arms[1]));
    let ratio = found.by_pages[0].ratios[0].each_ms.expect("four rounds");
    assert!((ratio.ratio - 20.0).abs() < 1e-9 && ratio.rounds == 4, "{ratio:?}");
    let huge = &rows[1];
    let spread = huge.figures.children[0].each_ms.expect("four rounds");
    assert_eq!((spread.min, spread.max, spread.count), (0.9, 2.0, 4));
    assert_eq!((huge.trials, huge.counted), (5, 4));
    assert!(huge.why_not.as_ref().is_some_and(|why| why.contains("3 %")));
}

#[test]
fn the_line_through_the_heaps() {
    let arms: Vec<Arm> = [512, 1024, 2048].map(|mib| arm(mib, PageMode::Small)).to_vec();
    let ms = |arm: &Arm| 2.0 + 60.0 * arm.heap_bytes as f64 / (1_u64 << 30) as f64;
    let trials: Vec<Trial> = arms.iter().map(|arm| trial(0, arm, ms(arm))).collect();
    let by_gib =
        |settings: &Settings, arms: &[Arm]| report(settings, &rows(settings, arms, &trials), &trials).by_gib;
    let found = by_gib(&settings(&[512, 1024, 2048]), &arms);
    assert!((found[0].ms_per_gib.expect("three") - 60.0).abs() < 1e-9);
    let one = by_gib(&settings(&[512]), &arms[..1]);
    assert_eq!((one.len(), one[0].ms_per_gib), (1, None));
}
