//! What a collector did in the range of time in which an experiment measured, out of the JVM's own log.

use crate::base::Known;
use crate::measure::gc_log::{GcLog, Kind};
use std::collections::BTreeSet;

/// How often it stopped the program, and for how long.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct GcWork {
    pub window_seconds: f64,
    /// A cycle of a concurrent collector counts once, with all its stops.
    pub collections: u64,
    pub stops: u64,
    pub full_collections: u64,
    pub stopped_ms: f64,
    /// `None`: nothing was stopped.
    pub longest_stop_ms: Option<f64>,
    /// Time in which it worked next to the program; `None`: the log does not tell.
    pub concurrent_ms: Option<f64>,
}

impl GcWork {
    /// Between two moments of the JVM's uptime, in seconds.
    pub fn within(log: &GcLog, from: f64, to: f64) -> Known<GcWork> {
        let summary = log.within(from, to)?;
        let inside = |at: Option<f64>| at.is_some_and(|at| at >= from && at < to);
        let stops = log.pauses.iter().filter(|stop| inside(stop.start_seconds));
        let phases = log.phases.iter().filter(|phase| inside(phase.start_seconds));
        let numbered: BTreeSet<u64> = stops
            .clone()
            .filter_map(|stop| stop.collection)
            .chain(phases.filter_map(|phase| phase.collection))
            .collect();
        // JDK 8 gives no numbers: each stop is a collection there, except for the steps of a cycle of CMS.
        let unnumbered = stops
            .filter(|stop| stop.collection.is_none() && !stop.is_nested && stop.kind != Kind::OfCycle)
            .count();
        Ok(GcWork {
            window_seconds: to - from,
            collections: (numbered.len() + unnumbered) as u64,
            stops: summary.pauses as u64,
            full_collections: summary.by_kind.get(&Kind::Full).map_or(0, |count| *count as u64),
            stopped_ms: summary.pause_ms,
            longest_stop_ms: summary.quantiles.map(|quantiles| quantiles.max_ms),
            concurrent_ms: summary.concurrent_ms.ok(),
        })
    }

    pub fn collections_per_minute(&self) -> f64 {
        self.collections as f64 * 60.0 / self.window_seconds
    }

    /// How long the program stood still in each second.
    pub fn stopped_ms_per_second(&self) -> f64 {
        self.stopped_ms / self.window_seconds
    }

    /// `None`: nothing was stopped.
    pub fn mean_stop_ms(&self) -> Option<f64> {
        (self.stops > 0).then(|| self.stopped_ms / self.stops as f64)
    }

    pub fn concurrent_ms_per_second(&self) -> Option<f64> {
        self.concurrent_ms.map(|ms| ms / self.window_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::gc_log;

    const LOG: &str = "[0.010s][info][gc] Using G1\n\
        [1.000s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 10.000ms\n\
        [2.500s][info][gc] GC(1) Pause Young (Concurrent Start) (G1 Evacuation Pause) 50M->9M(256M) 20.000ms\n\
        [3.500s][info][gc] GC(2) Concurrent Mark Cycle\n\
        [3.900s][info][gc] GC(2) Pause Remark 30M->30M(256M) 4.000ms\n\
        [4.000s][info][gc] GC(2) Concurrent Mark Cycle 500.000ms\n\
        [9.000s][info][gc] GC(3) Pause Full (System.gc()) 30M->3M(256M) 60.000ms\n";

    #[test]
    fn only_what_lies_in_the_window_and_a_cycle_once() {
        let log = gc_log::parse(LOG.as_bytes()).expect("a log");
        let work = GcWork::within(&log, 2.0, 8.0).expect("it has times");
        assert_eq!((work.collections, work.stops, work.full_collections), (2, 2, 0), "{work:?}");
        assert!((work.stopped_ms - 24.0).abs() < 1e-6 && work.longest_stop_ms == Some(20.0), "{work:?}");
        assert!((work.concurrent_ms.expect("times") - 496.0).abs() < 1e-6, "{work:?}");
        assert!((work.collections_per_minute() - 20.0).abs() < 1e-9);
        assert_eq!(work.mean_stop_ms(), Some(12.0));
        let quiet = GcWork::within(&log, 20.0, 30.0).expect("it has times");
        assert_eq!((quiet.collections, quiet.mean_stop_ms(), quiet.longest_stop_ms), (0, None, None));
        assert_eq!(GcWork::within(&log, 8.0, 10.0).expect("times").full_collections, 1);
    }
}
