//! The loop of `marusa stalls`: the trace is read several times in each interval, so that processes that live shortly still can be
//! named, and the counters at its ends.

use super::Asked;
use super::trace::Trace;
use crate::act::signals::{Waiting, Woken};
use crate::act::tracing::Wanted;
use crate::base::{Bytes, Gap, Known, Why};
use crate::cmd::{Failure, answer_one};
use crate::measure::kinds::Kinds;
use crate::measure::stalls::host::HostLook;
use crate::measure::stalls::interval::Interval;
use crate::measure::stalls::table::{self, By, View, Whole};
use crate::measure::stalls::who::{CpuLook, Processes};
use crate::measure::stalls::{Delayed, Report};
use crate::os::cpu_time::Daemon;
use crate::os::namespaces::Namespaces;
use crate::os::process::Process;
use crate::os::taskstats::{Delays, Taskstats};
use crate::os::{host, taskstats};
use crate::show::stalls::{self as show, StallsDocument, Subject};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// How often the trace is read.
const READ_EVERY: Duration = Duration::from_millis(200);

pub struct Watch<'a> {
    target: Option<&'a Process>,
    by: By,
    /// Whether the numbers of threads in the trace are those of our /proc.
    is_first_pid: bool,
    processes: Processes,
    daemons: BTreeMap<i32, Daemon>,
    trace: Known<Trace>,
    taskstats: Known<Taskstats>,
    /// Gaps of the trace, the same in all intervals.
    gaps: Vec<Gap>,
    whole: Whole,
}

/// The state at the start of an interval.
struct Start {
    host: HostLook,
    cpu: CpuLook,
    delays: BTreeMap<i32, Delays>,
    at: Instant,
}

