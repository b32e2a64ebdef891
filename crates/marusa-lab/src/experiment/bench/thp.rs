//! What transparent huge pages cost a build server: JVMs that start, compile and end, several at once, while free memory lies in
//! small pieces, under the policies of the kernel.
//!
//! Source: "redhat_transparent_hugepage can hurt Java performance" (October 2012): 24 threads, 36 GB, Linux 2.6.32 of RHEL 6, four
//! builds at once: 35 % of the CPU time and more, mostly in the kernel, and freezes of 3 to 5 s; 5 % with huge pages off.

use super::Machine;
use super::rounds::{Mean, Ratio};
use super::trials::{self, Arm as _, OfArm, ratio};
use crate::act::fragments::{FreeMemory, Made};
use crate::base::{Bytes, word_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was asked for, and where.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settings {
    pub machine: Machine,
    pub jdk: String,
    /// JVMs in each trial.
    pub steps: usize,
    pub heap_bytes: Bytes,
    /// What stays free for them, in small pieces.
    pub free_bytes: Bytes,
    pub rounds: usize,
    pub seed: u64,
}

/// What a fault does for a huge page.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// All memory gets huge pages; a fault tries to put one together, and gives up early.
    Always,
    /// As `always`, and the heap asks for huge pages: its faults try again, and reclaim pages in between.
    Asked,
    /// All memory gets huge pages, and kcompactd makes them.
    Defer,
    /// Memory that asks for huge pages gets them, and its faults wait.
    Madvise,
    Never,
}

impl Policy {
    /// The words of `transparent_hugepage/enabled` and `defrag`.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Policy::Always | Policy::Asked => ("always", "always"),
            Policy::Defer => ("always", "defer"),
            Policy::Madvise => ("madvise", "madvise"),
            Policy::Never => ("never", "never"),
        }
    }
}

/// What free memory is like.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// In small pieces: hardly a block of the size of a huge page.
    Pieces,
    /// In small pieces between pages that the kernel cannot move, so that it cannot make such a block.
    Pinned,
    /// As it is on this machine.
    AsIs,
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    pub memory: Memory,
    pub policy: Policy,
    /// Builds at once.
    pub builds: usize,
}

impl trials::Arm for Arm {
    fn name(&self) -> String {
        let memory = match self.memory {
            Memory::Pieces => "",
            Memory::Pinned => ", pinned",
            Memory::AsIs => ", memory as it is",
        };
        format!("{}, {} at once{memory}", word_of(&self.policy), self.builds)
    }

    fn group(&self) -> Arm {
        Arm { policy: Policy::Always, ..self.clone() }
    }
}

pub type Trial = trials::Trial<Arm, Figures>;

/// What one run of all steps gave. A figure that is not known is null.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Figures {
    pub fragments: Option<Made>,
    /// When the first step starts.
    pub free: Option<FreeMemory>,
    pub wall_seconds: Option<f64>,
    pub steps: usize,
    pub longest_step_seconds: Option<f64>,
    /// CPU time of the JVMs.
    pub user_seconds: Option<f64>,
    pub system_seconds: Option<f64>,
    /// Of the CPU time that all processors have: the kernel's part.
    pub host_kernel_share: Option<f64>,
    /// The longest that a thread was late that wakes every 10 ms and reads a file of /proc.
    pub bystander_late_ms: Option<f64>,
    pub stalls: Option<Stalls>,
    pub khugepaged_ms: Option<f64>,
    pub kcompactd_ms: Option<f64>,
    /// Counters of the host.
    pub huge_faults: Option<u64>,
    pub huge_fallbacks: Option<u64>,
    pub compact_stalls: Option<u64>,
}

/// What the threads of the JVMs waited for the kernel's work on pages; of ones that ended before they were named, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Stalls {
    pub waited_ms: f64,
    pub count: u64,
    pub longest_ms: f64,
    /// More than 0: the sums are lower bounds.
    pub lost_events: u64,
}

impl Figures {
    fn steps_per_minute(&self) -> Option<f64> {
        self.wall_seconds.map(|seconds| self.steps as f64 * 60.0 / seconds)
    }

    /// The kernel's part of the CPU time of the JVMs.
    fn kernel_share(&self) -> Option<f64> {
        let (user, system) = (self.user_seconds?, self.system_seconds?);
        (user + system > 0.0).then(|| system / (user + system))
    }

