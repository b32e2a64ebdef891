//! What the watch of `marusa serve` hands on besides samples: who a JVM is, the account as its document, and what the doctor finds.
//! The account is judged where it is read, in the worker's thread, since it is too large to be kept.

use super::found::Missed;
use super::worker::AccountRead;
use crate::base::Known;
use crate::doctor::facts::WatchedHost;
use crate::doctor::{self, Facts, Finding, HostFacts, JvmFacts as ReadJvm, Subject};
use crate::map::rows::{self, Measure, Named, Row};
use crate::os::identity::{self, HostRoot, Identity};
use crate::os::process::Process;
use crate::os::thp::Thp;
use crate::os::{cpu_time, host, longest_hold};
use crate::record::writer::JvmFacts;
use crate::serve::jvm::{TEXT_LETTERS_MAX, Who};
use crate::serve::node::{Node, NodeNow};
use crate::serve::own::Own;
use crate::serve::summary::{FoundNow, Summary};
use crate::show::json::{MapDocument, print};
use crate::show::record::Recorded;
use crate::snapshot::Snapshot;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How often the host is examined.
const HOST_EVERY: Duration = Duration::from_secs(60);

/// Of one JVM.
const FINDINGS_MAX: usize = 100;

/// The state that the watch keeps up to date.
pub struct Served {
    pub node: Arc<Node>,
    pub host_root: HostRoot,
    /// Our own process.
    pub me: Process,
}

/// What a service shows of an account.
pub struct Shown {
    /// The findings as they are recorded.
    pub rows: Vec<Row>,
    summary: Summary,
    findings: Vec<FoundNow>,
    document: Vec<u8>,
}

impl Served {
    pub fn reader(&self) -> Reader {
        Reader { node: self.node.clone(), host: HostFacts::default(), watched: None }
    }

    pub fn found(&self, number: u64, process: &Process, facts: &JvmFacts) {
        let who = Who { id: facts.jvm_id.clone(), of: facts.identity.clone() };
        let started = facts.started_ms.map(|ms| ms as f64 / 1e3);
        self.node.found(number, facts, who, started, host::age(process.start_ticks));
    }

    /// Who it is to the platform. Asked once: it stays the same while a process lives.
    pub fn identity(&self, process: &Process) -> Identity {
        identity::of(process, &self.host_root)
    }

    /// An account was read, or given up.
    pub fn read(&self, number: u64, read: &mut Known<AccountRead>) {
        match read {
            Ok(read) => {
                if let Some(shown) = read.shown.take() {
                    self.node.read(number, shown.summary, shown.findings, Some(shown.document));
                }
            }
            Err(gap) => self.node.unread(number, gap.to_string()),
        }
    }

    /// What the kernel says of our own process.
    fn of_process(&self, own: Own) -> Own {
        let status = self.me.status().ok();
        let started = host::started(self.me.start_ticks).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Own {
            version: env!("CARGO_PKG_VERSION"),
            resident_bytes: status.and_then(|status| status.resident_bytes),
            started_seconds: started.map(|since| since.as_secs_f64()),
            open_files: host::open_files_now(),
            open_files_max: Some(host::open_files_max() as u64),
            ..own
        }
    }

    /// What the watch counts of itself. `suspects`: JVMs whose accounts cannot be read in time.
    pub fn counted(&self, recorded: &Recorded, suspects: usize, missed: &Missed) {
        let mut state = self.node.state();
        let shown = state.jvms.values().filter(|jvm| self.node.is_shown(jvm)).count();
        let young = state.jvms.len() - shown;
        let own = Own {
            jvms: vec![
                ("shown", shown),
                ("young", young),
                ("left_out", missed.left_out),
                ("unreadable", suspects),
                ("hidden", missed.hidden.0.len()),
                ("waiting", missed.waiting),
            ],
            seen: recorded.jvms as u64,
            killed: recorded.killed_for_memory as u64,
            accounts: vec![("read", recorded.accounts), ("given_up", recorded.given_up)],
            longest_hold_seconds: longest_hold::longest().as_secs_f64(),
            cpu_seconds: cpu_time::own().as_secs_f64(),
            ..self.of_process(std::mem::take(&mut state.own))
        };
        state.own = own;
    }
}

/// Reads accounts for a service, in the worker's thread.
pub struct Reader {
    node: Arc<Node>,
    host: HostFacts,
    watched: Option<(WatchedHost, Instant)>,
}

