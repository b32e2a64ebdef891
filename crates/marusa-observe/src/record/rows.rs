//! A recording as one flat table: a line for the process at each moment, for each area, part, arena, library and group of
//! threads at each moment at which the account was read anew, and for each holder and class where these were. What is exported are
//! these lines, whatever the form of the file.

use super::history::{History, Recording};
use super::key::{Key, Measure, Subject};
use crate::map::Area;
use std::collections::BTreeMap;

/// One line. What a subject does not have is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// By the clock on the wall, since 1970.
    pub time_ms: i64,
    /// By the one that never jumps, since the recording began.
    pub steady_ms: u64,
    pub pid: i32,
    pub main: Option<&'a str>,
    /// "process", "area", "part", "arena", "library", "threads", and the words of `Named`.
    pub subject: &'static str,
    pub area: Option<&'static str>,
    pub name: Option<String>,
    /// For a holder, and for a class, the age of the reading that its figures are from.
    pub account_age_ms: Option<u64>,
    /// In the order of `columns`.
    pub values: Vec<Option<u64>>,
}

/// The measures that are columns, after the first eight.
pub fn columns() -> Vec<Measure> {
    let is_column = |measure: &Measure| !Measure::CLOCKS.contains(measure);
    Measure::ALL.iter().copied().filter(is_column).collect()
}

/// The names of the columns before those of `columns`.
pub const FIRST: [&str; 8] =
    ["time", "steady_ms", "pid", "main", "subject", "area", "name", "account_age_ms"];

/// Hands on each line, JVM after JVM, in the order of time.
pub fn each<E>(recording: &Recording, mut visit: impl FnMut(&Row) -> Result<(), E>) -> Result<(), E> {
    let columns = columns();
    for history in &recording.jvms {
        let mut subjects: BTreeMap<&Subject, Vec<(usize, &Key)>> = BTreeMap::new();
        for key in history.keys() {
            if let Some(column) = columns.iter().position(|measure| *measure == key.measure) {
                subjects.entry(&key.subject).or_default().push((column, key));
            }
        }
        let reads = Measure::CLOCKS.map(|clock| (clock, history.reads(clock)));
        for at in 0..history.len() {
            let is_new = reads.each_ref().map(|(clock, reads)| (*clock, reads.binary_search(&at).is_ok()));
            for (subject, keys) in &subjects {
                let is_shown = **subject == Subject::Process || is_new.contains(&(subject.clock(), true));
                if !is_shown {
                    continue;
                }
                let row = row(history, at, subject, keys, columns.len());
                if row.values.iter().any(Option::is_some) {
                    visit(&row)?;
                }
            }
        }
    }
    Ok(())
}

/// The moments at which a subject has a row.
pub fn moments_of(history: &History, subject: &Subject) -> Vec<usize> {
    match subject {
        Subject::Process => (0..history.len()).collect(),
        _ => history.reads(subject.clock()),
    }
}

fn row<'a>(
    history: &'a History,
    at: usize,
    subject: &Subject,
    keys: &[(usize, &Key)],
    columns: usize,
) -> Row<'a> {
    let mut values = vec![None; columns];
    for (column, key) in keys {
        values[*column] = history.value(key, at);
    }
    let moment = history.moments[at];
    let age = history.age_ms(subject.clock(), at);
    Row {
        time_ms: moment.wall_ms,
        steady_ms: moment.steady_ms,
        pid: history.facts.pid,
        main: history.facts.main.as_deref(),
        subject: subject.word(),
        area: subject.area().map(Area::name),
        name: subject.name(),
        account_age_ms: age,
        values,
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
