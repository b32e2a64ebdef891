//! What experiments in rounds show: one frame of text, dry run and document around the tables of each.

use super::cells::lines;
use crate::base::{Gap, Why, counted};
use crate::experiment::bench::Machine;
use crate::experiment::bench::trials::{Arm, Planned, Trial};
use crate::map::model::GapRow;
use crate::show::json::Head;
use crate::show::others;
use crate::show::units::{human, paragraph, prose};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// An experiment whose arms take turns, by its settings: its figures, what they come to, and how that is shown.
pub trait Experiment: Clone + PartialEq + JsonSchema + Serialize + DeserializeOwned {
    /// As the command has it: "gc".
    const NAME: &'static str;
    /// "marusa/bench-gc/2".
    const SCHEMA: &'static str;
    /// Of the file of `--save`.
    const TRIALS_SCHEMA: &'static str;
    /// The title of the document's schema.
    const DOCUMENT: &'static str;
    type Arm: Arm + JsonSchema + Serialize + DeserializeOwned;
    type Figures: Default + JsonSchema + Serialize + DeserializeOwned;
    /// What is known of an arm before its trials, next to the options of its JVM.
    type OfArm: Default + JsonSchema + Serialize;
    /// What this machine lacks for the experiment.
    type Lacking: JsonSchema + Serialize;
    type Report: JsonSchema + Serialize;
    type Published: JsonSchema + Serialize;
    const PUBLISHED: Self::Published;

    fn rounds(&self) -> usize;
    fn seed(&mut self) -> &mut u64;
    fn report(arms: &[Self::Arm], trials: &[TrialOf<Self>]) -> Self::Report;
    /// Whether every arm has its figures.
    fn is_complete(report: &Self::Report) -> bool;
    /// How long a trial takes, with all that is not measured of it.
    fn seconds_each(&self) -> f64;

    /// What was asked for, and where.
    fn head(&self, out: &mut dyn Write) -> io::Result<()>;
    /// Figures, comparisons, and what was published.
    fn tables(out: &mut dyn Write, report: &Self::Report) -> io::Result<()>;
    fn lacking(_out: &mut dyn Write, _lacking: &Self::Lacking) -> io::Result<()> {
        Ok(())
    }
    fn gaps(_lacking: &Self::Lacking) -> Vec<GapRow> {
        Vec::new()
    }
    /// The last line.
    fn ending(_report: &Self::Report, stopped: bool) -> Option<&'static str> {
        stopped.then_some("ended by a signal: the trials above are all that there are")
    }
}

pub type TrialOf<E> = Trial<<E as Experiment>::Arm, <E as Experiment>::Figures>;
pub type PlannedOf<E> = Planned<<E as Experiment>::Arm, <E as Experiment>::OfArm>;

/// The `OfArm` and the `Lacking` of an experiment that has none.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub struct Nothing {}

#[derive(JsonSchema, Serialize)]
#[serde(bound = "")]
#[schemars(bound = "")]
pub struct Results<'a, E: Experiment> {
    pub settings: &'a E,
    #[serde(skip)]
    pub lacking: &'a E::Lacking,
    pub trials: &'a [TrialOf<E>],
    /// A signal ended it before its time.
    pub stopped: bool,
    #[serde(flatten)]
    pub report: E::Report,
}

/// The document of an experiment in rounds.
#[derive(JsonSchema, Serialize)]
#[serde(untagged, bound = "")]
#[schemars(bound = "", title = E::DOCUMENT, description = format!("`marusa bench {} --json`.", E::NAME))]
pub enum Document<'a, E: Experiment> {
    Measured {
        #[serde(flatten)]
        head: Head,
        #[serde(flatten)]
        results: &'a Results<'a, E>,
        published: E::Published,
        gaps: Vec<GapRow>,
    },
    DryRun {
        #[serde(flatten)]
        head: Head,
        dry_run: bool,
        settings: &'a E,
        arms: &'a [PlannedOf<E>],
        #[serde(flatten)]
        lacking: &'a E::Lacking,
        gaps: [GapRow; 0],
    },
}

impl<'a, E: Experiment> Document<'a, E> {
    pub fn of(results: &'a Results<'a, E>) -> Document<'a, E> {
        Document::Measured {
            head: Head::now(E::SCHEMA),
            results,
            published: E::PUBLISHED,
            gaps: gaps(results.trials).into_iter().chain(E::gaps(results.lacking)).collect(),
        }
    }

    pub fn dry_run(settings: &'a E, lacking: &'a E::Lacking, arms: &'a [PlannedOf<E>]) -> Document<'a, E> {
        Document::DryRun { head: Head::now(E::SCHEMA), dry_run: true, settings, arms, lacking, gaps: [] }
    }
}

