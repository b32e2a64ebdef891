//! What the experiments have in common whose arms take turns, round by round: their options, and the loop that makes each trial
//! once and keeps it.

use super::saved::Saved;
use crate::act::signals;
use crate::base::{Gap, Why};
use crate::cmd::pages::door;
use crate::cmd::progress;
use crate::cmd::quiet::QuietArgs;
use crate::experiment::arm_pages::{self, ArmError, PageMode};
use crate::experiment::bench::trials::{Arm, Trial};
use crate::experiment::order;
use crate::pages::Step;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
#[group(skip)]
pub struct RoundsArgs {
    /// Seed that repeats the order of the arms
    #[arg(long)]
    seed: Option<u64>,
    /// Directory of the journal of host changes [default: $MARUSA_STATE, or /var/lib/marusa]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Show what would be run, and what would change on the host, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub quiet: QuietArgs,
}

impl RoundsArgs {
    /// That which was given, or one by chance.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| fastrand::u64(..))
    }

    pub fn state_directory(&self) -> anyhow::Result<PathBuf> {
        door::state_directory(self.state.as_deref())
    }
}

/// Those of an experiment whose arms differ in pages, and that is long enough to be interrupted.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub struct ArmsArgs {
    /// Pages of the heap: 4k, thp, hugetlb-2m, hugetlb-1g, as-is
    #[arg(long, value_name = "PAGES", value_delimiter = ',', default_value = "4k,thp,hugetlb-2m")]
    pub pages: Vec<PageMode>,
    /// Save each trial in this file as it ends, and continue from an existing file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub turns: RoundsArgs,
}

/// A trial on the host as `arranged` says, which is restored behind it. One whose arm cannot be arranged does not count, and is no
/// failure.
pub fn on_host<A: Arm, F, W, E>(
    trial: &mut Trial<A, F>,
    name: &str,
    state: &Path,
    arranged: Result<(W, Vec<Step>), ArmError>,
    run: impl FnOnce(&mut Trial<A, F>, W) -> Result<(), E>,
) -> Result<(), E> {
    let name = format!("{name} {}", trial.arm.name());
    let prepared = arranged.and_then(|(what, steps)| Ok((what, arm_pages::prepare(steps, state, &name)?)));
    let (what, prepared) = match prepared {
        Ok(both) => both,
        Err(error) => {
            trial.discount(error.to_string());
            return Ok(());
        }
    };
    let outcome = run(trial, what);
    if let Err(error) = prepared.undo() {
        trial.gaps.push(Gap::new("the host as it was", Why::Denied).hint(error.to_string()));
    }
    outcome
}

/// What is measured, in which order.
pub struct Plan<'a, A> {
    /// "bench gc".
    pub name: &'static str,
    pub arms: &'a [A],
    pub rounds: usize,
    pub seed: u64,
    pub quiet: QuietArgs,
}

impl<A: Arm + Serialize + DeserializeOwned> Plan<'_, A> {
    /// Makes the trials that are not there yet; `one` gives none where a signal cut it short. Whether a signal ended it before its
    /// time.
    pub fn measure<F: Serialize + DeserializeOwned>(
        &self,
        trials: &mut Vec<Trial<A, F>>,
        saved: &mut Saved<Trial<A, F>>,
        mut one: impl FnMut(usize, &A) -> anyhow::Result<Option<Trial<A, F>>>,
    ) -> anyhow::Result<bool> {
        let mut quiet = self.quiet.begin();
        let bar = progress::bar(self.name, self.rounds * self.arms.len(), "trials");
        for round in 0..self.rounds {
            for at in order::block(self.seed, round, self.arms.len()) {
                let arm = &self.arms[at];
                if !trials.iter().any(|trial| trial.round == round && trial.arm == *arm) {
                    bar.set_message(arm.name());
                    // What was cut says nothing of its arm, and is made again when the file is given again.
                    let Some((mut trial, others)) = quiet.trial(|| one(round, arm))? else { return Ok(true) };
                    trial.others = others;
                    saved.add(&trial)?;
                    trials.push(trial);
                    if signals::pending() {
                        return Ok(true);
                    }
                }
                bar.inc(1);
            }
        }
        Ok(false)
    }
}
