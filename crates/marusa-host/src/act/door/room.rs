//! Whether the host has room for what a step sets: a plan may ask for no more huge pages, locked memory or tmpfs than there is
//! memory, and a file below /etc may not make less at the next start of what is there now.

use super::content::{Content, Put, Value};
use super::machine::Machine;
use super::settings::{self, Takes};
use super::step::{Change, Step};
use super::{DoorError, denied, number};
use crate::base::{Bytes, Refused, refuse};
use std::io;

/// What stays with the host when all pools of a file are made at its start: as `pages plan` leaves at least.
fn reserve_bytes(total: Bytes) -> Bytes {
    (total / 20).max(256 << 20)
}

/// `earlier`: the steps that are made before this one, whose memory is gone by then.
pub fn check(machine: &dyn Machine, change: &Change, earlier: &[Step]) -> Result<(), DoorError> {
    match change {
        Change::Add { file, by } if number::is_pool(file) => pool(machine, file, *by, earlier),
        Change::Add { file, by } => overcommit(machine, file, *by),
        Change::Choose { file, .. } => reserve(machine, file),
        Change::Create { file, content } => file_of(machine, file, content),
        Change::MountTmpfs { at, options } => tmpfs(machine, at, options),
        _ => Ok(()),
    }
}

fn no(why: String) -> Result<(), DoorError> {
    Err(DoorError::No(why))
}

/// A pool of more than all memory that is available would only drive every program out of memory.
fn pool(machine: &dyn Machine, file: &str, by: u64, earlier: &[Step]) -> Result<(), DoorError> {
    let bytes = |file: &str, by: u64| Some(by.saturating_mul(number::page_bytes(machine, file)?));
    let (Some(asked), Some(available)) = (bytes(file, by), number::meminfo(machine, "MemAvailable")) else {
        return Ok(());
    };
    let before = earlier.iter().filter_map(|step| match &step.change {
        Change::Add { file, by } if number::is_pool(file) => bytes(file, *by),
        _ => None,
    });
    let taken = before.fold(0, u64::saturating_add);
    if asked.saturating_add(taken) <= available.saturating_mul(1024) {
        return Ok(());
    }
    let with = match taken {
        0 => String::new(),
        taken => format!(" with {} MiB of the steps before", taken >> 20),
    };
    no(format!(
        "{file}: {by} pages more would take {} MiB{with}, and {} MiB are available on this host now",
        asked >> 20,
        available / 1024
    ))
}

/// Pages that are only promised: no more of them than the host has memory.
fn overcommit(machine: &dyn Machine, file: &str, by: u64) -> Result<(), DoorError> {
    let total = number::meminfo(machine, "MemTotal").and_then(|kib| kib.checked_mul(1024));
    let (Some(page), Some(total)) = (number::page_bytes(machine, file), total) else { return Ok(()) };
    match by.saturating_mul(page) <= total {
        true => Ok(()),
        false => {
            no(format!("{file}: {by} pages more are more than the memory of this host, {} MiB", total >> 20))
        }
    }
}

/// What the kernel moves along with a switch of huge pages must be what `undo` may write again.
fn reserve(machine: &dyn Machine, file: &str) -> Result<(), DoorError> {
    let Some(reserve) = super::allowed::moves_with(file) else { return Ok(()) };
    let Ok((_, now)) = number::read(machine, reserve) else { return Ok(()) };
    reserve_fits(now, number::meminfo(machine, "MemTotal")).map_err(|why| DoorError::No(why.0))
}

/// As `undo` puts it back: within its range, and no more than an eighth of the memory. The kernel itself makes it a
/// twentieth at most (mm/khugepaged.c, `set_recommended_min_free_kbytes`).
pub fn reserve_fits(kib: u64, total_kib: Option<u64>) -> Result<(), Refused> {
    let setting = &settings::RESERVE;
    setting.takes_number(setting.file, kib)?;
    match total_kib {
        Some(total) if kib > total / 8 => {
            refuse!("{}: {kib} KiB are more than an eighth of the memory of this host", setting.file);
        }
        _ => Ok(()),
    }
}

fn file_of(machine: &dyn Machine, file: &str, content: &Content) -> Result<(), DoorError> {
    let total = number::meminfo(machine, "MemTotal").and_then(|kib| kib.checked_mul(1024));
    if let Some(total) = total {
        let most = total.saturating_sub(reserve_bytes(total));
        let pages = |put: &Put| Some(put.pages()?.saturating_mul(number::page_bytes(machine, &put.file)?));
        let (pools, promised): (Vec<&Put>, Vec<&Put>) =
            content.settings().iter().partition(|put| number::is_pool(&put.file));
        let taken = pools.into_iter().filter_map(pages).fold(0, u64::saturating_add);
        let promised = promised.into_iter().filter_map(pages).max().unwrap_or(0);
        let locked = content.locked_bytes().max().unwrap_or(0);
        for (bytes, most, what) in [
            (taken, most, "of huge pages at the start of the host"),
            (promised, total, "of huge pages that may be taken"),
            (locked, total, "of locked memory"),
        ] {
            if bytes > most {
                return no(format!("{file}: {} MiB {what} are more than {} MiB", bytes >> 20, most >> 20));
            }
        }
    }
    content.settings().iter().try_for_each(|put| not_less(machine, file, put))
}

/// A file that gives less at the start of the host than there is now would take it from those who need it.
fn not_less(machine: &dyn Machine, file: &str, put: &Put) -> Result<(), DoorError> {
    let is_sum = settings::of(&put.file)
        .is_some_and(|setting| matches!(setting.takes, Takes::Pages | Takes::Limit { .. }));
    let Value::Number(value) = put.value else { return Ok(()) };
    if !is_sum {
        return Ok(());
    }
    let (_, now) = number::read(machine, &put.file).map_err(|error: io::Error| denied(&put.file, &error))?;
    match value >= now {
        true => Ok(()),
        false => no(format!(
            "{file} would set {} to {value} at the next start of the host, and it is {now} now: make the plan again",
            put.file
        )),
    }
}

/// Its pages are memory that only swapping gives back.
fn tmpfs(machine: &dyn Machine, at: &str, options: &str) -> Result<(), DoorError> {
    let size = super::allowed::tmpfs_bytes(options);
    match (size, number::meminfo(machine, "MemAvailable")) {
        (Some(size), Some(available)) if size / 1024 > available => no(format!(
            "{at}: a tmpfs of {} MiB, and {} MiB are available on this host now",
            size >> 20,
            available / 1024
        )),
        _ => Ok(()),
    }
}
