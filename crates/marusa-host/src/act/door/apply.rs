//! Makes the steps of a plan, one after the other, each behind its record in the journal. A step that cannot be made takes
//! those before it back: a plan is made whole or not at all.

use super::history;
use super::journal::{Begin, Coupled, Entry, Goal, PlanMark, SCHEMA, Seen, begin};
use super::look::{self, Preview, reached, see, seen};
use super::machine::{Lies, Machine};
use super::run::Run;
use super::step::{Change, FILE_MODE, Step};
use super::store::{Journal, Kept, State, Store};
use super::take_back::{self, TakenBack};
use super::{DoorError, add, allowed, content, denied, journal_check};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    pub plan: PlanMark,
    pub steps: Vec<Step>,
    pub persist: bool,
    /// Drop cached files where the kernel finds too few huge pages.
    pub drop_caches: bool,
    /// Also where the same plan is applied already.
    pub again: bool,
    pub made_by: String,
}

/// A step that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub before: Option<Seen>,
    pub after: Option<Seen>,
    pub already: bool,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Applied,
    /// The same plan was applied before; nothing was done now. `lost`: what others have taken away since.
    AlreadyApplied {
        lost: Vec<String>,
    },
    /// A step could not be made, and what was made before it was undone.
    TakenBack {
        why: DoorError,
        steps: Vec<TakenBack>,
        complete: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: String,
    pub journal: String,
    pub outcome: Outcome,
    /// What was to be made.
    pub asked: Vec<Step>,
    /// As many as were begun.
    pub steps: Vec<Made>,
    pub notes: Vec<String>,
}

/// The steps of a plan, with those before them that make our own directory where it is missing.
pub fn with_own_directory(machine: &dyn Machine, steps: Vec<Step>) -> Vec<Step> {
    let parents = steps.iter().filter_map(|step| match &step.change {
        Change::Directory { path } => allowed::own_parent(path),
        _ => None,
    });
    let mut missing: Vec<&str> =
        parents.filter(|one| machine.lies(one).is_ok_and(|one| one == Lies::Nothing)).collect();
    missing.sort_unstable();
    missing.dedup();
    let made = |path: &str| Step {
        what: format!("the directory {path}"),
        why: "files that marusa makes for a plan are in it".to_string(),
        risk: None,
        change: Change::Directory { path: path.to_string() },
    };
    missing.into_iter().map(made).chain(steps).collect()
}

pub fn apply(machine: &dyn Machine, store: &Store, request: &Request) -> Result<Receipt, DoorError> {
    let directory = store.directory.display().to_string();
    // Before the state directory is made: without rights nothing is.
    unhindered(look::preview(machine, &request.steps, &directory))?;
    let lock = store.lock()?;
    let kept = store.list()?;
    if let Some(done) = before_this(&kept, machine, request, &directory)? {
        return Ok(done);
    }
    unhindered(look::preview(machine, &request.steps, &directory))?;
    let begin = |id, since| Begin {
        schema: SCHEMA.to_string(),
        id,
        since,
        made_by: request.made_by.clone(),
        boot: machine.boot_id(),
        plan: request.plan.clone(),
        persist: request.persist,
        steps: request.steps.clone(),
    };
    let journal = store.create(machine, &lock, begin)?;
    let mut run = Run { machine, journal, drop_caches: request.drop_caches };
    let made = (0..request.steps.len()).try_for_each(|step| {
        if machine.stopped() {
            return Err(DoorError::No("stopped by a signal".to_string()));
        }
        run.make(step, &request.steps[step].change)
    });
    let outcome = match made.and_then(|()| run.journal.append(machine, vec![Entry::Applied])) {
        Ok(()) => Outcome::Applied,
        Err(why) => {
            let (steps, complete) =
                take_back::take_back(machine, &mut run.journal, &|_, _| 0, &why.to_string())
                    .map_err(|error| half_done(&run.journal.id, &why, &error))?;
            Outcome::TakenBack { why, steps, complete }
        }
    };
    Ok(receipt(run.journal, outcome, damaged(&kept)))
}

