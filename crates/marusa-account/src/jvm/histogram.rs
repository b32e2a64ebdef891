//! The objects of the Java heap by class, as the reader of a runtime found them.

use crate::base::{Bytes, Gap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All classes of one name together: each loader may have its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ClassObjects {
    /// As `jcmd GC.class_histogram` names it: "[B", "java.lang.String".
    pub class: String,
    pub instances: u64,
    pub bytes: Bytes,
    /// Bounds of the class's bytes when the last walk of the heap began and when it ended: what stood still, and that with all
    /// that came or moved. Where `jcmd` counts what can be reached (ZGC, Shenandoah), the lower one has what the last marking
    /// found.
    pub bytes_low: Bytes,
    pub bytes_high: Bytes,
    /// What the last marking of ZGC or Shenandoah found dead and is still there. It is not in `bytes`, as `jcmd` leaves it out.
    /// `None`: it is not known which objects are dead, and `bytes` has all of them.
    pub dead_instances: Option<u64>,
    pub dead_bytes: Option<Bytes>,
    /// The part of `bytes` in regions that did not change while they were read; `None`: no region changed.
    pub still_bytes: Option<Bytes>,
    /// The part that is older than the last collection: outside of eden. What died since it was promoted may be among it. `None`:
    /// it is not known (ZGC, Shenandoah), or the file is of an earlier version.
    #[serde(default)]
    pub survived_instances: Option<u64>,
    #[serde(default)]
    pub survived_bytes: Option<Bytes>,
    /// `bytes` by the page size of the memory that it lies on, as far as that was in memory when the snapshot began; `None`: it
    /// is not known which pages those are (a core).
    pub by_page_size: Option<BTreeMap<Bytes, Bytes>>,
}

/// The bytes of the heap that its spaces have in use, up to their tops: each is in one of these sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct HeapBytes {
    pub used_bytes: Bytes,
    /// Objects, but those in `dead_bytes`.
    pub object_bytes: Bytes,
    /// Objects that are known to be dead (ZGC, Shenandoah).
    pub dead_bytes: Bytes,
    /// The ends of allocation buffers that threads have not used yet.
    pub unused_buffer_bytes: Bytes,
    /// Behind the object of a region that belongs to one object.
    pub tail_bytes: Bytes,
    /// Free chunks between objects (CMS).
    pub free_bytes: Bytes,
    /// Without an object that could be recognised: mostly dead ones whose class was unloaded.
    pub unknown_bytes: Bytes,
    /// Not in memory: swapped, or never touched.
    pub absent_bytes: Bytes,
    /// Not read: over a limit, or gone.
    pub unread_bytes: Bytes,
    /// The part of `object_bytes` in regions that changed while they were read.
    pub changed_bytes: Bytes,
}

/// Regions of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct SpaceObjects {
    /// "eden", "old generation", "humongous".
    pub space: String,
    pub regions: u64,
    pub instances: u64,
    #[serde(flatten)]
    pub bytes: HeapBytes,
}

/// Contents that are there more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Duplicates {
    /// Arrays that Strings lead to, or all of bytes: see `has_all_arrays`.
    pub arrays: u64,
    pub array_bytes: Bytes,
    /// Those of them without which each content would still be there once.
    pub duplicate_arrays: u64,
    pub wasted_bytes: Bytes,
    /// It is not known to which arrays Strings lead (ZGC): all of bytes are compared.
    pub has_all_arrays: bool,
    /// The contents that waste most.
    pub top: Vec<Duplicate>,
}

/// One content.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Duplicate {
    /// Bytes of each array, its header included.
    pub array_bytes: Bytes,
    /// What the content is recognised by in this document alone.
    pub hash: String,
    pub arrays: u64,
    pub wasted_bytes: Bytes,
    /// Its start; `None`: contents are private and were not asked for.
    pub value: Option<String>,
}

/// The whole heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The largest first.
    pub classes: Vec<ClassObjects>,
    pub spaces: Vec<SpaceObjects>,
    /// Readings that changed regions were given, the first included.
    pub looks: u32,
    pub duplicates: Option<Duplicates>,
    pub gaps: Vec<Gap>,
}

impl Histogram {
    /// Nothing was left out for lack of time: figures of a part would look as if classes had shrunk.
    pub fn is_whole(&self) -> bool {
        self.spaces.iter().all(|space| space.bytes.unread_bytes == 0)
    }
}

impl HeapBytes {
    /// In use by the spaces, but by no object.
    pub fn idle_bytes(&self) -> Bytes {
        self.unused_buffer_bytes.saturating_add(self.tail_bytes).saturating_add(self.free_bytes)
    }

    pub fn not_known_bytes(&self) -> Bytes {
        self.unknown_bytes.saturating_add(self.absent_bytes).saturating_add(self.unread_bytes)
    }

    pub fn add(&mut self, other: &HeapBytes) {
        let mut add = |into: fn(&mut HeapBytes) -> &mut Bytes, more: Bytes| {
            let sum = into(self);
            *sum = sum.saturating_add(more);
        };
        add(|it| &mut it.used_bytes, other.used_bytes);
        add(|it| &mut it.object_bytes, other.object_bytes);
        add(|it| &mut it.dead_bytes, other.dead_bytes);
        add(|it| &mut it.unused_buffer_bytes, other.unused_buffer_bytes);
        add(|it| &mut it.tail_bytes, other.tail_bytes);
        add(|it| &mut it.free_bytes, other.free_bytes);
        add(|it| &mut it.unknown_bytes, other.unknown_bytes);
        add(|it| &mut it.absent_bytes, other.absent_bytes);
        add(|it| &mut it.unread_bytes, other.unread_bytes);
        add(|it| &mut it.changed_bytes, other.changed_bytes);
    }
}
