//! The comparison by sums: NMT's summary, tag by tag, and the collector's own figures.

use super::{AuditRow, Figure};
use crate::base::Bytes;
use crate::jvm::hotspot::report::heap_info::HeapInfo;
use crate::jvm::hotspot::report::nmt::{Summary, TagUsage, Usage};
use crate::map::area::Area;
use crate::map::types::{Figures, MemoryMap, Owner};

const SEVERAL_ADDRESSES: &str =
    "the heap is mapped at several addresses, and its address space counts at each";
const STACK_RESIDENT: &str =
    "NMT counts what mincore finds resident and, of every Java thread, the guard zone, never touched";
const STACK_WHOLE: &str = "JDK 8 takes every stack as committed whole";
const STACK_FOREIGN: &str = "ours has the stacks of foreign threads and the primordial one too";
const GC_MALLOC: &str = "collector tables that are malloc chunks are in malloc's memory on our side";
const UNKNOWN_CLASS_SPACE: &str = "this JDK tags the class space Unknown (no CDS archive)";
const MALLOC: &str = "NMT counts the blocks that the VM asked for, touched or not; ours is what malloc holds in memory, \
                      with other libraries' blocks, headers and freed memory";
const TWO_MOMENTS: &str = "read at two moments; the program allocates in between";

/// What one row of NMT's summary is held against.
struct Pair {
    area: Area,
    tags: &'static [&'static str],
    reason: Option<&'static str>,
}

const PAIRS: &[Pair] = &[
    Pair { area: Area::JavaHeap, tags: &["Java Heap"], reason: None },
    Pair { area: Area::Gc, tags: &["GC", "GCCardSet"], reason: Some(GC_MALLOC) },
    // JDK 8 and 11 count both parts of metaspace as Class.
    Pair { area: Area::ClassMetadata, tags: &["Class", "Metaspace"], reason: None },
    Pair { area: Area::CdsArchive, tags: &["Shared class space"], reason: None },
    Pair { area: Area::JitCode, tags: &["Code"], reason: None },
];

pub fn of_nmt(map: &MemoryMap, nmt: &Summary, rows: &mut Vec<AuditRow>) {
    for pair in PAIRS {
        mapped(map, nmt, pair, rows);
    }
    stacks(map, nmt, rows);
    malloc(map, nmt, rows);
}

fn mapped(map: &MemoryMap, nmt: &Summary, pair: &Pair, rows: &mut Vec<AuditRow>) {
    let found: Vec<&TagUsage> = pair.tags.iter().filter_map(|name| nmt.tag(name)).collect();
    let mut theirs = sum(&found);
    let mut ours = ours(map, |owner| owner.area == pair.area && !owner.instance.is_mallocs());
    let mut names: Vec<&str> = found.iter().map(|tag| tag.tag.as_str()).collect();
    let mut reason = pair.reason;
    match pair.area {
        // The segment maps of the code heaps; jit_work has malloc's memory too, which is not meant.
        Area::JitCode => {
            ours.add(&self::ours(map, |owner| owner.area == Area::JitWork && !owner.instance.is_mallocs()))
        }
        Area::JavaHeap if ours.aliased > 0 => reason = Some(SEVERAL_ADDRESSES),
        Area::ClassMetadata => {
            let unknown = nmt.tag("Unknown").and_then(|tag| tag.mmap);
            let no_class_space = nmt.tag("Class").is_some_and(|tag| tag.mmap.is_none());
            if let (Some(unknown), true) = (unknown, no_class_space) {
                theirs.reserved_bytes += unknown.reserved_bytes;
                theirs.committed_bytes += unknown.committed_bytes;
                names.push("Unknown");
                reason = Some(UNKNOWN_CLASS_SPACE);
            }
        }
        _ => {}
    }
    if theirs == Usage::default() && ours.reserved == 0 {
        return;
    }
    let sides = [
        (Figure::Reserved, ours.reserved, theirs.reserved_bytes),
        (Figure::Committed, ours.committed, theirs.committed_bytes),
    ];
    for (figure, ours_bytes, theirs_bytes) in sides {
        let theirs = format!("NMT {}", names.join(" + "));
        let row =
            row(Some(pair.area), (figure, Some(ours_bytes)), theirs, (figure, theirs_bytes), nmt.unit_bytes);
        let reason = reason.filter(|why| *why != SEVERAL_ADDRESSES || figure == Figure::Reserved);
        rows.push(AuditRow { reason, ..row });
    }
}

fn sum(tags: &[&TagUsage]) -> Usage {
    tags.iter().filter_map(|tag| tag.mmap).fold(Usage::default(), |sum, usage| Usage {
        reserved_bytes: sum.reserved_bytes.saturating_add(usage.reserved_bytes),
        committed_bytes: sum.committed_bytes.saturating_add(usage.committed_bytes),
    })
}

