//! The rows of one interval: the stalls of each process, kind of thread or thread, the ones that lost most first; and what the
//! threads of the kernel did in the background, which is nobody's.

use super::interval::{Counts, Figures, Interval, Key, Missing, Seen};
use super::spans::Stall;
use super::who::{CpuTime, Processes};
use crate::base::{Gap, Known, Why};
use crate::measure::kinds::{Kind, Kinds};
use std::collections::{BTreeMap, BTreeSet};

/// What the rows are.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Process,
    Thread,
    Kind,
}

/// Whose the figures of a row are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Process {
        pid: i32,
        name: String,
        is_jvm: bool,
    },
    Thread {
        pid: Option<i32>,
        tid: i32,
        name: String,
        kind: Option<Kind>,
    },
    /// Threads of JVMs.
    Kind(Kind),
    /// Processes that are not JVMs, in a table of kinds.
    Others,
    /// Threads that ended before it could be known whose they were.
    Ended,
    Total,
}

/// One kind of stall, for pages of one order.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub stall: Stall,
    pub order: Option<u32>,
    pub figures: Figures,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub who: Who,
    /// Threads that stalled.
    pub threads: usize,
    pub lines: Vec<Line>,
    /// All waiting for memory: compaction and reclaim of its own.
    pub waited: Figures,
    pub cpu_ms: Known<f64>,
    pub counts: Counts,
}

impl Row {
    /// Waiting, in percent of the interval: with several threads it may be more than 100.
    pub fn share_of_time(&self, seconds: f64) -> Option<f64> {
        share(self.waited.ns, seconds * 1e3)
    }

    /// Waiting, in percent of the CPU time that its threads had. Who waits need not be on a CPU: it may be more than 100.
    pub fn share_of_cpu(&self) -> Option<f64> {
        share(self.waited.ns, *self.cpu_ms.as_ref().ok()?)
    }
}

pub fn share(ns: u64, of_ms: f64) -> Option<f64> {
    (of_ms > 0.0).then(|| ns as f64 / 1e4 / of_ms)
}

/// What was traced in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    pub seconds: f64,
    pub rows: Vec<Row>,
    /// The sum of the rows.
    pub total: Row,
    /// Waiting of all processes but the target; `None` without a target.
    pub elsewhere: Option<Figures>,
    /// khugepaged, kcompactd, kswapd.
    pub daemons: Vec<Line>,
    pub scans: BTreeMap<&'static str, u64>,
    pub missing: Missing,
    pub events: u64,
}

impl Traced {
    /// Whether all sums are only lower bounds.
    pub fn is_short(&self) -> bool {
        let Missing { lost, undecoded, .. } = self.missing;
        lost > 0 || undecoded > 0 || !self.missing.holes.is_empty()
    }
}

/// What is wanted of the interval.
pub struct View<'a> {
    pub target: Option<i32>,
    pub by: By,
    pub processes: &'a Processes,
    pub cpu: &'a CpuTime,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Process(i32),
    Thread(i32),
    Kind(Kind),
    Others,
    Ended,
}

pub fn traced(interval: &Interval, view: &View) -> Traced {
    let mut rows: BTreeMap<Group, Gathered> = BTreeMap::new();
    let mut all = Gathered::default();
    let mut elsewhere = Figures::default();
    let mut daemons = Gathered::default();
    let nobody = Seen::default();
    let seen = |tid: i32| interval.seen.get(&tid).unwrap_or(&nobody);
    for (key, figures) in &interval.stalls {
        if key.stall.is_daemons() {
            daemons.add(key, figures);
        } else if view.is_shown(seen(key.tid)) {
            rows.entry(view.group(key.tid, seen(key.tid))).or_default().add(key, figures);
            all.add(key, figures);
        } else if key.stall.is_wait() {
            elsewhere.merge(figures);
        }
    }
    for (tid, counts) in interval.counts.iter().filter(|(tid, _)| view.is_shown(seen(**tid))) {
        // Who only allocates loses nothing, and has no row.
        if let Some(row) = rows.get_mut(&view.group(*tid, seen(*tid))) {
            row.count(counts);
        }
        all.count(counts);
    }
    let mut rows: Vec<Row> = rows
        .into_iter()
        .map(|(group, row)| {
            let tid = row.threads.first().copied().unwrap_or(0);
            row.row(view.who(group, seen(tid)), view.cpu_of(group))
        })
        .collect();
    rows.sort_by_key(|row| {
        std::cmp::Reverse((row.waited.ns, row.lines.iter().map(|line| line.figures.ns).sum::<u64>()))
    });
    Traced {
        seconds: interval.seconds(),
        rows,
        total: all.row(Who::Total, view.cpu_of_all()),
        elsewhere: view.target.map(|_| elsewhere),
        daemons: daemons.lines(),
        scans: interval.scans.clone(),
        missing: interval.missing.clone(),
        events: interval.events,
    }
}

