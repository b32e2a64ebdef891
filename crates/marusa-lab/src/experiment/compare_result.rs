//! What the trials of a comparison say: each figure by arm, and the difference of each arm from the first with its interval.
//!
//! An arm and the first are compared within blocks, so that what drifts from block to block falls out
//! (`stats::compare_blocks`). The error probability (5 %) is shared out among the arms by Holm's procedure, so that the chance that
//! any arm is wrongly said to differ stays below it. That holds for the one figure that the comparison is about. The
//! others are next to it, and share an error probability of 5 % among them all.

mod power;

pub(crate) use power::POWER;

use super::stats::{self, Claim, Effect, Method, Needed, Sample, Scale, several};
use super::trial_record::{Figure, ResidentAreas, Trial};
use crate::base::tally;
use schemars::JsonSchema;
use serde::Serialize;

/// The chance that any arm is wrongly said to differ in the figure that the comparison is about.
pub const ALPHA: f64 = 0.05;
/// The same for all other figures together.
pub const ALPHA_OTHERS: f64 = 0.05;
/// Leading blocks that may be found to be warm-up.
const WARM_UP_MAX: usize = 3;
/// Blocks after those, before anything can be concluded from them.
const WARM_UP_REST_MIN: usize = 4;
/// How far beyond the quartiles is far out, in distances between them (Tukey's outer fence).
const FENCE: f64 = 3.0;

/// What is asked of a comparison.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    pub arms: &'a [String],
    pub figures: &'a [Figure],
    /// The key of the figure that it is about.
    pub about: &'a str,
    pub warm_up: WarmUp,
    /// Over all arms, of the figure that it is about.
    pub alpha: f64,
    /// The smallest difference that is worth detecting.
    pub worth_percent: f64,
}

/// Which leading blocks do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Those in which some arm lies far out of what it comes to later.
    Found,
    Blocks(usize),
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    pub arms: Vec<ArmCount>,
    pub rows: Vec<Row>,
    /// The figure that it is about: number of a row.
    pub about: usize,
    /// Leading blocks that were left out.
    pub warm_up_blocks: usize,
    /// Blocks in which any trial counts, without those.
    pub blocks: usize,
    /// Over all arms, of the figure that it is about.
    pub confidence_percent: f64,
    pub worth_percent: f64,
}

impl Comparison {
    pub fn main_row(&self) -> Option<&Row> {
        self.rows.get(self.about)
    }

