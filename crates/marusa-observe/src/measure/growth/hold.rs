//! A verdict of growth holds while the growth goes on. A rate that varies, or a step on top of a leak, looks like a change of
//! regime: the time since then is short, and without this module a leak that was known at minute 8 would be unknown again at
//! minute 12.

use super::decide::SECONDS_MIN;
use super::regime::Tail;
use super::{Growth, Nature, Point, Verdict, floor, level, now, rate, trend};

/// Earlier moments lie this far apart, or this share of the time observed, on a grid that is the same whenever one asks.
const GRID_SECONDS: f64 = 60.0;
const MOMENTS_MAX: usize = 24;
/// Growth goes on where it has at least this share of its earlier rate since the verdict, and lately.
const GOES_ON: f64 = 0.5;
const LATELY: f64 = 0.33;
/// The end of the series that counts as lately, as a share of the time since the growth began.
const LATE_SHARE: f64 = 0.25;
const FIGURES_MIN: usize = 4;

/// The verdict of an earlier moment, in the second half of the series, that still holds.
pub fn earlier(points: &[Point], nature: Nature, present: &Growth) -> Option<Growth> {
    let (first, last) = (points.first()?.seconds, points.last()?.seconds);
    let seconds = last - first;
    if seconds <= SECONDS_MIN || present.is_small {
        return None;
    }
    let step = grid(seconds);
    let mut at = (seconds / step).ceil() * step - step;
    while at >= SECONDS_MIN.max(seconds / 2.0) {
        let end = points.partition_point(|point| point.seconds - first <= at);
        let then = now(&points[..end], nature);
        if then.verdict == Verdict::GrowsWithoutBound {
            return goes_on(points, nature, &then, first + at);
        }
        at -= step;
    }
    None
}

/// A power of two of the grid, so that the moments of a longer recording are among those of a shorter one.
fn grid(seconds: f64) -> f64 {
    let mut step = GRID_SECONDS;
    while seconds / 2.0 / step > MOMENTS_MAX as f64 {
        step *= 2.0;
    }
    step
}

fn goes_on(points: &[Point], nature: Nature, then: &Growth, judged_at: f64) -> Option<Growth> {
    let floor = floor::of(points, nature.is_floor)?;
    let from = floor.points.partition_point(|point| point.seconds < then.steady_from_seconds);
    let tail = &floor.points[from..];
    let trend = trend::of(tail)?;
    let earlier = then.rate?.bytes_per_hour / 3600.0;
    let since = tail.partition_point(|point| point.seconds < judged_at);
    let (began, end) = (tail.first()?.seconds, tail.last()?.seconds);
    let late = tail.partition_point(|point| point.seconds < end - (end - began) * LATE_SHARE);
    let late = late.min(tail.len().checked_sub(FIGURES_MIN)?);
    let is_on =
        has_rate(&tail[since.min(late)..], earlier * GOES_ON) && has_rate(&tail[late..], earlier * LATELY);
    is_on.then(|| Growth {
        caveat: None,
        verdict: Verdict::GrowsWithoutBound,
        needs_minutes: None,
        rate: Some(rate(&trend)),
        level_bytes: level(tail),
        steady_from_seconds: then.steady_from_seconds,
        steady_seconds: end - then.steady_from_seconds,
        ..super::grown(&floor.points, nature)
    })
}

/// Sen's slope is the median of all slopes, so a single step does not make a rate.
fn has_rate(part: Tail, least: f64) -> bool {
    trend::of(part).is_some_and(|trend| trend.slope >= least)
}
