//! What the experiments have in common whose arms take turns, round by round: their options, and the run from the first arm to the
//! exit status.

use super::jdk::Jdk;
use super::saved::{self, Saved};
use crate::act::dialogue::Dialogue;
use crate::act::programs::Programs;
use crate::act::signals::{self, Blocked};
use crate::base::{Bytes, Gap, Known, Why, refuse};
use crate::cmd::pages::door;
use crate::cmd::quiet::QuietArgs;
use crate::cmd::{Failure, answer, check_output, progress, write_output};
use crate::experiment::arm_pages::{self, ArmError, PageMode, Pool};
use crate::experiment::bench::trials::{self, Arm as _, Arranged, OfArm, Planned};
use crate::pages::Subject;
use crate::say;
use crate::show::bench::rounds::{self as show, Document, Experiment, PlannedOf, Results, RowOf, TrialOf};
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
    /// Without waiting for a quiet machine.
    pub fn at_once(dry_run: bool) -> RoundsArgs {
        RoundsArgs { seed: None, state: None, dry_run, quiet: QuietArgs::none() }
    }

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
    /// Draw the results, and what was published, in this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
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
        refuse!("a heap of {heap} bytes: it must be whole MiB, {least} at least");
    }
    let heaps: BTreeSet<Bytes> = heaps.iter().copied().collect();
    Ok(heaps.into_iter().collect())
}

impl<E: Experiment> saved::Settings for E {
    fn take_seed(&mut self, of: &E) {
        *self.turns().1 = *of.clone().turns().1;
    }

    /// More rounds may follow, nothing else may differ.
    fn goes_on(&self, was: &E) -> bool {
        let mut same = was.clone();
        *same.turns().0 = *self.clone().turns().0;
        *self == same
    }
}

type ArmOf<B> = <<B as Bench>::Of as Experiment>::Arm;
type ArrangedOf<B> = Arranged<<<B as Bench>::Of as Experiment>::OfArm>;

/// An experiment on this machine.
pub trait Bench {
    type Of: Experiment;

    fn arranged(&mut self, settings: &Self::Of, arm: &ArmOf<Self>) -> Result<ArrangedOf<Self>, ArmError>;

    /// What is done before the host is changed for a trial.
    fn before(&mut self, _settings: &Self::Of, _arm: &ArmOf<Self>) -> Known<()> {
        Ok(())
    }

    /// A trial, on the host as its arm needs it. Whether it is whole: what a signal cut short says nothing of its arm. An error
    /// ends the experiment; what else fails discounts the trial.
    fn trial(&mut self, run: Run<Self::Of>) -> anyhow::Result<bool>;
}

/// What is to be run, and the trial that takes the figures.
pub struct Run<'a, E: Experiment> {
    pub settings: &'a E,
    pub programs: &'a Programs,
    pub options: Vec<String>,
    pub more: E::OfArm,
    pub trial: &'a mut TrialOf<E>,
}

