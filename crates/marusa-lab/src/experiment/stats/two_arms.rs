//! Two arms compared. Which method judges is fixed by the design and the number of figures, never by what the figures look
//! like:
//!
//! | figures | judged by | next to it |
//! | --- | --- | --- |
//! | fewer than 8 blocks | Student's t over the blocks' differences | signed ranks from 6 blocks on |
//! | 8 blocks and more | signed ranks (`ranks`) | Student's t |
//!
//! Ranks judge where they can, for one disturbed run in twenty is usual and moves a mean. Where all figures are above 0 the
//! logarithms are compared, and the answer is a ratio; else the figures themselves.

use super::ranks;
use super::sample::{Effect, half, mean, student, variance};
use crate::base::{Gap, Known, Why};
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::ContinuousCDF;

/// The number of blocks from which ranks judge.
pub const RANKS_FROM: usize = 8;

/// An estimate, and what holds the true value with the confidence asked for.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub(crate) fn map(self, change: impl Fn(f64) -> f64) -> Interval {
        Interval { estimate: change(self.estimate), low: change(self.low), high: change(self.high) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Student's t over the differences within blocks.
    PairedT,
    /// Hodges and Lehmann with signed ranks over the differences within blocks.
    SignedRank,
}

impl Method {
    pub fn words(self) -> &'static str {
        match self {
            Method::PairedT => "Student's t over blocks",
            Method::SignedRank => "signed ranks over blocks",
        }
    }
}

/// In what a difference is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Percent of the first arm.
    Percent,
    /// The figures' own unit, for some are 0 or below.
    Unit,
}

/// What one method says of the second arm against the first.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Claim {
    pub method: Method,
    /// On the comparison's scale.
    #[serde(skip)]
    pub interval: Interval,
    /// The probability of a difference as large by chance alone.
    pub p: f64,
}

/// What the blocks say of two arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub blocks: usize,
    pub scale: Scale,
    pub judged: Claim,
    /// The other method, where there are enough figures for it.
    pub second: Option<Claim>,
    pub effect: Effect,
    /// Standard deviation of one block's difference, on the scale on which it is judged: of logarithms for `Percent`.
    pub noise: f64,
    pub alpha: f64,
}

/// `base[i]` and `arm[i]` are of one block. `alpha`: the probability that the interval misses, as 0.05.
pub fn compare_blocks(base: &[f64], arm: &[f64], alpha: f64) -> Known<Comparison> {
    let few = |hint: &str| Gap::new("difference of two arms", Why::NotMeasured).hint(hint);
    if base.len() != arm.len() {
        return Err(few("blocks have a figure of one arm only"));
    }
    if !(alpha > 0.0 && alpha < 1.0) {
        return Err(few("alpha must be between 0 and 1"));
    }
    let effect = Effect::of(base, arm);
    let effect = effect.ok_or_else(|| few("an arm has no figure, or one that is not a number"))?;
    let is_ratio = base.iter().chain(arm).all(|value| *value > 0.0);
    let on_scale = |value: f64| if is_ratio { value.ln() } else { value };
    let differences: Vec<f64> =
        base.iter().zip(arm).map(|(base, arm)| on_scale(*arm) - on_scale(*base)).collect();
    let (judged, second) = judge(&differences, alpha).ok_or_else(|| few("two blocks at least"))?;
    let scale = if is_ratio { Scale::Percent } else { Scale::Unit };
    let shown = |claim: Claim| match scale {
        Scale::Percent => Claim { interval: claim.interval.map(percent), ..claim },
        Scale::Unit => claim,
    };
    let (judged, second) = (shown(judged), second.map(shown));
    let noise = variance(&differences).sqrt();
    Ok(Comparison { blocks: differences.len(), scale, judged, second, effect, noise, alpha })
}

/// What the differences of blocks say by the method that judges, and by the other. `None`: fewer than two differences, or
/// one that is not a number.
pub(crate) fn judge(differences: &[f64], alpha: f64) -> Option<(Claim, Option<Claim>)> {
    let t = paired_t(differences, alpha)?;
    Some(match ranks::signed_rank(differences, alpha) {
        Some(ranked) if differences.len() >= RANKS_FROM => (ranked, Some(t)),
        ranked => (t, ranked),
    })
}

/// The logarithm of a ratio as a difference in percent.
pub(super) fn percent(log: f64) -> f64 {
    log.exp_m1() * 100.0
}

fn paired_t(differences: &[f64], alpha: f64) -> Option<Claim> {
    let half = half(differences, alpha).filter(|half| half.is_finite())?;
    let (estimate, count) = (mean(differences), differences.len());
    let error = (variance(differences) / count as f64).sqrt();
    // Without any noise a difference is certain, and none is none.
    let p = match error > 0.0 {
        true => 2.0 * student(count)?.cdf(-(estimate / error).abs()),
        false => f64::from(u8::from(estimate == 0.0)),
    };
    let interval = Interval { estimate, low: estimate - half, high: estimate + half };
    Some(Claim { method: Method::PairedT, interval, p })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Comparison {
        /// Whether a difference is shown.
        pub fn is_shown(&self) -> bool {
            self.judged.interval.excludes_0()
        }
    }

    impl Interval {
        pub fn excludes_0(&self) -> bool {
            self.low > 0.0 || self.high < 0.0
        }
    }

    #[test]
    fn ratios_where_all_is_above_0_and_differences_else() {
        let base = [100.0, 110.0, 90.0, 105.0];
        let slower: Vec<f64> = base.iter().map(|value| value * 1.05).collect();
        let found = compare_blocks(&base, &slower, 0.05).expect("four blocks");
        assert_eq!((found.scale, found.judged.method, found.blocks), (Scale::Percent, Method::PairedT, 4));
        assert!((found.judged.interval.estimate - 5.0).abs() < 1e-9, "{found:?}");
        assert!(found.is_shown() && found.judged.p < 1e-9 && found.second.is_none());
        let zeros = compare_blocks(&[0.0, 1.0, 2.0], &[3.0, 4.0, 5.0], 0.05).expect("three blocks");
        assert_eq!((zeros.scale, zeros.judged.interval.estimate), (Scale::Unit, 3.0));
    }

    #[test]
    fn ranks_judge_from_eight_on_and_a_disturbed_run_does_not_move_them() {
        let base: Vec<f64> = (0..14).map(|at| 100.0 + f64::from(at % 3)).collect();
        let mut arm: Vec<f64> =
            base.iter().enumerate().map(|(at, value)| value * (0.95 + 0.001 * at as f64)).collect();
        arm[4] = 1000.0;
        let found = compare_blocks(&base, &arm, 0.05).expect("14 blocks");
        assert_eq!(found.judged.method, Method::SignedRank);
        assert!(found.is_shown() && found.judged.interval.high < 0.0, "{found:?}");
        assert!(!found.second.expect("t too").interval.excludes_0(), "one run hides it from t");
    }

    #[test]
    fn what_can_not_be_compared_is_a_gap() {
        for (base, arm) in
            [(&[1.0][..], &[1.0][..]), (&[], &[]), (&[1.0, 2.0], &[1.0]), (&[1.0, f64::NAN], &[1.0, 2.0])]
        {
            assert!(compare_blocks(base, arm, 0.05).is_err(), "{base:?} {arm:?}");
        }
        assert!(compare_blocks(&[1.0, 2.0], &[1.0, 2.0], 0.0).is_err());
        let same = compare_blocks(&[2.0, 2.0], &[2.0, 2.0], 0.05).expect("figures");
        assert_eq!((same.is_shown(), same.judged.p), (false, 1.0));
    }
}
