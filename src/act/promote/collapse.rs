//! Small pages become one huge page.

use super::advise::Advice;
use super::done::{Done, Watch};
use super::run::{Change, Run, Wanted};
use super::{Block, Pace, PromoteError, Receipt, block_bytes};
use crate::base::Range;
use crate::os::look::Look;
use crate::os::process::Process;

/// Puts the blocks on huge pages, one call each, in the order given. A block that has fewer pages in memory than it must
/// have, now that its turn comes, is left; so no hole is ever filled.
pub fn collapse(
    process: &Process,
    blocks: &[Block],
    pace: Pace,
    receipt: Option<&mut Receipt>,
    watch: &mut dyn Watch,
) -> Result<Done, PromoteError> {
    Run::start(process, pace, &Collapse)?.through(blocks, receipt, watch)
}

struct Collapse;

impl Change for Collapse {
    fn advice(&self) -> Advice {
        Advice::Collapse
    }
    fn takes_memory(&self) -> bool {
        true
    }
    fn wanted(&self, block: &Block, now: &Look) -> Wanted {
        let there = now.resident + if block.fills_zeros { now.zero } else { 0 };
        match now {
            _ if self.is_reached(now) == Some(true) => Wanted::IsSo,
            now if now.swapped == 0 && there >= block.resident_min => Wanted::Yes,
            _ => Wanted::NoLonger,
        }
    }
    fn range(&self, block: &Block) -> Range {
        block.range
    }
    fn is_reached(&self, now: &Look) -> Option<bool> {
        now.huge.map(|huge| huge >= block_bytes())
    }
    fn may_come_back(&self) -> bool {
        false
    }
}