    fn of_stalls(&self, of: fn(&Stalls) -> f64) -> Option<f64> {
        self.stalls.as_ref().map(of)
    }
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArmFigures {
    pub steps_per_minute: Option<Mean>,
    pub longest_step_seconds: Option<f64>,
    pub kernel_share: Option<Mean>,
    pub host_kernel_share: Option<Mean>,
    pub bystander_late_ms: Option<f64>,
    /// Of all threads of the JVMs, for each step.
    pub waited_ms_per_step: Option<Mean>,
    pub longest_stall_ms: Option<f64>,
    pub khugepaged_ms: Option<Mean>,
    pub kcompactd_ms: Option<Mean>,
    pub huge_faults: Option<Mean>,
    pub huge_fallbacks: Option<Mean>,
    /// Blocks of the size of a huge page that were free when the steps began.
    pub free_huge_blocks: Option<Mean>,
}

/// An arm against `always` with the same memory and as many builds.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    pub arm: Arm,
    pub steps_per_minute: Option<Ratio>,
    pub kernel_share: Option<Ratio>,
}

#[derive(Default, JsonSchema, Serialize)]
pub struct Report {
    pub against_always: Vec<Comparison>,
}

pub fn report(arms: &[Arm], trials: &[Trial]) -> Report {
    let compared = |arm: &Arm| {
        let base = arm.group();
        (base != *arm && arms.contains(&base)).then(|| Comparison {
            arm: arm.clone(),
            steps_per_minute: ratio(trials, &base, arm, &Figures::steps_per_minute),
            kernel_share: ratio(trials, &base, arm, &Figures::kernel_share),
        })
    };
    Report { against_always: arms.iter().filter_map(compared).collect() }
}

pub fn figures(of: &OfArm<Arm, Figures>) -> ArmFigures {
    let count =
        |count: fn(&Figures) -> Option<u64>| of.mean(&|figures| count(figures).map(|count| count as f64));
    ArmFigures {
        steps_per_minute: of.mean(&Figures::steps_per_minute),
        longest_step_seconds: of.highest(&|figures| figures.longest_step_seconds),
        kernel_share: of.mean(&Figures::kernel_share),
        host_kernel_share: of.mean(&|figures| figures.host_kernel_share),
        bystander_late_ms: of.highest(&|figures| figures.bystander_late_ms),
        waited_ms_per_step: of.mean(&|figures| {
            Some(figures.of_stalls(|stalls| stalls.waited_ms)? / figures.steps.max(1) as f64)
        }),
        longest_stall_ms: of.highest(&|figures| figures.of_stalls(|stalls| stalls.longest_ms)),
        khugepaged_ms: of.mean(&|figures| figures.khugepaged_ms),
        kcompactd_ms: of.mean(&|figures| figures.kcompactd_ms),
        huge_faults: count(|figures| figures.huge_faults),
        huge_fallbacks: count(|figures| figures.huge_fallbacks),
        free_huge_blocks: count(|figures| figures.free.map(|free| free.huge_blocks)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_compared_with_always_of_the_same_memory_and_builds() {
        let arm = |policy, builds| Arm { memory: Memory::Pieces, policy, builds };
        let arms = [arm(Policy::Always, 4), arm(Policy::Never, 4), arm(Policy::Never, 8)];
        let trial = |round, arm: &Arm, seconds, system| {
            let figures = Figures {
                steps: 10,
                wall_seconds: Some(seconds),
                user_seconds: Some(5.0),
                system_seconds: Some(system),
                stalls: Some(Stalls { waited_ms: 50.0, count: 3, longest_ms: 20.0 + system, lost_events: 0 }),
                ..Figures::default()
            };
            Trial { figures, ..Trial::of(round, arm.clone()) }
        };
        let trials: Vec<Trial> = (0..3)
            .flat_map(|round| [trial(round, &arms[0], 20.0, 5.0), trial(round, &arms[1], 10.0, 1.25)])
            .collect();
        let found = report(&arms, &trials);
        assert_eq!(found.against_always.len(), 1, "eight at once have no arm to compare with");
        let never = &found.against_always[0];
        assert!((never.steps_per_minute.expect("rounds").ratio - 2.0).abs() < 1e-9);
        assert!((never.kernel_share.expect("rounds").ratio - 0.4).abs() < 1e-9);
        let [of_always, _, of_eight] = arms.each_ref().map(|arm| OfArm::among(&trials, arm));
        let always = figures(&of_always);
        assert_eq!((of_always.counted.len(), always.longest_stall_ms), (3, Some(25.0)));
        assert!((always.waited_ms_per_step.expect("traced").mean - 5.0).abs() < 1e-9);
        assert!((always.steps_per_minute.expect("a mean").mean - 30.0).abs() < 1e-9);
        assert_eq!((of_eight.all.len(), figures(&of_eight).steps_per_minute), (0, None));
        assert_eq!(always.khugepaged_ms, None, "what was not read is not 0");
    }
}
