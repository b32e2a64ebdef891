//! Reads what takes long in a thread of its own: accounts, and the search for new JVMs. A reading of a JVM takes a tenth of a
//! millisecond and an account of a hostile one seconds, so samples never wait for accounts. There is one job at a time, since all
//! share one budget of CPU time.

use super::found::{self, Found, Missed};
use super::served::{Reader, Shown};
use crate::base::limits::{GROUP_RECORDED, GROUP_RECORDED_BYTES_MIN, RECORD_FACTS, TargetLimits};
use crate::base::{Bytes, Gap, Known, Range, Why};
use crate::jvm::hotspot::histogram::HeapWant;
use crate::ledger::{self, Item, Ledger};
use crate::map::rows::{Measure, Named, Row, Subject};
use crate::map::{self, Account, heap};
use crate::os::group::Group;
use crate::os::process::Process;
use crate::os::{budget, cpu_time};
use crate::record::glance;
use crate::record::trust::Depth;
use crate::record::writer::JvmFacts;
use crate::snapshot::{LoaderDetail, Snapshot, Want, take};
use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub enum Job {
    Account(Wanted),
    /// JVMs that were not known before, at most this many; and the pids of JVMs that ended, which may be others' by now.
    Find {
        at_most: usize,
        ended: Vec<i32>,
    },
}

/// What is read of a JVM at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Account,
    /// Also who holds malloc's blocks.
    AccountWithHolders,
    /// Only the objects of the heap by class.
    Classes,
}

/// The account, or the class histogram, that is read next.
#[derive(Clone)]
pub struct Wanted {
    /// The JVM's number in the file.
    pub number: u64,
    pub process: Arc<Process>,
    pub depth: Depth,
    pub what: What,
    pub limits: TargetLimits,
    /// The directory of the cgroup whose limit is near: what fills it is read too.
    pub near_group: Option<String>,
    /// Who the JVM is, is asked again.
    pub asks_facts: bool,
}

pub enum Done {
    Account { of: Wanted, read: Known<AccountRead>, facts: Option<Box<JvmFacts>>, took: Took },
    Found { new: Vec<(Process, JvmFacts)>, missed: Missed, took: Took },
}

/// An account as it is recorded.
pub struct AccountRead {
    pub rows: Vec<Row>,
    pub gaps: usize,
    /// Where the runtime's counters lie.
    pub counters: Option<Range>,
    pub has_holders: bool,
    /// What a service shows of it, where there is one.
    pub shown: Option<Box<Shown>>,
}

/// When a job began, how long it took, and the CPU time of this process in between.
#[derive(Clone, Copy)]
pub struct Took {
    pub began: Instant,
    pub wall: Duration,
    pub cpu: Duration,
}

pub struct Worker {
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    rings: PipeReader,
    thread: Option<JoinHandle<()>>,
    pub is_busy: bool,
}

impl Worker {
    /// Signals to end must be blocked in the caller.
    pub fn start(reader: Option<Reader>) -> io::Result<Worker> {
        let (jobs, todo) = channel();
        let (answer, done) = channel();
        let (rings, bell) = io::pipe()?;
        let work = move || work(&todo, &answer, bell, reader);
        let thread = std::thread::Builder::new().name("accounts".to_string()).spawn(work)?;
        Ok(Worker { jobs: Some(jobs), done, rings, thread: Some(thread), is_busy: false })
    }

    /// Readable when a job is done.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.rings.as_fd()
    }

    pub fn begin(&mut self, job: Job) {
        self.is_busy = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
    }

    /// What was read since the last call.
    pub fn take(&mut self) -> Option<Done> {
        let done = self.done.try_recv().ok()?;
        let _ = self.rings.read(&mut [0]);
        self.is_busy = false;
        Some(done)
    }

    /// Ends the job at hand, without its result, and the thread.
    pub fn stop(&mut self) {
        budget::interrupt(true);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        budget::interrupt(false);
    }
}

/// Reads an account in the thread that asks.
pub fn account_of(wanted: &Wanted, reader: Option<&mut Reader>) -> (Known<AccountRead>, Took) {
    timed(|| {
        budget::within(wanted.limits, || match wanted.what {
            What::Classes => classes(wanted),
            What::Account | What::AccountWithHolders => account(wanted, reader),
        })
    })
}

fn timed<T>(read: impl FnOnce() -> T) -> (T, Took) {
    let (began, cpu) = (Instant::now(), cpu_time::own());
    let read = read();
    (read, Took { began, wall: began.elapsed(), cpu: cpu_time::own().saturating_sub(cpu) })
}

