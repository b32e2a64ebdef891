//! `marusa bench fork`: what starting a process costs a JVM, by heap, page size and launch mechanism. The published experiment
//! of 2008 started /bin/false many times from a JVM with a fully populated heap, on large pages and on normal ones.
//!
//! Which trials there are and in which order, and what their figures say. Trials of one round are neighbours in time, so arms
//! are compared within a round; the rounds are independent of each other and give the interval.

use super::Machine;
use super::rounds::ALPHA;
use super::{spread, trials};
use crate::base::{Bytes, tally};
use crate::experiment::stats::{self, Estimate};
use crate::os::busy::Others;
use crate::pages::subject::size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a JDK starts a process on Linux: the system property jdk.lang.Process.launchMechanism (`ProcessImpl.LaunchMechanism`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Mechanism {
    Fork,
    Vfork,
    PosixSpawn,
}

impl Mechanism {
    pub const ALL: [Mechanism; 3] = [Mechanism::Fork, Mechanism::Vfork, Mechanism::PosixSpawn];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Fork => "FORK",
            Mechanism::Vfork => "VFORK",
            Mechanism::PosixSpawn => "POSIX_SPAWN",
        }
    }
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settings {
    pub machine: Machine,
    /// Versions.
    pub jdks: Vec<String>,
    pub heaps: Vec<Bytes>,
    pub pages: Vec<String>,
    pub mechanisms: Vec<Mechanism>,
    pub children: usize,
    /// Fewest first.
    pub threads: Vec<usize>,
    pub rounds: usize,
    pub seed: u64,
}

/// Which mechanisms a JDK has.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Support {
    pub jdk: String,
    pub mechanisms: Vec<Tried>,
}

impl Support {
    pub fn had(&self) -> Vec<Mechanism> {
        self.mechanisms.iter().filter(|one| one.why_not.is_none()).map(|one| one.mechanism).collect()
    }
}

/// One mechanism, tried once.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Tried {
    pub mechanism: Mechanism,
    /// In the JVM's own words.
    pub why_not: Option<String>,
    /// What it warned of.
    pub said: Option<String>,
}

/// What would change on the host for an arm.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Planned {
    pub jdk: String,
    pub pages: String,
    pub heap_bytes: Bytes,
    pub steps: Vec<String>,
    pub why_not: Option<String>,
}

/// One arm at one size of heap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    /// The version of the JDK.
    pub jdk: String,
    pub heap_bytes: Bytes,
    /// "4k", "thp", "hugetlb-2m".
    pub pages: String,
    pub mechanism: Mechanism,
}

impl Settings {
    /// All of them: of each JDK the mechanisms that it has, on all pages, with all sizes of heap.
    pub fn arms(&self, support: &[Support]) -> Vec<Arm> {
        let mut arms = Vec::new();
        for support in support {
            for mechanism in support.had() {
                for pages in &self.pages {
                    arms.extend(self.of_heaps(&support.jdk, pages, mechanism));
                }
            }
        }
        arms
    }

    pub fn of_heaps(&self, jdk: &str, pages: &str, mechanism: Mechanism) -> Vec<Arm> {
        self.heaps.iter().map(|heap| Arm::new(jdk, *heap, pages, mechanism)).collect()
    }
}

impl Arm {
    pub fn new(jdk: &str, heap_bytes: Bytes, pages: &str, mechanism: Mechanism) -> Arm {
        Arm { jdk: jdk.to_string(), heap_bytes, pages: pages.to_string(), mechanism }
    }
}

impl trials::Arm for Arm {
    fn name(&self) -> String {
        let Arm { jdk, heap_bytes, pages, mechanism } = self;
        format!("JDK {jdk}, {}, {pages}, {}", size(*heap_bytes), mechanism.name())
    }
}

/// What one trial gave.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Trial {
    pub round: usize,
    pub arm: Arm,
    /// Why it does not count.
    pub left_out: Option<String>,
    pub figures: Option<Figures>,
    /// What others on the machine took during all trials of the JVM; `None`: not known.
    #[serde(default)]
    pub others: Option<Others>,
}

