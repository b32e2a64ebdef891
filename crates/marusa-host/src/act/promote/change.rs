//! The two changes: small pages become one huge page, and one huge page becomes small pages again.
//!
//! Pages of a split huge page that hold nothing but zeros become the zero page (mm/huge_memory.c,
//! `try_to_map_unused_to_zeropage`, Linux 6.12): they no longer count as resident, and the next write to each takes a fault. Pages
//! of shared memory are unmapped by the split and come back with the next access. Where a thread touches one while it is split, the
//! split fails and the next access maps the huge page again: so blocks that are in use all the time take several turns.

use super::{Block, block_bytes};
use crate::base::Range;
use crate::os::look::Look;
use crate::os::machine::base_page;

/// There, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// MADV_COLLAPSE (Linux 6.1).
    Collapse,
    /// MADV_COLD (Linux 5.4).
    Split,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Yes,
    IsSo,
    NoLonger,
}

impl Change {
    pub(super) fn takes_memory(self) -> bool {
        self == Change::Collapse
    }
    /// Where the kernel does not say what is huge, a split does no harm.
    pub(super) fn wanted(self, block: &Block, now: &Look) -> Wanted {
        let there = now.resident + if block.fills_zeros { now.zero } else { 0 };
        match self {
            Change::Collapse if self.is_reached(now) == Some(true) => Wanted::IsSo,
            Change::Collapse if now.swapped == 0 && there >= block.resident_min => Wanted::Yes,
            Change::Split if now.huge == Some(0) && now.resident > 0 => Wanted::IsSo,
            Change::Split if now.huge != Some(0) => Wanted::Yes,
            _ => Wanted::NoLonger,
        }
    }
    /// What the kernel is asked for. It can call a page of 4 KiB cold only after it has split the huge one that it is part of.
    pub(super) fn range(self, block: &Block) -> Range {
        match self {
            Change::Collapse => block.range,
            Change::Split => Range::sized(block.range.start, base_page()),
        }
    }
    pub(super) fn is_reached(self, now: &Look) -> Option<bool> {
        now.huge.map(|huge| if self == Change::Collapse { huge >= block_bytes() } else { huge == 0 })
    }
    /// Whether what was changed can be found as it was a moment later. A huge page is unmapped before it is known whether it can
    /// be split (mm/huge_memory.c, `unmap_folio`); a fault that waits for it holds a reference, and `folio_ref_freeze` fails.
    pub(super) fn may_come_back(self) -> bool {
        self == Change::Split
    }
}
