//! A leak or not: whether an area of memory grows without bound, levels off, or can not be told yet. Pure: from a series of
//! moments and bytes.
//!
//! A straight line through such a series is noise: a collector makes saw-teeth, a program that starts warms up, caches fill
//! in one step. So the series is made a floor first, the minima of stretches that are longer than a tooth (`floor`); what
//! lies before the last change of the floor's ways is warm-up and is left out (`regime`); what is left is asked for a trend
//! by Mann and Kendall's test, with the correction of Hamed and Rao for neighbours that are alike, and for its rate by Sen's
//! slope (`trend`). A rate that becomes less is no growth without bound, and a few steps are none either.

mod floor;
mod regime;
#[cfg(test)]
mod tests;
mod trend;

use crate::base::Bytes;
use floor::Floor;
use regime::Tail;
use serde::Serialize;
use trend::Trend;

/// One moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub seconds: f64,
    pub bytes: f64,
}

/// Bytes an hour, and the interval that holds the true rate in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub bytes_per_hour: f64,
    pub low_bytes_per_hour: f64,
    pub high_bytes_per_hour: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    GrowsWithoutBound,
    LevelsOff,
    CannotTellYet,
}

/// Why it is not told yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Too few moments, or too short since the warm-up or the last step.
    TooShort,
    /// A collector's floor is known only after it collected.
    NoCollectionSeen,
    /// It may be chance.
    Noise,
    /// It grows, ever more slowly.
    StillSlowing,
    /// It grew, but hardly.
    HardlyAny,
}

impl Doubt {
    pub fn words(self) -> &'static str {
        match self {
            Doubt::TooShort => "too short since the warm-up or the last step",
            Doubt::NoCollectionSeen => {
                "no collection was seen that gave memory back, so its floor is not known"
            }
            Doubt::Noise => "what it moves may be chance",
            Doubt::StillSlowing => "it grows, ever more slowly",
            Doubt::HardlyAny => "it grew, but hardly",
        }
    }
}

/// What a series says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Growth {
    pub verdict: Verdict,
    pub doubt: Option<Doubt>,
    /// Minutes more of recording, by which it can probably be told; `None` where it is told, or nobody can say.
    pub needs_minutes: Option<f64>,
    /// Of what is left when the warm-up is left out.
    pub rate: Option<Rate>,
    /// The floor at the end.
    pub level_bytes: Bytes,
    /// Before it was warm-up.
    pub steady_from_seconds: f64,
    /// How long was looked at since then.
    pub steady_seconds: f64,
}

/// What is known of the series beside its figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nature {
    /// It rises until somebody cleans up, as a heap: a rise without a fall says nothing.
    pub is_collected: bool,
}

const DAY: f64 = 86_400.0;
/// Fewer stretches are no series: Mann and Kendall's test needs some ten (Hamed and Rao used 10 and more).
const STRETCHES_MIN: usize = 12;
/// One in a thousand, one side: there are some fifteen areas, and a false alarm is worse than a late one.
const SIGNIFICANT: f64 = 3.09;
/// Below it nothing points upwards.
const NO_SIGN: f64 = 1.0;
/// What may still be added a day, as a share of the level, or in bytes where there is little, to say that it levels off.
const ALLOWED_SHARE: f64 = 0.20;
const ALLOWED_BYTES: f64 = 8.0 * 1024.0 * 1024.0;
/// A rate of at least so much a day is growth that matters.
const MATTERS_SHARE: f64 = 0.02;
const MATTERS_BYTES: f64 = 2.0 * 1024.0 * 1024.0;
/// And it must have been seen: so much since the warm-up.
const SEEN_SHARE: f64 = 0.002;
const SEEN_BYTES: f64 = 512.0 * 1024.0;
/// And it must be more than what comes and goes: so many deviations of what the slope leaves. Noise that wanders slowly has
/// trends of its own for a while, but they stay within its spread.
const SPREADS: f64 = 5.0;
/// A step is cut off, and what is behind it looked at, so often at most.
const CUTS_MAX: usize = 4;

/// Judges a series; moments in the order of time. Those that are no numbers are left out.
pub fn judge(points: &[Point], nature: Nature) -> Growth {
    let points: Vec<Point> =
        points.iter().copied().filter(|point| point.seconds.is_finite() && point.bytes.is_finite()).collect();
    let Some(floor) = floor::of(&points) else { return short(&points, None) };
    if nature.is_collected && floor.falls < 2 && floor.rises() {
        return Growth { doubt: Some(Doubt::NoCollectionSeen), ..short(&points, Some(&floor)) };
    }
    if floor.points.len() < STRETCHES_MIN {
        return short(&points, Some(&floor));
    }
    let mut tail = regime::after_warm_up(&floor.points);
    for _ in 0..CUTS_MAX {
        let Some(later) = regime::after_steps(tail) else { break };
        tail = later;
    }
    of_tail(tail, &floor)
}

