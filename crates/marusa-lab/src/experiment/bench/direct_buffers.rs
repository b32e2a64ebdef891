//! `marusa bench direct-buffers`: what the account must say of buffers that are taken, freed and trimmed, and what the paper of
//! 2010 published.

use super::Machine;
use super::account_row::AccountRow;
use super::spread::{Spread, growth};
use super::trials::{self, OfArm};
use crate::base::{Bytes, PAGE, Refused, counted, word_of};
use crate::map::Area;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// What was asked for, and where.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settings {
    pub machine: Machine,
    pub jdks: Vec<String>,
    pub options: String,
    pub buffers: u64,
    pub buffer_bytes: Bytes,
    /// -Dsun.nio.PageAlignDirectMemory=true: a page more for each, as every JDK took it before 7.
    pub page_aligned: bool,
    /// What all take from malloc.
    pub expected_bytes: Bytes,
    pub rounds: usize,
    pub seed: u64,
}

/// What buffers take from malloc.
pub fn expected_bytes(buffers: u64, bytes: Bytes, page_aligned: bool) -> Bytes {
    buffers * (bytes + if page_aligned { PAGE } else { 0 })
}

/// Which JVM, and by how many threads it takes the buffers.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    pub jdk: String,
    pub threads: u64,
}

impl trials::Arm for Arm {
    fn name(&self) -> String {
        format!("JDK {}, {}", self.jdk, counted(self.threads, "thread"))
    }
}

/// Where the program was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Before,
    Allocated,
    Freed,
    Trimmed,
}

impl Step {
    pub const ALL: [Step; 4] = [Step::Before, Step::Allocated, Step::Freed, Step::Trimmed];

    pub fn word(self) -> String {
        word_of(&self)
    }
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AtStep {
    pub step: Step,
    #[serde(flatten)]
    pub account: AccountRow,
}

/// One JVM from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Figures {
    pub steps: Vec<AtStep>,
    /// How far the account's direct buffers are from what the program took, as a share of that.
    pub direct_off_share: Option<f64>,
    /// What of the freed memory is still resident, as malloc-then-freed.
    pub held_bytes: Option<i64>,
    /// What of it went back to the system by itself: the kernel's sums, less the Java heap, which the collections move too.
    pub returned_bytes: Option<i64>,
    /// How far held and returned together are from what the buffers had, as a share of that.
    pub freed_off_share: Option<f64>,
    /// Buffers that System.gc() left, by the account.
    pub surviving_buffers: Option<u64>,
    /// What trimming gave back, by the kernel's sums.
    pub trimmed_bytes: Option<i64>,
    /// How the memory was given back, or why it was not.
    pub trimmed_by: Option<String>,
    pub not_trimmed: Option<String>,
}

impl Figures {
    pub fn of(steps: Vec<AtStep>, trimmed: Result<String, Refused>, settings: &Settings) -> Figures {
        let seen = Figures { steps, ..Figures::default() };
        let direct = |step| seen.of_area(step, Area::DirectBuffers);
        let had = growth(direct(Step::Freed), direct(Step::Allocated)).filter(|had| *had > 0);
        let of_expected = |found: i64| {
            let expected = settings.expected_bytes as f64;
            (found as f64 - expected) / expected
        };
        let freed = |step| seen.of_area(step, Area::MallocFreed);
        let held_bytes = growth(freed(Step::Allocated), freed(Step::Freed));
        let beside_heap = |step| seen.kernel(step)?.checked_sub(seen.of_area(step, Area::JavaHeap)?);
        let returned_bytes = growth(beside_heap(Step::Freed), beside_heap(Step::Allocated));
        let found = held_bytes.zip(returned_bytes).map(|(held, returned)| held.saturating_add(returned));
        let each = settings.expected_bytes / settings.buffers.max(1);
        Figures {
            direct_off_share: growth(direct(Step::Before), direct(Step::Allocated)).map(of_expected),
            held_bytes,
            returned_bytes,
            freed_off_share: found.zip(had).map(|(found, had)| (found - had) as f64 / had as f64),
            surviving_buffers: direct(Step::Freed).and_then(|left| left.checked_div(each)),
            trimmed_bytes: growth(seen.kernel(Step::Trimmed), seen.kernel(Step::Freed)),
            trimmed_by: trimmed.as_ref().ok().cloned(),
            not_trimmed: trimmed.err().map(|why| why.0),
            ..seen
        }
    }

    pub fn at(&self, step: Step) -> Option<&AccountRow> {
        self.steps.iter().find(|one| one.step == step).map(|one| &one.account)
    }

