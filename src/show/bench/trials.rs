//! What results of trials in rounds have in common, whatever is measured: trials that do not count, gaps, and what a dry run says
//! of an arm.

use super::cells::lines;
use crate::base::{Gap, Why, counted};
use crate::experiment::bench::trials::{Arm, Planned, Trial};
use crate::map::model::GapRow;
use crate::show::units::prose;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Each reason once, with how many trials it cost.
pub fn not_counted<A: Arm, F>(out: &mut dyn Write, trials: &[Trial<A, F>]) -> io::Result<()> {
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
pub fn gaps<A: Arm, F>(trials: &[Trial<A, F>]) -> Vec<GapRow> {
    let of_trial = |trial: &Trial<A, F>| {
        let what = format!("{}, round {}", trial.arm.name(), trial.round + 1);
        let not_counted = trial.not_counted.as_ref().map(|why| Gap::new(what, Why::NotMeasured).hint(why));
        let gaps = trial.gaps.iter().map(GapRow::from);
        gaps.chain(not_counted.as_ref().map(GapRow::from)).collect::<Vec<_>>()
    };
    trials.iter().flat_map(of_trial).collect()
}

/// How many trials it would be, and how long they would take.
pub fn length(out: &mut dyn Write, trials: usize, seconds_each: f64) -> io::Result<()> {
    let minutes = (trials as f64 * seconds_each / 60.0).ceil();
    prose(out, &format!("\n{}, about {minutes:.0} min in all\n", counted(trials, "trial")))
}

/// What would be started, and what would change on the host.
pub fn planned<A: Arm>(out: &mut dyn Write, planned: &Planned<A>) -> io::Result<()> {
    let name = planned.arm.name();
    match &planned.why_not {
        Some(why) => lines(out, &format!("{name}: not available: {why}"), 0)?,
        None => lines(out, &format!("{name}: java {}", planned.options.join(" ")), 0)?,
    }
    let mut steps = planned.steps.iter();
    steps.try_for_each(|step| lines(out, &format!("on the host, and back after each trial: {step}"), 2))
}
