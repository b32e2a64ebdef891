//! Takes the steps of a run back, the last first. Each is looked at again: only what is still as this run left it goes back
//! to what it was; of a sum, only our part; and what others changed stays and is reported. Doing it twice, or again after it
//! was cut short, gives the same.

use super::history::{self, History};
use super::journal::{self, Coupled, Entry, Goal, How, Seen};
use super::look::{coupled, see, seen};
use super::machine::{Machine, kernel_text};
use super::number::{self, Decision};
use super::step::Change;
use super::store::Journal;
use super::{DoorError, allowed, denied};
use std::io;
use std::time::Duration;

/// A step that was undone, or why not.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct TakenBack {
    #[serde(skip)]
    pub step: usize,
    pub before: Option<Seen>,
    #[serde(rename = "after")]
    pub now: Option<Seen>,
    pub how: How,
    pub notes: Vec<String>,
}

/// How often, and how long after each other, it is tried to remove a group whose processes are about to end.
const GROUP_LOOKS: u32 = 40;
const GROUP_PAUSE: Duration = Duration::from_millis(50);

/// By how much other runs have moved the number in a file since a moment.
pub type Drift<'a> = dyn Fn(&str, u64) -> i128 + 'a;

/// What one step came to: how, what is there now, notes.
type Back = (How, Option<Seen>, Vec<String>);

/// The step that is undone.
struct Turn<'a> {
    step: usize,
    change: &'a Change,
    history: &'a History,
}

fn left(now: Seen, why: impl Into<String>) -> Result<Back, DoorError> {
    Ok((How::Left, Some(now), vec![why.into()]))
}

struct Taking<'a> {
    machine: &'a dyn Machine,
    journal: &'a mut Journal,
    drift: &'a Drift<'a>,
}

/// Returns what was done with each step that was begun, and whether nothing of the run is left.
pub fn take_back(
    machine: &dyn Machine,
    journal: &mut Journal,
    drift: &Drift,
    why: &str,
) -> Result<(Vec<TakenBack>, bool), DoorError> {
    let Some(begin) = journal::begin(&journal.records).cloned() else {
        return Err(DoorError::Broken(format!("{} does not start with a plan", journal.path.display())));
    };
    let boot = machine.boot_id();
    let histories = history::of(&journal.records, begin.steps.len());
    journal.append(machine, vec![Entry::UndoBegin { why: why.to_string(), boot: boot.clone() }])?;
    let mut taking = Taking { machine, journal, drift };
    let (mut all, mut complete) = (Vec::new(), true);
    for (step, history) in histories.iter().enumerate().rev().filter(|(_, history)| !history.is_over()) {
        let change = &begin.steps[step].change;
        let before = see(machine, change).ok();
        let (how, now, notes) = if boot != begin.boot && change.ends_with_boot() {
            (How::Gone, None, vec!["gone with the restart of the host".to_string()])
        } else {
            taking.step(&Turn { step, change, history })?
        };
        complete &= how != How::Left;
        let entry = Entry::Undone { step, how, now: now.clone(), notes: notes.clone() };
        taking.journal.append(machine, vec![entry])?;
        all.push(TakenBack { step, before, now, how, notes });
    }
    journal.append(machine, vec![Entry::UndoEnd { complete }])?;
    Ok((all, complete))
}

