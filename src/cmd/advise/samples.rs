//! The figures of one JVM as they come from a store or from Prometheus, in any order, made into the history that a recording of it
//! would be: one kind of source for all that judges.

use crate::os::budget;
use crate::record::history::History;
use crate::record::key::{Key, Measure};
use crate::record::moment::Moment;
use crate::record::reader;
use crate::record::writer::{Ending, JvmFacts, Scope, Session, Writer};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Samples {
    pub facts: JvmFacts,
    /// By the clock on the wall, in milliseconds since 1970.
    moments: BTreeMap<i64, Row>,
    pub ending: Option<(i64, Ending)>,
}

#[derive(Default)]
struct Row {
    figures: Vec<(Key, Option<u64>)>,
    /// How old the account is, of a row that has one.
    account_age_ms: Option<u64>,
}

impl Samples {
    pub fn add(&mut self, wall_ms: i64, key: Key, value: u64) {
        self.moments.entry(wall_ms).or_default().figures.push((key, Some(value)));
    }

    /// The row has an account, which was read that long before.
    pub fn has_account(&mut self, wall_ms: i64, age_ms: u64) {
        self.moments.entry(wall_ms).or_default().account_age_ms = Some(age_ms);
    }

    /// `None`: there is nothing in it.
    pub fn history(self) -> Option<History> {
        let first = *self.moments.keys().next()?;
        let mut writer = Writer::new(&Session { started_ms: first, ..Session::default() });
        let jvm = writer.jvm(self.facts);
        let moment = |wall_ms: i64| Moment { steady_ms: wall_ms.abs_diff(first), wall_ms };
        for (wall_ms, mut row) in self.moments {
            let at = moment(wall_ms);
            let scope = match row.account_age_ms {
                None => Scope::Glance,
                Some(age) => {
                    let read_at = at.steady_ms.saturating_sub(age);
                    row.figures.push((Key::process(Measure::AccountAt), Some(read_at)));
                    Scope::Account
                }
            };
            writer.sample(jvm, at, scope, &row.figures);
        }
        if let Some((wall_ms, ending)) = self.ending {
            writer.ended(jvm, moment(wall_ms.max(first)), ending);
        }
        let read = budget::within(budget::limits(), || reader::read(&[&writer.take()]));
        read.ok()?.jvms.pop()
    }
}
