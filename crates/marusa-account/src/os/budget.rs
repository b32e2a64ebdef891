//! The deadline and the memory bound of one target. A target's bytes may be laid out to make reading them slow or large, and
//! the limits of single walks (`base::limits`) add up to more than a caller can wait for. So whoever reads a target does it
//! `within` a budget, and everything that reads or loops asks `check`, which fails for the rest of the target once the time
//! is over, the memory is used up, or a signal to end is pending. The failure is a fault or a gap like any other, so walks end
//! by the path that they have for unreadable memory, and what was read before stays.
//!
//! The budget belongs to the thread; helper threads get it by `inherit`. `check` costs a thread-local counter, a reading of the
//! clock every `CHECKS_PER_LOOK` calls, and the kernel's answers every `LOOK_EVERY`.
//!
//! Memory is what this process has resident (/proc/self/statm) beyond what it had when the target was begun. That counts all
//! there is, copies of pages included, without a counter in every allocation; between two samples a single walk may add what its
//! own limit allows. Targets that are read at the same time count together.
//!
//! A signal counts only where the command blocks it (`act::signals::Blocked`) to end in its own way; elsewhere it ends the
//! process by its default action, whatever the process does.

use super::machine::base_page;
use super::signal_set::SignalSet;
use crate::base::limits::{TARGET_ALONE, TargetLimits};
use crate::base::{Bytes, Gap, Known, Why};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Cheap checks between two readings of the clock.
const CHECKS_PER_LOOK: u32 = 64;
/// How often the kernel is asked for pending signals and for our memory; both answers take about 2 us.
const LOOK_EVERY: Duration = Duration::from_millis(4);
/// The signals by which people and systems end a program.
pub const ENDING_SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// What may still be used for one target.
#[derive(Debug)]
pub struct Budget {
    started: Instant,
    deadline: Instant,
    limits: TargetLimits,
    /// Resident bytes of this process at which the memory is used up.
    resident_max: u64,
    next_look_us: AtomicU64,
    /// Why it ended: an index into `ENDS`, 0 while it has not.
    ended: AtomicU8,
}

const ENDS: [Option<Why>; 4] = [None, Some(Why::OverDeadline), Some(Why::OverMemory), Some(Why::Interrupted)];

thread_local! {
    static CURRENT: RefCell<Option<Arc<Budget>>> = const { RefCell::new(None) };
    static CHECKS: Cell<u32> = const { Cell::new(0) };
    /// A check of this thread has failed within this budget, and all later ones do.
    static HAS_FAILED: Cell<bool> = const { Cell::new(false) };
}

/// Whether hints name `--deadline`.
static MORE_TIME: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static LIMITS: Mutex<TargetLimits> = Mutex::new(TARGET_ALONE);

/// Sets what each target of this command may take.
pub fn set_limits(limits: TargetLimits) {
    *LIMITS.lock().unwrap_or_else(PoisonError::into_inner) = limits;
}

/// Ends all readings within a budget as a signal to end does, until it is called with `false`.
pub fn interrupt(is_interrupted: bool) {
    INTERRUPTED.store(is_interrupted, Ordering::Relaxed);
}

/// Says that this command has the option `--deadline`.
pub fn allow_more_time() {
    MORE_TIME.store(true, Ordering::Relaxed);
}

/// What each target of this command may take.
pub fn limits() -> TargetLimits {
    *LIMITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `read` within the budget of one target. Within another budget it gets no more than is left of that.
pub fn within<T>(limits: TargetLimits, read: impl FnOnce() -> T) -> T {
    let mut budget = Budget::new(limits);
    if let Some(outer) = current() {
        // The limit that counts is the one that is reported.
        if outer.deadline < budget.deadline {
            (budget.deadline, budget.limits.time) = (outer.deadline, outer.limits.time);
        }
        if outer.resident_max < budget.resident_max {
            (budget.resident_max, budget.limits.bytes) = (outer.resident_max, outer.limits.bytes);
        }
    }
    with(Some(Arc::new(budget)), read)
}

/// A closure for another thread that reads the same target: it takes the budget of this thread along.
pub fn inherit<T>(read: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let budget = current();
    move || with(budget, read)
}

/// Does each of `count` pieces of work once and gives the results in their order. A second thread helps where that `is_large`; it
/// has `failed` if it panics.
pub fn divided<T: Send, W: FnMut(usize) -> Known<T>>(
    count: usize,
    is_large: bool,
    failed: Gap,
    worker: impl Fn() -> W + Sync,
) -> Known<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut piece, mut done) = (worker(), Vec::new());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(done);
            }
            done.push((index, piece(index)?));
        }
    };
    let done: Known<Vec<(usize, T)>> = std::thread::scope(|scope| {
        let helper = is_large.then(|| scope.spawn(inherit(work)));
        let mut done = work()?;
        if let Some(helper) = helper {
            done.extend(helper.join().map_err(|_| failed)??);
        }
        Ok(done)
    });
    let mut done = done?;
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Fails when the target has used up its time or its memory, or when a signal to end is pending. For loops of many small
/// steps.
pub fn check() -> Result<(), Why> {
    let count = CHECKS.get().wrapping_add(1);
    CHECKS.set(count);
    match count.is_multiple_of(CHECKS_PER_LOOK) || HAS_FAILED.get() {
        true => check_now(),
        false => Ok(()),
    }
}

