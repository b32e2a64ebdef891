//! How fast: a share of one CPU, and a bound on how long the target may wait.
//!
//! While a block is copied, the kernel holds the lock of the target's address space for writing (mm/khugepaged.c,
//! `collapse_huge_page`): a thread that faults in the meantime waits, at most as long as the call takes. So the time of the call
//! is the bound that is kept, and what can be kept of it is that the next one is not made at once, or not at all.

use std::time::Duration;

/// The number of calls over the budget in a row that ends it.
const OVER_IN_A_ROW_MAX: u32 = 16;
/// A single call that takes this many budgets ends it, too.
const OVER_TIMES_MAX: u32 = 200;
/// The rest after a call over the budget: this many times its length, doubled with each that follows it.
const REST_TIMES: u32 = 10;
const REST_MAX: Duration = Duration::from_secs(1);
/// Time without work is not saved up for later beyond this.
const CREDIT_MAX: f64 = 0.1;
/// Sleeping less is not worth it.
const REST_MIN: Duration = Duration::from_millis(1);

fn in_ms<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64() * 1e3)
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Pace {
    /// Share of one CPU, above 0; 1 is not a limit.
    #[serde(rename = "cpu_budget")]
    pub cpu_share: f64,
    #[serde(rename = "stall_budget_ms", serialize_with = "in_ms")]
    #[schemars(with = "f64")]
    pub stall_budget: Duration,
    /// Whether the kernel may move others' memory where the host has no free piece of 2 MiB left.
    pub compact: bool,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { cpu_share: 0.1, stall_budget: Duration::from_millis(5), compact: false }
    }
}

/// What follows a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Go,
    Rest(Duration),
    /// Calls take too long for the budget, whatever the rests.
    Stop,
}

/// The state of a run.
pub struct Pacer {
    pace: Pace,
    /// Seconds of work, divided by the share, less the time that went by.
    debt: f64,
    over_in_a_row: u32,
    pub over_budget: u64,
}

impl Pacer {
    pub fn new(pace: Pace) -> Pacer {
        Pacer { pace, debt: 0.0, over_in_a_row: 0, over_budget: 0 }
    }

    /// After a block: the longest call that it took, the CPU time since the last block, and the time that went by, rests
    /// included.
    pub fn after(&mut self, call: Duration, cpu: Duration, wall: Duration) -> Next {
        let share = self.pace.cpu_share.clamp(0.001, 1.0);
        self.debt = (self.debt + cpu.as_secs_f64() / share - wall.as_secs_f64()).max(-CREDIT_MAX);
        if share >= 1.0 {
            self.debt = 0.0;
        }
        let mut rest = Duration::from_secs_f64(self.debt.clamp(0.0, 60.0));
        if call > self.pace.stall_budget {
            self.over_budget += 1;
            self.over_in_a_row += 1;
            let is_hopeless = call > self.pace.stall_budget.saturating_mul(OVER_TIMES_MAX);
            if is_hopeless || self.over_in_a_row >= OVER_IN_A_ROW_MAX {
                return Next::Stop;
            }
            let times = REST_TIMES << (self.over_in_a_row - 1).min(16);
            rest = rest.max(call.saturating_mul(times).min(REST_MAX));
        } else if call > Duration::ZERO {
            self.over_in_a_row = 0;
        }
        if rest >= REST_MIN { Next::Rest(rest) } else { Next::Go }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_tenth_of_a_cpu_rests_nine_times_as_long_as_it_works() {
        let mut pacer = Pacer::new(Pace::default());
        let mut wall = ms(0);
        for _ in 0..100 {
            let mut step = ms(2);
            wall += step;
            if let Next::Rest(rest) = pacer.after(ms(1), ms(2), step) {
                wall += rest;
                step += rest;
                pacer.after(ms(0), ms(0), rest);
            }
            assert!(step < ms(30));
        }
        assert!((wall.as_secs_f64() - 2.0).abs() < 0.05, "200 ms of work took {wall:?}");
    }

    #[test]
    fn a_long_sleep_is_not_made_up_for() {
        let mut pacer = Pacer::new(Pace::default());
        pacer.after(ms(1), ms(0), Duration::from_secs(100));
        let rested: Duration = (0..100)
            .map(|_| match pacer.after(ms(1), ms(2), ms(2)) {
                Next::Rest(rest) => {
                    pacer.after(ms(0), ms(0), rest);
                    rest
                }
                _ => ms(0),
            })
            .sum();
        assert!(rested > ms(1600), "{rested:?}");
    }

    #[test]
    fn the_whole_cpu_is_no_limit() {
        let mut pacer = Pacer::new(Pace { cpu_share: 1.0, ..Pace::default() });
        assert_eq!(pacer.after(ms(1), ms(5), ms(1)), Next::Go);
    }

    #[test]
    fn long_calls_are_followed_by_rests_that_grow_and_at_last_by_the_end() {
        let mut pacer = Pacer::new(Pace { cpu_share: 1.0, ..Pace::default() });
        assert_eq!(pacer.after(ms(6), ms(1), ms(6)), Next::Rest(ms(60)));
        assert_eq!(pacer.after(ms(6), ms(1), ms(6)), Next::Rest(ms(120)));
        assert_eq!(pacer.after(ms(5), ms(1), ms(5)), Next::Go);
        assert_eq!(pacer.after(ms(6), ms(1), ms(6)), Next::Rest(ms(60)));
        let ends = (0..20).position(|_| pacer.after(ms(6), ms(1), ms(6)) == Next::Stop);
        assert_eq!(ends, Some(14), "sixteen in a row");
        assert_eq!(pacer.over_budget, 18);
        let mut pacer = Pacer::new(Pace::default());
        assert_eq!(pacer.after(ms(1001), ms(1), ms(1001)), Next::Stop);
    }
}
