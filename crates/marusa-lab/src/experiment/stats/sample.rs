//! One arm's figures on their own, and how far two arms are apart in units of their own noise.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The statistics of one arm.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Sample {
    pub count: usize,
    pub mean: f64,
    pub median: f64,
    /// Standard deviation; `None`: one figure has none.
    pub deviation: Option<f64>,
    pub min: f64,
    pub max: f64,
}

impl Sample {
    /// `None`: no figure, or one that is not a number.
    pub fn of(values: &[f64]) -> Option<Sample> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mean = mean(values);
        Some(Sample {
            count: values.len(),
            mean,
            median: median_of_sorted(&sorted),
            deviation: (values.len() > 1).then(|| variance(values).sqrt()),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        })
    }
}

/// Student's t over this number of values; `None`: fewer than two.
pub fn student(count: usize) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, count.checked_sub(1)? as f64).ok()
}

/// Half of the interval of a mean, by Student's t; `None`: fewer than two values. `alpha`: the probability that it misses.
pub fn half(values: &[f64], alpha: f64) -> Option<f64> {
    let t = student(values.len())?.inverse_cdf(1.0 - alpha / 2.0);
    Some(t * (variance(values) / values.len() as f64).sqrt())
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance of at least two values.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

pub fn median_of_sorted(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

/// How far the second arm is from the first.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Effect {
    /// Hedges' g: the difference of the means in pooled standard deviations, with the correction for few figures (Hedges
    /// 1981). `None`: no noise at all, or a single figure.
    pub hedges_g: Option<f64>,
    /// Cliff's delta: how much more often a figure of the second arm is above one of the first than below, from -1 to 1.
    pub cliffs_delta: f64,
}

impl Effect {
    pub fn of(base: &[f64], arm: &[f64]) -> Option<Effect> {
        if base.is_empty() || arm.is_empty() || base.iter().chain(arm).any(|value| !value.is_finite()) {
            return None;
        }
        Some(Effect { hedges_g: hedges_g(base, arm), cliffs_delta: cliffs_delta(base, arm) })
    }

    /// In words, by the borders of Romano et al. (2006) for Cliff's delta: 0.147, 0.33, 0.474.
    pub fn word(&self) -> &'static str {
        match self.cliffs_delta.abs() {
            delta if delta < 0.147 => "negligible",
            delta if delta < 0.33 => "small",
            delta if delta < 0.474 => "medium",
            _ => "large",
        }
    }
}

fn hedges_g(base: &[f64], arm: &[f64]) -> Option<f64> {
    if base.len() < 2 || arm.len() < 2 {
        return None;
    }
    let (one, other) = ((base.len() - 1) as f64, (arm.len() - 1) as f64);
    let pooled = ((one * variance(base) + other * variance(arm)) / (one + other)).sqrt();
    let correction = 1.0 - 3.0 / (4.0 * (one + other) - 1.0);
    (pooled > 0.0).then(|| (mean(arm) - mean(base)) / pooled * correction)
}

fn cliffs_delta(base: &[f64], arm: &[f64]) -> f64 {
    let mut sorted = base.to_vec();
    sorted.sort_by(f64::total_cmp);
    let sum: i64 = arm
        .iter()
        .map(|value| {
            let below = sorted.partition_point(|other| other < value);
            let not_above = sorted.partition_point(|other| other <= value);
            below as i64 - (sorted.len() - not_above) as i64
        })
        .sum();
    sum as f64 / (base.len() * arm.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_arm() {
        let sample = Sample::of(&[4.0, 1.0, 2.0, 5.0]).expect("four");
        assert_eq!((sample.count, sample.mean, sample.median), (4, 3.0, 3.0));
        assert_eq!((sample.min, sample.max, sample.deviation), (1.0, 5.0, Some((10.0_f64 / 3.0).sqrt())));
        assert_eq!(Sample::of(&[7.0]).map(|sample| (sample.median, sample.deviation)), Some((7.0, None)));
        assert_eq!((Sample::of(&[]), Sample::of(&[1.0, f64::NAN])), (None, None));
    }

    #[test]
    fn effects_by_hand() {
        // Means 2 and 4, both of variance 1, four degrees of freedom: 2 x (1 - 3 / 15).
        let effect = Effect::of(&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]).expect("figures");
        assert!((effect.hedges_g.expect("noise") - 1.6).abs() < 1e-12);
        // Of nine pairs eight are above, one is equal.
        assert!((effect.cliffs_delta - 8.0 / 9.0).abs() < 1e-12);
        assert_eq!(effect.word(), "large");
        let same = Effect::of(&[1.0, 1.0], &[1.0, 1.0]).expect("figures");
        assert_eq!((same.hedges_g, same.cliffs_delta, same.word()), (None, 0.0, "negligible"));
        assert_eq!(Effect::of(&[], &[1.0]), None);
    }
}
