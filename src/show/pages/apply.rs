//! `marusa pages apply`: what would change, what did, and the way back. As text and as `marusa/pages-apply/2`.

use super::steps::{self, Row, StepRow};
use crate::pages::changes::{Goal, How, Made, Outcome, Preview, Receipt, Seen, Step, TakenBack};
use crate::show::json::Head;
use crate::show::units::prose;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

pub const SCHEMA: &str = "marusa/pages-apply/2";

/// What the reader needs of the plan and the command.
#[derive(JsonSchema, Serialize)]
pub struct Given<'a> {
    pub plan: &'a str,
    #[serde(skip)]
    pub steps: &'a [Step],
    pub persist: bool,
    /// What only the kernel's command line can do.
    pub boot: &'a [String],
    pub jvm_options: &'a [String],
}

/// Each step as it is and as it would be.
pub fn preview(out: &mut dyn Write, given: &Given, previews: &[Preview]) -> io::Result<()> {
    let row = |(index, (step, preview)): (usize, (&Step, &Preview))| {
        let mut notes = vec![steps::described(&step.change), format!("the plan says: {}", step.what)];
        notes.extend(step.risk.iter().map(|risk| format!("risk: {risk}")));
        notes.extend(preview.hindrance.iter().map(|why| format!("NOT POSSIBLE: {why}")));
        Row {
            step: index,
            place: step.change.place().to_string(),
            before: steps::seen(preview.before.as_ref()),
            after: steps::goal(preview.goal.as_ref()),
            back: steps::way_back(&step.change, preview.before.as_ref(), preview.already),
            notes,
            text: steps::file_text(&step.change),
        }
    };
    let rows: Vec<Row> = given.steps.iter().zip(previews).enumerate().map(row).collect();
    if rows.is_empty() {
        steps::remark(out, &format!("{} has no steps: nothing on this host is to change", given.plan))?;
    } else {
        steps::table(out, "WAY BACK", &rows)?;
    }
    beyond(out, given)
}

/// What the plan asks for that this command does not do.
fn beyond(out: &mut dyn Write, given: &Given) -> io::Result<()> {
    let boot = "only at the next start of the host, by the kernel's command line";
    given.boot.iter().try_for_each(|parameter| steps::remark(out, &format!("{boot}: {parameter}")))?;
    if !given.jvm_options.is_empty() {
        steps::remark(out, &format!("start the JVM with: {}", given.jvm_options.join(" ")))?;
    }
    Ok(())
}

pub fn receipt(out: &mut dyn Write, given: &Given, receipt: &Receipt) -> io::Result<()> {
    let row = |(index, (step, made)): (usize, (&Step, &Made))| Row {
        step: index,
        place: step.change.place().to_string(),
        before: steps::seen(made.before.as_ref()),
        after: if made.already { "so already".to_string() } else { steps::seen(made.after.as_ref()) },
        back: steps::way_back(&step.change, made.before.as_ref(), made.already),
        notes: made.notes.clone(),
        text: steps::file_text(&step.change),
    };
    let rows: Vec<Row> = receipt.asked.iter().zip(&receipt.steps).enumerate().map(row).collect();
    if !rows.is_empty() {
        steps::table(out, "WAY BACK", &rows)?;
    }
    let (id, journal) = (&receipt.id, &receipt.journal);
    match &receipt.outcome {
        Outcome::Applied => {
            prose(out, &format!("\napplied as {id}; receipt: {journal}\nway back: marusa pages undo {id}"))?
        }
        Outcome::AlreadyApplied { lost } => {
            let text = format!(
                "\napplied already as {id}, nothing was done now; receipt: {journal}\n\
                 way back: marusa pages undo {id}; once more on top: --again"
            );
            prose(out, &text)?;
            lost.iter().try_for_each(|one| steps::remark(out, &format!("no longer there: {one}")))?;
        }
        Outcome::TakenBack { why, steps: back, complete } => {
            taken_back(out, receipt, (why, back, *complete))?
        }
    }
    receipt.notes.iter().try_for_each(|note| steps::remark(out, note))?;
    match receipt.outcome {
        Outcome::Applied => beyond(out, given),
        _ => Ok(()),
    }
}

