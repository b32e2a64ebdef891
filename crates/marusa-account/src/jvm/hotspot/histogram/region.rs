//! The heap as it is walked: its regions, which the collectors' files make, and what is known of all of them. Those files name
//! this one and the marks alone, so that the walk does not depend on a collector nor a collector on the walk.

use super::marks::Marks;
use crate::base::{Addr, Gap, Range};

/// An object has room to become a free chunk (`CompactibleFreeListSpace::adjustObjectSize`).
const CMS_OBJECT_BYTES_MIN: u64 = 24;

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

/// The heap at one moment.
#[derive(Default)]
pub struct Heap {
    /// Sorted, disjoint.
    pub regions: Vec<Region>,
    /// How far the other mappings of the heap lie behind the first (ZGC).
    pub shifts: Vec<u64>,
    /// Where the first begins, and the bits of an address that are the place in it (ZGC).
    pub in_first: Option<(Addr, u64)>,
    /// Since the start; `None` where the collector does not count them here. Full ones are counted apart, too.
    pub collections: Option<u64>,
    pub full_collections: Option<u64>,
    /// Whether unused ends of buffers are filled with an array when the VM walks its heap itself.
    pub is_filled: bool,
    /// The collector is finding out what is alive.
    pub is_marking: bool,
    /// Why it may not be known which objects are dead.
    pub no_marks: &'static str,
    pub gaps: Vec<Gap>,
}
