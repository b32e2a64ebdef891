//! What the experiments have in common whose arms take turns, round by round: their options, and the run from the first arm to the
//! exit status.

use super::answer;
use super::jdk::Jdk;
use super::saved::{self, Saved};
use crate::act::dialogue::Dialogue;
use crate::act::programs::Programs;
use crate::act::signals::{self, Blocked};
use crate::base::{Bytes, Gap, Known, Why};
use crate::cmd::pages::door;
use crate::cmd::quiet::QuietArgs;
use crate::cmd::{Failure, progress};
use crate::experiment::arm_pages::{self, ArmError, PageMode, Pool};
use crate::experiment::bench::trials::{Arm, Arranged, Planned, Turn};
use crate::experiment::order;
use crate::show::bench::rounds::{self as show, Document, Experiment, Nothing, PlannedOf, Results, TrialOf};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// As gaps name it.
pub const JVM: &str = "the JVM of the experiment";

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

/// Those of an experiment that is long enough to be interrupted.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub struct SavedArgs {
    /// Save each trial in this file as it ends, and continue from an existing file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub turns: RoundsArgs,
}

/// Those of one whose arms differ in pages, too.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub struct ArmsArgs {
    /// Pages of the heap: 4k, thp, hugetlb-2m, hugetlb-1g, as-is
    #[arg(long, value_name = "PAGES", value_delimiter = ',', default_value = "4k,thp,hugetlb-2m")]
    pub pages: Vec<PageMode>,
    #[command(flatten)]
    pub saved: SavedArgs,
}

/// Sizes of heaps, smallest first.
pub fn whole_mib(heaps: &[Bytes], least: Bytes) -> anyhow::Result<Vec<Bytes>> {
    if let Some(heap) = heaps.iter().find(|heap| **heap < least || !heap.is_multiple_of(1 << 20)) {
        let least = least >> 20;
        return Err(Failure::usage(format!(
            "a heap of {heap} bytes: it must be whole MiB, {least} at least"
        )));
    }
    let heaps: BTreeSet<Bytes> = heaps.iter().copied().collect();
    Ok(heaps.into_iter().collect())
}

impl<E: Experiment> saved::Settings for E {
    fn take_seed(&mut self, of: &E) {
        *self.seed() = *of.clone().seed();
    }
}

type ArmOf<B> = <<B as Bench>::Of as Experiment>::Arm;
type ArrangedOf<B> = Arranged<<<B as Bench>::Of as Experiment>::OfArm>;

/// An experiment on this machine.
pub trait Bench {
    type Of: Experiment;

    fn settings(&mut self) -> &mut Self::Of;
    fn arranged(&self, arm: &ArmOf<Self>) -> Result<ArrangedOf<Self>, ArmError>;

    /// What is done before the host is changed for a trial.
    fn before(&mut self, _arm: &ArmOf<Self>) -> Known<()> {
        Ok(())
    }

    /// A trial, on the host as its arm needs it. Whether it is whole: what a signal cut short says nothing of its arm. An error
    /// ends the experiment; what else fails discounts the trial.
    fn trial(
        &mut self,
        programs: &Programs,
        trial: &mut TrialOf<Self::Of>,
        arranged: ArrangedOf<Self>,
    ) -> anyhow::Result<bool>;
}

/// The options of a JVM with those of its pages, and what changes on the host for them.
pub fn on_pages(
    home: &Path,
    mut options: Vec<String>,
    pages: PageMode,
) -> Result<Arranged<Nothing>, ArmError> {
    let subject = arm_pages::subject(home, &options)?;
    options.extend(arm_pages::options(&subject, pages)?);
    Ok(Arranged { options, more: Nothing {}, steps: arm_pages::steps(&subject, pages, Pool::Auto)? })
}

/// One of our programs in a JVM that answers questions.
pub fn java(
    jdk: &Jdk,
    options: &[String],
    programs: &Programs,
    class_and_arguments: &[String],
    limit: Duration,
) -> Known<Dialogue> {
    let directory = programs.directory();
    let of_program = ["-cp".to_string(), directory.display().to_string()];
    let arguments: Vec<String> =
        options.iter().chain(&of_program).chain(class_and_arguments).cloned().collect();
    Dialogue::start(JVM, &jdk.java(), &arguments, directory, limit).map(|(jvm, _)| jvm)
}

