//! Adding to a number. Of a pool the kernel gives as many pages as it finds and says nothing of the rest, so what it gave is
//! read back; where it is short, memory is compacted and the rest is asked for again. Only differences are written.

use super::journal::{Entry, Goal};
use super::run::Run;
use super::{DoorError, denied, number};
use crate::base::limits::DOOR_POOL_ROUNDS_MAX;
use std::time::Duration;

const COMPACT: &str = "/proc/sys/vm/compact_memory";
const DROP: &str = "/proc/sys/vm/drop_caches";
/// What compaction gets before the next try: it works on while the write returns.
const PAUSE: Duration = Duration::from_millis(50);

/// Returns notes on what was done in addition to the writing.
pub fn add(run: &mut Run, step: usize, file: &str, by: u64) -> Result<Vec<String>, DoorError> {
    let (mut notes, mut left, mut last) = (Vec::new(), by, None);
    let rounds = if number::is_pool(file) { DOOR_POOL_ROUNDS_MAX } else { 1 };
    for round in 0..rounds {
        if round > 0 {
            notes.extend(ladder(run, round)?);
        }
        let before = number::see_again(run.machine, file)?;
        let from = before.value().unwrap_or(0);
        if last.is_some_and(|last| last != from) {
            notes.push(format!("others changed it in the meantime: it is {from}"));
        }
        let goal = from.checked_add(left).filter(|goal| *goal <= number::VALUE_MAX);
        let goal =
            goal.ok_or_else(|| DoorError::No(format!("{file} is {from} and cannot grow by {left}")))?;
        let intent = Entry::Intent { step, before, goal: Goal::Number { value: goal }, coupled: None };
        run.journal.append(run.machine, vec![intent])?;
        let wrote = run.machine.write(file, &goal.to_string());
        let now = number::see_again(run.machine, file)?;
        last = now.value();
        let gained = last.unwrap_or(0).saturating_sub(from).min(left);
        left -= gained;
        run.journal.append(run.machine, vec![Entry::ReadBack { step, now, coupled: None }])?;
        wrote.map_err(|error| denied(file, &error))?;
        if left == 0 {
            return Ok(notes);
        }
        if run.machine.stopped() {
            return Err(DoorError::No("stopped by a signal".to_string()));
        }
    }
    Err(short(run, file, by, left, last.unwrap_or(0)))
}

/// Helps the kernel to find pages in a row.
fn ladder(run: &Run, round: usize) -> Result<Option<String>, DoorError> {
    let mut done = Vec::new();
    if run.drop_caches && round == 1 {
        // Clean pages of files and what can be freed of the kernel's own: nothing is lost, but it is read again.
        run.machine.write(DROP, "3").map_err(|error| denied(DROP, &error))?;
        done.push("dropped caches");
    }
    if run.machine.write(COMPACT, "1").is_ok() {
        done.push("compacted memory");
    }
    run.machine.pause(PAUSE);
    Ok((round == 1)
        .then(|| format!("the kernel found too few pages at once: {}, asked again", done.join(", "))))
}

fn short(run: &Run, file: &str, by: u64, left: u64, now: u64) -> DoorError {
    let mut why = format!("{file}: only {} of {by} more pages were available", by - left);
    if !number::is_pool(file) {
        return DoorError::No(why);
    }
    if !run.drop_caches {
        why.push_str("; --drop-caches lets the kernel forget cached files first");
    }
    if let Some(parameter) = number::boot_parameter(run.machine, file, now.saturating_add(left)) {
        why.push_str(&format!("; for sure they come by the kernel's command line: {parameter}"));
    }
    DoorError::No(why)
}
