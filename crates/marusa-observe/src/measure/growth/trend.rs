//! Whether a series has a trend, and which: Mann and Kendall's test asks of all pairs whether the later one is higher, Sen's
//! slope is the middle one of the slopes of all pairs. Neither cares for outliers or for how the noise is distributed.
//! Neighbours that are alike make chance look like a trend; Hamed and Rao ("A modified Mann-Kendall trend test for
//! autocorrelated data", Journal of Hydrology 204, 1998) widen the variance by the correlation of the ranks of what the slope
//! leaves.

use super::Point;
use super::regime::Tail;

/// Two sides, 95 of 100.
const TWO_SIDED: f64 = 1.959_964;
/// A later half is slower where it has less than this share of the earlier half's slope by more than chance.
const SLOWER: f64 = 0.85;
/// Or less than this share at all. After SECONDS_MIN of `decide`, the halves of a warm-up with a time constant of up to 18 minutes
/// differ by more than that: exp(-240 s / 1080 s) = 0.80.
const MUCH_SLOWER: f64 = 0.8;
/// The least number of points with which a half has a slope.
const HALF_MIN: usize = 4;

/// A trend in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// How far from chance, in standard deviations; above 0: upwards.
    pub z: f64,
    pub slope: f64,
    pub low: f64,
    pub high: f64,
    /// The deviation of what the slope leaves, in bytes.
    pub spread: f64,
}

/// `None`: fewer than four points.
pub fn of(points: Tail) -> Option<Trend> {
    let count = points.len();
    if count < 4 {
        return None;
    }
    let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
    let mut score = 0_i64;
    for (at, first) in points.iter().enumerate() {
        for second in &points[at + 1..] {
            let (up, across) = (second.bytes - first.bytes, second.seconds - first.seconds);
            score += i64::from(up > 0.0) - i64::from(up < 0.0);
            if across > 0.0 {
                slopes.push(up / across);
            }
        }
    }
    slopes.sort_by(f64::total_cmp);
    let slope = middle(&slopes)?;
    let left: Vec<f64> = points.iter().map(|point| point.bytes - slope * point.seconds).collect();
    let deviation = (variance(points) * alike(&left)).sqrt();
    // A step towards 0: the score is a whole number, the normal distribution is not.
    let z = if deviation > 0.0 { (score - score.signum()) as f64 / deviation } else { 0.0 };
    let pairs = slopes.len() as f64;
    let reach = TWO_SIDED * deviation;
    let at = |place: f64| slopes[(place.max(0.0) as usize).min(slopes.len() - 1)];
    let (low, high) = (at((pairs - reach) / 2.0 - 1.0), at((pairs + reach) / 2.0));
    Some(Trend { z, slope, low, high, spread: deviation_of(&left) })
}

fn deviation_of(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// The deviation of a figure from its neighbours, whatever the trend and however high a few steps.
pub fn noise(points: Tail) -> f64 {
    let mut steps: Vec<f64> = points.windows(2).map(|pair| pair[1].bytes - pair[0].bytes).collect();
    steps.sort_by(f64::total_cmp);
    let Some(usual) = middle(&steps) else { return 0.0 };
    let mut away: Vec<f64> = steps.iter().map(|step| (step - usual).abs()).collect();
    away.sort_by(f64::total_cmp);
    // 1.4826 deviations per median deviation of a normal distribution, and a step has the noise of two figures.
    middle(&away).map_or(0.0, |away| away * 1.4826 / 2.0_f64.sqrt())
}

/// Where what was cut off is at least half as long as what is left (`kept` points), a curve that flattens may have been cut into
/// lines: whether any part of what was cut off, half as long as what is left, grew faster than what is left.
pub fn was_faster(before: Tail, now: &Trend, kept: usize) -> bool {
    let part = (kept / 2).max(HALF_MIN);
    let faster = |part: Tail| of(part).is_some_and(|earlier| earlier.slope > 0.0 && slower(&earlier, now));
    before.chunks_exact(part).any(faster) || before.rchunks_exact(part).any(faster)
}

/// Whether the later slope is much less, or less by more than chance.
fn slower(early: &Trend, late: &Trend) -> bool {
    let error = |trend: &Trend| (trend.high - trend.low) / (2.0 * TWO_SIDED);
    if early.slope > 0.0 && late.slope < MUCH_SLOWER * early.slope {
        return true;
    }
    let apart = SLOWER * early.slope - late.slope;
    let error = ((SLOWER * error(early)).powi(2) + error(late).powi(2)).sqrt();
    apart > 0.0 && apart >= 2.0 * error
}

/// The trend of the later half, where it is slower than that of the earlier one.
pub fn slows(points: Tail) -> Option<Trend> {
    let half = points.len() / 2;
    if half < HALF_MIN {
        return None;
    }
    let (early, late) = (of(&points[..half])?, of(&points[points.len() - half..])?);
    slower(&early, &late).then_some(late)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted.get(half).copied(),
        _ => Some((sorted.get(half.checked_sub(1)?)? + sorted.get(half)?) / 2.0),
    }
}

/// The variance of the score where there is no trend; ties make it less (Kendall 1975).
fn variance(points: Tail) -> f64 {
    let of = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let mut sorted: Vec<f64> = points.iter().map(|point: &Point| point.bytes).collect();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|one, other| one == other).map(|tied| of(tied.len() as f64)).sum();
    (of(sorted.len() as f64) - ties) / 18.0
}

/// By what the variance is larger, since neighbours are alike; at least 1.
fn alike(left: &[f64]) -> f64 {
    let count = left.len();
    let ranks = ranks(left);
    let mean = ranks.iter().sum::<f64>() / count as f64;
    let square: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if square <= 0.0 {
        return 1.0;
    }
    let length = count as f64;
    let mut sum = 0.0;
    for lag in 1..count.saturating_sub(2) {
        let both: f64 =
            ranks.iter().zip(&ranks[lag..]).map(|(one, other)| (one - mean) * (other - mean)).sum();
        let correlation = both / square;
        // Only what is more than chance, as Hamed and Rao have it.
        if correlation.abs() > TWO_SIDED / length.sqrt() {
            let left = length - lag as f64;
            sum += left * (left - 1.0) * (left - 2.0) * correlation;
        }
    }
    (1.0 + 2.0 * sum / (length * (length - 1.0) * (length - 2.0))).max(1.0)
}

/// Places in the order of size; equals share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let same = order[from..].iter().take_while(|at| values[**at] == values[order[from]]).count();
        let place = from as f64 + (same as f64 + 1.0) / 2.0;
        order[from..from + same].iter().for_each(|at| ranks[*at] = place);
        from += same;
    }
    ranks
}
