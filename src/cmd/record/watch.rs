//! The loop of `marusa record`: each JVM whose turn it is gets a sample, the account that is due most is read in another thread
//! (`worker`), and all of a round is written at once.

mod accounts;

use super::found::{self, Missed};
use super::output::Output;
use super::served::Served;
use super::status::Status;
use super::watched::Watched;
use super::worker::{self, Wanted, What, Worker};
use crate::act::signals::{Waiting, Woken};
use crate::base::limits::{RECORD_FACTS, RECORD_LAST};
use crate::cmd::Failure;
use crate::os::identity::HostRoot;
use crate::os::process::Process;
use crate::os::{budget, cpu_time, host};
use crate::record::Moment;
use crate::record::figures::Figures;
use crate::record::pace::{self, Payer, Shares};
use crate::record::trust::{Depth, Users};
use crate::record::writer::{Ending, JvmFacts, SCHEMA, Scope, Session, Writer};
use crate::show::record::Recorded;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often is looked for JVMs that started, at the least and at the most.
const FIND_EVERY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// Looking for them rests this many times as long as it took.
const FIND_REST: u32 = 24;

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub every: Duration,
    pub account_every: Duration,
    /// `None`: the holders of malloc's blocks are not read.
    pub holders_every: Option<Duration>,
    /// `None`: the objects of the heap are not counted.
    pub heap_every: Option<Duration>,
    /// Share of one core.
    pub cpu_share: f64,
    pub length: Option<Duration>,
    pub is_all: bool,
    pub jvms_max: usize,
}

/// What a sample came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looked {
    Seen,
    Gone,
}

pub struct Watch {
    asked: Asked,
    /// `None`: nothing is written.
    output: Option<Output>,
    /// The state of a service; `None`: there is none.
    served: Option<Served>,
    writer: Writer,
    session: Session,
    jvms: Vec<Watched>,
    worker: Worker,
    /// Whose account is read now, and whose time it takes.
    reads: Option<(u64, Payer)>,
    next_find: Instant,
    missed: Missed,
    /// Pids of JVMs that ended since the last search for new ones.
    gone: Vec<i32>,
    shares: Shares,
    /// Whose JVMs were given up.
    users: Users,
    started: Instant,
    last: Moment,
    /// What is counted here; the rest of it is known elsewhere.
    counts: Recorded,
    is_full_said: bool,
    cpu_before: Duration,
    earned_at: Instant,
}

impl Watch {
    pub fn start(
        asked: Asked,
        mut output: Option<Output>,
        target: Option<Process>,
        served: Option<Served>,
    ) -> anyhow::Result<Watch> {
        let started = Instant::now();
        let started_ms = wall_ms();
        let node =
            served.as_ref().map_or_else(|| HostRoot::shared().node(), |served| served.host_root.node());
        let session = Session {
            schema: SCHEMA.to_string(),
            recording: format!("{:016x}", fastrand::u64(..)),
            segment: output.as_ref().map_or(0, |output| output.segment),
            marusa: env!("CARGO_PKG_VERSION").to_string(),
            kernel: host::kernel_release(),
            node: node.unwrap_or_default(),
            repeated_ms: None,
            started_ms,
            every_ms: asked.every.as_millis() as u64,
            account_every_ms: asked.account_every.as_millis() as u64,
        };
        let is_append = output.as_ref().is_some_and(|output| output.is_append);
        let mut writer = if is_append { Writer::append(&session) } else { Writer::new(&session) };
        // At once: a file that is there can be read.
        let start = writer.take();
        output.iter_mut().try_for_each(|output| output.write(&start)).map_err(stopped)?;
        let mut watch = Watch {
            asked,
            output,
            writer,
            session,
            jvms: Vec::new(),
            worker: Worker::start(served.as_ref().map(Served::reader)).map_err(stopped)?,
            served,
            reads: None,
            next_find: started,
            missed: Missed::default(),
            gone: Vec::new(),
            shares: Shares::new(asked.cpu_share),
            users: Users::default(),
            started,
            last: Moment { steady_ms: 0, wall_ms: started_ms },
            counts: Recorded { cpu_share: asked.cpu_share, ..Recorded::default() },
            is_full_said: false,
            cpu_before: cpu_time::own(),
            earned_at: started,
        };
        if let Some(process) = target {
            let facts = budget::within(RECORD_FACTS, || found::facts(&process));
            watch.add(process, facts);
        }
        Ok(watch)
    }

