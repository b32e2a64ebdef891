//! What the cheap samples saw after the last account: how old that is, what the process grew by since then, and how the JVM ended.
//! A verdict on areas holds until the last account, so whoever shows one shows this with it.

use super::History;
use super::key::Measure;
use super::moment::Moment;
use super::writer::Ending;
use crate::base::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

/// An account that is older than this when the JVM is looked at last says nothing of the present.
const STALE_SECONDS: f64 = 60.0;
/// What a process grew by since its last account is reported from here on, and from this share of its size.
const GROWN_BYTES: i64 = 16 << 20;
const GROWN_SHARE: f64 = 0.02;
/// A heap whose last collection left at least this share of its maximum in use was full.
pub const FULL_SHARE: f64 = 0.95;

/// The end of a recording's part, as far as samples without an account show it.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Since {
    /// When the last account was read; `None`: none was.
    #[serde(rename = "last_account_at")]
    pub account: Option<String>,
    /// From then, or from the first sample, to the last sample.
    #[serde(rename = "last_account_age_seconds")]
    pub seconds: f64,
    /// When the holders were read last; `None`: they were not.
    #[serde(rename = "last_holders_at")]
    pub holders: Option<String>,
    /// When the classes of the heap's objects were counted last; `None`: they were not.
    #[serde(rename = "last_classes_at")]
    pub classes: Option<String>,
    /// What became resident in that time.
    pub resident_since_bytes: Option<i64>,
    /// Resident at the last sample.
    #[serde(skip)]
    pub resident: Option<Bytes>,
    #[serde(skip)]
    pub ending: Option<(Moment, Ending)>,
    /// In use after the last collection, and the maximum, of a JVM that ended with a full heap.
    #[serde(skip)]
    pub full_heap: Option<(Bytes, Bytes)>,
}

impl Since {
    /// Up to `to_seconds` after the JVM's first moment.
    pub fn of(history: &History, to_seconds: f64) -> Since {
        let Some(last) = (0..history.len()).rev().find(|at| history.seconds(*at) <= to_seconds) else {
            return Since::default();
        };
        let account = history.accounts().into_iter().rev().find(|at| *at <= last);
        let from = account.unwrap_or(0);
        let resident = |at: usize| history.process(Measure::KernelResident, at);
        let grown = resident(from).zip(resident(last)).map(|(before, now)| now as i64 - before as i64);
        let ending = history.ending.filter(|_| last + 1 == history.len());
        let is_gone = ending.is_some_and(|(_, ending)| ending.is_gone());
        let heap = history.process(Measure::HeapUsed, last).zip(history.facts.max_heap_bytes);
        let wall = |at: usize| Some(history.moments.get(at)?.wall());
        let read = |clock| history.reads(clock).into_iter().rev().find(|at| *at <= last).and_then(wall);
        Since {
            account: account.and_then(wall),
            holders: read(Measure::HoldersAt),
            classes: read(Measure::ClassesAt),
            seconds: history.seconds(last) - history.seconds(from),
            resident_since_bytes: grown,
            resident: resident(last),
            ending,
            full_heap: heap.filter(|(used, max)| is_gone && *used as f64 >= *max as f64 * FULL_SHARE),
        }
    }

    /// The last account says nothing of the present.
    pub fn is_stale(&self) -> bool {
        self.account.is_none() || self.seconds > STALE_SECONDS
    }

    /// What became resident since the last account, where that is much.
    pub fn grown(&self) -> Option<i64> {
        let least = GROWN_BYTES.max((self.resident.unwrap_or(0) as f64 * GROWN_SHARE) as i64);
        self.resident_since_bytes.filter(|bytes| *bytes >= least)
    }

    pub fn is_gone(&self) -> bool {
        self.ending.is_some_and(|(_, ending)| ending.is_gone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Area;
    use crate::record::key::{Key, Subject};
    use crate::record::reader;
    use crate::record::writer::{JvmFacts, Scope, Session, Writer};

    const MIB: u64 = 1 << 20;

    /// Samples every ten seconds for ten minutes, 1 MiB a second; accounts until `accounts_end`.
    fn history(accounts_end: u64, heap_used: u64, ending: Ending) -> History {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts { max_heap_bytes: Some(100 * MIB), ..JvmFacts::default() });
        let moment = |second: u64| Moment { steady_ms: second * 1000, wall_ms: (second * 1000) as i64 };
        for second in (0..=600).step_by(10) {
            let mut figures = vec![
                (Key::process(Measure::KernelResident), Some((200 + second) * MIB)),
                (Key::process(Measure::HeapUsed), Some(heap_used)),
            ];
            let mut scope = Scope::Glance;
            if second < accounts_end {
                scope = Scope::Account;
                figures.push((Key::process(Measure::AccountAt), Some(second * 1000)));
                figures.push((Key::of(&Subject::Area(Area::Stack), Measure::Resident), Some(5 * MIB)));
            }
            writer.sample(jvm, moment(second), scope, &figures);
        }
        writer.ended(jvm, moment(605), ending);
        reader::read(&[&writer.take()]).expect("a recording").jvms.remove(0)
    }

    #[test]
    fn an_old_account_says_nothing_of_the_present_and_growth_since_is_seen() {
        let old = Since::of(&history(100, MIB, Ending::NotWatched), f64::INFINITY);
        assert_eq!(old.account.as_deref(), Some("1970-01-01T00:01:30Z"));
        assert_eq!((old.seconds, old.grown(), old.is_stale()), (510.0, Some(510 << 20), true));
        let at_100 = Since::of(&history(100, MIB, Ending::NotWatched), 100.0);
        assert_eq!((at_100.seconds, at_100.grown(), at_100.is_stale()), (10.0, None, false));
        let none = Since::of(&history(0, MIB, Ending::NotWatched), f64::INFINITY);
        assert_eq!((none.account.as_deref(), none.grown(), none.is_stale()), (None, Some(600 << 20), true));
        assert_eq!(Since::of(&History::default(), 1.0), Since::default());
    }

    #[test]
    fn a_full_heap_counts_at_the_end_of_the_jvm_only() {
        let heap = |used, ending| Since::of(&history(1000, used, ending), f64::INFINITY).full_heap;
        assert_eq!(heap(96 * MIB, Ending::Ended), Some((96 * MIB, 100 * MIB)));
        assert_eq!(heap(94 * MIB, Ending::Ended), None);
        assert_eq!(heap(96 * MIB, Ending::NotWatched), None, "it still runs");
        let before = Since::of(&history(1000, 96 * MIB, Ending::Ended), 300.0);
        assert_eq!((before.full_heap, before.is_gone()), (None, false), "asked for an earlier time");
    }
}