impl<'a> Watch<'a> {
    pub fn start(
        target: Option<&'a Process>,
        by: By,
        kinds: Kinds,
        daemons: BTreeMap<i32, Daemon>,
        huge_bytes: Bytes,
        wanted: Option<Wanted>,
    ) -> Watch<'a> {
        let is_first_pid = Namespaces::ours().is_first_pid;
        let mut gaps = Vec::new();
        let trace = match &wanted {
            None => Err(Gap::new("tracepoints", Why::NotRead).hint("not asked for: --no-trace")),
            Some(_) if target.is_some() && !is_first_pid => {
                Err(Gap::new("tracepoints of the target", Why::Denied).hint(
                    "the kernel numbers threads as the host does, and this is a pid namespace of a container: run it on the host",
                ))
            }
            Some(wanted) => Trace::begin(wanted, &daemons, huge_bytes, &mut gaps),
        };
        let taskstats = match &trace {
            Ok(_) => Err(Gap::new("delays of processes", Why::NotRead).hint("not needed: all is traced")),
            Err(_) => Taskstats::open(),
        };
        let (processes, whole) = (Processes::new(kinds), Whole::default());
        Watch { target, by, is_first_pid, processes, daemons, trace, taskstats, gaps, whole }
    }

    pub fn trace_bytes(&self) -> Option<Bytes> {
        Some(self.trace.as_ref().ok()?.tracing.buffer_bytes())
    }

    /// Why nothing is traced.
    pub fn untraced(&self) -> Option<&Gap> {
        self.trace.as_ref().err()
    }

    pub fn run(
        &mut self,
        waiting: &Waiting,
        asked: &Asked,
        subject: &Subject,
        is_json: bool,
    ) -> anyhow::Result<()> {
        let mut start = self.look();
        let mut deadline = start.at;
        for shown in 0..asked.tables {
            deadline = (deadline + asked.interval).max(Instant::now());
            let woken = self.wait(waiting, deadline);
            let is_gone = woken == Woken::Ended;
            if is_gone && shown == 0 && start.at.elapsed() < Duration::from_millis(1) {
                let pid = self.target.map_or(0, |target| target.pid);
                return Err(Failure::target(format!("pid {pid} ended before anything was watched")));
            }
            let next = self.look();
            let report = self.report(&start, &next, is_gone);
            start = next;
            let is_end = woken != Woken::Time || shown + 1 == asked.tables;
            self.show(&report, subject, is_json, asked.tables > 1, is_end)?;
            if is_end {
                break;
            }
        }
        Ok(())
    }

    /// Until the interval is over, or something else ends it.
    fn wait(&mut self, waiting: &Waiting, deadline: Instant) -> Woken {
        loop {
            let next = match self.trace {
                Ok(_) => deadline.min(Instant::now() + READ_EVERY),
                Err(_) => deadline,
            };
            let woken = waiting.until(next);
            self.read();
            if woken != Woken::Time || Instant::now() >= deadline {
                return woken;
            }
        }
    }

    fn read(&mut self) {
        let Ok(trace) = &mut self.trace else { return };
        match trace.tracing.read() {
            Ok(batch) => {
                if self.is_first_pid {
                    // With a target no other process is named: sampling others would be wasted.
                    let target = self.target.map(|target| target.pid);
                    let is_shown = |pid: &i32| target.is_none_or(|target| target == *pid);
                    self.processes.look(batch.tgids.values().copied().filter(is_shown));
                }
                trace.pairs.feed(batch);
            }
            // The instance was removed: what is not traced is not known from here on.
            Err(gap) => self.trace = Err(gap),
        }
    }

    fn look(&mut self) -> Start {
        Start {
            host: HostLook::take(self.target, &self.daemons),
            cpu: if self.is_first_pid {
                CpuLook::take(self.target, &self.processes)
            } else {
                CpuLook::default()
            },
            delays: self.delays(),
            at: Instant::now(),
        }
    }

    fn delays(&mut self) -> BTreeMap<i32, Delays> {
        let Ok(taskstats) = &mut self.taskstats else { return BTreeMap::new() };
        let pids = match self.target {
            Some(target) => vec![target.pid],
            None => host::pids().unwrap_or_default(),
        };
        let mut refused = None;
        let mut of = |pid: i32| match taskstats.read(pid) {
            Ok(delays) => Some((pid, delays)),
            Err(gap) => {
                if gap.why != Why::Gone {
                    refused = Some(gap);
                }
                None
            }
        };
        let delays = pids.into_iter().filter_map(&mut of).collect();
        if let Some(gap) = refused {
            self.taskstats = Err(gap);
        }
        delays
    }

    fn report(&mut self, first: &Start, now: &Start, is_gone: bool) -> Report {
        let cpu = now.cpu.since(&first.cpu);
        let target = self.target.map(|target| target.pid);
        let traced = match &mut self.trace {
            Ok(trace) => {
                let interval: Interval = trace.pairs.turn();
                let view = View { target, by: self.by, processes: &self.processes, cpu: &cpu };
                Ok(table::traced(&interval, &view))
            }
            Err(gap) => Err(gap.clone()),
        };
        if let Ok(traced) = &traced {
            self.whole.add(traced);
        }
        let delayed = traced.is_err().then(|| self.delayed(first, now));
        let mut gaps = self.gaps.clone();
        if is_gone {
            gaps.push(
                Gap::new("the rest of the interval", Why::Gone)
                    .hint("the target ended; the table is of what it did"),
            );
        }
        let seconds = match &traced {
            Ok(traced) => traced.seconds,
            Err(_) => now.at.saturating_duration_since(first.at).as_secs_f64(),
        };
        Report { seconds, traced, delayed, host: now.host.since(&first.host), is_last: is_gone, gaps }
    }

    /// Who waited, by the kernel's accounting; the ones that waited most first.
    fn delayed(&mut self, first: &Start, now: &Start) -> Known<Vec<Delayed>> {
        if let Err(gap) = &self.taskstats {
            return Err(gap.clone());
        }
        let none = Delays::default();
        let grown = |(pid, now): (&i32, &Delays)| {
            let delays = now.since(first.delays.get(pid)?);
            (delays != none).then_some((*pid, delays))
        };
        let grown: Vec<(i32, taskstats::Delays)> = now.delays.iter().filter_map(grown).collect();
        self.processes.look(grown.iter().map(|(pid, _)| *pid));
        let named = |(pid, delays): (i32, Delays)| {
            let known = self.processes.get(pid).cloned().unwrap_or_default();
            Delayed { pid, name: known.name, is_jvm: known.is_jvm, delays }
        };
        let mut delayed: Vec<Delayed> = grown.into_iter().map(named).collect();
        delayed
            .sort_by_key(|it| std::cmp::Reverse(it.delays.compact_ns.saturating_add(it.delays.reclaim_ns)));
        Ok(delayed)
    }

    /// With the last table, how long the stalls of all took.
    fn show(
        &self,
        report: &Report,
        subject: &Subject,
        is_json: bool,
        is_one_of_many: bool,
        is_end: bool,
    ) -> io::Result<()> {
        let at = SystemTime::now();
        answer_one(
            is_json,
            is_one_of_many,
            || StallsDocument::of(report, subject, at),
            |out| {
                show::table(out, report, subject, at)?;
                if is_end { show::histogram(out, &self.whole) } else { Ok(()) }
            },
        )
    }
}