/// From the first arm to the exit status.
pub fn run<B: Bench>(
    mut bench: B,
    arms: &[ArmOf<B>],
    lacking: &<B::Of as Experiment>::Lacking,
    args: &SavedArgs,
    is_json: bool,
) -> anyhow::Result<u8> {
    let state = args.turns.state_directory()?;
    if args.turns.dry_run {
        let planned: Vec<PlannedOf<B::Of>> =
            arms.iter().map(|arm| Planned::of(arm.clone(), bench.arranged(arm))).collect();
        let settings = bench.settings();
        answer::print(
            is_json,
            || Document::dry_run(settings, lacking, &planned),
            |out| show::dry_run(out, settings, lacking, &planned),
        )?;
        return Ok(0);
    }
    // Held to the end: what is changed is restored before a signal ends us.
    let blocked = Blocked::start();
    let programs = Programs::unpack().map_err(|gap| Failure::usage(gap.to_string()))?;
    let mut saved = Saved::open(args.save.as_deref(), B::Of::TRIALS_SCHEMA, bench.settings())?;
    let mut trials = saved.take();
    let settings = bench.settings().clone();
    let (rounds, seed) = (settings.rounds(), *bench.settings().seed());
    // Ends before the programs that it may still run.
    let mut bench = bench;
    let plan = Plan { name: B::Of::NAME, arms, rounds, seed, quiet: args.turns.quiet };
    let stopped = plan
        .measure(&mut trials, &mut saved, |round, arm| on_host(&mut bench, &programs, &state, round, arm))?;
    let report = B::Of::report(arms, &trials);
    let results = Results { settings: &settings, lacking, trials: &trials, stopped, report };
    answer::print(is_json, || Document::of(&results), |out| show::text(out, &results))?;
    drop(bench);
    drop(programs);
    drop(blocked);
    Ok(if B::Of::is_complete(&results.report) && !stopped { 0 } else { 1 })
}

/// What is measured, in which order.
pub struct Plan<'a, A> {
    /// "gc".
    pub name: &'static str,
    pub arms: &'a [A],
    pub rounds: usize,
    pub seed: u64,
    pub quiet: QuietArgs,
}

impl<A: Arm> Plan<'_, A> {
    /// Makes the trials that are not there yet; `one` gives none where a signal cut it short. Whether a signal ended it before its
    /// time.
    pub fn measure<T: Turn<Arm = A> + Serialize>(
        &self,
        trials: &mut Vec<T>,
        saved: &mut Saved<T>,
        mut one: impl FnMut(usize, &A) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<bool> {
        let mut quiet = self.quiet.begin();
        let bar = progress::bar(format!("bench {}", self.name), self.rounds * self.arms.len(), "trials");
        for round in 0..self.rounds {
            for at in order::block(self.seed, round, self.arms.len()) {
                let arm = &self.arms[at];
                if !trials.iter().any(|trial| trial.is_of(round, arm)) {
                    bar.set_message(arm.name());
                    // What was cut says nothing of its arm, and is made again when the file is given again.
                    let Some((mut trial, others)) = quiet.trial(|| one(round, arm))? else { return Ok(true) };
                    trial.set_others(others);
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

/// A trial on the host as its arm needs it, which is restored behind it. One whose arm cannot be arranged does not count, and is no
/// failure. `None`: a signal cut it short.
fn on_host<B: Bench>(
    bench: &mut B,
    programs: &Programs,
    state: &Path,
    round: usize,
    arm: &ArmOf<B>,
) -> anyhow::Result<Option<TrialOf<B::Of>>> {
    let mut trial = TrialOf::<B::Of>::of(round, arm.clone());
    let name = format!("bench {} {}", B::Of::NAME, arm.name());
    let before = bench.before(arm).map_err(ArmError::Read);
    let arranged = before.and_then(|()| bench.arranged(arm)).and_then(|mut found| {
        let prepared = arm_pages::prepare(std::mem::take(&mut found.steps), state, &name)?;
        Ok((found, prepared))
    });
    let (arranged, prepared) = match arranged {
        Ok(both) => both,
        Err(error) => {
            trial.discount(error.to_string());
            return Ok((!signals::pending()).then_some(trial));
        }
    };
    let outcome = bench.trial(programs, &mut trial, arranged);
    if let Err(error) = prepared.undo() {
        trial.gaps.push(Gap::new("the host as it was", Why::Denied).hint(error.to_string()));
    }
    Ok(outcome?.then_some(trial))
}
