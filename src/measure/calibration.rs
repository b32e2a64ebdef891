//! Costs of walks out of the times of a self-test (`act::calibrate`): what a step through pages takes more than one through as
//! many packed lines is the walk. Eight chains at once give the low end, one chain the high end.
//!
//! Each round gives a cost, since it visits all fields one after the other; the cost is the middle one, and the middle half of
//! the rounds is its spread. (The best step less the best packed step would pair a quiet moment with another one: caches that
//! are shared with neighbours are seldom quiet.)

use super::walk_costs::{Side, WalkCost, WalkCosts};
use crate::base::{Bytes, Gap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Large pages of so many bytes fit every first-level TLB: 32 entries.
const FEW_PAGES_BYTES: Bytes = 64 << 20;

pub const SCHEMA: &str = "marusa/calibration/1";

/// All that one self-test found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub schema: String,
    /// RFC 3339, UTC.
    pub at: String,
    pub took_ms: f64,
    pub machine: Machine,
    /// Reference cycles (time stamp counter) in a nanosecond. `None`: this CPU has no such counter.
    pub reference_cycles_per_ns: Option<f64>,
    pub timings: Vec<Timing>,
    pub gaps: Vec<Gap>,
}

/// What the costs hold for: another CPU, microcode or kernel has its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// "AMD EPYC 7763 64-Core Processor".
    pub model: String,
    /// Vendor, family, model, stepping: "AuthenticAMD-25-1-1".
    pub cpu: String,
    pub microcode: String,
    pub kernel: String,
    pub is_virtual: bool,
}

/// How the nodes that were visited lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nodes {
    /// Packed line by line: hardly any walks.
    Dense,
    /// One to each 4 KiB.
    Spread,
}

/// The times of one field, a figure for each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub side: Side,
    pub nodes: Nodes,
    /// Page size of the mapping.
    pub page_bytes: Bytes,
    pub footprint_bytes: Bytes,
    /// How many were followed at once.
    pub chains: u32,
    pub step_ns: Vec<f64>,
    /// Walks that were counted; empty where nothing counts them.
    #[serde(default)]
    pub walks_per_step: Vec<f64>,
}

impl Timing {
    /// One without a round.
    pub fn of(side: Side, nodes: Nodes, page_bytes: Bytes, footprint_bytes: Bytes, chains: u32) -> Timing {
        let (step_ns, walks_per_step) = (Vec::new(), Vec::new());
        Timing { side, nodes, page_bytes, footprint_bytes, chains, step_ns, walks_per_step }
    }

    pub fn is_of_same(&self, other: &Timing) -> bool {
        let of = |one: &Timing| (one.side, one.nodes, one.page_bytes, one.footprint_bytes, one.chains);
        of(self) == of(other)
    }
}

/// The middle one of all rounds, and the middle half of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub middle: f64,
    pub from: f64,
    pub to: f64,
}

/// The cost of one walk for one footprint. Where a step took no more than a packed one, 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    pub side: Side,
    pub page_bytes: Bytes,
    pub footprint_bytes: Bytes,
    /// Independent steps. On the instruction side as `high_ns`: there is one figure.
    pub low_ns: Figure,
    /// Dependent steps.
    pub high_ns: Figure,
}

fn figure(values: &[f64]) -> Option<Figure> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = *sorted.get(sorted.len() / 2)?;
    let quarter = (sorted.len() - 1) / 4;
    Some(Figure { middle, from: sorted[quarter], to: sorted[sorted.len() - 1 - quarter] })
}

/// Walks that a step of `spread` took more than one of `dense`. Large pages that the TLB holds need next to none: what a step
/// takes is then its cost, not divided by the few.
fn walks_between(spread: &Timing, dense: &Timing) -> f64 {
    const WALKS_MIN: f64 = 0.2;
    let middle = |timing: &Timing| figure(&timing.walks_per_step).map(|figure| figure.middle);
    let counted = middle(spread).zip(middle(dense)).map(|(spread, dense)| spread - dense);
    counted.filter(|walks| *walks >= WALKS_MIN).unwrap_or(1.0)
}

