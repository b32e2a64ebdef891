//! The floor of a series: the lowest figure of each window of time, where a window is longer than a tooth of the saw. What
//! a collector or a trim could give back is not growth. A series that never falls has no teeth: each of its figures is a floor.

use super::Point;

/// A shorter series has no floor.
const SECONDS_MIN: f64 = 60.0;
/// The most windows that a series is cut into, and the fewest figures in each where there are teeth.
const WINDOWS_MAX: usize = 48;
const FIGURES_MIN: usize = 2;
/// A fall of this share of what the series spans is a tooth's.
const FALL_SHARE: f64 = 0.25;
/// A window is this many teeth long.
const TEETH: f64 = 1.5;

pub struct Floor {
    pub points: Vec<Point>,
    pub window_seconds: f64,
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

/// `None`: too few figures, or too short. `is_floor`: each figure is a floor.
pub fn of(points: &[Point], is_floor: bool) -> Option<Floor> {
    let (first, last) = (points.first()?.seconds, points.last()?.seconds);
    let seconds = last - first;
    if seconds < SECONDS_MIN || points.len() < 2 * FIGURES_MIN {
        return None;
    }
    if is_floor {
        let window_seconds = seconds / (points.len() - 1) as f64;
        return Some(Floor { points: points.to_vec(), window_seconds, falls: 0 });
    }
    let (falls, period) = teeth(points);
    let figures = if falls == 0 { 1 } else { FIGURES_MIN };
    let count = (points.len() / figures).clamp(1, WINDOWS_MAX);
    let wanted = (seconds / count as f64).max(period.map_or(0.0, |period| period * TEETH));
    // Whole windows only: half a tooth at the end has no floor of its own.
    let count = ((seconds / wanted + 1e-9).floor() as usize).max(1);
    let window_seconds = seconds / count as f64;
    let mut floors: Vec<Option<Point>> = vec![None; count];
    for point in points {
        let at = (((point.seconds - first) / window_seconds) as usize).min(count - 1);
        let floor = floors[at].get_or_insert(*point);
        if point.bytes < floor.bytes {
            *floor = *point;
        }
    }
    // At the time at which it was read: the middle of its window would bend the series where figures come irregularly. A window
    // without a figure is left out: the recorder was away.
    Some(Floor { points: floors.into_iter().flatten().collect(), window_seconds, falls })
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
    // Not the middle one: a window is to hold the longer teeth, too.
    let longer = apart.get(apart.len().saturating_sub(1) * 3 / 4).copied();
    (falls.len(), longer)
}
