//! `marusa/bench-fork/2`: every arm with its figures, every ratio with its interval, every trial as it was.

use super::{OF_CHILDREN, Report, of_children, total};
use crate::base::Bytes;
use crate::experiment::bench::fork::{Arm, Figures, Mechanism, PUBLISHED, Planned, Ratio, Settings, Spread};
use crate::experiment::bench::rounds::ALPHA;
use crate::map::model::GapRow;
use crate::show::bench::rounds::gaps_of;
use crate::show::json::Head;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

const SCHEMA: &str = "marusa/bench-fork/2";

type Figure = fn(&Figures) -> Option<f64>;

const OF_ARM: [(&str, Figure); 3] = [
    ("pages_share_before", |figures| Some(figures.pages_share_before)),
    ("pages_share_after", |figures| figures.pages_share_after),
    ("page_table_bytes", |figures| Some(figures.page_table_bytes? as f64)),
];

const OF_SWEEP: [(&str, Figure); 6] = [
    ("before_ms", |figures| Some(figures.sweep.as_ref()?.before_ms)),
    ("after_ms", |figures| Some(figures.sweep.as_ref()?.after_ms)),
    ("more_faults", |figures| Some(figures.sweep.as_ref()?.more_faults()? as f64)),
    ("while_ms", |figures| Some(figures.sweep_while.as_ref()?.sweep_ms)),
    ("while_start_ms", |figures| Some(figures.sweep_while.as_ref()?.start_ms)),
    ("while_faults_per_child", |figures| figures.sweep_while.as_ref()?.faults_per_child),
];

/// `marusa bench fork --json`.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum BenchForkDocument<'a> {
    Measured {
        #[serde(flatten)]
        head: Head,
        #[serde(flatten)]
        report: &'a Report,
        complete: bool,
        arms: Vec<ArmRow>,
        ratios: Vec<RatioRow<'a>>,
        by_gib: Vec<GibRow<'a>>,
        published_2008: Vec<PublishedRow>,
        gaps: Vec<GapRow>,
    },
    DryRun {
        #[serde(flatten)]
        head: Head,
        dry_run: bool,
        settings: &'a Settings,
        planned: &'a [Planned],
    },
}

/// Unknown is null; why is among the gaps.
type Spreads<K> = BTreeMap<K, Option<Spread>>;

#[derive(JsonSchema, Serialize)]
pub struct ArmRow {
    #[serde(flatten)]
    arm: Arm,
    children: Vec<ChildrenRow>,
    #[serde(flatten)]
    figures: Spreads<&'static str>,
    sweep: Spreads<&'static str>,
}

#[derive(JsonSchema, Serialize)]
struct ChildrenRow {
    threads: usize,
    #[serde(flatten)]
    figures: Spreads<String>,
}

#[derive(JsonSchema, Serialize)]
pub struct RatioRow<'a> {
    jdk: String,
    heap_bytes: Bytes,
    mechanism: Mechanism,
    threads: usize,
    of: &'a str,
    by: &'a str,
    confidence: f64,
    #[serde(flatten)]
    ratios: BTreeMap<&'static str, Option<Ratio>>,
}

#[derive(JsonSchema, Serialize)]
pub struct GibRow<'a> {
    jdk: &'a str,
    pages: &'a str,
    mechanism: Mechanism,
    threads: usize,
    ms_per_gib: Option<f64>,
}

#[derive(JsonSchema, Serialize)]
pub struct PublishedRow {
    heap_bytes: Bytes,
    large_seconds: f64,
    normal_seconds: f64,
    ratio: f64,
}

impl<'a> BenchForkDocument<'a> {
    pub fn of(report: &'a Report) -> BenchForkDocument<'a> {
        let published = PUBLISHED.map(|(mib, large_seconds, normal_seconds)| PublishedRow {
            heap_bytes: mib << 20,
            large_seconds,
            normal_seconds,
            ratio: normal_seconds / large_seconds,
        });
        BenchForkDocument::Measured {
            head: Head::now(SCHEMA),
            report,
            complete: report.is_complete(),
            arms: report
                .settings
                .arms(&report.support)
                .into_iter()
                .map(|arm| ArmRow::of(report, arm))
                .collect(),
            ratios: ratios(report),
            by_gib: by_gib(report),
            published_2008: published.into(),
            gaps: gaps_of(report.results.left_out()),
        }
    }

    pub fn dry_run(settings: &'a Settings, planned: &'a [Planned]) -> BenchForkDocument<'a> {
        BenchForkDocument::DryRun { head: Head::now(SCHEMA), dry_run: true, settings, planned }
    }
}

impl ArmRow {
    fn of(report: &Report, arm: Arm) -> ArmRow {
        let of = |(name, figure): (&'static str, Figure)| (name, report.results.spread(&arm, &figure));
        let children = |threads: &usize| ChildrenRow {
            threads: *threads,
            figures: OF_CHILDREN
                .map(|(name, of)| {
                    (format!("{name}_ms"), report.results.spread(&arm, &of_children(*threads, of)))
                })
                .into(),
        };
        ArmRow {
            children: report.settings.threads.iter().map(children).collect(),
            figures: OF_ARM.map(of).into(),
            sweep: OF_SWEEP.map(of).into(),
            arm,
        }
    }
}

fn ratios(report: &Report) -> Vec<RatioRow<'_>> {
    let Some((small, large)) = report.compared() else { return Vec::new() };
    let mut ratios = Vec::new();
    for of in report.settings.arms(&report.support).into_iter().filter(|arm| arm.pages == small) {
        let by = Arm { pages: large.to_string(), ..of.clone() };
        ratios.extend(report.settings.threads.iter().map(|threads| {
            RatioRow {
                jdk: of.jdk.clone(),
                heap_bytes: of.heap_bytes,
                mechanism: of.mechanism,
                threads: *threads,
                of: small,
                by: large,
                confidence: 1.0 - ALPHA,
                ratios: OF_CHILDREN
                    .map(|(name, figure)| {
                        (name, report.results.ratio(&of, &by, &of_children(*threads, figure)))
                    })
                    .into(),
            }
        }));
    }
    ratios
}

fn by_gib(report: &Report) -> Vec<GibRow<'_>> {
    let mut lines = Vec::new();
    for support in &report.support {
        for mechanism in support.had() {
            for pages in &report.settings.pages {
                let arms = report.settings.of_heaps(&support.jdk, pages, mechanism);
                lines.extend(report.settings.threads.iter().map(|threads| GibRow {
                    jdk: &support.jdk,
                    pages,
                    mechanism,
                    threads: *threads,
                    ms_per_gib: report.results.ms_per_gib(&arms, &total(*threads)),
                }));
            }
        }
    }
    lines
}
