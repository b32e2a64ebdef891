//! How much time a JVM is given whose reading failed by its length, and when. A target decides how long it takes to read
//! (`os::budget`), so one that took all of its time is read without malloc's blocks from then on, and rarely in full, each time
//! longer: a large and honest JVM gets its account at the third attempt at the latest. One whose shallow reading fails too is
//! a suspect: it is read rarely, on a small share of the budget that all suspects have together. A JVM of which nothing is known
//! comes after those of users who have none of these. Pure: times come from outside.

use crate::base::limits::{RECORD_FIRST, RECORD_MOST, TargetLimits};
use std::collections::HashMap;
use std::time::Duration;

/// An attempt gets this many times the time and the memory of the one before.
const MORE_EACH_TIME: u32 = 4;
/// How long the first attempt after a failure waits, each next one twice as long, and the longest wait.
const WAIT_FIRST: Duration = Duration::from_secs(20);
const WAIT_MOST: Duration = Duration::from_secs(3600);

/// What is known of one JVM's readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Full readings in a row that were given up.
    pub failures: u32,
    /// Shallow ones.
    shallow_failures: u32,
    /// How often more was given; it stays when a reading succeeds, as the next one needs as much.
    step: u32,
}

/// How much of a JVM is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Full,
    /// Without malloc's blocks.
    Shallow,
}

impl Trust {
    /// How deep the next reading goes. `since_failure`: since a full reading was given up.
    pub fn depth(self, since_failure: Option<Duration>) -> Depth {
        let may_retry = since_failure.is_none_or(|since| since >= self.wait());
        if self.failures == 0 || may_retry { Depth::Full } else { Depth::Shallow }
    }

    /// All readings ended in time.
    pub fn is_clean(self) -> bool {
        self.failures == 0 && self.shallow_failures == 0
    }

    /// Not even the shallow reading ends.
    pub fn is_suspect(self) -> bool {
        self.shallow_failures > 0
    }

    /// What the next reading may take.
    pub fn limits(self) -> TargetLimits {
        let times = MORE_EACH_TIME.saturating_pow(self.step);
        TargetLimits {
            time: RECORD_FIRST.time.saturating_mul(times).min(RECORD_MOST.time),
            bytes: RECORD_FIRST.bytes.saturating_mul(times.into()).min(RECORD_MOST.bytes),
        }
    }

    /// How long the next reading waits after one that was given up.
    pub fn wait(self) -> Duration {
        match self.failures.max(self.shallow_failures) {
            0 => Duration::ZERO,
            failures => WAIT_FIRST.saturating_mul(2_u32.saturating_pow(failures - 1)).min(WAIT_MOST),
        }
    }

    pub fn succeeded(&mut self, depth: Depth) {
        self.shallow_failures = 0;
        if depth == Depth::Full {
            self.failures = 0;
        }
    }

    pub fn failed(&mut self, depth: Depth) {
        match depth {
            Depth::Full => {
                self.failures = self.failures.saturating_add(1);
                self.step = self.step.saturating_add(1);
            }
            Depth::Shallow => self.shallow_failures = self.shallow_failures.saturating_add(1),
        }
    }
}

/// How many JVMs of each user were given up.
#[derive(Debug, Default)]
pub struct Users(HashMap<u32, u32>);

impl Users {
    pub fn failed(&mut self, uid: u32) {
        *self.0.entry(uid).or_default() += 1;
    }

    pub fn failures(&self, uid: u32) -> u32 {
        self.0.get(&uid).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attempt_is_longer_and_comes_later() {
        let mut trust = Trust::default();
        assert_eq!((trust.limits(), trust.wait()), (RECORD_FIRST, Duration::ZERO));
        let mut before = (trust.limits().time, trust.wait());
        for _ in 0..40 {
            trust.failed(Depth::Full);
            let now = (trust.limits().time, trust.wait());
            assert!(now.0 >= before.0 && now.1 >= before.1 && now.1 <= WAIT_MOST);
            assert!(now.1 >= now.0 * 2, "it takes less than half of the time: {now:?}");
            before = now;
        }
        assert_eq!(before, (RECORD_MOST.time, WAIT_MOST));
        trust.succeeded(Depth::Full);
        assert_eq!((trust.wait(), trust.limits().time), (Duration::ZERO, RECORD_MOST.time));
    }

    #[test]
    fn a_large_jvm_is_read_at_the_third_attempt() {
        let trust = Trust { failures: 2, step: 2, ..Trust::default() };
        assert_eq!(trust.limits().time, RECORD_MOST.time);
    }

    #[test]
    fn one_that_takes_too_long_is_read_without_its_depth_and_in_full_again_later() {
        let mut trust = Trust::default();
        assert_eq!(trust.depth(None), Depth::Full);
        trust.failed(Depth::Full);
        assert_eq!((trust.depth(Some(WAIT_FIRST / 2)), trust.is_suspect()), (Depth::Shallow, false));
        trust.succeeded(Depth::Shallow);
        assert_eq!(trust.depth(Some(WAIT_FIRST)), Depth::Full, "it is tried again");
        trust.failed(Depth::Shallow);
        assert!(trust.is_suspect());
        trust.succeeded(Depth::Full);
        assert_eq!((trust.depth(Some(Duration::ZERO)), trust.is_suspect()), (Depth::Full, false));
    }
}