impl trials::Turn for Trial {
    type Arm = Arm;

    fn is_of(&self, round: usize, arm: &Arm) -> bool {
        self.round == round && self.arm == *arm
    }

    fn set_others(&mut self, others: Option<Others>) {
        self.others = others;
    }
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Figures {
    /// The share of the heap on pages of the arm's size, before and after the children.
    pub pages_share_before: f64,
    pub pages_share_after: Option<f64>,
    /// The parent's page tables; fork copies those of its private memory.
    pub page_table_bytes: Option<Bytes>,
    /// By number of threads that start children at once, fewest first.
    pub children: Vec<Children>,
    pub sweep: Option<Sweep>,
    pub sweep_while: Option<SweepWhile>,
}

/// Children that were started by some number of threads.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Children {
    pub threads: usize,
    pub children: usize,
    /// Wall time of all by their number: what was published, and what one hiccup of the machine changes.
    pub ms_each: f64,
    /// From the start to the end of the middle child.
    pub total_ms: f64,
    /// `ProcessBuilder.start()` of the middle child, and of the fastest.
    pub start_ms: f64,
    pub start_ms_min: f64,
}

/// Writing into each page of the live heap once, before children and after them: fork has made every private page
/// read-only, and each first write to one afterwards is a fault.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Sweep {
    pub pages: u64,
    pub before_ms: f64,
    pub after_ms: f64,
    pub before_faults: Option<u64>,
    pub after_faults: Option<u64>,
}

impl Sweep {
    pub fn more_faults(&self) -> Option<u64> {
        Some(self.after_faults?.saturating_sub(self.before_faults?))
    }
}

/// The same by another thread all the time while children are started.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SweepWhile {
    pub children: usize,
    pub sweep_ms: f64,
    pub start_ms: f64,
    pub faults_per_child: Option<f64>,
}

/// What `bench.Fork` answers to "fork": "forked NS started NS,NS,.. ended NS,NS,..".
pub fn children(answer: &str, threads: usize) -> Option<Children> {
    let mut words = answer.split(' ');
    let mut after = |name: &str| words.next().filter(|word| *word == name).and(words.next());
    let wall_ns: f64 = after("forked")?.parse().ok()?;
    let mut numbers =
        |name: &str| -> Option<Vec<f64>> { after(name)?.split(',').map(|word| word.parse().ok()).collect() };
    let (started, ended) = (numbers("started")?, numbers("ended")?);
    let middle = |all: &[f64]| Some(Spread::of(all.iter().copied())?.middle / 1e6);
    Some(Children {
        threads,
        children: started.len(),
        ms_each: wall_ns / 1e6 / started.len() as f64,
        total_ms: middle(&ended)?,
        start_ms: middle(&started)?,
        start_ms_min: started.iter().copied().fold(f64::INFINITY, f64::min) / 1e6,
    })
}

/// "swept NS pages COUNT": milliseconds and pages.
pub fn swept(answer: &str) -> Option<(f64, u64)> {
    let words: Vec<&str> = answer.split(' ').collect();
    match words.as_slice() {
        ["swept", ns, "pages", pages] => Some((ns.parse::<f64>().ok()? / 1e6, pages.parse().ok()?)),
        _ => None,
    }
}

/// "sweeps COUNT took NS started NS"
pub fn swept_while(answer: &str, children: usize, faults: Option<u64>) -> Option<SweepWhile> {
    let words: Vec<&str> = answer.split(' ').collect();
    let ["sweeps", count, "took", took, "started", started] = words.as_slice() else { return None };
    let count: f64 = count.parse().ok().filter(|count| *count >= 1.0)?;
    Some(SweepWhile {
        children,
        sweep_ms: took.parse::<f64>().ok()? / 1e6 / count,
        start_ms: started.parse::<f64>().ok()? / 1e6,
        faults_per_child: faults.map(|faults| faults as f64 / children as f64),
    })
}

