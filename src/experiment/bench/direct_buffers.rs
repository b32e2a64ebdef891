//! `marusa bench direct-buffers`: what the account must say of buffers that are taken, freed and trimmed, and what the paper of
//! 2010 published.

use super::spread::growth;
use crate::base::{Bytes, PAGE};
use crate::map::Account;
use crate::map::Area;
use schemars::JsonSchema;
use serde::Serialize;

/// The published figures in MiB: 10,000 buffers of 32 KB, heap of 8 MB, 32-bit J9 Java 6 on x86.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Published {
    pub jvm_work_mib: f64,
    pub buffers_mib: f64,
    pub freed_jvm_work_growth_mib: f64,
    pub freed_malloc_growth_mib: f64,
}

pub const PUBLISHED: Published = Published {
    jvm_work_mib: 354.3,
    buffers_mib: 351.7,
    freed_jvm_work_growth_mib: -352.0,
    freed_malloc_growth_mib: 350.0,
};

/// What the figures may be off, as a share.
pub const OFF_MAX: f64 = 0.01;

/// The buffers of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    pub count: u64,
    pub bytes: Bytes,
    pub threads: u64,
    /// -Dsun.nio.PageAlignDirectMemory=true: a page more for each, as every JDK took it before 7.
    pub page_aligned: bool,
}

impl Buffers {
    /// What they take from malloc.
    pub fn expected_bytes(&self) -> Bytes {
        self.count * (self.bytes + if self.page_aligned { PAGE } else { 0 })
    }
}

/// Where the program was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Before,
    Allocated,
    Freed,
    Trimmed,
}

impl Step {
    pub fn word(self) -> &'static str {
        match self {
            Step::Before => "before",
            Step::Allocated => "allocated",
            Step::Freed => "freed",
            Step::Trimmed => "trimmed",
        }
    }
}

/// One JVM from its start to its end.
#[derive(Clone, Debug)]
pub struct Run {
    pub jdk: String,
    pub run: usize,
    pub buffers: Buffers,
    pub steps: Vec<(Step, Account)>,
    /// How the memory was given back, or why it was not.
    pub trimmed: Result<String, String>,
}

impl Run {
    pub fn at(&self, step: Step) -> Option<&Account> {
        self.steps.iter().find(|(one, _)| *one == step).map(|(_, account)| account)
    }

    fn direct(&self, step: Step) -> Option<Bytes> {
        Some(self.at(step)?.resident_bytes_of(Area::DirectBuffers))
    }

    /// How far the account's direct buffers are from what the program took, as a share of that.
    pub fn direct_off(&self) -> Option<f64> {
        let found = growth(self.direct(Step::Before), self.direct(Step::Allocated))? as f64;
        let expected = self.buffers.expected_bytes() as f64;
        Some((found - expected) / expected)
    }

    /// What of the freed memory is still resident, as malloc-then-freed.
    pub fn held_bytes(&self) -> Option<i64> {
        let freed = |step| self.at(step)?.known_resident_bytes_of(Area::MallocFreed);
        growth(freed(Step::Allocated), freed(Step::Freed))
    }

    /// What of it went back to the system by itself: the kernel's sums, less the Java heap, which the collections move too.
    pub fn returned_bytes(&self) -> Option<i64> {
        let beside_heap = |step| {
            let account = self.at(step)?;
            account.kernel_or_resident_bytes().checked_sub(account.resident_bytes_of(Area::JavaHeap))
        };
        growth(beside_heap(Step::Freed), beside_heap(Step::Allocated))
    }

    /// How far held and returned together are from what the buffers had, as a share of that.
    pub fn freed_off(&self) -> Option<f64> {
        let had = growth(self.direct(Step::Freed), self.direct(Step::Allocated))?;
        if had <= 0 {
            return None;
        }
        let found = self.held_bytes()?.saturating_add(self.returned_bytes()?);
        Some((found - had) as f64 / had as f64)
    }

    /// Buffers that System.gc() left, by the account.
    pub fn survivors(&self) -> Option<u64> {
        let each = self.buffers.expected_bytes() / self.buffers.count.max(1);
        self.direct(Step::Freed)?.checked_div(each)
    }

    /// What trimming gave back, by the kernel's sums.
    pub fn trimmed_bytes(&self) -> Option<i64> {
        growth(
            Some(self.at(Step::Trimmed)?.kernel_or_resident_bytes()),
            Some(self.at(Step::Freed)?.kernel_or_resident_bytes()),
        )
    }

    /// Both figures within what they may be off.
    pub fn holds(&self) -> bool {
        let near = |off: Option<f64>| off.is_some_and(|off| off.abs() <= OFF_MAX);
        near(self.direct_off()) && near(self.freed_off())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(direct: Bytes, freed: Bytes, other: Bytes) -> Account {
        Account::made_up(&[
            (Area::DirectBuffers, direct),
            (Area::MallocFreed, freed),
            (Area::JavaHeap, other),
        ])
    }

    fn run(steps: Vec<(Step, Account)>) -> Run {
        let buffers = Buffers { count: 100, bytes: 32 << 10, threads: 1, page_aligned: false };
        Run { jdk: "17".into(), run: 1, buffers, steps, trimmed: Err("no".into()) }
    }

    #[test]
    fn what_was_freed_is_held_or_returned() {
        let all = 100 * (32 << 10);
        let one = run(vec![
            (Step::Before, account(0, 10, 5000)),
            (Step::Allocated, account(all, 10, 5000)),
            (Step::Freed, account(0, 10 + all / 2, 5000)),
            (Step::Trimmed, account(0, 10, 5000)),
        ]);
        assert_eq!((one.direct_off(), one.freed_off()), (Some(0.0), Some(0.0)));
        assert_eq!((one.held_bytes(), one.returned_bytes()), (Some(all as i64 / 2), Some(all as i64 / 2)));
        assert_eq!((one.survivors(), one.trimmed_bytes()), (Some(0), Some(all as i64 / 2)));
        assert!(one.holds());
    }

    #[test]
    fn a_figure_that_is_off_or_missing_does_not_hold() {
        let all = 100 * (32 << 10);
        let off = run(vec![
            (Step::Before, account(0, 0, 0)),
            (Step::Allocated, account(all / 2, all / 2, 0)),
            (Step::Freed, account(0, all, 0)),
        ]);
        assert_eq!(off.direct_off(), Some(-0.5));
        assert!(!off.holds() && off.trimmed_bytes().is_none());
        assert!(!run(Vec::new()).holds());
        let aligned = Buffers { page_aligned: true, ..off.buffers };
        assert_eq!(aligned.expected_bytes(), 100 * (36 << 10));
    }
}
