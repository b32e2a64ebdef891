//! What it cost: times of the calls, our own CPU time, rests.

use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// Calls are kept in classes of an eighth of a power of two: any number of them takes the same room.
const CLASSES: usize = 8 * 40;

/// What a run took.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Price {
    pub wall_ms: f64,
    /// CPU time of our own thread: the kernel charges it with the copying.
    pub cpu_ms: f64,
    pub rested_ms: f64,
    pub calls: CallTimes,
    /// Calls that took longer than the stall budget.
    pub over_budget: u64,
    /// Calls for a block that was refused before.
    pub retries: u64,
}

/// The times of single calls: each is a bound of how long a thread of the target waited.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct CallTimes {
    pub count: u64,
    pub median_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// Times as they come.
pub(super) struct Histogram {
    counts: Vec<u64>,
    max: Duration,
}

impl Histogram {
    pub fn new() -> Histogram {
        Histogram { counts: vec![0; CLASSES], max: Duration::ZERO }
    }

    pub fn add(&mut self, time: Duration) {
        self.max = self.max.max(time);
        let nanoseconds = time.as_nanos().clamp(1, 1 << 39) as f64;
        self.counts[((nanoseconds.log2() * 8.0) as usize).min(CLASSES - 1)] += 1;
    }

    /// Each figure is the upper end of its class, 9 % above the time at most, and never above the longest.
    pub fn times(&self) -> CallTimes {
        let count: u64 = self.counts.iter().sum();
        let max_ms = self.max.as_secs_f64() * 1e3;
        let at = |share: f64| {
            let rank = (count as f64 * share).ceil().max(1.0) as u64;
            let mut below = 0;
            let class = self.counts.iter().position(|of_class| {
                below += of_class;
                below >= rank
            });
            class.map_or(0.0, |class| (2_f64.powf((class + 1) as f64 / 8.0) / 1e6).min(max_ms))
        };
        CallTimes { count, median_ms: at(0.5), p99_ms: at(0.99), max_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::cpu_time::of_this_thread;

    #[test]
    fn the_middle_and_the_ends_are_within_a_class() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.times(), CallTimes::default());
        (1..=1000).for_each(|step| histogram.add(Duration::from_micros(step)));
        let times = histogram.times();
        assert_eq!((times.count, times.max_ms), (1000, 1.0));
        assert!((0.5..0.55).contains(&times.median_ms), "{times:?}");
        assert!((0.99..=1.0).contains(&times.p99_ms), "{times:?}");
        histogram.add(Duration::from_secs(100_000));
        assert_eq!(histogram.times().max_ms, 1e8);
    }

    #[test]
    fn work_takes_time() {
        let before = of_this_thread();
        let mut sum = 0_u64;
        while of_this_thread() == before {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(of_this_thread() > before);
    }
}
