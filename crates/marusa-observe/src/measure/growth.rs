//! Leak or not: whether an area of memory grows without bound, grows towards a known bound, levels off, or cannot be judged
//! yet. Pure: from a series of moments and bytes.
//!
//! A straight line through such a series is noise: a collector makes a sawtooth, a program that starts warms up, caches fill in one
//! step, accounts are rare and irregular. So the series is first reduced to its floor, the minima of windows longer than a
//! tooth (`floor`). What lies before the last change of regime is warm-up and is left out (`regime`). The rest is tested for a
//! trend with the Mann-Kendall test, corrected for autocorrelation by Hamed and Rao, and its rate is Sen's slope (`trend`).
//! `decide` has the rules for a verdict, and `hold` keeps a verdict that was reached while the growth goes on.

mod decide;
mod floor;
mod hold;
mod regime;
#[cfg(test)]
mod tests;
mod trend;

use crate::base::Bytes;
use floor::Floor;
use regime::Tail;
use schemars::JsonSchema;
use serde::Serialize;
use trend::Trend;

/// A figure and when it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub seconds: f64,
    pub bytes: f64,
}

/// Bytes per hour, with the 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub bytes_per_hour: f64,
    pub low_bytes_per_hour: f64,
    pub high_bytes_per_hour: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    GrowsWithoutBound,
    /// It grows steadily, but cannot exceed a bound that is known, such as the maximum of a heap.
    GrowsToBound,
    LevelsOff,
    CannotTellYet,
}

/// Why there is no verdict yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Caveat {
    /// Too few figures, or too short since the warm-up or the last step.
    TooShort,
    /// The floor of a heap is known only after a collection.
    NoCollectionSeen,
    /// The change may be chance.
    Noise,
    /// It grows, but more and more slowly.
    StillSlowing,
    /// Few steps make most of the growth.
    Steps,
    /// It grew, but little.
    HardlyAny,
}

impl Caveat {
    pub fn words(self) -> &'static str {
        match self {
            Caveat::TooShort => "too short since the warm-up or the last step",
            Caveat::NoCollectionSeen => {
                "no collection of the whole heap has been seen, so its floor is unknown"
            }
            Caveat::Noise => "the change may be chance",
            Caveat::StillSlowing => "it grows, but more and more slowly",
            Caveat::Steps => "it grew in a few steps",
            Caveat::HardlyAny => "it grew, but little",
        }
    }
}

/// The judgement on a series.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Growth {
    pub verdict: Verdict,
    pub caveat: Option<Caveat>,
    /// Minutes of recording that are probably still needed; `None` where the verdict is given, or the time cannot be estimated.
    pub needs_minutes: Option<f64>,
    /// Since the warm-up.
    #[serde(skip)]
    pub rate: Option<Rate>,
    /// The floor at the end.
    pub level_bytes: Bytes,
    /// What comes before is warm-up.
    pub steady_from_seconds: f64,
    /// The time observed since then.
    pub steady_seconds: f64,
    /// From the first floor to the last, warm-up included.
    pub grown_bytes: i64,
    pub grown_seconds: f64,
    /// Whether it grew by too little to matter (`decide::small`), warm-up included.
    pub is_small: bool,
    /// What it cannot exceed.
    pub bound_bytes: Option<Bytes>,
}

/// What is known of the series besides its figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nature {
    /// It rises until something cleans up, like a heap: a rise without a fall says nothing.
    pub is_collected: bool,
    /// Each figure is a floor, as the live bytes after a collection of the whole heap.
    pub is_floor: bool,
    /// The resident bytes of the whole process: growth that is small next to them does not matter.
    pub process_bytes: Bytes,
    /// What the figure cannot exceed.
    pub bound_bytes: Option<Bytes>,
}

/// Judges a series in the order of time. Points that are not finite are left out.
pub fn judge(points: &[Point], nature: Nature) -> Growth {
    let points: Vec<Point> =
        points.iter().copied().filter(|point| point.seconds.is_finite() && point.bytes.is_finite()).collect();
    let mut growth = now(&points, nature);
    if growth.verdict == Verdict::CannotTellYet {
        growth = hold::earlier(&points, nature, &growth).unwrap_or(growth);
    }
    if growth.verdict == Verdict::GrowsWithoutBound && nature.bound_bytes.is_some() {
        growth.verdict = Verdict::GrowsToBound;
    }
    growth
}

