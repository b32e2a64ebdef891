//! What the compilers were at when the JIT's own memory jumped: of an account whose JIT work grew by much since the account
//! before, a recording keeps the methods that were being compiled. Of others it does not: they are a few in each account, and
//! other ones each time.

use super::history::History;
use super::key::{Key, Measure, Subject};
use crate::base::{Bytes, human};
use crate::map::Area;
use crate::map::rows::{Named, Row};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Growth of JIT work between two accounts from which on it is a jump. The arenas of a long method take 5 to 15 MiB.
const JUMP_MIN: Bytes = 8 << 20;
/// Methods that are kept of a jump: those with the largest arenas. A JVM has a dozen compiler threads at most.
const METHODS_MAX: usize = 8;
/// Jumps that are listed: the largest.
const JUMPS_MAX: usize = 10;

/// JIT work as of the account before.
#[derive(Debug, Default)]
pub struct Before(Option<Bytes>);

impl Before {
    /// Takes the methods out of the rows, except at a jump.
    pub fn choose(&mut self, rows: &mut Vec<Row>) {
        let of_work = |(subject, measure, bytes): &Row| {
            bytes.filter(|_| *subject == Subject::Area(Area::JitWork) && *measure == Measure::Resident)
        };
        let now = rows.iter().find_map(of_work);
        let grown = now.unwrap_or(0).saturating_sub(self.0.unwrap_or(u64::MAX));
        self.0 = now;
        let mut kept: Vec<(Reverse<Bytes>, String)> = Vec::new();
        for (subject, measure, bytes) in rows.iter().filter(|_| grown >= JUMP_MIN) {
            if let (Subject::Named(Named::Compiled, name), Measure::InUse) = (subject, measure) {
                kept.push((Reverse(bytes.unwrap_or(0)), name.clone()));
            }
        }
        kept.sort_unstable();
        kept.truncate(METHODS_MAX);
        rows.retain(|(subject, ..)| match subject {
            Subject::Named(Named::Compiled, name) => kept.iter().any(|(_, kept)| kept == name),
            _ => true,
        });
    }
}

/// An account whose JIT work had jumped.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Jump {
    /// RFC 3339.
    pub at: String,
    #[serde(skip)]
    pub moment: usize,
    /// Since the account before.
    pub grown_bytes: Bytes,
    /// That were being compiled, the largest arenas first.
    pub methods: Vec<Compiled>,
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Compiled {
    /// "com.example.Main::run, level 4".
    pub method: String,
    pub arena_bytes: Option<Bytes>,
}

impl Jump {
    /// "com.example.Main::run, level 4 (arenas 12.0 MiB)".
    pub fn methods_in_words(&self) -> String {
        let words = |one: &Compiled| match one.arena_bytes {
            Some(bytes) => format!("{} (arenas {})", one.method, human(bytes)),
            None => one.method.clone(),
        };
        self.methods.iter().map(words).collect::<Vec<_>>().join(" and ")
    }
}

/// The largest first.
pub fn jumps(history: &History) -> Vec<Jump> {
    let mut methods: BTreeMap<usize, Vec<Compiled>> = BTreeMap::new();
    for key in history.keys().iter().filter(|key| key.measure == Measure::Threads) {
        let Subject::Named(Named::Compiled, name) = &key.subject else { continue };
        for (at, _) in history.changes(key).iter().filter(|(_, threads)| threads.is_some()) {
            let arena_bytes = history.value(&Key::of(&key.subject, Measure::InUse), *at as usize);
            methods.entry(*at as usize).or_default().push(Compiled { method: name.clone(), arena_bytes });
        }
    }
    let accounts = history.accounts();
    let work = Key::of(&Subject::Area(Area::JitWork), Measure::Resident);
    let jump = |(moment, mut methods): (usize, Vec<Compiled>)| {
        let before = accounts[..accounts.partition_point(|at| *at < moment)].last()?;
        let grown = history.value(&work, moment)?.checked_sub(history.value(&work, *before)?)?;
        methods.sort_by_key(|one| Reverse(one.arena_bytes));
        methods.truncate(METHODS_MAX);
        let at = history.moments.get(moment)?.wall();
        Some(Jump { at, moment, grown_bytes: grown, methods })
    };
    let mut jumps: Vec<Jump> = methods.into_iter().filter_map(jump).collect();
    jumps.sort_by_key(|jump| (Reverse(jump.grown_bytes), jump.moment));
    jumps.truncate(JUMPS_MAX);
    jumps
}

#[cfg(test)]
#[path = "compiled_tests.rs"]
mod tests;
