//! malloc in JSON: the sums, each arena, and whose the blocks in use are.

use super::known;
use crate::alloc::{ArenaFigures, ChunkCount};
use crate::base::Gap;
use crate::map::area::of_kind;
use crate::map::audit;
use crate::map::claims::how;
use crate::map::malloc::owners::OWNER_UNKNOWN;
use crate::map::malloc::{self, ArenaSum, Divided, OwnerSum, Totals};
use crate::map::{Area, MemoryMap};
use crate::snapshot::Snapshot;
use serde_json::{Value, json};

/// `null` where the allocator was not read; the sums are `null` where the chunks of an arena were not.
pub fn malloc(snapshot: &Snapshot, map: &MemoryMap, gaps: &mut Vec<Gap>) -> Value {
    let (Ok(alloc), Some(sum)) = (&snapshot.alloc, malloc::sum(snapshot, map)) else { return Value::Null };
    if let Err(gap) = &sum.figures {
        gaps.push(Gap { what: format!("malloc.in_use_bytes and the like: {}", gap.what), ..gap.clone() });
    }
    let figures = sum.figures.as_ref().ok();
    let mut value = json!({
        "allocator": alloc.allocator,
        "arenas": sum.arenas.iter().map(|arena| self::arena(arena, snapshot)).collect::<Vec<_>>(),
        "other": alloc.other.as_ref().map(|other| json!({
            "allocator": other.name,
            "version": other.version,
            "path": other.path,
            "reserved_bytes": sum.other.whole.reserved,
            "resident_bytes": sum.other.whole.resident,
            "in_use_by_vm_bytes": sum.other.in_use.reserved,
            "in_use_by_vm_resident_bytes": sum.other.in_use.resident,
            "nmt_header_bytes": sum.other.overhead.reserved,
            "not_walked_resident_bytes": sum.other.unwalked.resident,
        })),
        "nmt_tags": jvm_counts(snapshot),
        "owners": (!alloc.in_use.is_empty()).then(|| sum.owners.iter().map(owner).collect::<Vec<_>>()),
        "mmapped_chunks": alloc.mmapped.len(),
        "mmapped_bytes": alloc.mmapped.iter().map(|range| range.bytes()).sum::<u64>(),
    });
    sums(&mut value, &sum.total, figures.copied());
    value["not_walked_bytes"] = json!(sum.total.unwalked.reserved);
    value
}

/// What is in use, free, and malloc's own, of an arena or of all; `null` where the chunks were not read.
fn sums(value: &mut Value, divided: &Divided, figures: Option<Totals>) {
    let walked = |bytes: u64| figures.map(|_| bytes);
    for (key, bytes) in [
        ("in_use_bytes", walked(divided.in_use.reserved)),
        ("in_use_resident_bytes", walked(divided.in_use.resident)),
        ("free_bytes", walked(divided.freed.reserved)),
        ("free_resident_bytes", figures.map(|figures| figures.free_resident_bytes)),
        ("free_whole_page_bytes", figures.map(|figures| figures.free_whole_page_bytes)),
        ("overhead_bytes", walked(divided.overhead.reserved)),
        ("trimmable_bytes", figures.map(|figures| figures.trimmable_bytes)),
        ("top_kept_bytes", figures.map(|figures| figures.top_kept_bytes)),
        ("unresolved_bytes", walked(divided.unresolved.reserved)),
    ] {
        value[key] = json!(bytes);
    }
}

/// Native Memory Tracking's own counters beside what was walked, by tag; `null` where it is off.
fn jvm_counts(snapshot: &Snapshot) -> Option<Vec<Value>> {
    snapshot.jvm.as_ref().ok()?.nmt_counts.as_ref().ok()?;
    let rows = audit::malloc::compare(snapshot, &audit::Said::default()).tags;
    Some(rows.iter().map(crate::show::audit::tag_json).collect())
}

fn arena(sum: &ArenaSum, snapshot: &Snapshot) -> Value {
    let arena = sum.arena;
    let figures = known(&arena.figures);
    let mut value = json!({
        "arena": arena.number,
        "address": arena.at.to_string(),
        "heaps": arena.heaps.len(),
        "attached_threads": arena.attached_threads,
        "threads": arena.threads,
        "system_bytes": arena.system_bytes,
        "reserved_bytes": arena.heaps.iter().map(|heap| heap.reserved.bytes()).sum::<u64>(),
        "resident_bytes": arena.heaps.iter().map(|heap| snapshot.os.resident_bytes(heap.reserved)).sum::<u64>(),
    });
    sums(&mut value, &sum.divided, figures.map(Totals::of));
    value["chunks"] = json!(figures.map(chunks));
    value["retries"] = json!(figures.map(|figures| figures.retries));
    value
}

/// Whole chunks, headers included, as malloc_info(3) counts them.
fn chunks(figures: &ArenaFigures) -> Value {
    let count = |count: ChunkCount| json!({"chunks": count.chunks, "bytes": count.bytes});
    json!({
        "in_use": count(figures.in_use),
        "tcache": count(figures.tcache),
        "fast": count(figures.fast),
        "unsorted": count(figures.unsorted),
        "small": count(figures.small),
        "large": count(figures.large),
        "unlisted": count(figures.unlisted),
        "top": count(figures.top),
    })
}

fn owner(sum: &OwnerSum) -> Value {
    json!({
        "part": sum.owner.map_or(OWNER_UNKNOWN, |owner| owner.part.as_str()),
        "area": sum.owner.map_or(Area::MallocUnknown, |owner| of_kind(owner.kind)).name(),
        "nmt_tag": sum.owner.and_then(|owner| owner.nmt_tag.as_ref()),
        "how": sum.owner.map(|owner| how(&owner.how)),
        "blocks": sum.count.blocks,
        "bytes": sum.count.bytes,
    })
}
