//! One JVM that is recorded: what is kept open of it, what was seen last, and what a reading of it gives.

use super::seldom::Seldom;
use super::watch::Asked;
use super::worker::{AccountRead, Took, Wanted, What};
use crate::base::limits::TargetLimits;
use crate::base::{Bytes, Gap, Known, Range, Why, human};
use crate::map::rows::Named;
use crate::os::group_memory::{self, GroupMemory};
use crate::os::peek::Peek;
use crate::os::pidfd::{self, Exit};
use crate::os::pressure;
use crate::os::process::Process;
use crate::record::figures::{self, Figures};
use crate::record::holders::Kept;
use crate::record::pace::{self, Limit, Payer, Purse, Shares, State};
use crate::record::trust::Trust;
use crate::record::writer::{Ending, JvmFacts, Scope};
use crate::record::{Key, Measure, compiled, glance, note};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A process without a limit may be moved into a group that has one.
const GROUP_AGAIN: Duration = Duration::from_secs(60);
/// A JVM that starts does not have all of its names yet: this many accounts read them again.
const ASKED_MAX: u32 = 5;
/// CPU time of the first class histogram of a JVM, for each GiB that its heap has committed.
const HISTOGRAM_COST_OF_GIB: Duration = Duration::from_secs(1);

pub struct Watched {
    pub process: Arc<Process>,
    /// Its number in the file.
    pub number: u64,
    pub facts: JvmFacts,
    /// When it is looked at next.
    pub next: Instant,
    peek: Known<Peek>,
    /// For how it ended; `None`: Linux before 5.3, or it is gone already.
    pidfd: Option<OwnedFd>,
    counters: Option<Range>,
    asked: u32,
    /// The last one, given up or not.
    account: Option<LastAccount>,
    /// When the last one that was not given up was read.
    read_at: Option<Instant>,
    /// When a reading was given up last.
    failed_at: Option<Instant>,
    found_at: Instant,
    is_late_said: bool,
    /// CPU time for its accounts.
    own: Purse,
    compiled: compiled::Before,
    /// `None`: they are not asked for.
    holders: Option<Seldom>,
    classes: Option<Seldom>,
    /// The part of the heap that may hold objects.
    heap_bytes: Option<Bytes>,
    /// Why the classes could not be read last.
    lacks_classes: Option<Gap>,
    is_class_lack_said: bool,
    /// They were asked for, and the account has none.
    lacks_holders: bool,
    is_lack_said: bool,
    loaders: Kept,
    resident: Bytes,
    group: Option<GroupMemory>,
    /// As its group counted at the sample before the last: a kill is counted before it is sent (mm/oom_kill.c).
    kills_before: Option<u64>,
    group_at: Option<Instant>,
    limit: Option<(Limit, Instant)>,
    pub is_near: bool,
    is_near_said: bool,
    pub uid: Option<u32>,
    pub trust: Trust,
}

#[derive(Clone, Copy)]
struct LastAccount {
    at: Instant,
    cost: Duration,
    resident: Bytes,
}

impl Watched {
    pub fn new(process: Process, facts: JvmFacts, number: u64, asked: &Asked) -> Watched {
        Watched {
            peek: Peek::open(&process),
            pidfd: pidfd::of(&process).ok(),
            process: Arc::new(process),
            number,
            facts,
            next: Instant::now(),
            counters: None,
            asked: 0,
            account: None,
            read_at: None,
            failed_at: None,
            found_at: Instant::now(),
            is_late_said: false,
            own: Purse::default(),
            compiled: compiled::Before::default(),
            holders: asked.holders_every.map(|every| Seldom::new(Named::Holder, every)),
            classes: asked.heap_every.map(|every| Seldom::new(Named::Class, every)),
            heap_bytes: None,
            lacks_classes: None,
            is_class_lack_said: false,
            lacks_holders: false,
            is_lack_said: false,
            loaders: Kept::new(Named::Loader),
            resident: 0,
            group: None,
            kills_before: None,
            group_at: None,
            limit: None,
            is_near: false,
            is_near_said: false,
            uid: None,
            trust: Trust::default(),
        }
    }

