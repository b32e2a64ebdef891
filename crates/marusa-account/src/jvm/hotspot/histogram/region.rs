//! A region as it is walked, and what a walk gives.

use super::duplicates::Texts;
use super::marks::Marks;
use super::on_pages::{OnSize, Spans};
use crate::base::{Addr, Range};
use crate::jvm::HeapBytes;

/// An object has room to become a free chunk (`CompactibleFreeListSpace::adjustObjectSize`).
const CMS_OBJECT_BYTES_MIN: u64 = 24;

/// What came of reading from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    Read,
    /// Not in memory up to this address, at least.
    Absent(u64),
    /// Reading was given up.
    Gone,
}

/// Where the bytes come from.
pub trait Source {
    /// Fills `into` from `at`, outside of the heap.
    fn aside(&mut self, at: Addr, into: &mut [u8]) -> bool;

    /// Replaces `into` by bytes from `at` on, at least up to the end of the page if they reach it, and none from `end` on.
    fn fill(&mut self, at: u64, end: u64, into: &mut Vec<u8>) -> Filled;

    /// The pages of `range` by their size.
    fn pages(&mut self, range: Range) -> Spans;
}

/// How objects lie in a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lie {
    #[default]
    Packed,
    /// One object, and behind it nothing.
    Single,
    /// Each begins at a multiple of this.
    Aligned(u64),
    /// With free chunks of CMS between them.
    WithFreeChunks,
}

/// A part of the heap in which one object follows the other from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    pub range: Range,
    pub space: &'static str,
    pub lie: Lie,
    /// What else the region is recognised by when it is looked at again.
    pub stamp: u64,
    /// Unused ends of allocation buffers, sorted.
    pub holes: Vec<Range>,
    /// Which objects are alive; `None`: it is not known.
    pub marks: Option<Marks>,
    /// A part of a region, which begins with an object.
    pub is_piece: bool,
}

impl Region {
    /// Whether all of its objects were allocated since the last collection.
    pub fn is_new(&self) -> bool {
        self.space.contains("eden")
    }

    /// What follows an object before the next one begins.
    #[inline]
    pub fn padding(&self, bytes: u64) -> u64 {
        match self.lie {
            Lie::WithFreeChunks => CMS_OBJECT_BYTES_MIN.saturating_sub(bytes),
            Lie::Aligned(unit) => bytes.next_multiple_of(unit.max(1)) - bytes,
            Lie::Packed | Lie::Single => 0,
        }
    }
}

/// A part of a region, as it was walked.
#[derive(Debug, Default)]
pub struct Walked {
    /// Where the first object begins; `None`: none was found.
    pub first: Option<u64>,
    /// Where the first object behind the part begins; `None`: it is not known.
    pub next: Option<u64>,
    /// What lies before the first object, if the walk did not begin at one.
    pub lead: HeapBytes,
    pub bytes: HeapBytes,
    pub counts: Vec<(u32, Count)>,
    pub on_pages: Vec<OnSize>,
    /// Its marks could not be read, and all counts as alive.
    pub is_unmarked: bool,
    pub texts: Texts,
}

/// The figures of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub instances: u64,
    pub bytes: u64,
    pub dead_instances: u64,
    pub dead_bytes: u64,
    /// The part of `bytes` allocated since the marking began, if there was one.
    pub since_bytes: u64,
}

impl Count {
    pub fn add(&mut self, other: &Count) {
        self.instances = self.instances.saturating_add(other.instances);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.dead_instances = self.dead_instances.saturating_add(other.dead_instances);
        self.dead_bytes = self.dead_bytes.saturating_add(other.dead_bytes);
        self.since_bytes = self.since_bytes.saturating_add(other.since_bytes);
    }
}
