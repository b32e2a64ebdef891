//! The time that a piece of work took of the CPU, and how many cycles that is.
//!
//! The thread's CPU clock leaves out the time in which others had the CPU. Cycles are those of the time stamp counter, which
//! on every x86-64 CPU of the last ten years runs at one rate whatever the core does: *reference* cycles. The core's own may
//! be more or fewer, by its frequency.

use crate::base::{Gap, Known, Why};
use std::time::Duration;

/// What this thread has used of the CPU, in nanoseconds.
pub fn thread_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the struct, which outlives the call; on failure it stays 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// Finds the rate of the reference cycles by letting both clocks run.
pub struct CycleClock {
    ns: u64,
    ticks: Option<u64>,
}

impl CycleClock {
    /// Shorter, and the cost of reading the clocks would show.
    const SHORTEST: Duration = Duration::from_millis(20);

    pub fn start() -> CycleClock {
        CycleClock { ns: read(libc::CLOCK_MONOTONIC_RAW), ticks: ticks() }
    }

    /// Reference cycles in a nanosecond, since the start.
    pub fn cycles_per_ns(&self) -> Known<f64> {
        let missing = || {
            Gap::new("rate of the CPU's cycles", Why::NotInThisKernel).hint(
                "this CPU has no time stamp counter that a program may read: costs are in nanoseconds only",
            )
        };
        let before = self.ticks.ok_or_else(missing)?;
        let passed = read(libc::CLOCK_MONOTONIC_RAW).saturating_sub(self.ns);
        std::thread::sleep(Self::SHORTEST.saturating_sub(Duration::from_nanos(passed)));
        let ticks = ticks().ok_or_else(missing)?.saturating_sub(before);
        let ns = read(libc::CLOCK_MONOTONIC_RAW).saturating_sub(self.ns);
        Ok(ticks as f64 / ns.max(1) as f64)
    }
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> Option<u64> {
    // SAFETY: the instruction is in every x86-64 CPU and only reads a counter.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Arm's generic timer does not run at the rate of any core.
#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_cpu_runs_at_some_gigahertz() {
        let rate = CycleClock::start().cycles_per_ns().expect("x86-64 has the counter");
        assert!((0.5..8.0).contains(&rate), "{rate} GHz");
    }

    #[test]
    fn sleep_is_no_work() {
        let before = thread_ns();
        std::thread::sleep(Duration::from_millis(30));
        assert!(thread_ns() - before < 20_000_000);
    }
}
