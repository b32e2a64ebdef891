//! One huge page becomes small pages again.
//!
//! Pages of it that hold nothing but zeros become the zero page (mm/huge_memory.c, `try_to_map_unused_to_zeropage`, Linux
//! 6.12): they no longer count as resident, and the next write to each takes a fault. Pages of shared memory are unmapped
//! by the split and come back with the next access. Where a thread touches one while it is split, the split fails and the next
//! access maps the huge page again: so blocks that are in use all the time take several turns.

use super::advise::Advice;
use super::done::{Done, Watch};
use super::run::{Change, Run, Wanted};
use super::{Block, Pace, PromoteError, Receipt};
use crate::base::Range;
use crate::os::look::Look;
use crate::os::machine::base_page;
use crate::os::process::Process;

/// Puts the blocks on small pages, one call each, in the order given.
pub fn split(
    process: &Process,
    blocks: &[Block],
    pace: Pace,
    receipt: Option<&mut Receipt>,
    watch: &mut dyn Watch,
) -> Result<Done, PromoteError> {
    Run::start(process, pace, &Split)?.through(blocks, receipt, watch)
}

struct Split;

impl Change for Split {
    fn advice(&self) -> Advice {
        Advice::Cold
    }
    fn takes_memory(&self) -> bool {
        false
    }
    /// Where the kernel does not say what is huge, the call does no harm.
    fn wanted(&self, _block: &Block, now: &Look) -> Wanted {
        match now.huge {
            Some(0) if now.resident > 0 => Wanted::IsSo,
            Some(0) => Wanted::NoLonger,
            Some(_) | None => Wanted::Yes,
        }
    }
    /// The kernel can call a page of 4 KiB cold only after it has split the huge one that it is part of.
    fn range(&self, block: &Block) -> Range {
        Range::sized(block.range.start, base_page())
    }
    fn is_reached(&self, now: &Look) -> Option<bool> {
        now.huge.map(|huge| huge == 0)
    }
    /// The page is unmapped before it is known whether it can be split (mm/huge_memory.c, `unmap_folio`); a fault that waits for
    /// it holds a reference, and `folio_ref_freeze` fails.
    fn may_come_back(&self) -> bool {
        true
    }
}
