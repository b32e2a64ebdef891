//! The loop of `marusa record`: whose turn it is is looked at, whose account is due is read, and all of a round is written at once.

use super::found::{self, Found};
use super::output::Output;
use super::watched::Watched;
use crate::act::signals::{Waiting, Woken};
use crate::base::limits::{RECORD_JVMS_MAX, RECORD_LAST, TargetLimits};
use crate::base::{Gap, Why};
use crate::cmd::Failure;
use crate::os::process::Process;
use crate::os::{budget, cpu_time, host};
use crate::record::Moment;
use crate::record::figures::Figures;
use crate::record::pace::{self, Budget, State};
use crate::record::trust::Users;
use crate::record::writer::{Ending, SCHEMA, Scope, Session, Writer};
use crate::show::record::Recorded;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often is looked for JVMs that started, at the least and at the most.
const FIND_EVERY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// Looking for them rests this many times as long as it took.
const FIND_REST: u32 = 9;
/// What JVMs whose reading was given up may use together, as a part of the budget.
const SUSPECTS_SHARE: f64 = 0.1;

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub every: Duration,
    pub account_every: Duration,
    /// Of one core.
    pub cpu_share: f64,
    pub length: Option<Duration>,
    pub is_all: bool,
}

pub struct Watch {
    asked: Asked,
    output: Output,
    writer: Writer,
    session: Session,
    jvms: Vec<Watched>,
    found: Found,
    next_find: Instant,
    budget: Budget,
    /// What JVMs share whose reading was given up, and the users they belong to.
    suspects: Budget,
    users: Users,
    started: Instant,
    last: Moment,
    /// JVMs in all, those that the kernel killed for want of memory, and accounts.
    seen: usize,
    killed: usize,
    accounts: u64,
    /// Accounts that took too long or too much.
    given_up: u64,
    is_full_said: bool,
    /// Looks at which the account was much older than was asked for.
    late: u64,
    cpu_before: Duration,
    earned_at: Instant,
}

impl Watch {
    pub fn start(asked: Asked, mut output: Output, target: Option<Process>) -> anyhow::Result<Watch> {
        let started = Instant::now();
        let started_ms = wall_ms();
        let session = Session {
            schema: SCHEMA.to_string(),
            recording: format!("{:016x}", fastrand::u64(..)),
            segment: output.segment(),
            marusa: env!("CARGO_PKG_VERSION").to_string(),
            kernel: host::kernel_release(),
            started_ms,
            every_ms: asked.every.as_millis() as u64,
            account_every_ms: asked.account_every.as_millis() as u64,
        };
        let mut writer = if output.is_append() { Writer::append(&session) } else { Writer::new(&session) };
        // At once: a file that is there can be read.
        output.write(&writer.take()).map_err(stopped)?;
        let mut watch = Watch {
            asked,
            output,
            writer,
            session,
            jvms: Vec::new(),
            found: Found::default(),
            next_find: started,
            // One JVM alone is a suspect or not.
            budget: Budget::new(asked.cpu_share * if asked.is_all { 1.0 - SUSPECTS_SHARE } else { 1.0 }),
            suspects: Budget::new(asked.cpu_share * SUSPECTS_SHARE),
            users: Users::default(),
            started,
            last: Moment { steady_ms: 0, wall_ms: started_ms },
            seen: 0,
            killed: 0,
            accounts: 0,
            given_up: 0,
            is_full_said: false,
            late: 0,
            cpu_before: cpu_time::own(),
            earned_at: started,
        };
        if let Some(process) = target {
            watch.add(process);
        }
        Ok(watch)
    }

    fn add(&mut self, process: Process) {
        let facts = found::facts(&process);
        let number = self.writer.jvm(facts.clone());
        self.jvms.push(Watched::new(process, facts, number));
        self.seen += 1;
    }

    /// Until a signal, the target's end, or the time that was asked for. What is written is written whatever comes.
    pub fn run(&mut self, waiting: &Waiting) -> anyhow::Result<()> {
        let end = self.asked.length.and_then(|length| self.started.checked_add(length));
        loop {
            self.round()?;
            if !self.asked.is_all && self.jvms.is_empty() {
                return self.close(Woken::Ended);
            }
            let next =
                self.jvms.iter().map(|jvm| jvm.next).chain(self.asked.is_all.then_some(self.next_find)).min();
            let next = next.unwrap_or_else(|| Instant::now() + self.asked.every);
            let until = end.map_or(next, |end| next.min(end));
            let woken = waiting.until(until);
            if woken == Woken::Signal || end.is_some_and(|end| Instant::now() >= end) {
                return self.close(woken);
            }
            if woken == Woken::Ended {
                // The next look sees that it is gone.
                self.jvms.iter_mut().for_each(|jvm| jvm.next = Instant::now());
            }
        }
    }

