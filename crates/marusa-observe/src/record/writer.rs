//! Makes the bytes of a recording. Of a sample only what changed is written, as the difference to what was before; what a
//! file needs to be read alone (who records, which JVMs, the names of their series, all their figures) is written at its
//! start.

use super::frame::{self, Kind, MAGIC};
use super::key::{Key, Measure, Subject};
use super::moment::Moment;
use crate::base::Bytes;
use crate::base::varint;
use crate::os::identity::Identity;
use crate::os::pidfd::Exit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Who records, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    pub schema: String,
    /// The same in all files of one recording.
    pub recording: String,
    /// From 0, in the order of the files.
    pub segment: u64,
    pub marusa: String,
    pub kernel: String,
    /// The name of the host.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Samples up to this moment of the steady clock are in the file before, too: they are what a file needs to be read alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_ms: Option<u64>,
    /// When the steady clock stood at 0, by the wall.
    pub started_ms: i64,
    pub every_ms: u64,
    /// The longest time between two accounts.
    pub account_every_ms: u64,
}

pub const SCHEMA: &str = "marusa/record/1";

/// Who a JVM is. Neither its arguments nor its environment: they hold secrets, and files are passed on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JvmFacts {
    pub pid: i32,
    /// Clock ticks after boot: with the pid, the identity.
    pub start_ticks: u64,
    /// RFC 3339.
    pub started: Option<String>,
    /// The main class, jar or module.
    pub main: Option<String>,
    /// "Kafka", where the main class is that of a known server or tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub user: String,
    pub container: Option<String>,
    pub version: Option<String>,
    pub gc: Option<String>,
    pub max_heap_bytes: Option<Bytes>,
    /// Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<i64>,
    /// The name that no other JVM has (`os::identity::jvm_id`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jvm_id: Option<String>,
    #[serde(skip_serializing_if = "Identity::is_empty")]
    pub identity: Identity,
}

impl JvmFacts {
    /// As people call it: the server, else the main class, jar or module.
    pub fn name(&self) -> Option<&str> {
        self.server.as_deref().or(self.main.as_deref())
    }

    /// The main class without its package, or the jar without its directories.
    pub fn short_name(&self) -> Option<&str> {
        let name = self.name()?;
        let file = name.rsplit('/').next().unwrap_or(name);
        let is_class = !file.ends_with(".jar") && !file.contains(' ');
        let last = || file.rsplit('.').next().filter(|last| !last.is_empty());
        Some(if is_class { last().unwrap_or(file) } else { file })
    }
}

/// How a JVM ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It is gone, and how is not known: Linux before 6.15 tells it to the parent alone.
    Ended,
    /// It is gone, by itself or by a signal.
    Exit(Exit),
    /// It is gone, and the kernel OOM-killed in its cgroup since the sample before.
    KilledForMemory,
    /// The recorder looked away first.
    NotWatched,
}

impl Ending {
    pub fn is_gone(self) -> bool {
        self != Ending::NotWatched
    }

    /// "exited with status 1".
    pub fn in_words(self) -> String {
        match self {
            Ending::Ended => "ended".to_string(),
            Ending::Exit(exit) => exit.in_words(),
            Ending::KilledForMemory => "OOM-killed by its memory cgroup".to_string(),
            Ending::NotWatched => "recording ended".to_string(),
        }
    }
}

/// Which figures a sample has: the ones that are not given are as before, or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only what is read each time. The account stays as it was.
    Glance,
    /// All but the holders: what the account does not have any more is gone. The holders stay as they were at
    /// `Measure::HoldersAt`.
    Account,
    /// All of the account, the holders too.
    AccountWithHolders,
    /// Only the classes of the heap's objects, as of `Measure::ClassesAt`: no account changes them.
    Classes,
}

