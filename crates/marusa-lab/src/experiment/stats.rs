//! From blocks to an interval. Figures of speed are compared as ratios, so all is done on logarithms; one block gives one
//! number, the blocks are independent of each other, and Student's t over them is the interval. Nothing is assumed of the
//! periods within a block, which are not independent.
//!
//! `two_arms` compares two arms in blocks, with a second method that assumes no distribution (`ranks`);
//! `several` shares the error probability among more than two arms; `needed` says how many runs a difference takes.

pub mod needed;
pub mod ranks;
pub mod sample;
pub mod several;
pub mod two_arms;

#[cfg(test)]
#[path = "stats/coverage_tests.rs"]
mod coverage;

pub use needed::{Needed, blocks_for};
pub use sample::{Effect, Sample};
pub use two_arms::{Claim, Comparison, Interval, Method, Scale, compare_blocks};

use statrs::distribution::ContinuousCDF;

/// What blocks say of the ratio of the two arms.
#[derive(Clone, Copy, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Estimate {
    /// Gain in percent: how much faster (or cheaper) the program is with the change. Negative: slower.
    #[serde(rename = "middle")]
    pub gain_percent: f64,
    /// The interval that holds the true gain with the confidence asked for, in percent.
    #[serde(rename = "low")]
    pub low_percent: f64,
    #[serde(rename = "high")]
    pub high_percent: f64,
    /// Standard deviation of one block, in percent.
    #[serde(rename = "block_deviation")]
    pub block_deviation_percent: f64,
    #[serde(skip)]
    pub blocks: usize,
}

/// The estimate from logarithms of (speed with the change / speed without), one a block. `None`: fewer than two blocks, or a
/// number that is none. `alpha`: the probability that the interval misses, as 0.05.
pub fn estimate(logs: &[f64], alpha: f64) -> Option<Estimate> {
    if logs.iter().any(|log| !log.is_finite()) || !(alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    let half = sample::half(logs, alpha)?;
    let mean = sample::mean(logs);
    let percent = |log: f64| log.exp_m1() * 100.0;
    Some(Estimate {
        gain_percent: percent(mean),
        low_percent: percent(mean - half),
        high_percent: percent(mean + half),
        block_deviation_percent: percent(sample::variance(logs).sqrt()),
        blocks: logs.len(),
    })
}

/// How many blocks it would take until an interval of this alpha is no wider than `margin_percent` to each side.
pub fn blocks_needed(estimate: &Estimate, margin_percent: f64, alpha: f64) -> Option<usize> {
    let deviation = (estimate.block_deviation_percent / 100.0).ln_1p();
    let margin = (margin_percent / 100.0).ln_1p();
    let wide_enough = |count: usize| {
        let t = sample::student(count)?.inverse_cdf(1.0 - alpha / 2.0);
        Some(t * deviation / (count as f64).sqrt() <= margin)
    };
    (2..=BLOCKS_MAX).find(|count| wide_enough(*count) == Some(true))
}

/// More than a user would wait for.
const BLOCKS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_known_sample() {
        // Mean 0.1, deviation 0.1, four blocks: t(3, 97.5 %) is 3.182446.
        let logs = [0.0, 0.1, 0.1, 0.2];
        let deviation = (0.02_f64 / 3.0).sqrt();
        let found = estimate(&logs, 0.05).expect("four blocks");
        let half = 3.182_446 * deviation / 2.0;
        assert!((found.gain_percent - 10.517).abs() < 1e-3, "{found:?}");
        assert!((found.low_percent - ((0.1 - half).exp() - 1.0) * 100.0).abs() < 1e-3);
        assert!((found.high_percent - ((0.1 + half).exp() - 1.0) * 100.0).abs() < 1e-3);
        assert_eq!(found.blocks, 4);
        assert_eq!(estimate(&[0.1], 0.05), None);
        assert_eq!(estimate(&[0.1, f64::NAN], 0.05), None);
    }

    #[test]
    fn a_narrower_interval_needs_more_blocks() {
        let found = estimate(&[0.0, 0.1, 0.1, 0.2], 0.05).expect("four blocks");
        let wide = blocks_needed(&found, 20.0, 0.05).expect("some");
        let narrow = blocks_needed(&found, 2.0, 0.05).expect("some");
        assert!((3..=6).contains(&wide), "{wide}");
        assert!(narrow > 50, "{narrow}");
    }
}
