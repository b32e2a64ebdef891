//! Costs of walks out of the times of a self-test (`act::calibrate`): what a step through pages takes more than one through as
//! many packed lines is the walk. Eight chains at once give the low end, one chain the high end.
//!
//! Each round gives a cost, since it visits all fields one after the other; the cost is the middle one, and the middle half of
//! the rounds is its spread. (The best step less the best packed step would pair a quiet moment with another one: caches that
//! are shared with neighbours are rarely quiet.)

use super::walk_costs::{Side, WalkCost, WalkCosts};
use crate::base::{Bytes, Gap};
use crate::os::machine::{base_page, huge_page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The bytes on large pages that fit every first-level TLB: 32 entries.
const FEW_PAGES_BYTES: Bytes = 64 << 20;

/// The share of the test's time that it may wait for a processor; and spreads of a noisy machine, where another
/// calibration of the same machine was this many times quieter.
const BUSY_SHARE: f64 = 0.2;
const SPREAD_NOISY: f64 = 0.25;
const SPREAD_FACTOR: f64 = 2.0;

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
    /// The share of the time in which the test was ready to run and had no processor. `None`: this kernel does not tell.
    #[serde(default)]
    pub waited_share: Option<f64>,
    pub timings: Vec<Timing>,
    pub gaps: Vec<Gap>,
}

/// What the costs hold for: another CPU, microcode or kernel has its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nodes {
    /// Packed line by line: hardly any walks.
    Dense,
    /// One to each 4 KiB.
    Spread,
}

/// The times of one field, a figure for each round.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Figure {
    pub middle: f64,
    pub from: f64,
    pub to: f64,
}

/// The cost of one walk for one footprint. Where a step took no more than a packed one, 0.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Cost {
    pub side: Side,
    pub page_bytes: Bytes,
    pub footprint_bytes: Bytes,
    /// Independent steps. On the instruction side as `high_ns`: there is one figure.
    #[serde(rename = "independent_ns")]
    pub low_ns: Figure,
    /// Dependent steps.
    #[serde(rename = "dependent_ns")]
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
    /// pages: memory of a few large pages needs no walk otherwise. `None`: unknown.
    pub fn is_splintered(&self) -> Option<bool> {
        let costs = self.costs();
        let of = |page_bytes: Bytes| {
            let data = costs.iter().filter(|cost| cost.side == Side::Data && cost.page_bytes == page_bytes);
            data.filter(|cost| cost.footprint_bytes <= FEW_PAGES_BYTES)
                .min_by_key(|cost| cost.footprint_bytes)
        };
        let (small, huge) = (of(base_page())?.high_ns.middle, of(huge_page())?.high_ns.middle);
        match huge / small {
            share if share > 0.25 => Some(true),
            share if share < 0.1 => Some(false),
            _ => None,
        }
    }

    /// How far the rounds were apart: the middle half of them as a share of the middle one, of the dependent accesses to memory;
    /// of the costs at all footprints and page sizes the middle one.
    pub fn spread(&self) -> Option<f64> {
        let costs = self.costs();
        let data = costs.iter().filter(|cost| cost.side == Side::Data && cost.high_ns.middle > 0.0);
        let spreads: Vec<f64> =
            data.map(|cost| (cost.high_ns.to - cost.high_ns.from) / cost.high_ns.middle).collect();
        figure(&spreads).map(|spread| spread.middle)
    }

    /// Whether something else used the processors for so large a part of the time that the figures say more of that than of walks.
    pub fn is_of_a_busy_machine(&self) -> bool {
        self.waited_share.is_some_and(|share| share > BUSY_SHARE)
    }

    /// Whether `self` tells less than `other`, of the same footprints or more: a busy machine, or rounds far apart.
    pub fn is_worse_than(&self, other: &Calibration) -> bool {
        let is_noisier = match (self.spread(), other.spread()) {
            (Some(own), Some(others)) => own > SPREAD_NOISY && own > others * SPREAD_FACTOR,
            _ => false,
        };
        is_noisier || self.is_of_a_busy_machine() && !other.is_of_a_busy_machine()
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
            && self.waited_share.is_none_or(|share| (0.0..=1.0).contains(&share))
            && self
                .timings
                .iter()
                .all(|timing| timing.step_ns.iter().chain(&timing.walks_per_step).all(is_good))
    }
}

#[cfg(test)]
#[path = "calibration_tests.rs"]
pub mod tests;
