//! From when on a program is warm: found in its own figures, not guessed. One trial gives a series (iterations of a
//! benchmark, a figure that the output repeats, requests of each second); where its mean or its noise changes it is cut
//! into segments, and the last segments that are alike are the steady state. There may be none, and then that is reported.
//!
//! After Barrett, Bolz-Tereick, Killick, Mount and Tratt, "Virtual machine warmup blows hot and cold" (OOPSLA 2017):
//! outliers are put aside by Tukey's fences, change points of mean and variance are found exactly by PELT (Killick,
//! Fearnhead and Eckley 2012) with a penalty of 15 log n, segments that differ by less than their noise are one, and a
//! program that slows down is distinguished from one that warms up. Theirs are 2000 iterations; here a series may be short, so the
//! fences are those of the whole neighbourhood of a figure, and the steady state must be a share of the series rather than
//! its last 500.

use crate::base::{Gap, Known, Why};
use serde::Serialize;

/// Fewer figures say nothing of a steady state.
pub const COUNT_MIN: usize = 10;
/// The length to which longer series are reduced, by means of neighbours.
const COUNT_MAX: usize = 4000;
/// The least share of the series that is a steady state: the last quarter, as Barrett et al. have it (500 of 2000).
const SHARE_MIN: f64 = 0.25;
/// A segment has a variance: three figures at least.
const SEGMENT_MIN: usize = 3;
/// Segments whose means differ by less than this share are one, however little noise they have.
const ALIKE: f64 = 0.01;
/// Neighbours on each side that an outlier is compared with.
const NEIGHBOURS: usize = 25;

/// How a series went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// As at the start so at the end.
    Flat,
    /// It became better, and stayed so.
    WarmUp,
    /// Steady at the end, but it had been better before.
    SlowDown,
    /// It changes still in its last quarter, or drifts.
    NoSteadyState,
}

impl Shape {
    pub fn words(self) -> &'static str {
        match self {
            Shape::Flat => "steady from the start",
            Shape::WarmUp => "warmed up",
            Shape::SlowDown => "steady at the end, better before",
            Shape::NoSteadyState => "no steady state",
        }
    }
}

/// Figures between two changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Segment {
    pub start: usize,
    /// One behind the last.
    pub end: usize,
    pub mean: f64,
    pub deviation: f64,
}

/// What a series says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WarmUp {
    pub shape: Shape,
    /// The first figure of the steady state; `None`: there is none.
    pub steady_from: Option<usize>,
    pub segments: Vec<Segment>,
}

impl WarmUp {
    /// The figure of the trial: the mean of the steady state. `None`: there is none.
    pub fn mean(&self, values: &[f64]) -> Option<f64> {
        let steady = values.get(self.steady_from?..).filter(|steady| !steady.is_empty())?;
        Some(steady.iter().sum::<f64>() / steady.len() as f64)
    }
}

/// Finds it. `lower_is_better`: as with time.
pub fn find(values: &[f64], lower_is_better: bool) -> Known<WarmUp> {
    let gap = |hint: String| Gap::new("steady state", Why::NotMeasured).hint(hint);
    if values.len() < COUNT_MIN {
        return Err(gap(format!("{} figures in the trial; at least {COUNT_MIN} are needed", values.len())));
    }
    if values.iter().any(|value| !value.is_finite()) {
        return Err(gap("a figure of the trial is not a number".to_string()));
    }
    let step = values.len().div_ceil(COUNT_MAX);
    let means: Vec<f64> =
        values.chunks(step).map(|some| some.iter().sum::<f64>() / some.len() as f64).collect();
    let outliers = outliers(&means);
    let mut found = segments(&without(&means, &outliers));
    found.iter_mut().for_each(|segment| put_back(segment, &outliers, step, values.len()));
    let (mut shape, mut steady_from) = judged(&found, values.len(), lower_is_better);
    let kept: Vec<(usize, f64)> =
        means.iter().copied().enumerate().filter(|(at, _)| outliers.binary_search(at).is_err()).collect();
    if steady_from.is_some_and(|from| drifts(&kept[kept.partition_point(|(at, _)| at * step < from)..])) {
        (shape, steady_from) = (Shape::NoSteadyState, None);
    }
    Ok(WarmUp { shape, steady_from, segments: found })
}

/// Tukey's fences as Barrett et al. have them: further from the median of the neighbours than three times the span from the
/// 10th to the 90th percentile. At the start, where a program warms up, nothing is one. They count in the mean.
fn outliers(values: &[f64]) -> Vec<usize> {
    let mut found = Vec::new();
    let reach = NEIGHBOURS.min(values.len() / 3);
    for (at, value) in values.iter().enumerate().skip(reach) {
        let end = (at + reach + 1).min(values.len());
        let mut window = values[end.saturating_sub(2 * reach + 1)..end].to_vec();
        window.sort_by(f64::total_cmp);
        let of = |share: f64| window[((window.len() - 1) as f64 * share).round() as usize];
        let fence = 3.0 * (of(0.9) - of(0.1)).max(of(0.5).abs() * 1e-3);
        if (value - of(0.5)).abs() > fence {
            found.push(at);
        }
    }
    found
}

fn without(values: &[f64], outliers: &[usize]) -> Vec<f64> {
    let kept = values.iter().enumerate().filter(|(at, _)| outliers.binary_search(at).is_err());
    kept.map(|(_, value)| *value).collect()
}

