//! `marusa/bench-fork/1`: every arm with its figures, every ratio with its interval, every trial as it was.

use super::{Report, each, fastest, start, total};
use crate::base::{Gap, Why};
use crate::experiment::bench::fork::{Arm, DOUBT, Figures, PUBLISHED, Planned, Settings, Spread};
use crate::show::json::gap;
use serde_json::{Value, json};

const SCHEMA: &str = "marusa/bench-fork/1";

pub fn json(report: &Report) -> Value {
    let arms: Vec<Value> = report.arms().iter().map(|one| arm(report, one)).collect();
    let gaps: Vec<Value> = report
        .results
        .left_out()
        .iter()
        .map(|(why, count)| {
            gap(&Gap::new(why.clone(), Why::NotMeasured).hint(format!("{count} trials do not count")))
        })
        .collect();
    let published = PUBLISHED.map(|(mib, large, normal)| {
        json!({"heap_bytes": mib << 20, "large_seconds": large, "normal_seconds": normal, "ratio": normal / large})
    });
    json!({
        "schema": SCHEMA,
        "at": report.at,
        "stopped": report.stopped,
        "complete": report.is_complete(),
        "settings": report.settings,
        "jdks": report.support,
        "arms": arms,
        "ratios": ratios(report),
        "by_gib": by_gib(report),
        "published_2008": published,
        "trials": report.results.trials,
        "gaps": gaps,
    })
}

fn arm(report: &Report, arm: &Arm) -> Value {
    let of = |figure: &dyn Fn(&Figures) -> Option<f64>| report.results.spread(arm, figure);
    let threads: Vec<Value> = report
        .settings
        .threads
        .iter()
        .map(|threads| {
            json!({
                "threads": threads,
                "each_ms": spread(of(&each(*threads))),
                "total_ms": spread(of(&total(*threads))),
            "start_ms": spread(of(&start(*threads))),
            "start_fastest_ms": spread(of(&fastest(*threads))),
            })
        })
        .collect();
    json!({
        "jdk": arm.jdk,
        "heap_bytes": arm.heap_bytes,
        "pages": arm.pages,
        "mechanism": arm.mechanism,
        "children": threads,
        "pages_share_before": spread(of(&|figures| Some(figures.pages_share_before))),
        "pages_share_after": spread(of(&|figures| figures.pages_share_after)),
        "page_table_bytes": spread(of(&|figures| Some(figures.page_table_bytes? as f64))),
        "sweep": {
            "before_ms": spread(of(&|figures| Some(figures.sweep.as_ref()?.before_ms))),
            "after_ms": spread(of(&|figures| Some(figures.sweep.as_ref()?.after_ms))),
            "more_faults": spread(of(&|figures| Some(figures.sweep.as_ref()?.more_faults()? as f64))),
            "while_ms": spread(of(&|figures| Some(figures.sweep_while.as_ref()?.sweep_ms))),
            "while_start_ms": spread(of(&|figures| Some(figures.sweep_while.as_ref()?.start_ms))),
            "while_faults_per_child": spread(of(&|figures| figures.sweep_while.as_ref()?.faults_per_child)),
        },
    })
}

/// Unknown is null; why is among the gaps.
fn spread(spread: Option<Spread>) -> Value {
    spread.map_or(Value::Null, |one| json!(one))
}

fn ratios(report: &Report) -> Vec<Value> {
    let Some((small, large)) = report.compared() else { return Vec::new() };
    let mut ratios = Vec::new();
    for of in report.arms().into_iter().filter(|arm| arm.pages == small) {
        let by = Arm { pages: large.to_string(), ..of.clone() };
        for threads in &report.settings.threads {
            let figure = |found| match found {
                None => Value::Null,
                Some(found) => json!(found),
            };
            ratios.push(json!({
                "jdk": of.jdk,
                "heap_bytes": of.heap_bytes,
                "mechanism": of.mechanism,
                "threads": threads,
                "of": small,
                "by": large,
                "confidence": 1.0 - DOUBT,
                "each": figure(report.results.ratio(&of, &by, &each(*threads))),
                "total": figure(report.results.ratio(&of, &by, &total(*threads))),
                "start": figure(report.results.ratio(&of, &by, &start(*threads))),
                "start_fastest": figure(report.results.ratio(&of, &by, &fastest(*threads))),
            }));
        }
    }
    ratios
}

fn by_gib(report: &Report) -> Vec<Value> {
    let mut lines = Vec::new();
    for support in &report.support {
        for mechanism in support.had() {
            for pages in &report.settings.pages {
                let arms = report.of_heaps(&support.jdk, pages, mechanism);
                for threads in &report.settings.threads {
                    lines.push(json!({
                        "jdk": support.jdk,
                        "pages": pages,
                        "mechanism": mechanism,
                        "threads": threads,
                        "ms_per_gib": report.results.ms_per_gib(&arms, &total(*threads)),
                    }));
                }
            }
        }
    }
    lines
}

pub fn dry_run_json(settings: &Settings, planned: &[Planned]) -> Value {
    json!({"schema": SCHEMA, "dry_run": true, "settings": settings, "planned": planned})
}
