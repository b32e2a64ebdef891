//! A Java EE server's throughput by heap and page size: the claims of 2008 next to what this machine gives.
//!
//! Source: the post of a performance engineer after JBoss World 2008. An EJB 3 application, throughput tuned by more than 3 times,
//! of it 60 to 70 % from large pages with a heap of 3.5 GB; the same heap without large pages brought nothing over smaller ones;
//! collections a third as often, their total time down by about two thirds, each pause much shorter.

use super::Machine;
use super::gc_work::GcWork;
use super::http_load::HttpLoad;
use super::rounds::{Mean, Ratio};
use super::trials::{self, Arm as _, OfArm, ratio};
use crate::base::Bytes;
use crate::experiment::arm_pages::PageMode;
use crate::pages::subject;
use itertools::iproduct;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was asked for, and where.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settings {
    pub machine: Machine,
    pub jdk: String,
    pub heaps: Vec<Bytes>,
    /// Data that the JVM keeps alive besides the server's own.
    #[serde(default)]
    pub live: Vec<Bytes>,
    #[serde(default)]
    pub touch: Vec<FirstTouch>,
    pub pages: Vec<PageMode>,
    pub gc: String,
    pub clients: u32,
    /// Requests a second of all clients; `None`: as fast as they are answered.
    #[serde(default)]
    pub rate: Option<f64>,
    pub warm_up_seconds: f64,
    pub seconds: f64,
    pub rounds: usize,
    pub seed: u64,
}

/// When a page of the heap is touched for the first time.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    clap::ValueEnum,
    JsonSchema,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FirstTouch {
    /// When it is first used.
    #[default]
    Use,
    /// When the JVM starts: -XX:+AlwaysPreTouch.
    Start,
}

/// One way to run the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    pub heap_bytes: Bytes,
    #[serde(default)]
    pub live_bytes: Bytes,
    #[serde(default)]
    pub touch: FirstTouch,
    pub pages: PageMode,
}

impl Arm {
    /// "3584m, 2g alive, touched".
    pub fn heap(&self) -> String {
        let mut heap = subject::size(self.heap_bytes);
        if self.live_bytes > 0 {
            heap.push_str(&format!(", {} alive", subject::size(self.live_bytes)));
        }
        if self.touch == FirstTouch::Start {
            heap.push_str(", touched");
        }
        heap
    }
}

impl trials::Arm for Arm {
    /// "256m 4k".
    fn name(&self) -> String {
        format!("{} {}", self.heap(), self.pages)
    }

    fn group(&self) -> Arm {
        Arm { pages: PageMode::Small, ..*self }
    }
}

/// All of them, small heaps first.
pub fn arms(settings: &Settings) -> Vec<Arm> {
    let all = iproduct!(&settings.heaps, &settings.live, &settings.touch, &settings.pages);
    all.map(|(&heap_bytes, &live_bytes, &touch, &pages)| Arm { heap_bytes, live_bytes, touch, pages })
        .collect()
}

pub type Trial = trials::Trial<Arm, Figures>;

/// What one run of the server gave.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Figures {
    pub ready_seconds: Option<f64>,
    /// The rate of the warm-up: how far it was from the measured rate.
    pub warm_up_requests_per_second: Option<f64>,
    pub load: Option<HttpLoad>,
    pub gc: Option<GcWork>,
    /// CPU time of the JVM while it was measured.
    pub user_seconds: Option<f64>,
    pub system_seconds: Option<f64>,
    pub minor_faults: Option<u64>,
    pub resident_bytes: Option<Bytes>,
    pub page_table_bytes: Option<Bytes>,
}

impl Figures {
    fn of_load(&self, of: fn(&HttpLoad) -> f64) -> Option<f64> {
        self.load.as_ref().map(of)
    }

    fn of_gc(&self, of: fn(&GcWork) -> Option<f64>) -> Option<f64> {
        self.gc.as_ref().and_then(of)
    }

    fn collections_per_request(&self) -> Option<f64> {
        Some(self.gc.as_ref()?.collections as f64 / self.load.as_ref()?.requests as f64)
    }

    fn stopped_ms_per_request(&self) -> Option<f64> {
        Some(self.gc.as_ref()?.stopped_ms / self.load.as_ref()?.requests as f64)
    }

    fn cpu_ms_per_request(&self) -> Option<f64> {
        let cpu = self.user_seconds? + self.system_seconds?;
        Some(cpu * 1000.0 / self.load.as_ref()?.requests as f64)
    }
}

/// What the trials of an arm come to.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArmFigures {
    pub requests_per_second: Option<Mean>,
    pub p50_ms: Option<Mean>,
    pub p99_ms: Option<Mean>,
    pub p999_ms: Option<Mean>,
    pub errors: Option<u64>,
    pub collections_per_minute: Option<Mean>,
    pub collections_per_1000_requests: Option<Mean>,
    /// The pauses in each second of the run.
    pub gc_stopped_ms_per_second: Option<Mean>,
    pub mean_stop_ms: Option<Mean>,
    pub longest_stop_ms: Option<f64>,
    pub cpu_ms_per_request: Option<Mean>,
    pub resident_bytes: Option<Mean>,
    pub page_table_bytes: Option<Mean>,
}

