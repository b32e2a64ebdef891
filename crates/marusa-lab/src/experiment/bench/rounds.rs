//! What trials in rounds come to: each round runs every arm once, in an order that chance gives, so that a machine that is
//! slower for a while is so for all arms. An arm's figure is a mean with Student's interval; two arms are compared by their
//! ratio, round by round, so that what a whole round has in common falls out (`two_arms::judge`).

use crate::experiment::stats::{sample, two_arms};

/// The probability that an interval misses.
pub const ALPHA: f64 = 0.05;

/// A mean of several trials.
#[derive(Clone, Copy, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Mean {
    pub mean: f64,
    /// Half the width of the 95 % interval; `None`: one trial has none.
    pub plus_minus: Option<f64>,
    pub trials: usize,
}

impl Mean {
    /// `None`: there is nothing to take a mean of.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Mean> {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let count = values.len();
        if count == 0 {
            return None;
        }
        Some(Mean { mean: sample::mean(&values), plus_minus: sample::half(&values, ALPHA), trials: count })
    }
}

impl Mean {
    /// Of a share, 0 to 1.
    pub fn percent(self) -> Mean {
        Mean { mean: self.mean * 100.0, plus_minus: self.plus_minus.map(|half| half * 100.0), ..self }
    }
}

/// By what factor one arm differs from another.
#[derive(Clone, Copy, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Ratio {
    pub ratio: f64,
    /// The 95 % interval; `None`: one round has none.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub rounds: usize,
}

impl Ratio {
    /// The ratio of pairs (base, other), one a round. `None`: no pair of which both are above 0.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Ratio> {
        let usable = |(base, other): &(f64, f64)| *base > 0.0 && *other > 0.0 && (other / base).is_finite();
        let logs: Vec<f64> =
            pairs.into_iter().filter(usable).map(|(base, other)| (other / base).ln()).collect();
        let interval = two_arms::judge(&logs, ALPHA).map(|(claim, _)| claim.interval.map(f64::exp));
        Some(Ratio {
            ratio: interval.map_or(logs.first()?.exp(), |found| found.estimate),
            low: interval.map(|found| found.low),
            high: interval.map(|found| found.high),
            rounds: logs.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ratio {
        /// Whether the interval leaves 1 out: without one nothing is shown.
        pub fn is_shown(&self) -> bool {
            matches!((self.low, self.high), (Some(low), Some(high)) if low > 1.0 || high < 1.0)
        }
    }

    #[test]
    fn a_mean_with_its_interval() {
        let found = Mean::of([1.0, 2.0, 3.0]).expect("three");
        // t(2, 97.5 %) is 4.302653, the deviation 1.
        assert!((found.mean - 2.0).abs() < 1e-12);
        assert!((found.plus_minus.expect("an interval") - 4.302_653 / 3.0_f64.sqrt()).abs() < 1e-5);
        assert_eq!(Mean::of([7.0]), Some(Mean { mean: 7.0, plus_minus: None, trials: 1 }));
        assert_eq!((Mean::of([]), Mean::of([f64::NAN])), (None, None));
    }

    #[test]
    fn what_a_round_has_in_common_falls_out_of_a_ratio() {
        let found = Ratio::of([(10.0, 20.0), (100.0, 200.0), (50.0, 100.0)]).expect("three rounds");
        assert!((found.ratio - 2.0).abs() < 1e-12 && found.is_shown(), "{found:?}");
        assert!((found.low.expect("an interval") - 2.0).abs() < 1e-9);
        let found = Ratio::of([(10.0, 9.0), (10.0, 12.0)]).expect("two rounds");
        assert!(!found.is_shown(), "{found:?}");
        let one = Ratio::of([(1.0, 3.0), (0.0, 3.0)]).expect("one is usable");
        assert_eq!((one.rounds, one.low, one.is_shown()), (1, None, false));
        assert_eq!(Ratio::of([(0.0, 1.0)]), None);
    }
}
