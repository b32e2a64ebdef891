//! What becomes of a list of blocks: how many are changed, which were refused, and why it ended before the last.

use super::advise::Refusal;
use super::price::Price;
use crate::base::{Bytes, Range};
use std::collections::BTreeMap;

/// What is reported while it runs.
pub trait Watch {
    /// `seen` of `blocks` have had their turn, and `reached` are now as wanted.
    fn step(&mut self, seen: usize, reached: usize, blocks: usize);
}

/// For callers that show nothing.
impl Watch for () {
    fn step(&mut self, _seen: usize, _reached: usize, _blocks: usize) {}
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Done {
    /// Changed by us; sorted, joined.
    #[serde(skip)]
    pub reached: Vec<Range>,
    /// Blocks that were so already.
    #[serde(rename = "blocks_were_so")]
    pub were_so: usize,
    /// Blocks that are no longer what they were when they were chosen: the target unmapped, freed or swapped pages of them.
    #[serde(rename = "blocks_no_longer_fit")]
    pub no_longer: usize,
    #[serde(skip)]
    pub refused: BTreeMap<Refusal, usize>,
    /// Blocks that had no turn.
    #[serde(rename = "blocks_not_tried")]
    pub not_tried: usize,
    #[serde(skip)]
    pub stopped: Option<Stopped>,
    pub price: Price,
}

impl Done {
    pub fn reached_bytes(&self) -> Bytes {
        self.reached.iter().map(|range| range.bytes()).sum()
    }
    /// Whether every block that could be changed was.
    pub fn is_all(&self) -> bool {
        self.stopped.is_none() && self.refused.is_empty() && self.not_tried == 0
    }
}

/// Why it ended before the last block.
#[derive(Clone, Debug, PartialEq)]
pub enum Stopped {
    Signal,
    TargetEnded,
    /// Calls took too long for the stall budget.
    SlowCalls,
    LittleMemory {
        available_bytes: Bytes,
    },
    /// The host has too few free 2 MiB blocks.
    NoPieces {
        free_bytes: Bytes,
    },
    /// It would be refused for every other block, too.
    Refused(Refusal),
    /// What cannot be noted cannot be undone.
    Receipt(String),
    Unreadable(String),
}
