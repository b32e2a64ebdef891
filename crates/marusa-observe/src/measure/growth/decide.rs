//! The rules for a verdict on the part of a floor that comes after the warm-up. A verdict is only given when it will stand: growth
//! that has lasted a few minutes, comes in a few steps, slows down or is small is not a leak yet.

use super::regime::Tail;
use super::trend::{self, Trend};
use super::{Caveat, Nature, Verdict};

/// Growth is called unbounded, and an area level, only after this time of one regime: caches, pools and warm-ups of a few
/// minutes are as straight as a leak.
pub const SECONDS_MIN: f64 = 480.0;
/// Eight figures that all rise are significant (z = 3.3); seven are not (z = 3.0).
pub const FIGURES_MIN: usize = 8;
/// One in a thousand, one-sided: there are about fifteen areas, and a false alarm is worse than a late one.
const SIGNIFICANT: f64 = 3.09;
/// Below it nothing points upwards.
const NO_SIGN: f64 = 1.0;
const DAY: f64 = 86_400.0;
/// What may still be added per day, as a share of the level, or in bytes where the level is low, for an area that levels off.
const ALLOWED_SHARE: f64 = 0.20;
const ALLOWED_BYTES: f64 = 8.0 * 1024.0 * 1024.0;
/// A rate of at least this per day is growth that matters.
const MATTERS_SHARE: f64 = 0.02;
const MATTERS_BYTES: f64 = 2.0 * 1024.0 * 1024.0;
/// Growth is small below this, below this share of the process, and below this share of the area's own level. Within the first hour
/// the last share is larger: the rise of a daily load is slow, but steady for hours.
const SMALL_BYTES: f64 = 4.0 * 1024.0 * 1024.0;
const SMALL_PROCESS_SHARE: f64 = 0.01;
const SMALL_OWN_SHARE_EARLY: f64 = 0.10;
const SMALL_OWN_SHARE: f64 = 0.05;
const EARLY_SECONDS: f64 = 3600.0;
/// And growth must exceed what comes and goes: this many standard deviations of the residuals. Noise that wanders slowly has trends
/// of its own for a while, but they stay within its spread.
const SPREADS: f64 = 5.0;
/// In any part of this share of the tail, at least this share of what is expected of it must have grown: else a few steps made the
/// growth, as those of a cache or a pool.
const PART_SHARE: f64 = 0.2;
const PART_GROWS: f64 = 0.2;
/// The part may fall short of that by this many standard deviations of the noise.
const PART_NOISE: f64 = 3.0;

pub struct Decision {
    pub verdict: Verdict,
    pub caveat: Option<Caveat>,
    /// By what factor the observed time must grow until there probably is a verdict.
    pub longer: Option<f64>,
}

/// Growth of less than this over some time, from a level, does not matter.
pub fn small(from_bytes: f64, seconds: f64, nature: Nature) -> f64 {
    let own_share = if seconds < EARLY_SECONDS { SMALL_OWN_SHARE_EARLY } else { SMALL_OWN_SHARE };
    SMALL_BYTES.max(nature.process_bytes as f64 * SMALL_PROCESS_SHARE).max(from_bytes * own_share)
}

/// What a tail lacks in time and figures; 0 or less: nothing.
pub fn missing_seconds(tail: Tail, window_seconds: f64) -> f64 {
    let figures = FIGURES_MIN.saturating_sub(tail.len()) as f64 * window_seconds;
    let ends = tail.first().zip(tail.last()).map_or(0.0, |(first, last)| last.seconds - first.seconds);
    figures.max(SECONDS_MIN - ends)
}

pub fn decide(trend: &Trend, before: Tail, tail: Tail, nature: Nature) -> Decision {
    let level = tail.last().map_or(0.0, |point| point.bytes);
    let allowed = (level * ALLOWED_SHARE).max(ALLOWED_BYTES) / DAY;
    // The standard error of a slope falls with the time observed to the power of 3/2.
    let power = |ratio: f64| ratio.max(1.0).powf(2.0 / 3.0);
    if trend.z < SIGNIFICANT || trend.low <= 0.0 {
        return match trend.z {
            z if z < NO_SIGN && trend.high <= allowed => levels_off(),
            z if z < NO_SIGN => undecided(Caveat::Noise, power(trend.high / allowed)),
            z => undecided(Caveat::Noise, power(1.1 * SIGNIFICANT / z)),
        };
    }
    if trend.high * 4.0 <= allowed {
        return levels_off();
    }
    if let Some(late) = trend::slows(tail) {
        return match late.z < SIGNIFICANT && late.high <= allowed {
            true => levels_off(),
            false => undecided(Caveat::StillSlowing, 2.0),
        };
    }
    match trend::was_faster(before, trend, tail.len()) {
        true => undecided(Caveat::StillSlowing, 2.0),
        false => grows(trend, tail, nature),
    }
}

/// What is left to ask of a trend that is significant and does not slow down.
fn grows(trend: &Trend, tail: Tail, nature: Nature) -> Decision {
    let (first, last) = (tail[0], tail[tail.len() - 1]);
    let seconds = last.seconds - first.seconds;
    let grown = trend.slope * seconds;
    let small = small(first.bytes, seconds, nature);
    if grown < small {
        return undecided(Caveat::HardlyAny, small / grown.max(1.0));
    }
    let spreads = grown / trend.spread.max(1.0);
    if spreads < SPREADS {
        return undecided(Caveat::Noise, SPREADS / spreads);
    }
    if rests(tail, trend.slope) {
        return undecided(Caveat::Steps, 2.0);
    }
    let matters = (last.bytes * MATTERS_SHARE).max(MATTERS_BYTES) / DAY;
    if trend.low < matters {
        return undecided(Caveat::HardlyAny, 1.5);
    }
    Decision { verdict: Verdict::GrowsWithoutBound, caveat: None, longer: None }
}

fn levels_off() -> Decision {
    Decision { verdict: Verdict::LevelsOff, caveat: None, longer: None }
}

fn undecided(caveat: Caveat, longer: f64) -> Decision {
    Decision { verdict: Verdict::CannotTellYet, caveat: Some(caveat), longer: Some(longer) }
}

/// Whether it stood still for a part of the tail.
fn rests(tail: Tail, slope: f64) -> bool {
    let part = (tail[tail.len() - 1].seconds - tail[0].seconds) * PART_SHARE;
    let tolerance = PART_NOISE * trend::noise(tail);
    (0..tail.len()).any(|from| {
        let to = tail.partition_point(|point| point.seconds < tail[from].seconds + part);
        tail.get(to).is_some_and(|end| {
            let expected = slope * (end.seconds - tail[from].seconds);
            end.bytes - tail[from].bytes + tolerance < PART_GROWS * expected
        })
    })
}
