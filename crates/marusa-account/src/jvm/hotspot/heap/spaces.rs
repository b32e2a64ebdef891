//! What the heaps of several collectors share: the reservation, and contiguous spaces with a top up to which they are in
//! use.

use super::super::{Found, Hotspot};
use crate::base::{Addr, Bytes, Gap, Known, Range, Why, overlapping};
use crate::jvm::hotspot::histogram::region::Region;
use crate::jvm::types::{HeapView, How, Kind};

/// A base of compressed pointers that lies this close below the heap belongs to the heap's reservation: one alignment of
/// the heap, at most a region of G1, is protected so that a null decodes to an address that faults (virtualspace.cpp,
/// `ReservedHeapSpace::establish_noaccess_prefix`).
const PREFIX_BYTES_MAX: Bytes = 32 << 20;

/// Memory of one kind in a row: regions or pages, or what lies between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub range: Range,
    pub part: &'static str,
    pub used_bytes: Bytes,
}

impl Run {
    /// Adds this one to the others; one that goes on where the last one ends becomes part of that.
    pub fn add_to(self, runs: &mut Vec<Run>) {
        match runs.last_mut() {
            _ if self.range.is_empty() => {}
            Some(last) if last.range.end == self.range.start && last.part == self.part => {
                last.range.end = self.range.end;
                last.used_bytes = last.used_bytes.saturating_add(self.used_bytes);
            }
            _ => runs.push(self),
        }
    }
}

/// A contiguous space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub range: Range,
    pub used_bytes: Bytes,
}

/// The `CollectedHeap`.
pub fn collected_heap(vm: &Hotspot) -> Known<Addr> {
    vm.static_addr("Universe", "_collectedHeap")
}

/// `CollectedHeap::_reserved`.
pub fn reserved(vm: &Hotspot) -> Known<Range> {
    let heap = collected_heap(vm)?;
    let range = mem_region(vm, heap.plus(vm.structs.offset("CollectedHeap", "_reserved")?))?;
    let is_sane = !range.is_empty() && range.start.is_aligned(4096) && range.end.is_aligned(4096);
    if is_sane { Ok(range) } else { Err(Gap::new("CollectedHeap::_reserved", Why::BadData(heap))) }
}

pub fn mem_region(vm: &Hotspot, at: Addr) -> Known<Range> {
    let start = vm.addr(at, "MemRegion", "_start")?;
    let words = vm.word(at, "MemRegion", "_word_size")?;
    Ok(Range::sized(start, words.saturating_mul(8)))
}

/// The heap while its parts are claimed.
pub struct Heap {
    pub reserved: Range,
    pub used_bytes: Known<Bytes>,
}

impl Heap {
    /// Claims the whole reservation as "uncommitted"; what is claimed later refines that.
    pub fn open(vm: &Hotspot, found: &mut Found) -> Known<Heap> {
        let reserved = reserved(vm)?;
        found.claim(reserved, Kind::JavaHeap, "uncommitted", 0, How::VmStructs);
        if let Some(prefix) = no_access_prefix(vm, reserved) {
            found.claim(prefix, Kind::JavaHeap, "no-access prefix", 0, How::VmStructs);
        }
        Ok(Heap { reserved, used_bytes: Ok(0) })
    }

    /// Claims the committed part of a generation; its spaces refine it.
    pub fn generation(&self, found: &mut Found, committed: Range, part: &str) {
        if self.reserved.covers(committed) {
            found.claim(committed, Kind::JavaHeap, part, None, How::VmStructs);
        }
    }

    /// Claims a space; one that cannot be read leaves a gap, and the sum of what is used is not known.
    pub fn space(&mut self, vm: &Hotspot, found: &mut Found, space: Known<Addr>, class: &str, part: &str) {
        match space.and_then(|at| read_space(vm, at, class, self.reserved)) {
            Ok(space) => {
                found.claim(space.range, Kind::JavaHeap, part, space.used_bytes, How::VmStructs);
                self.use_bytes(Ok(space.used_bytes));
            }
            Err(gap) => {
                self.use_bytes(Err(gap.clone()));
                found.gaps.push(gap);
            }
        }
    }

    pub fn use_bytes(&mut self, more: Known<Bytes>) {
        self.used_bytes = match (&self.used_bytes, more) {
            (Ok(used), Ok(more)) => Ok(used.saturating_add(more)),
            (Err(gap), _) => Err(gap.clone()),
            (_, Err(gap)) => Err(gap),
        };
    }

    pub fn view(self, vm: &Hotspot) -> HeapView {
        HeapView {
            reserved: vec![self.reserved],
            max_bytes: Ok(self.reserved.bytes()),
            committed_bytes: Ok(committed_bytes(vm, self.reserved)),
            used_bytes: self.used_bytes,
            region_bytes: None,
            humongous: None,
        }
    }
}

/// `_bottom`, `_top` and `_end` of a space of `class` or of an ancestor of it.
pub fn read_space(vm: &Hotspot, at: Addr, class: &str, heap: Range) -> Known<Space> {
    let bottom = vm.addr(at, class, "_bottom")?;
    let end = vm.addr(at, class, "_end")?;
    let top = vm.addr(at, class, "_top")?;
    let range = Range::new(bottom, end);
    if bottom > end || !heap.covers(range) {
        return Err(Gap::new(format!("bounds of a {class}"), Why::Torn));
    }
    // `_top` moves while the others stand still.
    Ok(Space { range, used_bytes: Range::new(bottom, top.min(end)).bytes() })
}

/// The part of a space in which objects lie one behind the other.
pub fn region(vm: &Hotspot, at: Known<Addr>, class: &str, space: &'static str) -> Known<Region> {
    let found = read_space(vm, at?, class, reserved(vm)?)?;
    Ok(Region { range: Range::sized(found.range.start, found.used_bytes), space, ..Region::default() })
}

/// The kernel's word on what is committed: HotSpot reserves without rights and commits with them
/// (os_linux.cpp, `anon_mmap` and `commit_memory_impl`).
pub fn committed_bytes(vm: &Hotspot, range: Range) -> Bytes {
    let inside = overlapping(&vm.target.view.mappings, range, |mapping| mapping.range);
    inside.filter(|mapping| mapping.rights.any()).map(|mapping| mapping.range.intersect(range).bytes()).sum()
}

fn no_access_prefix(vm: &Hotspot, heap: Range) -> Option<Range> {
    let eras = [
        ("Universe", "_narrow_oop._base"),
        ("CompressedOops", "_narrow_oop._base"),
        ("CompressedOops", "_base"),
    ];
    let read = |(owner, name): &(&str, &str)| vm.structs.read_static(vm.memory(), owner, name).ok();
    let base = Addr(eras.iter().find_map(read)?);
    let mapping = vm.target.mapping(base).filter(|mapping| !mapping.rights.any())?;
    // JDK 8 sets the base one page below the heap, whatever the prefix.
    let is_whole = mapping.range.end == heap.start && mapping.range.bytes() <= PREFIX_BYTES_MAX;
    let prefix = if is_whole { mapping.range } else { Range::new(base, heap.start) };
    let fits = base.is_aligned(4096) && (1..=PREFIX_BYTES_MAX).contains(&prefix.bytes());
    fits.then_some(prefix)
}
