//! Pauses, concurrent time and the CPU time of the system by collector, page size and number of GC threads.
//!
//! Source: "Do not rely on out-of-the-box tuning" (Java on UltraSPARC T1, Solaris 10): -XX:+UseParallelGC starts as many GC
//! threads as the chip has virtual processors, 32; system CPU stayed above 20 % until -XX:ParallelGCThreads limited them.

use super::Machine;
use super::gc_work::GcWork;
use super::rounds::{Mean, Ratio};
use super::trials::{self, Arm as _, OfArm, ratio};
use crate::base::{Bytes, Refused};
use crate::experiment::arm_pages::PageMode;
use schemars::JsonSchema;
use std::fmt;

/// What was asked for, and where.
#[derive(Clone, Debug, PartialEq, JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    pub machine: Machine,
    pub jdks: Vec<String>,
    pub live_bytes: Bytes,
    pub heap_bytes: Bytes,
    /// Threads that allocate.
    pub workers: u32,
    pub warm_up_seconds: f64,
    pub seconds: f64,
    pub rounds: usize,
    pub seed: u64,
}

/// What the JVM of an arm says of its collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, serde::Serialize)]
pub struct Collector {
    pub threads: ThreadCounts,
}

/// How many threads the collector gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threads {
    /// What the JVM takes itself.
    Own,
    /// What it would take on a machine with this number of processors.
    OfMachine(u32),
    /// This number of threads for stop-the-world work.
    Exactly(u32),
}

impl fmt::Display for Threads {
    fn fmt(&self, into: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Threads::Own => into.write_str("own"),
            Threads::OfMachine(cpus) => write!(into, "{cpus}-way"),
            Threads::Exactly(count) => write!(into, "{count}"),
        }
    }
}

impl std::str::FromStr for Threads {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Threads, Refused> {
        let number = |text: &str| text.parse().ok().filter(|count| (1..=1024).contains(count));
        let found = match text.strip_suffix("-way") {
            _ if text == "own" => Some(Threads::Own),
            Some(cpus) => number(cpus).map(Threads::OfMachine),
            None => number(text).map(Threads::Exactly),
        };
        found.ok_or_else(|| {
            Refused(format!(
                "'{text}' is neither own, nor a machine as 32-way, nor a number of threads from 1 to 1024"
            ))
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct Arm {
    /// As "17".
    pub jdk: u32,
    /// As the option is named by people: "g1".
    pub gc: String,
    pub pages: PageMode,
    pub threads: Threads,
}

impl trials::Arm for Arm {
    fn name(&self) -> String {
        format!("{} {} {} {}", self.jdk, self.gc, self.pages, self.threads)
    }

    fn group(&self) -> Arm {
        Arm { pages: PageMode::Small, ..self.clone() }
    }
}

/// The threads of an arm: as the JVM has them, and as its formula has them for this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct ThreadCounts {
    pub parallel: Option<u32>,
    pub concurrent: Option<u32>,
    pub parallel_by_formula: Option<u32>,
    pub concurrent_by_formula: Option<u32>,
}

pub type Trial = trials::Trial<Arm, Figures>;

/// What one run of the program gave.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct Figures {
    pub threads: ThreadCounts,
    pub operations_per_second: Option<f64>,
    pub gc: Option<GcWork>,
    pub user_seconds: Option<f64>,
    pub system_seconds: Option<f64>,
    pub seconds: Option<f64>,
}

impl Figures {
    fn of_gc(&self, of: fn(&GcWork) -> Option<f64>) -> Option<f64> {
        self.gc.as_ref().and_then(of)
    }

