//! Undoes a run that is in the state directory: applied, interrupted, or undone in part.

use super::journal::Begin;
use super::machine::Machine;
use super::store::{Kept, State, Store};
use super::take_back::{self, TakenBack};
use super::{DoorError, history, journal_check};

#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct UndoReceipt {
    pub id: String,
    pub journal: String,
    #[serde(skip)]
    pub begin: Begin,
    #[serde(skip)]
    pub steps: Vec<TakenBack>,
    /// Nothing of the run is left.
    pub complete: bool,
    /// It was undone before; nothing was done now.
    pub nothing_left: bool,
    pub notes: Vec<String>,
}

/// `damaged`: also a journal that can be read only in part, as far as it can.
pub fn undo(machine: &dyn Machine, store: &Store, id: &str, damaged: bool) -> Result<UndoReceipt, DoorError> {
    // Before the state directory is made.
    if store.list()?.is_empty() {
        return Err(DoorError::Refused(format!("no run {id}: nothing was applied")));
    }
    let lock = store.lock()?;
    let all = store.list()?;
    let kept = all.iter().find(|one| one.id == id);
    let kept = kept.ok_or_else(|| DoorError::Refused(format!("there is no run {id}")))?;
    let mut notes = Vec::new();
    let mut kept = kept.clone();
    if kept.state() == State::Damaged {
        if !damaged {
            return Err(DoorError::Broken(broken(&kept)));
        }
        let why = kept.damage();
        let aside = store.put_aside(&mut kept, &lock)?.display().to_string();
        if kept.begin().is_none() {
            return Err(DoorError::Broken(format!(
                "nothing of the journal {} can be read and nothing was undone; it is put aside as {aside}",
                kept.path.display()
            )));
        }
        notes.push(format!(
            "the journal is damaged ({why}): what it said from there on was not undone; it is kept as {aside}"
        ));
    }
    let Some(begin) = kept.begin().cloned() else {
        return Err(DoorError::Broken(broken(&kept)));
    };
    if kept.parsed.torn {
        notes.push("its last line was cut by a crash, before anything was done for it".to_string());
    }
    let receipt = |steps, complete, nothing_left, notes| UndoReceipt {
        id: kept.id.clone(),
        journal: kept.path.display().to_string(),
        begin: begin.clone(),
        steps,
        complete,
        nothing_left,
        notes,
    };
    if kept.state() == State::Undone {
        return Ok(receipt(Vec::new(), true, true, notes));
    }
    let mut journal = store.open(&kept, &lock)?;
    journal_check::check(
        &journal.records,
        &store.directory.display().to_string(),
        journal_check::memory_kib(machine),
    )
    .map_err(|why| DoorError::Refused(format!("the journal {}: {why}", journal.path.display())))?;
    let boot = machine.boot_id();
    let drift = |file: &str, since_ns: u64| -> i128 {
        let others =
            all.iter().filter(|one| one.id != id && one.begin().is_some_and(|begin| begin.boot == boot));
        others.map(|one| history::moved(&one.parsed.records, file, since_ns)).sum()
    };
    if begin.boot != boot {
        notes.push(
            "the host was restarted since: /proc, /sys and mounts are as it started; files are undone".into(),
        );
    }
    let (steps, complete) = take_back::take_back(machine, &mut journal, &drift, "asked for")?;
    Ok(receipt(steps, complete, false, notes))
}

fn broken(kept: &Kept) -> String {
    let readable = match kept.begin() {
        None => "nothing of it can be read; `--damaged` puts it aside".to_string(),
        Some(begin) => {
            let begun = history::of(&kept.parsed.records, begin.steps.len());
            let places: Vec<&str> = (begin.steps.iter().zip(&begun))
                .filter(|(_, history)| !history.is_over())
                .map(|(step, _)| step.change.place())
                .collect();
            format!("readable before that: changes of {}; `--damaged` undoes those", places.join(", "))
        }
    };
    format!(
        "the journal {} is damaged, {}; nothing was undone; {readable}",
        kept.path.display(),
        kept.damage()
    )
}
