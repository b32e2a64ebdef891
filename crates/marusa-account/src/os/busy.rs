//! CPU time of other programs on this host: all except Marusa and the programs that it started. It disturbs measurements.
//!
//! `/proc/stat` has the time of all (proc_stat(5)), `/proc/self/stat` ours and that of the children that we waited for
//! (proc_pid_stat(5), fields 14 to 17), `/proc/PID/task/TID/children` names the others (proc_tid_children(5)). Threads of the
//! kernel that work on pages work for the program that is measured.

use super::cpu_time::{self, ProcessTime};
use super::host::{self, text};
use crate::base::{Gap, Known, Why};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// Other programs do not disturb while they use less than this part of all CPUs, or less than this number of them.
const QUIET_PART: f64 = 0.05;
const QUIET_CPUS: f64 = 0.1;
/// Over a whole trial they may use this multiple of it.
const TRIAL_FACTOR: f64 = 2.0;
/// Who takes time from this machine may share its cores and caches, too, and slow it by more than what is stolen. By how much
/// is not known: the factor is a choice.
const STOLEN_FACTOR: f64 = 5.0;
/// Over less time the kernel's ticks of 10 ms are too coarse.
const SECONDS_MIN: f64 = 0.9;
/// Processes below us that are looked at.
const BELOW_MAX: usize = 4096;

/// The sums so far, in ticks.
#[derive(Clone, Debug)]
pub struct Busy {
    at: Instant,
    cpus: usize,
    all: u64,
    kernel: u64,
    stolen: u64,
    ours: u64,
}

/// What other programs used, as the mean number of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Others {
    pub cpus: f64,
    /// What the hypervisor gave to other machines while ours wanted it.
    pub stolen_cpus: f64,
    pub of_cpus: usize,
}

impl Others {
    fn quiet_cpus(&self) -> f64 {
        QUIET_CPUS.max(QUIET_PART * self.of_cpus as f64)
    }

    fn weight(&self) -> f64 {
        self.cpus + STOLEN_FACTOR * self.stolen_cpus
    }

    pub fn is_quiet(&self) -> bool {
        self.weight() <= self.quiet_cpus()
    }

    /// Whether they may have changed a trial's figures.
    pub fn disturb(&self) -> bool {
        self.weight() > TRIAL_FACTOR * self.quiet_cpus()
    }
}

impl Busy {
    pub fn now() -> Known<Busy> {
        let gap = |file: &str| Gap::new("CPU time of others", Why::Failed).hint(file.to_string());
        let stat = text("/proc/stat").map_err(|_| gap("/proc/stat"))?;
        let (cpus, [all, kernel, stolen]) = parse(&stat).ok_or_else(|| gap("/proc/stat"))?;
        let own = text("/proc/self/stat").ok().and_then(|text| ProcessTime::parse_with_children(&text));
        let own = own.ok_or_else(|| gap("/proc/self/stat"))?;
        let daemons = cpu_time::daemons().into_keys().filter_map(ProcessTime::read);
        let daemons: u64 = daemons.map(|time| time.cpu_ticks).sum();
        let ours = own + daemons + running_below();
        Ok(Busy { at: Instant::now(), cpus, all, kernel, stolen, ours })
    }

    /// `None`: the time between is too short.
    pub fn since(&self, before: &Busy) -> Option<Others> {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let cpus = |now: u64, then: u64| {
            cpu_time::milliseconds(now.saturating_sub(then)) / 1e3 / seconds.max(f64::MIN_POSITIVE)
        };
        (seconds >= SECONDS_MIN).then(|| Others {
            cpus: (cpus(self.all, before.all) - cpus(self.ours, before.ours)).max(0.0),
            stolen_cpus: cpus(self.stolen, before.stolen),
            of_cpus: self.cpus,
        })
    }

    /// The kernel's part of the time of all CPUs, ours included. `None`: the time between is too short.
    pub fn kernel_share_since(&self, before: &Busy) -> Option<f64> {
        let seconds = self.at.duration_since(before.at).as_secs_f64() * self.cpus as f64;
        let kernel = cpu_time::milliseconds(self.kernel.saturating_sub(before.kernel)) / 1e3;
        (seconds >= SECONDS_MIN).then(|| kernel / seconds)
    }
}

