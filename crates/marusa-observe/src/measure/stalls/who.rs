//! Whose a thread is: the names of processes and whether they are JVMs, looked at once each and as soon as they stall, since builds
//! start processes that live for seconds; and the CPU time that all of them used in the meantime.

use crate::base::limits::STALL_PROCESSES_MAX;
use crate::jvm::command_line;
use crate::measure::kinds::Kinds;
use crate::os::cpu_time::{self, ProcessTime};
use crate::os::host;
use crate::os::process::Process;
use crate::snapshot::discover;
use std::collections::BTreeMap;

/// A process, as far as it could be looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The main class or jar of a JVM, else the name of the command.
    pub name: String,
    pub is_jvm: bool,
    /// When it was last seen.
    time: ProcessTime,
}

impl Named {
    fn look(pid: i32, time: ProcessTime) -> Named {
        let Ok(process) = Process::open(pid) else {
            return Named { name: time.name.clone(), is_jvm: false, time };
        };
        let arguments = process.arguments().unwrap_or_default();
        let is_launcher = command_line::is_launcher(&arguments);
        let is_jvm = match discover::vm_of(&process) {
            Ok(vm) => vm.is_some(),
            Err(_) => is_launcher,
        };
        let main = is_launcher
            .then(|| command_line::parse(&arguments))
            .filter(|line| !line.may_be_in_file)
            .and_then(|line| line.main);
        let name = main.unwrap_or_else(|| time.name.clone());
        Named { name, is_jvm, time }
    }
}

/// CPU time of processes at one moment: when they started, and ticks, by pid.
pub type Ticks = BTreeMap<i32, (u64, u64)>;

/// All processes that stalled so far.
#[derive(Default)]
pub struct Processes {
    known: BTreeMap<i32, Named>,
    /// The kinds of the target's threads.
    pub kinds: Kinds,
}

impl Processes {
    pub fn new(kinds: Kinds) -> Processes {
        Processes { known: BTreeMap::new(), kinds }
    }

    /// Looks at those of these processes that are new, or run another program than before.
    pub fn look(&mut self, pids: impl Iterator<Item = i32>) {
        for pid in pids {
            // One that has ended already keeps the name that it had, if it was ever seen.
            let Some(now) = ProcessTime::read(pid) else { continue };
            let is_same = |it: &ProcessTime| it.start_ticks == now.start_ticks && it.name == now.name;
            match self.known.get_mut(&pid) {
                Some(known) if is_same(&known.time) => known.time = now,
                _ => {
                    self.make_room();
                    self.known.insert(pid, Named::look(pid, now));
                }
            }
        }
    }

    /// Forgets the ones that have ended, where there are many.
    fn make_room(&mut self) {
        if self.known.len() >= STALL_PROCESSES_MAX {
            let lives = |time: &ProcessTime, pid: i32| {
                ProcessTime::read(pid).is_some_and(|now| now.start_ticks == time.start_ticks)
            };
            self.known.retain(|pid, known| lives(&known.time, *pid));
        }
        if self.known.len() >= STALL_PROCESSES_MAX {
            self.known.clear();
        }
    }

    pub fn get(&self, pid: i32) -> Option<&Named> {
        self.known.get(&pid)
    }
}

/// CPU time used in one interval, or as much of it as was seen.
#[derive(Clone, Debug, Default)]
pub struct CpuTime {
    /// In milliseconds, by pid.
    pub processes: BTreeMap<i32, f64>,
    /// In milliseconds, of the target's threads, by tid.
    pub threads: BTreeMap<i32, f64>,
}

/// The state at one moment.
#[derive(Clone, Debug, Default)]
pub struct CpuLook {
    processes: Ticks,
    threads: BTreeMap<i32, u64>,
}

impl CpuLook {
    /// CPU times of the target and its threads, else of all processes; for the ones that stalled and have ended, as they were when
    /// last seen.
    pub fn take(target: Option<&Process>, stalled: &Processes) -> CpuLook {
        let pids = match target {
            Some(target) => vec![target.pid],
            None => host::pids().unwrap_or_default(),
        };
        let ticks = |pid: i32| ProcessTime::read(pid).map(|time| (pid, (time.start_ticks, time.cpu_ticks)));
        let last = |(pid, known): (&i32, &Named)| (*pid, (known.time.start_ticks, known.time.cpu_ticks));
        let mut processes: Ticks = stalled.known.iter().map(last).collect();
        processes.extend(pids.into_iter().take(STALL_PROCESSES_MAX).filter_map(ticks));
        CpuLook { processes, threads: target.map(cpu_time::of_threads).unwrap_or_default() }
    }

    /// Who began in the meantime used all of its time in the meantime.
    pub fn since(&self, first: &CpuLook) -> CpuTime {
        let process = |(pid, (start, now)): (&i32, &(u64, u64))| {
            let before =
                first.processes.get(pid).filter(|(was, _)| was == start).map_or(0, |(_, ticks)| *ticks);
            (*pid, cpu_time::milliseconds(now.saturating_sub(before)))
        };
        let thread = |(tid, now): (&i32, &u64)| {
            let before = first.threads.get(tid).copied().unwrap_or(0);
            (*tid, now.saturating_sub(before) as f64 / 1e6)
        };
        CpuTime {
            processes: self.processes.iter().map(process).collect(),
            threads: self.threads.iter().map(thread).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Processes {
        /// A process that was looked at before, without the machine.
        pub fn with(mut self, pid: i32, name: &str, is_jvm: bool) -> Processes {
            let time = ProcessTime { name: name.to_string(), ..ProcessTime::default() };
            let known = Named { name: name.to_string(), is_jvm, time };
            self.known.insert(pid, known);
            self
        }
    }

    #[test]
    fn this_process_is_no_jvm_and_is_looked_at_once() {
        let me = std::process::id() as i32;
        let mut processes = Processes::default();
        processes.look([me, -1, me].into_iter());
        let known = processes.get(me).expect("looked at").clone();
        assert!(!known.is_jvm && !known.name.is_empty());
        assert!(processes.get(-1).is_none());
        processes.look([2].into_iter());
        assert!(processes.get(2).is_none_or(|it| !it.name.is_empty()));
    }

    #[test]
    fn a_process_that_began_in_between_used_all_of_its_time_in_between() {
        let look = |processes: &[(i32, (u64, u64))], threads: &[(i32, u64)]| CpuLook {
            processes: processes.iter().copied().collect(),
            threads: threads.iter().copied().collect(),
        };
        let first = look(&[(7, (50, 100)), (8, (50, 10))], &[(7, 1_000_000)]);
        let now = look(&[(7, (50, 130)), (8, (99, 4)), (9, (60, 5))], &[(7, 3_000_000), (71, 500_000)]);
        let time = now.since(&first);
        let tick = cpu_time::milliseconds(1);
        assert_eq!(
            time.processes,
            [(7, 30.0 * tick), (8, 4.0 * tick), (9, 5.0 * tick)].into_iter().collect()
        );
        assert_eq!(time.threads, [(7, 2.0), (71, 0.5)].into_iter().collect());
    }
}
