//! One JVM as it was seen last, and what of it is still true: a figure that could not be read the last time is not known any more,
//! so it has no series, and nobody takes an old value for a new one.

use super::history::{History, Row};
use super::summary::{AreaNow, FoundNow, Summary};
use crate::base::Bytes;
use crate::base::printable::acts;
use crate::map::rows::{Measure, Subject};
use crate::os::cgroup::short;
use crate::os::identity::Identity;
use crate::record::Key;
use crate::record::figures::Figures;
use crate::record::writer::{Ending, JvmFacts};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Letters of a label's value.
const LABEL_LETTERS_MAX: usize = 120;
/// Letters of a main class or jar.
pub const TEXT_LETTERS_MAX: usize = 1000;
/// As long as Prometheus takes the last sample of a series for its value (its option --query.lookback-delta). What was seen longer
/// ago than this is old if nothing newer could be read.
pub const STALE: Duration = Duration::from_secs(300);

/// Who a JVM is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Unique over hosts and time; `None`: the target's pid namespace may not be read.
    pub id: Option<String>,
    /// To the platform.
    pub of: Identity,
}

/// The last account of a JVM.
#[derive(Clone, Debug)]
pub struct AccountNow {
    pub at: Instant,
    pub summary: Summary,
    /// The document of `map --json`, compressed by gzip; `None`: there was no room for it.
    pub document: Option<Arc<[u8]>>,
    pub findings: Vec<FoundNow>,
}

/// One JVM as it was seen last.
#[derive(Clone, Debug)]
pub struct JvmNow {
    pub facts: JvmFacts,
    pub who: Who,
    /// The label `jvm`.
    pub name: String,
    /// Seconds since 1970.
    pub started_seconds: Option<f64>,
    found_at: Instant,
    /// How old it was then.
    age_then: Option<Duration>,
    /// Of the last sample: the figures of the whole process.
    figures: HashMap<Measure, u64>,
    sampled_at: Instant,
    /// A sample that is older than this says nothing.
    fresh_for: Duration,
    account: Option<AccountNow>,
    /// The history does not have it yet.
    is_account_new: bool,
    pub history: History,
    /// Why the last attempt to read an account came to nothing.
    pub unread: Option<String>,
}

/// One that is gone.
#[derive(Clone, Debug)]
pub struct EndedJvm {
    pub name: String,
    pub who: Who,
    pub pid: i32,
    pub ended_at: Instant,
    pub ending: Ending,
    pub last: Option<Row>,
}

impl Who {
    /// The labels that say where it runs; of a container without a name, the first digits of its id.
    pub fn places(&self) -> [(&'static str, Option<&str>); 4] {
        let of = &self.of;
        let container = of.container.as_deref().or(of.container_id.as_deref().map(short));
        [
            ("namespace", of.namespace.as_deref()),
            ("pod", of.pod.as_deref()),
            ("container", container),
            ("unit", of.unit.as_deref()),
        ]
    }
}

/// The main class without its package, or the jar.
pub fn label(facts: &JvmFacts) -> String {
    let kept = plain(facts.short_name().unwrap_or("java"));
    if kept.is_empty() { "java".to_string() } else { kept }
}

/// What a program says of itself may be as long as it likes; what is kept of it is not.
pub fn bounded(facts: &JvmFacts) -> JvmFacts {
    let short =
        |text: &Option<String>| text.as_ref().map(|text| text.chars().take(TEXT_LETTERS_MAX).collect());
    JvmFacts {
        main: short(&facts.main),
        server: short(&facts.server),
        container: short(&facts.container),
        version: short(&facts.version),
        gc: short(&facts.gc),
        ..facts.clone()
    }
}

/// As a label's value: not long, since it becomes part of every series, and without letters that act on what shows them.
fn plain(text: &str) -> String {
    let is_plain = |letter: &char| !acts(*letter) && !letter.is_control();
    text.chars().filter(is_plain).take(LABEL_LETTERS_MAX).collect()
}

impl JvmNow {
    pub fn new(facts: JvmFacts, who: Who, name: String, fresh_for: Duration) -> JvmNow {
        let now = Instant::now();
        JvmNow {
            facts,
            who,
            name,
            started_seconds: None,
            found_at: now,
            age_then: None,
            figures: HashMap::new(),
            sampled_at: now,
            fresh_for,
            account: None,
            is_account_new: false,
            history: History::default(),
            unread: None,
        }
    }

