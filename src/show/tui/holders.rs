//! Who holds malloc's blocks of one JVM. That takes long to read, so it is read when it is shown first and when the user asks
//! again, never with each sample; its age is in the head.

use super::history::Kept;
use super::model::{Action, Model, Tab};
use super::rows::Row;
use crate::base::{Bytes, Known};
use crate::jvm;
use crate::measure::look::{growth, rate};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Held {
    /// The time, in seconds of the samples.
    pub at: f64,
    pub holders: Known<Vec<jvm::Held>>,
    /// The ones that were read before, and when.
    before: Option<(f64, Vec<jvm::Held>)>,
}

impl Model {
    pub(super) fn learn_holders(&mut self, pid: i32, at: f64, holders: Known<Vec<jvm::Held>>) {
        self.awaited = None;
        let Some(kept) = self.jvms.get_mut(&pid) else { return };
        let before = kept.held.take().and_then(|last| match last.holders {
            Ok(holders) => Some((last.at, holders)),
            Err(_) => last.before,
        });
        kept.held = Some(Held { at, holders, before });
    }

    /// The first time that they are to be shown.
    pub(super) fn read_holders(&mut self) -> Option<Action> {
        let pid = self.pid_of_holders()?;
        let is_known = self.jvms.get(&pid).is_some_and(|kept| kept.held.is_some());
        if is_known || self.awaited == Some(pid) {
            return None;
        }
        self.read_holders_again()
    }

    pub(super) fn read_holders_again(&mut self) -> Option<Action> {
        self.awaited = Some(self.pid_of_holders()?);
        self.awaited.map(Action::Holders)
    }

    /// `None`: something else is shown.
    fn pid_of_holders(&self) -> Option<i32> {
        self.pid().filter(|_| self.tab == Tab::Holders)
    }

    /// "holders read 12 s ago, r reads them again".
    pub(super) fn holders_age(&self) -> Option<String> {
        let pid = self.pid_of_holders()?;
        if self.awaited == Some(pid) {
            return Some("reading the holders ...".to_string());
        }
        let held = self.jvms.get(&pid)?.held.as_ref()?;
        Some(format!("holders read {:.0} s ago, r reads them again", (self.at - held.at).max(0.0)))
    }
}

pub(super) fn rows(kept: &Kept) -> Vec<Row> {
    let Some(Held { at, holders: Ok(holders), before }) = &kept.held else { return Vec::new() };
    let known: Option<BTreeMap<_, Bytes>> = before.as_ref().map(|(_, holders)| {
        holders.iter().map(|held| ((&held.holder, held.how, held.is_mapping), held.bytes)).collect()
    });
    let seconds = before.as_ref().map_or(0.0, |(before, _)| at - before);
    let row = |held: &jvm::Held| {
        let last = known
            .as_ref()
            .map(|known| known.get(&(&held.holder, held.how, held.is_mapping)).copied().unwrap_or(0));
        Row {
            name: held.holder.clone(),
            resident_bytes: Some(held.bytes),
            blocks: Some(held.blocks),
            rate: rate(last, Some(held.bytes), seconds),
            since_mark: growth(last, Some(held.bytes)),
            detail: Some(match held.of_what() {
                Some(what) => format!("{}, {what}", held.how_in_words()),
                None => held.how_in_words(),
            }),
            ..Row::default()
        }
    };
    holders.iter().map(row).collect()
}

#[cfg(test)]
#[path = "holders_tests.rs"]
pub(super) mod tests;