impl Reader {
    /// The account of a snapshot, and what is shown of it.
    pub fn read(&mut self, process: &Process, snapshot: Snapshot) -> (ReadJvm, Shown) {
        self.look_at_host();
        let jvm = ReadJvm::of(process.pid, snapshot, Some(process));
        let summary = Summary::of(&jvm);
        let document = document(&jvm);
        let mut facts = Facts { host: std::mem::take(&mut self.host), jvms: vec![jvm] };
        let findings = doctor::examine(&facts, &[]);
        let (of_host, of_jvm): (Vec<Finding>, Vec<Finding>) =
            findings.into_iter().partition(|finding| finding.subject == Subject::Host);
        self.node.state().node.findings = of_host.iter().map(found).collect();
        self.host = std::mem::take(&mut facts.host);
        let jvm = facts.jvms.remove(0);
        let rows = of_jvm.iter().flat_map(rows).collect();
        let findings = of_jvm.iter().take(FINDINGS_MAX).map(found).collect();
        (jvm, Shown { rows, summary, findings, document })
    }

    /// Once a minute.
    pub fn look_at_host(&mut self) {
        if self.watched.as_ref().is_some_and(|(_, since)| since.elapsed() < HOST_EVERY) {
            return;
        }
        let watched = self.watched.take().map_or_else(HostFacts::start, |(watched, _)| watched);
        if let Ok(me) = Process::own() {
            self.host = watched.finish(&me);
        }
        self.watched = Some((HostFacts::start(), Instant::now()));
        let facts = Facts { host: std::mem::take(&mut self.host), jvms: Vec::new() };
        let of_host = doctor::examine(&facts, &[]);
        self.host = facts.host;
        let now = node_now(&self.host);
        let mut state = self.node.state();
        // With JVMs, the next account comes with what is found of both.
        let findings = match state.jvms.is_empty() {
            true => of_host.iter().filter(|it| it.subject == Subject::Host).map(found).collect(),
            false => std::mem::take(&mut state.node.findings),
        };
        state.node = NodeNow { findings, ..now };
        state.own.kernel = host::kernel_release();
    }
}

fn rows(finding: &Finding) -> [Row; 2] {
    let subject = || rows::Subject::Named(Named::Finding, finding.id.to_string());
    [
        (subject(), Measure::Level, Some(finding.level.number())),
        (subject(), Measure::Cost, finding.cost.bytes),
    ]
}

fn found(finding: &Finding) -> FoundNow {
    // Names of the target may be in it.
    let title = finding.title.chars().take(TEXT_LETTERS_MAX).collect();
    FoundNow { id: finding.id, level: finding.level, title }
}

/// The document of `map --json`, compressed.
fn document(jvm: &ReadJvm) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let document = MapDocument { account: &jvm.account, mappings: None, pages: None };
    // Writing to memory does not fail, nor does the model hold what JSON cannot.
    let _ = print(&mut packed, &document);
    let _ = packed.flush();
    packed.finish().unwrap_or_default()
}

fn node_now(host: &HostFacts) -> NodeNow {
    let counter = |name: &str| host.vmstat.get(name).copied();
    let sum = |names: &[&str]| {
        let known: Vec<u64> = names.iter().filter_map(|name| counter(name)).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    };
    let zones: Vec<String> =
        host.vmstat.keys().filter(|name| name.starts_with("allocstall_")).cloned().collect();
    let zones: Vec<&str> = zones.iter().map(String::as_str).collect();
    let stalls = [("reclaim", sum(&zones)), ("compaction", sum(&["compact_stall"]))];
    let huge = host.pages.pmd_bytes();
    let meminfo = |name: &str| host.meminfo.get(name).copied();
    NodeNow {
        waited: crate::os::pressure::host().ok(),
        stalls: stalls.into_iter().filter_map(|(kind, count)| Some((kind, count?))).collect(),
        huge_capable_bytes: (!host.free.is_empty())
            .then(|| host.free.iter().map(|zone| zone.pages_of(huge) * huge).sum()),
        memory_bytes: meminfo("MemTotal"),
        available_bytes: meminfo("MemAvailable"),
        thp: host.pages.thp.iter().flat_map(thp_settings).collect(),
        findings: Vec::new(),
    }
}

fn thp_settings(thp: &Thp) -> Vec<(&'static str, String)> {
    let of = [
        ("enabled", Some(&thp.enabled)),
        ("defrag", thp.defrag.as_ref()),
        ("shmem_enabled", thp.shmem_enabled.as_ref()),
    ];
    of.into_iter().filter_map(|(label, value)| Some((label, value?.clone()))).collect()
}