/// Two arms, and by what factor the second differs.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    pub base: Arm,
    pub arm: Arm,
    pub throughput: Option<Ratio>,
    pub p50: Option<Ratio>,
    pub p99: Option<Ratio>,
    /// These three are a request: other programs at work change them less than the throughput.
    pub cpu_per_request: Option<Ratio>,
    pub collections_per_request: Option<Ratio>,
    pub gc_stopped_per_request: Option<Ratio>,
    pub mean_stop: Option<Ratio>,
}

#[derive(Default, JsonSchema, Serialize)]
pub struct Report {
    /// Each arm against 4k of the same heap.
    #[serde(rename = "against_small_pages")]
    pub by_pages: Vec<Comparison>,
    /// The largest heap against the smallest, on each kind of pages, and on large pages against the smallest on 4k.
    #[serde(rename = "against_the_smallest_heap")]
    pub by_heap: Vec<Comparison>,
    /// Each arm with data kept alive against the one with least of it.
    #[serde(rename = "against_the_least_alive")]
    pub by_live: Vec<Comparison>,
    /// Each arm whose heap is touched at the start against the one in which it is touched at its first use.
    #[serde(rename = "against_touched_at_use")]
    pub by_touch: Vec<Comparison>,
}

pub fn report(arms: &[Arm], trials: &[Trial]) -> Report {
    let against = |base: &dyn Fn(&Arm) -> Option<Arm>| {
        let bases = arms.iter().filter_map(|arm| Some((base(arm)?, *arm)));
        let there = bases.filter(|(base, arm)| base != arm && arms.contains(base));
        there.map(|(base, arm)| compared(base, arm, trials)).collect::<Vec<_>>()
    };
    let (smallest, largest) = ends(arms, |arm| arm.heap_bytes);
    let (least, _) = ends(arms, |arm| arm.live_bytes);
    Report {
        by_pages: against(&|arm| Some(arm.group())),
        by_heap: against(&|arm| {
            let is_far = arm.heap_bytes == largest && smallest != largest;
            is_far.then_some(Arm { heap_bytes: smallest, ..arm.group() })
        }),
        by_live: against(&|arm| Some(Arm { live_bytes: least, ..*arm })),
        by_touch: against(&|arm| Some(Arm { touch: FirstTouch::Use, ..*arm })),
    }
}

/// The least and the most of all arms.
fn ends(arms: &[Arm], of: fn(&Arm) -> Bytes) -> (Bytes, Bytes) {
    let all = || arms.iter().map(of);
    (all().min().unwrap_or_default(), all().max().unwrap_or_default())
}

impl ArmFigures {
    /// Whether it has a figure of each kind.
    pub fn is_complete(&self) -> bool {
        self.requests_per_second.is_some()
            && self.collections_per_minute.is_some()
            && self.gc_stopped_ms_per_second.is_some()
    }
}

pub fn figures(of_arm: &OfArm<Arm, Figures>) -> ArmFigures {
    let load = |of| of_arm.mean(&|figures: &Figures| figures.of_load(of));
    let gc = |of| of_arm.mean(&|figures: &Figures| figures.of_gc(of));
    let bytes = |of: fn(&Figures) -> Option<Bytes>| of_arm.mean(&|figures| Some(of(figures)? as f64));
    let errors = of_arm.counted.iter().filter_map(|trial| Some(trial.figures.load.as_ref()?.errors));
    ArmFigures {
        requests_per_second: load(|load| load.requests_per_second),
        p50_ms: load(|load| load.p50_ms),
        p99_ms: load(|load| load.p99_ms),
        p999_ms: load(|load| load.p999_ms),
        errors: (!of_arm.counted.is_empty()).then(|| errors.sum()),
        collections_per_minute: gc(|gc| Some(gc.collections_per_minute())),
        collections_per_1000_requests: of_arm.mean(&|figures| Some(figures.collections_per_request()? * 1e3)),
        gc_stopped_ms_per_second: gc(|gc| Some(gc.stopped_ms_per_second())),
        mean_stop_ms: gc(GcWork::mean_stop_ms),
        longest_stop_ms: of_arm.highest(&|figures| figures.of_gc(|gc| gc.longest_stop_ms)),
        cpu_ms_per_request: of_arm.mean(&Figures::cpu_ms_per_request),
        resident_bytes: bytes(|figures| figures.resident_bytes),
        page_table_bytes: bytes(|figures| figures.page_table_bytes),
    }
}

fn compared(base: Arm, arm: Arm, trials: &[Trial]) -> Comparison {
    let by = |of: &dyn Fn(&Figures) -> Option<f64>| ratio(trials, &base, &arm, of);
    Comparison {
        throughput: by(&|figures| figures.of_load(|load| load.requests_per_second)),
        p50: by(&|figures| figures.of_load(|load| load.p50_ms)),
        p99: by(&|figures| figures.of_load(|load| load.p99_ms)),
        cpu_per_request: by(&Figures::cpu_ms_per_request),
        collections_per_request: by(&Figures::collections_per_request),
        gc_stopped_per_request: by(&Figures::stopped_ms_per_request),
        mean_stop: by(&|figures| figures.of_gc(GcWork::mean_stop_ms)),
        base,
        arm,
    }
}

#[cfg(test)]
#[path = "throughput_tests.rs"]
mod tests;
