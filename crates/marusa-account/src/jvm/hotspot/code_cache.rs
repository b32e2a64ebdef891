//! The code cache: what is reserved, committed and used in each code heap, and by which kinds of code.
//!
//! A code heap is a row of blocks, each a header with its length in segments, then a `CodeBlob` where it is used
//! (src/hotspot/share/memory/heap.hpp; the header has a length of 8 bytes up to JDK 21 and of 4 in 25). The blocks are
//! read in large pieces: some 50 MB of code would take seconds one block at a time.

use super::class_graph::{addr_now, read_now};
use super::owners::leads::{BlobMembers, Leads};
use super::window::{Windows, word};
use super::{Found, Hotspot};
use crate::base::limits::{C_STRING_BYTES_MAX, CODE_BLOCKS_MAX, CODE_HEAPS_MAX};
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::jvm::types::{BlobCount, CodeHeapView, How, Kind};
use crate::os::{Fault, Memory};
use std::collections::{BTreeMap, HashMap};

/// A code heap of which the bounds are known.
pub struct CodeHeap {
    name: String,
    bounds: Bounds,
    /// The place of its claim among the extents.
    extent: usize,
}

/// The blocks of all code heaps.
pub struct Code {
    /// By code heap.
    walks: Vec<(BTreeMap<String, BlobCount>, Known<Bytes>)>,
    leads: Leads,
}

/// Claims the code heaps; their blocks are yet to be looked at.
pub fn claim(vm: &Hotspot, found: &mut Found) -> Known<Vec<CodeHeap>> {
    let mut claimed = Vec::new();
    for heap in heaps(vm)? {
        let Some(bounds) = found.note(bounds(vm, heap)) else { continue };
        let name = name(vm, heap);
        let extent = found.extents.len();
        found.claim(bounds.reserved, Kind::CodeHeap, format!("code heap '{name}'"), None, How::VmStructs);
        let segmap = "code heap segment map";
        found.claim(bounds.segmap_reserved, Kind::CodeHeapSegmap, segmap, None, How::VmStructs);
        claimed.push(CodeHeap { name, bounds, extent });
    }
    Ok(claimed)
}

/// Looks at the blocks of all code heaps: most of the time that the code cache takes, and nothing else needs it.
pub fn walk(vm: &Hotspot, heaps: &[CodeHeap]) -> Code {
    let mut leads = Leads::default();
    let walks = heaps.iter().map(|heap| walk_heap(vm, heap.bounds, &mut leads)).collect();
    Code { walks, leads }
}

