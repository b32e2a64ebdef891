use super::*;
use crate::experiment::compare_result::{self, ALPHA, Ask, WarmUp};
use crate::experiment::trial_record::{self, PEAK_RESIDENT, Unit, WALL};
use crate::show::width;

/// Runs of three arms: the second takes 10 % less, the third as much as the first.
fn trials() -> Vec<Trial> {
    let mut random = fastrand::Rng::with_seed(2);
    let mut trials = Vec::new();
    for block in 1..=10 {
        for (arm, factor) in [("base", 1.0), ("thp", 0.9), ("same", 1.0)] {
            let mut trial = Trial::new(trials.len() + 1, block, arm, String::new());
            let wall = 12.0 * factor * (1.0 + 0.02 * (random.f64() - 0.5));
            trial.figures.insert(WALL.into(), wall);
            trial.figures.insert(PEAK_RESIDENT.into(), 400e6 * factor);
            trials.push(trial);
        }
    }
    trials
}

fn compared(trials: &[Trial]) -> Comparison {
    let arms = ["base", "thp", "same"].map(String::from);
    let figures = trial_record::all_figures(trials);
    let ask = Ask {
        arms: &arms,
        figures: &figures,
        about: WALL,
        warm_up: WarmUp::Found,
        alpha: ALPHA,
        worth_percent: 0.1,
    };
    compare_result::compare(trials, &ask)
}

fn said(comparison: &Comparison, arm: usize) -> String {
    let row = comparison.main_row().expect("a row");
    sentence(&row.figure, "base", row.cells[arm].against.as_ref().expect("an interval"), 0.1)
}

#[test]
fn one_sentence_says_which_is_better_or_what_would_have_been_seen() {
    let found = compared(&trials());
    let better = said(&found, 1);
    assert!(better.starts_with("better: 9.") || better.starts_with("better: 10."), "{better}");
    assert!(
        better.contains(" % less wall time than base (") && better.ends_with("the effect is large"),
        "{better}"
    );
    let same = said(&found, 2);
    assert!(same.starts_with("no difference in wall time shown: between 0."), "{same}");
    assert!(same.contains("would have been seen 9 times of 10, 0.1 % takes about"), "{same}");
    // More requests are better, more time is not.
    let row = found.main_row().expect("a row");
    let higher = Figure { lower_is_better: false, ..row.figure.clone() };
    let text = sentence(&higher, "base", row.cells[1].against.as_ref().expect("an interval"), 1.0);
    assert!(text.starts_with("worse: "), "{text}");
}

#[test]
fn tables_fit_any_terminal_and_name_every_arm() {
    let found = compared(&trials());
    for columns in [40, 60, 80, 100] {
        let text = width::within(columns, || {
            let mut out = Vec::new();
            table::figures(&mut out, &found).expect("written");
            String::from_utf8(out).expect("UTF-8")
        });
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{columns}: {text}");
        assert!(["base", "thp", "same"].iter().all(|arm| text.contains(arm)), "{text}");
        assert!(text.lines().any(|line| line.starts_with("wall time") && line.contains('*')), "{text}");
    }
    assert_eq!(figure::value(2.0, &Unit::Own("ops".into())), "2.00 ops");
}

#[test]
fn what_is_missing_is_reported_once() {
    let mut trials = trials();
    for trial in &mut trials[..6] {
        trial.gaps.push(Gap::new("counters", crate::base::Why::NotInThisKernel));
    }
    assert_eq!(gaps(&trials), ["not measured in 6 of 30 runs: counters (not in this kernel)"]);
    trials[3].notes.push("it left running".into());
    assert_eq!(notes(&trials).len(), 1);
}
