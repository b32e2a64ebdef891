//! What is read of one JVM less often than its account: accounts with holders, and class histograms. When the next one is due, on
//! CPU time of their own, and what is kept of them. One that was given up comes later each time, and says nothing of the
//! accounts.

use super::worker::{AccountRead, Took};
use crate::base::Known;
use crate::map::rows::{Named, Row};
use crate::record::holders::Kept;
use crate::record::pace::{Purse, Shares};
use std::time::{Duration, Instant};

/// The longest that one waits after failures.
const WAIT_MOST: Duration = Duration::from_secs(3600);

pub struct Seldom {
    every: Duration,
    kept: Kept,
    tried_at: Option<Instant>,
    cost: Option<Duration>,
    failures: u32,
    /// CPU time for them.
    own: Purse,
    /// That one is late was noted.
    is_delay_said: bool,
}

impl Seldom {
    pub fn new(kind: Named, every: Duration) -> Seldom {
        Seldom {
            every,
            kept: Kept::new(kind),
            tried_at: None,
            cost: None,
            failures: 0,
            own: Purse::default(),
            is_delay_said: false,
        }
    }

    /// Their CPU time, and what the last one cost.
    pub fn purse(&mut self) -> (&mut Purse, Option<Duration>) {
        (&mut self.own, self.cost)
    }

    /// From one to the next.
    pub fn wait(&self) -> Duration {
        let times = 2_u32.saturating_pow(self.failures);
        self.every.saturating_mul(times).min(WAIT_MOST.max(self.every))
    }

    /// How much one is wanted, at least 1; `None`: it is not due, or its CPU time does not allow it. `first`: what the first one is
    /// taken to cost.
    pub fn urgency(&self, shares: &Shares, first: Duration) -> Option<f64> {
        self.due().filter(|_| self.is_paid(shares, first))
    }

    pub fn is_paid(&self, shares: &Shares, first: Duration) -> bool {
        shares.allows(self.own, self.cost.unwrap_or(first))
    }

    fn due(&self) -> Option<f64> {
        let intervals = |since: Duration| since.as_secs_f64() / self.wait().as_secs_f64().max(1e-3);
        Some(self.tried_at.map_or(1.0, |at| intervals(at.elapsed()))).filter(|urgency| *urgency >= 0.999)
    }

    /// What one costs, where it is due and its CPU time does not allow it; once.
    pub fn is_delayed(&mut self, shares: &Shares, first: Duration) -> Option<Duration> {
        let is_delayed = self.due().is_some() && self.urgency(shares, first).is_none();
        let is_new = is_delayed && !std::mem::replace(&mut self.is_delay_said, true);
        is_new.then(|| self.cost.unwrap_or(first))
    }

    /// One was read, or given up.
    pub fn tried(&mut self, read: &Known<AccountRead>, took: Took) {
        (self.tried_at, self.cost) = (Some(took.began), Some(took.cpu));
        self.failures = if read.is_ok() { 0 } else { self.failures.saturating_add(1) };
    }

    pub fn choose(&mut self, rows: &mut Vec<Row>) {
        self.kept.choose(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Gap, Why};

    fn took(ago: u64, cpu_ms: u64) -> Took {
        let began = Instant::now() - Duration::from_secs(ago);
        Took { began, wall: Duration::ZERO, cpu: Duration::from_millis(cpu_ms) }
    }

    const FIRST: Duration = Duration::from_nanos(1);

    fn read() -> Known<AccountRead> {
        Ok(AccountRead { rows: Vec::new(), gaps: 0, counters: None, has_holders: true, shown: None })
    }

    #[test]
    fn the_first_is_due_at_once_and_the_next_after_its_time_and_when_it_is_paid() {
        let mut shares = Shares::new(0.01);
        let mut holders = Seldom::new(Named::Holder, Duration::from_secs(60));
        assert_eq!(holders.urgency(&shares, FIRST), Some(1.0), "on what the pool has");
        holders.tried(&read(), took(30, 500));
        assert_eq!(holders.urgency(&shares, FIRST), None, "30 s ago");
        holders.tried(&read(), took(120, 500));
        assert_eq!(holders.urgency(&shares, FIRST), None, "it costs more than there is");
        for _ in 0..60 {
            shares.earn(Duration::from_secs(1), Duration::ZERO, std::iter::once(holders.purse()));
        }
        assert!(holders.urgency(&shares, FIRST).is_some_and(|urgency| urgency >= 2.0));
    }

    #[test]
    fn one_that_cannot_be_paid_is_late_and_that_is_noted_once() {
        let mut shares = Shares::new(0.01);
        let mut classes = Seldom::new(Named::Class, Duration::from_secs(300));
        let first = Duration::from_secs(2);
        assert_eq!(
            (classes.urgency(&shares, first), classes.is_delayed(&shares, first)),
            (None, Some(first))
        );
        assert_eq!(classes.is_delayed(&shares, first), None, "it was noted");
        for _ in 0..250 {
            let purse = (classes.purse().0, Some(first));
            shares.earn(Duration::from_secs(1), Duration::ZERO, std::iter::once(purse));
        }
        assert_eq!((classes.urgency(&shares, first), classes.is_delayed(&shares, first)), (Some(1.0), None));
        classes.tried(&read(), took(400, 3000));
        assert_eq!(classes.urgency(&shares, first), None, "the last one cost 3 s");
    }

    #[test]
    fn one_that_was_given_up_comes_later_each_time() {
        let mut holders = Seldom::new(Named::Holder, Duration::from_secs(60));
        let given_up = || Err(Gap::new("the account", Why::OverLimit));
        for seconds in [120, 240, 480, 960, 1920, 3600, 3600] {
            holders.tried(&given_up(), took(0, 1));
            assert_eq!(holders.wait(), Duration::from_secs(seconds));
        }
        holders.tried(&read(), took(0, 1));
        assert_eq!(holders.wait(), Duration::from_secs(60));
    }
}