pub fn text<E: Experiment>(out: &mut dyn Write, results: &Results<E>) -> io::Result<()> {
    results.settings.head(out)?;
    E::tables(out, &results.report)?;
    not_counted(out, results.trials)?;
    let others = others::line(results.trials.iter().map(|trial| trial.others));
    others.iter().try_for_each(|line| prose(out, line))?;
    E::lacking(out, results.lacking)?;
    E::ending(&results.report, results.stopped).map_or(Ok(()), |line| prose(out, line))
}

pub fn dry_run<E: Experiment>(
    out: &mut dyn Write,
    settings: &E,
    lacking: &E::Lacking,
    arms: &[PlannedOf<E>],
) -> io::Result<()> {
    settings.head(out)?;
    let trials = settings.rounds() * arms.len();
    let minutes = (trials as f64 * settings.seconds_each() / 60.0).ceil();
    prose(out, &format!("\n{}, about {minutes:.0} min in all\n", counted(trials, "trial")))?;
    arms.iter().try_for_each(|arm| planned(out, arm))?;
    E::lacking(out, lacking)?;
    prose(out, "\ndry run: nothing was started or changed")
}

/// Each reason once, with how many trials it cost.
fn not_counted<A: Arm, F>(out: &mut dyn Write, trials: &[Trial<A, F>]) -> io::Result<()> {
    let mut reasons: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for trial in trials {
        if let Some(why) = &trial.not_counted {
            *reasons.entry((trial.arm.name(), why)).or_default() += 1;
        }
    }
    if reasons.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nnot counted:")?;
    reasons.iter().try_for_each(|((arm, why), count)| {
        lines(out, &format!("{arm}, {}: {why}", counted(*count, "time")), 2)
    })
}

/// What was not known, and trials that do not count.
fn gaps<A: Arm, F>(trials: &[Trial<A, F>]) -> Vec<GapRow> {
    let of_trial = |trial: &Trial<A, F>| {
        let what = format!("{}, round {}", trial.arm.name(), trial.round + 1);
        let not_counted = trial.not_counted.as_ref().map(|why| Gap::new(what, Why::NotMeasured).hint(why));
        let gaps = trial.gaps.iter().map(GapRow::from);
        gaps.chain(not_counted.as_ref().map(GapRow::from)).collect::<Vec<_>>()
    };
    trials.iter().flat_map(of_trial).collect()
}

/// What would be started, and what would change on the host.
fn planned<A: Arm, M>(out: &mut dyn Write, planned: &Planned<A, M>) -> io::Result<()> {
    let name = planned.arm.name();
    match &planned.why_not {
        Some(why) => lines(out, &format!("{name}: not available: {why}"), 0)?,
        None => lines(out, &format!("{name}: java {}", planned.options.join(" ")), 0)?,
    }
    let mut steps = planned.steps.iter();
    steps.try_for_each(|step| lines(out, &format!("on the host, and back after each trial: {step}"), 2))
}

/// The machine of the results, in one line.
pub fn machine(machine: &Machine) -> String {
    let kind = match machine.is_virtual {
        Some(true) => ", virtual",
        Some(false) => ", bare metal",
        None => "",
    };
    let Machine { processor, processors, memory_bytes, kernel, .. } = machine;
    format!("{processor}, {processors} processors, {}, Linux {kernel}{kind}", human(*memory_bytes))
}

/// Why trials of an experiment with tables of its own do not count, and whether there are fewer than there were to be.
pub fn left_out(out: &mut dyn Write, reasons: Vec<(String, usize)>, stopped: bool) -> io::Result<()> {
    if !reasons.is_empty() {
        writeln!(out, "\ntrials that do not count")?;
    }
    for (why, count) in reasons {
        let words = format!("{count} of {why}");
        paragraph(out, "  ", "  ", &words)?;
    }
    if stopped {
        prose(out, "\nended by a signal before its time; the host is as it was")?;
    }
    Ok(())
}

/// The same in documents.
pub fn gaps_of(reasons: Vec<(String, usize)>) -> Vec<GapRow> {
    let gap = |(why, count): (String, usize)| {
        GapRow::from(&Gap::new(why, Why::NotMeasured).hint(format!("trials that do not count: {count}")))
    };
    reasons.into_iter().map(gap).collect()
}
