//! `marusa pages undo`: what went back, what was left and why, and what is applied. As text and as `marusa/pages-undo/1`.

use super::steps::{self, Row};
use crate::pages::changes::{Kept, State, TakenBack, UndoReceipt};
use serde_json::{Value, json};
use std::io::{self, Write};

pub const SCHEMA: &str = "marusa/pages-undo/1";

pub fn receipt(out: &mut dyn Write, receipt: &UndoReceipt) -> io::Result<()> {
    let id = &receipt.id;
    for note in &receipt.notes {
        steps::remark(out, &format!("{id}: {note}"))?;
    }
    if receipt.nothing_left {
        return writeln!(out, "{id} was undone before; nothing was done now");
    }
    let row = |one: &TakenBack| Row {
        step: one.step,
        place: receipt.begin.steps.get(one.step).map_or("", |step| step.change.place()).to_string(),
        before: steps::seen(one.before.as_ref()),
        after: steps::seen(one.now.as_ref()),
        back: steps::how(one.how).to_string(),
        notes: one.notes.clone(),
        text: Vec::new(),
    };
    let rows: Vec<Row> = receipt.steps.iter().map(row).collect();
    if !rows.is_empty() {
        steps::table(out, "HOW", &rows)?;
    }
    match receipt.complete {
        true => writeln!(out, "\n{id} is undone; receipt: {}", receipt.journal.display()),
        false => writeln!(
            out,
            "\n{id} is undone but for what is LEFT; undo goes on with that when it is asked again; receipt: {}",
            receipt.journal.display()
        ),
    }
}

pub fn receipts_json(receipts: &[UndoReceipt], errors: &[String]) -> Value {
    let step = |receipt: &UndoReceipt, one: &TakenBack| {
        let mut value =
            receipt.begin.steps.get(one.step).map_or(json!({}), |step| steps::json(one.step, step));
        value["before"] = json!(one.before);
        value["after"] = json!(one.now);
        value["how"] = json!(one.how);
        value["notes"] = json!(one.notes);
        value
    };
    let run = |receipt: &UndoReceipt| {
        json!({
            "id": receipt.id,
            "journal": receipt.journal.display().to_string(),
            "plan": receipt.begin.plan.path,
            "complete": receipt.complete,
            "nothing_left": receipt.nothing_left,
            "steps": receipt.steps.iter().map(|one| step(receipt, one)).collect::<Vec<_>>(),
            "notes": receipt.notes,
        })
    };
    json!({
        "schema": SCHEMA,
        "complete": errors.is_empty() && receipts.iter().all(|receipt| receipt.complete),
        "runs": receipts.iter().map(run).collect::<Vec<_>>(),
        "errors": errors,
    })
}

fn state(state: State) -> &'static str {
    match state {
        State::Interrupted => "interrupted",
        State::Applied => "applied",
        State::PartlyUndone => "partly undone",
        State::Undone => "undone",
        State::Damaged => "damaged",
    }
}

/// What is applied on this host.
pub fn list(out: &mut dyn Write, runs: &[Kept]) -> io::Result<()> {
    if runs.is_empty() {
        return writeln!(out, "nothing is applied");
    }
    writeln!(out, "{:<15}  {:<20}  {:<13}  PLAN", "RUN", "SINCE", "STATE")?;
    for run in runs {
        let begin = run.begin();
        let since = begin.map_or("?", |begin| begin.since.as_str());
        let plan = begin.map_or("?", |begin| begin.plan.path.as_str());
        let plan = crate::show::units::shorten(plan, 46);
        writeln!(out, "{:<15}  {since:<20}  {:<13}  {plan}", run.id, state(run.state()))?;
        for step in begin.iter().flat_map(|begin| &begin.steps) {
            steps::indented(out, &format!("{}: {}", step.change.place(), step.what))?;
        }
        if run.state() == State::Damaged {
            steps::indented(out, &format!("{}: {}", run.path.display(), run.damage()))?;
        }
    }
    Ok(())
}

pub fn list_json(runs: &[Kept], boot: &str) -> Value {
    let run = |run: &Kept| {
        let begin = run.begin();
        let steps = begin.iter().flat_map(|begin| begin.steps.iter().enumerate());
        json!({
            "id": run.id,
            "at": begin.map(|begin| &begin.since),
            "state": run.state(),
            "plan": begin.map(|begin| &begin.plan.path),
            "persist": begin.map(|begin| begin.persist),
            "this_boot": begin.map(|begin| begin.boot == boot),
            "journal": run.path.display().to_string(),
            "damage": (run.state() == State::Damaged).then(|| run.damage()),
            "steps": steps.map(|(index, step)| steps::json(index, step)).collect::<Vec<_>>(),
        })
    };
    json!({"schema": SCHEMA, "applied": runs.iter().map(run).collect::<Vec<_>>()})
}