/// The options of a JVM with those of its pages, and what changes on the host for them. `subject`: the JVM with these options.
pub fn on_pages<M>(
    subject: &Subject,
    mut options: Vec<String>,
    pages: PageMode,
    more: M,
) -> Result<Arranged<M>, ArmError> {
    options.extend(arm_pages::options(subject, pages)?);
    Ok(Arranged { options, more, steps: arm_pages::steps(Some(subject), pages, Pool::Auto)? })
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
    mut settings: B::Of,
    arms: &[ArmOf<B>],
    found: &<B::Of as Experiment>::Found,
    args: &SavedArgs,
    is_json: bool,
) -> anyhow::Result<u8> {
    let state = args.turns.state_directory()?;
    if args.turns.dry_run {
        let planned: Vec<PlannedOf<B::Of>> =
            arms.iter().map(|arm| Planned::of(arm.clone(), bench.arranged(&settings, arm))).collect();
        answer(
            is_json,
            || Document::dry_run(&settings, found, &planned),
            |out| show::dry_run(out, &settings, found, &planned),
        )?;
        return Ok(0);
    }
    args.svg.iter().try_for_each(|path| check_output(path))?;
    // Held to the end: what is changed is restored before a signal ends us.
    let blocked = Blocked::start();
    let programs = Programs::unpack().map_err(|gap| Failure::usage(gap.to_string()))?;
    let mut saved = Saved::open(args.save.as_deref(), B::Of::TRIALS_SCHEMA, &mut settings)?;
    let mut trials = saved.take();
    // Ends before the programs that it may still run.
    let mut bench = bench;
    let host = Host { settings: &settings, programs: &programs, state: &state };
    let stopped = measure(&mut bench, arms, &host, args.turns.quiet, &mut trials, &mut saved)?;
    let of_arms = arms.iter().map(|arm| OfArm::among(&trials, arm));
    let rows: Vec<RowOf<B::Of>> = of_arms.map(|of| of.row(settings.summary(&of))).collect();
    let complete = !stopped && rows.iter().all(|row| row.counted > 0 && B::Of::is_complete(row));
    let report = settings.report(arms, &rows, &trials);
    let results =
        Results { settings: &settings, found, trials: &trials, stopped, complete, arms: rows, report };
    answer(is_json, || Document::of(&results), |out| show::text(out, &results))?;
    match (&args.svg, show::svg(&results)) {
        (Some(path), Some(picture)) => write_output(path, &picture)?,
        (Some(path), None) => say!("marusa: cannot draw {}: no trial has its figure", path.display()),
        (None, _) => {}
    }
    drop(bench);
    drop(programs);
    drop(blocked);
    Ok(if complete { 0 } else { 1 })
}

/// What each trial needs.
struct Host<'a, E> {
    settings: &'a E,
    programs: &'a Programs,
    /// Of the journal.
    state: &'a Path,
}

/// Makes the trials that are not there yet. Whether a signal ended it before its time.
fn measure<B: Bench>(
    bench: &mut B,
    arms: &[ArmOf<B>],
    host: &Host<B::Of>,
    quiet: QuietArgs,
    trials: &mut Vec<TrialOf<B::Of>>,
    saved: &mut Saved<TrialOf<B::Of>>,
) -> anyhow::Result<bool> {
    let seed = *host.settings.clone().turns().1;
    let rounds: Vec<usize> = arms.iter().map(|arm| host.settings.rounds_of(arm)).collect();
    let mut quiet = quiet.begin();
    let bar = progress::bar(&format!("bench {}", B::Of::NAME), rounds.iter().sum(), "trials");
    for round in 0..rounds.iter().copied().max().unwrap_or(0) {
        for at in trials::order(seed, round, arms) {
            let arm = &arms[at];
            if round >= rounds[at] {
                continue;
            }
            if !trials.iter().any(|trial| trial.round == round && trial.arm == *arm) {
                progress::say(&bar, &arm.name());
                let made = quiet.trial(|| on_host(bench, host, round, arm))?;
                // What was cut says nothing of its arm, and is made again when the file is given again.
                let Some((mut trial, others)) = made else { return Ok(true) };
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

/// A trial on the host as its arm needs it, which is restored behind it. One whose arm cannot be arranged does not count, and is no
/// failure. `None`: a signal cut it short.
fn on_host<B: Bench>(
    bench: &mut B,
    host: &Host<B::Of>,
    round: usize,
    arm: &ArmOf<B>,
) -> anyhow::Result<Option<TrialOf<B::Of>>> {
    let mut trial = TrialOf::<B::Of>::of(round, arm.clone());
    let name = format!("bench {} {}", B::Of::NAME, arm.name());
    let before = bench.before(host.settings, arm).map_err(ArmError::Read);
    let arranged = before.and_then(|()| bench.arranged(host.settings, arm)).and_then(|mut found| {
        let prepared = arm_pages::prepare(std::mem::take(&mut found.steps), host.state, &name)?;
        Ok((found, prepared))
    });
    let (arranged, prepared) = match arranged {
        Ok(both) => both,
        Err(error) => {
            trial.discount(error.to_string());
            return Ok((!signals::pending()).then_some(trial));
        }
    };
    let Arranged { options, more, .. } = arranged;
    let Host { settings, programs, .. } = *host;
    let outcome = bench.trial(Run { settings, programs, options, more, trial: &mut trial });
    if let Err(error) = prepared.undo() {
        trial.gaps.push(Gap::new("the host as it was", Why::Denied).hint(error.to_string()));
    }
    Ok(outcome?.then_some(trial))
}