impl Scope {
    /// Whether a figure that the sample does not have is gone.
    fn is_replaced(self, key: &Key) -> bool {
        let is_accounts = key.subject != Subject::Process || key.measure.is_of_account();
        let clock = key.subject.clock();
        match self {
            Scope::Glance => false,
            Scope::Account => is_accounts && clock == Measure::AccountAt,
            Scope::AccountWithHolders => is_accounts && clock != Measure::ClassesAt,
            Scope::Classes => clock == Measure::ClassesAt,
        }
    }
}

/// Makes the bytes, and remembers what was written.
pub struct Writer {
    pending: Vec<u8>,
    last: Moment,
    jvms: BTreeMap<u64, Jvm>,
    next_jvm: u64,
    samples: u64,
}

struct Jvm {
    facts: JvmFacts,
    index: HashMap<Key, usize>,
    keys: Vec<Key>,
    values: Vec<Option<u64>>,
    last: Option<Moment>,
}

impl Writer {
    /// The bytes of a new file.
    pub fn new(session: &Session) -> Writer {
        let mut writer = Writer {
            pending: Vec::new(),
            last: Moment::default(),
            jvms: BTreeMap::new(),
            next_jvm: 0,
            samples: 0,
        };
        writer.pending.extend_from_slice(MAGIC);
        writer.session(session);
        writer
    }

    /// The bytes that go on with a file whose first line is there.
    pub fn append(session: &Session) -> Writer {
        let mut writer = Writer::new(session);
        writer.pending.drain(..MAGIC.len());
        writer
    }

    fn session(&mut self, session: &Session) {
        self.last = Moment { steady_ms: 0, wall_ms: session.started_ms };
        let json = serde_json::to_vec(session).unwrap_or_default();
        frame::put(&mut self.pending, Kind::Session, &json);
    }

    /// What was made since the last call; to be written at once, in one piece.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// The moments of each JVM, as readers count them.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// A JVM, and its number.
    pub fn jvm(&mut self, facts: JvmFacts) -> u64 {
        let number = self.next_jvm;
        self.next_jvm += 1;
        let jvm = Jvm { facts, index: HashMap::new(), keys: Vec::new(), values: Vec::new(), last: None };
        put_jvm(&mut self.pending, number, &jvm.facts);
        self.jvms.insert(number, jvm);
        number
    }

    /// Its facts are known better now.
    pub fn learn(&mut self, number: u64, facts: JvmFacts) {
        if let Some(jvm) = self.jvms.get_mut(&number).filter(|jvm| jvm.facts != facts) {
            jvm.facts = facts;
            put_jvm(&mut self.pending, number, &jvm.facts);
            // The reader begins a JVM anew where it is named again.
            put_all(&mut self.pending, number, jvm, &mut self.last);
        }
    }

    pub fn sample(&mut self, number: u64, at: Moment, scope: Scope, figures: &[(Key, Option<u64>)]) {
        let Some(jvm) = self.jvms.get_mut(&number) else { return };
        let known = jvm.keys.len();
        let mut now = jvm.values.clone();
        for (key, value) in jvm.keys.iter().zip(&mut now) {
            *value = value.filter(|_| !scope.is_replaced(key));
        }
        for (key, value) in figures {
            let at = match jvm.index.get(key) {
                Some(at) => *at,
                // What is not known yet and has no figure needs no name.
                None if value.is_none() => continue,
                None => {
                    jvm.index.insert(key.clone(), jvm.keys.len());
                    jvm.keys.push(key.clone());
                    now.push(None);
                    jvm.keys.len() - 1
                }
            };
            now[at] = *value;
        }
        jvm.values.resize(now.len(), None);
        put_keys(&mut self.pending, number, known, &jvm.keys[known..]);
        put_sample(&mut self.pending, number, self.last, at, &jvm.values, &now);
        jvm.values = now;
        // An account that is done in the millisecond of a sample completes it: readers see one moment.
        self.samples += u64::from(jvm.last.replace(at) != Some(at));
        self.last = at;
    }