/// From places among what was kept to places in the series.
fn put_back(segment: &mut Segment, outliers: &[usize], step: usize, count: usize) {
    let place = |mut at: usize| {
        for outlier in outliers {
            at += usize::from(*outlier <= at);
        }
        at
    };
    // The figure behind the last one is where the next segment starts.
    let (start, last) = (place(segment.start), place(segment.end - 1));
    let next = place(segment.end);
    segment.start = start * step;
    segment.end = (next.max(last + 1) * step).min(count);
}

/// Sums from which the cost of any range is known at once. The figures are moved to a mean of 0 before, or squares would
/// drown them.
struct Sums {
    sums: Vec<f64>,
    squares: Vec<f64>,
    /// Less variance than this is none: a clock has its steps.
    least: f64,
    shift: f64,
}

impl Sums {
    fn of(values: &[f64]) -> Sums {
        let shift = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
        let (mut sum, mut square) = (0.0, 0.0);
        for value in values {
            sum += value - shift;
            square += (value - shift).powi(2);
            sums.push(sum);
            squares.push(square);
        }
        let least = (shift.abs() * 1e-4).powi(2).max(f64::MIN_POSITIVE);
        Sums { sums, squares, least, shift }
    }

    fn mean(&self, start: usize, end: usize) -> f64 {
        (self.sums[end] - self.sums[start]) / (end - start) as f64
    }

    fn variance(&self, start: usize, end: usize) -> f64 {
        let mean = self.mean(start, end);
        let square = (self.squares[end] - self.squares[start]) / (end - start) as f64;
        (square - mean * mean).max(self.least)
    }

    /// Twice the negative logarithm of the likelihood, normal noise, mean and variance of the range's own, without what
    /// is the same for all.
    fn cost(&self, start: usize, end: usize) -> f64 {
        (end - start) as f64 * (self.variance(start, end).ln() + 1.0)
    }
}

/// PELT: the cut into segments with the least cost, and a penalty for each. Exact, and a start that cannot win any more is
/// dropped.
fn segments(values: &[f64]) -> Vec<Segment> {
    let count = values.len();
    let sums = Sums::of(values);
    let penalty = 15.0 * (count as f64).ln();
    let mut best = vec![f64::INFINITY; count + 1];
    let mut from = vec![0; count + 1];
    best[0] = -penalty;
    let mut starts = vec![0];
    for end in SEGMENT_MIN..=count {
        let whole = |start: &usize| best[*start] + sums.cost(*start, end) + penalty;
        let candidates = starts.iter().filter(|start| end - **start >= SEGMENT_MIN);
        let Some(start) = candidates.min_by(|one, other| whole(one).total_cmp(&whole(other))).copied() else {
            continue;
        };
        let least = whole(&start);
        starts.retain(|start| end - start < SEGMENT_MIN || whole(start) - penalty <= least);
        (best[end], from[end]) = (least, start);
        starts.push(end + 1 - SEGMENT_MIN);
        starts.retain(|start| best[*start].is_finite());
        starts.dedup();
    }
    let mut found = Vec::new();
    let mut end = count;
    while end > 0 {
        let start = from[end];
        found.push(Segment {
            start,
            end,
            mean: sums.mean(start, end) + sums.shift,
            deviation: sums.variance(start, end).sqrt(),
        });
        end = start;
    }
    found.reverse();
    found
}

/// Change points cut a slow drift into stairs, of which the last may be long. So the steady state must not have a slope:
/// one that is more than chance (t above 4), and that changes the figure by more than 3 % from its start to its end.
fn drifts(steady: &[(usize, f64)]) -> bool {
    const T: f64 = 4.0;
    const CHANGE: f64 = 0.03;
    let count = steady.len() as f64;
    if steady.len() < SEGMENT_MIN {
        return false;
    }
    let across = steady.iter().map(|(at, _)| *at as f64).sum::<f64>() / count;
    let mean = steady.iter().map(|(_, value)| value).sum::<f64>() / count;
    let square: f64 = steady.iter().map(|(at, _)| (*at as f64 - across).powi(2)).sum();
    let both: f64 = steady.iter().map(|(at, value)| (*at as f64 - across) * (value - mean)).sum();
    let slope = both / square;
    let rest: f64 =
        steady.iter().map(|(at, value)| (value - mean - slope * (*at as f64 - across)).powi(2)).sum();
    let error = (rest / (count - 2.0) / square).sqrt();
    let (first, last) = (steady[0].0 as f64, steady[steady.len() - 1].0 as f64);
    slope.abs() > T * error && (slope * (last - first)).abs() > CHANGE * mean.abs()
}

/// Whether two segments are one steady state.
fn alike(one: &Segment, other: &Segment) -> bool {
    let noise = one.deviation.min(other.deviation);
    (one.mean - other.mean).abs() <= noise.max(other.mean.abs() * ALIKE)
}

fn judged(segments: &[Segment], count: usize, lower_is_better: bool) -> (Shape, Option<usize>) {
    let Some(last) = segments.last() else { return (Shape::NoSteadyState, None) };
    let first = segments.iter().rposition(|segment| !alike(segment, last)).map_or(0, |at| at + 1);
    let steady_from = segments[first].start;
    if ((count - steady_from) as f64) < SHARE_MIN * count as f64 {
        return (Shape::NoSteadyState, None);
    }
    if first == 0 {
        return (Shape::Flat, Some(0));
    }
    let is_better =
        |segment: &Segment| if lower_is_better { segment.mean < last.mean } else { segment.mean > last.mean };
    let was_better = segments[..first].iter().any(|segment| is_better(segment) && !alike(segment, last));
    (if was_better { Shape::SlowDown } else { Shape::WarmUp }, Some(steady_from))
}

#[cfg(test)]
#[path = "warm_up_tests.rs"]
mod tests;
