//! `marusa bench fork`: what starting a process costs a JVM, by heap, page size and launch mechanism. The published experiment
//! of 2008 started /bin/false many times from a JVM with a fully populated heap, on large pages and on normal ones.
//!
//! Which arms there are, and what the figures of their trials say.

mod report;

use super::Machine;
use super::spread::Spread;
use super::trials;
use crate::base::{Bytes, word_of};
use crate::experiment::arm_pages::PageMode;
use crate::pages::subject::size;
use itertools::iproduct;
pub use report::{ArmFigures, OfChildren, Report, figures, report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a JDK starts a process on Linux: the system property jdk.lang.Process.launchMechanism (`ProcessImpl.LaunchMechanism`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Mechanism {
    Fork,
    Vfork,
    PosixSpawn,
}

impl Mechanism {
    pub const ALL: [Mechanism; 3] = [Mechanism::Fork, Mechanism::Vfork, Mechanism::PosixSpawn];

    pub fn name(self) -> String {
        word_of(&self)
    }
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settings {
    pub machine: Machine,
    /// Versions.
    pub jdks: Vec<String>,
    pub heaps: Vec<Bytes>,
    pub pages: Vec<PageMode>,
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
    pub fn untried(jdk: &str, mechanisms: &[Mechanism]) -> Support {
        let untried = |mechanism: &Mechanism| Tried { mechanism: *mechanism, why_not: None, said: None };
        Support { jdk: jdk.to_string(), mechanisms: mechanisms.iter().map(untried).collect() }
    }

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

/// One way to start processes.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    /// The version of the JDK.
    pub jdk: String,
    pub heap_bytes: Bytes,
    pub pages: PageMode,
    pub mechanism: Mechanism,
}

impl trials::Arm for Arm {
    fn name(&self) -> String {
        let Arm { jdk, heap_bytes, pages, mechanism } = self;
        format!("JDK {jdk}, {}, {pages}, {}", size(*heap_bytes), mechanism.name())
    }

    fn group(&self) -> Arm {
        Arm { pages: PageMode::Small, ..self.clone() }
    }
}

impl Settings {
    /// Of each JDK the mechanisms that it has, on all pages, with all sizes of heap.
    pub fn arms(&self, support: &[Support]) -> Vec<Arm> {
        let had = support.iter().flat_map(|one| one.had().into_iter().map(|mechanism| (&one.jdk, mechanism)));
        iproduct!(had, &self.pages, &self.heaps)
            .map(|((jdk, mechanism), &pages, &heap_bytes)| Arm {
                jdk: jdk.clone(),
                heap_bytes,
                pages,
                mechanism,
            })
            .collect()
    }

    /// The pages that are compared: small ones by the largest that were measured.
    pub fn compared(&self) -> Option<(PageMode, PageMode)> {
        let has = |mode: &PageMode| self.pages.contains(mode);
        let large = [PageMode::HugeTlb2M, PageMode::HugeTlb1G, PageMode::Thp].into_iter().find(has)?;
        has(&PageMode::Small).then_some((PageMode::Small, large))
    }
}

pub type Trial = trials::Trial<Arm, Figures>;

/// What one JVM gave.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Figures {
    /// The share of the heap on pages of the arm's size, before and after the children.
    pub pages_share_before: Option<f64>,
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
    let middle = |all: &[f64]| Some(Spread::of(all.iter().copied().map(Some))?.median / 1e6);
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

/// Large pages next to normal ones. RHEL 5.2, 4 GB, JDK 1.6.0_10, November 2008; the number of children is not given.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Published {
    pub heap_bytes: Bytes,
    /// For all children.
    pub large_seconds: f64,
    pub normal_seconds: f64,
    pub ratio: f64,
}

const fn published(heap_mib: u64, large_seconds: f64, normal_seconds: f64) -> Published {
    let ratio = normal_seconds / large_seconds;
    Published { heap_bytes: heap_mib << 20, large_seconds, normal_seconds, ratio }
}

pub const PUBLISHED: [Published; 4] = [
    published(128, 3.589, 13.217),
    published(256, 3.62, 15.314),
    published(512, 4.638, 36.692),
    published(1024, 3.885, 67.062),
];

#[cfg(test)]
#[path = "fork_tests.rs"]
mod tests;
