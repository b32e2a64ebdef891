//! Counting a process whose threads come and go. Each thread has its own counters, which its children inherit: a thread that
//! is born within an interval counts with the one that started it, also when it has ended before it was seen. At the end
//! of an interval in which threads were born, a new set is opened for all, so that each has its own again; thread by thread
//! the new one starts where the old one is read, and only then the old one is closed.

use super::events::{Event, EventSet, Meaning};
use super::interval::Count;
use crate::base::limits::COUNTERS_MAX;
use crate::base::{Gap, Known, Why};
use crate::os::host;
use crate::os::perf::{self, Counter, Mode, Reading};
use crate::os::process::Process;
use crate::os::process::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Instant;

/// One event in one mode, which every thread has a counter for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub event: Event,
    pub mode: Mode,
    /// Slots of one group count at the same time; the first of them is its leader.
    pub group: usize,
}

/// The counters of all threads of a process.
pub struct Counters<'a> {
    process: &'a Process,
    set: EventSet,
    slots: Vec<Slot>,
    threads: BTreeMap<i32, Thread>,
    since: Instant,
    /// What cannot be counted at all; the same in every interval.
    pub gaps: Vec<Gap>,
    paranoid: Option<i32>,
    /// Threads of the present interval that could not be opened.
    missed: Vec<Gap>,
}

struct Thread {
    name: String,
    counters: Vec<Counter>,
    last: Vec<Reading>,
}

/// What was counted between two samples.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    pub seconds: f64,
    pub threads: Vec<ThreadCounts>,
    /// The target ended within it.
    pub is_last: bool,
    pub gaps: Vec<Gap>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCounts {
    pub tid: i32,
    /// The kernel's name of it.
    pub name: String,
    /// One for each slot; `None`: not known.
    pub counts: Vec<Option<Count>>,
}

