//! What is at the place of a step now, and whether the step can be made: nothing is written here.

use super::allowed;
use super::journal::{Coupled, Goal, Seen};
use super::machine::{Lies, Machine, kernel_text};
use super::settings::Takes;
use super::step::{Change, Step};
use super::{DoorError, content, denied, number, room, settings};
use crate::base::{Refused, refuse};
use std::io;

/// A step before it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// `None`: it cannot be known yet, or not be read.
    pub before: Option<Seen>,
    pub goal: Option<Goal>,
    /// It is so already.
    pub already: bool,
    /// Why it cannot be made.
    pub hindrance: Option<DoorError>,
}

/// Each step, as far as it can be known before those before it are made.
pub fn preview(machine: &dyn Machine, steps: &[Step], state_directory: &str) -> Vec<Preview> {
    let one = |(index, step): (usize, &Step)| {
        let hindered = |why| Preview { hindrance: Some(why), ..Preview::default() };
        if let Err(why) = allowed::check(&step.change, state_directory) {
            return hindered(DoorError::Refused(why.0));
        }
        let (earlier, change) = (&steps[..index], &step.change);
        if prepared(change, earlier) {
            let hindrance = room::check(machine, change, earlier).err();
            return Preview { goal: Some(Goal::There), hindrance, ..Preview::default() };
        }
        match see(machine, change) {
            // The door itself makes the state directory.
            Ok(Seen::Absent) if is_directory_in(change, state_directory) => {
                Preview { before: Some(Seen::Absent), goal: Some(Goal::There), ..Preview::default() }
            }
            Ok(seen) => judge(machine, change, seen, earlier),
            Err(error) => hindered(denied(change.place(), &error)),
        }
    };
    steps.iter().enumerate().map(one).collect()
}

fn is_directory_in(change: &Change, directory: &str) -> bool {
    let Change::Directory { path } = change else { return false };
    path.rsplit_once('/').is_some_and(|(parent, _)| parent == directory)
}

/// Whether an earlier step makes what this one stands on.
fn prepared(change: &Change, earlier: &[Step]) -> bool {
    let made = |path: &str| {
        earlier
            .iter()
            .any(|step| matches!(&step.change, Change::Directory { path: directory } if directory == path))
    };
    match change {
        Change::MountTmpfs { at, .. } => made(at),
        Change::CopyTree { .. } => on_own_mount(change, earlier),
        _ => change.place().rsplit_once('/').is_some_and(|(directory, _)| made(directory)),
    }
}