/// Every compiled method, with the bytes of its block.
pub fn each_method(vm: &Hotspot, visit: &mut dyn FnMut(&Windows, Addr, Bytes)) -> Known<()> {
    let windows = Windows::new(vm.target);
    for heap in heaps(vm)? {
        let bounds = bounds(vm, heap)?;
        Blocks::new(vm)?.walk(vm, &windows, bounds, &mut |blocks, blob, bytes| {
            let kind = blocks.count(vm, blocks.name(vm, &windows, blob)?, bytes);
            if kind.ends_with("nmethod") {
                visit(&windows, blob, bytes);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Adds what the walk found.
pub fn note(heaps: Vec<CodeHeap>, code: Code, found: &mut Found) -> Vec<CodeHeapView> {
    found.leads.put_before(code.leads);
    let noted = heaps.into_iter().zip(code.walks).map(|(heap, (blobs, used))| {
        if let Some(extent) = found.extents.get_mut(heap.extent) {
            extent.in_use_bytes = used.clone().ok();
        }
        found.gaps.extend(used.clone().err());
        let CodeHeap { name, bounds: Bounds { reserved, committed, .. }, .. } = heap;
        CodeHeapView { name, reserved, committed, used_bytes: used, blobs }
    });
    noted.collect()
}

/// The `CodeHeap` objects: one in JDK 8, a growable array of them after.
fn heaps(vm: &Hotspot) -> Known<Vec<Addr>> {
    if let Ok(only) = vm.static_addr("CodeCache", "_heap") {
        return Ok(vec![only]);
    }
    let list = vm.static_addr("CodeCache", "_heaps")?;
    let length =
        vm.structs.offset_of_any(&[("GrowableArrayBase", "_len"), ("GenericGrowableArray", "_len")])?;
    let gap = |fault: Fault| fault.gap("CodeCache::_heaps");
    let count = vm.memory().u32(list.plus(length)).map_err(gap)? as usize;
    if count > CODE_HEAPS_MAX {
        return Err(Gap::new("CodeCache::_heaps", Why::OverLimit));
    }
    let data = vm.addr(list, "GrowableArray<int>", "_data")?;
    Ok(vm.memory().words(data, count).map_err(gap)?.into_iter().map(Addr).collect())
}

#[derive(Clone, Copy)]
struct Bounds {
    reserved: Range,
    committed: Range,
    segmap_reserved: Range,
    segment_log2: u32,
    /// Up to here there are blocks; what is committed above was never used.
    blocks_end: Addr,
}

fn bounds(vm: &Hotspot, heap: Addr) -> Known<Bounds> {
    let memory = heap.plus(vm.structs.offset("CodeHeap", "_memory")?);
    let segmap = heap.plus(vm.structs.offset("CodeHeap", "_segmap")?);
    let (reserved, committed) = virtual_space(vm, memory)?;
    let (segmap_reserved, _) = virtual_space(vm, segmap)?;
    let log2_at = heap.plus(vm.structs.offset("CodeHeap", "_log2_segment_size")?);
    let segment_log2 = vm.memory().u32(log2_at).map_err(|fault| fault.gap("CodeHeap::_log2_segment_size"))?;
    if !(3..=20).contains(&segment_log2) || !reserved.covers(committed) || reserved.is_empty() {
        return Err(Gap::new("bounds of a code heap", Why::BadData(heap)));
    }
    let blocks_end = blocks_end(vm.memory(), log2_at, segment_log2, committed).unwrap_or(committed.end);
    Ok(Bounds { reserved, committed, segmap_reserved, segment_log2, blocks_end })
}

fn virtual_space(vm: &Hotspot, at: Addr) -> Known<(Range, Range)> {
    let word = |name| vm.addr(at, "VirtualSpace", name);
    let reserved = Range::new(word("_low_boundary")?, word("_high_boundary")?);
    Ok((reserved, Range::new(word("_low")?, word("_high")?)))
}

/// `_next_segment` is in no table. It follows `_log2_segment_size` (JDK 8 to 25), and the words before that,
/// `_number_of_committed_segments`, `_number_of_reserved_segments` and the segment's size, prove the place.
fn blocks_end(memory: &dyn Memory, log2_at: Addr, log2: u32, committed: Range) -> Option<Addr> {
    let next_at = Addr(log2_at.0.checked_add(4)?.checked_next_multiple_of(8)?);
    let next = memory.u64(next_at).ok()?;
    // The size is a size_t in JDK 8 and an int right before the logarithm after.
    let counts = [24, 20].into_iter().any(|back| {
        let at = log2_at.minus(back);
        at.is_aligned(8) && memory.u64(at).is_ok_and(|count| count == committed.bytes() >> log2)
    });
    (counts && next <= committed.bytes() >> log2).then(|| committed.start.plus(next << log2))
}

fn walk_heap(vm: &Hotspot, bounds: Bounds, leads: &mut Leads) -> (BTreeMap<String, BlobCount>, Known<Bytes>) {
    let mut blocks = match Blocks::new(vm) {
        Ok(blocks) => blocks,
        Err(gap) => return (BTreeMap::new(), Err(gap)),
    };
    let windows = Windows::new(vm.target);
    let mut members = BlobMembers::read(vm);
    let walked = blocks.walk(vm, &windows, bounds, &mut |blocks, blob, bytes| {
        let kind = blocks.count(vm, blocks.name(vm, &windows, blob)?, bytes);
        members.see(&windows, blob, kind.ends_with("nmethod"), leads);
        Ok(())
    });
    let used = walked.map(|()| blocks.used_bytes);
    (blocks.blobs, used)
}

/// `CodeHeap::_name` is in no table: the pointer to "CodeHeap 'non-nmethods'" or "CodeCache" among the object's last
/// words. JDK 8 has no name.
fn name(vm: &Hotspot, heap: Addr) -> String {
    let size = vm.structs.size_of("CodeHeap").unwrap_or(0).min(1024);
    let from = vm.structs.offset("CodeHeap", "_log2_segment_size").unwrap_or(0) & !7;
    let text = vm.image.extent();
    let candidates = (from..size).step_by(8).filter_map(|offset| vm.memory().addr(heap.plus(offset)).ok());
    for at in candidates.filter(|at| text.has(*at)) {
        let name = vm.memory().c_string(at, 64).unwrap_or_default();
        if let Some(name) = name.strip_prefix("CodeHeap '") {
            return name.trim_end_matches('\'').to_string();
        }
    }
    "CodeCache".to_string()
}

/// The walk over the blocks of one heap, and what it has found so far.
struct Blocks {
    header_bytes: u64,
    long_length: bool,
    used_at: usize,
    name_at: u64,
    kinds: HashMap<u64, &'static str>,
    blobs: BTreeMap<String, BlobCount>,
    used_bytes: Bytes,
}

impl Blocks {
    fn new(vm: &Hotspot) -> Known<Blocks> {
        let header_bytes = vm.structs.size_of("HeapBlock")?;
        let used_at = vm.structs.offset("HeapBlock::Header", "_used")?;
        let name_at = vm.structs.offset("CodeBlob", "_name")?;
        if header_bytes > 64 || used_at >= header_bytes || used_at < 4 || name_at > 512 {
            return Err(Gap::new("layout of HeapBlock", Why::BadData(Addr::NULL)));
        }
        Ok(Blocks {
            header_bytes,
            long_length: used_at >= 8,
            used_at: used_at as usize,
            name_at,
            kinds: HashMap::new(),
            blobs: BTreeMap::new(),
            used_bytes: 0,
        })
    }

    /// Visits the `CodeBlob` in each used block, with the bytes of the block.
    fn walk(
        &mut self,
        vm: &Hotspot,
        windows: &Windows,
        bounds: Bounds,
        visit: &mut dyn FnMut(&mut Blocks, Addr, Bytes) -> Result<(), Fault>,
    ) -> Known<()> {
        let mut header = vec![0; self.header_bytes as usize];
        let mut at = bounds.committed.start;
        for _ in 0..CODE_BLOCKS_MAX {
            if at >= bounds.blocks_end {
                return Ok(());
            }
            let gap = |fault: Fault| fault.gap("a block of the code heap");
            windows
                .read(at, &mut header)
                .or_else(|fault| read_now(vm, at, &mut header, fault))
                .map_err(gap)?;
            let length = if self.long_length { word(&header, 0) } else { word(&header, 0) & 0xffff_ffff };
            let room = (bounds.blocks_end.0 - at.0) >> bounds.segment_log2;
            if length == 0 || length > room {
                return Err(Gap::new("blocks of the code heap", Why::Torn));
            }
            let bytes = length << bounds.segment_log2;
            if header[self.used_at] != 0 {
                visit(self, at.plus(self.header_bytes), bytes).map_err(gap)?;
            }
            at = at.plus(bytes);
        }
        Err(Gap::new("blocks of the code heap", Why::OverLimit))
    }

    /// Of a method that was compiled just now it may lie in a new page, as may its block.
    fn name(&self, vm: &Hotspot, windows: &Windows, blob: Addr) -> Result<u64, Fault> {
        let at = blob.plus(self.name_at);
        windows.addr(at).or_else(|_| addr_now(vm, at)).map(|name| name.0)
    }

    fn count(&mut self, vm: &Hotspot, name: u64, bytes: Bytes) -> &'static str {
        self.used_bytes += bytes;
        let kind = *self.kinds.entry(name).or_insert_with(|| {
            let text = vm.memory().c_string(Addr(name), C_STRING_BYTES_MAX.min(128));
            kind_named(&text.unwrap_or_default())
        });
        match self.blobs.get_mut(kind) {
            Some(sum) => {
                sum.count += 1;
                sum.bytes += bytes;
            }
            None => {
                self.blobs.insert(kind.to_string(), BlobCount { count: 1, bytes });
            }
        }
        kind
    }
}

/// What `CodeBlob::_name` says (src/hotspot/share/code/codeBlob.cpp and nmethod.cpp, JDK 8 to 25). Only JDK 25 has the
/// kind as a number, and that does not distinguish the interpreter from other buffers.
fn kind_named(name: &str) -> &'static str {
    match name {
        "nmethod" => "nmethod",
        "native nmethod" => "native nmethod",
        "I2C/C2I adapters" => "adapter",
        "MethodHandles adapters" | "MethodHandlesAdapterBlob" => "method handle adapter",
        "vtable chunks" => "vtable stub",
        "Interpreter" => "interpreter",
        "" => "unknown",
        _ if name.starts_with("StubRoutines") || name.starts_with("Stub Generator") => "stub routines",
        _ => "stub",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::memory::Pieces;

    #[test]
    fn the_end_of_the_blocks_is_believed_only_with_the_count_of_segments() {
        let committed = Range::of(0x10000, 0x10000 + 0x270000);
        let mut memory = Pieces::default();
        // JDK 17: committed and reserved segments, segment size and its logarithm, next segment.
        memory.put_words(Addr(0x1000), &[0x4e00, 0xb200, 7 << 32 | 128, 0x1234]);
        let end = |committed| blocks_end(&memory, Addr(0x1014), 7, committed);
        assert_eq!(end(committed), Some(Addr(0x10000 + (0x1234 << 7))));
        assert_eq!(end(Range::of(0x10000, 0x20000)), None);
    }

    #[test]
    fn blobs_are_distinguished_by_name() {
        assert_eq!(kind_named("nmethod"), "nmethod");
        assert_eq!(kind_named("StubRoutines (2)"), "stub routines");
        assert_eq!(kind_named("wrong_method_stub"), "stub");
    }
}