fn unhindered(previews: Vec<Preview>) -> Result<(), DoorError> {
    previews.into_iter().find_map(|preview| preview.hindrance).map_or(Ok(()), Err)
}

/// What earlier runs mean for this one.
fn before_this(
    kept: &[Kept],
    machine: &dyn Machine,
    request: &Request,
    state_directory: &str,
) -> Result<Option<Receipt>, DoorError> {
    if let Some(open) = kept.iter().find(|one| one.state() == State::Interrupted) {
        return Err(DoorError::No(format!(
            "the run {0} was interrupted; restore what it changed with `marusa pages undo {0}` first",
            open.id
        )));
    }
    let boot = machine.boot_id();
    let same = |one: &&Kept| {
        matches!(one.state(), State::Applied | State::PartlyUndone)
            && one.applies(&request.plan)
            && one.begin().is_some_and(|begin| begin.boot == boot && begin.persist == request.persist)
    };
    let Some(same) = kept.iter().rev().find(same).filter(|_| !request.again) else { return Ok(None) };
    if same.state() == State::PartlyUndone {
        return Err(DoorError::No(format!(
            "this plan is applied as {0} and not undone whole; `marusa pages undo {0}` first",
            same.id
        )));
    }
    let journal = same.path.display().to_string();
    journal_check::check(&same.parsed.records, state_directory, journal_check::memory_kib(machine))
        .map_err(|why| DoorError::Refused(format!("the journal {journal}: {why}")))?;
    let asked = same.begin().map(|begin| begin.steps.clone()).unwrap_or_default();
    let steps = made(&same.parsed.records, asked.len());
    let notes = damaged(kept);
    let outcome = Outcome::AlreadyApplied { lost: lost(machine, &asked, &steps) };
    Ok(Some(Receipt { id: same.id.clone(), journal, outcome, asked, steps, notes }))
}

/// What is no longer as the steps left it.
fn lost(machine: &dyn Machine, steps: &[Step], made: &[Made]) -> Vec<String> {
    let kept = |left: &Seen, now: &Seen| match (left, now) {
        // Others may add to a sum, and put files into a directory.
        (Seen::Number { value: left, .. }, Seen::Number { value: now, .. }) => now >= left,
        (Seen::Directory { .. }, Seen::Directory { .. }) => true,
        (left, now) => left == now,
    };
    let one = |(step, made): (&Step, &Made)| {
        let (left, place) = (made.after.as_ref()?, step.change.place());
        match see(machine, &step.change) {
            Ok(now) if kept(left, &now) => None,
            Ok(_) => Some(format!("{place} was changed since ({})", step.what)),
            Err(error) => Some(denied(place, &error).to_string()),
        }
    };
    steps.iter().zip(made).filter_map(one).collect()
}

fn damaged(kept: &[Kept]) -> Vec<String> {
    let damaged = kept.iter().filter(|one| one.state() == State::Damaged);
    damaged
        .map(|one| {
            format!("the journal {} is damaged: what that run changed may still be there", one.path.display())
        })
        .collect()
}

fn half_done(id: &str, why: &DoorError, error: &DoorError) -> DoorError {
    DoorError::Broken(format!(
        "{why}; and it could not be undone: {error}; `marusa pages undo {id}` continues"
    ))
}

fn made(records: &[super::journal::Record], steps: usize) -> Vec<Made> {
    let histories = history::of(records, steps).into_iter();
    let begun = histories.take_while(|one| one.made || !one.rounds.is_empty());
    begun
        .map(|one| Made {
            before: one.already.clone().or_else(|| Some(one.rounds.first()?.before.clone())),
            after: one.rounds.last().and_then(|round| Some(round.after.clone()?.0)),
            already: one.already.is_some(),
            notes: one.notes,
        })
        .collect()
}

