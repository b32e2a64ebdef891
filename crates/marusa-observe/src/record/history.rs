//! What a recording says: the histories of JVMs, each a list of moments and, for each series, what it was from which moment on.

use super::key::{Key, Measure, Subject};
use super::moment::Moment;
use super::note::Note;
use super::writer::{Ending, JvmFacts, Session};
use crate::base::Bytes;
use crate::map::Area;
use std::collections::HashMap;

/// All that was read of a recording.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub sessions: Vec<Session>,
    pub jvms: Vec<History>,
    pub notes: Vec<Note>,
    /// Ends of files that hold no whole record.
    pub torn: Vec<Torn>,
    /// The last recorder ended as it should; else it was killed, or it is still at it.
    pub is_closed: bool,
    pub bytes: u64,
}

/// Bytes at the end of a file that were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    pub segment: u64,
    pub dropped_bytes: u64,
    pub why: &'static str,
}

/// One JVM over time.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub facts: JvmFacts,
    /// In the order of the steady clock, which counts from the start of the recording's first file.
    pub moments: Vec<Moment>,
    pub ending: Option<(Moment, Ending)>,
    index: HashMap<Key, usize>,
    keys: Vec<Key>,
    /// For each key, the moments at which it changed and what it became.
    changes: Vec<Vec<(u32, Option<u64>)>>,
    /// The places of keys that have a figure since they were last forgotten; each once.
    live: Vec<usize>,
    /// For each key, whether it is in `live`, and by which call of `forget_others` it was named last.
    is_live: Vec<bool>,
    named_by: Vec<u32>,
    calls: u32,
}

