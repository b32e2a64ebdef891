//! From blocks to an interval. Figures of speed are compared as ratios, so all is done on logarithms; one block gives one
//! number, and the blocks are independent of each other. Nothing is assumed of the periods within a block, which are not.
//!
//! `two_arms` judges the numbers of blocks, by signed ranks (`ranks`) or Student's t; `several` shares the error probability
//! among more than two arms; `needed` says how many runs a difference takes.

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
    pub method: Method,
    #[serde(skip)]
    pub blocks: usize,
}

/// The estimate from logarithms of (speed with the change / speed without), one a block. `None`: fewer than two blocks, or a
/// number that is none. `alpha`: the probability that the interval misses, as 0.05.
pub fn estimate(logs: &[f64], alpha: f64) -> Option<Estimate> {
    let (Claim { method, interval, .. }, _) = two_arms::judge(logs, alpha)?;
    Some(Estimate {
        gain_percent: two_arms::percent(interval.estimate),
        low_percent: two_arms::percent(interval.low),
        high_percent: two_arms::percent(interval.high),
        block_deviation_percent: two_arms::percent(sample::variance(logs).sqrt()),
        method,
        blocks: logs.len(),
    })
}

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
}