    fn of_area(&self, step: Step, area: Area) -> Option<Bytes> {
        self.at(step)?.resident_bytes_of(area)
    }

    fn kernel(&self, step: Step) -> Option<Bytes> {
        self.at(step).map(AccountRow::kernel_or_resident_bytes)
    }

    /// Both figures within what they may be off.
    fn holds(&self) -> bool {
        let near = |off: Option<f64>| off.is_some_and(|off| off.abs() <= OFF_MAX);
        near(self.direct_off_share) && near(self.freed_off_share)
    }
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArmFigures {
    /// Trials whose figures are off by more than they may be.
    pub broken: usize,
    pub direct_off_share_max: Option<f64>,
    pub held_bytes: Option<Spread>,
    pub returned_bytes: Option<Spread>,
    pub freed_off_share_max: Option<f64>,
    pub surviving_buffers: Option<Spread>,
    pub trimmed_bytes: Option<Spread>,
    /// The first reason why memory was not given back.
    pub not_trimmed: Option<String>,
}

pub fn figures(of: &OfArm<Arm, Figures>) -> ArmFigures {
    let bytes = |of_one: fn(&Figures) -> Option<i64>| of.spread(&|one| Some(of_one(one)? as f64));
    let most = |of_one: fn(&Figures) -> Option<f64>| of.highest(&|one| Some(of_one(one)?.abs()));
    ArmFigures {
        broken: of.counted.iter().filter(|trial| !trial.figures.holds()).count(),
        direct_off_share_max: most(|one| one.direct_off_share),
        held_bytes: bytes(|one| one.held_bytes),
        returned_bytes: bytes(|one| one.returned_bytes),
        freed_off_share_max: most(|one| one.freed_off_share),
        surviving_buffers: of.spread(&|one| Some(one.surviving_buffers? as f64)),
        trimmed_bytes: bytes(|one| one.trimmed_bytes),
        not_trimmed: of.counted.iter().find_map(|trial| trial.figures.not_trimmed.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::trials::Trial;
    use super::*;
    use crate::map::Account;

    const ALL: Bytes = 100 * (32 << 10);

    fn at(step: Step, direct: Bytes, freed: Bytes) -> AtStep {
        let areas = [(Area::DirectBuffers, direct), (Area::MallocFreed, freed), (Area::JavaHeap, 5000)];
        AtStep { step, account: AccountRow::of(Account::made_up(&areas)) }
    }

    fn figures_of(steps: Vec<AtStep>) -> Figures {
        let settings = Settings {
            machine: Machine::default(),
            jdks: vec!["17".to_string()],
            options: String::new(),
            buffers: 100,
            buffer_bytes: 32 << 10,
            page_aligned: false,
            expected_bytes: expected_bytes(100, 32 << 10, false),
            rounds: 1,
            seed: 1,
        };
        Figures::of(steps, Err("no".into()), &settings)
    }

    #[test]
    fn what_was_freed_is_held_or_returned() {
        let one = figures_of(vec![
            at(Step::Before, 0, 10),
            at(Step::Allocated, ALL, 10),
            at(Step::Freed, 0, 10 + ALL / 2),
            at(Step::Trimmed, 0, 10),
        ]);
        assert_eq!((one.direct_off_share, one.freed_off_share), (Some(0.0), Some(0.0)));
        assert_eq!((one.held_bytes, one.returned_bytes), (Some(ALL as i64 / 2), Some(ALL as i64 / 2)));
        assert_eq!((one.surviving_buffers, one.trimmed_bytes), (Some(0), Some(ALL as i64 / 2)));
        assert!(one.holds());
    }

    #[test]
    fn a_figure_that_is_off_or_missing_does_not_hold() {
        let off = figures_of(vec![
            at(Step::Before, 0, 0),
            at(Step::Allocated, ALL / 2, ALL / 2),
            at(Step::Freed, 0, ALL),
        ]);
        assert_eq!(off.direct_off_share, Some(-0.5));
        assert!(!off.holds() && off.trimmed_bytes.is_none());
        assert!(!figures_of(Vec::new()).holds());
        assert_eq!(expected_bytes(100, 32 << 10, true), 100 * (36 << 10));
        let arm = Arm { jdk: "17".to_string(), threads: 1 };
        let found = figures(&OfArm::among(&[Trial { figures: off, ..Trial::of(0, arm.clone()) }], &arm));
        assert_eq!((found.broken, found.direct_off_share_max), (1, Some(0.5)));
    }
}