/// As `check`, for steps that may take long: system calls and reads of files.
pub fn check_now() -> Result<(), Why> {
    let checked = CURRENT.with_borrow(|budget| budget.as_ref().map_or(Ok(()), |budget| budget.check(true)));
    checked.inspect_err(|_| HAS_FAILED.set(true))
}

/// Why the rest of the target is not read any more; `None` while it is.
pub fn ended() -> Option<Gap> {
    CURRENT.with_borrow(|budget| budget.as_ref()?.gap())
}

/// The gap that a failed check leaves in the reading of `what`.
pub fn checked(what: &str) -> Result<(), Gap> {
    check_now().map_err(|why| ended().unwrap_or_else(|| Gap::new(what, why)))
}

fn current() -> Option<Arc<Budget>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Puts the former budget back when it is dropped, in a panic too.
struct Installed(Option<Arc<Budget>>);

impl Drop for Installed {
    fn drop(&mut self) {
        replace(self.0.take());
    }
}

/// Puts a budget in place of the current one, which it gives.
fn replace(budget: Option<Arc<Budget>>) -> Option<Arc<Budget>> {
    HAS_FAILED.set(budget.as_ref().is_some_and(|budget| budget.check(false).is_err()));
    CURRENT.replace(budget)
}

fn with<T>(budget: Option<Arc<Budget>>, read: impl FnOnce() -> T) -> T {
    let _installed = Installed(replace(budget));
    read()
}

impl Budget {
    fn new(limits: TargetLimits) -> Budget {
        let started = Instant::now();
        Budget {
            started,
            deadline: started.checked_add(limits.time).unwrap_or(started),
            limits,
            resident_max: resident_bytes().map_or(u64::MAX, |bytes| bytes.saturating_add(limits.bytes)),
            next_look_us: AtomicU64::new(0),
            ended: AtomicU8::new(0),
        }
    }

    #[inline]
    fn check(&self, may_look: bool) -> Result<(), Why> {
        match ENDS.get(self.ended.load(Ordering::Relaxed) as usize).copied().flatten() {
            Some(why) => Err(why),
            None if may_look => self.look(),
            None => Ok(()),
        }
    }

    fn look(&self) -> Result<(), Why> {
        let now = Instant::now();
        if now >= self.deadline {
            return self.end(1);
        }
        let passed_us = now.duration_since(self.started).as_micros() as u64;
        if passed_us < self.next_look_us.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.next_look_us.store(passed_us + LOOK_EVERY.as_micros() as u64, Ordering::Relaxed);
        if is_interrupted() {
            return self.end(3);
        }
        match resident_bytes().is_some_and(|bytes| bytes > self.resident_max) {
            true => self.end(2),
            false => Ok(()),
        }
    }

    /// The first reason stays.
    fn end(&self, number: u8) -> Result<(), Why> {
        let _ = self.ended.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        self.check(false)
    }

    fn gap(&self) -> Option<Gap> {
        let why = self.check(false).err()?;
        let limits = &self.limits;
        let hint = match why {
            Why::OverDeadline => {
                let more = if MORE_TIME.load(Ordering::Relaxed) { "; --deadline allows more" } else { "" };
                format!("reading was stopped after {} s{more}", limits.time.as_secs_f64())
            }
            Why::OverMemory => {
                format!("reading was stopped when it had taken {} MiB of memory here", limits.bytes >> 20)
            }
            _ => "a signal to end arrived".to_string(),
        };
        Some(Gap::new("the rest of the process", why).hint(hint))
    }
}