/// In ticks, of all that runs below us: where `java` is a script, the JVM is a child of it. 0 for what has just ended, which is in
/// the time of the process that waits for it.
fn running_below() -> u64 {
    let (mut pids, mut ticks) = (VecDeque::from(children(std::process::id() as i32)), 0);
    for _ in 0..BELOW_MAX {
        let Some(pid) = pids.pop_front() else { break };
        pids.extend(children(pid));
        let time = text(format!("/proc/{pid}/stat")).ok();
        ticks += time.and_then(|time| ProcessTime::parse_with_children(&time)).unwrap_or(0);
    }
    ticks
}

/// The processes that the threads of one have started.
pub fn children(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split(' ').map_while(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
}

/// The number of CPUs, and the ticks of all of them: busy, of that in the kernel, and stolen.
fn parse(stat: &str) -> Option<(usize, [u64; 3])> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let numbers: Vec<u64> = all.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; time of guests is a part of user's.
    let [user, nice, system, _, _, irq, softirq, steal, ..] = numbers[..] else { return None };
    let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let kernel = system.saturating_add(irq).saturating_add(softirq);
    let work = user.saturating_add(nice).saturating_add(kernel);
    Some((stat.lines().filter(is_cpu).count(), [work, kernel, steal]))
}

/// CPU time so far of each process, by pid.
pub fn by_process() -> BTreeMap<i32, ProcessTime> {
    let pids = host::pids().unwrap_or_default();
    pids.into_iter().filter_map(|pid| Some((pid, ProcessTime::read(pid)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    const STAT: &str = "cpu  100 5 50 1000 20 1 4 30 0 0\ncpu0 50 0 25 500 10 1 2 15 0 0\ncpu1 50 5 25 500 10 0 2 15 0 0\nintr 5\n";

    #[test]
    fn idle_time_and_guests_are_no_work() {
        assert_eq!(parse(STAT), Some((2, [160, 55, 30])));
        assert_eq!(parse("cpu  1 2 3\n"), None);
        assert_eq!(parse("intr 5\n"), None);
    }

    #[test]
    fn our_own_work_is_not_others() {
        let at = Instant::now();
        let before = Busy { at, cpus: 2, all: 1000, kernel: 100, stolen: 10, ours: 500 };
        let second = std::time::Duration::from_secs(1);
        let ticks = host::ticks_per_second();
        let after = Busy { at: at + second, all: 1000 + 2 * ticks, ours: 500 + ticks, ..before };
        let others = after.since(&before).expect("a second");
        assert!((others.cpus - 1.0).abs() < 1e-9 && others.stolen_cpus == 0.0, "{others:?}");
        assert!(!others.is_quiet() && others.disturb());
        let busier = Busy { kernel: 100 + ticks / 2, ..after.clone() };
        assert!(busier.kernel_share_since(&before).is_some_and(|share| (share - 0.25).abs() < 1e-9));
        assert!(before.since(&before).is_none());
        let quiet = Others { cpus: 0.05, stolen_cpus: 0.005, of_cpus: 2 };
        assert!(quiet.is_quiet() && !quiet.disturb());
        assert!(Others { cpus: 0.0, stolen_cpus: 0.06, of_cpus: 2 }.disturb());
        let large = Others { cpus: 2.0, stolen_cpus: 0.0, of_cpus: 64 };
        assert!(large.is_quiet() && !large.disturb());
    }

    #[test]
    fn what_a_script_runs_is_not_others() {
        let before = Busy::now().expect("procfs").ours;
        let script = ["-c", "sh -c 'while :; do :; done' & wait"];
        let mut child = std::process::Command::new("sh").args(script).process_group(0).spawn().expect("sh");
        let worked = (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let below = children(child.id() as i32);
            let ticks = below.into_iter().filter_map(ProcessTime::read);
            ticks.map(|time| time.cpu_ticks).sum::<u64>() >= 10
        });
        let during = Busy::now().expect("procfs").ours;
        rustix::process::kill_process_group(
            rustix::process::Pid::from_child(&child),
            rustix::process::Signal::KILL,
        )
        .expect("it runs");
        child.wait().expect("it ends");
        assert!(worked && during >= before + 10, "{before} {during}");
    }

    #[test]
    fn this_host_is_read() {
        let busy = Busy::now().expect("procfs");
        assert!(busy.cpus > 0 && busy.all > busy.ours);
        assert!(by_process().contains_key(&(std::process::id() as i32)));
    }
}
