//! The state of this node: each JVM as it was seen last. The watch writes it, and whoever answers a request reads it, so that no
//! request makes anything be read of a JVM.

use super::history::{History, MomentRow};
use super::own::Own;
use super::summary::{AreaNow, FoundNow, Summary};
use crate::base::Bytes;
use crate::map::rows::{Measure, Subject};
use crate::os::cgroup::short;
use crate::os::identity::Identity;
use crate::os::pressure::Pressure;
use crate::record::Key;
use crate::record::figures::Figures;
use crate::record::writer::{Ending, JvmFacts};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Letters of the label `jvm`.
const NAME_LETTERS_MAX: usize = 120;
/// Ended JVMs that are still listed.
const ENDED_MAX: usize = 50;

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
    pub found_at: Instant,
    /// How old it was then.
    pub age_then: Option<Duration>,
    /// Figures of the whole process.
    figures: HashMap<Measure, u64>,
    pub account: Option<AccountNow>,
    pub findings: Vec<FoundNow>,
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
    pub ended_ms: i64,
    pub ending: Ending,
    pub last: Option<MomentRow>,
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
}

/// Shared by the watch and by whoever answers.
#[derive(Debug)]
pub struct Node {
    state: Mutex<State>,
    /// Younger JVMs are not shown: they would come and go.
    min_age: Duration,
    /// Compressed accounts that are kept take up to this.
    documents_bytes_max: Bytes,
}

impl Node {
    pub fn new(min_age: Duration, documents_bytes_max: Bytes) -> Node {
        Node { state: Mutex::default(), min_age, documents_bytes_max }
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
        let mut state = self.state();
        let name = state.free_name(facts, &who);
        state.version += 1;
        state.jvms.insert(
            number,
            JvmNow {
                facts: facts.clone(),
                who,
                name,
                started_seconds,
                found_at: Instant::now(),
                age_then: age,
                figures: HashMap::new(),
                account: None,
                findings: Vec::new(),
                history: History::default(),
                unread: None,
            },
        );
    }

    /// Who it is, where that is better known now.
    pub fn learned(&self, number: u64, facts: &JvmFacts) {
        let mut state = self.state();
        let Some(mut jvm) = state.jvms.remove(&number) else { return };
        if jvm.facts.name() != facts.name() {
            jvm.name = state.free_name(facts, &jvm.who);
        }
        jvm.facts = facts.clone();
        state.jvms.insert(number, jvm);
    }

    /// A sample.
    pub fn looked(&self, number: u64, wall_ms: i64, figures: &Figures) {
        let mut state = self.state();
        state.version += 1;
        let Some(jvm) = state.jvms.get_mut(&number) else { return };
        // What is not known now is not what it was.
        for (Key { subject, measure }, value) in figures {
            if *subject == Subject::Process {
                match value {
                    Some(value) => jvm.figures.insert(*measure, *value),
                    None => jvm.figures.remove(measure),
                };
            }
        }
        let is_new =
            jvm.account.as_ref().is_some_and(|account| account.at.elapsed() < Duration::from_millis(100));
        let areas = jvm.account.as_ref().filter(|_| is_new);
        let row = MomentRow {
            at_ms: wall_ms,
            kernel_resident_bytes: jvm.figure(Measure::KernelResident),
            heap_used_bytes: jvm.figure(Measure::HeapUsed),
            group_held_bytes: jvm.figure(Measure::GroupCurrent),
            group_limit_bytes: jvm.figure(Measure::GroupLimit),
            areas: areas
                .map(|account| account.summary.areas.iter().map(|area| area.resident_bytes).collect()),
        };
        jvm.history.add(row);
    }

    /// An account.
    pub fn read(&self, number: u64, summary: Summary, findings: Vec<FoundNow>, document: Option<Vec<u8>>) {
        let mut state = self.state();
        let others: Bytes = state
            .jvms
            .iter()
            .filter(|(other, _)| **other != number)
            .map(|(_, jvm)| jvm.document_bytes())
            .sum();
        let room = self.documents_bytes_max.saturating_sub(others);
        let Some(jvm) = state.jvms.get_mut(&number) else { return };
        let document = document.filter(|bytes| bytes.len() as Bytes <= room).map(Arc::from);
        jvm.account = Some(AccountNow { at: Instant::now(), summary, document });
        (jvm.findings, jvm.unread) = (findings, None);
        state.version += 1;
    }