impl Calibration {
    /// What a walk costs, by side, mapped page size and footprint, smallest first.
    pub fn costs(&self) -> Vec<Cost> {
        let mut costs: Vec<Cost> = Vec::new();
        for timing in self.timings.iter().filter(|timing| timing.nodes == Nodes::Spread) {
            let (side, page_bytes, footprint_bytes) =
                (timing.side, timing.page_bytes, timing.footprint_bytes);
            let is_there = |cost: &Cost| {
                (cost.side, cost.page_bytes, cost.footprint_bytes) == (side, page_bytes, footprint_bytes)
            };
            let many = self.walk_ns(timing, 8).or_else(|| self.walk_ns(timing, 1));
            if let (false, Some(low_ns), Some(high_ns)) =
                (costs.iter().any(is_there), many, self.walk_ns(timing, 1))
            {
                costs.push(Cost { side, page_bytes, footprint_bytes, low_ns, high_ns });
            }
        }
        costs
    }

    fn find(&self, like: &Timing, nodes: Nodes, chains: u32) -> Option<&Timing> {
        self.timings.iter().find(|timing| {
            (timing.side, timing.footprint_bytes, timing.nodes, timing.chains)
                == (like.side, like.footprint_bytes, nodes, chains)
                && (nodes == Nodes::Dense || timing.page_bytes == like.page_bytes)
        })
    }

    /// A step of `like` less one through packed lines, round by round.
    fn walk_ns(&self, like: &Timing, chains: u32) -> Option<Figure> {
        let spread = self.find(like, Nodes::Spread, chains)?;
        let dense = self.find(like, Nodes::Dense, chains)?;
        let rounds: Vec<f64> = spread
            .step_ns
            .iter()
            .zip(&dense.step_ns)
            .map(|(step, packed)| (step - packed).max(0.0))
            .collect();
        let walks = walks_between(spread, dense);
        figure(&rounds.iter().map(|ns| ns / walks).collect::<Vec<f64>>())
    }

    /// Whether walks were counted; else one a step is assumed.
    pub fn is_counted(&self) -> bool {
        self.timings.iter().any(|timing| !timing.walks_per_step.is_empty())
    }

    /// The costs at the footprints next below and next above `footprint_bytes`, as far as they were measured; without one,
    /// at all of them: the wider interval.
    pub fn walk_costs(&self, footprint_bytes: Option<Bytes>) -> WalkCosts {
        let rate = self.reference_cycles_per_ns.unwrap_or(f64::NAN);
        let mut costs: Vec<WalkCost> = Vec::new();
        for cost in self.costs_near(footprint_bytes) {
            let (low, high) = (cost.low_ns.middle * rate, cost.high_ns.middle * rate);
            let (low_cycles, high_cycles) = (low.min(high), low.max(high));
            let same = |one: &&mut WalkCost| (one.side, one.page_bytes) == (cost.side, cost.page_bytes);
            match costs.iter_mut().find(same) {
                Some(one) => {
                    one.low_cycles = one.low_cycles.min(low_cycles);
                    one.high_cycles = one.high_cycles.max(high_cycles);
                }
                None => costs.push(WalkCost {
                    side: cost.side,
                    page_bytes: cost.page_bytes,
                    low_cycles,
                    high_cycles,
                }),
            }
        }
        costs.retain(|cost| cost.low_cycles.is_finite() && cost.high_cycles.is_finite());
        let mut source = self.source();
        if !costs.iter().any(|cost| cost.side == Side::Instruction) && !costs.is_empty() {
            let stand_ins: Vec<WalkCost> =
                costs.iter().map(|cost| WalkCost { side: Side::Instruction, ..*cost }).collect();
            costs.extend(stand_ins);
            source.push_str("; for instructions the cost of data stands");
        }
        WalkCosts { costs, source }
    }

