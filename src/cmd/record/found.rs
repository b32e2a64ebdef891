//! The JVMs of this host as they come: each process is looked at when it is new, and again as long as it may still become a JVM.

use crate::base::Why;
use crate::base::limits::{RECORD_FACTS, RECORD_FIND};
use crate::os::budget::{self, Pool};
use crate::os::process::Process;
use crate::os::{host, identity};
use crate::record::trust::Users;
use crate::record::writer::JvmFacts;
use crate::snapshot::discover::{self, Jvm};
use crate::snapshot::hidden::Hidden;
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// A process that was not a JVM is looked at again after this time: it may load a VM late, or run another program.
const AGAIN: Duration = Duration::from_secs(30);
/// One that is young may be about to start one.
const YOUNG: Duration = Duration::from_secs(10);
/// A process that takes longer than this is slow; it rests this many times as long.
const SLOW: Duration = Duration::from_millis(20);
const AGAIN_COSTS: u32 = 2000;

/// What is known of the processes of the host.
#[derive(Default)]
pub struct Found {
    known: HashMap<i32, Seen>,
    pub missed: Missed,
    /// Processes that the first search had no time for, and no search since.
    first: Option<HashSet<i32>>,
    /// How many slow processes each user has.
    slow: Users,
}

/// What a search did not find, and why.
#[derive(Clone, Debug, Default)]
pub struct Missed {
    /// Processes that may not be looked at.
    pub hidden: Hidden,
    /// JVMs for which there was no place.
    pub left_out: usize,
    /// Processes that no search had time for yet.
    pub waiting: usize,
    /// Of the processes that ran at the start none waits.
    pub is_listed: bool,
}

struct Seen {
    first: Instant,
    last: Instant,
    /// How long it took.
    took: Duration,
    is_jvm: bool,
    /// It is one for which there was no place.
    is_left_out: bool,
    /// It cannot be looked at; it may be a JVM.
    is_hidden: bool,
}

impl Seen {
    fn is_due(&self, now: Instant, has_place: bool) -> bool {
        if self.is_left_out {
            return has_place;
        }
        let is_young = now.duration_since(self.first) < YOUNG && self.took < SLOW;
        let again = AGAIN.max(self.took * AGAIN_COSTS);
        !self.is_jvm && (is_young || now.duration_since(self.last) >= again)
    }
}

/// 0 where it is not known: a process that is gone.
fn owner(pid: i32) -> u32 {
    std::fs::metadata(format!("/proc/{pid}")).map_or(0, |facts| facts.uid())
}

impl Found {
    /// JVMs that were not known before, and who they are as far as that is quickly read. Of what is known nothing is read: there
    /// may be thousands of processes. When the time is over, the rest waits for the next time; JVMs that are more than were asked
    /// for are counted, and wait for a place. Processes of users whose processes took long come last.
    pub fn new_ones(&mut self, at_most: usize) -> Vec<(Process, JvmFacts)> {
        // What cannot be listed now is listed the next time.
        let Ok(pids) = host::pids() else { return Vec::new() };
        let now = Instant::now();
        self.known.retain(|pid, _| pids.binary_search(pid).is_ok());
        let mut due: Vec<(u32, bool, i32)> = pids
            .into_iter()
            .filter(|pid| self.known.get(pid).is_none_or(|seen| seen.is_due(now, at_most > 0)))
            .map(|pid| (self.slow.failures(owner(pid)), self.known.contains_key(&pid), pid))
            .collect();
        due.sort_unstable();
        let mut pool = Pool::new(RECORD_FIND.0, RECORD_FIND.1);
        let mut new = Vec::new();
        let mut reached = 0;
        for &(.., pid) in &due {
            if now.elapsed() > RECORD_FIND.0 || budget::is_interrupted() {
                break;
            }
            reached += 1;
            let is_full = new.len() >= at_most;
            if is_full && self.known.get(&pid).is_some_and(|seen| seen.is_left_out) {
                continue;
            }
            let began = Instant::now();
            let found = pool.within(RECORD_FACTS, || {
                let process = self.look(pid, now, is_full)?;
                let facts = facts(&process);
                Some((process, facts))
            });
            if began.elapsed() > SLOW {
                self.slow.failed(owner(pid));
            }
            if let Some(seen) = self.known.get_mut(&pid) {
                seen.took = began.elapsed();
            }
            new.extend(found);
        }
        let waiting =
            due[reached..].iter().filter(|(_, is_known, _)| !is_known).map(|(.., pid)| *pid).collect();
        self.note_missed(waiting);
        new
    }

    fn note_missed(&mut self, waiting: HashSet<i32>) {
        let hidden = self.known.iter().filter(|(_, seen)| seen.is_hidden);
        let first = self.first.get_or_insert_with(|| waiting.clone());
        first.retain(|pid| waiting.contains(pid));
        self.missed = Missed {
            hidden: Hidden(hidden.map(|(pid, _)| *pid).collect()),
            left_out: self.known.values().filter(|seen| seen.is_left_out).count(),
            waiting: waiting.len(),
            is_listed: first.is_empty(),
        };
    }

    /// A JVM ended: whoever has its number next is new.
    pub fn forget(&mut self, pid: i32) {
        self.known.remove(&pid);
    }

    fn look(&mut self, pid: i32, now: Instant, is_full: bool) -> Option<Process> {
        let first = self.known.get(&pid).map_or(now, |seen| seen.first);
        let process = Process::open(pid).ok()?;
        let vm = discover::vm_of(&process);
        let is_jvm = matches!(vm, Ok(Some(_)));
        // A process that just ends is not a secret.
        let is_hidden = vm.is_err_and(|gap| gap.why == Why::Denied);
        let is_left_out = is_jvm && is_full;
        let took = Duration::ZERO;
        self.known.insert(pid, Seen { first, last: now, took, is_jvm, is_left_out, is_hidden });
        (is_jvm && !is_full).then_some(process)
    }
}

/// Who a JVM is, as far as it tells by now; of one that just starts, that is little.
pub fn facts(process: &Process) -> JvmFacts {
    match discover::one(process.pid).filter(|jvm| jvm.process.start_ticks == process.start_ticks) {
        Some(jvm) => of(jvm),
        None => JvmFacts {
            pid: process.pid,
            start_ticks: process.start_ticks,
            started_ms: started_ms(process.start_ticks),
            jvm_id: identity::jvm_id(process).ok(),
            ..JvmFacts::default()
        },
    }
}

fn of(jvm: Jvm) -> JvmFacts {
    JvmFacts {
        pid: jvm.process.pid,
        start_ticks: jvm.process.start_ticks,
        started: jvm.process.started,
        main: jvm.main.ok(),
        server: jvm.server,
        user: jvm.process.user,
        container: jvm.container_name.or(jvm.process.container),
        version: jvm.version.ok(),
        gc: jvm.gc.ok(),
        max_heap_bytes: jvm.max_heap_bytes.ok(),
        started_ms: started_ms(jvm.process.start_ticks),
        jvm_id: jvm.jvm_id.ok(),
        identity: jvm.identity,
    }
}

fn started_ms(start_ticks: u64) -> Option<i64> {
    let since = host::started(start_ticks)?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_listed_once_none_waits_that_was_there_first() {
        let mut found = Found::default();
        for (waiting, is_listed) in
            [(vec![1, 2], false), (vec![2, 3], false), (vec![3], true), (vec![3, 4], true)]
        {
            found.note_missed(waiting.iter().copied().collect());
            assert_eq!((found.missed.waiting, found.missed.is_listed), (waiting.len(), is_listed));
        }
    }
}
