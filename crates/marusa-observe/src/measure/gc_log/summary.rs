//! The figures of a log that are compared: how often, how long in all, how long at worst, and how much was allocated. A
//! window leaves out the time in which the program was not yet warm.

use super::{GcLog, Heap, Kind, Pause, Phase};
use crate::base::{Bytes, Gap, Known, Why};
use crate::jvm::Gc;
use std::collections::BTreeMap;

/// Quantiles of the lengths of stops, by nearest rank: each is the length of a stop that there was.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Quantiles {
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// What a log, or a part of it, comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Stops of the program; one within another is not counted again.
    pub pauses: usize,
    pub by_kind: BTreeMap<Kind, usize>,
    pub pause_ms: f64,
    /// `None`: there was no stop.
    pub quantiles: Option<Quantiles>,
    /// Time in which some phase ran next to the program; what overlaps counts once, stops do not count.
    pub concurrent_ms: Known<f64>,
    /// What the program allocated between the first and the last collection; a gap where the log does not tell.
    pub allocated_bytes: Known<Bytes>,
}

impl GcLog {
    /// All of it.
    pub fn summary(&self) -> Summary {
        let pauses: Vec<&Pause> = self.pauses.iter().collect();
        let phases: Vec<&Phase> = self.phases.iter().collect();
        self.of(&pauses, &phases, &self.heap)
    }

    /// Stops and phases that began within these seconds on the log's clock.
    pub fn within(&self, from_seconds: f64, to_seconds: f64) -> Known<Summary> {
        let inside = |at: Option<f64>| at.is_some_and(|at| at >= from_seconds && at < to_seconds);
        if self.pauses.iter().any(|pause| pause.start_seconds.is_none())
            || self.phases.iter().any(|phase| phase.start_seconds.is_none())
        {
            return Err(Gap::new("stops of a part of the run", Why::NotRecorded)
                .hint("the lines of this log have no time: decorate it with uptime"));
        }
        let pauses: Vec<&Pause> = self.pauses.iter().filter(|pause| inside(pause.start_seconds)).collect();
        let phases: Vec<&Phase> = self.phases.iter().filter(|phase| inside(phase.start_seconds)).collect();
        let heaps: Vec<Heap> = pauses.iter().filter_map(|pause| pause.heap).collect();
        Ok(self.of(&pauses, &phases, &heaps))
    }

    fn of(&self, pauses: &[&Pause], phases: &[&Phase], heaps: &[Heap]) -> Summary {
        let mut by_kind = BTreeMap::new();
        for pause in pauses {
            *by_kind.entry(pause.kind).or_insert(0) += 1;
        }
        let stops = pauses.iter().filter(|pause| !pause.is_nested);
        let mut stops: Vec<f64> = stops.map(|pause| pause.ms).collect();
        stops.sort_by(f64::total_cmp);
        Summary {
            pauses: stops.len(),
            by_kind,
            // The sum of nothing is -0.0.
            pause_ms: stops.iter().sum::<f64>() + 0.0,
            quantiles: quantiles(&stops),
            concurrent_ms: concurrent_ms(pauses, phases),
            allocated_bytes: self.allocates_in_view().map(|()| allocated(heaps)),
        }
    }

    /// Where all is stopped while memory is freed, the heap grows by what the program allocates and by nothing else.
    fn allocates_in_view(&self) -> Known<()> {
        let gap = |hint: &str| Err(Gap::new("allocated bytes", Why::NotRecorded).hint(hint));
        match self.gc {
            Some(Gc::Serial | Gc::Parallel | Gc::G1 | Gc::Epsilon) => Ok(()),
            Some(_) => {
                gap("this collector frees memory while the program allocates; its log has the sum of both")
            }
            None => gap("the log does not say which collector wrote it"),
        }
    }
}

fn allocated(heaps: &[Heap]) -> Bytes {
    let grown = heaps.windows(2).map(|pair| pair[1].before.saturating_sub(pair[0].after));
    grown.fold(0, Bytes::saturating_add)
}

fn quantiles(sorted: &[f64]) -> Option<Quantiles> {
    let rank = |share: f64| {
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    };
    Some(Quantiles { p50_ms: rank(0.5)?, p99_ms: rank(0.99)?, max_ms: *sorted.last()? })
}

/// Phases lie within others ("Concurrent Mark Cycle" has all of a cycle), and stops within phases.
fn concurrent_ms(pauses: &[&Pause], phases: &[&Phase]) -> Known<f64> {
    if phases.is_empty() {
        return Ok(0.0);
    }
    let span = |start: Option<f64>, ms: f64| start.map(|start| (start, start + ms / 1000.0));
    let concurrent: Option<Vec<(f64, f64)>> =
        phases.iter().map(|phase| span(phase.start_seconds, phase.ms)).collect();
    let stopped: Option<Vec<(f64, f64)>> =
        pauses.iter().map(|pause| span(pause.start_seconds, pause.ms)).collect();
    let (Some(concurrent), Some(stopped)) = (concurrent, stopped) else {
        return Err(Gap::new("time of concurrent phases", Why::NotRecorded).hint(
            "the lines of this log have no time, and phases lie within others: decorate it with uptime",
        ));
    };
    let concurrent = joined(concurrent);
    let stopped = joined(stopped);
    let both: f64 = concurrent.iter().map(|span| overlap(*span, &stopped)).sum();
    let all: f64 = concurrent.iter().map(|(from, to)| to - from).sum();
    Ok((all - both).max(0.0) * 1000.0)
}

fn joined(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut joined: Vec<(f64, f64)> = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// How much of a span is within sorted, disjoint others.
fn overlap(span: (f64, f64), others: &[(f64, f64)]) -> f64 {
    let first = others.partition_point(|other| other.1 <= span.0);
    let within = others[first..].iter().take_while(|other| other.0 < span.1);
    within.map(|other| other.1.min(span.1) - other.0.max(span.0)).sum()
}
