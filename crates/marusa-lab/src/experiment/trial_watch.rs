//! The JVM of a trial, looked at from outside while it runs: how much it has in memory, whose that is at its end and at
//! its peak, and on which pages its heap lies.
//!
//! A sample costs CPU time of ours, not of the JVM, and all arms are looked at alike. It is cheap (the kernel's own sums)
//! every few milliseconds at first and every half second later; a whole account is taken each time that half as much time
//! again has passed, and when the JVM has grown by a tenth, but never more than a fiftieth of the time goes into accounts.
//! The moment when the JVM will end is not known, so the last account counts as its end; the account says when it was taken.

use super::arm_pages::{self, PageMode, Verified};
use super::trial_record::{AreaBytes, ResidentAreas};
use crate::act::trial::Running;
use crate::base::{Bytes, Gap};
use crate::map::{self, Account};
use crate::os::process::Process;
use crate::os::{loaded, maps};
use crate::snapshot::{self, Want, page_settings};
use std::time::{Duration, Instant};

const TICK_MIN: Duration = Duration::from_millis(20);
const TICK_MAX: Duration = Duration::from_millis(500);
/// Before this a JVM sets itself up.
const FIRST_ACCOUNT: Duration = Duration::from_millis(300);
/// Accounts take at most this share of the time.
const BUDGET: u32 = 50;

/// What was seen.
#[derive(Debug, Default)]
pub struct Watched {
    /// With pages of hugetlb, all processes of the trial together, at the samples.
    pub peak_resident_bytes: Option<Bytes>,
    pub end: Option<ResidentAreas>,
    pub peak: Option<ResidentAreas>,
    /// The pages in the last account with a heap.
    pub pages: Option<Verified>,
    /// JVMs that were seen.
    pub jvms: usize,
    /// Release of the JVM: 8, 11, 17.
    pub feature: Option<u32>,
    /// Why there was no account, the last time that one was tried.
    pub gap: Option<Gap>,
}

/// Looks at a trial.
pub struct Watch {
    mode: PageMode,
    started: Instant,
    jvms: Vec<Process>,
    /// Pids that were not JVMs when they were looked at, and when that was.
    others: Vec<(i32, Instant)>,
    next_account: Duration,
    account_bytes: Bytes,
    pub seen: Watched,
}

impl Watch {
    pub fn new(mode: PageMode) -> Watch {
        Watch {
            mode,
            started: Instant::now(),
            jvms: Vec::new(),
            others: Vec::new(),
            next_account: FIRST_ACCOUNT,
            account_bytes: 0,
            seen: Watched::default(),
        }
    }

    /// When it is to be looked next.
    pub fn next(&self) -> Instant {
        Instant::now() + (self.started.elapsed() / 10).clamp(TICK_MIN, TICK_MAX)
    }

    /// The JVM that has most in memory.
    pub fn jvm(&self) -> Option<&Process> {
        self.jvms.iter().max_by_key(|jvm| resident(jvm).unwrap_or(0))
    }

    pub fn look(&mut self, running: &mut Running) {
        let pids = running.pids();
        self.find(&pids);
        let all: Bytes =
            pids.iter().filter_map(|pid| resident(&Process::open(*pid).ok()?)).fold(0, Bytes::saturating_add);
        if all > 0 {
            self.seen.peak_resident_bytes = Some(self.seen.peak_resident_bytes.unwrap_or(0).max(all));
        }
        let now = self.started.elapsed();
        let has_grown = all > self.account_bytes + self.account_bytes / 10;
        let is_due = now >= self.next_account || has_grown && now * 2 >= self.next_account + FIRST_ACCOUNT;
        if is_due && now >= FIRST_ACCOUNT && !self.jvms.is_empty() {
            self.account(all);
            let took = self.started.elapsed() - now;
            self.next_account = (now + now / 2).max(now + took * BUDGET);
        }
    }

    /// Which of the processes are JVMs: the ones that map libjvm.so. One that is none may become one, by exec.
    fn find(&mut self, pids: &[i32]) {
        self.jvms.retain(|jvm| pids.contains(&jvm.pid) && jvm.is_same());
        let again = Duration::from_millis(200);
        for pid in pids {
            let known = self.jvms.iter().any(|jvm| jvm.pid == *pid);
            let looked = self.others.iter().any(|(other, at)| other == pid && at.elapsed() < again);
            if known || looked {
                continue;
            }
            let Ok(process) = Process::open(*pid) else { continue };
            let maps = process.maps_text().unwrap_or_default();
            if loaded::any_vm(&maps::parse(&maps).0).is_some() {
                self.jvms.push(process);
                self.seen.jvms += 1;
            } else {
                self.others.retain(|(other, _)| other != pid);
                self.others.push((*pid, Instant::now()));
            }
        }
    }

    fn account(&mut self, all: Bytes) {
        let at_ms = self.started.elapsed().as_millis() as u64;
        let Some(jvm) = self.jvm() else { return };
        let taken = snapshot::take(jvm, Want { page_sizes: true, ..Want::default() });
        let mut snapshot = match taken {
            Ok(snapshot) if snapshot.jvm.is_ok() => snapshot,
            Ok(snapshot) => {
                self.seen.gap = snapshot.jvm.err();
                return;
            }
            Err(gap) => {
                self.seen.gap = Some(gap);
                return;
            }
        };
        snapshot.taken.page_settings = Some(page_settings::read(jvm, &snapshot));
        let map = map::join(&snapshot);
        let pages = arm_pages::verified(jvm, &snapshot, &map, self.mode);
        if !jvm.is_same() {
            return;
        }
        let account = sums(&Account::of(&snapshot, &map), at_ms);
        self.seen.feature = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.major.as_ref().ok().copied());
        self.account_bytes = all;
        self.seen.gap = None;
        if pages.heap_resident_bytes > 0 || self.seen.pages.is_none() {
            self.seen.pages = Some(pages);
        }
        if self.seen.peak.as_ref().is_none_or(|peak| peak.resident_bytes < account.resident_bytes) {
            self.seen.peak = Some(account.clone());
        }
        self.seen.end = Some(account);
    }
}

fn sums(account: &Account, at_ms: u64) -> ResidentAreas {
    let areas = account.areas.iter();
    let areas = areas.map(|sum| AreaBytes { area: sum.area, resident_bytes: sum.amounts.resident_bytes });
    let areas = areas.filter(|one| one.resident_bytes > 0).collect();
    ResidentAreas { at_ms, resident_bytes: account.totals.resident_bytes, areas }
}

fn resident(process: &Process) -> Option<Bytes> {
    process.status().ok()?.resident_with_hugetlb_bytes()
}