impl Taking<'_> {
    fn step(&mut self, turn: &Turn) -> Result<Back, DoorError> {
        match turn.change {
            Change::Add { file, .. } => self.sum(turn, file),
            Change::Choose { .. } | Change::Set { .. } => self.choice(turn),
            Change::Create { file, .. } => self.file(turn, file),
            Change::Directory { path } => self.directory(turn, path),
            Change::MountTmpfs { at, .. } => self.mount(turn, at),
            Change::CopyTree { .. } => {
                Ok((How::Restored, None, vec!["goes with the tmpfs that it is on".to_string()]))
            }
            Change::SwapFile { file, .. } => self.swap(turn, file),
            Change::MemoryGroup { path, .. } => self.group(turn, path),
        }
    }

    fn intend(
        &mut self,
        step: usize,
        before: Seen,
        goal: Goal,
        coupled: Option<Coupled>,
    ) -> Result<(), DoorError> {
        self.journal.append(self.machine, vec![Entry::UndoIntent { step, before, goal, coupled }])
    }

    fn sum(&mut self, turn: &Turn, file: &str) -> Result<Back, DoorError> {
        let before = seen(self.machine, turn.change)?;
        let Seen::Number { value: now, .. } = before else {
            return Ok((How::Left, Some(before), Vec::new()));
        };
        let going = turn.history.back.as_ref().and_then(|back| match (&back.before, &back.goal) {
            (Seen::Number { value: from, .. }, Goal::Number { value: to }) => Some((*from, *to)),
            _ => None,
        });
        let decision = match going {
            Some((from, to)) => number::go_on(from, to, now),
            None => number::without_ours(&turn.history.rounds, now, (self.drift)(file, turn.history.at_ns)),
        };
        let (to, note) = match decision {
            Decision::Nothing(how, note) => return Ok((how, Some(before), note.into_iter().collect())),
            Decision::Write(to, note) => (to, note),
        };
        let lent = number::lent(self.machine, file).filter(|_| number::is_pool(file));
        self.intend(turn.step, before, Goal::Number { value: to }, None)?;
        self.machine.write(file, &to.to_string()).map_err(|error| denied(file, &error))?;
        let after = seen(self.machine, turn.change)?;
        let mut notes: Vec<String> = note.into_iter().collect();
        let in_use =
            number::lent(self.machine, file).zip(lent).map_or(0, |(now, was)| now.saturating_sub(was));
        if in_use > 0 {
            notes.push(format!(
                "{in_use} of the pages are in use; they go back when the programs that hold them end"
            ));
        }
        let how = match after {
            Seen::Number { value, .. } if value == to => How::Restored,
            _ => {
                notes.push(format!("the kernel did not take {to}"));
                How::Left
            }
        };
        Ok((how, Some(after), notes))
    }

    fn choice(&mut self, turn: &Turn) -> Result<Back, DoorError> {
        let Turn { change, history, .. } = *turn;
        let Some(round) = history.rounds.last() else { return Ok((How::NotMade, None, Vec::new())) };
        let here = coupled(self.machine, change);
        let now = seen(self.machine, change)?;
        if same(&now, &round.before) {
            let how = match (&history.back, &round.after) {
                (Some(_), _) => How::Restored,
                (None, Some(_)) => How::Gone,
                (None, None) => How::NotMade,
            };
            // What an undo that was cut short did not come to.
            let wanted = history.back.as_ref().and_then(|back| back.coupled.as_ref());
            return Ok((how, Some(now), self.restore_coupled(wanted)?));
        }
        if !super::look::reached(&round.goal, &now) {
            let note = format!("others changed it to {}; it stays", text(&now));
            return left(now, note);
        }
        let wanted = wanted_coupled(history, here);
        let goal = match &round.before {
            Seen::Word { word, .. } => Goal::Word { word: word.clone() },
            Seen::Number { value, .. } => Goal::Number { value: *value },
            _ => return Ok((How::Left, Some(now), Vec::new())),
        };
        let written = text(&round.before);
        self.intend(turn.step, now, goal, wanted.clone())?;
        self.machine.write(change.place(), &written).map_err(|error| denied(change.place(), &error))?;
        let notes = self.restore_coupled(wanted.as_ref())?;
        let after = seen(self.machine, change)?;
        let how = if same(&after, &round.before) { How::Restored } else { How::Left };
        Ok((how, Some(after), notes))
    }

    /// The number that the kernel moved along goes back too.
    fn restore_coupled(&self, wanted: Option<&Coupled>) -> Result<Vec<String>, DoorError> {
        let Some(wanted) = wanted else { return Ok(Vec::new()) };
        if kernel_text(self.machine, &wanted.file).is_ok_and(|now| now == wanted.text) {
            return Ok(Vec::new());
        }
        let value = wanted.text.trim();
        self.machine.write(&wanted.file, value).map_err(|error| denied(&wanted.file, &error))?;
        Ok(vec![format!("{} is {value} again too", wanted.file)])
    }

    fn file(&mut self, turn: &Turn, file: &str) -> Result<Back, DoorError> {
        let now = seen(self.machine, turn.change)?;
        let whole = turn.history.rounds.last().is_some_and(|round| round.after.is_some());
        match now {
            Seen::Absent => Ok((gone(turn.history), Some(now), Vec::new())),
            Seen::Part if whole => left(now, "others changed it; it stays"),
            Seen::Same | Seen::Part => {
                self.intend(turn.step, now, Goal::Absent, None)?;
                self.machine.remove(file).map_err(|error| denied(file, &error))?;
                Ok((How::Restored, Some(Seen::Absent), Vec::new()))
            }
            _ => left(now, "others changed it; it stays"),
        }
    }

    fn directory(&mut self, turn: &Turn, path: &str) -> Result<Back, DoorError> {
        let now = seen(self.machine, turn.change)?;
        let how = match now {
            Seen::Absent => gone(turn.history),
            Seen::Directory { empty: true } => {
                self.intend(turn.step, now, Goal::Absent, None)?;
                match self.machine.remove_directory(path) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                        return Ok((How::Left, None, vec!["something is mounted on it".to_string()]));
                    }
                    result => result.map_err(|error| denied(path, &error))?,
                }
                How::Restored
            }
            // What other runs need of it is theirs now.
            Seen::Directory { .. } if allowed::is_own(path) => {
                return Ok((How::Gone, Some(now), vec!["it is in use by others now; it stays".to_string()]));
            }
            _ => return left(now, "it is not empty; it stays"),
        };
        Ok((how, Some(Seen::Absent), Vec::new()))
    }

    fn swap(&mut self, turn: &Turn, file: &str) -> Result<Back, DoorError> {
        let now = seen(self.machine, turn.change)?;
        let is_on = match now {
            Seen::Absent => return Ok((gone(turn.history), Some(now), Vec::new())),
            Seen::Same | Seen::Part => now == Seen::Same,
            _ => return left(now, "it is not ours; it stays"),
        };
        self.intend(turn.step, now, Goal::Absent, None)?;
        match is_on.then(|| self.machine.swap_off(file)) {
            Some(Err(error)) if error.raw_os_error() == Some(libc::ENOMEM) => {
                let note = "what is swapped to it does not fit into memory now; end programs and undo again";
                return Ok((How::Left, None, vec![note.to_string()]));
            }
            Some(result) => result.map_err(|error| denied(file, &error))?,
            None => {}
        }
        self.machine.remove(file).map_err(|error| denied(file, &error))?;
        Ok((How::Restored, Some(Seen::Absent), Vec::new()))
    }

    fn group(&mut self, turn: &Turn, path: &str) -> Result<Back, DoorError> {
        let now = seen(self.machine, turn.change)?;
        match now {
            Seen::Absent => return Ok((gone(turn.history), Some(now), Vec::new())),
            Seen::Same => self.intend(turn.step, now, Goal::Absent, None)?,
            _ => return left(now, "it is not ours; it stays"),
        }
        // A process that was killed is in its group until the kernel has cleared it away.
        for _ in 0..GROUP_LOOKS {
            match self.machine.remove_group(path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => self.machine.pause(GROUP_PAUSE),
                result => {
                    result.map_err(|error| denied(path, &error))?;
                    return Ok((How::Restored, Some(Seen::Absent), Vec::new()));
                }
            }
        }
        Ok((How::Left, None, vec![busy(&self.machine.members(path))]))
    }

    fn mount(&mut self, turn: &Turn, at: &str) -> Result<Back, DoorError> {
        let now = seen(self.machine, turn.change)?;
        let ours = self.journal.mount_source(turn.step);
        match &now {
            Seen::Mount { source } if *source == ours => {}
            Seen::Mount { source } => {
                let note = format!("{source} is mounted on it, which is not ours; it stays");
                return left(now, note);
            }
            _ => return Ok((gone(turn.history), Some(now), Vec::new())),
        }
        self.intend(turn.step, now, Goal::Absent, None)?;
        match self.machine.unmount(at) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                Ok((How::Left, None, vec![busy(&self.machine.users(at))]))
            }
            result => {
                result.map_err(|error: io::Error| denied(at, &error))?;
                Ok((How::Restored, Some(seen(self.machine, turn.change)?), Vec::new()))
            }
        }
    }
}

