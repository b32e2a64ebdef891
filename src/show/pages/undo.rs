//! `marusa pages undo`: what went back, what was left and why, and what is applied. As text and as `marusa/pages-undo/2`.

use super::steps::{self, Row, StepRow};
use crate::pages::changes::{DoorError, Kept, State, TakenBack, UndoReceipt};
use crate::show::json::Head;
use crate::show::table::Table;
use crate::show::units::prose;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

pub const SCHEMA: &str = "marusa/pages-undo/2";

pub fn receipt(out: &mut dyn Write, receipt: &UndoReceipt) -> io::Result<()> {
    let id = &receipt.id;
    receipt.notes.iter().try_for_each(|note| steps::remark(out, &format!("{id}: {note}")))?;
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
        true => prose(out, &format!("\n{id} is undone; receipt: {}", receipt.journal)),
        false => {
            let text = "is undone except for what is LEFT; run undo again to continue";
            prose(out, &format!("\n{id} {text}; receipt: {}", receipt.journal))
        }
    }
}

/// `marusa pages undo --json`, with `--list` the second one.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum UndoDocument<'a> {
    Runs {
        #[serde(flatten)]
        head: Head,
        complete: bool,
        runs: Vec<RunRow<'a>>,
        errors: Vec<String>,
    },
    List {
        #[serde(flatten)]
        head: Head,
        applied: Vec<AppliedRow<'a>>,
    },
}

#[derive(JsonSchema, Serialize)]
pub struct RunRow<'a> {
    #[serde(flatten)]
    receipt: &'a UndoReceipt,
    plan: &'a str,
    steps: Vec<UndoneRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct UndoneRow<'a> {
    #[serde(flatten)]
    step: Option<StepRow<'a>>,
    #[serde(flatten)]
    done: &'a TakenBack,
}

#[derive(JsonSchema, Serialize)]
pub struct AppliedRow<'a> {
    id: &'a str,
    at: Option<&'a str>,
    state: State,
    plan: Option<&'a str>,
    persist: Option<bool>,
    this_boot: Option<bool>,
    journal: String,
    damage: Option<String>,
    steps: Vec<StepRow<'a>>,
}

impl<'a> UndoDocument<'a> {
    pub fn of(receipts: &'a [UndoReceipt], errors: &[DoorError]) -> UndoDocument<'a> {
        let step = |receipt: &'a UndoReceipt, done: &'a TakenBack| UndoneRow {
            step: receipt.begin.steps.get(done.step).map(|step| StepRow::of((done.step, step))),
            done,
        };
        let run = |receipt: &'a UndoReceipt| RunRow {
            receipt,
            plan: &receipt.begin.plan.path,
            steps: receipt.steps.iter().map(|one| step(receipt, one)).collect(),
        };
        UndoDocument::Runs {
            head: Head::now(SCHEMA),
            complete: errors.is_empty() && receipts.iter().all(|receipt| receipt.complete),
            runs: receipts.iter().map(run).collect(),
            errors: errors.iter().map(DoorError::to_string).collect(),
        }
    }

    /// What is applied on this host.
    pub fn list(runs: &'a [Kept], boot: &str) -> UndoDocument<'a> {
        let run = |run: &'a Kept| {
            let begin = run.begin();
            AppliedRow {
                id: &run.id,
                at: begin.map(|begin| begin.since.as_str()),
                state: run.state(),
                plan: begin.map(|begin| begin.plan.path.as_str()),
                persist: begin.map(|begin| begin.persist),
                this_boot: begin.map(|begin| begin.boot == boot),
                journal: run.path.display().to_string(),
                damage: (run.state() == State::Damaged).then(|| run.damage()),
                steps: begin
                    .iter()
                    .flat_map(|begin| begin.steps.iter().enumerate().map(StepRow::of))
                    .collect(),
            }
        };
        UndoDocument::List { head: Head::now(SCHEMA), applied: runs.iter().map(run).collect() }
    }
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
    let mut table = Table::new(["RUN", "SINCE", "STATE", "PLAN"]).shortened(3, 20);
    for run in runs {
        let begin = run.begin();
        let since = begin.map_or("?", |begin| begin.since.as_str());
        let plan = begin.map_or("?", |begin| begin.plan.path.as_str());
        table.row([run.id.as_str(), since, state(run.state()), plan]);
        let steps = begin.iter().flat_map(|begin| &begin.steps);
        steps.for_each(|step| table.note("      ", &format!("{}: {}", step.change.place(), step.what)));
        if run.state() == State::Damaged {
            table.note("      ", &format!("{}: {}", run.path.display(), run.damage()));
        }
    }
    table.write(out)
}