    fn add(&mut self, process: Process, mut facts: JvmFacts) {
        if let Some(served) = &self.served {
            facts.identity = served.identity(&process);
        }
        let number = self.writer.jvm(facts.clone());
        self.served.iter().for_each(|served| served.found(number, &process, &facts));
        self.jvms.push(Watched::new(process, facts, number, &self.asked));
        self.counts.jvms += 1;
    }

    /// Until a signal, the target's end, or the time that was asked for. What is written is written whatever comes.
    pub fn run(&mut self, waiting: &Waiting, mut status: Status) -> anyhow::Result<Woken> {
        let end = self.asked.length.and_then(|length| self.started.checked_add(length));
        loop {
            self.round()?;
            status.show(|| self.recorded());
            if !self.asked.is_all && self.jvms.is_empty() {
                return self.close(Woken::Ended);
            }
            let finds = self.asked.is_all && !self.worker.is_busy && self.shares.allows_suspects();
            let next = self.jvms.iter().map(|jvm| jvm.next).chain(finds.then_some(self.next_find)).min();
            let next = next.unwrap_or_else(|| Instant::now() + self.asked.every);
            let until = [end, status.next()].into_iter().flatten().fold(next, Instant::min);
            let woken = waiting.until_or(until, Some(self.worker.bell()));
            if woken == Woken::Signal || end.is_some_and(|end| Instant::now() >= end) {
                return self.close(woken);
            }
            if woken == Woken::Ended {
                // The next sample sees that it is gone.
                self.jvms.iter_mut().for_each(|jvm| jvm.next = Instant::now());
            }
        }
    }

    fn round(&mut self) -> anyhow::Result<()> {
        self.earn();
        self.note_jump(moment(self.started));
        let now = Instant::now();
        let mut gone = Vec::new();
        for index in 0..self.jvms.len() {
            if self.jvms[index].next <= now && self.look(index, None) == Looked::Gone {
                gone.push(index);
            }
            if budget::is_signal_pending() {
                break;
            }
        }
        // An account that was read by now is the last of a JVM that is gone.
        while let Some(done) = self.worker.take() {
            self.accept(done);
        }
        for index in gone.into_iter().rev() {
            let mut jvm = self.jvms.remove(index);
            let (at, ending) = (moment(self.started), jvm.ending());
            self.counts.killed_for_memory += usize::from(ending == Ending::KilledForMemory);
            self.writer.ended(jvm.number, at, ending);
            self.served.iter().for_each(|served| served.node.ended(jvm.number, ending));
            jvm.purses().for_each(|(own, _)| self.shares.inherit(*own));
            self.gone.push(jvm.process.pid);
        }
        if !self.worker.is_busy && !budget::is_signal_pending() {
            self.begin();
        }
        self.write()
    }

    /// Writes what a sample sees, and the account that was read before it.
    fn look(&mut self, index: usize, account: Option<(Scope, Figures)>) -> Looked {
        let (now, at) = (Instant::now(), moment(self.started));
        let jvm = &mut self.jvms[index];
        let mut figures = match jvm.look() {
            Ok(figures) => figures,
            Err(_) if !jvm.process.is_same() => return Looked::Gone,
            // It may be read again later; until then nothing is known.
            Err(_) => Figures::new(),
        };
        let notes = [
            jvm.comes_near(),
            jvm.becomes_late(self.asked.account_every),
            jvm.lacks_holders(),
            jvm.lacks_classes(&self.shares),
        ];
        let interval = pace::interval(self.asked.every, jvm.is_near);
        // A round that came late does not make up for the lost ones.
        jvm.next = (jvm.next + interval).max(now + interval / 2);
        let age = jvm.account_age();
        let counts = &mut self.counts;
        counts.late += u64::from(age.is_some_and(|age| age > 2 * self.asked.account_every));
        counts.oldest_seconds = counts.oldest_seconds.max(age.unwrap_or_default().as_secs_f64());
        counts.accounts += u64::from(account.as_ref().is_some_and(|(scope, _)| *scope != Scope::Classes));
        let (scope, account) = account.unwrap_or((Scope::Glance, Figures::new()));
        figures.extend(account);
        if !figures.is_empty() {
            self.writer.sample(jvm.number, at, scope, &figures);
        }
        self.served.iter().for_each(|served| served.node.looked(jvm.number, &figures));
        for note in notes.into_iter().flatten() {
            self.writer.note(at, &note);
        }
        Looked::Seen
    }