fn work(todo: &Receiver<Job>, answer: &Sender<Done>, mut bell: PipeWriter, mut reader: Option<Reader>) {
    let mut found = Found::default();
    while let Ok(job) = todo.recv() {
        let done = match job {
            Job::Account(wanted) => {
                let (read, took) = account_of(&wanted, reader.as_mut());
                let ask = || Box::new(budget::within(RECORD_FACTS, || found::facts(&wanted.process)));
                let facts = wanted.asks_facts.then(ask);
                Done::Account { of: wanted, read, facts, took }
            }
            Job::Find { at_most, ended } => {
                ended.into_iter().for_each(|pid| found.forget(pid));
                let (new, took) = timed(|| found.new_ones(at_most));
                // On a host without a JVM no account comes to it.
                reader.iter_mut().for_each(Reader::look_at_host);
                Done::Found { new, missed: found.missed.clone(), took }
            }
        };
        if answer.send(done).is_err() || bell.write_all(&[1]).is_err() {
            return;
        }
    }
}

fn taken(wanted: &Wanted, want: Want) -> Known<Snapshot> {
    // Torn or not: the next one comes soon.
    let snapshot = take::take_once(&wanted.process, want)?;
    // A part of an account looks as if areas had shrunk.
    if let Some(gap) = snapshot.os.gaps.iter().find(|gap| gap.why.is_given_up()) {
        return Err(gap.clone());
    }
    // What was not read of a process that is gone is not 0.
    if !wanted.process.is_same() {
        return Err(Gap::new("the account", Why::Gone));
    }
    Ok(snapshot)
}

/// The objects of the heap by class. A part of them looks as if classes had shrunk.
fn classes(wanted: &Wanted) -> Known<AccountRead> {
    let want = Want { is_shallow: true, heap: Some(HeapWant::default()), ..Want::default() };
    let jvm = taken(wanted, want)?.jvm?;
    let counters = glance::counters_of(&jvm);
    let unread = || Gap::new("objects of the heap", Why::NotRead);
    let histogram = jvm.histogram.unwrap_or_else(|| Err(unread()))?;
    match budget::ended() {
        Some(gap) => Err(gap),
        None if !histogram.is_whole() || histogram.classes.is_empty() => Err(unread()),
        None => Ok(AccountRead {
            rows: heap::rows(&histogram.classes),
            gaps: 0,
            counters,
            has_holders: false,
            shown: None,
        }),
    }
}

/// The account, and where the counters lie.
fn account(wanted: &Wanted, reader: Option<&mut Reader>) -> Known<AccountRead> {
    let want = Want {
        is_shallow: wanted.depth == Depth::Shallow,
        holders: wanted.what == What::AccountWithHolders,
        loaders: LoaderDetail::Brief,
        ..Want::default()
    };
    let snapshot = taken(wanted, want)?;
    if let Some(gap) = snapshot.holders_given_up() {
        return Err(gap.clone());
    }
    let counters = snapshot.jvm.as_ref().ok().and_then(glance::counters_of);
    let (account, gaps, shown) = match reader {
        Some(reader) => {
            let (facts, shown) = reader.read(&wanted.process, snapshot);
            let gaps = facts.map.gaps.len();
            (facts.account, gaps, Some(Box::new(shown)))
        }
        None => {
            let map = map::join(&snapshot);
            (Account::of(&snapshot, &map), map.gaps.len(), None)
        }
    };
    let mut rows = account.rows();
    rows.extend(shown.iter().flat_map(|shown| shown.rows.clone()));
    rows.extend(wanted.near_group.iter().flat_map(|group| of_group(group)));
    Ok(AccountRead { rows, gaps, counters, has_holders: account.holders.is_some(), shown })
}

/// The processes and files that fill a cgroup, next to the rows of memory.stat; none where there was not the time for all.
fn of_group(directory: &str) -> Vec<Row> {
    let want = ledger::Want { areas: false, top: GROUP_RECORDED };
    let read = || Group::at(directory).and_then(|group| ledger::read(&group, want)).ok();
    let whole = |ledger: &Ledger| !ledger.is_given_up;
    let ledger = budget::within(RECORD_FACTS, read).filter(whole);
    // Two files may have one name.
    let mut named: BTreeMap<String, Bytes> = BTreeMap::new();
    for row in ledger.iter().flat_map(|ledger| &ledger.rows).filter(|row| row.pid.is_some()) {
        let name = row.name.as_deref().unwrap_or_default();
        let pid = if row.item == Item::Anonymous {
            format!(" (pid {})", row.pid.unwrap_or_default())
        } else {
            String::new()
        };
        let sum = named.entry(format!("{}: {name}{pid}", row.item.title())).or_default();
        *sum = sum.saturating_add(u64::try_from(row.bytes).unwrap_or(0));
    }
    let of_size = named.into_iter().filter(|(_, bytes)| *bytes >= GROUP_RECORDED_BYTES_MIN);
    of_size
        .map(|(name, bytes)| (Subject::Named(Named::CgroupRow, name), Measure::Resident, Some(bytes)))
        .collect()
}
