//! What one walk of the page tables costs, where the processor counts walks but not their time (AMD's counters, older Arm
//! cores). Misses times one constant is wrong by up to 30 times: a chain of dependent loads waits for every walk, while
//! independent loads hide most of it. So a cost is always two numbers, from independent to dependent, and what is made of
//! it is an interval.

use serde::{Deserialize, Serialize};

/// Which of the two first-level TLBs missed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Instruction,
    Data,
}

impl Side {
    pub const ALL: [Side; 2] = [Side::Instruction, Side::Data];

    /// As trapstat names the columns.
    pub fn word(self) -> &'static str {
        match self {
            Side::Instruction => "itlb",
            Side::Data => "dtlb",
        }
    }
}

/// Costs of walks on one machine, as they were measured there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WalkCosts {
    pub costs: Vec<WalkCost>,
    /// Who measured it, on what: "marusa tlb --calibrate, 2026-01-01, AMD EPYC 7763, Linux 6.18".
    pub source: String,
}

/// The cost of one walk that begins for memory mapped with pages of `page_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WalkCost {
    pub side: Side,
    /// The page size of the mapping, which is not that of the TLB's entry where a hypervisor splinters it.
    pub page_bytes: u64,
    /// With independent accesses, which overlap.
    pub low_cycles: f64,
    /// With dependent accesses, each of which waits for the walk of the one before.
    pub high_cycles: f64,
}

impl WalkCosts {
    /// The cheapest and the dearest walk of this side for any of these mapped sizes. `None`: none of them was measured.
    pub fn bracket(&self, side: Side, page_sizes: &[u64]) -> Option<(f64, f64)> {
        let costs =
            self.costs.iter().filter(|cost| cost.side == side && page_sizes.contains(&cost.page_bytes));
        costs.filter(|cost| cost.is_sane()).fold(None, |bracket: Option<(f64, f64)>, cost| {
            let (low, high) = bracket.unwrap_or((cost.low_cycles, cost.high_cycles));
            Some((low.min(cost.low_cycles), high.max(cost.high_cycles)))
        })
    }

    /// The mapped sizes that were measured, in bytes.
    pub fn sizes(&self, side: Side) -> Vec<u64> {
        self.costs.iter().filter(|cost| cost.side == side).map(|cost| cost.page_bytes).collect()
    }
}

impl WalkCost {
    /// A file may hold anything.
    fn is_sane(&self) -> bool {
        self.low_cycles.is_finite()
            && self.high_cycles.is_finite()
            && 0.0 <= self.low_cycles
            && self.low_cycles <= self.high_cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> WalkCosts {
        let cost = |page_bytes, low_cycles, high_cycles| WalkCost {
            side: Side::Data,
            page_bytes,
            low_cycles,
            high_cycles,
        };
        WalkCosts {
            costs: vec![cost(4096, 18.0, 138.0), cost(2 << 20, 7.0, 52.0)],
            source: "a test".to_string(),
        }
    }

    #[test]
    fn uncertain_sizes_widen_the_bracket_and_what_was_not_measured_is_none() {
        assert_eq!(costs().bracket(Side::Data, &[4096]), Some((18.0, 138.0)));
        assert_eq!(costs().bracket(Side::Data, &[4096, 2 << 20]), Some((7.0, 138.0)));
        assert_eq!(costs().bracket(Side::Data, &[1 << 30]), None);
        assert_eq!(costs().bracket(Side::Instruction, &[4096]), None);
    }

    #[test]
    fn a_cost_that_makes_no_sense_is_left_out() {
        let mut costs = costs();
        costs.costs[0].high_cycles = f64::NAN;
        assert_eq!(costs.bracket(Side::Data, &[4096, 2 << 20]), Some((7.0, 52.0)));
        costs.costs[1].low_cycles = 60.0;
        assert_eq!(costs.bracket(Side::Data, &[4096, 2 << 20]), None);
    }
}