    /// Gives each JVM its part of the elapsed time, and charges the CPU time used outside accounts.
    fn earn(&mut self) {
        let (now, cpu) = (Instant::now(), cpu_time::own());
        // What an account takes is paid when it is done.
        let overhead = if self.worker.is_busy { Duration::ZERO } else { cpu.saturating_sub(self.cpu_before) };
        if !self.worker.is_busy {
            self.cpu_before = cpu;
        }
        let purses: Vec<_> = self.jvms.iter_mut().flat_map(Watched::purses).collect();
        self.shares.earn(now.duration_since(self.earned_at), overhead, purses.into_iter());
        self.earned_at = now;
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
        if let Some(output) = self.output.as_mut().filter(|output| output.is_full()) {
            self.session.segment = output.segment + 1;
            self.writer.next_segment(&self.session);
            let start = self.writer.take();
            output.next(&start).map_err(stopped)?;
        }
        if let Some(served) = &self.served {
            let suspects = self.jvms.iter().filter(|jvm| jvm.trust.is_suspect()).count();
            served.counted(&self.recorded(), suspects, &self.missed);
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        match &mut self.output {
            Some(output) if !bytes.is_empty() => output.write(bytes).map_err(stopped),
            _ => Ok(()),
        }
    }

    /// After a signal the last account is read only if that is quick.
    fn close(&mut self, woken: Woken) -> anyhow::Result<Woken> {
        let limits = if woken == Woken::Signal { RECORD_LAST } else { budget::limits() };
        self.worker.stop();
        while let Some(done) = self.worker.take() {
            self.accept(done);
        }
        // The state at the end: of all JVMs of a host it would take too long.
        for index in 0..if self.asked.is_all { 0 } else { self.jvms.len() } {
            let is_long = woken != Woken::Signal;
            let has_holders = self.asked.holders_every.is_some() && is_long;
            let what = if has_holders { What::AccountWithHolders } else { What::Account };
            let classes = self.jvms[index].last_classes(&self.shares).filter(|_| is_long);
            for what in [what].into_iter().chain(classes) {
                let wanted = Wanted { depth: Depth::Full, what, ..self.jvms[index].wanted(limits) };
                // After a signal it has hardly any time: that it was given up says nothing of the JVM.
                if let (Ok(read), took) = worker::account_of(&wanted, None) {
                    self.accept_account(&wanted, Ok(read), None, took);
                }
            }
        }
        let at = moment(self.started);
        for jvm in std::mem::take(&mut self.jvms) {
            self.writer.ended(jvm.number, at, Ending::NotWatched);
        }
        self.writer.close(at);
        let bytes = self.writer.take();
        self.put(&bytes)?;
        Ok(woken)
    }

    pub fn recorded(&self) -> Recorded {
        Recorded {
            seconds: self.started.elapsed().as_secs_f64(),
            hidden: self.missed.hidden.clone(),
            samples: self.writer.samples(),
            bytes: self.output.as_ref().map_or(0, Output::bytes),
            files: self.output.as_ref().map_or(0, Output::files),
            files_dropped: self.output.as_ref().map_or(0, |output| output.dropped),
            cpu_seconds: cpu_time::own().as_secs_f64(),
            ..self.counts.clone()
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
        "the recording ends here, and what is in it is whole: it cannot be written any more: {error}"
    ))
}