/// Rounds of one arm: the middle of them, and the least and the most.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Spread {
    pub middle: f64,
    pub from: f64,
    pub to: f64,
    pub rounds: usize,
}

impl Spread {
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let spread::Spread { median, min, max, count } = spread::Spread::of(numbers.into_iter().map(Some))?;
        Some(Spread { middle: median, from: min, to: max, rounds: count })
    }
}

/// A ratio of two arms and its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Ratio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    pub rounds: usize,
}

impl Ratio {
    fn of(logs: &[f64]) -> Option<Ratio> {
        let Estimate { gain_percent, low_percent, high_percent, blocks, .. } = stats::estimate(logs, ALPHA)?;
        let ratio = |percent: f64| 1.0 + percent / 100.0;
        Some(Ratio {
            ratio: ratio(gain_percent),
            low: ratio(low_percent),
            high: ratio(high_percent),
            rounds: blocks,
        })
    }
}

/// All trials that were made.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Results {
    pub trials: Vec<Trial>,
}

impl Results {
    fn of<'a>(&'a self, arm: &'a Arm) -> impl Iterator<Item = &'a Trial> {
        self.trials.iter().filter(move |trial| trial.arm == *arm)
    }

    /// Trials of an arm that count, by round, through `figure`.
    fn figures(&self, arm: &Arm, figure: &dyn Fn(&Figures) -> Option<f64>) -> Vec<(usize, f64)> {
        let counted = self.of(arm).filter(|trial| trial.left_out.is_none());
        counted.filter_map(|trial| Some((trial.round, figure(trial.figures.as_ref()?)?))).collect()
    }

    pub fn spread(&self, arm: &Arm, figure: &dyn Fn(&Figures) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.figures(arm, figure).into_iter().map(|(_, number)| number))
    }

    /// How many times `of` is `by`, round by round.
    pub fn ratio(&self, of: &Arm, by: &Arm, figure: &dyn Fn(&Figures) -> Option<f64>) -> Option<Ratio> {
        let by = self.figures(by, figure);
        let logs: Vec<f64> = self
            .figures(of, figure)
            .into_iter()
            .filter_map(|(round, number)| {
                let other = by.iter().find(|(other, _)| *other == round)?.1;
                (number > 0.0 && other > 0.0).then(|| (number / other).ln())
            })
            .collect();
        Ratio::of(&logs)
    }

    /// The line through the arms of all sizes of heap: milliseconds for each GiB more.
    pub fn ms_per_gib(&self, arms: &[Arm], figure: &dyn Fn(&Figures) -> Option<f64>) -> Option<f64> {
        let points: Vec<(f64, f64)> = arms
            .iter()
            .filter_map(|arm| {
                Some((arm.heap_bytes as f64 / (1_u64 << 30) as f64, self.spread(arm, figure)?.middle))
            })
            .collect();
        slope(&points)
    }

    /// Why trials do not count, with how many of each.
    pub fn left_out(&self) -> Vec<(String, usize)> {
        tally(self.trials.iter().filter_map(|trial| {
            let Arm { jdk, pages, mechanism, .. } = &trial.arm;
            Some(format!("JDK {jdk}, {pages}, {}: {}", mechanism.name(), trial.left_out.as_ref()?))
        }))
    }
}

/// By least squares; two points at least that differ in x.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(&|point| point.0), mean(&|point| point.1));
    let squares: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let products: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    (squares > 0.0).then(|| products / squares)
}

/// The published table: heap in MiB, seconds for all children on large pages and on normal ones. RHEL 5.2, 4 GB, JDK
/// 1.6.0_10, November 2008; the number of children is not given.
pub const PUBLISHED: [(u64, f64, f64); 4] =
    [(128, 3.589, 13.217), (256, 3.62, 15.314), (512, 4.638, 36.692), (1024, 3.885, 67.062)];

#[cfg(test)]
#[path = "fork_tests.rs"]
mod tests;
