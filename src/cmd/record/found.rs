//! The JVMs of this host as they come: each process is looked at when it is new, and again as long as it may still become a JVM.

use crate::base::limits::{RECORD_FACTS, RECORD_FIND};
use crate::base::{Known, Why};
use crate::os::budget::{self, Pool};
use crate::os::host;
use crate::os::process::{Process, gap};
use crate::record::writer::JvmFacts;
use crate::snapshot::discover::{self, Jvm};
use crate::snapshot::hidden::Hidden;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A process that was none is looked at again after so long: it may load a VM late, or run another program.
const AGAIN: Duration = Duration::from_secs(30);
/// One that is young may be about to start one.
const YOUNG: Duration = Duration::from_secs(10);

/// What is known of the processes of the host.
#[derive(Default)]
pub struct Found {
    known: HashMap<i32, Seen>,
    pub hidden: Hidden,
    /// The pid to go on with.
    next: i32,
}

struct Seen {
    first: Instant,
    last: Instant,
    is_jvm: bool,
    /// It cannot be looked at; it may be a JVM.
    is_hidden: bool,
}

impl Found {
    /// Hands on JVMs that were not known before. Of what is known nothing is read: there may be thousands of processes. When
    /// the time is over, or `add` says so, the rest waits for the next time, which begins where this one ended.
    pub fn new_ones(&mut self, mut add: impl FnMut(Process) -> bool) -> Known<()> {
        let mut pids = host::pids().map_err(|error| gap("/proc", &error))?;
        let now = Instant::now();
        self.known.retain(|pid, _| pids.binary_search(pid).is_ok());
        let first = pids.partition_point(|pid| *pid < self.next);
        pids.rotate_left(first);
        self.next = 0;
        let mut pool = Pool::new(RECORD_FIND.0, RECORD_FIND.1);
        for pid in pids {
            if now.elapsed() > RECORD_FIND.0 || budget::is_signal_pending() {
                self.next = pid;
                break;
            }
            let found = pool.within(RECORD_FACTS, || self.look(pid, now));
            if found.is_some_and(|process| !add(process)) {
                break;
            }
        }
        let hidden = self.known.iter().filter(|(_, seen)| seen.is_hidden);
        self.hidden = Hidden(hidden.map(|(pid, _)| *pid).collect());
        Ok(())
    }

    /// A JVM ended: whoever has its number next is new.
    pub fn forget(&mut self, pid: i32) {
        self.known.remove(&pid);
    }

    fn look(&mut self, pid: i32, now: Instant) -> Option<Process> {
        let before = self.known.get(&pid);
        let is_known = before.is_some_and(|seen| {
            let is_young = now.duration_since(seen.first) < YOUNG;
            seen.is_jvm || !is_young && now.duration_since(seen.last) < AGAIN
        });
        if is_known {
            return None;
        }
        let first = before.map_or(now, |seen| seen.first);
        let process = Process::open(pid).ok()?;
        let vm = discover::vm_of(&process);
        let is_jvm = matches!(vm, Ok(Some(_)));
        // A process that just ends is no secret.
        let is_hidden = vm.is_err_and(|gap| gap.why == Why::Denied);
        self.known.insert(pid, Seen { first, last: now, is_jvm, is_hidden });
        is_jvm.then_some(process)
    }
}

/// Who a JVM is, as far as it tells by now; of one that just starts, that is little.
pub fn facts(process: &Process) -> JvmFacts {
    let one = budget::within(RECORD_FACTS, || discover::one(process.pid));
    match one.filter(|jvm| jvm.process.start_ticks == process.start_ticks) {
        Some(jvm) => of(jvm),
        None => JvmFacts { pid: process.pid, start_ticks: process.start_ticks, ..JvmFacts::default() },
    }
}

fn of(jvm: Jvm) -> JvmFacts {
    JvmFacts {
        pid: jvm.process.pid,
        start_ticks: jvm.process.start_ticks,
        started: jvm.process.started,
        main: jvm.main.ok(),
        user: jvm.process.user,
        container: jvm.container_name.or(jvm.process.container),
        version: jvm.version.ok(),
        gc: jvm.gc.ok(),
        max_heap_bytes: jvm.max_heap_bytes.ok(),
    }
}