    /// `costs` at the footprints around this one.
    pub fn costs_near(&self, footprint_bytes: Option<Bytes>) -> Vec<Cost> {
        let mut costs = self.costs();
        let Some(wanted) = footprint_bytes else { return costs };
        let sizes = |side: Side| -> (Option<Bytes>, Option<Bytes>) {
            let of_side = || costs.iter().filter(|cost| cost.side == side).map(|cost| cost.footprint_bytes);
            (
                of_side().filter(|bytes| *bytes <= wanted).max(),
                of_side().filter(|bytes| *bytes >= wanted).min(),
            )
        };
        let near: Vec<_> = Side::ALL.iter().map(|side| (*side, sizes(*side))).collect();
        costs.retain(|cost| {
            near.iter().any(|(side, (below, above))| {
                *side == cost.side && [*below, *above].contains(&Some(cost.footprint_bytes))
            })
        });
        costs
    }

    /// "marusa tlb --calibrate, 2026-01-01, AMD EPYC 7763, Linux 6.18".
    pub fn source(&self) -> String {
        let day = self.at.split('T').next().unwrap_or_default();
        format!("marusa tlb --calibrate, {day}, {}, Linux {}", self.machine.model, self.machine.kernel)
    }

    /// Whether the host below a virtual machine maps it with small pages, so that the TLB holds small entries even of large
    /// pages: memory of a few large pages needs no walk otherwise. `None`: it can not be told.
    pub fn is_splintered(&self) -> Option<bool> {
        let costs = self.costs();
        let of = |page_bytes: Bytes| {
            let data = costs.iter().filter(|cost| cost.side == Side::Data && cost.page_bytes == page_bytes);
            data.filter(|cost| cost.footprint_bytes <= FEW_PAGES_BYTES)
                .min_by_key(|cost| cost.footprint_bytes)
        };
        let (small, huge) = (of(4096)?.high_ns.middle, of(2 << 20)?.high_ns.middle);
        match huge / small {
            share if share > 0.25 => Some(true),
            share if share < 0.1 => Some(false),
            _ => None,
        }
    }

    /// Those of the data side.
    pub fn footprints(&self) -> BTreeSet<Bytes> {
        let data = self.timings.iter().filter(|timing| timing.side == Side::Data);
        data.map(|timing| timing.footprint_bytes).collect()
    }

