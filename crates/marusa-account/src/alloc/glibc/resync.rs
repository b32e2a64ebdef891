//! Where a walk over a heap can go on after it broke, or begin in the middle: chunks only lead forward, so a place is taken for
//! the start of a chunk when a thousand chunks in a row make sense from there.

use super::chunk_map::CHUNK_BYTES_MIN;
use super::region::Region;
use super::walker::{FENCE_BYTES, FLAGS, PREVIOUS_IN_USE, Walker, is_size};
use crate::base::limits::RESYNC_CHUNKS_MAX;
use crate::base::{Addr, Range};
use crate::os::budget;

/// Chunks in a row that prove that a walk has found back.
const PROOF_CHUNKS: usize = 1000;
/// A fence right after fewer chunks than this proves nothing.
const PROOF_CHUNKS_TO_FENCE: usize = 3;

impl Walker<'_> {
    /// The first place from `from` on at which a walk goes well: to the end of the heap, to fence posts, or over a thousand
    /// chunks.
    pub(super) fn resync(&mut self, from: Addr, end: Addr) -> Option<Addr> {
        self.find(Range { start: from, end }, end)
    }

    /// A place in `search` at which a chunk of `region` seems to begin.
    pub fn find_chain(&mut self, region: &Region, search: Range) -> Option<Addr> {
        self.probe.restart(region.resident.clone());
        self.find(search, region.map.range().end)
    }

    fn find(&mut self, search: Range, end: Addr) -> Option<Addr> {
        let mut chunks = 0;
        let mut at = search.start.up_to(16);
        while at.plus(CHUNK_BYTES_MIN) <= search.end && chunks < RESYNC_CHUNKS_MAX {
            budget::check().ok()?;
            let Ok(size) = self.probe.word(at.plus(8)) else {
                // The size field may lie on the page after that of the start.
                at = self.probe.next_resident(at.plus(9))?.up_to(16).max(at.plus(16));
                continue;
            };
            if size & PREVIOUS_IN_USE != 0
                && is_size(size, end.0 - at.0)
                && self.is_chain(at, end, &mut chunks)
            {
                return Some(at);
            }
            at = at.plus(16);
        }
        None
    }

    fn is_chain(&mut self, mut at: Addr, end: Addr, chunks: &mut usize) -> bool {
        for index in 0..PROOF_CHUNKS {
            *chunks += 1;
            if budget::check().is_err() {
                return false;
            }
            let Ok(size) = self.window.word(at.plus(8)) else { return false };
            if size & !FLAGS == FENCE_BYTES && index >= PROOF_CHUNKS_TO_FENCE {
                return true;
            }
            if !is_size(size, end.0 - at.0) {
                return false;
            }
            at = at.plus(size & !FLAGS);
            if at == end {
                return true;
            }
        }
        true
    }
}
