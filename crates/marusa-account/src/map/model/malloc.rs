//! malloc in the account: the sums, each arena, and the owners of blocks in use.
//!
//! Two views of one heap, side by side. Figures in whole bytes (`free_bytes`) are those of chunks, resident or not. Those of
//! resident memory come from the account's spans, so they sum to it (`in_use_resident_bytes`, `held_resident_bytes`), except
//! `free_resident_bytes`, `free_whole_page_bytes`, `trimmable_bytes` and `top_kept_bytes`, which the walk of the chunks counted.

use super::read;
use crate::alloc::{ArenaFigures, Chunks};
use crate::base::{Addr, Bytes, Gap};
use crate::map::area::of_kind;
use crate::map::audit::{self, malloc::TagRow, malloc::difference};
use crate::map::claim::how;
use crate::map::malloc::owners::OWNER_UNKNOWN;
use crate::map::malloc::{self, ArenaSum, Divided, MallocSum, OwnerSum};
use crate::map::{Area, MemoryMap};
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "read::MallocWire")]
pub struct MallocAccount {
    /// "glibc 2.36".
    pub allocator: String,
    /// In the order of the ring.
    pub arenas: Vec<ArenaAccount>,
    /// An allocator that is recognised, but not walked.
    pub other: Option<OtherAccount>,
    /// Native Memory Tracking's own counters next to what was walked; `None` where it is off.
    pub nmt_tags: Option<Vec<TagAccount>>,
    pub owners: Option<Vec<OwnerAccount>>,
    pub mmapped_chunks: usize,
    pub mmapped_bytes: Bytes,
    /// Chunks that malloc mapped one by one, as they are in memory; `None`: their headers were not read.
    pub mmapped_resident_bytes: Bytes,
    pub mmapped_in_use_resident_bytes: Option<Bytes>,
    pub mmapped_overhead_resident_bytes: Option<Bytes>,
    #[serde(flatten)]
    pub sums: MallocSums,
    pub resident_bytes: Bytes,
    pub not_walked_bytes: Bytes,
    pub not_walked_resident_bytes: Bytes,
}

/// What is in use, free, and malloc's own, of an arena or of all; `None` where the chunks were not read.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct MallocSums {
    pub in_use_bytes: Option<Bytes>,
    pub in_use_resident_bytes: Option<Bytes>,
    pub free_bytes: Option<Bytes>,
    pub free_resident_bytes: Option<Bytes>,
    pub free_whole_page_bytes: Option<Bytes>,
    pub overhead_bytes: Option<Bytes>,
    pub trimmable_bytes: Option<Bytes>,
    pub top_kept_bytes: Option<Bytes>,
    pub unresolved_bytes: Option<Bytes>,
    /// Free chunks and the memory behind the ends of arenas, as they are in memory.
    pub held_resident_bytes: Option<Bytes>,
    pub overhead_resident_bytes: Option<Bytes>,
}

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "read::ArenaWire")]
pub struct ArenaAccount {
    /// 0 is the main arena, then in the order of the ring.
    pub arena: usize,
    /// The address of its `malloc_state`.
    #[serde(serialize_with = "read::as_text")]
    #[schemars(with = "String")]
    pub address: Addr,
    pub heaps: usize,
    pub attached_threads: Option<u64>,
    pub threads: Vec<i32>,
    pub system_bytes: Bytes,
    pub reserved_bytes: Bytes,
    pub resident_bytes: Bytes,
    #[serde(flatten)]
    pub sums: MallocSums,
    pub chunks: Option<Chunks>,
    pub retries: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OtherAccount {
    pub allocator: String,
    pub version: Option<String>,
    pub path: String,
    pub reserved_bytes: Bytes,
    pub resident_bytes: Bytes,
    pub in_use_by_vm_bytes: Bytes,
    pub in_use_by_vm_resident_bytes: Bytes,
    pub nmt_header_bytes: Bytes,
    pub not_walked_resident_bytes: Bytes,
}

/// Blocks of one owner.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnerAccount {
    pub part: String,
    pub area: Area,
    pub nmt_tag: Option<String>,
    pub how: Option<String>,
    pub blocks: u64,
    pub bytes: Bytes,
}

/// Blocks of one tag of Native Memory Tracking: ours, its counters, and its report where the JVM was asked.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TagAccount {
    pub tag: String,
    pub ours_blocks: Option<u64>,
    pub ours_bytes: Option<Bytes>,
    pub counter_blocks: Option<u64>,
    pub counter_bytes: Option<Bytes>,
    pub counter_difference_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_bytes: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some")]
    pub report_difference_bytes: Option<Option<i64>>,
}

/// A key that is there, with a figure or without.
fn some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::<i64>::deserialize(from).map(Some)
}

impl From<&TagRow> for TagAccount {
    fn from(row: &TagRow) -> TagAccount {
        TagAccount {
            tag: row.tag.clone(),
            ours_blocks: row.ours_blocks,
            ours_bytes: row.ours_bytes,
            counter_blocks: row.counted_blocks,
            counter_bytes: row.counted_bytes,
            counter_difference_bytes: difference(row.ours_bytes, row.counted_bytes),
            report_bytes: row.said_bytes,
            report_difference_bytes: row.said_bytes.map(|said| difference(row.ours_bytes, Some(said))),
        }
    }
}

