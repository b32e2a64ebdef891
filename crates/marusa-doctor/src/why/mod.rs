//! What fills the memory of a JVM: answers from a few readings of it, ranked. Pure: the samples and the facts in, answers out, so
//! that each judgement is tested without a JVM. What grows comes first, then what is unusually large by the doctor's rules. Growth
//! that every program has while it warms up (code, heap, metadata of one loader) is never an answer.

mod container;
mod counted;
mod grown;
mod heap;
mod jit;
mod large;
mod native;
#[cfg(test)]
mod tests;

use crate::base::Bytes;
use crate::base::printable::escaped;
use crate::doctor::rules::mapped_files_many::{self, Group};
use crate::doctor::{Finding, JvmFacts, Level};
use crate::jvm::ClassObjects;
use crate::map::sums::Sums;
use crate::map::{self, Account, Area};
use crate::os::group_memory::GroupMemory;
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub use grown::Grown;

/// Answers that are given: more is a list of symptoms.
const ANSWERS_MAX: usize = 5;
/// Growth that fills what is left of a limit within this time is critical.
const SOON_HOURS: f64 = 1.0;

/// How sure an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sure {
    /// It may have another cause.
    Possible,
    /// It was seen, and the owner follows from one indirect sign.
    Likely,
    /// It was seen at each sample, and the owner was read.
    Certain,
}

/// One thing that fills the memory. `None`: not known, or, of a rate, that nothing grew while it was watched.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Answer {
    /// "objects that are not closed: java.util.zip.Inflater".
    pub what: String,
    /// The holder, class loader, pool, thread or file.
    pub who: Option<String>,
    pub level: Level,
    /// That it has now.
    pub bytes: Option<Bytes>,
    pub bytes_per_hour: Option<i64>,
    /// How it is known.
    pub how: String,
    pub sure: Sure,
    /// The command, or the option of the JVM, that fixes or proves it.
    pub next: Option<String>,
    /// What to change.
    pub fix: Option<String>,
    /// The rule of the doctor that found it.
    pub finding: Option<&'static str>,
    /// Where its bytes are counted.
    #[serde(skip)]
    pub area: Option<Area>,
}

impl Answer {
    fn new(what: impl Into<String>, who: Option<&str>) -> Answer {
        Answer {
            what: what.into(),
            who: who.map(|who| escaped(who).into_owned()),
            level: Level::Warn,
            bytes: None,
            bytes_per_hour: None,
            how: String::new(),
            sure: Sure::Certain,
            next: None,
            fix: None,
            finding: None,
            area: None,
        }
    }

    fn fixed_by(&mut self, change: &str) {
        self.fix = Some(change.to_string());
    }

    /// By how much it grew, and whether that matters.
    fn growing(mut self, grown: &Grown, seen: &Seen) -> Answer {
        self.bytes_per_hour = Some(grown.per_hour);
        self.sure = self.sure.min(grown.sure);
        let hours = seen.left_bytes().map(|left| left as f64 / grown.per_hour.max(1) as f64);
        self.level = match hours {
            Some(hours) if hours < SOON_HOURS && self.sure > Sure::Possible => Level::Critical,
            _ if self.sure == Sure::Possible => Level::Info,
            _ => Level::Warn,
        };
        self
    }
}

/// One moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Since the first sample.
    pub seconds: f64,
    pub account: Account,
    pub sums: Sums,
    /// Files that the program mapped, by their paths without numbers.
    pub files: BTreeMap<String, Group>,
    /// The cgroup whose limit leaves least; `None`: there is none, or it is not known.
    pub group: Option<GroupMemory>,
    /// Since the JVM's start.
    pub old_collections: Option<u64>,
    /// Out of turn, since the process had grown at once: only good for what comes and goes.
    pub is_extra: bool,
}