impl History {
    /// The names of all series, in the order in which they first came.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    pub fn len(&self) -> usize {
        self.moments.len()
    }

    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }

    /// What a series was at a moment; `None`: not known then, or gone.
    pub fn value(&self, key: &Key, at: usize) -> Option<u64> {
        let changes = &self.changes[*self.index.get(key)?];
        let after = changes.partition_point(|(from, _)| *from as usize <= at);
        changes[after.checked_sub(1)?].1
    }

    pub fn process(&self, measure: Measure, at: usize) -> Option<u64> {
        self.value(&Key::process(measure), at)
    }

    /// What an area has in memory.
    pub fn resident(&self, area: Area, at: usize) -> Option<Bytes> {
        self.value(&Key { subject: Subject::Area(area), measure: Measure::Resident }, at)
    }

    /// What is charged to the cgroup less the inactive file cache, as Kubernetes counts a working set.
    pub fn group_held(&self, at: usize) -> Option<Bytes> {
        let current = self.process(Measure::GroupCurrent, at)?;
        Some(current.saturating_sub(self.process(Measure::GroupReclaimable, at)?))
    }

    /// One figure a moment.
    pub fn series(&self, key: &Key) -> Vec<Option<u64>> {
        let mut series = vec![None; self.moments.len()];
        let Some(changes) = self.index.get(key).map(|at| &self.changes[*at]) else { return series };
        for (place, (from, value)) in changes.iter().enumerate() {
            let end = changes.get(place + 1).map_or(series.len(), |(next, _)| *next as usize);
            if let Some(part) = series.get_mut(*from as usize..end) {
                part.fill(*value);
            }
        }
        series
    }

    /// The figures of some moments, which are in their order.
    pub fn series_at(&self, key: &Key, moments: &[usize]) -> Vec<Option<u64>> {
        let mut changes = self.changes(key).iter().peekable();
        let mut value = None;
        let figure = |at: &usize| {
            while let Some((_, next)) = changes.next_if(|(from, _)| *from as usize <= *at) {
                value = *next;
            }
            value
        };
        moments.iter().map(figure).collect()
    }

    /// The moments at which a series changed.
    pub fn changes(&self, key: &Key) -> &[(u32, Option<u64>)] {
        self.index.get(key).map_or(&[], |at| &self.changes[*at])
    }

    /// The moments at which the account was read anew; at the others it is as old as `account_age_ms` says.
    pub fn accounts(&self) -> Vec<usize> {
        self.reads(Measure::AccountAt)
    }

    /// The moments at which the holders were read anew.
    pub fn holders(&self) -> Vec<usize> {
        self.reads(Measure::HoldersAt)
    }

    /// The moments at which what has this clock was read anew.
    pub fn reads(&self, clock: Measure) -> Vec<usize> {
        let read = self.changes(&Key::process(clock)).iter();
        read.filter(|(_, value)| value.is_some()).map(|(at, _)| *at as usize).collect()
    }

    pub fn account_age_ms(&self, at: usize) -> Option<u64> {
        self.age_ms(Measure::AccountAt, at)
    }

    /// How old what has this clock is; `None`: it had not been read.
    pub fn age_ms(&self, clock: Measure, at: usize) -> Option<u64> {
        let read_at = self.process(clock, at)?;
        Some(self.moments.get(at)?.steady_ms.saturating_sub(read_at))
    }

    /// The last moment at or before this one; the first, where it is earlier than all.
    pub fn at_or_before(&self, steady_ms: u64) -> Option<usize> {
        let after = self.moments.partition_point(|moment| moment.steady_ms <= steady_ms);
        (!self.moments.is_empty()).then(|| after.saturating_sub(1))
    }

    /// By the clock on the wall, which may have been set: the moment that is nearest.
    pub fn nearest_wall(&self, wall_ms: i64) -> Option<usize> {
        let away = |moment: &Moment| moment.wall_ms.abs_diff(wall_ms);
        self.moments.iter().enumerate().min_by_key(|(_, moment)| away(moment)).map(|(at, _)| at)
    }

    /// Seconds since the first moment of this JVM.
    pub fn seconds(&self, at: usize) -> f64 {
        let first = self.moments.first().map_or(0, |moment| moment.steady_ms);
        self.moments.get(at).map_or(0.0, |moment| moment.steady_ms.saturating_sub(first) as f64 / 1e3)
    }

    /// "pid 7  com.example.Main", "pid 8  Kafka". Faces escape what a terminal would take for an order.
    pub fn title(&self) -> String {
        match self.facts.name() {
            Some(name) => format!("pid {}  {name}", self.facts.pid),
            None => format!("pid {}", self.facts.pid),
        }
    }

    /// The place of a series; made where it is new.
    pub(super) fn place(&mut self, key: Key) -> usize {
        if let Some(at) = self.index.get(&key) {
            return *at;
        }
        self.index.insert(key.clone(), self.keys.len());
        self.keys.push(key);
        self.changes.push(Vec::new());
        self.is_live.push(false);
        self.named_by.push(0);
        self.keys.len() - 1
    }

    /// The place of a moment among the ones that there are. Clocks of files may be anything: the order is kept.
    pub(super) fn moment(&mut self, at: Moment) -> usize {
        match self.moments.last() {
            Some(last) if *last == at => {}
            Some(last) => {
                let steady_ms = at.steady_ms.max(last.steady_ms);
                self.moments.push(Moment { steady_ms, ..at });
            }
            None => self.moments.push(at),
        }
        self.moments.len() - 1
    }

    pub(super) fn note(&mut self, place: usize, at: usize, value: Option<u64>) {
        if value.is_some() && !std::mem::replace(&mut self.is_live[place], true) {
            self.live.push(place);
        }
        let changes = &mut self.changes[place];
        match changes.last_mut() {
            Some((from, last)) if *from as usize == at => *last = value,
            Some((_, last)) if *last == value => {}
            None if value.is_none() => {}
            _ => changes.push((at as u32, value)),
        }
    }

    /// What is not among `named` is gone from here on. Looks at the ones that are there and the ones that are named, not at all
    /// that ever were: a file may name a JVM again with each record.
    pub(super) fn forget_others(&mut self, named: &[usize], at: usize) {
        self.calls += 1;
        named.iter().for_each(|place| self.named_by[*place] = self.calls);
        for place in std::mem::take(&mut self.live) {
            if self.named_by[place] == self.calls {
                self.live.push(place);
            } else {
                self.is_live[place] = false;
                self.note(place, at, None);
            }
        }
    }
}