fn of_tail(tail: Tail, floor: &Floor) -> Growth {
    let mut growth = Growth {
        verdict: Verdict::CannotTellYet,
        doubt: Some(Doubt::TooShort),
        needs_minutes: None,
        rate: None,
        level_bytes: level(tail),
        steady_from_seconds: tail[0].seconds - floor.stretch_seconds / 2.0,
        steady_seconds: tail.len() as f64 * floor.stretch_seconds,
    };
    let Some(trend) = trend::of(tail).filter(|_| tail.len() >= STRETCHES_MIN) else {
        let missing = STRETCHES_MIN.saturating_sub(tail.len()).max(1);
        growth.needs_minutes = Some(missing as f64 * floor.stretch_seconds / 60.0);
        return growth;
    };
    growth.rate = Some(rate(&trend));
    let before = &floor.points[..floor.points.len() - tail.len()];
    let (verdict, doubt, factor) = decide(&trend, before, tail, growth.level_bytes as f64);
    growth.verdict = verdict;
    growth.doubt = doubt;
    growth.needs_minutes = factor.map(|factor| {
        // No less than one stretch more: a minute that changes nothing helps nobody.
        let more = growth.steady_seconds * (factor - 1.0);
        more.max(floor.stretch_seconds) / 60.0
    });
    growth
}

/// The verdict, why it is none, and by what the time that was looked at must grow until there probably is one.
fn decide(trend: &Trend, before: Tail, tail: Tail, level: f64) -> (Verdict, Option<Doubt>, Option<f64>) {
    let allowed = (level * ALLOWED_SHARE).max(ALLOWED_BYTES) / DAY;
    let matters = (level * MATTERS_SHARE).max(MATTERS_BYTES) / DAY;
    let seconds = tail[tail.len() - 1].seconds - tail[0].seconds;
    let levels_off = (Verdict::LevelsOff, None, None);
    let doubt = |doubt, factor: f64| (Verdict::CannotTellYet, Some(doubt), Some(factor));
    // The doubt of a slope falls with the time looked at to the power of 3/2.
    let power = |ratio: f64| ratio.max(1.0).powf(2.0 / 3.0);
    if trend.z < SIGNIFICANT || trend.low <= 0.0 {
        return match trend.z {
            z if z < NO_SIGN && trend.high <= allowed => levels_off,
            z if z < NO_SIGN => doubt(Doubt::Noise, power(trend.high / allowed)),
            z => doubt(Doubt::Noise, power(1.1 * SIGNIFICANT / z)),
        };
    }
    if trend.high * 4.0 <= allowed {
        return levels_off;
    }
    if let Some(late) = trend::slows(tail) {
        return match late.z < SIGNIFICANT && late.high <= allowed {
            true => levels_off,
            false => doubt(Doubt::StillSlowing, 2.0),
        };
    }
    if trend::was_faster(before, trend, tail.len()) {
        return doubt(Doubt::StillSlowing, 2.0);
    }
    let seen = (level * SEEN_SHARE).max(SEEN_BYTES);
    if trend.slope * seconds < seen {
        return doubt(Doubt::HardlyAny, seen / (trend.slope * seconds).max(1.0));
    }
    let spreads = trend.slope * seconds / trend.spread.max(1.0);
    if spreads < SPREADS {
        return doubt(Doubt::Noise, SPREADS / spreads);
    }
    if trend.low >= matters {
        return (Verdict::GrowsWithoutBound, None, None);
    }
    doubt(Doubt::HardlyAny, 1.5)
}

fn rate(trend: &Trend) -> Rate {
    let hour = 3600.0;
    Rate {
        bytes_per_hour: trend.slope * hour,
        low_bytes_per_hour: trend.low * hour,
        high_bytes_per_hour: trend.high * hour,
    }
}

/// The middle of the last floors.
fn level(tail: Tail) -> Bytes {
    let mut last: Vec<f64> = tail.iter().rev().take(5).map(|point| point.bytes).collect();
    last.sort_by(f64::total_cmp);
    last.get(last.len() / 2).map_or(0, |bytes| bytes.max(0.0) as Bytes)
}

/// Nothing can be told of so little.
fn short(points: &[Point], floor: Option<&Floor>) -> Growth {
    let seconds = points.last().zip(points.first()).map_or(0.0, |(last, first)| last.seconds - first.seconds);
    let stretch = floor.map(|floor| floor.stretch_seconds);
    // One figure alone does not say when the next ones come.
    let apart = (points.len() > 1).then(|| seconds / (points.len() - 1) as f64);
    let figures = (STRETCHES_MIN * floor::FIGURES_MIN - 1) as f64;
    let wanted = match (stretch, apart) {
        (Some(stretch), _) => Some(stretch * STRETCHES_MIN as f64),
        (None, apart) => apart.map(|apart| (apart * figures).max(floor::SECONDS_MIN)),
    };
    // A heap whose first collection is to come: nobody knows when.
    let missing = wanted.map(|wanted| (wanted - seconds).max(stretch.unwrap_or(0.0)));
    Growth {
        verdict: Verdict::CannotTellYet,
        doubt: Some(Doubt::TooShort),
        needs_minutes: missing.map(|seconds| seconds / 60.0).filter(|minutes| *minutes > 0.0),
        rate: None,
        level_bytes: points.last().map_or(0, |point| point.bytes.max(0.0) as Bytes),
        steady_from_seconds: points.first().map_or(0.0, |point| point.seconds),
        steady_seconds: seconds,
    }
}
