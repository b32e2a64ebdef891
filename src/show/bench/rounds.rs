//! What experiments in rounds show: one frame of text, dry run and document around the tables of each.

use super::cells::lines;
use super::picture::Picture;
use crate::base::{Gap, Why, counted};
use crate::experiment::bench::Machine;
use crate::experiment::bench::trials::{Arm, ArmRow, OfArm, Planned, Trial};
use crate::map::model::GapRow;
use crate::show::json::Head;
use crate::show::others;
use crate::show::units::{human, prose};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Of an experiment whose settings have `rounds` and `seed`: its name and schemas, by the versions of results and of saved
/// trials, and what sums up the trials of an arm.
macro_rules! named {
    ($name:literal, $results:literal, $trials:literal) => {
        const NAME: &'static str = $name;
        const SCHEMA: &'static str = concat!("marusa/bench-", $name, "/", $results);
        const TRIALS_SCHEMA: &'static str = concat!("marusa/bench-", $name, "-trials/", $trials);

        fn turns(&mut self) -> (&mut usize, &mut u64) {
            (&mut self.rounds, &mut self.seed)
        }
    };
    ($name:literal, $results:literal, $trials:literal, $summary:path) => {
        named!($name, $results, $trials);

        fn summary(&self, of: &OfArm<Self::Arm, Self::Figures>) -> Self::Summary {
            $summary(of)
        }
    };
}
pub(super) use named;

/// An experiment whose arms take turns, by its settings: its figures, what they come to, and how that is shown.
pub trait Experiment: Clone + PartialEq + JsonSchema + Serialize + DeserializeOwned {
    /// As the command has it: "gc".
    const NAME: &'static str;
    /// "marusa/bench-gc/2".
    const SCHEMA: &'static str;
    /// Of the file of `--save`.
    const TRIALS_SCHEMA: &'static str;
    type Arm: Arm + JsonSchema + Serialize + DeserializeOwned;
    type Figures: Default + JsonSchema + Serialize + DeserializeOwned;
    /// What is known of an arm before its trials, next to the options of its JVM.
    type OfArm: Default + JsonSchema + Serialize;
    /// What is found out before the trials, and what this machine lacks.
    type Found: JsonSchema + Serialize;
    /// What the trials of an arm come to.
    type Summary: JsonSchema + Serialize;
    /// What the trials of all come to.
    type Report: Default + JsonSchema + Serialize;
    type Published: JsonSchema + Serialize;
    const PUBLISHED: Self::Published;

    /// The number of rounds, and the seed of their order.
    fn turns(&mut self) -> (&mut usize, &mut u64);
    /// Of an arm, where there are fewer or more of it than of others.
    fn rounds_of(&self, _arm: &Self::Arm) -> usize {
        *self.clone().turns().0
    }
    fn summary(&self, of: &OfArm<Self::Arm, Self::Figures>) -> Self::Summary;
    fn report(&self, _arms: &[Self::Arm], _rows: &[RowOf<Self>], _trials: &[TrialOf<Self>]) -> Self::Report {
        Self::Report::default()
    }
    /// Whether an arm of which a trial counts has all its figures.
    fn is_complete(_row: &RowOf<Self>) -> bool {
        true
    }
    /// How long a trial takes, with all that is not measured of it.
    fn seconds_each(&self) -> f64;

    /// What was asked for, and where: a line each.
    fn head(&self) -> [String; 2];
    /// Figures, comparisons, and what was published.
    fn tables(out: &mut dyn Write, results: &Results<Self>) -> io::Result<()>;
    /// Lines below the tables, and below the arms of a dry run.
    fn found(_out: &mut dyn Write, _found: &Self::Found) -> io::Result<()> {
        Ok(())
    }
    fn gaps(_found: &Self::Found) -> Vec<GapRow> {
        Vec::new()
    }
    /// For `--svg`: our figures and the published ones.
    fn picture(results: &Results<Self>) -> Picture;
    /// The last line.
    fn ending(results: &Results<Self>) -> Option<&'static str> {
        results.stopped.then_some("ended by a signal: the trials above are all that there are")
    }
}