impl View<'_> {
    fn is_shown(&self, seen: &Seen) -> bool {
        self.target.is_none_or(|target| seen.pid == Some(target))
    }

    fn group(&self, tid: i32, seen: &Seen) -> Group {
        match (self.by, seen.pid) {
            (By::Thread, _) => Group::Thread(tid),
            (_, None) => Group::Ended,
            (By::Process, Some(pid)) => Group::Process(pid),
            (By::Kind, Some(pid)) => self.kind(tid, pid, seen).map_or(Group::Others, Group::Kind),
        }
    }

    /// `None`: the process is not a JVM.
    fn kind(&self, tid: i32, pid: i32, seen: &Seen) -> Option<Kind> {
        let comm = seen.name.as_deref().unwrap_or_default();
        let is_jvm = self.processes.get(pid).is_some_and(|known| known.is_jvm);
        match self.target == Some(pid) {
            true => Some(self.processes.kinds.of(tid, comm).0),
            false => is_jvm.then(|| Kinds::default().of(tid, comm).0),
        }
    }

    fn who(&self, group: Group, seen: &Seen) -> Who {
        match group {
            Group::Kind(kind) => Who::Kind(kind),
            Group::Others => Who::Others,
            Group::Ended => Who::Ended,
            Group::Process(pid) => {
                let known = self.processes.get(pid).cloned().unwrap_or_default();
                // One that ended before it was looked at still has the name of a thread of its own.
                let name =
                    if known.name.is_empty() { seen.name.clone().unwrap_or_default() } else { known.name };
                Who::Process { pid, name, is_jvm: known.is_jvm }
            }
            Group::Thread(tid) => {
                let comm = seen.name.as_deref().unwrap_or_default();
                let name = match self.target {
                    Some(_) => self.processes.kinds.of(tid, comm).1.to_string(),
                    None => comm.to_string(),
                };
                let kind = seen.pid.and_then(|pid| self.kind(tid, pid, seen));
                Who::Thread { pid: seen.pid, tid, name, kind }
            }
        }
    }

    fn cpu_of(&self, group: Group) -> Known<f64> {
        let unknown = |hint: &str| Err(Gap::new("CPU time", Why::NotRead).hint(hint));
        let gone = || Gap::new("CPU time", Why::Gone);
        match group {
            Group::Process(pid) => self.cpu.processes.get(&pid).copied().ok_or_else(gone),
            Group::Thread(tid) if self.target.is_some() => {
                self.cpu.threads.get(&tid).copied().ok_or_else(gone)
            }
            Group::Kind(kind) if self.target.is_some() => Ok(self.cpu_of_kind(kind)),
            _ => unknown("with a target, or by process"),
        }
    }

    fn cpu_of_kind(&self, kind: Kind) -> f64 {
        let threads = self.cpu.threads.iter();
        let own = threads.filter(|(tid, _)| self.processes.kinds.of(**tid, "").0 == kind);
        own.map(|(_, ms)| ms).sum()
    }

    fn cpu_of_all(&self) -> Known<f64> {
        match self.target {
            Some(pid) => self.cpu_of(Group::Process(pid)),
            None => Ok(self.cpu.processes.values().sum()),
        }
    }
}

/// A row that is being put together.
#[derive(Default)]
struct Gathered {
    threads: BTreeSet<i32>,
    lines: BTreeMap<(Stall, Option<u32>), Figures>,
    waited: Figures,
    counts: Counts,
}

impl Gathered {
    fn add(&mut self, key: &Key, figures: &Figures) {
        self.threads.insert(key.tid);
        self.lines.entry((key.stall, key.order)).or_default().merge(figures);
        if key.stall.is_wait() {
            self.waited.merge(figures);
        }
    }

    fn count(&mut self, counts: &Counts) {
        let sum = &mut self.counts;
        sum.deferred = sum.deferred.saturating_add(counts.deferred);
        sum.spoiled = sum.spoiled.saturating_add(counts.spoiled);
        for (order, (got, failed)) in &counts.allocations {
            let pair = sum.allocations.entry(*order).or_default();
            *pair = (pair.0.saturating_add(*got), pair.1.saturating_add(*failed));
        }
    }

    fn lines(self) -> Vec<Line> {
        let line = |((stall, order), figures)| Line { stall, order, figures };
        self.lines.into_iter().map(line).collect()
    }

    fn row(self, who: Who, cpu_ms: Known<f64>) -> Row {
        let (threads, waited, counts) = (self.threads.len(), self.waited.clone(), self.counts.clone());
        Row { who, threads, lines: self.lines(), waited, cpu_ms, counts }
    }
}

/// The stalls of all intervals together, for the histogram at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Whole {
    pub seconds: f64,
    pub intervals: u64,
    pub stalls: BTreeMap<Stall, Figures>,
}

impl Whole {
    pub fn add(&mut self, traced: &Traced) {
        self.seconds += traced.seconds;
        self.intervals += 1;
        for line in traced.total.lines.iter().chain(&traced.daemons) {
            self.stalls.entry(line.stall).or_default().merge(&line.figures);
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