    fn round(&mut self) -> anyhow::Result<()> {
        self.earn();
        if self.asked.is_all && Instant::now() >= self.next_find {
            self.find();
        }
        let at = moment(self.started);
        self.note_jump(at);
        let now = Instant::now();
        let mut looks = Vec::new();
        let mut gone = Vec::new();
        for (index, jvm) in self.jvms.iter_mut().enumerate().filter(|(_, jvm)| jvm.next <= now) {
            let at = moment(self.started);
            match jvm.look() {
                Ok(figures) => {
                    if let Some(text) = jvm.comes_near() {
                        self.writer.note(at, &text);
                    }
                    looks.push((index, at, figures));
                }
                Err(_) if !jvm.process.is_same() => gone.push(index),
                // It may be read again later; until then nothing is known, and nothing is said.
                Err(_) => {}
            }
            if budget::is_signal_pending() {
                break;
            }
            let interval = pace::interval(self.asked.every, jvm.is_near);
            // A round that came late does not make up for the lost ones.
            jvm.next = (jvm.next + interval).max(now + interval / 2);
        }
        // Who needs it most first: the budget may not do for all.
        let account_every = self.asked.account_every;
        let urgency = |index: usize| self.state(index).urgency(account_every);
        looks.sort_by(|(one, ..), (other, ..)| urgency(*other).total_cmp(&urgency(*one)));
        for (index, at, figures) in looks {
            // What was seen is written, whatever comes; no account is begun any more.
            let limits = (!budget::is_signal_pending()).then(|| self.limits(index));
            self.sample(index, at, figures, limits, false);
        }
        for index in gone.into_iter().rev() {
            let jvm = self.jvms.remove(index);
            let (at, ending) = (moment(self.started), jvm.ending());
            self.killed += usize::from(ending == Ending::KilledForMemory);
            self.writer.ended(jvm.number, at, ending);
            self.found.forget(jvm.process.pid);
        }
        self.write()
    }

    /// What a look saw at a moment, and the account, where it is due.
    fn sample(
        &mut self,
        index: usize,
        at: Moment,
        mut figures: Figures,
        limits: Option<TargetLimits>,
        is_last: bool,
    ) {
        let read_at = moment(self.started);
        let mut scope = Scope::Glance;
        let state = self.state(index);
        self.late += u64::from(state.is_late(self.asked.account_every));
        let shared = if state.suspect.is_some() { &self.suspects } else { &self.budget };
        let is_due = is_last || state.is_due(self.asked.account_every, shared);
        if let Some(limits) = limits.filter(|_| is_due) {
            let before = cpu_time::own();
            let jvm = &mut self.jvms[index];
            match jvm.account(read_at.steady_ms, limits) {
                Ok(account) => {
                    figures.extend(account);
                    scope = Scope::Account;
                    self.accounts += 1;
                }
                // The last one has hardly any time after a signal: that says nothing about the JVM.
                Err(_) if is_last => {}
                Err(gap) => self.note_given_up(index, at, &gap),
            }
            let jvm = &mut self.jvms[index];
            let is_suspect = state.suspect.is_some() || jvm.trust.failures > 0;
            if let Some(facts) = jvm.learn() {
                self.writer.learn(jvm.number, facts);
            }
            // The next of this round is to know it.
            let used = cpu_time::own().saturating_sub(before);
            if is_suspect {
                self.suspects.spend(used)
            } else {
                self.budget.spend(used)
            }
            self.cpu_before += used;
        }
        self.writer.sample(self.jvms[index].number, at, scope, &figures);
    }

    fn state(&self, index: usize) -> State {
        let jvm = &self.jvms[index];
        let state = jvm.state();
        let of_user = jvm.uid.map_or(0, |uid| self.users.failures(uid));
        let is_unknown = state.since.is_none() && self.asked.is_all && of_user > 0;
        State { suspect: state.suspect.or(is_unknown.then_some(Duration::ZERO)), ..state }
    }

    fn limits(&self, index: usize) -> TargetLimits {
        if self.asked.is_all { self.jvms[index].trust.limits() } else { budget::limits() }
    }

