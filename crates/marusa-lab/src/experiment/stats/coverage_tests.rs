//! The promises of the intervals, tried: two identical arms claim a difference no more often than was allowed, and a
//! difference that is there is found within the runs that were predicted. On normal noise, on skewed noise, and on
//! noise with disturbed runs.

use super::{blocks_for, compare_blocks};
use statrs::distribution::{ContinuousCDF, Normal};

const SEARCHES: usize = 1000;
/// The bound for 1000 searches at 5 %: what chance exceeds in 1 % of cases is 5 % + 2.33 x sqrt(0.05 x 0.95 / 1000) = 6.6 %.
const WRONG_MAX: usize = 66;

struct Noise {
    random: fastrand::Rng,
    normal: Normal,
}

impl Noise {
    fn new(seed: u64) -> Noise {
        Noise {
            random: fastrand::Rng::with_seed(seed),
            normal: Normal::new(0.0, 1.0).expect("a distribution"),
        }
    }

    fn normal(&mut self) -> f64 {
        self.normal.inverse_cdf(self.random.f64().clamp(1e-12, 1.0 - 1e-12))
    }

    /// A run of 100 with 3 %.
    fn plain(&mut self) -> f64 {
        100.0 * (0.03 * self.normal()).exp()
    }

    /// Never much faster, at times much slower.
    fn skewed(&mut self) -> f64 {
        100.0 + 5.0 * (self.normal()).exp()
    }

    /// One run in ten takes half as long again.
    fn disturbed(&mut self) -> f64 {
        let disturbed = if self.random.f64() < 0.1 { 1.5 } else { 1.0 };
        self.plain() * disturbed
    }
}

type Figure = fn(&mut Noise) -> f64;

fn claims(noise: &mut Noise, figure: Figure, count: usize, slower: f64) -> usize {
    let mut claims = 0;
    for _ in 0..SEARCHES {
        let base: Vec<f64> = (0..count).map(|_| figure(noise)).collect();
        let arm: Vec<f64> = (0..count).map(|_| figure(noise) * slower).collect();
        claims += usize::from(compare_blocks(&base, &arm, 0.05).expect("figures").is_shown());
    }
    claims
}

#[test]
fn two_identical_arms_claim_a_difference_in_at_most_one_search_of_20() {
    let mut noise = Noise::new(42);
    let kinds: [(&str, Figure); 3] =
        [("plain", Noise::plain), ("skewed", Noise::skewed), ("disturbed", Noise::disturbed)];
    for (name, figure) in kinds {
        for count in [4, 8, 12] {
            let in_blocks = claims(&mut noise, figure, count, 1.0);
            assert!(in_blocks <= WRONG_MAX, "{name}, {count} blocks: {in_blocks} of {SEARCHES}");
        }
    }
}

#[test]
fn the_interval_holds_the_true_ratio_in_19_of_20_searches() {
    let mut noise = Noise::new(9);
    for count in [5, 10] {
        let mut missed = 0;
        for _ in 0..SEARCHES {
            let base: Vec<f64> = (0..count).map(|_| noise.plain()).collect();
            let arm: Vec<f64> = (0..count).map(|_| noise.plain() * 1.05).collect();
            let interval = compare_blocks(&base, &arm, 0.05).expect("figures").judged.interval;
            missed += usize::from(interval.low > 5.0 || interval.high < 5.0);
        }
        assert!(missed <= WRONG_MAX, "{count} blocks: {missed} of {SEARCHES} missed");
    }
}

#[test]
fn five_percent_with_three_percent_of_noise_is_found_in_the_runs_that_were_estimated() {
    let mut noise = Noise::new(17);
    let effect = 1.05_f64.ln();
    let pair = 0.03 * 2.0_f64.sqrt();
    let needed = blocks_for(effect, pair, 1000, 0.05, 0.8).expect("possible").likely.expect("few");
    assert!((6..=12).contains(&needed), "{needed}");
    let found = claims(&mut noise, Noise::plain, needed, 1.05);
    assert!(found * 100 >= SEARCHES * 78, "{found} of {SEARCHES} with {needed} blocks");
    // From a pilot of five blocks the number itself is uncertain; the upper one is enough in four of five cases.
    let (mut enough, pilots) = (0, 200);
    for _ in 0..pilots {
        let base: Vec<f64> = (0..5).map(|_| noise.plain()).collect();
        let arm: Vec<f64> = (0..5).map(|_| noise.plain() * 1.05).collect();
        let pilot = compare_blocks(&base, &arm, 0.05).expect("five");
        let at_most = pilot.needed(5.0, 0.8).and_then(|needed| needed.at_most).expect("a number");
        enough += usize::from(at_most >= needed);
    }
    assert!(enough * 100 >= pilots * 72, "{enough} of {pilots} pilots said enough");
}

#[test]
fn a_difference_is_found_among_disturbed_runs_too() {
    let mut noise = Noise::new(23);
    let found = claims(&mut noise, Noise::disturbed, 20, 1.05);
    assert!(found * 100 >= SEARCHES * 70, "{found} of {SEARCHES}");
}