/// A copy is undone with the tmpfs that it lies on.
fn on_own_mount(change: &Change, earlier: &[Step]) -> bool {
    let on = |at: &str| {
        change.place().strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    earlier.iter().any(|step| matches!(&step.change, Change::MountTmpfs { at, .. } if on(at)))
}

fn judge(machine: &dyn Machine, change: &Change, seen: Seen, earlier: &[Step]) -> Preview {
    let judged = goal(change, &seen).and_then(|goal| {
        let already = reached(&goal, &seen);
        if !already {
            can_be_made(machine, change, &seen, earlier)?;
        }
        Ok(Preview { goal: Some(goal), already, ..Preview::default() })
    });
    let judged = judged.unwrap_or_else(|why| Preview { hindrance: Some(why), ..Preview::default() });
    Preview { before: Some(seen), ..judged }
}

/// What the step makes of what is there; an error where it must not be touched.
pub fn goal(change: &Change, seen: &Seen) -> Result<Goal, DoorError> {
    let place = change.place();
    match (change, seen) {
        (Change::Add { by, .. }, Seen::Number { value, .. }) => match value.checked_add(*by) {
            Some(value) if value <= number::VALUE_MAX => Ok(Goal::Number { value }),
            _ => Err(DoorError::Refused(format!("{place} is {value} and cannot become larger by {by}"))),
        },
        (Change::Set { value, .. }, Seen::Number { value: now, .. }) => {
            can_be_put_back(change, seen)?;
            let is_limit = settings::of(place).is_some_and(|one| matches!(one.takes, Takes::Limit { .. }));
            match is_limit && value < now {
                true => Err(DoorError::Refused(format!(
                    "{place} is {now}, and a plan may only raise this limit: {value} is less"
                ))),
                false => Ok(Goal::Number { value: *value }),
            }
        }
        (Change::Choose { word, .. }, Seen::Word { text, .. }) => {
            can_be_put_back(change, seen)?;
            if text.split_whitespace().any(|one| one.trim_matches(['[', ']']) == word) {
                return Ok(Goal::Word { word: word.clone() });
            }
            Err(DoorError::No(format!("{place} has no choice {word:?} in this kernel: {}", text.trim())))
        }
        (Change::Create { .. }, Seen::Absent | Seen::Same)
        | (Change::Directory { .. }, Seen::Absent | Seen::Directory { .. })
        | (Change::MountTmpfs { .. } | Change::CopyTree { .. }, Seen::Directory { empty: true }) => {
            Ok(Goal::There)
        }
        (Change::Create { .. }, Seen::Foreign | Seen::Part) => Err(DoorError::No(format!(
            "{place} is there already and says something else; it is not overwritten"
        ))),
        (Change::SwapFile { .. } | Change::MemoryGroup { .. }, Seen::Absent) => Ok(Goal::There),
        // A leftover of a run that is gone, or of another process: in neither case ours to use.
        (Change::SwapFile { .. } | Change::MemoryGroup { .. }, Seen::Same | Seen::Part) => {
            Err(DoorError::No(format!("{place} is there already")))
        }
        (Change::MountTmpfs { .. }, Seen::Mount { source }) => {
            Err(DoorError::No(format!("{source} is mounted on {place} already")))
        }
        (Change::MountTmpfs { .. } | Change::CopyTree { .. }, Seen::Directory { .. }) => {
            Err(DoorError::No(format!("{place} is not empty")))
        }
        (_, Seen::Absent) => Err(DoorError::No(format!("{place} is not there"))),
        _ => Err(DoorError::Refused(format!("{place} is not what this step changes"))),
    }
}

/// `undo` writes nothing that the table of settings does not have, so what is there now must be in it.
fn can_be_put_back(change: &Change, seen: &Seen) -> Result<(), DoorError> {
    was_before(change, seen)
        .map_err(|why| DoorError::No(format!("{why}; it is so now, and undo could not put it back")))
}

/// Whether a setting may have been so before a step changed it.
pub fn was_before(change: &Change, seen: &Seen) -> Result<(), Refused> {
    let file = change.place();
    match (settings::of(file), seen) {
        (Some(setting), Seen::Number { value, .. }) => setting.takes_number(file, *value),
        (Some(setting), Seen::Word { word, .. }) => setting.takes_word(file, word),
        _ => refuse!("{file} is not a setting that a step changes"),
    }
}

/// Whether there is nothing to do.
pub fn reached(goal: &Goal, seen: &Seen) -> bool {
    match (goal, seen) {
        (Goal::Number { value }, Seen::Number { value: now, .. }) => value == now,
        (Goal::Word { word }, Seen::Word { word: now, .. }) => word == now,
        (Goal::There, Seen::Same) => true,
        _ => false,
    }
}

fn can_be_made(
    machine: &dyn Machine,
    change: &Change,
    seen: &Seen,
    earlier: &[Step],
) -> Result<(), DoorError> {
    let place = change.place();
    let asked = |result: io::Result<()>| result.map_err(|error| denied(place, &error));
    match change {
        Change::Add { .. } | Change::Set { .. } | Change::Choose { .. } => {
            asked(machine.may_write(place))?;
            room::check(machine, change, earlier)
        }
        Change::Directory { .. } if matches!(seen, Seen::Directory { .. }) => Ok(()),
        Change::Directory { .. } | Change::SwapFile { .. } | Change::MemoryGroup { .. } => {
            asked(machine.may_create(place))
        }
        Change::Create { .. } => {
            asked(machine.may_create(place))?;
            room::check(machine, change, earlier)
        }
        Change::MountTmpfs { .. } => room::check(machine, change, earlier),
        Change::CopyTree { .. } if on_own_mount(change, earlier) => Ok(()),
        Change::CopyTree { .. } => Err(DoorError::Refused(format!(
            "{place} is on no tmpfs that an earlier step of the plan mounts; a copy is undone with its tmpfs"
        ))),
    }
}

/// What is there now.
pub fn see(machine: &dyn Machine, change: &Change) -> io::Result<Seen> {
    match change {
        Change::Add { file, .. } | Change::Set { file, .. } => {
            let (text, value) = number::read(machine, file)?;
            Ok(Seen::Number { text, value })
        }
        Change::Choose { file, .. } => {
            let text = kernel_text(machine, file)?;
            let word = crate::os::host::chosen(&text).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Seen::Word { text, word })
        }
        Change::Create { file, content } => see_file(machine, file, &content::text(content)),
        Change::Directory { path } => see_directory(machine, path),
        Change::MountTmpfs { at, .. } => match machine.mounted(at)? {
            Some(source) => Ok(Seen::Mount { source }),
            None => see_directory(machine, at),
        },
        Change::CopyTree { to, .. } => see_directory(machine, to),
        Change::SwapFile { file, .. } => see_swap(machine, file),
        Change::MemoryGroup { path, .. } => Ok(match machine.lies(path)? {
            Lies::Nothing => Seen::Absent,
            Lies::Directory { .. } => Seen::Same,
            Lies::File | Lies::Other => Seen::Other,
        }),
    }
}

/// The same, where a run cannot go on without it.
pub fn seen(machine: &dyn Machine, change: &Change) -> Result<Seen, DoorError> {
    see(machine, change).map_err(|error| denied(change.place(), &error))
}

/// The number that the kernel may move along with this change.
pub fn coupled(machine: &dyn Machine, change: &Change) -> Option<Coupled> {
    let file = allowed::moves_with(change.place()).filter(|_| matches!(change, Change::Choose { .. }))?;
    Some(Coupled { file: file.to_string(), text: kernel_text(machine, file).ok()? })
}

/// In part: a file that is not swapped to, as a crash leaves it while it is filled or after the swap was ended.
fn see_swap(machine: &dyn Machine, file: &str) -> io::Result<Seen> {
    Ok(match machine.lies(file)? {
        Lies::Nothing => Seen::Absent,
        Lies::File if machine.is_swap(file)? => Seen::Same,
        Lies::File => Seen::Part,
        Lies::Directory { .. } | Lies::Other => Seen::Other,
    })
}

fn see_file(machine: &dyn Machine, file: &str, text: &str) -> io::Result<Seen> {
    match machine.lies(file)? {
        Lies::Nothing => Ok(Seen::Absent),
        Lies::File => {
            let there = machine.read(file, text.len() as u64 + 1)?;
            Ok(match () {
                () if there == text.as_bytes() => Seen::Same,
                () if text.as_bytes().starts_with(&there) => Seen::Part,
                () => Seen::Foreign,
            })
        }
        Lies::Directory { .. } | Lies::Other => Ok(Seen::Other),
    }
}

fn see_directory(machine: &dyn Machine, path: &str) -> io::Result<Seen> {
    Ok(match machine.lies(path)? {
        Lies::Nothing => Seen::Absent,
        Lies::Directory { empty } => Seen::Directory { empty },
        Lies::File | Lies::Other => Seen::Other,
    })
}
