//! How many runs a difference takes. From the noise of the first blocks, which is itself only known so well: the likely
//! number, and one that is enough in four of five cases (an upper bound of the deviation at 80 %, as Browne 1995 advises
//! for pilot studies).

use super::sample::student;
use super::two_arms::{Comparison, RANKS_FROM};
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// More than a user would wait for.
const RUNS_MAX: usize = 10_000;
/// How sure the upper bound of the noise is.
const NOISE_CONFIDENCE: f64 = 0.8;
/// Ranks need this many times the pairs on normal noise: pi / 3 (Hodges and Lehmann 1956).
const RANKS_COST: f64 = std::f64::consts::PI / 3.0;

/// Runs of each arm (blocks, where it is in blocks); `None`: more than 10,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Needed {
    pub likely: Option<usize>,
    /// Enough in four of five cases, for the noise was estimated from few runs.
    pub at_most: Option<usize>,
}

/// Blocks until a difference of `effect` is shown with this power (0.8: in 80 of 100 experiments). `noise`: the standard
/// deviation of one block's difference, in the same unit; `seen`: from how many blocks it is known.
pub fn blocks_for(effect: f64, noise: f64, seen: usize, alpha: f64, power: f64) -> Option<Needed> {
    let is_measured = effect != 0.0 && effect.is_finite() && noise.is_finite() && noise >= 0.0 && seen >= 2;
    let is_asked = alpha > 0.0 && alpha < 1.0 && power > 0.0 && power < 1.0;
    if !is_measured || !is_asked {
        return None;
    }
    let freedom = (seen - 1) as f64;
    let low = ChiSquared::new(freedom).ok()?.inverse_cdf(1.0 - NOISE_CONFIDENCE);
    let noise_max = noise * (freedom / low).sqrt();
    let count = |noise: f64| (2..=RUNS_MAX).find(|count| is_enough(effect, noise, *count, alpha, power));
    Some(Needed { likely: count(noise), at_most: count(noise_max) })
}

impl Comparison {
    /// Runs of each arm until a difference of `percent` (of `unit` on a scale of units) is shown.
    pub fn needed(&self, effect: f64, power: f64) -> Option<Needed> {
        let effect = match self.scale {
            super::Scale::Percent => (effect / 100.0).ln_1p(),
            super::Scale::Unit => effect,
        };
        blocks_for(effect, self.noise, self.blocks, self.alpha, power)
    }
}

/// The power of Student's t with `count` differences, the power's own t next to it (Guenther 1981); ranks need a little
/// more, and are exact only where there are enough blocks to exclude 0 at all.
fn is_enough(effect: f64, noise: f64, count: usize, alpha: f64, power: f64) -> bool {
    let Some(t) = student(count) else { return false };
    let wanted = t.inverse_cdf(1.0 - alpha / 2.0) + t.inverse_cdf(power);
    let by_ranks = count >= RANKS_FROM;
    if by_ranks && 2.0_f64.powi(1 - count.min(1000) as i32) > alpha {
        return false;
    }
    let cost = if by_ranks { RANKS_COST } else { 1.0 };
    wanted * noise * (cost / count as f64).sqrt() <= effect.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_tables_say() {
        // R: power.t.test(delta = 1, sd = 1, power = 0.8, type = "paired"): n = 9.94; ranks add 5 %.
        let needed = blocks_for(1.0, 1.0, 1000, 0.05, 0.8).expect("possible");
        assert!(needed.likely.is_some_and(|count| (10..=12).contains(&count)), "{needed:?}");
        assert!(needed.at_most >= needed.likely);
        // delta = 0.2: n = 198.15.
        let many = blocks_for(0.2, 1.0, 1000, 0.05, 0.8).expect("possible").likely;
        assert!(many.is_some_and(|count| (198..=212).contains(&count)), "{many:?}");
        let few = blocks_for(1.0, 1.0, 4, 0.05, 0.8).expect("possible");
        assert!(few.at_most > few.likely, "noise from four blocks is not known well: {few:?}");
        assert_eq!(blocks_for(1e-6, 1.0, 10, 0.05, 0.8), Some(Needed { likely: None, at_most: None }));
        assert_eq!(blocks_for(0.0, 1.0, 10, 0.05, 0.8), None, "no difference is never shown");
        assert_eq!(blocks_for(1.0, 0.0, 10, 0.05, 0.8).and_then(|needed| needed.likely), Some(2));
    }
}