fn taken_back(
    out: &mut dyn Write,
    receipt: &Receipt,
    (why, back, complete): (&dyn std::fmt::Display, &[TakenBack], bool),
) -> io::Result<()> {
    let id = &receipt.id;
    writeln!(out)?;
    steps::remark(out, &format!("not applied: {why}"))?;
    for one in back {
        let place = receipt.asked.get(one.step).map_or("", |step| step.change.place());
        steps::remark(out, &format!("step {} {}: {place}", one.step + 1, steps::how(one.how)))?;
        one.notes.iter().try_for_each(|note| steps::indented(out, note))?;
    }
    match complete {
        true => steps::remark(out, "nothing of it is left on the host")?,
        false => steps::remark(out, &format!("something is left; once it is free: marusa pages undo {id}"))?,
    }
    writeln!(out, "receipt: {}", receipt.journal)
}

/// `marusa pages apply --json`.
#[derive(JsonSchema, Serialize)]
pub struct ApplyDocument<'a> {
    #[serde(flatten)]
    head: Head,
    state: &'static str,
    id: Option<&'a str>,
    journal: Option<&'a str>,
    #[serde(flatten)]
    given: &'a Given<'a>,
    /// Why it was undone.
    why: Option<String>,
    steps: Vec<ApplyRow<'a>>,
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<&'a [String]>,
}

#[derive(JsonSchema, Serialize)]
struct ApplyRow<'a> {
    #[serde(flatten)]
    step: StepRow<'a>,
    before: Option<&'a Seen>,
    already: Option<bool>,
    way_back: Option<String>,
    #[serde(flatten)]
    fate: Fate<'a>,
}

#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
enum Fate<'a> {
    DryRun { after: &'a Option<Goal>, feasible: bool, why_not: Option<String> },
    Made { after: Option<&'a Seen>, notes: &'a [String], undone: Option<Undone<'a>> },
}

#[derive(JsonSchema, Serialize)]
struct Undone<'a> {
    how: How,
    now: &'a Option<Seen>,
    notes: &'a [String],
}

impl<'a> ApplyDocument<'a> {
    pub fn dry_run(given: &'a Given, previews: &'a [Preview]) -> ApplyDocument<'a> {
        let one = |((index, step), preview): ((usize, &'a Step), &'a Preview)| {
            let Preview { before, goal, already, hindrance } = preview;
            let (feasible, why_not) = (hindrance.is_none(), hindrance.as_ref().map(ToString::to_string));
            ApplyRow {
                step: StepRow::of((index, step)),
                before: before.as_ref(),
                already: Some(*already),
                way_back: Some(steps::way_back(&step.change, before.as_ref(), *already)),
                fate: Fate::DryRun { after: goal, feasible, why_not },
            }
        };
        ApplyDocument::new("dry_run", given, given.steps.iter().enumerate().zip(previews).map(one).collect())
    }

    fn new(state: &'static str, given: &'a Given, steps: Vec<ApplyRow<'a>>) -> ApplyDocument<'a> {
        let head = Head::now(SCHEMA);
        let (id, journal, why, notes, lost) = (None, None, None, &[][..], None);
        ApplyDocument { head, state, id, journal, given, why, steps, notes, lost }
    }

    pub fn of(given: &'a Given, receipt: &'a Receipt) -> ApplyDocument<'a> {
        let (state, why, back, lost) = match &receipt.outcome {
            Outcome::Applied => ("applied", None, &[][..], None),
            Outcome::AlreadyApplied { lost } => ("already_applied", None, &[][..], Some(&lost[..])),
            Outcome::TakenBack { why, steps, complete } => {
                let state = if *complete { "taken_back" } else { "partly_taken_back" };
                (state, Some(why.to_string()), &steps[..], None)
            }
        };
        let undone = |one: &'a TakenBack| Undone { how: one.how, now: &one.now, notes: &one.notes };
        let one = |(index, step): (usize, &'a Step)| {
            let made = receipt.steps.get(index);
            let before = made.and_then(|made| made.before.as_ref());
            ApplyRow {
                step: StepRow::of((index, step)),
                before,
                already: made.map(|made| made.already),
                way_back: made.map(|made| steps::way_back(&step.change, before, made.already)),
                fate: Fate::Made {
                    after: made.and_then(|made| made.after.as_ref()),
                    notes: made.map_or(&[], |made| &made.notes),
                    undone: back.iter().find(|one| one.step == index).map(undone),
                },
            }
        };
        ApplyDocument {
            id: Some(&receipt.id),
            journal: Some(&receipt.journal),
            why,
            notes: &receipt.notes,
            lost,
            ..ApplyDocument::new(state, given, receipt.asked.iter().enumerate().map(one).collect())
        }
    }
}
