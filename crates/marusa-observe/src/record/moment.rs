//! When a sample was taken: by a clock that only goes forward, and by the clock on the wall, which people set and which jumps.

use crate::base::rfc3339;
use std::time::{Duration, SystemTime};

/// Both clocks of one sample, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Since the recording began, on a clock that never jumps. Samples are in its order.
    pub steady_ms: u64,
    /// Since 1970, as the clock on the wall had it.
    pub wall_ms: i64,
}

/// A clock on the wall that is this far from the steady one was set, or the host slept.
pub const JUMP_MS: i64 = 1_000;

impl Moment {
    /// How far the wall's clock moved against the steady one since `before`.
    pub fn drift_since(self, before: Moment) -> i64 {
        let wall = self.wall_ms.wrapping_sub(before.wall_ms);
        wall.wrapping_sub(self.steady_ms.wrapping_sub(before.steady_ms) as i64)
    }

    pub fn is_jump_since(self, before: Moment) -> bool {
        self.drift_since(before).unsigned_abs() >= JUMP_MS as u64
    }

    /// "2026-01-01T00:00:00Z", by the wall.
    pub fn wall(self) -> String {
        let since = Duration::from_millis(self.wall_ms.max(0) as u64);
        rfc3339(SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_is_a_jump_and_one_that_drifts_is_none() {
        let before = Moment { steady_ms: 1000, wall_ms: 1_700_000_000_000 };
        let set_back = Moment { steady_ms: 2000, wall_ms: 1_699_996_401_000 };
        assert_eq!(set_back.drift_since(before), -3_600_000);
        assert!(set_back.is_jump_since(before));
        let drifted = Moment { steady_ms: 3000, wall_ms: 1_700_000_002_003 };
        assert!(!drifted.is_jump_since(before));
        assert_eq!(before.wall(), "2023-11-14T22:13:20Z");
        assert_eq!(Moment { steady_ms: 0, wall_ms: -5 }.wall(), "1970-01-01T00:00:00Z");
    }
}