    /// An account came to nothing.
    pub fn unread(&self, number: u64, why: String) {
        if let Some(jvm) = self.state().jvms.get_mut(&number) {
            jvm.unread = Some(why);
        }
    }

    pub fn ended(&self, number: u64, wall_ms: i64, ending: Ending) {
        let mut state = self.state();
        let Some(jvm) = state.jvms.remove(&number) else { return };
        state.version += 1;
        if state.ended.len() == ENDED_MAX {
            state.ended.remove(0);
        }
        let last = jvm.history.rows().last().cloned();
        let pid = jvm.facts.pid;
        state.ended.push(EndedJvm { name: jvm.name, who: jvm.who, pid, ended_ms: wall_ms, ending, last });
    }

    /// Whether it is old enough to be shown.
    pub fn is_shown(&self, jvm: &JvmNow) -> bool {
        jvm.age().is_none_or(|age| age >= self.min_age)
    }
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

impl State {
    /// Whether what is not here is not there.
    pub fn is_ready(&self) -> bool {
        self.is_listed
    }

    /// The name of a JVM, with a number where another of the same place has that name.
    fn free_name(&self, facts: &JvmFacts, who: &Who) -> String {
        let name = label(facts);
        let taken =
            |name: &str| self.jvms.values().any(|jvm| jvm.name == name && jvm.who.places() == who.places());
        if !taken(&name) {
            return name;
        }
        let numbered = (2_u32..).map(|number| format!("{name}/{number}"));
        numbered.into_iter().find(|name| !taken(name)).unwrap_or(name)
    }
}

/// The main class without its package, or the jar; no control letters, and not long: it becomes part of every series.
fn label(facts: &JvmFacts) -> String {
    let name = facts.name().unwrap_or("java");
    let file = name.rsplit('/').next().unwrap_or(name);
    let is_class = !file.ends_with(".jar") && !file.contains(' ');
    let short =
        if is_class { file.rsplit('.').next().filter(|last| !last.is_empty()).unwrap_or(file) } else { file };
    let kept: String = short.chars().filter(|letter| !letter.is_control()).take(NAME_LETTERS_MAX).collect();
    if kept.is_empty() { "java".to_string() } else { kept }
}

impl JvmNow {
    pub fn figure(&self, measure: Measure) -> Option<u64> {
        self.figures.get(&measure).copied()
    }

    pub fn age(&self) -> Option<Duration> {
        Some(self.age_then? + self.found_at.elapsed())
    }

    pub fn summary(&self) -> Option<&Summary> {
        self.account.as_ref().map(|account| &account.summary)
    }

    pub fn account_age_seconds(&self) -> Option<f64> {
        self.account.as_ref().map(|account| account.at.elapsed().as_secs_f64())
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

    fn document_bytes(&self) -> Bytes {
        self.account
            .as_ref()
            .and_then(|account| account.document.as_ref())
            .map_or(0, |bytes| bytes.len() as Bytes)
    }

    /// The labels that say which JVM it is, in the order of `catalogue::JVM_LABELS`.
    pub fn labels(&self) -> Vec<(&'static str, String)> {
        let known =
            self.who.places().into_iter().filter_map(|(label, value)| Some((label, value?.to_string())));
        known.chain([("jvm", self.name.clone())]).collect()
    }

    /// The labels of `marusa_jvm_info`.
    pub fn facts_of_it(&self) -> Vec<(&'static str, String)> {
        let summary = self.summary();
        let of = [
            ("jvm_id", self.who.id.clone()),
            ("java_version", self.facts.version.clone()),
            ("gc", self.facts.gc.clone()),
            ("nmt", summary.and_then(|summary| summary.nmt.clone())),
            ("libc", summary.and_then(|summary| summary.libc.clone())),
            ("pages", summary.and_then(|summary| summary.pages).map(str::to_string)),
            ("container_id", self.who.of.container_id.clone()),
            ("pod_uid", self.who.of.pod_uid.clone()),
            ("workload", self.who.of.workload.clone()),
        ];
        of.into_iter().filter_map(|(label, value)| Some((label, value?))).collect()
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
