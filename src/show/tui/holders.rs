//! Who holds malloc's blocks of one JVM. That takes long to read, so it is read when it is shown first and when the user asks
//! again, never with each sample; its age is in the head.

use super::history::Held;
use super::model::{Action, Model, Tab};
use crate::base::Known;
use crate::jvm;

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

#[cfg(test)]
#[path = "holders_tests.rs"]
pub(super) mod tests;