    /// A JVM whose account took too long or too much is named, with when it is tried again.
    fn note_given_up(&mut self, index: usize, at: Moment, gap: &Gap) {
        let jvm = &self.jvms[index];
        if !gap.why.is_given_up() || gap.why == Why::Interrupted {
            return;
        }
        if let Some(uid) = jvm.uid {
            self.users.failed(uid);
        }
        let again = jvm.trust.wait().as_secs();
        let text = format!("pid {}: no account: {gap}; the next attempt is in {again} s", jvm.process.pid);
        self.given_up += 1;
        crate::say!("marusa: {text}");
        self.writer.note(at, &text);
    }

    /// Time that went by earns, and CPU time that was used since the last round is paid.
    fn earn(&mut self) {
        let (now, cpu) = (Instant::now(), cpu_time::own());
        let passed = now.duration_since(self.earned_at);
        self.budget.earn(passed);
        self.suspects.earn(passed);
        self.budget.spend(cpu.saturating_sub(self.cpu_before));
        (self.earned_at, self.cpu_before) = (now, cpu);
    }

    fn find(&mut self) {
        // What can not be listed now is listed the next time.
        let started = Instant::now();
        let mut found = std::mem::take(&mut self.found);
        let _ = found.new_ones(|process| {
            self.add(process);
            self.jvms.len() < RECORD_JVMS_MAX
        });
        self.found = found;
        if self.jvms.len() >= RECORD_JVMS_MAX && !self.is_full_said {
            self.is_full_said = true;
            let text =
                format!("{RECORD_JVMS_MAX} JVMs are recorded at once; others are left out while these run");
            crate::say!("marusa: {text}");
            self.writer.note(moment(self.started), &text);
        }
        // However many processes come: looking for JVMs takes a tenth of the time.
        let rest = started.elapsed() * FIND_REST;
        self.next_find = Instant::now() + self.asked.every.clamp(FIND_EVERY.0, FIND_EVERY.1).max(rest);
    }

    fn note_jump(&mut self, at: Moment) {
        if at.is_jump_since(self.last) {
            let seconds = at.drift_since(self.last) as f64 / 1e3;
            self.writer
                .note(at, &format!("the clock on the wall was set by {seconds:+.1} s, or the host slept"));
        }
        self.last = at;
    }

    fn write(&mut self) -> anyhow::Result<()> {
        let bytes = self.writer.take();
        self.put(&bytes)?;
        if self.output.is_full() {
            self.session.segment = self.output.segment() + 1;
            self.writer.next_segment(&self.session);
            let start = self.writer.take();
            self.output.next(&start).map_err(stopped)?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.output.write(bytes).map_err(stopped) }
    }

    /// After a signal the last account is read only if that is quick.
    fn close(&mut self, woken: Woken) -> anyhow::Result<()> {
        let limits = if woken == Woken::Signal { RECORD_LAST } else { budget::limits() };
        // What it came to: of all JVMs of a host it would take too long.
        if !self.asked.is_all {
            for index in 0..self.jvms.len() {
                let at = moment(self.started);
                if let Ok(figures) = self.jvms[index].look() {
                    self.sample(index, at, figures, Some(limits), true);
                }
            }
        }
        let at = moment(self.started);
        for jvm in std::mem::take(&mut self.jvms) {
            self.writer.ended(jvm.number, at, Ending::NotWatched);
        }
        self.writer.close(at);
        let bytes = self.writer.take();
        self.put(&bytes)
    }

    pub fn recorded(&self) -> Recorded {
        Recorded {
            seconds: self.started.elapsed().as_secs_f64(),
            jvms: self.seen,
            killed_for_memory: self.killed,
            hidden: self.found.hidden.clone(),
            samples: self.writer.samples(),
            accounts: self.accounts,
            given_up: self.given_up,
            late: self.late,
            cpu_share: self.asked.cpu_share,
            bytes: self.output.bytes(),
            files: self.output.files(),
            files_dropped: self.output.dropped(),
            cpu_seconds: cpu_time::own().as_secs_f64(),
        }
    }
}

fn moment(started: Instant) -> Moment {
    Moment { steady_ms: started.elapsed().as_millis() as u64, wall_ms: wall_ms() }
}

fn wall_ms() -> i64 {
    // A clock before 1970 is none.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

fn stopped(error: std::io::Error) -> anyhow::Error {
    Failure::target(format!(
        "the recording ends here, and what is in it is whole: it can not be written any more: {error}"
    ))
}