/// It is not there any more: by us, by others, or it never was.
fn gone(history: &History) -> How {
    match (&history.back, history.rounds.last().map(|round| round.after.is_some())) {
        (Some(_), _) => How::Restored,
        (None, Some(true)) => How::Gone,
        (None, _) => How::NotMade,
    }
}

fn busy(users: &[i32]) -> String {
    let pids: Vec<String> = users.iter().map(i32::to_string).collect();
    match pids.is_empty() {
        true => "it is in use; it stays until it is free, and undo is run again".to_string(),
        false => format!("it is in use by pid {}; end them and undo again", pids.join(", ")),
    }
}

/// The value of the number after the step is undone: as before, but where others have set it since.
fn wanted_coupled(history: &History, here: Option<Coupled>) -> Option<Coupled> {
    if let Some(back) = &history.back {
        return back.coupled.clone();
    }
    let round = history.rounds.last()?;
    let before = round.coupled.clone();
    match &round.after {
        Some((_, after)) if *after != here => here,
        _ => before,
    }
}

fn same(one: &Seen, other: &Seen) -> bool {
    match (one, other) {
        (Seen::Word { word: one, .. }, Seen::Word { word: other, .. }) => one == other,
        (Seen::Number { value: one, .. }, Seen::Number { value: other, .. }) => one == other,
        _ => false,
    }
}

fn text(seen: &Seen) -> String {
    match seen {
        Seen::Word { word, .. } => word.clone(),
        Seen::Number { value, .. } => value.to_string(),
        _ => String::new(),
    }
}
