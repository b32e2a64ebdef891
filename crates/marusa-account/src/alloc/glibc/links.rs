//! Words of a heap that are read along a list, in whatever order the list has. Blocks that were read are kept in a small
//! store; where a list jumps about in more memory than fits there, only the links themselves are read.

use super::window::Source;
use crate::base::limits::LIST_FAR_READS_MAX;
use crate::base::{Addr, Range, holding};

const BLOCK_BYTES: u64 = 16 << 10;
const BLOCKS: usize = 128;
/// Reads before which it is not decided that the store does not help.
const TRIAL_READS: usize = 64;

#[derive(Clone, Copy, Default)]
struct Block {
    range: Range,
    /// Where its bytes are in the store; `None` until it is used: most heaps need a few blocks.
    place: Option<usize>,
}

pub struct Links<'a> {
    source: &'a dyn Source,
    blocks: Vec<Block>,
    bytes: Vec<u8>,
    hits: usize,
    misses: usize,
    far_reads: usize,
}

/// What follows what along one kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    Plain,
    /// From 2.32 on: xor with the link's own address by pages ("safe-linking", malloc/malloc.c, `PROTECT_PTR`).
    Safe,
}

impl Linking {
    pub fn follow(self, at: Addr, word: u64) -> Addr {
        match self {
            Linking::Plain => Addr(word),
            Linking::Safe => Addr(word ^ at.0 >> 12),
        }
    }
}

impl<'a> Links<'a> {
    pub fn new(source: &'a dyn Source) -> Links<'a> {
        let blocks = vec![Block::default(); BLOCKS];
        Links { source, blocks, bytes: Vec::new(), hits: 0, misses: 0, far_reads: 0 }
    }

    /// Fills `into` from `at`; `resident`: what is in memory of the heap around it, sorted.
    pub fn copy(&mut self, resident: &[Range], at: Addr, into: &mut [u8]) -> Option<()> {
        let wanted = Range::sized(at, into.len() as u64);
        let slot = (at.0 / BLOCK_BYTES) as usize % BLOCKS;
        if !self.blocks[slot].range.covers(wanted) {
            let run = holding(resident, at).filter(|range| range.covers(wanted))?;
            if !self.fetch(slot, at, run, wanted) {
                self.far_reads += 1;
                let is_allowed = self.far_reads < LIST_FAR_READS_MAX;
                return (is_allowed && self.source.read(at, into).is_ok()).then_some(());
            }
        } else {
            self.hits += 1;
        }
        let block = self.blocks[slot];
        let from = block.place? + (at.0 - block.range.start.0) as usize;
        into.copy_from_slice(&self.bytes[from..from + into.len()]);
        Some(())
    }

    /// Puts the block around `wanted` into the store, if that pays.
    fn fetch(&mut self, slot: usize, at: Addr, run: Range, wanted: Range) -> bool {
        self.misses += 1;
        let helps = self.misses < TRIAL_READS || self.hits > self.misses * 2;
        let range = Range::sized(at.down_to(BLOCK_BYTES), BLOCK_BYTES).intersect(run);
        if !helps || !range.covers(wanted) {
            // What helped once may help again.
            self.hits += usize::from(self.misses.is_multiple_of(2));
            return false;
        }
        let from = *self.blocks[slot].place.get_or_insert_with(|| {
            let end = self.bytes.len();
            self.bytes.resize(end + BLOCK_BYTES as usize, 0);
            end
        });
        let into = &mut self.bytes[from..from + range.bytes() as usize];
        let is_read = self.source.read(range.start, into).is_ok();
        self.blocks[slot].range = if is_read { range } else { Range::default() };
        is_read
    }

    /// The word at `at`, a link that is followed.
    pub fn word(&mut self, resident: &[Range], at: Addr) -> Option<u64> {
        let mut bytes = [0; 8];
        self.copy(resident, at, &mut bytes)?;
        if self.source.keeps() {
            self.source.used(at, &bytes);
        }
        Some(u64::from_le_bytes(bytes))
    }

    pub fn keep(&self, at: Addr, bytes: &[u8]) {
        if self.source.keeps() {
            self.source.used(at, bytes);
        }
    }

    /// Whether a list may have been left because of the number of reads.
    pub fn is_exhausted(&self) -> bool {
        self.far_reads >= LIST_FAR_READS_MAX
    }
}
