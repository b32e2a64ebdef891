//! Earlier advice against what happened since: a right-sizer that does not state its own error is a guess.

use super::workload::{Key, Workload};
use crate::base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is read of an earlier document of schema marusa/advice/1.
#[derive(Clone, Debug, Deserialize)]
pub struct Earlier {
    pub schema: String,
    pub workloads: Vec<EarlierWorkload>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct EarlierWorkload {
    pub name: String,
    pub key: Key,
    pub limit: Option<EarlierLimit>,
    pub heap: Option<EarlierHeap>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct EarlierLimit {
    pub held_bytes: Bytes,
    pub limit_bytes: Bytes,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct EarlierHeap {
    pub xmx_bytes: Bytes,
    pub gc_forecast_ratio: f64,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Check {
    pub workloads: Vec<Outcome>,
    /// Advice on workloads of which nothing was recorded since.
    pub not_seen: Vec<String>,
    /// Of the workloads that run as was advised: the mean of the errors' sizes, and the largest.
    pub mean_error_ratio: Option<f64>,
    pub largest_error_ratio: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Outcome {
    pub name: String,
    pub limit_bytes: Bytes,
    /// Whether it runs with the advised limit and -Xmx.
    pub has_limit: bool,
    pub has_xmx: bool,
    pub forecast_bytes: Bytes,
    pub held_bytes: Option<Bytes>,
    /// (held - forecast) / forecast: above 0, it held more than was foreseen.
    pub error_ratio: Option<f64>,
    pub gc_forecast_ratio: Option<f64>,
    pub gc_ratio: Option<f64>,
    pub oom_kills: usize,
}

/// Compares advice with the workloads as they were recorded later.
pub fn check(earlier: &Earlier, now: &[Workload]) -> Check {
    let mut check = Check {
        workloads: Vec::new(),
        not_seen: Vec::new(),
        mean_error_ratio: None,
        largest_error_ratio: None,
    };
    for advised in &earlier.workloads {
        let Some(limit) = advised.limit else { continue };
        let found: Vec<&Workload> =
            now.iter().filter(|workload| workload.key.is_same_program(&advised.key)).collect();
        // Where it runs with several heaps, the advised one.
        let xmx = advised.heap.map(|heap| heap.xmx_bytes).or(advised.key.max_heap_bytes);
        let found = found.iter().find(|workload| workload.key.max_heap_bytes == xmx).or(found.first());
        match found {
            Some(workload) => check.workloads.push(outcome(advised, limit, xmx, workload)),
            None => check.not_seen.push(advised.name.clone()),
        }
    }
    let errors =
        check.workloads.iter().filter(|one| one.has_xmx).filter_map(|one| one.error_ratio.map(f64::abs));
    let errors: Vec<f64> = errors.collect();
    check.largest_error_ratio = errors.iter().copied().reduce(f64::max);
    check.mean_error_ratio = (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64);
    check
}

fn outcome(advised: &EarlierWorkload, limit: EarlierLimit, xmx: Option<Bytes>, now: &Workload) -> Outcome {
    let observed = &now.observed;
    let error = |held: Bytes| (held as f64 - limit.held_bytes as f64) / limit.held_bytes.max(1) as f64;
    Outcome {
        name: advised.name.clone(),
        limit_bytes: limit.limit_bytes,
        has_limit: observed.limit_bytes == Some(limit.limit_bytes),
        has_xmx: xmx.is_some() && now.key.max_heap_bytes == xmx,
        forecast_bytes: limit.held_bytes,
        held_bytes: observed.held_bytes,
        error_ratio: observed.held_bytes.map(error),
        gc_forecast_ratio: advised.heap.map(|heap| heap.gc_forecast_ratio),
        gc_ratio: observed.gc_ratio,
        oom_kills: observed.oom_kills,
    }
}