    /// The share of the program's CPU time that was spent in the kernel.
    fn system_share(&self) -> Option<f64> {
        let (user, system) = (self.user_seconds?, self.system_seconds?);
        (user + system > 0.0).then(|| system / (user + system))
    }
}

#[derive(Clone, Debug, PartialEq, JsonSchema, serde::Serialize)]
pub struct ArmFigures {
    pub threads: ThreadCounts,
    pub operations_per_second: Option<Mean>,
    pub collections_per_minute: Option<Mean>,
    pub stopped_ms_per_second: Option<Mean>,
    pub mean_stop_ms: Option<Mean>,
    pub longest_stop_ms: Option<f64>,
    pub concurrent_ms_per_second: Option<Mean>,
    pub system_share: Option<Mean>,
}

/// An arm against another of the same JDK and collector.
#[derive(Clone, Debug, PartialEq, JsonSchema, serde::Serialize)]
pub struct Comparison {
    pub base: Arm,
    pub arm: Arm,
    pub operations: Option<Ratio>,
    pub mean_stop: Option<Ratio>,
    pub concurrent: Option<Ratio>,
    pub system_share: Option<Ratio>,
}

#[derive(Default, JsonSchema, serde::Serialize)]
pub struct Report {
    /// Against 4k pages with the same threads.
    #[serde(rename = "against_small_pages")]
    pub by_pages: Vec<Comparison>,
    /// Against the threads that the JVM takes itself, on the same pages.
    #[serde(rename = "against_own_threads")]
    pub by_threads: Vec<Comparison>,
}

pub fn report(arms: &[Arm], trials: &[Trial]) -> Report {
    let against = |base_of: &dyn Fn(&Arm) -> Option<Arm>| {
        let pair =
            |arm: &Arm| Some((base_of(arm).filter(|base| base != arm && arms.contains(base))?, arm.clone()));
        arms.iter().filter_map(pair).map(|(base, arm)| compared(base, arm, trials)).collect()
    };
    Report {
        by_pages: against(&|arm| Some(arm.group())),
        by_threads: against(&|arm| Some(Arm { threads: Threads::Own, ..arm.clone() })),
    }
}

pub fn figures(of_arm: &OfArm<Arm, Figures>) -> ArmFigures {
    let gc = |of| of_arm.mean(&|figures: &Figures| figures.of_gc(of));
    ArmFigures {
        threads: of_arm.all.last().map(|trial| trial.figures.threads).unwrap_or_default(),
        operations_per_second: of_arm.mean(&|figures| figures.operations_per_second),
        collections_per_minute: gc(|gc| Some(gc.collections_per_minute())),
        stopped_ms_per_second: gc(|gc| Some(gc.stopped_ms_per_second())),
        mean_stop_ms: gc(GcWork::mean_stop_ms),
        longest_stop_ms: of_arm.highest(&|figures| figures.of_gc(|gc| gc.longest_stop_ms)),
        concurrent_ms_per_second: gc(GcWork::concurrent_ms_per_second),
        system_share: of_arm.mean(&Figures::system_share),
    }
}

fn compared(base: Arm, arm: Arm, trials: &[Trial]) -> Comparison {
    let by = |of: &dyn Fn(&Figures) -> Option<f64>| ratio(trials, &base, &arm, of);
    let gc = |of| by(&|figures| figures.of_gc(of));
    let (operations, system_share) =
        (by(&|figures| figures.operations_per_second), by(&Figures::system_share));
    let (mean_stop, concurrent) = (gc(GcWork::mean_stop_ms), gc(GcWork::concurrent_ms_per_second));
    Comparison { operations, mean_stop, concurrent, system_share, base, arm }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(pages: PageMode, threads: Threads) -> Arm {
        Arm { jdk: 17, gc: "parallel".to_string(), pages, threads }
    }

    fn trial(round: usize, arm: Arm, rate: f64, system: f64) -> Trial {
        let figures = Figures {
            operations_per_second: Some(rate),
            user_seconds: Some(10.0 - system),
            system_seconds: Some(system),
            ..Figures::default()
        };
        Trial { figures, ..Trial::of(round, arm) }
    }

    #[test]
    fn threads_as_people_write_them() {
        assert_eq!("own".parse(), Ok(Threads::Own));
        assert_eq!("32-way".parse(), Ok(Threads::OfMachine(32)));
        assert_eq!("32".parse(), Ok(Threads::Exactly(32)));
        for bad in ["", "0", "-way", "2000", "all"] {
            assert!(bad.parse::<Threads>().is_err(), "{bad}");
        }
        assert_eq!(
            [Threads::Own, Threads::OfMachine(32), Threads::Exactly(4)].map(|one| one.to_string()),
            ["own", "32-way", "4"]
        );
    }

    #[test]
    fn each_arm_is_compared_with_small_pages_and_with_the_threads_of_the_jvm() {
        let modes = [PageMode::Small, PageMode::Thp];
        let arms: Vec<Arm> = modes
            .iter()
            .flat_map(|pages| [Threads::Own, Threads::Exactly(32)].map(|threads| arm(*pages, threads)))
            .collect();
        let mut trials = Vec::new();
        for round in 0..3 {
            for (at, arm) in arms.iter().enumerate() {
                let is_many = arm.threads != Threads::Own;
                trials.push(trial(round, arm.clone(), 100.0 + at as f64, if is_many { 4.0 } else { 1.0 }));
            }
        }
        let found = report(&arms, &trials);
        assert_eq!((found.by_pages.len(), found.by_threads.len()), (2, 2));
        let many = &found.by_threads[0];
        assert!((many.system_share.expect("rounds").ratio - 4.0).abs() < 1e-9);
        assert_eq!(many.mean_stop, None, "no log, no ratio");
        let one = figures(&OfArm::among(&trials, &arms[1]));
        assert!((one.system_share.expect("a mean").mean - 0.4).abs() < 1e-12);
    }
}