    /// The cheap sample. Fails when the process is gone.
    pub fn look(&mut self) -> Known<Figures> {
        let glance = glance::take(&self.process, &self.peek, self.counters)?;
        // A zombie still has a status, but no memory.
        if glance.status.resident_bytes.is_none() && !self.process.is_same() {
            return Err(Gap::new("the process", Why::Gone));
        }
        self.uid = glance.status.uid.or(self.uid);
        self.resident = glance.status.resident_with_hugetlb_bytes().unwrap_or(self.resident);
        let mut seen = figures::of_status(&glance.status);
        // What cannot be read now is not what it was.
        let counters = glance.counters.unwrap_or_default();
        self.heap_bytes = counters.heap_capacity_bytes;
        seen.extend(figures::of_counters(&counters));
        let is_seen = self.look_at_group();
        // What was seen of the group before is kept for how the JVM ends, and is not what the group holds now.
        let group = self.group.as_ref().filter(|_| is_seen);
        let pressure = group.and_then(|_| pressure::of_group(&self.process).ok());
        seen.extend(figures::of_group(group, pressure.as_ref()));
        Ok(seen)
    }

    /// Reads the group where that is due; whether it was read.
    fn look_at_group(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.group_at.is_none_or(|at| now.duration_since(at) >= GROUP_AGAIN);
        if self.group.is_none() && !is_due {
            return false;
        }
        self.group_at = Some(now);
        let Ok(group) = group_memory::of(&self.process) else { return false };
        // Keep what was read while the process ran: once it is killed, the kernel has counted the kill, and while it
        // exits, cgroup v1 reports the root as its group (kernel/cgroup/cgroup.c, proc_cgroup_show).
        let is_running = self.process.status().is_ok_and(|status| !status.is_ending());
        if !is_running {
            return false;
        }
        self.kills_before = self.group.as_ref().and_then(kills);
        self.group = group;
        let limit = self.group.as_ref().map(|group| Limit {
            limit_bytes: group.limit_bytes,
            left_bytes: group.left_bytes(),
            hits: group.events.get("max").copied().unwrap_or(0),
        });
        let before = self.limit.map(|(limit, at)| (limit, now.duration_since(at)));
        self.is_near = limit.is_some_and(|limit| pace::is_near(before, limit));
        self.limit = limit.map(|limit| (limit, now));
        true
    }

    /// What is to be noted when it comes near its limit.
    pub fn comes_near(&mut self) -> Option<String> {
        let is_new = self.is_near && !self.is_near_said;
        self.is_near_said = self.is_near;
        let (limit, _) = self.limit.filter(|_| is_new)?;
        let (left, of) = (human(limit.left_bytes), human(limit.limit_bytes));
        let text = format!("near its memory limit, {left} of {of} left");
        Some(note::about(self.process.pid, &text))
    }

    pub fn state(&self) -> State {
        State {
            since: self.account.map(|account| account.at.elapsed()),
            age: self.found_at.elapsed(),
            cost: self.account.map(|account| account.cost),
            resident_then: self.account.map_or(0, |account| account.resident),
            resident_now: self.resident,
            is_near: self.is_near,
            suspect: self.trust.is_suspect().then(|| self.trust.wait()),
            own: self.own,
        }
    }

    /// Its CPU time, and what its last account cost; and the same for accounts with holders and for class histograms.
    pub fn purses(&mut self) -> impl Iterator<Item = (&mut Purse, Option<Duration>)> {
        let first = self.first_histogram();
        let own = (&mut self.own, self.account.map(|account| account.cost));
        let classes = self.classes.as_mut().map(Seldom::purse);
        let classes = classes.map(|(own, cost)| (own, Some(cost.unwrap_or(first))));
        std::iter::once(own).chain(self.holders.as_mut().map(Seldom::purse)).chain(classes)
    }

    /// The one that an account is paid from.
    pub fn purse_of(&mut self, payer: Payer) -> &mut Purse {
        match (payer, &mut self.holders, &mut self.classes) {
            (Payer::Holders, Some(seldom), _) | (Payer::Classes, _, Some(seldom)) => seldom.purse().0,
            _ => &mut self.own,
        }
    }

