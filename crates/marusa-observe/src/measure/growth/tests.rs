//! Prepared histories: each must be judged correctly or not at all, whatever the noise, and the plain ones must be judged.

#[path = "tests/minutes_tests.rs"]
mod minutes;

use super::*;

const MB: f64 = 1024.0 * 1024.0;
const HOUR: f64 = 3600.0;
/// Other noise each time; `MARUSA_SEEDS=400 cargo test --lib growth` for the figure in docs/record.md.
const SEEDS: u64 = match option_env!("MARUSA_SEEDS") {
    Some(text) => match u64::from_str_radix(text, 10) {
        Ok(seeds) => seeds,
        Err(_) => 20,
    },
    None => 20,
};

/// Noise whose neighbours are alike by `memory` (0: not at all), with a deviation of 1.
struct Noise {
    random: fastrand::Rng,
    last: f64,
    memory: f64,
}

impl Noise {
    fn new(seed: u64, memory: f64) -> Noise {
        Noise { random: fastrand::Rng::with_seed(seed), last: 0.0, memory }
    }
    fn next(&mut self) -> f64 {
        // The sum of twelve even numbers is normal enough.
        let fresh = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
        self.last = self.memory * self.last + (1.0 - self.memory * self.memory).sqrt() * fresh;
        self.last
    }
}

fn history(seconds: f64, every: f64, noise: (f64, f64), seed: u64, of: impl Fn(f64) -> f64) -> Vec<Point> {
    let mut random = Noise::new(seed, noise.1);
    let count = (seconds / every) as usize;
    (0..count)
        .map(|at| {
            let seconds = at as f64 * every;
            let bytes = of(seconds) + noise.0 * random.next();
            // Memory comes in pages.
            Point { seconds, bytes: (bytes.max(0.0) / 4096.0).floor() * 4096.0 }
        })
        .collect()
}

fn tooth(seconds: f64, period: f64) -> f64 {
    (seconds / period).fract()
}

/// The number of seeds of a history that are judged; none may be judged wrong.
fn judged(right: Verdict, nature: Nature, of: impl Fn(u64) -> Vec<Point>) -> u64 {
    let mut judged = 0;
    for seed in 0..SEEDS {
        let growth = judge(&of(seed), nature);
        assert!(
            growth.verdict == right || growth.verdict == Verdict::CannotTellYet,
            "seed {seed}: {growth:?}"
        );
        assert_eq!(growth.caveat.is_some(), growth.verdict == Verdict::CannotTellYet, "{growth:?}");
        judged += u64::from(growth.verdict == right);
    }
    judged
}

fn plain() -> Nature {
    Nature::default()
}

const GROWS: Verdict = Verdict::GrowsWithoutBound;
const LEVEL: Verdict = Verdict::LevelsOff;

#[test]
fn leaks_of_several_speeds() {
    let fast = |seed| history(600.0, 1.0, (2.0 * MB, 0.0), seed, |at| 300.0 * MB + at * MB);
    let middle = |seed| history(HOUR, 1.0, (2.0 * MB, 0.5), seed, |at| 300.0 * MB + at / 60.0 * MB);
    let slow =
        |seed| history(4.0 * HOUR, 10.0, (0.3 * MB, 0.5), seed, |at| 100.0 * MB + at / HOUR * 2.0 * MB);
    let hidden = |seed| history(HOUR, 10.0, (5.0 * MB, 0.5), seed, |at| 500.0 * MB + at / HOUR * 10.0 * MB);
    assert_eq!(judged(GROWS, plain(), fast), SEEDS);
    assert_eq!(judged(GROWS, plain(), middle), SEEDS);
    assert!(judged(GROWS, plain(), slow) > SEEDS / 2);
    judged(GROWS, plain(), hidden);
}

#[test]
fn saw_teeth_with_and_without_a_leak() {
    let heap = Nature { is_collected: true, ..Nature::default() };
    let flat = |seed| history(HOUR, 1.0, (MB, 0.0), seed, |at| 200.0 * MB + 100.0 * MB * tooth(at, 47.0));
    let leak = |seed| {
        history(HOUR, 1.0, (MB, 0.0), seed, |at| {
            200.0 * MB + 2.0 * MB * at / 60.0 + 80.0 * MB * tooth(at, 61.0)
        })
    };
    let first = |seed| history(300.0, 1.0, (MB, 0.0), seed, |at| 50.0 * MB + MB * at);
    assert!(judged(LEVEL, heap, flat) > SEEDS / 2);
    assert_eq!(judged(GROWS, heap, leak), SEEDS);
    assert_eq!(judged(LEVEL, heap, first), 0, "before the first collection it is unknown");
}