/// Whether readings are to end.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed) || is_signal_pending()
}

/// Whether a signal to end is pending for this process or this thread, which blocks it.
pub fn is_signal_pending() -> bool {
    let pending = SignalSet::pending();
    ENDING_SIGNALS.iter().any(|signal| pending.has(*signal))
}

/// What this process has in memory: the second figure of statm, in pages (proc_pid_statm(5)).
fn resident_bytes() -> Option<Bytes> {
    static STATM: OnceLock<Option<File>> = OnceLock::new();
    let file = STATM.get_or_init(|| File::open("/proc/self/statm").ok()).as_ref()?;
    let mut text = [0; 128];
    let length = file.read_at(&mut text, 0).ok()?;
    let words = std::str::from_utf8(&text[..length]).ok()?;
    Some(words.split(' ').nth(1)?.parse::<Bytes>().ok()? * base_page())
}

/// Time that the slow ones of many targets share, so that a host full of them does not take its number times the limit of
/// one. A target that is read quickly takes nothing of it; when nothing is left, each gets `least`.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    left: Duration,
    least: Duration,
}

impl Pool {
    pub fn new(shared: Duration, least: Duration) -> Pool {
        Pool { left: shared, least }
    }

    /// Reads one of the targets.
    pub fn within<T>(&mut self, limits: TargetLimits, read: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let time = limits.time.min(self.left.max(self.least));
        let result = within(TargetLimits { time, ..limits }, read);
        let taken = started.elapsed();
        if taken > self.least {
            self.left = self.left.saturating_sub(taken);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: TargetLimits = TargetLimits { time: Duration::from_secs(3600), bytes: 1 << 40 };

    fn until_ended() -> Why {
        loop {
            if let Err(why) = check() {
                return why;
            }
        }
    }

    #[test]
    fn no_budget_ends_nothing_and_one_ends_with_its_time() {
        assert!((0..1000).all(|_| check().is_ok()) && check_now().is_ok() && ended().is_none());
        let limits = TargetLimits { time: Duration::from_millis(1), ..SOME };
        let gap = within(limits, || {
            assert_eq!(until_ended(), Why::OverDeadline);
            assert_eq!(check(), Err(Why::OverDeadline), "for good");
            // An inner budget does not extend an outer one.
            assert_eq!(within(SOME, check_now), Err(Why::OverDeadline));
            ended()
        });
        assert!(gap.is_some_and(|gap| gap.to_string().contains("stopped after 0.001 s")));
        assert_eq!(check(), Ok(()), "the next target has its own");
    }

    #[test]
    fn one_ends_with_its_memory() {
        let limits = TargetLimits { bytes: 16 << 20, ..SOME };
        let mut kept: Vec<Vec<u8>> = Vec::new();
        let why = within(limits, || {
            loop {
                kept.push(vec![1; 1 << 20]);
                if let Err(why) = check_now() {
                    return why;
                }
                assert!(kept.len() < 4096, "256 times the bound");
            }
        });
        assert_eq!(why, Why::OverMemory);
    }

    #[test]
    fn helpers_share_it() {
        let limits = TargetLimits { time: Duration::from_millis(1), ..SOME };
        let whys = within(limits, || {
            std::thread::scope(|scope| {
                let helper = scope.spawn(inherit(until_ended));
                (until_ended(), helper.join().expect("no panic"))
            })
        });
        assert_eq!(whys, (Why::OverDeadline, Why::OverDeadline));
        let alone = within(limits, || std::thread::spawn(check_now).join().expect("no panic"));
        assert_eq!(alone, Ok(()), "a thread that was not given it has none");
    }

    #[test]
    fn slow_targets_share_their_time() {
        let least = Duration::from_millis(1);
        let mut pool = Pool::new(Duration::from_millis(20), least);
        let limits = TargetLimits { time: Duration::from_millis(15), ..SOME };
        let taken = |pool: &mut Pool| {
            let started = Instant::now();
            assert_eq!(pool.within(limits, until_ended), Why::OverDeadline);
            started.elapsed()
        };
        taken(&mut pool);
        taken(&mut pool);
        assert_eq!(pool.left, Duration::ZERO);
        pool.within(limits, || assert_eq!(current().map(|budget| budget.limits.time), Some(least)));
    }
}