    /// When it started, in seconds since 1970, and how old it is now.
    pub fn since(self, started_seconds: Option<f64>, age: Option<Duration>) -> JvmNow {
        JvmNow { started_seconds, age_then: age, ..self }
    }

    /// A sample; empty where nothing could be read. What it does not have is not what it was.
    pub fn looked(&mut self, figures: &Figures, history_bytes_max: Bytes) {
        let of_process = figures.iter().filter(|(key, _)| key.subject == Subject::Process);
        self.figures =
            of_process.filter_map(|(Key { measure, .. }, value)| Some((*measure, (*value)?))).collect();
        self.sampled_at = Instant::now();
        let is_new = std::mem::take(&mut self.is_account_new);
        let account = self.account.as_ref().filter(|_| is_new);
        let figures =
            [Measure::KernelResident, Measure::HeapUsed, Measure::GroupCurrent, Measure::GroupLimit];
        let figures = figures.map(|measure| self.figure(measure));
        self.history.add(
            Row::new(self.sampled_at, figures, account.map(|it| it.summary.areas.as_slice())),
            history_bytes_max,
        );
    }

    pub fn read(&mut self, account: AccountNow) {
        (self.account, self.is_account_new, self.unread) = (Some(account), true, None);
    }

    /// Of the last sample.
    pub fn figure(&self, measure: Measure) -> Option<u64> {
        self.figures.get(&measure).copied().filter(|_| self.sampled_at.elapsed() < self.fresh_for)
    }

    pub fn age(&self) -> Option<Duration> {
        Some(self.age_then? + self.found_at.elapsed())
    }

    /// The last account. One that could not be renewed is given for a while, since its age is given with it.
    pub fn account(&self) -> Option<&AccountNow> {
        self.account.as_ref().filter(|account| self.unread.is_none() || account.at.elapsed() < STALE)
    }

    pub fn summary(&self) -> Option<&Summary> {
        self.account().map(|account| &account.summary)
    }

    pub fn findings(&self) -> &[FoundNow] {
        self.account().map_or(&[], |account| &account.findings)
    }

    pub fn account_age_seconds(&self) -> Option<f64> {
        self.account().map(|account| account.at.elapsed().as_secs_f64())
    }

    pub fn areas(&self) -> impl Iterator<Item = &AreaNow> {
        self.summary().into_iter().flat_map(|summary| &summary.areas)
    }

    pub fn page_sizes(&self) -> impl Iterator<Item = (&'static str, Bytes, Bytes)> {
        let sizes = self.summary().into_iter().flat_map(|summary| &summary.page_sizes);
        sizes.map(|((part, size), bytes)| (*part, *size, *bytes))
    }

    /// As the runtime counts them now, else as the account has it.
    pub fn classes(&self) -> Option<u64> {
        let counted = self.figure(Measure::ClassesLoaded).zip(self.figure(Measure::ClassesUnloaded));
        counted
            .map(|(loaded, unloaded)| loaded.saturating_sub(unloaded))
            .or(self.summary().and_then(|it| it.classes))
    }

    pub fn document_bytes(&self) -> Bytes {
        let document = self.account.as_ref().and_then(|account| account.document.as_ref());
        document.map_or(0, |bytes| bytes.len() as Bytes)
    }

    /// The labels that say which JVM it is, in the order of `catalogue::JVM_LABELS`.
    pub fn labels(&self) -> Vec<(&'static str, String)> {
        let known = self.who.places().into_iter().filter_map(|(label, value)| Some((label, plain(value?))));
        known.chain([("jvm", self.name.clone())]).collect()
    }

    /// The labels of `marusa_jvm_info`.
    pub fn facts_of_it(&self) -> Vec<(&'static str, String)> {
        let (summary, of) = (self.summary(), &self.who.of);
        let of = [
            ("jvm_id", self.who.id.as_deref()),
            ("java_version", self.facts.version.as_deref()),
            ("gc", self.facts.gc.as_deref()),
            ("nmt", summary.and_then(|summary| summary.nmt.as_deref())),
            ("libc", summary.and_then(|summary| summary.libc.as_deref())),
            ("pages", summary.and_then(|summary| summary.pages)),
            ("container_id", of.container_id.as_deref()),
            ("pod_uid", of.pod_uid.as_deref()),
            ("workload", of.workload.as_deref()),
        ];
        of.into_iter().filter_map(|(label, value)| Some((label, plain(value?)))).collect()
    }
}

#[cfg(test)]
#[path = "jvm_tests.rs"]
mod tests;
