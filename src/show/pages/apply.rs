//! `marusa pages apply`: what would change, what did, and the way back. As text and as `marusa/pages-apply/1`.

use super::steps::{self, Row};
use crate::pages::changes::{Made, Outcome, Preview, Receipt, Step, TakenBack};
use serde_json::{Value, json};
use std::io::{self, Write};

pub const SCHEMA: &str = "marusa/pages-apply/1";

/// What the reader needs of the plan and the command.
pub struct Given<'a> {
    pub plan: &'a str,
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
    for parameter in given.boot {
        steps::remark(
            out,
            &format!("only at the next start of the host, by the kernel's command line: {parameter}"),
        )?;
    }
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
    let (id, journal) = (&receipt.id, receipt.journal.display());
    match &receipt.outcome {
        Outcome::Applied => {
            writeln!(out, "\napplied as {id}; receipt: {journal}\nway back: marusa pages undo {id}")?
        }
        Outcome::AlreadyApplied { lost } => {
            writeln!(
                out,
                "\napplied already as {id}, nothing was done now; receipt: {journal}\n\
                 way back: marusa pages undo {id}; once more on top: --again"
            )?;
            lost.iter().try_for_each(|one| steps::remark(out, &format!("no longer there: {one}")))?;
        }
        Outcome::TakenBack { why, steps: back, complete } => {
            taken_back(out, receipt, (why, back, *complete))?
        }
    }
    for note in &receipt.notes {
        steps::remark(out, note)?;
    }
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
    writeln!(out, "receipt: {}", receipt.journal.display())
}

fn head(given: &Given, state: &str) -> Value {
    json!({
        "schema": SCHEMA,
        "state": state,
        "id": null,
        "journal": null,
        "plan": given.plan,
        "persist": given.persist,
        "why": null,
        "steps": [],
        "boot": given.boot,
        "jvm_options": given.jvm_options,
        "notes": [],
    })
}

pub fn preview_json(given: &Given, previews: &[Preview]) -> Value {
    let one = |(index, (step, preview)): (usize, (&Step, &Preview))| {
        let mut value = steps::json(index, step);
        value["before"] = json!(preview.before);
        value["after"] = json!(preview.goal);
        value["already"] = preview.already.into();
        value["feasible"] = preview.hindrance.is_none().into();
        value["why_not"] = json!(preview.hindrance.as_ref().map(ToString::to_string));
        value["way_back"] = steps::way_back(&step.change, preview.before.as_ref(), preview.already).into();
        value
    };
    let mut value = head(given, "dry_run");
    value["steps"] = given.steps.iter().zip(previews).enumerate().map(one).collect();
    value
}

pub fn receipt_json(given: &Given, receipt: &Receipt) -> Value {
    let (state, why, back) = match &receipt.outcome {
        Outcome::Applied => ("applied", None, &[][..]),
        Outcome::AlreadyApplied { .. } => ("already_applied", None, &[][..]),
        Outcome::TakenBack { why, steps, complete: true } => ("taken_back", Some(why), &steps[..]),
        Outcome::TakenBack { why, steps, complete: false } => ("partly_taken_back", Some(why), &steps[..]),
    };
    let one = |(index, step): (usize, &Step)| {
        let mut value = steps::json(index, step);
        let made = receipt.steps.get(index);
        let undone = back.iter().find(|one| one.step == index);
        value["before"] = json!(made.map(|made| &made.before));
        value["after"] = json!(made.map(|made| &made.after));
        value["already"] = json!(made.map(|made| made.already));
        value["way_back"] =
            json!(made.map(|made| steps::way_back(&step.change, made.before.as_ref(), made.already)));
        value["notes"] = json!(made.map_or(&[][..], |made| &made.notes));
        value["undone"] =
            json!(undone.map(|one| json!({"how": one.how, "now": one.now, "notes": one.notes})));
        value
    };
    let mut value = head(given, state);
    value["id"] = receipt.id.as_str().into();
    value["journal"] = receipt.journal.display().to_string().into();
    value["why"] = json!(why.map(ToString::to_string));
    value["steps"] = receipt.asked.iter().enumerate().map(one).collect();
    value["notes"] = json!(receipt.notes);
    if let Outcome::AlreadyApplied { lost } = &receipt.outcome {
        value["lost"] = json!(lost);
    }
    value
}
