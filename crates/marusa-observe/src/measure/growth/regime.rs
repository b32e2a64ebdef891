//! Where the warm-up ends: the floor is cut where two straight lines say much more of it than one, again and again, and what
//! lies before the last cut is left out. What rose in one or two steps and is flat between them is cut behind the last step.

use super::Point;
use super::trend;

/// A part of the floor, up to its end.
pub type Tail<'a> = &'a [Point];

/// A line has two figures of its own; less than this to each side says nothing.
const SIDE_MIN: usize = 4;
/// The last share of the floor where no cut is looked for: an end is always odd.
const END_SHARE: f64 = 0.2;
/// How much better two lines must be than one: the largest of many such ratios is above 8.2 in 1 % of cases without
/// any change (Andrews 1993, two parameters), more often where neighbours are alike.
const RATIO: f64 = 15.0;
const CUTS_MAX: usize = 3;
/// Steps are cut off this often at the most.
const STEP_CUTS_MAX: usize = 4;
/// Growth whose rate before a change has this share of the rate after it, and the other way round, is one growth at a rate that
/// varies, not a warm-up and what follows.
const SAME_BEFORE: f64 = 0.25;
const SAME_AFTER: f64 = 0.8;
/// Unless a step lies between, of this share of what the longer side grew.
const JUMP_SHARE: f64 = 0.25;
/// Steps that are not a trend, and the share of the rise that they must make.
const STEPS: usize = 2;
const STEPS_SHARE: f64 = 0.8;
/// What a page's rounding makes of a straight line, in bytes squared.
const ROUNDING: f64 = 4096.0 * 4096.0 / 12.0;

/// The last regime.
pub fn after_warm_up_and_steps(floor: Tail) -> Tail {
    let mut tail = floor;
    for _ in 0..CUTS_MAX {
        let Some(cut) = cut(tail).filter(|cut| !is_one_growth(&tail[..*cut], &tail[*cut..])) else { break };
        tail = &tail[cut..];
    }
    for _ in 0..STEP_CUTS_MAX {
        let Some(later) = after_steps(tail) else { break };
        tail = later;
    }
    tail
}

fn is_one_growth(before: Tail, after: Tail) -> bool {
    let Some((early, late)) = trend::of(before).zip(trend::of(after)) else { return false };
    let grown = |tail: Tail, slope: f64| slope * (tail[tail.len() - 1].seconds - tail[0].seconds);
    let (end, start) = (before[before.len() - 1], after[0]);
    let expected = (early.slope + late.slope) / 2.0 * (start.seconds - end.seconds);
    let jump = (start.bytes - end.bytes - expected).abs();
    early.slope > 0.0
        && early.slope >= SAME_BEFORE * late.slope
        && late.slope >= SAME_AFTER * early.slope
        && jump <= JUMP_SHARE * grown(before, early.slope).max(grown(after, late.slope))
}

/// The first point of the second line, where two are much better than one.
fn cut(floor: Tail) -> Option<usize> {
    let count = floor.len();
    let last = ((count as f64 * (1.0 - END_SHARE)) as usize).min(count.checked_sub(SIDE_MIN)?);
    let one = rest(floor);
    let both = |at: usize| rest(&floor[..at]) + rest(&floor[at..]);
    let (at, two) =
        (SIDE_MIN..=last).map(|at| (at, both(at))).min_by(|one, other| one.1.total_cmp(&other.1))?;
    let free = count.saturating_sub(4).max(1) as f64;
    let noise = (two / free).max(ROUNDING);
    ((one - two) / 2.0 / noise > RATIO).then_some(at)
}

/// The squares that a straight line leaves.
fn rest(points: Tail) -> f64 {
    let count = points.len() as f64;
    let (across, up) = (mean(points, |point| point.seconds), mean(points, |point| point.bytes));
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        points.iter().map(|point| of(point.seconds - across, point.bytes - up)).sum::<f64>()
    };
    let square = sum(&|x, _| x * x);
    if count < 2.0 || square <= 0.0 {
        return 0.0;
    }
    let both = sum(&|x, y| x * y);
    (sum(&|_, y| y * y) - both * both / square).max(0.0)
}

fn mean(points: Tail, get: fn(&Point) -> f64) -> f64 {
    points.iter().map(get).sum::<f64>() / points.len().max(1) as f64
}

/// What lies behind the last step, where one or two steps make nearly all of the rise. `None`: it is not a staircase.
fn after_steps(tail: Tail) -> Option<Tail> {
    let rise = tail.last()?.bytes - tail.first()?.bytes;
    // Three times what the places between the steps move is a step; else it is noise.
    let mut jumps: Vec<(usize, f64)> =
        tail.windows(2).enumerate().map(|(at, pair)| (at + 1, pair[1].bytes - pair[0].bytes)).collect();
    jumps.sort_by(|one, other| other.1.total_cmp(&one.1));
    let steps: Vec<(usize, f64)> =
        jumps.iter().copied().take(STEPS).filter(|(_, jump)| *jump > rise / 5.0).collect();
    let stepped: f64 = steps.iter().map(|(_, jump)| jump).sum();
    let noise = jumps.iter().skip(steps.len()).map(|(_, jump)| jump.abs()).fold(0.0, f64::max);
    let smallest = steps.iter().map(|(_, jump)| *jump).fold(f64::INFINITY, f64::min);
    let is_staircase =
        rise > 0.0 && !steps.is_empty() && stepped >= rise * STEPS_SHARE && smallest > 3.0 * noise;
    let last = steps.iter().map(|(at, _)| *at).max()?;
    is_staircase.then(|| &tail[last..])
}