/// The judgement by all points, without regard to earlier ones.
fn now(points: &[Point], nature: Nature) -> Growth {
    let Some(floor) = floor::of(points, nature.is_floor) else { return short(points, None, nature) };
    if nature.is_collected && floor.falls < 2 && floor.rises() {
        return Growth {
            caveat: Some(Caveat::NoCollectionSeen),
            needs_minutes: None,
            ..short(points, Some(&floor), nature)
        };
    }
    if floor.points.len() < decide::FIGURES_MIN {
        return short(points, Some(&floor), nature);
    }
    of_tail(regime::after_warm_up_and_steps(&floor.points), &floor, nature)
}

fn of_tail(tail: Tail, floor: &Floor, nature: Nature) -> Growth {
    let trend = trend::of(tail);
    let mut growth = Growth {
        rate: trend.as_ref().map(rate),
        level_bytes: level(tail),
        steady_from_seconds: tail[0].seconds,
        steady_seconds: tail[tail.len() - 1].seconds - tail[0].seconds,
        ..grown(&floor.points, nature)
    };
    let missing = decide::missing_seconds(tail, floor.window_seconds);
    let Some(trend) = trend.filter(|_| missing <= 0.0) else {
        growth.needs_minutes = Some(missing.max(floor.window_seconds) / 60.0);
        return growth;
    };
    let before = &floor.points[..floor.points.len() - tail.len()];
    let decision = decide::decide(&trend, before, tail, nature);
    growth.verdict = decision.verdict;
    growth.caveat = decision.caveat;
    growth.needs_minutes = decision.longer.map(|factor| {
        // At least one more window: a minute that changes nothing does not help.
        let more = growth.steady_seconds * (factor - 1.0);
        more.max(floor.window_seconds) / 60.0
    });
    growth
}

fn rate(trend: &Trend) -> Rate {
    let hour = 3600.0;
    Rate {
        bytes_per_hour: trend.slope * hour,
        low_bytes_per_hour: trend.low * hour,
        high_bytes_per_hour: trend.high * hour,
    }
}

/// The median of the last floors.
fn level(tail: Tail) -> Bytes {
    let mut last: Vec<f64> = tail.iter().rev().take(5).map(|point| point.bytes).collect();
    last.sort_by(f64::total_cmp);
    last.get(last.len() / 2).map_or(0, |bytes| bytes.max(0.0) as Bytes)
}

/// What is known of any series: how far it moved since its first figure.
fn grown(points: &[Point], nature: Nature) -> Growth {
    let (first, last) = (points.first().copied(), points.last().copied());
    let ends = first.zip(last);
    let bytes = ends.map_or(0.0, |(first, last)| last.bytes - first.bytes);
    let seconds = ends.map_or(0.0, |(first, last)| last.seconds - first.seconds);
    Growth {
        verdict: Verdict::CannotTellYet,
        caveat: Some(Caveat::TooShort),
        needs_minutes: None,
        rate: None,
        level_bytes: last.map_or(0, |point| point.bytes.max(0.0) as Bytes),
        steady_from_seconds: first.map_or(0.0, |point| point.seconds),
        steady_seconds: seconds,
        grown_bytes: bytes as i64,
        grown_seconds: seconds,
        is_small: bytes < decide::small(first.map_or(0.0, |point| point.bytes), seconds, nature),
        bound_bytes: nature.bound_bytes,
    }
}

/// The judgement where there are too few figures for any.
fn short(points: &[Point], floor: Option<&Floor>, nature: Nature) -> Growth {
    let floors = floor.map_or(points, |floor| &floor.points);
    let mut growth = grown(floors, nature);
    growth.rate = trend::of(floors).as_ref().map(rate);
    let seconds = points.last().zip(points.first()).map_or(0.0, |(last, first)| last.seconds - first.seconds);
    growth.steady_seconds = seconds;
    // A single figure does not say when the next ones come.
    let apart = (points.len() > 1).then(|| seconds / (points.len() - 1) as f64);
    let window = floor.map(|floor| floor.window_seconds).or(apart);
    let wanted = window.map(|window| (window * decide::FIGURES_MIN as f64).max(decide::SECONDS_MIN));
    let missing = wanted.map(|wanted| (wanted - seconds).max(window.unwrap_or(0.0)));
    growth.needs_minutes = missing.map(|seconds| seconds / 60.0).filter(|minutes| *minutes > 0.0);
    growth
}
