//! One JVM that is recorded: what is kept open of it, what was seen last, and what a look at it gives.

use super::found;
use crate::base::limits::TargetLimits;
use crate::base::{Bytes, Gap, Known, Range, Why, human};
use crate::map::rows::Row;
use crate::map::{self, Account};
use crate::os::budget;
use crate::os::group_memory::{self, GroupMemory};
use crate::os::peek::Peek;
use crate::os::process::Process;
use crate::os::{cpu_time, pressure};
use crate::record::figures::{self, Figures};
use crate::record::glance;
use crate::record::note;
use crate::record::pace::{self, Limit, State};
use crate::record::trust::Trust;
use crate::record::writer::{Ending, JvmFacts};
use crate::snapshot::{Want, take};
use std::time::{Duration, Instant};

/// A process without a limit may be moved into a group that has one.
const GROUP_AGAIN: Duration = Duration::from_secs(60);
/// A JVM that starts does not know all of itself yet: so many accounts ask again who it is.
const ASKED_MAX: u32 = 5;

pub struct Watched {
    pub process: Process,
    /// Its number in the file.
    pub number: u64,
    pub facts: JvmFacts,
    /// When it is looked at next.
    pub next: Instant,
    peek: Known<Peek>,
    counters: Option<Range>,
    asked: u32,
    account: Option<LastAccount>,
    resident: Bytes,
    group: Option<GroupMemory>,
    /// As its group counted at the look before the last: a kill is counted before it is sent (mm/oom_kill.c).
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
    pub fn new(process: Process, facts: JvmFacts, number: u64) -> Watched {
        Watched {
            peek: Peek::open(&process),
            process,
            number,
            facts,
            next: Instant::now(),
            counters: None,
            asked: 0,
            account: None,
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

    /// The cheap look. Fails when the process is gone.
    pub fn look(&mut self) -> Known<Figures> {
        let glance = glance::take(&self.process, &self.peek, self.counters)?;
        // One that ended and that nobody has collected still has a status, but no memory.
        if glance.status.resident_bytes.is_none() && !self.process.is_same() {
            return Err(Gap::new("the process", Why::Gone));
        }
        self.uid = glance.status.uid.or(self.uid);
        self.resident = glance.status.resident_with_hugetlb_bytes().unwrap_or(self.resident);
        let mut seen = figures::of_status(&glance.status);
        // What can not be read now is not what it was.
        seen.extend(figures::of_counters(&glance.counters.unwrap_or_default()));
        self.look_at_group();
        let pressure = self.group.as_ref().and_then(|_| pressure::of_group(&self.process).ok());
        seen.extend(figures::of_group(self.group.as_ref(), pressure.as_ref()));
        Ok(seen)
    }

    fn look_at_group(&mut self) {
        let now = Instant::now();
        let is_due = self.group_at.is_none_or(|at| now.duration_since(at) >= GROUP_AGAIN);
        if self.group.is_none() && !is_due {
            return;
        }
        self.group_at = Some(now);
        let Ok(group) = group_memory::of(&self.process) else { return };
        // Keep what was read while the process ran: once it is killed, the kernel has counted the kill, and while it
        // exits, cgroup v1 reports the root as its group (kernel/cgroup/cgroup.c, proc_cgroup_show).
        let is_running = self.process.status().is_ok_and(|status| !status.is_ending());
        if !is_running {
            return;
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
            cost: self.account.map(|account| account.cost),
            resident_then: self.account.map_or(0, |account| account.resident),
            resident_now: self.resident,
            is_near: self.is_near,
            suspect: (self.trust.failures > 0).then(|| self.trust.wait()),
        }
    }

    /// The account. Without one the look stays.
    pub fn account(&mut self, at_ms: u64, limits: TargetLimits) -> Known<Figures> {
        let (start, cpu) = (Instant::now(), cpu_time::own());
        let read = budget::within(limits, || self.read());
        let cost = cpu_time::own().saturating_sub(cpu);
        self.account = Some(LastAccount { at: Instant::now(), cost, resident: self.resident });
        match &read {
            Ok(_) => self.trust.succeeded(),
            Err(gap) if gap.why.is_given_up() && gap.why != Why::Interrupted => self.trust.failed(),
            Err(_) => {}
        }
        let (rows, gaps, counters) = read?;
        self.counters = counters;
        let mut account = figures::of_account(rows, at_ms, start.elapsed().as_micros() as u64, gaps);
        account.extend(figures::of_group_rows(self.group.as_ref()));
        Ok(account)
    }

    fn read(&self) -> Known<(Vec<Row>, usize, Option<Range>)> {
        // Torn or not: the next one comes soon.
        let snapshot = take::take_once(&self.process, Want::default())?;
        // A part of an account looks as if areas had shrunk.
        if let Some(gap) = snapshot.os.gaps.iter().find(|gap| gap.why.is_given_up()) {
            return Err(gap.clone());
        }
        let map = map::join(&snapshot);
        let counters = snapshot.jvm.as_ref().ok().and_then(glance::counters_of);
        Ok((Account::of(&snapshot, &map).rows(), map.gaps.len(), counters))
    }

    /// Who it is, where that is better known now.
    pub fn learn(&mut self) -> Option<JvmFacts> {
        let is_known = self.facts.version.is_some() && self.facts.gc.is_some() && self.facts.main.is_some();
        if is_known || self.asked == ASKED_MAX {
            return None;
        }
        self.asked += 1;
        let facts = found::facts(&self.process);
        let is_new = facts != self.facts && facts.pid == self.process.pid;
        is_new.then(|| {
            self.facts = facts.clone();
            facts
        })
    }

    /// How it ended, now that it is gone.
    pub fn ending(&self) -> Ending {
        let killed = self.group.as_ref().and_then(|group| {
            let (before, now) = (self.kills_before.or(kills(group))?, group_memory::oom_kills(&group.path)?);
            Some(now > before)
        });
        // A group that is gone with its container tells nothing any more.
        if killed == Some(true) { Ending::KilledForMemory } else { Ending::Ended }
    }
}

fn kills(group: &GroupMemory) -> Option<u64> {
    group.events.get("oom_kill").copied()
}