    /// How much an account with holders is wanted now, at least 1. Without holders first: what cannot be read without them
    /// cannot be read with them.
    pub fn holders_urgency(&self, shares: &Shares) -> Option<f64> {
        // Whatever the first one costs, it is paid back later.
        self.holders.as_ref().filter(|_| self.is_readable())?.urgency(shares, Duration::from_nanos(1))
    }

    /// How much a class histogram is wanted now, at least 1. The first one is paid before, too: with a large heap, all of them
    /// cost much more than an account.
    pub fn classes_urgency(&self, shares: &Shares) -> Option<f64> {
        self.classes.as_ref().filter(|_| self.is_readable())?.urgency(shares, self.first_histogram())
    }

    /// At the end of the recording, whatever the interval.
    pub fn last_classes(&self, shares: &Shares) -> Option<What> {
        let classes = self.classes.as_ref().filter(|_| self.is_readable())?;
        classes.is_paid(shares, self.first_histogram()).then_some(What::Classes)
    }

    fn is_readable(&self) -> bool {
        self.read_at.is_some() && self.trust.is_clean()
    }

    /// What the first class histogram is taken to cost: of a heap whose size is not known, as if the whole process were heap.
    fn first_histogram(&self) -> Duration {
        let bytes = self.heap_bytes.unwrap_or(self.resident).min(self.resident);
        HISTOGRAM_COST_OF_GIB.mul_f64(bytes as f64 / (1_u64 << 30) as f64)
    }

    /// Until the next attempt to read the holders, or the classes.
    pub fn wait_for(&self, what: What) -> Duration {
        let seldom = if what == What::Classes { &self.classes } else { &self.holders };
        seldom.as_ref().map_or(Duration::ZERO, Seldom::wait)
    }

    /// Since the account that the recording has was read.
    pub fn account_age(&self) -> Option<Duration> {
        self.read_at.map(|at| at.elapsed())
    }

    /// What to read of it next.
    pub fn wanted(&self, limits: TargetLimits) -> Wanted {
        let near = self.group.as_ref().filter(|_| self.is_near);
        Wanted {
            near_group: near.map(|group| group.path.clone()),
            number: self.number,
            process: self.process.clone(),
            depth: self.trust.depth(self.failed_at.map(|at| at.elapsed())),
            what: What::Account,
            limits,
            asks_facts: !self.is_known() && self.asked < ASKED_MAX,
        }
    }

    /// An account was read, or given up. Its figures, read at `at_ms` of the steady clock, and what they replace.
    pub fn accept(
        &mut self,
        mut read: Known<AccountRead>,
        of: &Wanted,
        took: Took,
        at_ms: u64,
    ) -> Known<(Scope, Figures)> {
        let seldom = match of.what {
            What::Account => None,
            What::AccountWithHolders => self.holders.as_mut(),
            What::Classes => self.classes.as_mut(),
        };
        match seldom {
            Some(seldom) => {
                seldom.tried(&read, took);
                read.iter_mut().for_each(|read| seldom.choose(&mut read.rows));
            }
            None => self.note_outcome(&read, of, took),
        }
        if of.what == What::Classes {
            self.lacks_classes = read.as_ref().err().cloned();
            return Ok((Scope::Classes, figures::of_classes(read?.rows, at_ms)));
        }
        let has_holders = of.what == What::AccountWithHolders;
        let mut read = read?;
        self.loaders.choose(&mut read.rows);
        self.compiled.choose(&mut read.rows);
        if let (true, Some(account)) = (has_holders, &mut self.account) {
            (account.at, account.resident) = (took.began, self.resident);
        }
        self.counters = read.counters;
        self.read_at = Some(took.began);
        let took_us = took.wall.as_micros() as u64;
        let mut account = figures::of_account(read.rows, at_ms, took_us, read.gaps);
        account.extend(figures::of_group_rows(self.group.as_ref()));
        if !read.has_holders {
            self.lacks_holders |= has_holders;
            return Ok((Scope::Account, account));
        }
        account.push((Key::process(Measure::HoldersAt), Some(at_ms)));
        Ok((Scope::AccountWithHolders, account))
    }

