//! Block after block, arm after arm, until there is enough: each run is on the disk before the next one starts, an arm that cannot
//! run is given up, and a signal to end ends between two runs or takes the one that is under way.

use super::one::{self, Done, Place, Setup};
use super::ready::Ready;
use super::store::Store;
use crate::act::signals;
use crate::cmd::quiet::Quiet;
use crate::experiment::compare_result::{self, ALPHA, Ask, Comparison, WarmUp};
use crate::experiment::order;
use crate::experiment::trial_record::{self as record, Trial};
use crate::experiment::verdict::Rule;
use indicatif::ProgressBar;
use std::time::{Duration, Instant};

/// Runs of an arm in a row that did not count, before it is given up: none ever did, or some did.
const FAILURES_MAX: usize = 2;
const FAILURES_LATER_MAX: usize = 4;

/// When to stop, fixed before the first run.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub blocks_max: usize,
    /// Stop when the widest interval reaches no further than this to each side.
    pub margin_percent: Option<f64>,
    /// No block begins after this.
    pub total: Option<Duration>,
    pub warm_up: WarmUp,
    pub worth_percent: f64,
    pub seed: u64,
}

/// Why it ended before all was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Early {
    Signal,
    Total,
    /// In words.
    GivenUp(String),
    NotSaved(String),
}

impl Early {
    /// Whether --resume has something to go on with: an arm that was given up stays so.
    pub fn goes_on(&self) -> bool {
        !matches!(self, Early::GivenUp(_))
    }
}

/// What a run of the whole came to.
pub struct Outcome {
    pub trials: Vec<Trial>,
    pub comparison: Comparison,
    pub early: Option<Early>,
    /// Arms that were given up, and why.
    pub given_up: Vec<(String, String)>,
}

pub struct Runner<'a> {
    pub setup: &'a Setup<'a>,
    pub arms: &'a [Ready],
    pub rules: Rules,
    pub store: &'a mut Store,
    pub trials: Vec<Trial>,
    /// The JVM of each arm, as its runs reported it.
    pub features: Vec<Option<u32>>,
    pub quiet: Quiet,
    pub bar: ProgressBar,
}

impl Runner<'_> {
    pub fn run(mut self) -> anyhow::Result<Outcome> {
        let started = Instant::now();
        let looks = self.looks();
        let mut early = None;
        let mut alpha = ALPHA;
        for block in 1..=self.rules.blocks_max {
            let is_new = !self.trials.iter().any(|trial| trial.block == block);
            if is_new && self.rules.total.is_some_and(|total| started.elapsed() >= total) {
                early = Some(Early::Total);
                break;
            }
            early = self.block(block)?;
            if early.is_some() {
                break;
            }
            if let Some(look) = looks.iter().position(|(blocks, _)| *blocks == block) {
                alpha = looks[look].1;
                let found = self.compare(alpha).margin_percent();
                let is_enough = |wanted: f64| found.is_some_and(|margin| margin <= wanted);
                if self.rules.margin_percent.is_some_and(is_enough) {
                    break;
                }
            }
        }
        self.bar.finish_and_clear();
        let comparison = self.compare(alpha);
        let given_up = self.given_up();
        Ok(Outcome { trials: self.trials, comparison, early, given_up })
    }

    /// The blocks after which the stopping rule is applied, and the alpha of each application: they share the whole.
    fn looks(&self) -> Vec<(usize, f64)> {
        let Some(margin_percent) = self.rules.margin_percent else { return Vec::new() };
        let rule = Rule { alpha: ALPHA, margin_percent, blocks_max: self.rules.blocks_max };
        rule.looks().into_iter().enumerate().map(|(look, blocks)| (blocks, rule.alpha_at(look + 1))).collect()
    }

    fn compare(&self, alpha: f64) -> Comparison {
        let arms: Vec<String> = self.arms.iter().map(|ready| ready.arm.name.clone()).collect();
        let figures = record::all_figures(&self.trials);
        // The user's own comes first; under load there is one, too.
        let about = figures.first().map_or(record::WALL.to_string(), |figure| figure.key.clone());
        let ask = Ask {
            arms: &arms,
            figures: &figures,
            about: &about,
            warm_up: self.rules.warm_up,
            alpha,
            worth_percent: self.rules.worth_percent,
        };
        compare_result::compare(&self.trials, &ask)
    }

    fn block(&mut self, block: usize) -> anyhow::Result<Option<Early>> {
        for index in order::block(self.rules.seed, block, self.arms.len()) {
            let arm = &self.arms[index];
            let name = arm.arm.name.clone();
            let is_done = |trial: &Trial| trial.block == block && trial.arm == name;
            if self.trials.iter().any(is_done) {
                continue;
            }
            if let Some(early) = self.hopeless() {
                return Ok(Some(early));
            }
            if self.failure(&name).is_some() {
                continue;
            }
            if signals::pending() {
                return Ok(Some(Early::Signal));
            }
            let number = self.trials.iter().map(|trial| trial.number).max().unwrap_or(0) + 1;
            crate::cmd::progress::say(&self.bar, &format!("block {block}, {name}"));
            let feature = arm.subject.as_ref().map(|subject| subject.feature).or(self.features[index]);
            let place = Place { number, block, arm, feature };
            let made = self.quiet.trial(|| {
                let (done, learned) = one::run(self.setup, self.store, place)?;
                self.features[index] = learned.or(self.features[index]);
                Ok(match done {
                    Done::Trial(trial) => Some(trial),
                    Done::Interrupted => None,
                })
            })?;
            let Some((mut trial, others)) = made else { return Ok(Some(Early::Signal)) };
            trial.others = others;
            self.ended(&trial);
            if let Err(error) = self.store.append(&trial) {
                return Ok(Some(Early::NotSaved(error.to_string())));
            }
            self.trials.push(*trial);
        }
        Ok(self.hopeless())
    }

    fn ended(&self, trial: &Trial) {
        self.bar.inc(1);
        if let Some(why) = &trial.left_out {
            let say = || crate::say!("marusa: run {} ({}) does not count: {why}", trial.number, trial.arm);
            self.bar.suspend(say);
        }
    }

    /// Without the first arm, or with it alone, there is nothing to compare.
    fn hopeless(&self) -> Option<Early> {
        let given_up = self.given_up();
        let first = &self.arms.first()?.arm.name;
        let why = given_up.iter().find(|(name, _)| name == first).or(given_up.last())?;
        let is_hopeless = why.0 == *first || given_up.len() + 1 >= self.arms.len();
        is_hopeless.then(|| Early::GivenUp(format!("arm '{}': {}", why.0, why.1)))
    }

    fn given_up(&self) -> Vec<(String, String)> {
        let of = |ready: &Ready| Some((ready.arm.name.clone(), self.failure(&ready.arm.name)?));
        self.arms.iter().filter_map(of).collect()
    }

    /// Why an arm is given up.
    fn failure(&self, arm: &str) -> Option<String> {
        let of_arm: Vec<&Trial> = self.trials.iter().filter(|trial| trial.arm == arm).collect();
        let in_a_row = of_arm.iter().rev().take_while(|trial| !trial.counts()).count();
        let max = if of_arm.len() == in_a_row { FAILURES_MAX } else { FAILURES_LATER_MAX };
        let last = of_arm.last()?.left_out.clone()?;
        (in_a_row >= max)
            .then(|| format!("{} in a row did not count: {last}", crate::base::counted(in_a_row, "run")))
    }
}