    /// Half of the widest interval of the figure that it is about; `None`: an arm has none.
    pub fn margin_percent(&self) -> Option<f64> {
        let others = self.main_row()?.cells.iter().skip(1);
        let half = |one: &Against| (one.claim.interval.high - one.claim.interval.low) / 2.0;
        let halves =
            others.map(|cell| cell.against.as_ref().filter(|one| one.scale == Scale::Percent).map(half));
        halves.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    }
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArmCount {
    pub name: String,
    /// Trials that count.
    pub counted: usize,
    pub warm_up: usize,
    /// Why others do not, and how often.
    pub left_out: Vec<(String, usize)>,
    /// Means over the trials that count.
    pub account_end: Option<ResidentAreas>,
    pub account_peak: Option<ResidentAreas>,
    /// The heap's pages in the last trial that counts.
    pub heap_pages: Option<String>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Row {
    pub figure: Figure,
    /// One for each arm.
    pub cells: Vec<Cell>,
}

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Cell {
    pub trials: usize,
    pub sample: Option<Sample>,
    /// Figures of the first arm and of this one in the same blocks.
    pub pairs: Vec<(f64, f64)>,
    /// `None`: the first arm, or too little to compare.
    pub against: Option<Against>,
}

/// An arm next to the first, over the blocks that have both.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Against {
    pub blocks: usize,
    /// In what the claim's interval is: percent of the first arm, or the unit of the figure.
    #[serde(skip)]
    pub scale: Scale,
    #[serde(flatten)]
    pub claim: Claim,
    /// The probability that the interval misses.
    #[serde(skip)]
    pub alpha: f64,
    pub effect: Effect,
    pub verdict: Verdict,
    /// A difference of this size would be shown by as many blocks nine times of ten.
    pub visible_percent: Option<f64>,
    /// Blocks that it takes to show a difference of the size that is worth it, nine times of ten.
    #[serde(rename = "runs_needed")]
    pub needed: Option<Needed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Less,
    More,
    NotShown,
}

pub fn compare(trials: &[Trial], ask: &Ask) -> Comparison {
    let Ask { arms, figures, worth_percent, .. } = *ask;
    let about = figures.iter().position(|figure| figure.key == ask.about).unwrap_or(0);
    let blocks = trials.iter().map(|trial| trial.block).max().unwrap_or(0);
    let skipped = match ask.warm_up {
        WarmUp::Blocks(count) => count.min(blocks),
        WarmUp::Found => figures.get(about).map_or(0, |figure| found_warm_up(trials, arms, figure)),
    };
    let is_in = |trial: &&Trial| trial.counts() && trial.block > skipped;
    let counted: Vec<&Trial> = trials.iter().filter(is_in).collect();
    let mut rows: Vec<Row> = figures.iter().map(|figure| row(&counted, arms, figure)).collect();
    judge(&mut rows, |index| index == about, true, ask.alpha, worth_percent);
    judge(&mut rows, |index| index != about, false, ALPHA_OTHERS, worth_percent);
    let mut in_blocks: Vec<usize> = counted.iter().map(|trial| trial.block).collect();
    in_blocks.sort_unstable();
    in_blocks.dedup();
    Comparison {
        arms: arms.iter().map(|arm| count(trials, arm, skipped)).collect(),
        rows,
        about,
        warm_up_blocks: skipped,
        blocks: in_blocks.len(),
        confidence_percent: (1.0 - ask.alpha) * 100.0,
        worth_percent,
    }
}

fn count(trials: &[Trial], arm: &str, skipped: usize) -> ArmCount {
    let of_arm = || trials.iter().filter(|trial| trial.arm == arm);
    let left_out = tally(of_arm().filter_map(|trial| trial.left_out.clone()));
    let good = || of_arm().filter(|trial| trial.counts());
    let counted: Vec<&Trial> = good().filter(|trial| trial.block > skipped).collect();
    let last = counted.iter().rev().find_map(|trial| trial.heap_pages.as_ref());
    ArmCount {
        name: arm.to_string(),
        counted: counted.len(),
        warm_up: good().filter(|trial| trial.block <= skipped).count(),
        left_out,
        account_end: ResidentAreas::mean(counted.iter().filter_map(|trial| trial.account_end.as_ref())),
        account_peak: ResidentAreas::mean(counted.iter().filter_map(|trial| trial.account_peak.as_ref())),
        heap_pages: last.map(|pages| pages.text.clone()),
    }
}

/// Leading blocks in which an arm is far out of what it comes to in all later ones.
fn found_warm_up(trials: &[Trial], arms: &[String], figure: &Figure) -> usize {
    let is_far = |arm: &String, block: usize| {
        let of_arm = || trials.iter().filter(|trial| trial.counts() && trial.arm == *arm);
        let later: Vec<f64> = of_arm()
            .filter(|trial| trial.block > block)
            .filter_map(|trial| trial.figure(&figure.key))
            .collect();
        let here = of_arm().find(|trial| trial.block == block).and_then(|trial| trial.figure(&figure.key));
        let Some(here) = here.filter(|_| later.len() >= WARM_UP_REST_MIN) else { return false };
        let (low, high) = (quantile(&later, 0.25), quantile(&later, 0.75));
        // Programs that hardly vary at all: a tenth of a percent is not far.
        let reach = FENCE * (high - low).max(0.005 * high.abs());
        here < low - reach || here > high + reach
    };
    (1..=WARM_UP_MAX).take_while(|block| arms.iter().any(|arm| is_far(arm, *block))).count()
}

/// Between the two nearest values, where none lies there.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * (sorted.len().saturating_sub(1)) as f64;
    let below = sorted.get(at.floor() as usize).copied().unwrap_or(f64::NAN);
    let above = sorted.get(at.ceil() as usize).copied().unwrap_or(below);
    below + (above - below) * at.fract()
}

