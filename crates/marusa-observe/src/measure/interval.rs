//! From the last and the present values of counters to what happened between: (last, now) -> counts. A counter that shared the
//! processor's counters with others ran for a part of the time only; it is scaled by that part, and the part is kept.

use crate::os::perf::Reading;
use std::ops::AddAssign;

/// What was counted in one interval. Times are those of the threads, not of the clock: a thread that sleeps adds none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub raw: u64,
    pub enabled_ns: u64,
    pub running_ns: u64,
}

impl Count {
    /// `None`: the counter went backwards, which no counter does, so one of the two readings is of another one.
    pub fn between(last: Reading, now: Reading) -> Option<Count> {
        Some(Count {
            raw: now.value.checked_sub(last.value)?,
            enabled_ns: now.enabled_ns.checked_sub(last.enabled_ns)?,
            running_ns: now.running_ns.checked_sub(last.running_ns)?,
        })
    }

    /// For the whole time. `None`: it never ran, so nothing is known. A thread that never ran had nothing to count.
    pub fn scaled(self) -> Option<f64> {
        match (self.enabled_ns, self.running_ns) {
            (0, _) => Some(self.raw as f64),
            (_, 0) => None,
            (enabled, running) if running >= enabled => Some(self.raw as f64),
            (enabled, running) => Some(self.raw as f64 * (enabled as f64 / running as f64)),
        }
    }

    /// The part of the time that it counted. `None`: there was no time.
    pub fn running_share(self) -> Option<f64> {
        (self.enabled_ns > 0).then(|| (self.running_ns as f64 / self.enabled_ns as f64).min(1.0))
    }
}

/// Counts of several threads are added before they are scaled, as `perf stat` does: a thread that was too short-lived for
/// its turn is then scaled by how the others fared.
impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.raw = self.raw.saturating_add(other.raw);
        self.enabled_ns = self.enabled_ns.saturating_add(other.enabled_ns);
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(value: u64, enabled_ns: u64, running_ns: u64) -> Reading {
        Reading { value, enabled_ns, running_ns }
    }

    #[test]
    fn multiplexed_counts_are_scaled_and_keep_their_share() {
        let count = Count::between(reading(100, 1000, 500), reading(1100, 5000, 1500)).expect("forwards");
        assert_eq!(count, Count { raw: 1000, enabled_ns: 4000, running_ns: 1000 });
        assert_eq!((count.scaled(), count.running_share()), (Some(4000.0), Some(0.25)));
    }

    #[test]
    fn a_counter_that_never_ran_is_not_known_and_a_thread_that_never_ran_counted_nothing() {
        assert_eq!(Count { raw: 0, enabled_ns: 10, running_ns: 0 }.scaled(), None);
        assert_eq!(Count::default().scaled(), Some(0.0));
        assert_eq!(Count::default().running_share(), None);
        assert_eq!(Count { raw: 7, enabled_ns: 10, running_ns: 11 }.scaled(), Some(7.0), "clocks may differ");
    }

    #[test]
    fn what_goes_backwards_is_no_count() {
        assert_eq!(Count::between(reading(10, 5, 5), reading(9, 6, 6)), None);
        assert_eq!(Count::between(reading(10, 5, 5), reading(11, 4, 6)), None);
        let all = Count::between(reading(0, 0, 0), reading(u64::MAX, u64::MAX, u64::MAX)).expect("forwards");
        let mut sum = all;
        sum += all;
        assert_eq!(sum.raw, u64::MAX, "a sum saturates");
    }

    #[test]
    fn a_short_thread_is_scaled_with_the_others() {
        let mut sum = Count { raw: 100, enabled_ns: 1000, running_ns: 500 };
        sum += Count { raw: 0, enabled_ns: 1000, running_ns: 0 };
        assert_eq!(sum.scaled(), Some(400.0));
    }
}