#[test]
fn warm_ups_then_flat_then_a_leak_and_one_that_does_not_end() {
    let warm = |at: f64, end: f64| 300.0 * MB * (1.0 - (-at / end).exp());
    let flat = |seed| history(HOUR, 1.0, (0.5 * MB, 0.0), seed, |at| 50.0 * MB + warm(at, 120.0));
    let leak =
        |seed| history(HOUR, 1.0, (0.5 * MB, 0.0), seed, |at| 50.0 * MB + warm(at, 120.0) + at / 60.0 * MB);
    let endless = |seed| history(HOUR, 1.0, (0.5 * MB, 0.0), seed, |at| 50.0 * MB + warm(at, HOUR));
    let still = |seed| history(HOUR, 1.0, (0.5 * MB, 0.0), seed, |at| 50.0 * MB + warm(at, HOUR / 3.0));
    assert!(judged(LEVEL, plain(), flat) > SEEDS / 2);
    assert!(judged(GROWS, plain(), leak) > SEEDS / 2);
    judged(LEVEL, plain(), endless);
    judged(LEVEL, plain(), still);
}

#[test]
fn steps_are_no_leak_but_a_staircase_is() {
    let one = |seed| {
        history(HOUR, 1.0, (0.2 * MB, 0.0), seed, |at| 100.0 * MB + if at > 1500.0 { 64.0 * MB } else { 0.0 })
    };
    let late = |seed| {
        history(HOUR, 1.0, (0.2 * MB, 0.0), seed, |at| 100.0 * MB + if at > 3300.0 { 64.0 * MB } else { 0.0 })
    };
    let stairs =
        |seed| history(HOUR, 1.0, (0.2 * MB, 0.0), seed, |at| 100.0 * MB + 4.0 * MB * (at / 120.0).floor());
    assert!(judged(LEVEL, plain(), one) > SEEDS / 2);
    assert_eq!(judged(LEVEL, plain(), late), 0, "it just came");
    assert!(judged(GROWS, plain(), stairs) > SEEDS / 2);
}

#[test]
fn flat_ones_with_and_without_noise_and_with_noise_that_wanders() {
    let still = |seed| history(600.0, 1.0, (0.0, 0.0), seed, |_| 80.0 * MB);
    let noisy = |seed| history(4.0 * HOUR, 10.0, (MB, 0.0), seed, |_| 400.0 * MB);
    let wandering = |seed| history(HOUR, 1.0, (3.0 * MB, 0.995), seed, |_| 400.0 * MB);
    let falling = |seed| history(HOUR, 1.0, (MB, 0.0), seed, |at| 400.0 * MB - at / 60.0 * MB);
    assert_eq!(judged(LEVEL, plain(), still), SEEDS);
    assert!(judged(LEVEL, plain(), noisy) > SEEDS / 2);
    judged(LEVEL, plain(), wandering);
    assert_eq!(judged(LEVEL, plain(), falling), SEEDS);
}

#[test]
fn what_is_short_says_how_long_is_missing() {
    let growth = judge(&history(30.0, 1.0, (0.0, 0.0), 1, |at| at * MB), plain());
    assert_eq!((growth.verdict, growth.caveat), (Verdict::CannotTellYet, Some(Caveat::TooShort)));
    assert!(growth.needs_minutes.is_some_and(|minutes| (7.0..8.0).contains(&minutes)), "{growth:?}");
    let seldom = judge(&history(60.0, 20.0, (0.0, 0.0), 1, |at| at * MB), plain());
    assert!(seldom.needs_minutes.is_some_and(|minutes| (6.0..8.0).contains(&minutes)), "{seldom:?}");
    assert_eq!(judge(&history(10.0, 10.0, (0.0, 0.0), 1, |_| MB), plain()).needs_minutes, None);
    let nothing = judge(&[], plain());
    assert_eq!((nothing.verdict, nothing.level_bytes), (Verdict::CannotTellYet, 0));
    let odd = [Point { seconds: f64::NAN, bytes: 1.0 }, Point { seconds: 1.0, bytes: f64::INFINITY }];
    assert_eq!(judge(&odd, plain()).verdict, Verdict::CannotTellYet);
}

#[test]
fn the_rate_of_a_leak_is_within_its_interval() {
    let growth = judge(&history(HOUR, 1.0, (MB, 0.0), 3, |at| 300.0 * MB + at / 60.0 * MB), plain());
    let rate = growth.rate.expect("a trend");
    assert!(rate.low_bytes_per_hour <= 60.0 * MB && 60.0 * MB <= rate.high_bytes_per_hour, "{rate:?}");
    assert!((rate.bytes_per_hour / MB - 60.0).abs() < 2.0, "{rate:?}");
}
