//! When to stop, and what may be claimed then. A test after every block that stops as soon as the interval excludes 0 would find
//! a gain in anything sooner or later. So the interim tests are few and fixed before, and the error probability is shared among
//! them: test k gets alpha / (k (k + 1)), which sums to alpha over all tests (a union bound: it holds for any blocks).

use super::compare_result::POWER;
use super::stats::{self, Estimate};
use schemars::JsonSchema;
use serde::Serialize;

/// The rule, fixed before the first period.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Rule {
    /// The probability of a wrong claim, over all interim tests.
    #[serde(skip)]
    pub alpha: f64,
    /// A gain smaller than this is not worth a change: an interval within it ends the search.
    pub margin_percent: f64,
    pub blocks_max: usize,
}

impl Default for Rule {
    fn default() -> Rule {
        Rule { alpha: 0.05, margin_percent: 2.0, blocks_max: 28 }
    }
}

/// The first sample.
const BLOCKS_MIN: usize = 4;

/// What the blocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Gain,
    Loss,
    /// Gain or loss is smaller than the margin.
    TooSmall,
    /// The interval holds 0 and more than the margin, and there is no more time.
    NotShown,
}

impl Rule {
    /// After how many blocks the interval is looked at: each time half as many again, and at the end.
    pub fn looks(&self) -> Vec<usize> {
        let mut looks = Vec::new();
        let mut at = BLOCKS_MIN.min(self.blocks_max);
        while at < self.blocks_max {
            looks.push(at);
            at += at.div_ceil(2);
        }
        looks.push(self.blocks_max);
        looks
    }

    /// The alpha of the k-th interim test, from 1.
    pub fn alpha_at(&self, look: usize) -> f64 {
        self.alpha / (look * (look + 1)) as f64
    }

    /// After a block: the interval if this is a sample, and the verdict if it ends the search.
    pub fn look(&self, logs: &[f64]) -> Option<(Estimate, Option<Verdict>)> {
        let look = self.looks().iter().position(|blocks| *blocks == logs.len())? + 1;
        let found = stats::estimate(logs, self.alpha_at(look))?;
        let end = (logs.len() >= self.blocks_max).then(|| at_the_end(&found));
        Some((found, self.shown(&found).or(end)))
    }

    /// At an end that was not planned (Ctrl-C, the target ended): one more test.
    pub fn last_look(&self, logs: &[f64]) -> Option<(Estimate, Verdict)> {
        let had = self.looks().iter().filter(|blocks| **blocks <= logs.len()).count();
        let found = stats::estimate(logs, self.alpha_at(had + 1))?;
        Some((found, self.shown(&found).unwrap_or_else(|| at_the_end(&found))))
    }

    /// About how many blocks show a gain of `gain_percent` in nine of ten searches. `None`: more than anybody waits for.
    pub fn blocks_for(&self, found: &Estimate, gain_percent: f64) -> Option<usize> {
        let log = |percent: f64| (percent / 100.0).ln_1p();
        let (gain, noise) = (log(gain_percent), log(found.block_deviation_percent));
        stats::blocks_for(gain, noise, found.blocks, self.alpha_at(self.looks().len()), POWER)?.likely
    }

    fn shown(&self, found: &Estimate) -> Option<Verdict> {
        match found {
            found if found.low_percent > self.margin_percent => Some(Verdict::Gain),
            found if found.high_percent < -self.margin_percent => Some(Verdict::Loss),
            found if found.low_percent > -self.margin_percent && found.high_percent < self.margin_percent => {
                Some(Verdict::TooSmall)
            }
            // Above 0 for sure, and whether above the margin is open: it goes on until the end, which then says gain.
            _ => None,
        }
    }
}

/// When there are no more blocks, an interval that excludes 0 is enough.
fn at_the_end(found: &Estimate) -> Verdict {
    match found {
        found if found.low_percent > 0.0 => Verdict::Gain,
        found if found.high_percent < 0.0 => Verdict::Loss,
        _ => Verdict::NotShown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of a program that gains `gain`, with normal noise of `noise`, by sums of twelve even numbers.
    fn blocks(random: &mut fastrand::Rng, count: usize, gain: f64, noise: f64) -> Vec<f64> {
        (0..count).map(|_| gain + noise * ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0)).collect()
    }

    fn search(rule: &Rule, logs: &[f64]) -> (Verdict, usize) {
        for count in 1..=rule.blocks_max {
            if let Some((_, Some(verdict))) = rule.look(&logs[..count]) {
                return (verdict, count);
            }
        }
        unreachable!("the last block is a sample that ends")
    }

    #[test]
    fn the_looks_are_few_and_their_alpha_sums_to_the_whole() {
        let rule = Rule::default();
        assert_eq!(rule.looks(), [4, 6, 9, 14, 21, 28]);
        let sum: f64 = (1..=1000).map(|look| rule.alpha_at(look)).sum();
        assert!(sum <= rule.alpha && sum > 0.99 * rule.alpha);
        assert_eq!(Rule { blocks_max: 2, ..rule }.looks(), [2]);
        assert_eq!(rule.look(&[0.1; 5]), None, "no sample after five blocks");
    }

    #[test]
    fn a_program_without_gain_gets_none_in_19_of_20_searches_and_one_with_gain_gets_it() {
        let rule = Rule::default();
        let mut random = fastrand::Rng::with_seed(7);
        let searches = 2000;
        let mut wrong = 0;
        for _ in 0..searches {
            let logs = blocks(&mut random, rule.blocks_max, 0.0, 0.1);
            wrong += usize::from(matches!(search(&rule, &logs).0, Verdict::Gain | Verdict::Loss));
        }
        assert!(wrong * 20 <= searches, "{wrong} of {searches} searches claimed something");
        let mut found = 0;
        for _ in 0..200 {
            let logs = blocks(&mut random, rule.blocks_max, 0.2, 0.05);
            let (verdict, blocks) = search(&rule, &logs);
            found += usize::from(verdict == Verdict::Gain && blocks < rule.blocks_max);
        }
        assert!(found >= 198, "{found} of 200 found the gain before the end");
    }

    #[test]
    fn a_period_in_which_the_program_stalled_hides_no_gain() {
        let rule = Rule::default();
        let mut random = fastrand::Rng::with_seed(11);
        let mut logs = blocks(&mut random, rule.blocks_max, 0.1, 0.02);
        logs[2] = -1.5;
        let (verdict, count) = search(&rule, &logs);
        assert_eq!(verdict, Verdict::Gain, "after {count} blocks");
    }

    #[test]
    fn a_gain_below_the_margin_ends_the_search() {
        let rule = Rule::default();
        let mut random = fastrand::Rng::with_seed(3);
        let logs = blocks(&mut random, rule.blocks_max, 0.002, 0.005);
        let (verdict, count) = search(&rule, &logs);
        assert_eq!(verdict, Verdict::TooSmall);
        assert!(count < rule.blocks_max);
        let found = stats::estimate(&[0.0, 0.1, 0.1, 0.2], 0.05).expect("four blocks");
        let needed = |percent: f64| rule.blocks_for(&found, percent).expect("some");
        assert!((4..=20).contains(&needed(20.0)) && needed(2.0) > 100, "{} {}", needed(20.0), needed(2.0));
        assert_eq!(rule.last_look(&[0.1, -0.1, 0.05]).map(|(_, verdict)| verdict), Some(Verdict::NotShown));
    }
}
