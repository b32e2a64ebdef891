//! Malloc's blocks against the JVM's word: by NMT's tags, against NMT's counters in memory and its report; by arena, against
//! malloc_info(3).

use super::Said;
use crate::alloc::AllocView;
use crate::base::Bytes;
use crate::jvm::hotspot::report::malloc_info::ArenaInfo;
use crate::jvm::hotspot::report::nmt::Summary;
use crate::jvm::{BlockOwner, How, JvmView};
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;

/// Chunks of arenas have one tag, and the report takes what arenas use of them off it.
const CHUNKS: &str = "Arena Chunk";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MallocAudit {
    /// Every tag that one of the three has anything of.
    pub tags: Vec<TagRow>,
    pub arenas: Vec<ArenaRow>,
    pub mmapped: Option<MmappedRow>,
}

/// Blocks of one tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagRow {
    pub tag: String,
    pub ours_blocks: Option<u64>,
    pub ours_bytes: Option<Bytes>,
    /// NMT's own counters, read from memory when malloc was walked.
    pub counted_blocks: Option<u64>,
    pub counted_bytes: Option<Bytes>,
    /// `VM.native_memory`, asked before. "Arena Chunk" is with what the arenas use.
    pub said_bytes: Option<Bytes>,
}

/// One arena: what it has from the system, and what of it is free; caches of threads count as in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ArenaRow {
    #[serde(rename = "arena")]
    pub number: usize,
    pub ours_system_bytes: Option<Bytes>,
    #[serde(rename = "malloc_info_system_bytes")]
    pub said_system_bytes: Option<Bytes>,
    pub ours_free_bytes: Option<Bytes>,
    #[serde(rename = "malloc_info_free_bytes")]
    pub said_free_bytes: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct MmappedRow {
    pub ours_chunks: u64,
    pub ours_bytes: Bytes,
    #[serde(rename = "malloc_info_chunks")]
    pub said_chunks: u64,
    #[serde(rename = "malloc_info_bytes")]
    pub said_bytes: Bytes,
}

/// `ours - theirs`, where both are known.
pub fn difference(ours: Option<Bytes>, theirs: Option<Bytes>) -> Option<i64> {
    i64::try_from(i128::from(ours?) - i128::from(theirs?)).ok()
}

impl MallocAudit {
    /// All tags together.
    pub fn total(&self) -> TagRow {
        let sum = |of: fn(&TagRow) -> Option<u64>| {
            let mut known = self.tags.iter().filter_map(of).peekable();
            known.peek()?;
            Some(known.fold(0, u64::saturating_add))
        };
        TagRow {
            tag: "total".to_string(),
            ours_blocks: sum(|row| row.ours_blocks),
            ours_bytes: sum(|row| row.ours_bytes),
            counted_blocks: sum(|row| row.counted_blocks),
            counted_bytes: sum(|row| row.counted_bytes),
            said_bytes: sum(|row| row.said_bytes),
        }
    }
}

pub fn compare(snapshot: &Snapshot, said: &Said) -> MallocAudit {
    let alloc = snapshot.alloc.as_ref().ok();
    let mut audit = MallocAudit::default();
    if let Ok(jvm) = &snapshot.jvm {
        audit.tags = tags(jvm, alloc, said.nmt.as_ref());
    }
    if let Some(info) = &said.malloc {
        let count = info.arenas.len().max(alloc.map_or(0, |alloc| alloc.arenas.len()));
        audit.arenas = (0..count).map(|number| arena(number, alloc, info.arenas.get(number))).collect();
        audit.mmapped = alloc.map(|alloc| MmappedRow {
            ours_chunks: alloc.mmapped.len() as u64,
            ours_bytes: alloc.mmapped.iter().fold(0, |sum, range| sum.saturating_add(range.bytes())),
            said_chunks: info.mmapped.chunks,
            said_bytes: info.mmapped.bytes,
        });
    }
    audit
}

