//! The floor of a series: the lowest figure of each stretch of time, where a stretch is longer than a tooth of the saw. What
//! a collector or a trim could give back is not growth.

use super::Point;

/// Shorter than that nothing is looked at.
pub const SECONDS_MIN: f64 = 60.0;
/// Stretches that a series is cut into at most, and figures in each at least.
const STRETCHES_MAX: usize = 48;
pub const FIGURES_MIN: usize = 2;
/// A fall of this share of what the series spans is a tooth's.
const FALL_SHARE: f64 = 0.25;
/// A stretch is so many teeth long.
const TEETH: f64 = 1.5;

pub struct Floor {
    pub points: Vec<Point>,
    pub stretch_seconds: f64,
    /// Teeth that ended.
    pub falls: usize,
}

impl Floor {
    /// Whether it ends higher than it began.
    pub fn rises(&self) -> bool {
        let ends = self.points.first().zip(self.points.last());
        ends.is_some_and(|(first, last)| last.bytes > first.bytes)
    }
}

/// `None`: too few figures, or too short.
pub fn of(points: &[Point]) -> Option<Floor> {
    let (first, last) = (points.first()?.seconds, points.last()?.seconds);
    let seconds = last - first;
    if seconds < SECONDS_MIN || points.len() < 2 * FIGURES_MIN {
        return None;
    }
    let (falls, period) = teeth(points);
    let count = (points.len() / FIGURES_MIN).clamp(1, STRETCHES_MAX);
    let wanted = (seconds / count as f64).max(period.map_or(0.0, |period| period * TEETH));
    // Whole stretches only: half a tooth at the end has no floor of its own.
    let count = ((seconds / wanted + 1e-9).floor() as usize).max(1);
    let stretch_seconds = seconds / count as f64;
    let mut floors: Vec<Option<f64>> = vec![None; count];
    for point in points {
        let at = (((point.seconds - first) / stretch_seconds) as usize).min(count - 1);
        let floor = &mut floors[at];
        *floor = Some(floor.map_or(point.bytes, |floor: f64| floor.min(point.bytes)));
    }
    let middle = |at: usize| first + (at as f64 + 0.5) * stretch_seconds;
    // A stretch without a figure is left out: the recorder was away.
    let kept = floors
        .into_iter()
        .enumerate()
        .filter_map(|(at, floor)| Some(Point { seconds: middle(at), bytes: floor? }));
    Some(Floor { points: kept.collect(), stretch_seconds, falls })
}

/// How often it fell from a peak by a good part of what it spans, and how far apart these falls are.
fn teeth(points: &[Point]) -> (usize, Option<f64>) {
    let mut sorted: Vec<f64> = points.iter().map(|point| point.bytes).collect();
    sorted.sort_by(f64::total_cmp);
    let of = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    let threshold = (of(0.95) - of(0.05)) * FALL_SHARE;
    if threshold <= 0.0 {
        return (0, None);
    }
    let (mut high, mut low) = (points[0].bytes, points[0].bytes);
    let mut is_falling = false;
    let mut falls: Vec<f64> = Vec::new();
    for point in points {
        high = high.max(point.bytes);
        low = low.min(point.bytes);
        if !is_falling && high - point.bytes > threshold {
            falls.push(point.seconds);
            (is_falling, low) = (true, point.bytes);
        } else if is_falling && point.bytes - low > threshold {
            (is_falling, high) = (false, point.bytes);
        }
    }
    let mut apart: Vec<f64> = falls.windows(2).map(|pair| pair[1] - pair[0]).collect();
    apart.sort_by(f64::total_cmp);
    // Not the middle one: a stretch is to hold the longer teeth, too.
    let longer = apart.get(apart.len().saturating_sub(1) * 3 / 4).copied();
    (falls.len(), longer)
}