    pub fn ended(&mut self, number: u64, at: Moment, ending: Ending) {
        if self.jvms.remove(&number).is_some() {
            let mut start = Vec::new();
            varint::put(&mut start, number);
            self.put(Kind::End, start, at, &serde_json::to_vec(&ending).unwrap_or_default());
        }
    }

    /// What people should know.
    pub fn note(&mut self, at: Moment, text: &str) {
        self.put(Kind::Note, Vec::new(), at, text.as_bytes());
    }

    pub fn close(&mut self, at: Moment) {
        self.put(Kind::Close, Vec::new(), at, &[]);
    }

    fn put(&mut self, kind: Kind, mut payload: Vec<u8>, at: Moment, rest: &[u8]) {
        put_moment(&mut payload, self.last, at);
        payload.extend_from_slice(rest);
        frame::put(&mut self.pending, kind, &payload);
        self.last = at;
    }

    /// Goes on in a new file, whose start has all that is needed to read it alone. Call it with nothing pending.
    pub fn next_segment(&mut self, session: &Session) {
        self.pending.clear();
        self.pending.extend_from_slice(MAGIC);
        let repeated_ms = self.jvms.values().filter_map(|jvm| jvm.last).map(|last| last.steady_ms).max();
        self.session(&Session { repeated_ms, ..session.clone() });
        for (number, jvm) in &self.jvms {
            put_jvm(&mut self.pending, *number, &jvm.facts);
            put_all(&mut self.pending, *number, jvm, &mut self.last);
        }
    }
}

fn put_jvm(into: &mut Vec<u8>, number: u64, facts: &JvmFacts) {
    let mut payload = Vec::new();
    varint::put(&mut payload, number);
    payload.extend(serde_json::to_vec(facts).unwrap_or_default());
    frame::put(into, Kind::Jvm, &payload);
}

/// All names and figures of a JVM as they are, at the moment of its last sample.
fn put_all(into: &mut Vec<u8>, number: u64, jvm: &Jvm, last: &mut Moment) {
    put_keys(into, number, 0, &jvm.keys);
    if let Some(at) = jvm.last {
        let nothing = vec![None; jvm.values.len()];
        put_sample(into, number, *last, at, &nothing, &jvm.values);
        *last = at;
    }
}

fn put_keys(into: &mut Vec<u8>, number: u64, first: usize, keys: &[Key]) {
    if keys.is_empty() {
        return;
    }
    let mut payload = Vec::new();
    varint::put(&mut payload, number);
    varint::put(&mut payload, first as u64);
    varint::put(&mut payload, keys.len() as u64);
    keys.iter().for_each(|key| key.put(&mut payload));
    frame::put(into, Kind::Keys, &payload);
}

/// How far the steady clock went, and how far the wall's differs from that; the JVMs of one round come in any order.
fn put_moment(into: &mut Vec<u8>, before: Moment, at: Moment) {
    varint::put_signed(into, at.steady_ms.wrapping_sub(before.steady_ms) as i64);
    varint::put_signed(into, at.drift_since(before));
}

fn put_sample(
    into: &mut Vec<u8>,
    number: u64,
    last: Moment,
    at: Moment,
    before: &[Option<u64>],
    now: &[Option<u64>],
) {
    let changed = || before.iter().zip(now).enumerate().filter(|(_, (before, now))| before != now);
    let mut payload = Vec::new();
    varint::put(&mut payload, number);
    put_moment(&mut payload, last, at);
    varint::put(&mut payload, changed().count() as u64);
    let mut next = 0;
    for (at, (before, now)) in changed() {
        // How many series did not change, and whether there is a figure.
        varint::put(&mut payload, ((at - next) as u64) << 1 | u64::from(now.is_none()));
        if let Some(now) = now {
            varint::put_signed(&mut payload, now.wrapping_sub(before.unwrap_or(0)) as i64);
        }
        next = at + 1;
    }
    frame::put(into, Kind::Sample, &payload);
}