fn receipt(journal: Journal, outcome: Outcome, notes: Vec<String>) -> Receipt {
    let asked = begin(&journal.records).map(|begin| begin.steps.clone()).unwrap_or_default();
    let steps = made(&journal.records, asked.len());
    Receipt { id: journal.id, journal: journal.path.display().to_string(), outcome, asked, steps, notes }
}

impl Run<'_> {
    fn make(&mut self, step: usize, change: &Change) -> Result<(), DoorError> {
        let mut notes = Vec::new();
        let mut already = None;
        if let Change::Add { file, by: by @ 1.. } = change {
            notes = add::add(self, step, file, *by)?;
        } else {
            let before = seen(self.machine, change)?;
            let goal = look::goal(change, &before)?;
            let directory = matches!((change, &before), (Change::Directory { .. }, Seen::Directory { .. }));
            match directory || reached(&goal, &before) {
                true => already = Some(before),
                false => notes = self.write(step, change, before, goal)?,
            }
        }
        self.journal.append(self.machine, vec![Entry::Made { step, already, notes }])
    }

    fn write(
        &mut self,
        step: usize,
        change: &Change,
        before: Seen,
        goal: Goal,
    ) -> Result<Vec<String>, DoorError> {
        let machine = self.machine;
        let coupled = look::coupled(machine, change);
        let intent = Entry::Intent { step, before, goal: goal.clone(), coupled: coupled.clone() };
        self.journal.append(machine, vec![intent])?;
        let wrote = self.change(step, change);
        let now = seen(self.machine, change)?;
        let after = look::coupled(machine, change);
        let moved = (after != coupled).then(|| moved_note(coupled.as_ref(), after.as_ref()));
        let there = wrote.is_ok() && is_there(change, &goal, &now, &self.journal.mount_source(step));
        self.journal.append(machine, vec![Entry::ReadBack { step, now, coupled: after }])?;
        let mut notes = wrote.map_err(|error| denied(change.place(), &error))?;
        if !there {
            return Err(DoorError::No(format!("{} did not take the change", change.place())));
        }
        notes.extend(moved);
        if change.place().rsplit_once('/').is_some_and(|(directory, _)| content::unit_directory(directory)) {
            notes.push("counts after `systemctl daemon-reload` and a restart of the service".to_string());
        }
        Ok(notes)
    }

    fn change(&self, step: usize, change: &Change) -> std::io::Result<Vec<String>> {
        let machine = self.machine;
        let none = |()| Vec::new();
        match change {
            Change::Add { .. } => Ok(Vec::new()),
            Change::Choose { file, word } => machine.write(file, word).map(none),
            Change::Set { file, value } => machine.write(file, &value.to_string()).map(none),
            Change::Create { file, content } => {
                machine.create(file, &content::text(content), FILE_MODE).map(none)
            }
            Change::Directory { path } => machine.make_directory(path).map(none),
            Change::MountTmpfs { at, options } => {
                machine.mount_tmpfs(at, &self.journal.mount_source(step), options).map(none)
            }
            Change::CopyTree { from, to, linked } => {
                let bytes = machine.copy_tree(from, to, linked)?;
                Ok(vec![format!("{bytes} bytes copied from {from}")])
            }
            Change::SwapFile { file, bytes } => machine.swap_on(file, *bytes).map(none),
            Change::MemoryGroup { path, limit_bytes } => machine.make_group(path, *limit_bytes).map(none),
        }
    }
}

fn is_there(change: &Change, goal: &Goal, now: &Seen, source: &str) -> bool {
    match (change, now) {
        (Change::MountTmpfs { .. }, Seen::Mount { source: one }) => one == source,
        (Change::Directory { .. } | Change::CopyTree { .. }, Seen::Directory { .. }) => true,
        _ => reached(goal, now),
    }
}

fn moved_note(before: Option<&Coupled>, after: Option<&Coupled>) -> String {
    let text = |one: Option<&Coupled>| one.map_or("?".to_string(), |one| one.text.trim().to_string());
    let file = before.or(after).map_or("", |one| one.file.as_str());
    format!("the kernel moved {file} from {} to {} with it", text(before), text(after))
}