fn stacks(map: &MemoryMap, nmt: &Summary, rows: &mut Vec<AuditRow>) {
    let Some(theirs) = nmt.tag("Thread").and_then(|tag| tag.stack) else { return };
    let ours = ours(map, |owner| owner.area == Area::Stack);
    let whole = theirs.committed_bytes == theirs.reserved_bytes;
    let reason = if whole { STACK_WHOLE } else { STACK_RESIDENT };
    let (reserved, resident) =
        ((Figure::Reserved, Some(ours.reserved)), (Figure::Resident, Some(ours.resident)));
    let sides = [
        (reserved, (Figure::Reserved, theirs.reserved_bytes), STACK_FOREIGN),
        (resident, (Figure::Committed, theirs.committed_bytes), reason),
    ];
    for (ours, theirs, reason) in sides {
        let row = row(Some(Area::Stack), ours, "NMT Thread (stack)", theirs, nmt.unit_bytes);
        rows.push(AuditRow { reason: Some(reason), ..row });
    }
}

/// All that the VM got from malloc, by tag, has one counterpart on our side: the memory of malloc, whole.
fn malloc(map: &MemoryMap, nmt: &Summary, rows: &mut Vec<AuditRow>) {
    let theirs = nmt.tags.iter().fold(0u64, |sum, tag| {
        let parts = [tag.malloc_bytes, tag.arena_bytes, tag.tracking_overhead_bytes];
        parts.into_iter().flatten().fold(sum, u64::saturating_add)
    });
    let ours = ours(map, |owner| owner.instance.is_mallocs());
    let ours = (Figure::Resident, (ours.reserved > 0).then_some(ours.resident));
    let row = row(None, ours, "NMT malloc, all tags", (Figure::Malloc, theirs), nmt.unit_bytes);
    rows.push(AuditRow { reason: Some(MALLOC), ..row });
}

pub fn of_heap_info(map: &MemoryMap, heap: &HeapInfo, rows: &mut Vec<AuditRow>) {
    let mut add = |area, figure, ours_bytes, theirs: &str, theirs_bytes, unit_bytes, reason| {
        let Some(theirs_bytes) = theirs_bytes else { return };
        let row = row(Some(area), (figure, ours_bytes), theirs, (figure, theirs_bytes), unit_bytes);
        rows.push(AuditRow { reason, ..row });
    };
    let unit = heap.unit_bytes;
    let ours_heap = ours(map, |owner| owner.area == Area::JavaHeap);
    let committed = Some(ours_heap.committed);
    add(Area::JavaHeap, Figure::Committed, committed, "heap info", heap.committed_bytes, unit, None);
    let in_use = in_use(map, Area::JavaHeap);
    add(Area::JavaHeap, Figure::InUse, in_use, "heap info", heap.used_bytes, unit, Some(TWO_MOMENTS));
    let Some(space) = heap.metaspace else { return };
    let ours_space = ours(map, |owner| owner.area == Area::ClassMetadata);
    let sides = [
        (Figure::Reserved, Some(ours_space.reserved), space.reserved_bytes, None),
        (Figure::Committed, Some(ours_space.committed), space.committed_bytes, None),
        (Figure::InUse, self::in_use(map, Area::ClassMetadata), space.used_bytes, Some(TWO_MOMENTS)),
    ];
    for (figure, ours_bytes, theirs_bytes, reason) in sides {
        add(
            Area::ClassMetadata,
            figure,
            ours_bytes,
            "heap info, Metaspace",
            Some(theirs_bytes),
            1024,
            reason,
        );
    }
}

fn row(
    area: Option<Area>,
    (ours, ours_bytes): (Figure, Option<Bytes>),
    theirs: impl Into<String>,
    (theirs_figure, theirs_bytes): (Figure, Bytes),
    unit_bytes: Bytes,
) -> AuditRow {
    AuditRow {
        area,
        ours,
        ours_bytes,
        theirs: theirs.into(),
        theirs_figure,
        theirs_bytes,
        unit_bytes,
        reason: None,
        difference_bytes: super::malloc::difference(ours_bytes, Some(theirs_bytes)),
    }
}

fn ours(map: &MemoryMap, is_meant: impl Fn(&Owner) -> bool) -> Figures {
    let mut sum = Figures::default();
    let shares = map.shares().filter(|(owner, _)| is_meant(owner));
    shares.for_each(|(_, share)| sum.add(&share.figures));
    sum
}

/// `None` as soon as one owner of the area does not know.
fn in_use(map: &MemoryMap, area: Area) -> Option<Bytes> {
    let mut owners = map.owners.iter().zip(&map.in_use).filter(|(owner, _)| owner.area == area).peekable();
    owners.peek()?;
    owners.try_fold(0u64, |sum, (_, bytes)| Some(sum.saturating_add((*bytes)?)))
}
