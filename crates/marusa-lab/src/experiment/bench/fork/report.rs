//! What the trials of all arms come to: figures of an arm, small pages by large ones, and the line through the sizes of heap.

use super::{Arm, Children, Figures, Mechanism, Settings, Sweep, SweepWhile, Trial};
use crate::experiment::arm_pages::PageMode;
use crate::experiment::bench::rounds::Ratio;
use crate::experiment::bench::spread::Spread;
use crate::experiment::bench::trials::{ArmRow, OfArm, ratio};
use schemars::JsonSchema;
use serde::Serialize;

/// What the children of an arm took, by the number of threads that started them.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct OfChildren<F> {
    pub threads: usize,
    /// Wall time of all by their number, as published.
    pub each_ms: Option<F>,
    /// The middle child from its start to its end.
    pub total_ms: Option<F>,
    /// `ProcessBuilder.start()` alone, of the middle child and of the fastest.
    pub start_ms: Option<F>,
    pub start_fastest_ms: Option<F>,
}

impl<F> OfChildren<F> {
    fn of(threads: usize, figure: impl Fn(&dyn Fn(&Figures) -> Option<f64>) -> Option<F>) -> OfChildren<F> {
        let by = |of: fn(&Children) -> f64| {
            figure(&|figures| figures.children.iter().find(|one| one.threads == threads).map(of))
        };
        OfChildren {
            threads,
            each_ms: by(|one| one.ms_each),
            total_ms: by(|one| one.total_ms),
            start_ms: by(|one| one.start_ms),
            start_fastest_ms: by(|one| one.start_ms_min),
        }
    }
}

/// What the trials of an arm come to.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArmFigures {
    pub children: Vec<OfChildren<Spread>>,
    pub pages_share_before: Option<Spread>,
    pub pages_share_after: Option<Spread>,
    pub page_table_bytes: Option<Spread>,
    pub sweep: SweepFigures,
}

type Row = ArmRow<Arm, ArmFigures>;

/// Writing once into each page: before and after the children, and while they are started.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SweepFigures {
    pub before_ms: Option<Spread>,
    pub after_ms: Option<Spread>,
    pub more_faults: Option<Spread>,
    pub while_ms: Option<Spread>,
    pub while_start_ms: Option<Spread>,
    pub while_faults_per_child: Option<Spread>,
}

/// How many times as long small pages take as the largest, the rest of the arm alike.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    pub base: Arm,
    pub arm: Arm,
    /// Of `arm` by `base`.
    pub ratios: Vec<OfChildren<Ratio>>,
}

/// The line through the arms of all sizes of heap.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ByGib {
    pub jdk: String,
    pub pages: PageMode,
    pub mechanism: Mechanism,
    pub threads: usize,
    /// From start to end of the middle child, for each GiB more.
    pub ms_per_gib: Option<f64>,
}

#[derive(Default, JsonSchema, Serialize)]
pub struct Report {
    #[serde(rename = "small_pages_by_large")]
    pub by_pages: Vec<Comparison>,
    pub by_gib: Vec<ByGib>,
}

pub fn report(settings: &Settings, rows: &[Row], trials: &[Trial]) -> Report {
    let compared = |arm: &Arm| {
        let (small, large) = settings.compared()?;
        let base = Arm { pages: large, ..arm.clone() };
        let of = |threads: &usize| OfChildren::of(*threads, |figure| ratio(trials, &base, arm, figure));
        (arm.pages == small).then(|| Comparison {
            arm: arm.clone(),
            ratios: settings.threads.iter().map(of).collect(),
            base: base.clone(),
        })
    };
    Report {
        by_pages: rows.iter().filter_map(|row| compared(&row.arm)).collect(),
        by_gib: by_gib(settings, rows),
    }
}

pub fn figures(settings: &Settings, of: &OfArm<Arm, Figures>) -> ArmFigures {
    let sweep = |figure: fn(&Sweep) -> Option<f64>| of.spread(&|figures| figure(figures.sweep.as_ref()?));
    let during =
        |figure: fn(&SweepWhile) -> Option<f64>| of.spread(&|figures| figure(figures.sweep_while.as_ref()?));
    let children = |threads: &usize| OfChildren::of(*threads, |figure| of.spread(figure));
    ArmFigures {
        children: settings.threads.iter().map(children).collect(),
        pages_share_before: of.spread(&|figures| figures.pages_share_before),
        pages_share_after: of.spread(&|figures| figures.pages_share_after),
        page_table_bytes: of.spread(&|figures| Some(figures.page_table_bytes? as f64)),
        sweep: SweepFigures {
            before_ms: sweep(|one| Some(one.before_ms)),
            after_ms: sweep(|one| Some(one.after_ms)),
            more_faults: sweep(|one| Some(one.more_faults()? as f64)),
            while_ms: during(|one| Some(one.sweep_ms)),
            while_start_ms: during(|one| Some(one.start_ms)),
            while_faults_per_child: during(|one| one.faults_per_child),
        },
    }
}

fn by_gib(settings: &Settings, all: &[Row]) -> Vec<ByGib> {
    let mut lines = Vec::new();
    // One for each kind of arm, whatever its heap.
    let kinds = all.iter().filter(|one| Some(&one.arm.heap_bytes) == settings.heaps.first());
    for ArmRow { arm, .. } in kinds {
        let is_alike = |one: &&Row| Arm { heap_bytes: arm.heap_bytes, ..one.arm.clone() } == *arm;
        let alike: Vec<&Row> = all.iter().filter(is_alike).collect();
        for (at, threads) in settings.threads.iter().enumerate() {
            let points = alike.iter().filter_map(|one| {
                Some((
                    one.arm.heap_bytes as f64 / (1_u64 << 30) as f64,
                    one.figures.children[at].total_ms?.median,
                ))
            });
            lines.push(ByGib {
                jdk: arm.jdk.clone(),
                pages: arm.pages,
                mechanism: arm.mechanism,
                threads: *threads,
                ms_per_gib: slope(&points.collect::<Vec<_>>()),
            });
        }
    }
    lines
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