fn tags(jvm: &JvmView, alloc: Option<&AllocView>, nmt: Option<&Summary>) -> Vec<TagRow> {
    let mut names: Vec<&str> = jvm.nmt_counts.iter().flatten().map(|count| count.tag.as_str()).collect();
    names.extend(nmt.iter().flat_map(|nmt| nmt.tags.iter().map(|tag| tag.tag.as_str())));
    let mut rows: Vec<TagRow> = Vec::new();
    for name in names {
        if rows.iter().all(|row| row.tag != name) {
            rows.push(tag(name, jvm, alloc, nmt));
        }
    }
    let figures = |row: &TagRow| [row.ours_bytes, row.counted_bytes, row.said_bytes];
    rows.retain(|row| figures(row).into_iter().flatten().any(|bytes| bytes > 0));
    rows
}

fn tag(name: &str, jvm: &JvmView, alloc: Option<&AllocView>, nmt: Option<&Summary>) -> TagRow {
    let counted = jvm.nmt_counts.iter().flatten().find(|count| count.tag == name);
    let mut row = TagRow {
        tag: name.to_string(),
        counted_blocks: counted.map(|count| count.blocks),
        counted_bytes: counted.map(|count| count.bytes),
        said_bytes: nmt.and_then(|nmt| said_bytes(name, nmt)),
        ..TagRow::default()
    };
    // A walk that counted nothing at all was none.
    if let Some(alloc) = alloc.filter(|alloc| !alloc.in_use.is_empty()) {
        let owners = jvm.block_owners.iter().zip(alloc.in_use.iter().skip(1));
        // What only looks like HotSpot's is none of what NMT counts.
        let is_tagged =
            |owner: &BlockOwner| owner.nmt_tag.as_deref() == Some(name) && owner.how == How::NmtHeader;
        let counts = owners.filter(|(owner, _)| is_tagged(owner)).map(|(_, count)| count);
        let sum = counts.fold((0_u64, 0_u64), |sum, count| {
            (sum.0.saturating_add(count.blocks), sum.1.saturating_add(count.bytes))
        });
        (row.ours_blocks, row.ours_bytes) = (Some(sum.0), Some(sum.1));
    }
    row
}

fn said_bytes(name: &str, nmt: &Summary) -> Option<Bytes> {
    let own = nmt.tag(name)?.malloc_bytes;
    if name != CHUNKS {
        return own;
    }
    let arenas = nmt.tags.iter().filter_map(|tag| tag.arena_bytes).fold(0, u64::saturating_add);
    Some(own?.saturating_add(arenas))
}

fn arena(number: usize, alloc: Option<&AllocView>, said: Option<&ArenaInfo>) -> ArenaRow {
    let ours = alloc.and_then(|alloc| alloc.arenas.iter().find(|arena| arena.number == number));
    ArenaRow {
        number,
        ours_system_bytes: ours.map(|arena| arena.system_bytes),
        said_system_bytes: said.map(|arena| arena.system_bytes),
        ours_free_bytes: ours.and_then(|arena| Some(arena.figures.as_ref().ok()?.chunks.free_bytes())),
        said_free_bytes: said.map(ArenaInfo::free_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::jvm::hotspot::report::nmt;

    #[test]
    fn chunks_of_arenas_are_compared_whole() {
        let nmt = nmt::summary(
            "Total: reserved=1, committed=1\n\
             - Thread (reserved=10, committed=10)\n (malloc=100 tag=Thread #1)\n (arena=40 #2)\n\
             - Compiler (reserved=10, committed=10)\n (malloc=7 #1)\n (arena=1000 #2)\n\
             - Arena Chunk (reserved=10, committed=10)\n (malloc=60 #1)\n",
        )
        .expect("a good report");
        assert_eq!(said_bytes("Thread", &nmt), Some(100));
        assert_eq!(said_bytes("Arena Chunk", &nmt), Some(1100));
        assert_eq!(said_bytes("Symbol", &nmt), None);
    }

    #[test]
    fn sums_leave_out_what_is_not_known() {
        let row = |ours, counted| TagRow { ours_bytes: ours, counted_bytes: counted, ..TagRow::default() };
        let audit = MallocAudit { tags: vec![row(Some(3), None), row(None, None)], ..MallocAudit::default() };
        let total = audit.total();
        assert_eq!((total.ours_bytes, total.counted_bytes), (Some(3), None));
        assert_eq!(difference(Some(3), Some(5)), Some(-2));
        assert_eq!(difference(None, Some(5)), None);
    }
}