/// The title of the document's schema: "BenchDirectBuffersDocument" of "direct-buffers".
fn title(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    format!("Bench{}Document", name.split('-').map(capital).collect::<String>())
}

pub type TrialOf<E> = Trial<<E as Experiment>::Arm, <E as Experiment>::Figures>;
pub type RowOf<E> = ArmRow<<E as Experiment>::Arm, <E as Experiment>::Summary>;
pub type PlannedOf<E> = Planned<<E as Experiment>::Arm, <E as Experiment>::OfArm>;

/// The `OfArm`, the `Found` and the `Report` of an experiment that has none.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub struct Nothing {}

#[derive(JsonSchema, Serialize)]
#[serde(bound = "")]
#[schemars(bound = "")]
pub struct Results<'a, E: Experiment> {
    pub settings: &'a E,
    #[serde(flatten)]
    pub found: &'a E::Found,
    pub trials: &'a [TrialOf<E>],
    /// A signal ended it before its time.
    pub stopped: bool,
    /// Every arm has its figures, from trials that count.
    pub complete: bool,
    pub arms: Vec<RowOf<E>>,
    #[serde(flatten)]
    pub report: E::Report,
}

/// The document of an experiment in rounds.
#[derive(JsonSchema, Serialize)]
#[serde(untagged, bound = "")]
#[schemars(bound = "", title = title(E::NAME), description = format!("`marusa bench {} --json`.", E::NAME))]
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
        found: &'a E::Found,
        gaps: [GapRow; 0],
    },
}

impl<'a, E: Experiment> Document<'a, E> {
    pub fn of(results: &'a Results<'a, E>) -> Document<'a, E> {
        Document::Measured {
            head: Head::now(E::SCHEMA),
            results,
            published: E::PUBLISHED,
            gaps: gaps(results.trials).into_iter().chain(E::gaps(results.found)).collect(),
        }
    }

    pub fn dry_run(settings: &'a E, found: &'a E::Found, arms: &'a [PlannedOf<E>]) -> Document<'a, E> {
        Document::DryRun { head: Head::now(E::SCHEMA), dry_run: true, settings, arms, found, gaps: [] }
    }
}

pub fn text<E: Experiment>(out: &mut dyn Write, results: &Results<E>) -> io::Result<()> {
    head(out, results.settings)?;
    E::tables(out, results)?;
    not_counted(out, results.trials)?;
    let others = others::line(results.trials.iter().map(|trial| trial.others));
    others.iter().try_for_each(|line| prose(out, line))?;
    E::found(out, results.found)?;
    E::ending(results).map_or(Ok(()), |line| prose(out, line))
}

/// `None`: there is nothing to draw.
pub fn svg<E: Experiment>(results: &Results<E>) -> Option<String> {
    E::picture(results).svg()
}

fn head<E: Experiment>(out: &mut dyn Write, settings: &E) -> io::Result<()> {
    settings.head().iter().try_for_each(|line| lines(out, line, 0))
}

pub fn dry_run<E: Experiment>(
    out: &mut dyn Write,
    settings: &E,
    found: &E::Found,
    arms: &[PlannedOf<E>],
) -> io::Result<()> {
    head(out, settings)?;
    let trials: usize = arms.iter().map(|planned| settings.rounds_of(&planned.arm)).sum();
    let minutes = (trials as f64 * settings.seconds_each() / 60.0).ceil();
    prose(out, &format!("\n{}, about {minutes:.0} min in all\n", counted(trials, "trial")))?;
    arms.iter().try_for_each(|arm| planned(out, arm))?;
    E::found(out, found)?;
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
        None if planned.options.is_empty() => lines(out, &name, 0)?,
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
