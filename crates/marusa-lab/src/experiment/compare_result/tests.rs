use super::*;
use crate::experiment::trial_record::{self, WALL};
use std::collections::BTreeMap;

fn trial(block: usize, arm: &str, wall: f64) -> Trial {
    let mut trial = Trial::new(0, block, arm, String::new());
    trial.figures.insert(WALL.to_string(), wall);
    trial
}

/// Sums of twelve even numbers are as good as normal.
fn noise(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Blocks with a drift that all arms share, and noise of its own for each trial.
fn blocks(random: &mut fastrand::Rng, count: usize, slower: &[(&str, f64)]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for block in 1..=count {
        let drift = 1.0 + 0.05 * (block as f64 / 3.0).sin();
        for (arm, factor) in slower {
            trials.push(trial(block, arm, 10.0 * drift * factor * (1.0 + 0.01 * noise(random))));
        }
    }
    trials
}

fn asked(trials: &[Trial], arms: &[&str], warm_up: WarmUp) -> Comparison {
    let arms: Vec<String> = arms.iter().map(|arm| arm.to_string()).collect();
    let figures = trial_record::figures();
    let ask = Ask { arms: &arms, figures: &figures, about: WALL, warm_up, alpha: ALPHA, worth_percent: 2.0 };
    compare(trials, &ask)
}

fn verdicts(found: &Comparison) -> Vec<Verdict> {
    let cells = &found.main_row().expect("a row").cells;
    cells.iter().filter_map(|cell| Some(cell.against.as_ref()?.verdict)).collect()
}

#[test]
fn identical_arms_seem_to_differ_in_less_than_one_of_twenty_comparisons() {
    let mut random = fastrand::Rng::with_seed(3);
    let comparisons = 1000;
    let mut wrong = 0;
    for _ in 0..comparisons {
        let trials = blocks(&mut random, 8, &[("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)]);
        let found = asked(&trials, &["a", "b", "c", "d"], WarmUp::Found);
        wrong += usize::from(verdicts(&found).iter().any(|verdict| *verdict != Verdict::NotShown));
    }
    assert!(wrong * 20 <= comparisons + comparisons / 5, "{wrong} of {comparisons}");
}

#[test]
fn a_slower_arm_is_shown_by_as_many_blocks_as_were_estimated() {
    let mut random = fastrand::Rng::with_seed(4);
    let mut shown = 0;
    let searches = 100;
    for _ in 0..searches {
        let pilot = asked(&blocks(&mut random, 5, &[("a", 1.0), ("b", 1.0)]), &["a", "b"], WarmUp::Blocks(0));
        let cell = &pilot.main_row().expect("a row").cells[1];
        let needed = cell.against.as_ref().and_then(|one| one.needed?.likely).expect("an estimate");
        let found =
            asked(&blocks(&mut random, needed, &[("a", 1.0), ("b", 1.02)]), &["a", "b"], WarmUp::Blocks(0));
        shown += usize::from(verdicts(&found) == [Verdict::More]);
    }
    // Nine of ten for a deviation that is known; this one is an estimate of five blocks.
    assert!(shown >= searches * 7 / 10, "{shown} of {searches}");
}

#[test]
fn an_interval_that_is_known_and_trials_that_do_not_count() {
    let mut trials = vec![trial(1, "a", 10.0), trial(1, "b", 11.0), trial(2, "a", 10.0), trial(2, "b", 11.0)];
    trials.push(trial(3, "a", 10.0));
    trials.push(Trial { left_out: Some("it failed".into()), ..trial(3, "b", 99.0) });
    let found = asked(&trials, &["a", "b"], WarmUp::Blocks(0));
    let cell = &found.main_row().expect("a row").cells[1];
    let against = cell.against.as_ref().expect("two blocks");
    assert_eq!((against.blocks, cell.trials, against.verdict), (2, 2, Verdict::More));
    let interval = against.claim.interval;
    assert!((interval.estimate - 10.0).abs() < 1e-9 && (interval.low - 10.0).abs() < 1e-9);
    assert_eq!(found.arms[1].left_out, [("it failed".to_string(), 1)]);
    assert_eq!((found.arms[0].counted, found.arms[1].counted, found.blocks), (3, 2, 3));
    let one = asked(&trials[..2], &["a", "b"], WarmUp::Blocks(0));
    assert_eq!(one.main_row().expect("a row").cells[1].against, None, "one block has no interval");
    assert_eq!(one.margin_percent(), None);
}

#[test]
fn a_figure_that_can_be_0_is_compared_by_differences() {
    let faults = |block, arm, count: f64| Trial {
        figures: BTreeMap::from([("major_faults".to_string(), count)]),
        ..trial(block, arm, 1.0)
    };
    let trials: Vec<Trial> = (1..=4)
        .flat_map(|block| {
            [faults(block, "a", 100.0 + block as f64), faults(block, "b", if block == 1 { 0.0 } else { 2.0 })]
        })
        .collect();
    let found = asked(&trials, &["a", "b"], WarmUp::Blocks(0));
    let row = found.rows.iter().find(|row| row.figure.key == "major_faults").expect("a row");
    let against = row.cells[1].against.as_ref().expect("an interval");
    assert_eq!((against.scale, against.verdict), (Scale::Unit, Verdict::Less), "{against:?}");
    assert!(against.claim.interval.estimate < -90.0, "{against:?}");
}

#[test]
fn a_first_block_that_is_far_out_is_warm_up_and_noise_is_not() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut trials = blocks(&mut random, 10, &[("a", 1.0), ("b", 1.0)]);
    trials.iter_mut().filter(|trial| trial.block == 1 && trial.arm == "a").for_each(|trial| {
        trial.figures.insert(WALL.to_string(), 30.0);
    });
    let found = asked(&trials, &["a", "b"], WarmUp::Found);
    assert_eq!((found.warm_up_blocks, found.arms[0].warm_up, found.arms[0].counted), (1, 1, 9));
    assert_eq!(asked(&trials, &["a", "b"], WarmUp::Blocks(2)).warm_up_blocks, 2);
    let few = asked(&trials[..8], &["a", "b"], WarmUp::Found);
    assert_eq!(few.warm_up_blocks, 0, "nothing to hold it against");
}