fn row(trials: &[&Trial], arms: &[String], figure: &Figure) -> Row {
    let of = |arm: &String| -> Vec<(usize, f64)> {
        let of_arm = trials.iter().filter(|trial| trial.arm == *arm);
        of_arm.filter_map(|trial| Some((trial.block, trial.figure(&figure.key)?))).collect()
    };
    let first = arms.first().map(of).unwrap_or_default();
    let cell = |(index, arm): (usize, &String)| {
        let values = of(arm);
        let numbers: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        Cell {
            trials: numbers.len(),
            sample: Sample::of(&numbers),
            pairs: if index > 0 { pairs(&first, &values) } else { Vec::new() },
            against: None,
        }
    };
    Row { figure: figure.clone(), cells: arms.iter().enumerate().map(cell).collect() }
}

/// Figures of the first arm and of another in the same blocks.
fn pairs(first: &[(usize, f64)], arm: &[(usize, f64)]) -> Vec<(f64, f64)> {
    let partner = |block: usize| first.iter().find(|(other, _)| *other == block).map(|(_, value)| *value);
    arm.iter().filter_map(|(block, value)| Some((partner(*block)?, *value))).collect()
}

fn compared(pairs: &[(f64, f64)], alpha: f64) -> Option<stats::Comparison> {
    let (base, arm): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    // The ratio of figures of which some are 0 is none, and the ones that hardly vary at all have no noise to be judged by.
    stats::compare_blocks(&base, &arm, alpha).ok()
}

/// Ranks judge the figure that it is about, where there are enough blocks for them. The many next to it share so small an
/// alpha that ranks of ten blocks could never show anything: there Student's t judges.
fn claim(found: &stats::Comparison, is_about: bool) -> Claim {
    match found.second {
        Some(other) if !is_about && found.judged.method == Method::SignedRank => other,
        _ => found.judged,
    }
}

/// Holm's alphas over all comparisons of some rows, and what is then shown.
fn judge(rows: &mut [Row], wanted: impl Fn(usize) -> bool, is_about: bool, alpha: f64, worth_percent: f64) {
    let places: Vec<(usize, usize)> = (rows.iter().enumerate().filter(|(index, _)| wanted(*index)))
        .flat_map(|(index, row)| (1..row.cells.len()).map(move |arm| (index, arm)))
        .collect();
    let p = |place: &(usize, usize)| {
        let found = compared(&rows[place.0].cells[place.1].pairs, alpha)?;
        Some((*place, claim(&found, is_about).p))
    };
    let found: Vec<((usize, usize), f64)> = places.iter().filter_map(p).collect();
    let alphas = several::alphas(&found.iter().map(|(_, p)| *p).collect::<Vec<f64>>(), alpha);
    for (((row, arm), _), alpha) in found.iter().zip(alphas) {
        let cell = &mut rows[*row].cells[*arm];
        let Some(found) = compared(&cell.pairs, alpha) else { continue };
        let claim = claim(&found, is_about);
        let verdict = match claim.interval {
            interval if interval.high < 0.0 => Verdict::Less,
            interval if interval.low > 0.0 => Verdict::More,
            _ => Verdict::NotShown,
        };
        let is_percent = found.scale == Scale::Percent;
        let blocks = cell.pairs.len();
        cell.against = Some(Against {
            blocks,
            scale: found.scale,
            claim,
            alpha,
            effect: found.effect,
            verdict,
            visible_percent: is_percent.then(|| power::visible(found.noise, blocks, alpha)).flatten(),
            needed: is_percent.then(|| found.needed(worth_percent, POWER)).flatten(),
        });
    }
}

#[cfg(test)]
#[path = "compare_result/tests.rs"]
mod tests;