impl<'a> Counters<'a> {
    /// Opens and starts them. Fails when nothing at all can be counted.
    pub fn open(process: &'a Process, set: EventSet, modes: &[Mode]) -> Known<Counters<'a>> {
        // A counter is one, and a thread has dozens.
        host::allow_open_files();
        let mut counters = Counters {
            process,
            set,
            slots: Vec::new(),
            threads: BTreeMap::new(),
            since: Instant::now(),
            gaps: Vec::new(),
            paranoid: perf::paranoid(),
            missed: Vec::new(),
        };
        let tasks = process.tasks()?;
        counters.probe(&tasks, modes)?;
        (counters.threads, counters.missed) = counters.open_all(&tasks, true)?;
        for thread in counters.threads.values() {
            counters.start(thread);
        }
        counters.since = Instant::now();
        Ok(counters)
    }

    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Finds out, with one thread, which events there are.
    fn probe(&mut self, tasks: &[Task], modes: &[Mode]) -> Known<()> {
        let mut refused: Vec<(Gap, Vec<&'static str>)> = Vec::new();
        for mode in modes {
            for group in self.set.groups.clone() {
                self.probe_group(tasks, group, *mode, &mut refused);
            }
        }
        self.gaps = refused
            .into_iter()
            .map(|(gap, names)| Gap { what: format!("{} ({})", gap.what, names.join(", ")), ..gap })
            .collect();
        match self.gaps.first() {
            Some(gap) if self.slots.is_empty() => Err(gap.clone()),
            None if self.slots.is_empty() => Err(Gap::new("counters of the threads", Why::Gone)),
            _ => Ok(()),
        }
    }

    fn probe_group(
        &mut self,
        tasks: &[Task],
        group: &'static [Event],
        mode: Mode,
        refused: &mut Vec<(Gap, Vec<&'static str>)>,
    ) {
        let id = self.slots.last().map_or(0, |slot| slot.group + 1);
        let mut leader: Option<Counter> = None;
        for (index, event) in group.iter().enumerate() {
            let open = |tid| Counter::open(self.set.encoding(event), mode, tid, leader.as_ref());
            // A thread may end before it is tried.
            let opened = tasks.iter().map(|task| open(task.tid));
            let mut tried = opened.filter(|tried| !is_gone(tried));
            match tried.next() {
                Some(Ok(counter)) => {
                    self.slots.push(Slot { event: *event, mode, group: id });
                    leader.get_or_insert(counter);
                }
                Some(Err(error)) => {
                    let gap = perf::gap(of_mode(mode), &error, mode, self.paranoid);
                    let names = group[index..].iter().map(|event| event.name);
                    // Without its leader a group counts nothing that could be compared.
                    let names = names.take(if leader.is_some() { 1 } else { usize::MAX });
                    match refused.iter_mut().find(|(known, _)| *known == gap) {
                        Some((_, all)) => {
                            let new: Vec<_> = names.filter(|name| !all.contains(name)).collect();
                            all.extend(new);
                        }
                        None => refused.push((gap, names.collect())),
                    }
                    if leader.is_none() {
                        return;
                    }
                }
                None => return,
            }
        }
    }

    /// Counters for all these threads, not yet started. With `is_partial` as many as the limit of open files allows.
    fn open_all(&self, tasks: &[Task], is_partial: bool) -> Known<(BTreeMap<i32, Thread>, Vec<Gap>)> {
        let mut threads = BTreeMap::new();
        let mut missing: BTreeMap<String, (Gap, usize)> = BTreeMap::new();
        for task in tasks {
            let is_full = threads.len().saturating_mul(self.slots.len()) >= COUNTERS_MAX;
            let opened = if is_full { Err(perf::too_many()) } else { self.open_one(task) };
            match opened {
                Ok(thread) => {
                    threads.insert(task.tid, thread);
                }
                Err(error) => {
                    let gap = perf::gap("counters of", &error, Mode::All, self.paranoid);
                    if gap.why == Why::OverLimit && !is_partial {
                        return Err(gap);
                    }
                    // One that ended is counted with the one that started it.
                    if gap.why != Why::Gone {
                        missing.entry(gap.to_string()).or_insert((gap, 0)).1 += 1;
                    }
                }
            }
        }
        let gaps = missing.into_values().map(|(gap, count)| Gap {
            what: format!("counters of {count} of {} threads", tasks.len()),
            ..gap
        });
        Ok((threads, gaps.collect()))
    }

    fn open_one(&self, task: &Task) -> io::Result<Thread> {
        let mut counters: Vec<Counter> = Vec::with_capacity(self.slots.len());
        let mut leader = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            leader = if self.is_leader(index) { index } else { leader };
            // The leader itself is not there yet.
            let group = counters.get(leader);
            counters.push(Counter::open(self.set.encoding(&slot.event), slot.mode, task.tid, group)?);
        }
        Ok(Thread { name: task.name.clone(), last: vec![Reading::default(); counters.len()], counters })
    }

    fn is_leader(&self, index: usize) -> bool {
        index == 0 || self.slots[index - 1].group != self.slots[index].group
    }

    fn start(&self, thread: &Thread) {
        let leaders = thread.counters.iter().enumerate().filter(|(index, _)| self.is_leader(*index));
        // That a thread has ended is seen when it is read: its counters say what they had.
        leaders.for_each(|(_, leader)| drop(leader.enable()));
    }

    /// Ends the interval that runs and begins the next.
    pub fn turn(&mut self) -> Interval {
        let tasks = self.process.tasks().ok().filter(|tasks| !tasks.is_empty() && self.process.is_same());
        let is_last = tasks.is_none();
        let tasks = tasks.unwrap_or_default();
        let has_new = tasks.iter().any(|task| !self.threads.contains_key(&task.tid));
        let mut fresh = has_new.then(|| self.open_all(&tasks, false));
        let mut interval =
            Interval { is_last, gaps: std::mem::take(&mut self.missed), ..Interval::default() };
        interval.gaps.extend(self.gaps.iter().cloned());
        let started = Instant::now();
        let new_threads = match &fresh {
            Some(Ok((threads, _))) => Some(threads),
            _ => None,
        };
        let mut threads = std::mem::take(&mut self.threads);
        rename(&mut threads, &tasks);
        let mut torn = 0;
        for (tid, thread) in &mut threads {
            if let Some(new) = new_threads.and_then(|new| new.get(tid)) {
                self.start(new);
            }
            let counts = thread.read();
            torn += usize::from(counts.iter().any(Option::is_none));
            interval.threads.push(ThreadCounts { tid: *tid, name: thread.name.clone(), counts });
        }
        if let Some(new) = new_threads {
            new.iter().filter(|(tid, _)| !threads.contains_key(tid)).for_each(|(_, new)| self.start(new));
        }
        if torn > 0 {
            let torn = Gap::new(format!("counts of {torn} of {} threads", threads.len()), Why::Torn);
            interval.gaps.push(torn.hint("these counters could not be read or went backwards"));
        }
        interval.seconds = started.duration_since(self.since).as_secs_f64();
        self.since = started;
        self.threads = match fresh.take() {
            None => {
                let alive: BTreeSet<i32> = tasks.iter().map(|task| task.tid).collect();
                threads.retain(|tid, _| alive.contains(tid));
                threads
            }
            Some(Ok((new, missed))) => {
                self.missed = missed;
                new
            }
            // Not enough files for two sets at once: the old one goes first, and what happens between is not counted.
            Some(Err(_)) => {
                drop(threads);
                self.reopened(&tasks)
            }
        };
        interval
    }

    fn reopened(&mut self, tasks: &[Task]) -> BTreeMap<i32, Thread> {
        let before = Instant::now();
        let (threads, mut missed) = self.open_all(tasks, true).unwrap_or_default();
        threads.values().for_each(|thread| self.start(thread));
        let lost = before.elapsed().as_secs_f64() * 1e3;
        missed.push(
            Gap::new(format!("the first {lost:.0} ms of the interval"), Why::OverLimit)
                .hint("too few open files for two sets of counters: raise `ulimit -Hn` (LimitNOFILE=)"),
        );
        self.missed = missed;
        threads
    }
}

/// A thread bears its parent's name until it gives itself its own.
fn rename(threads: &mut BTreeMap<i32, Thread>, tasks: &[Task]) {
    for task in tasks {
        if let Some(thread) = threads.get_mut(&task.tid)
            && thread.name != task.name
        {
            thread.name.clone_from(&task.name);
        }
    }
}

impl Thread {
    fn read(&mut self) -> Vec<Option<Count>> {
        let both = self.counters.iter().zip(&mut self.last);
        both.map(|(counter, last)| {
            let now = counter.read().ok()?;
            let count = Count::between(*last, now);
            *last = now;
            count
        })
        .collect()
    }
}

/// Which slot of the same group and mode counts the cycles.
pub fn cycles_slot(slots: &[Slot], group: usize) -> Option<usize> {
    slots.iter().position(|slot| slot.group == group && slot.event.meaning == Meaning::Cycles)
}

fn is_gone(tried: &io::Result<Counter>) -> bool {
    tried.as_ref().is_err_and(|error| perf::gap("", error, Mode::All, None).why == Why::Gone)
}

fn of_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::User => "counts of user mode",
        Mode::Kernel => "counts of kernel mode",
        Mode::All => "counts",
    }
}