    /// A file may hold anything.
    pub fn is_sane(&self) -> bool {
        let is_good = |ns: &f64| ns.is_finite() && (0.0..1e9).contains(ns);
        self.schema == SCHEMA
            && self.reference_cycles_per_ns.is_none_or(|rate| (0.01..100.0).contains(&rate))
            && self
                .timings
                .iter()
                .all(|timing| timing.step_ns.iter().chain(&timing.walks_per_step).all(is_good))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The table of an EPYC in a virtual machine, in nanoseconds at 2.5 GHz.
    pub fn calibration() -> Calibration {
        let timing = |nodes, page_bytes, footprint_mib: u64, chains, step_ns: &[f64]| Timing {
            step_ns: step_ns.to_vec(),
            ..Timing::of(Side::Data, nodes, page_bytes, footprint_mib << 20, chains)
        };
        let (small, huge) = (4096, 2 << 20);
        Calibration {
            schema: SCHEMA.to_string(),
            at: "2026-01-01T00:00:00Z".to_string(),
            took_ms: 1.0,
            machine: Machine { model: "AMD EPYC".into(), kernel: "6.18.44".into(), ..Machine::default() },
            reference_cycles_per_ns: Some(2.5),
            timings: vec![
                timing(Nodes::Dense, huge, 16, 1, &[5.0, 6.0, 9.0]),
                timing(Nodes::Dense, huge, 16, 8, &[1.0, 1.0, 1.0]),
                timing(Nodes::Spread, small, 16, 1, &[61.0, 60.0, 70.0]),
                timing(Nodes::Spread, small, 16, 8, &[8.0, 8.0, 9.0]),
                timing(Nodes::Spread, huge, 16, 1, &[25.0, 26.0, 27.0]),
                timing(Nodes::Spread, huge, 16, 8, &[0.5, 0.5, 4.0]),
                timing(Nodes::Dense, huge, 256, 1, &[40.0]),
                timing(Nodes::Dense, huge, 256, 8, &[6.0]),
                timing(Nodes::Spread, small, 256, 1, &[240.0]),
                timing(Nodes::Spread, small, 256, 8, &[26.0]),
            ],
            gaps: Vec::new(),
        }
    }

    #[test]
    fn a_walk_is_what_a_step_takes_more_than_a_packed_one() {
        let costs = calibration().costs();
        assert_eq!(costs.len(), 3);
        assert_eq!((costs[0].page_bytes, costs[0].footprint_bytes), (4096, 16 << 20));
        assert_eq!(costs[0].high_ns, Figure { middle: 56.0, from: 54.0, to: 61.0 });
        assert_eq!((costs[0].low_ns.middle, costs[0].low_ns.to), (7.0, 8.0));
        assert_eq!((costs[1].page_bytes, costs[1].high_ns.middle), (2 << 20, 20.0));
        assert_eq!(costs[1].low_ns.middle, 0.0, "a walk does not give time back");
        assert_eq!((costs[2].low_ns.middle, costs[2].high_ns.middle), (20.0, 200.0));
    }

    #[test]
    fn walks_that_were_counted_divide_the_cost_and_next_to_none_do_not() {
        let mut counted = calibration();
        assert!(!counted.is_counted());
        for (timing, walks) in counted.timings.iter_mut().zip([0.1, 0.1, 2.1, 1.1, 0.15, 0.1]) {
            timing.walks_per_step = vec![walks];
        }
        assert!(counted.is_counted());
        let costs = counted.costs();
        assert_eq!((costs[0].low_ns.middle, costs[0].high_ns.middle), (7.0, 28.0));
        assert_eq!(costs[1].high_ns.middle, 20.0, "0.05 walks a step");
    }

    #[test]
    fn costs_in_cycles_hold_all_footprints_or_those_around_one() {
        let bracket = |footprint| calibration().walk_costs(footprint).bracket(Side::Data, &[4096]);
        assert_eq!(bracket(None), Some((17.5, 500.0)));
        assert_eq!(bracket(Some(1 << 20)), Some((17.5, 140.0)), "smaller than all: the smallest");
        assert_eq!(bracket(Some(64 << 20)), Some((17.5, 500.0)), "between two: both");
        assert_eq!(bracket(Some(256 << 20)), Some((50.0, 500.0)));
        assert_eq!(bracket(Some(1 << 40)), Some((50.0, 500.0)), "larger than all: the largest");
        let costs = calibration().walk_costs(None);
        assert_eq!(
            costs.bracket(Side::Instruction, &[4096]),
            Some((17.5, 500.0)),
            "the data side's stands for it"
        );
        assert!(costs.source.contains("AMD EPYC, Linux 6.18.44; for instructions"), "{}", costs.source);
    }

    #[test]
    fn large_pages_that_still_need_walks_are_splintered() {
        assert_eq!(calibration().is_splintered(), Some(true), "20 of 56 ns");
        let mut whole = calibration();
        whole.timings[4].step_ns = vec![6.0, 7.0, 10.0];
        assert_eq!(whole.is_splintered(), Some(false));
        whole.timings.truncate(4);
        assert_eq!(whole.is_splintered(), None, "no large pages were to be had");
    }

    #[test]
    fn without_a_rate_there_are_no_cycles_and_without_packed_lines_no_costs() {
        let mut without = calibration();
        without.reference_cycles_per_ns = None;
        assert!(without.walk_costs(None).costs.is_empty());
        without.timings.retain(|timing| timing.nodes == Nodes::Spread);
        assert!(without.costs().is_empty());
    }

    #[test]
    fn what_a_file_may_not_say() {
        assert!(calibration().is_sane());
        let mut bad = calibration();
        bad.timings[0].step_ns.push(f64::INFINITY);
        assert!(!bad.is_sane());
        let bad = Calibration { schema: "other/1".into(), ..calibration() };
        assert!(!bad.is_sane());
        assert_eq!(figure(&[f64::NAN]), None);
        let kept = serde_json::to_string(&calibration()).expect("JSON");
        assert_eq!(serde_json::from_str::<Calibration>(&kept).expect("JSON"), calibration());
    }
}
