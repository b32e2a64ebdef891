//! One reading of a JVM: who it is, and its account. Two samples give what grew and how fast; a live view keeps the last two and
//! the one that was marked.

use crate::base::{Bytes, Known};
use crate::jvm::Held;
use crate::map::Account;
use schemars::JsonSchema;
use serde::Serialize;

/// A JVM at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    pub pid: i32,
    /// With the pid, who it is: a pid is used again.
    pub start_ticks: u64,
    /// The main class or jar.
    pub name: String,
    /// "21.0.8+9, g1".
    pub runtime: String,
    /// Seconds since any fixed moment.
    pub at: f64,
    pub took_ms: f64,
    /// VmRSS and HugetlbPages, which every user may read.
    pub kernel_resident_bytes: Option<Bytes>,
    /// `Err`: its memory could not be read.
    pub account: Known<Account>,
    /// `None`: it cannot be read.
    pub memory_limit: Option<MemoryLimit>,
    /// A tool of a JDK that ends soon.
    pub is_jdk_tool: bool,
    /// Who holds malloc's blocks; `None`: it was not asked for.
    pub holders: Option<Known<Vec<Held>>>,
}

/// What ends a JVM that takes too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct MemoryLimit {
    pub of: LimitOf,
    pub limit_bytes: Bytes,
    /// By all that counts against it, without what can be reclaimed at once.
    pub used_bytes: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitOf {
    /// The tightest one that the process lives under.
    Cgroup,
    /// No cgroup limits the process: the memory of the host.
    Host,
}

impl MemoryLimit {
    /// In whole percent.
    pub fn used_percent(&self) -> u64 {
        (self.used_bytes as f64 / self.limit_bytes.max(1) as f64 * 100.0).round() as u64
    }
}

impl Look {
    /// What is in memory: our sum, or else the kernel's.
    pub fn resident_bytes(&self) -> Option<Bytes> {
        self.account.as_ref().map(|account| account.totals.resident_bytes).ok().or(self.kernel_resident_bytes)
    }

    /// Whether it is of the same process.
    pub fn is_of(&self, other: &Look) -> bool {
        (self.pid, self.start_ticks) == (other.pid, other.start_ticks)
    }
}

/// Bytes a second between two samples; `None`: a figure is not known, or no time passed.
pub fn rate(before: Option<Bytes>, now: Option<Bytes>, seconds: f64) -> Option<f64> {
    let (before, now) = (before?, now?);
    (seconds > 0.0).then(|| (now as f64 - before as f64) / seconds)
}

/// What grew (or, below 0, shrank).
pub fn growth(before: Option<Bytes>, now: Option<Bytes>) -> Option<i64> {
    let change = i128::from(now?) - i128::from(before?);
    Some(change.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_does_not_grow() {
        assert_eq!(growth(Some(3), Some(5)), Some(2));
        assert_eq!(growth(Some(u64::MAX), Some(0)), Some(i64::MIN));
        assert_eq!((growth(None, Some(5)), rate(Some(1), None, 1.0)), (None, None));
        assert_eq!((rate(Some(10), Some(4), 2.0), rate(Some(1), Some(2), 0.0)), (Some(-3.0), None));
    }
}
