//! The state of this node: each JVM as it was seen last. The watch writes it, and whoever answers a request reads it, so that no
//! request makes anything be read of a JVM.

use super::jvm::{AccountNow, EndedJvm, JvmNow, STALE, Who, bounded, label};
use super::own::Own;
use super::summary::{FoundNow, Summary};
use crate::base::Bytes;
use crate::os::pressure::Pressure;
use crate::record::figures::Figures;
use crate::record::writer::{Ending, JvmFacts};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Ended JVMs that are still listed.
const ENDED_MAX: usize = 50;
/// The part of the memory budget that accounts may take, and the same for samples and for requests that wait to be pushed. The
/// last part is for what is read and answered at the moment.
const MEMORY_PART: Bytes = 4;
/// A sample that is missed twice may come late; then nothing is known.
const SAMPLES_MISSED: u32 = 3;

/// What is kept, and shown.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Younger JVMs are not shown: they would come and go.
    pub min_age: Duration,
    /// Between two samples.
    pub every: Duration,
    /// Of the whole service.
    pub memory_bytes: Bytes,
}

impl Limits {
    /// What each of the stores may take.
    pub fn part_bytes(&self) -> Bytes {
        self.memory_bytes / MEMORY_PART
    }
}

/// What is known of the host.
#[derive(Clone, Debug, Default)]
pub struct NodeNow {
    pub waited: Option<Pressure>,
    pub stalls: Vec<(&'static str, u64)>,
    pub huge_capable_bytes: Option<Bytes>,
    pub memory_bytes: Option<Bytes>,
    pub available_bytes: Option<Bytes>,
    /// Setting and value, by the label.
    pub thp: BTreeMap<&'static str, String>,
    pub findings: Vec<FoundNow>,
}

#[derive(Debug, Default)]
pub struct State {
    /// By the watch's number.
    pub jvms: BTreeMap<u64, JvmNow>,
    pub ended: Vec<EndedJvm>,
    pub node: NodeNow,
    pub own: Own,
    /// Rises with each change.
    pub version: u64,
    /// The JVMs of the host were listed at least once.
    pub is_listed: bool,
    /// All kept documents.
    document_bytes: Bytes,
}

/// Shared by the watch and by whoever answers.
#[derive(Debug)]
pub struct Node {
    state: Mutex<State>,
    limits: Limits,
}

impl Node {
    pub fn new(limits: Limits) -> Node {
        Node { state: Mutex::default(), limits }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn found(
        &self,
        number: u64,
        facts: &JvmFacts,
        who: Who,
        started_seconds: Option<f64>,
        age: Option<Duration>,
    ) {
        let facts = bounded(facts);
        let mut state = self.state();
        let name = state.free_name(&facts, &who);
        let fresh_for = STALE.max(self.limits.every * SAMPLES_MISSED);
        let jvm = JvmNow::new(facts, who, name, fresh_for).since(started_seconds, age);
        state.version += 1;
        state.jvms.insert(number, jvm);
    }

    /// Who it is, where that is better known now.
    pub fn learned(&self, number: u64, facts: &JvmFacts) {
        let facts = bounded(facts);
        let mut state = self.state();
        let Some(mut jvm) = state.jvms.remove(&number) else { return };
        if jvm.facts.name() != facts.name() {
            jvm.name = state.free_name(&facts, &jvm.who);
        }
        jvm.facts = facts;
        state.jvms.insert(number, jvm);
    }

    /// A sample; empty where nothing could be read.
    pub fn looked(&self, number: u64, figures: &Figures) {
        let mut state = self.state();
        state.version += 1;
        let history_bytes_max = self.limits.part_bytes() / state.jvms.len().max(1) as Bytes;
        if let Some(jvm) = state.jvms.get_mut(&number) {
            jvm.looked(figures, history_bytes_max);
        }
    }

    /// An account.
    pub fn read(&self, number: u64, summary: Summary, findings: Vec<FoundNow>, document: Option<Vec<u8>>) {
        let mut state = self.state();
        let Some(before) = state.jvms.get(&number).map(JvmNow::document_bytes) else { return };
        let others = state.document_bytes.saturating_sub(before);
        let room = self.limits.part_bytes().saturating_sub(others);
        let document = document.filter(|bytes| bytes.len() as Bytes <= room).map(Arc::from);
        state.document_bytes = others + document.as_ref().map_or(0, |bytes: &Arc<[u8]>| bytes.len() as Bytes);
        if let Some(jvm) = state.jvms.get_mut(&number) {
            jvm.read(AccountNow { at: Instant::now(), summary, document, findings });
        }
        state.version += 1;
    }

    /// An account came to nothing.
    pub fn unread(&self, number: u64, why: String) {
        if let Some(jvm) = self.state().jvms.get_mut(&number) {
            jvm.unread = Some(why);
        }
    }

    pub fn ended(&self, number: u64, ending: Ending) {
        let mut state = self.state();
        let Some(jvm) = state.jvms.remove(&number) else { return };
        state.version += 1;
        state.document_bytes = state.document_bytes.saturating_sub(jvm.document_bytes());
        if state.ended.len() == ENDED_MAX {
            state.ended.remove(0);
        }
        let (last, pid) = (jvm.history.rows().next_back().cloned(), jvm.facts.pid);
        let ended_at = Instant::now();
        state.ended.push(EndedJvm { name: jvm.name, who: jvm.who, pid, ended_at, ending, last });
    }

    /// Whether it is old enough to be shown.
    pub fn is_shown(&self, jvm: &JvmNow) -> bool {
        jvm.age().is_none_or(|age| age >= self.limits.min_age)
    }
}

impl State {
    /// Whether what is not here is not there.
    pub fn is_ready(&self) -> bool {
        self.is_listed
    }

    /// The name of a JVM, with a number where another of the same place has that name.
    fn free_name(&self, facts: &JvmFacts, who: &Who) -> String {
        let name = label(facts);
        let places = who.places();
        let taken: HashSet<&str> = self
            .jvms
            .values()
            .filter(|jvm| jvm.name.starts_with(&name) && jvm.who.places() == places)
            .map(|jvm| jvm.name.as_str())
            .collect();
        if !taken.contains(name.as_str()) {
            return name;
        }
        // One more than there are names taken is enough.
        let numbered = (2..=taken.len() + 2).map(|number| format!("{name}/{number}"));
        numbered.into_iter().find(|name| !taken.contains(name.as_str())).unwrap_or(name)
    }
}

impl NodeNow {
    pub fn thp_labels(&self) -> Option<Vec<(&'static str, String)>> {
        let labels: Vec<_> = self.thp.iter().map(|(label, value)| (*label, value.clone())).collect();
        (!labels.is_empty()).then_some(labels)
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