pub(super) fn malloc(snapshot: &Snapshot, map: &MemoryMap, gaps: &mut Vec<Gap>) -> Option<MallocAccount> {
    let alloc = snapshot.alloc.as_ref().ok()?;
    let sum = malloc::sum(snapshot, map)?;
    if let Err(gap) = &sum.figures {
        gaps.push(Gap { what: format!("malloc.in_use_bytes and the like: {}", gap.what), ..gap.clone() });
    }
    let is_mmapped_walked = sum.mmapped.unwalked.reserved == 0;
    Some(MallocAccount {
        allocator: alloc.allocator.clone(),
        arenas: sum.arenas.iter().map(|arena| self::arena(arena, snapshot)).collect(),
        other: other(snapshot, &sum),
        nmt_tags: tags(snapshot),
        owners: (!alloc.in_use.is_empty()).then(|| sum.owners.iter().map(owner).collect()),
        mmapped_chunks: alloc.mmapped.len(),
        mmapped_bytes: alloc.mmapped.iter().map(|range| range.bytes()).sum(),
        mmapped_resident_bytes: sum.mmapped.whole.resident,
        mmapped_in_use_resident_bytes: is_mmapped_walked.then_some(sum.mmapped.in_use.resident),
        mmapped_overhead_resident_bytes: is_mmapped_walked.then_some(sum.mmapped.overhead.resident),
        sums: MallocSums::of(&sum.total, sum.figures.as_ref().ok()),
        resident_bytes: sum.total.whole.resident,
        not_walked_bytes: sum.total.unwalked.reserved,
        not_walked_resident_bytes: sum.total.unwalked.resident,
    })
}

impl MallocSums {
    fn of(divided: &Divided, figures: Option<&ArenaFigures>) -> MallocSums {
        let walked = |bytes: Bytes| figures.map(|_| bytes);
        MallocSums {
            in_use_bytes: walked(divided.in_use.reserved),
            in_use_resident_bytes: walked(divided.in_use.resident),
            free_bytes: walked(divided.freed.reserved),
            free_resident_bytes: figures.map(|figures| figures.free_resident_bytes),
            free_whole_page_bytes: figures.map(|figures| figures.free_whole_page_bytes),
            overhead_bytes: walked(divided.overhead.reserved),
            trimmable_bytes: figures.map(|figures| figures.trimmable_bytes),
            top_kept_bytes: figures.map(|figures| figures.top_kept_bytes),
            unresolved_bytes: walked(divided.unresolved.reserved),
            held_resident_bytes: walked(divided.held_bytes()),
            overhead_resident_bytes: walked(divided.overhead.resident),
        }
    }
}

impl OtherAccount {
    /// "jemalloc 5.3.0".
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.allocator),
            None => self.allocator.clone(),
        }
    }
}

impl ArenaAccount {
    /// "main arena", "arena 3".
    pub fn title(&self) -> String {
        if self.arena == 0 { "main arena".to_string() } else { format!("arena {}", self.arena) }
    }
}

fn arena(sum: &ArenaSum, snapshot: &Snapshot) -> ArenaAccount {
    let arena = sum.arena;
    let figures = arena.figures.as_ref().ok();
    let heaps = || arena.heaps.iter().map(|heap| heap.reserved);
    ArenaAccount {
        arena: arena.number,
        address: arena.at,
        heaps: arena.heaps.len(),
        attached_threads: arena.attached_threads,
        threads: arena.threads.clone(),
        system_bytes: arena.system_bytes,
        reserved_bytes: heaps().map(|heap| heap.bytes()).sum(),
        resident_bytes: heaps().map(|heap| snapshot.os.resident_bytes(heap)).sum(),
        sums: MallocSums::of(&sum.divided, figures),
        chunks: figures.map(|figures| figures.chunks),
        retries: figures.map(|figures| figures.retries),
    }
}

fn other(snapshot: &Snapshot, sum: &MallocSum) -> Option<OtherAccount> {
    let other = snapshot.alloc.as_ref().ok()?.other.as_ref()?;
    Some(OtherAccount {
        allocator: other.name.clone(),
        version: other.version.clone(),
        path: other.path.clone(),
        reserved_bytes: sum.other.whole.reserved,
        resident_bytes: sum.other.whole.resident,
        in_use_by_vm_bytes: sum.other.in_use.reserved,
        in_use_by_vm_resident_bytes: sum.other.in_use.resident,
        nmt_header_bytes: sum.other.overhead.reserved,
        not_walked_resident_bytes: sum.other.unwalked.resident,
    })
}

fn tags(snapshot: &Snapshot) -> Option<Vec<TagAccount>> {
    snapshot.jvm.as_ref().ok()?.nmt_counts.as_ref().ok()?;
    let rows = audit::malloc::compare(snapshot, &audit::Said::default()).tags;
    Some(rows.iter().map(TagAccount::from).collect())
}

fn owner(sum: &OwnerSum) -> OwnerAccount {
    OwnerAccount {
        part: sum.owner.map_or(OWNER_UNKNOWN, |owner| owner.part.as_str()).to_string(),
        area: sum.owner.map_or(Area::MallocUnknown, |owner| of_kind(owner.kind)),
        nmt_tag: sum.owner.and_then(|owner| owner.nmt_tag.clone()),
        how: sum.owner.map(|owner| how(&owner.how)),
        blocks: sum.count.blocks,
        bytes: sum.count.bytes,
    }
}