impl Look {
    pub fn of(seconds: f64, snapshot: &Snapshot) -> Look {
        let map = map::join(snapshot);
        let account = Account::of(snapshot, &map);
        let classes = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.classes.as_ref().ok());
        let old_collections = classes.and_then(|classes| classes.old_collections);
        let files = mapped_files_many::groups(&snapshot.os.mappings, &map);
        Look { seconds, sums: Sums::of(&account), account, files, old_collections, ..Look::default() }
    }

    fn resident_of(&self, areas: &[Area]) -> f64 {
        areas.iter().map(|area| self.sums.areas.get(area).map_or(0, |sum| sum.resident) as f64).sum()
    }

    fn has_holders(&self) -> bool {
        self.sums.has_all_holders
    }
}

/// All that was seen of one JVM.
pub struct Seen<'a> {
    pub looks: &'a [Look],
    /// As of the last sample.
    pub jvm: Option<&'a JvmFacts>,
    /// The doctor's, of the last sample.
    pub findings: &'a [Finding],
    /// The classes of the Java heap, the largest first, where it is full.
    pub classes: &'a [ClassObjects],
}

impl Seen<'_> {
    fn last(&self) -> Option<&Look> {
        self.looks.last()
    }

    fn pid(&self) -> i32 {
        self.last().map_or(0, |look| look.account.process.pid)
    }

    /// The samples in turn.
    fn regular(&self) -> impl Iterator<Item = &Look> {
        self.looks.iter().filter(|look| !look.is_extra)
    }

    /// The first and the last reading of which the holders of malloc's blocks were read.
    fn detailed(&self) -> (Option<&Look>, Option<&Look>) {
        let last = self.looks.iter().rev().find(|look| look.has_holders());
        let first = self.looks.iter().find(|look| look.has_holders());
        let is_earlier = |look: &&Look| last.is_some_and(|last| look.seconds < last.seconds);
        (first.filter(is_earlier), last)
    }

    /// What may still be taken of the cgroup's limit.
    fn left_bytes(&self) -> Option<Bytes> {
        let group = self.last()?.group.as_ref()?;
        (group.limit_bytes > 0).then(|| group.left_bytes())
    }

    /// Resident bytes of areas over time, where they grow.
    fn grown(&self, areas: &[Area], least: Bytes) -> Option<Grown> {
        let points = self.regular().map(|look| (look.seconds, look.resident_of(areas)));
        grown::of(&points.collect::<Vec<_>>(), least.max(self.least()))
    }

    /// Growth of less than this while it was watched does not matter.
    fn least(&self) -> Bytes {
        const BYTES: Bytes = 2 << 20;
        const PART: Bytes = 1000;
        self.last().map_or(BYTES, |look| BYTES.max(look.account.kernel_or_resident_bytes() / PART))
    }
}

/// What a sample must be followed by for its answers to have owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Who holds malloc's blocks.
    pub holders: bool,
    pub buffers: bool,
}

/// Which details the samples so far ask for. `is_final`: growth must have lasted.
pub fn details(looks: &[Look], is_final: bool) -> Details {
    native::details(looks, is_final)
}

/// Whether the classes of the Java heap are worth a reading.
pub fn is_heap_full(looks: &[Look]) -> bool {
    heap::full(looks).is_some()
}

/// The answers, the worst first.
pub fn answers(seen: &Seen) -> Vec<Answer> {
    let mut grow = counted::answers(seen);
    grow.extend(native::answers(seen, &grow));
    grow.extend(jit::answer(seen));
    grow.extend(container::answers(seen));
    grow.extend(heap::answer(seen));
    let mut large = large::answers(seen, &mut grow);
    let place = |answer: &Answer| {
        (Reverse(answer.sure > Sure::Possible), Reverse(answer.bytes_per_hour), Reverse(answer.bytes))
    };
    grow.sort_by_key(place);
    large.sort_by_key(|answer| (Reverse(answer.level), Reverse(answer.bytes)));
    // A guess comes after what is large for sure.
    let guesses = grow.iter().position(|answer| answer.sure == Sure::Possible).unwrap_or(grow.len());
    let guesses = grow.split_off(guesses);
    let mut all: Vec<Answer> = grow.into_iter().chain(large).chain(guesses).collect();
    all.truncate(ANSWERS_MAX);
    all
}
