//! Whether a figure grew all the time while it was watched. A minute says nothing of hours, so this asks for less than
//! `measure::growth` and says less: that it grew in each part of the time, and did not slow down.

use super::Sure;
use crate::base::Bytes;

/// The share of the mean rate that each interval has at least.
const EACH_SHARE: f64 = 0.2;
/// The share of the first half's rate that the second half has at least: warming up slows down.
const HALF_SHARE: f64 = 0.5;
/// Intervals from which on growth is certain.
const INTERVALS_CERTAIN: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grown {
    pub by: i64,
    pub per_hour: i64,
    pub intervals: usize,
    pub sure: Sure,
}

impl Grown {
    /// "it grew in each of 4 intervals".
    pub fn words(&self) -> String {
        match self.intervals {
            1 => "it grew from the first sample to the last".to_string(),
            count => format!("it grew in each of {count} intervals"),
        }
    }
}

/// The growth of points (seconds, figure); `None`: no growth, less than `least`, not all the time, or more and more slowly.
pub fn of(points: &[(f64, f64)], least: Bytes) -> Option<Grown> {
    let (first, last) = (*points.first()?, *points.last()?);
    let (seconds, by) = (last.0 - first.0, last.1 - first.1);
    if seconds <= 0.0 || by < least.max(1) as f64 {
        return None;
    }
    let rate = by / seconds;
    let is_steady = points.windows(2).all(|pair| {
        let (seconds, by) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        by > 0.0 && by >= rate * seconds * EACH_SHARE
    });
    let intervals = points.len() - 1;
    let middle = points[points.len() / 2];
    let of = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0).max(f64::MIN_POSITIVE);
    let slows = intervals >= 2 && of(middle, last) < of(first, middle) * HALF_SHARE;
    let sure = match intervals {
        INTERVALS_CERTAIN.. => Sure::Certain,
        2.. => Sure::Likely,
        _ => Sure::Possible,
    };
    (is_steady && !slows).then_some(Grown {
        by: by as i64,
        per_hour: (rate * 3600.0) as i64,
        intervals,
        sure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(figures: &[f64]) -> Option<Grown> {
        let points: Vec<(f64, f64)> =
            figures.iter().enumerate().map(|(at, figure)| (at as f64 * 10.0, *figure)).collect();
        of(&points, 100)
    }

    #[test]
    fn growth_in_each_interval_is_certain_from_four_on() {
        let line = grown(&[0.0, 50.0, 100.0, 150.0, 200.0]).expect("it grows");
        assert_eq!((line.by, line.per_hour, line.sure), (200, 18_000, Sure::Certain));
        assert_eq!(grown(&[0.0, 50.0, 100.0]).map(|it| it.sure), Some(Sure::Likely));
        assert_eq!(grown(&[0.0, 100.0]).map(|it| it.sure), Some(Sure::Possible));
        assert_eq!((grown(&[0.0]), grown(&[]), of(&[(1.0, 0.0), (1.0, 500.0)], 1)), (None, None, None));
    }

    #[test]
    fn little_steps_and_warm_ups_are_no_growth() {
        assert_eq!(grown(&[0.0, 25.0, 50.0, 75.0, 99.0]), None, "less than the least");
        assert_eq!(grown(&[0.0, 0.0, 200.0, 200.0, 200.0]), None, "one step");
        assert_eq!(grown(&[0.0, 100.0, 90.0, 150.0, 200.0]), None, "it fell");
        assert_eq!(grown(&[0.0, 100.0, 160.0, 180.0, 200.0]), None, "more and more slowly");
        assert_eq!(grown(&[0.0, 60.0, 110.0, 120.0, 200.0]).map(|it| it.by), Some(200), "noise");
    }
}
