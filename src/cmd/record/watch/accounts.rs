//! Which account is read next, on whose time, and what comes of one that was read or given up.

use super::{FIND_EVERY, FIND_REST, Watch, moment};
use crate::base::limits::{RECORD_MOST, TargetLimits};
use crate::base::{Gap, Known, Why};
use crate::cmd::record::worker::{AccountRead, Done, Job, Took, Wanted, What};
use crate::os::budget;
use crate::record::Moment;
use crate::record::pace::{self, Payer, Purse, State};
use crate::record::trust::Depth;
use crate::record::writer::JvmFacts;
use std::time::{Duration, Instant};

/// Less than that of any account that is due.
const CLASSES_URGENCY: f64 = 0.9;

impl Watch {
    /// Begins the account that is wanted most, or the search for new JVMs.
    pub(super) fn begin(&mut self) {
        let asked = pace::Asked {
            account_every: self.asked.account_every,
            near: self.jvms.iter().filter(|jvm| jvm.is_near).count(),
        };
        if self.asked.is_all && Instant::now() >= self.next_find && self.shares.allows_suspects() {
            let at_most = self.asked.jvms_max.saturating_sub(self.jvms.len());
            return self.worker.begin(Job::Find { at_most, ended: std::mem::take(&mut self.gone) });
        }
        let due = (0..self.jvms.len()).filter_map(|index| {
            let (urgency, payer) = self.due(index, asked)?;
            Some((index, urgency, payer))
        });
        let Some((index, _, payer)) = due.max_by(|one, other| one.1.total_cmp(&other.1)) else { return };
        let what = match payer {
            Payer::Holders => What::AccountWithHolders,
            Payer::Classes => What::Classes,
            _ => What::Account,
        };
        let limits =
            if what == What::Classes && self.asked.is_all { RECORD_MOST } else { self.limits(index) };
        let wanted = Wanted { what, ..self.jvms[index].wanted(limits) };
        // A full reading that was given up before is tried again on the time of all such.
        let is_retry = wanted.depth == Depth::Full && self.jvms[index].trust.failures > 0;
        let payer = if is_retry && self.asked.is_all { Payer::Suspects } else { payer };
        self.reads = Some((wanted.number, payer));
        self.worker.begin(Job::Account(wanted));
    }

    /// How much an account of a JVM is wanted, and on whose time. Near its limit, one with holders takes too long. A class
    /// histogram waits while accounts are due, and while any JVM is near its limit: it takes seconds.
    fn due(&self, index: usize, asked: pace::Asked) -> Option<(f64, Payer)> {
        let state = self.state(index);
        let plain = state.is_due(asked, &self.shares).map(|payer| (state.urgency(asked), payer));
        let holders = self.jvms[index].holders_urgency(&self.shares).filter(|_| !state.is_near);
        let classes = || {
            let urgency = self.jvms[index].classes_urgency(&self.shares).filter(|_| asked.near == 0)?;
            Some((CLASSES_URGENCY.min(urgency), Payer::Classes))
        };
        holders.map(|urgency| (urgency, Payer::Holders)).or(plain).or_else(classes)
    }

    pub(super) fn accept(&mut self, done: Done) {
        match done {
            Done::Account { of, read, facts, took } => {
                self.accept_account(&of, read, facts.map(|facts| *facts), took);
            }
            Done::Found { new, missed, took } => {
                new.into_iter().for_each(|(process, facts)| self.add(process, facts));
                self.served.iter().for_each(|served| served.node.state().is_listed |= missed.is_listed);
                self.missed = missed;
                self.note_full();
                self.shares.spend_on_search(took.cpu);
                self.cpu_before += took.cpu;
                // However many processes come, looking for JVMs takes a small part of the time.
                let rest = took.wall * FIND_REST;
                self.next_find =
                    Instant::now() + self.asked.every.clamp(FIND_EVERY.0, FIND_EVERY.1).max(rest);
            }
        }
    }

    pub(super) fn accept_account(
        &mut self,
        of: &Wanted,
        mut read: Known<AccountRead>,
        facts: Option<JvmFacts>,
        took: Took,
    ) {
        self.cpu_before += took.cpu;
        let payer = self.reads.take().map_or(Payer::Own, |(_, payer)| payer);
        let Some(index) = self.jvms.iter().position(|jvm| jvm.number == of.number) else {
            return self.shares.spend(payer, &mut Purse::default(), took.cpu);
        };
        let jvm = &mut self.jvms[index];
        self.shares.spend(payer, jvm.purse_of(payer), took.cpu);
        let facts = facts.map(|mut facts| {
            self.served.iter().for_each(|served| facts.identity = served.identity(&jvm.process));
            facts
        });
        if let Some(facts) = facts.and_then(|facts| jvm.learn(facts)) {
            self.served.iter().for_each(|served| served.node.learned(jvm.number, &facts));
            self.writer.learn(jvm.number, facts);
        }
        let at_ms = took.began.saturating_duration_since(self.started).as_millis() as u64;
        if let Some(served) = &self.served {
            served.read(of.number, &mut read);
        }
        match jvm.accept(read, of, took, at_ms) {
            Ok(account) => {
                self.look(index, Some(account));
            }
            Err(gap) => self.note_given_up(index, moment(self.started), of, &gap),
        }
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

    /// A JVM whose account took too long or too much is named, with what comes next.
    fn note_given_up(&mut self, index: usize, at: Moment, of: &Wanted, gap: &Gap) {
        let jvm = &self.jvms[index];
        if !gap.why.is_given_up() || gap.why == Why::Interrupted {
            return;
        }
        if let Some(uid) = jvm.uid.filter(|_| of.what == What::Account) {
            self.users.failed(uid);
        }
        let again = jvm.trust.wait().as_secs();
        let (what, next) = match of.depth {
            _ if of.what != What::Account => {
                let again = jvm.wait_for(of.what).as_secs();
                let what = if of.what == What::Classes { "class histogram" } else { "holders" };
                (what, format!("the next attempt is in {again} s, and accounts go on without"))
            }
            Depth::Full => (
                "account",
                format!("until the next full attempt in {again} s, accounts leave out malloc's blocks"),
            ),
            Depth::Shallow => ("account", format!("the next attempt is in {again} s")),
        };
        let text = format!("pid {}: no {what}: {gap}; {next}", jvm.process.pid);
        self.counts.given_up += 1;
        crate::say!("marusa: {text}");
        self.writer.note(at, &text);
    }

    fn note_full(&mut self) {
        let most = self.asked.jvms_max;
        if self.jvms.len() < most || self.is_full_said {
            return;
        }
        self.is_full_said = true;
        let text = format!("{most} JVMs are watched at once; others are left out while these run");
        crate::say!("marusa: {text}");
        self.writer.note(moment(self.started), &text);
    }
}
