//! Whose a thread is. An event names a thread only by its number, and a thread of a JVM may be born and gone between two readings,
//! so that /proc has nothing of it. So the births, changes of name and ends of threads are traced next to the rest, some 150
//! bytes for each thread: a thread belongs to its parent's process where clone had CLONE_THREAD, and is a process of its
//! own otherwise. Threads that lived before are listed once, at the start.
//!
//! The kernel has two tables for this, and neither is good enough. `saved_cmdlines` keeps some thousand names and no process, and
//! is shared by all who trace. `saved_tgids` is off until `record-tgid` is set, which allocates 4 bytes for every possible pid, up
//! to 16 MiB, that the kernel never gives back (kernel/trace/trace_sched_switch.c, `trace_alloc_tgid_map`): a change of the host.
//!
//! What is not known: a thread whose birth was overwritten before it was read, and that ended before it was asked for; and of
//! two threads with one number in one reading, all is given to the later.

use super::decode::Life;
use super::event::Event;
use crate::base::limits::TRACE_THREADS_MAX;
use crate::os::host::field;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is known of the host's threads.
#[derive(Debug, Default)]
pub struct Threads {
    /// Their process, by their number.
    tgids: HashMap<i32, i32>,
    /// Names, of the ones that were asked for or that took one while they were traced.
    names: HashMap<i32, String>,
    /// They ended in the reading that is under way, and are forgotten after it.
    ended: BTreeSet<i32>,
}

/// What /proc says of a thread that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Living {
    pub tgid: i32,
    pub name: String,
}

impl Threads {
    /// Notes a thread that was there before anything was traced.
    pub fn remember(&mut self, tid: i32, tgid: i32) {
        if self.tgids.len() < TRACE_THREADS_MAX {
            self.tgids.insert(tid, tgid);
        }
    }

    /// To be called in the order of time.
    pub fn lived(&mut self, life: Life) {
        match life {
            Life::Born { tid, parent, is_thread, name } => {
                // A thread whose parent is not known is not known either: what was here was of an earlier thread.
                match if is_thread { self.tgids.get(&parent).copied() } else { Some(tid) } {
                    Some(tgid) => self.remember(tid, tgid),
                    None => {
                        self.tgids.remove(&tid);
                    }
                }
                self.ended.remove(&tid);
                self.named(tid, name);
            }
            Life::Renamed { tid, name } => self.named(tid, name),
            Life::Exited { tid, name } => {
                self.named(tid, name);
                self.ended.insert(tid);
            }
        }
    }

    fn named(&mut self, tid: i32, name: String) {
        if self.names.len() < TRACE_THREADS_MAX {
            self.names.insert(tid, name);
        }
    }

    /// Names and processes of the threads of these events; the ones that are not known are asked for with `living`. Then what
    /// ended is forgotten.
    pub fn of(
        &mut self,
        events: &[Event],
        mut living: impl FnMut(i32) -> Option<Living>,
    ) -> (BTreeMap<i32, String>, BTreeMap<i32, i32>) {
        let tids: BTreeSet<i32> = events.iter().map(|event| event.tid).collect();
        let (mut names, mut tgids) = (BTreeMap::new(), BTreeMap::new());
        for tid in tids {
            let is_known = self.tgids.contains_key(&tid) && self.names.contains_key(&tid);
            if !is_known
                && !self.ended.contains(&tid)
                && let Some(alive) = living(tid)
            {
                self.remember(tid, alive.tgid);
                self.named(tid, alive.name);
            }
            tgids.extend(self.tgids.get(&tid).map(|tgid| (tid, *tgid)));
            names.extend(self.names.get(&tid).map(|name| (tid, name.clone())));
        }
        for tid in std::mem::take(&mut self.ended) {
            self.tgids.remove(&tid);
            self.names.remove(&tid);
        }
        (names, tgids)
    }

    /// Births, names and ends were overwritten: what is known may be of threads that are gone, and is asked for again.
    pub fn forget(&mut self) {
        self.names.clear();
    }
}

/// The lines of /proc/TID/status that say whose a thread is.
pub fn living(status: &str) -> Option<Living> {
    Some(Living { tgid: field(status, "Tgid:")?.parse().ok()?, name: field(status, "Name:")?.to_string() })
}

#[cfg(test)]
mod tests {
    use super::super::event::What;
    use super::*;

    fn event(tid: i32) -> Event {
        Event { at_ns: 0, cpu: 0, tid, what: What::PageTable }
    }

    fn born(tid: i32, parent: i32, is_thread: bool) -> Life {
        Life::Born { tid, parent, is_thread, name: "java".into() }
    }

    fn exited(tid: i32, name: &str) -> Life {
        Life::Exited { tid, name: name.into() }
    }

    #[test]
    fn threads_that_lived_shortly_belong_to_the_process_of_who_made_them() {
        let mut threads = Threads::default();
        threads.remember(10, 10);
        threads.lived(born(11, 10, true));
        threads.lived(born(12, 11, true));
        threads.lived(born(20, 12, false));
        threads.lived(born(21, 20, true));
        threads.lived(Life::Renamed { tid: 12, name: "C2 CompilerThre".into() });
        threads.lived(exited(12, "C2 CompilerThre"));
        threads.lived(exited(21, "javac"));
        let (names, tgids) = threads.of(&[event(12), event(21), event(99)], |_| None);
        assert_eq!(tgids, BTreeMap::from([(12, 10), (21, 20)]));
        assert_eq!(names, BTreeMap::from([(12, "C2 CompilerThre".into()), (21, "javac".into())]));
        let (names, tgids) = threads.of(&[event(12), event(11)], |_| None);
        assert_eq!(tgids, BTreeMap::from([(11, 10)]), "who ended is forgotten after its reading");
        assert_eq!(names, BTreeMap::from([(11, "java".into())]));
    }

    #[test]
    fn the_living_are_asked_and_a_number_may_be_used_again() {
        let mut threads = Threads::default();
        let alive = |tid| Some(Living { tgid: tid / 10 * 10, name: "main".into() });
        assert_eq!(threads.of(&[event(17)], alive).1, BTreeMap::from([(17, 10)]));
        let (names, _) = threads.of(&[event(17)], |_| panic!("it is known"));
        assert_eq!(names[&17], "main");
        threads.lived(exited(17, "main"));
        threads.lived(born(17, 555, true));
        let (names, tgids) = threads.of(&[event(17)], |_| None);
        assert_eq!((names[&17].as_str(), tgids.get(&17)), ("java", None), "its process is unknown now");
    }

    #[test]
    fn the_status_of_a_thread() {
        let text = "Name:\tG1 Main Marker\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t77\nNgid:\t0\n";
        assert_eq!(living(text), Some(Living { tgid: 77, name: "G1 Main Marker".into() }));
        assert_eq!(living("Name:\tx\n"), None);
    }
}