    /// What an account without holders cost, and whether it ended in time.
    fn note_outcome(&mut self, read: &Known<AccountRead>, of: &Wanted, took: Took) {
        self.account = Some(LastAccount { at: took.began, cost: took.cpu, resident: self.resident });
        match read {
            Ok(_) => self.trust.succeeded(of.depth),
            Err(gap) if gap.why.is_given_up() && gap.why != Why::Interrupted => {
                self.trust.failed(of.depth);
                self.failed_at = Some(Instant::now());
            }
            Err(_) => {}
        }
    }

    fn is_known(&self) -> bool {
        self.facts.version.is_some() && self.facts.gc.is_some() && self.facts.main.is_some()
    }

    /// Who it is, where that is better known now.
    pub fn learn(&mut self, facts: JvmFacts) -> Option<JvmFacts> {
        self.asked += 1;
        let is_new = facts != self.facts && facts.pid == self.process.pid;
        is_new.then(|| {
            self.facts = facts.clone();
            facts
        })
    }

    /// What is to be noted when its account has become too old: once, until there is a new one.
    pub fn becomes_late(&mut self, account_every: Duration) -> Option<String> {
        let state = self.state();
        let is_late = state.is_late(account_every);
        let is_new = is_late && !std::mem::replace(&mut self.is_late_said, is_late);
        let seconds = state.since.unwrap_or(state.age).as_secs();
        let why = match (self.trust.is_suspect(), state.cost) {
            (true, _) => "its readings take too long".to_string(),
            (false, Some(cost)) => format!("an account takes {} ms of CPU time", cost.as_millis()),
            (false, None) => "the budget of CPU time is used up".to_string(),
        };
        let text = format!("no account for {seconds} s: {why}; --cpu allows more");
        is_new.then(|| note::about(self.process.pid, &text))
    }

    /// What is to be noted, once, where the holders cannot be read.
    pub fn lacks_holders(&mut self) -> Option<String> {
        let is_new = self.lacks_holders && !std::mem::replace(&mut self.is_lack_said, self.lacks_holders);
        is_new.then(|| note::about(self.process.pid, "no holders: the blocks of its malloc cannot be read"))
    }

    /// What is to be noted where a class histogram is due and cannot be paid, or, once, where it cannot be read.
    pub fn lacks_classes(&mut self, shares: &Shares) -> Option<String> {
        let gap =
            self.lacks_classes.as_ref().filter(|gap| !gap.why.is_given_up() && !self.is_class_lack_said);
        if let Some(gap) = gap {
            self.is_class_lack_said = true;
            return Some(note::about(self.process.pid, &format!("no class histogram: {gap}")));
        }
        let (first, is_readable) = (self.first_histogram(), self.is_readable());
        let cost = self.classes.as_mut().filter(|_| is_readable)?.is_delayed(shares, first)?;
        let text = format!(
            "the class histogram comes later than asked for: it takes some {} ms of CPU time; --cpu allows more",
            cost.as_millis()
        );
        Some(note::about(self.process.pid, &text))
    }

    /// How it ended, now that it is gone.
    pub fn ending(&self) -> Ending {
        let killed = self.group.as_ref().and_then(|group| {
            let (before, now) = (self.kills_before.or(kills(group))?, group_memory::oom_kills(&group.path)?);
            Some(now > before)
        });
        let exit = self.pidfd.as_ref().and_then(pidfd::exit);
        match (killed, exit) {
            // Another process of its group was killed then.
            (_, Some(exit)) if exit != Exit::Signal(libc::SIGKILL) => Ending::Exit(exit),
            (Some(true), _) => Ending::KilledForMemory,
            (_, Some(exit)) => Ending::Exit(exit),
            // A group that is gone with its container tells nothing any more.
            (_, None) => Ending::Ended,
        }
    }
}

fn kills(group: &GroupMemory) -> Option<u64> {
    group.events.get("oom_kill").copied()
}
