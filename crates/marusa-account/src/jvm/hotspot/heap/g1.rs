//! The heap of G1: regions of one size, each with an object that has its use.
//!
//! `G1CollectedHeap::_hrm` holds the table of the regions' objects; JDK 25 renamed `HeapRegion` to `G1HeapRegion`. The type
//! of a region is a tag whose values differ by version (heapRegionType.hpp), so the constants of vmStructs are asked; JDK 8
//! names neither the constants nor the field, whose place is found as the one that follows the region's own number.

use super::super::objects::Objects;
use super::super::{Found, Hotspot};
use super::g1_marks;
use super::spaces::{self, Heap, Run, collected_heap};
use crate::base::limits::HEAP_REGIONS_MAX;
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::jvm::hotspot::histogram::marks::Marks;
use crate::jvm::hotspot::histogram::region::{self, Lie};
use crate::jvm::types::{HeapView, How, Humongous, Kind};

/// A region's object is not larger in any version; JDK 8's has 488 bytes.
const REGION_OBJECT_BYTES_MAX: u64 = 1024;
/// The header of each is in a page of its own.
const HUMONGOUS_MAX: usize = 16_384;

pub fn read(vm: &Hotspot, found: &mut Found) -> Known<HeapView> {
    let mut heap = Heap::open(vm, found)?;
    let table = RegionTable::read(vm, heap.reserved)?;
    let layout = Layout::read(vm)?;
    let objects = table.objects(vm, &layout)?;
    let tag_at = layout.tag_at.or_else(|| tag_by_number(&objects));
    if tag_at.is_none() {
        found.gaps.push(Gap::new("types of G1's regions", Why::NotInThisRuntime));
    }
    let mut strange = 0;
    let mut runs: Vec<Run> = Vec::new();
    let mut humongous: Vec<Addr> = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let Some(object) = object else { continue };
        let range = table.region(index);
        match layout.region(object, tag_at, range) {
            Some(Region { part, used_bytes }) => {
                humongous.extend(layout.starts_humongous(object, tag_at).then_some(range.start));
                // A region that was given back keeps its object; its memory has no rights any more.
                let is_committed =
                    || vm.target.mapping(range.start).is_some_and(|mapping| mapping.rights.any());
                if part != "free" || is_committed() {
                    Run { range, part, used_bytes }.add_to(&mut runs);
                }
            }
            None => strange += 1,
        }
    }
    for run in &runs {
        found.claim(run.range, Kind::JavaHeap, run.part, run.used_bytes, How::VmStructs);
        heap.use_bytes(Ok(run.used_bytes));
    }
    if strange > 0 {
        let gap = Gap::new(format!("{} of G1", crate::base::counted(strange, "region")), Why::Torn);
        heap.use_bytes(Err(gap.clone()));
        found.gaps.push(gap);
    }
    let humongous = sizes(vm, &humongous, table.region_bytes);
    Ok(HeapView { region_bytes: Some(table.region_bytes), humongous, ..heap.view(vm) })
}

/// The regions in use as far as they are; those of one humongous object are one.
pub fn regions(vm: &Hotspot) -> Known<Vec<region::Region>> {
    let mut regions = in_use(vm, g1_marks::has_marks(vm))?;
    // Nothing was marked yet.
    if regions.iter().all(|region| region.marks.is_none_or(|marks| marks.bits == 0)) {
        regions.iter_mut().for_each(|region| region.marks = None);
    }
    Ok(regions)
}

fn in_use(vm: &Hotspot, with_marks: bool) -> Known<Vec<region::Region>> {
    let heap = spaces::reserved(vm)?;
    let table = RegionTable::read(vm, heap)?;
    let mut layout = Layout::read(vm)?;
    if with_marks {
        layout.bytes = layout.bytes.max(g1_marks::REGION_WORDS as u64 * 8);
    }
    let objects = table.objects(vm, &layout)?;
    let tag_at = layout.tag_at.or_else(|| tag_by_number(&objects));
    let tag_at = tag_at.ok_or_else(|| Gap::new("types of G1's regions", Why::NotInThisRuntime))?;
    let words = objects
        .iter()
        .enumerate()
        .filter_map(|(index, words)| Some((table.region(index), words.as_deref()?)));
    let words = words.collect::<Vec<_>>();
    let marking = if with_marks { g1_marks::read(vm, heap, &words, tag_at) } else { None };
    let mut regions: Vec<region::Region> = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let Some(object) = object else { continue };
        let range = table.region(index);
        let Some(region) = layout.region(object, Some(tag_at), range) else { continue };
        let in_use = Range::sized(range.start, region.used_bytes);
        match regions.last_mut() {
            _ if region.part == "free" => {}
            Some(last) if region.part == "humongous" && !layout.starts_humongous(object, Some(tag_at)) => {
                // What fills the end of the last region is passed over by the VM, too (`HeapRegion::object_iterate`).
                (last.range.end, last.lie) = (in_use.end, Lie::Single);
            }
            _ => {
                // Archived objects are never marked.
                let is_archive = region.part.contains("archive");
                let of_region = |marking: &g1_marks::Marking| marking.of_region(range, object);
                let marks = marking.as_ref().map(of_region);
                let marks = marks.map(|marks| if is_archive { Marks::ALL } else { marks });
                regions.push(region::Region {
                    range: in_use,
                    space: region.part,
                    lie: Lie::Packed,
                    stamp: g1_marks::stamp(marks),
                    marks,
                    ..region::Region::default()
                });
            }
        }
    }
    Ok(regions)
}

/// What is allocated of each region.
pub fn used(vm: &Hotspot) -> Known<Vec<Range>> {
    Ok(in_use(vm, false)?.into_iter().map(|region| region.range).collect())
}

/// The first region of each object. The tops of regions say nothing: the tail of the last one is filled with an object that is
/// garbage (g1CollectedHeap.cpp, `humongous_obj_allocate_initialize_regions`).
fn sizes(vm: &Hotspot, starts: &[Addr], region_bytes: Bytes) -> Option<Humongous> {
    let objects = Objects::new(vm).ok()?;
    let sizes = starts.iter().take(HUMONGOUS_MAX).filter_map(|start| objects.bytes(*start));
    summed(sizes, region_bytes)
}

/// An object of half a region and more is humongous; what is smaller was read wrong.
fn summed(sizes: impl Iterator<Item = Bytes>, region_bytes: Bytes) -> Option<Humongous> {
    let mut sum = Humongous::default();
    for bytes in sizes.filter(|bytes| *bytes >= region_bytes / 2) {
        sum.objects += 1;
        sum.object_bytes = sum.object_bytes.saturating_add(bytes);
        sum.regions = sum.regions.saturating_add(bytes.div_ceil(region_bytes));
    }
    (sum.objects > 0).then_some(sum)
}

/// Where the `HeapRegionManager` lies, whose first words are the region table and the mappers of the side tables.
pub fn region_manager(vm: &Hotspot, heap: Range) -> Known<Addr> {
    let inline = collected_heap(vm)?.plus(vm.structs.offset("G1CollectedHeap", "_hrm")?);
    // JDK 12 to 14 keep a pointer to it.
    let pointed = vm.memory().addr(inline).unwrap_or_default();
    [inline, pointed]
        .into_iter()
        .find(|manager| RegionTable::at(vm, *manager, heap).is_ok())
        .ok_or_else(|| Gap::new("G1CollectedHeap::_hrm", Why::BadData(inline)))
}

struct RegionTable {
    /// The array of pointers to the regions' objects.
    base: Addr,
    length: u64,
    /// Where region 0 lies.
    start: Addr,
    region_bytes: Bytes,
}

impl RegionTable {
    fn read(vm: &Hotspot, heap: Range) -> Known<RegionTable> {
        RegionTable::at(vm, region_manager(vm, heap)?, heap)
    }

    fn at(vm: &Hotspot, manager: Addr, heap: Range) -> Known<RegionTable> {
        let regions = [("G1HeapRegionManager", "_regions"), ("HeapRegionManager", "_regions")];
        let table = manager.plus(vm.structs.offset_of_any(&regions)?);
        let base = vm.addr(table, "G1HeapRegionTable", "_base")?;
        let length = vm.word(table, "G1HeapRegionTable", "_length")?;
        let grain = |owner| vm.structs.read_static(vm.memory(), owner, "GrainBytes");
        let region_bytes = grain("G1HeapRegion").or_else(|_| grain("HeapRegion"))?;
        let fits = region_bytes.is_power_of_two()
            && length <= HEAP_REGIONS_MAX as u64
            && length.checked_mul(region_bytes) == Some(heap.bytes());
        if !fits {
            return Err(Gap::new("G1's region table", Why::BadData(table)));
        }
        Ok(RegionTable { base, length, start: heap.start, region_bytes })
    }

    /// Where the region of this number lies.
    fn region(&self, index: usize) -> Range {
        Range::sized(self.start.plus(index as u64 * self.region_bytes), self.region_bytes)
    }

    /// The bytes of each region's object, as words; `None` where the region was never committed, or cannot be read.
    fn objects(&self, vm: &Hotspot, layout: &Layout) -> Known<Vec<Option<Vec<u64>>>> {
        let pointers = vm.memory().words(self.base, self.length as usize);
        let pointers = pointers.map_err(|fault| fault.gap("G1's region table"))?;
        let words = (layout.bytes / 8) as usize;
        let read = |at: &u64| if *at == 0 { None } else { vm.memory().words(Addr(*at), words).ok() };
        Ok(pointers.iter().map(read).collect())
    }
}

/// Where the fields lie in a region's object, in bytes, and the values of its type.
struct Layout {
    bytes: u64,
    bottom_at: u64,
    top_at: u64,
    tag_at: Option<u64>,
    tags: Tags,
}

struct Tags {
    survivor: u64,
    young: u64,
    humongous: u64,
    archive: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    part: &'static str,
    used_bytes: Bytes,
}

impl Layout {
    fn read(vm: &Hotspot) -> Known<Layout> {
        let field = |name| vm.structs.offset_of_any(&[("G1HeapRegion", name), ("HeapRegion", name)]);
        let tag_at = field("_type").ok();
        let (bottom_at, top_at) = (field("_bottom")?, field("_top")?);
        let size = vm.structs.size_of("G1HeapRegion").or_else(|_| vm.structs.size_of("HeapRegion"))?;
        let last = bottom_at.max(top_at).max(tag_at.unwrap_or(0));
        let needed = match tag_at {
            Some(_) => last.saturating_add(8),
            None => size,
        };
        if needed > REGION_OBJECT_BYTES_MAX {
            return Err(Gap::new("layout of G1's regions", Why::NotInThisRuntime));
        }
        let constant = |name: &str, else_value| {
            let of = |owner: &str| vm.structs.constant(&format!("{owner}::{name}"));
            of("G1HeapRegionType").or_else(|_| of("HeapRegionType")).unwrap_or(else_value)
        };
        // The fallbacks are those of JDK 8 (gc_implementation/g1/heapRegionType.hpp), which has no archive regions.
        let tags = Tags {
            survivor: constant("SurvTag", 3),
            young: constant("YoungMask", 2),
            humongous: constant("HumongousMask", 4),
            archive: constant("ArchiveMask", 0),
        };
        Ok(Layout { bytes: needed.next_multiple_of(8), bottom_at, top_at, tag_at, tags })
    }

    fn region(&self, object: &[u64], tag_at: Option<u64>, range: Range) -> Option<Region> {
        let word = |at: u64| object.get((at / 8) as usize).copied();
        let bottom = word(self.bottom_at)?;
        let top = word(self.top_at)?;
        if bottom != range.start.0 || top < bottom {
            return None;
        }
        let part = match tag_at {
            Some(at) => self.tags.part(half(object, at)? as u64),
            None => "region",
        };
        // JDK 8: the top of the first region of a humongous object is the object's end, regions further on.
        Some(Region { part, used_bytes: (top - bottom).min(range.bytes()) })
    }

    fn starts_humongous(&self, object: &[u64], tag_at: Option<u64>) -> bool {
        let tag = tag_at.and_then(|at| half(object, at));
        tag.is_some_and(|tag| self.tags.starts_humongous(u64::from(tag)))
    }
}

impl Tags {
    /// The lowest bit says that a region continues an object.
    fn starts_humongous(&self, tag: u64) -> bool {
        self.part(tag) == "humongous" && tag & 1 == 0
    }

    fn part(&self, tag: u64) -> &'static str {
        let is = |mask| tag & mask != 0;
        match tag {
            0 => "free",
            _ if tag == self.survivor => "survivor",
            _ if is(self.archive) && tag & 1 == 1 => "closed archive",
            _ if is(self.archive) => "open archive",
            _ if is(self.young) => "eden",
            _ if is(self.humongous) => "humongous",
            _ => "old",
        }
    }
}

/// The 4 bytes at `at`.
fn half(object: &[u64], at: u64) -> Option<u32> {
    let word = object.get((at / 8) as usize)?;
    Some((word >> (at % 8 * 8)) as u32)
}

/// JDK 8: `HeapRegion::_hrm_index`, the region's number, is followed by `_type`, or by `_allocation_context`, of one byte, and then
/// `_type` (heapRegion.hpp). One region would fit anywhere, and so would zeros: some region is in use.
fn tag_by_number(objects: &[Option<Vec<u64>>]) -> Option<u64> {
    const TAGS: [u32; 6] = [0, 2, 3, 4, 5, 8];
    let known: Vec<(usize, &Vec<u64>)> =
        objects.iter().enumerate().filter_map(|(index, object)| Some((index, object.as_ref()?))).collect();
    let bytes = known.first().filter(|_| known.len() > 1)?.1.len() as u64 * 8;
    let is_number = |at: &u64| known.iter().all(|(index, object)| half(object, *at) == Some(*index as u32));
    let is_tag = |at: &u64| {
        let tags = || known.iter().map(|(_, object)| half(object, *at));
        tags().all(|tag| tag.is_some_and(|tag| TAGS.contains(&tag))) && tags().any(|tag| tag != Some(0))
    };
    let numbers = (0..bytes.saturating_sub(8)).step_by(4).filter(is_number);
    numbers.flat_map(|at| [at + 4, at + 8]).find(is_tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_11_and_of_25() {
        let eleven = Tags { survivor: 3, young: 2, humongous: 4, archive: 32 };
        let parts = [0, 2, 3, 12, 13, 16, 56, 57].map(|tag| eleven.part(tag));
        let expected =
            ["free", "eden", "survivor", "humongous", "humongous", "old", "open archive", "closed archive"];
        assert_eq!(parts, expected);
        let newest = Tags { survivor: 3, young: 2, humongous: 4, archive: 0 };
        assert_eq!([2, 4, 5, 8].map(|tag| newest.part(tag)), ["eden", "humongous", "humongous", "old"]);
    }

    #[test]
    fn the_ends_of_regions_behind_humongous_objects() {
        let eleven = Tags { survivor: 3, young: 2, humongous: 4, archive: 32 };
        assert_eq!([12, 13, 16, 2].map(|tag| eleven.starts_humongous(tag)), [true, false, false, false]);
        let sizes = [1_048_592, 3 << 20, 600 << 10, 64];
        let sum = summed(sizes.into_iter(), 1 << 20).expect("three objects");
        assert_eq!((sum.objects, sum.regions), (3, 2 + 3 + 1));
        assert_eq!(sum.object_bytes, 1_048_592 + (3 << 20) + (600 << 10));
        assert_eq!(summed([64].into_iter(), 1 << 20), None, "no object of half a region");
    }

    #[test]
    fn the_type_follows_the_number() {
        let object = |index: u64, tag: u64| Some(vec![0x1000 * index, 7, tag << 32 | index, 9]);
        assert_eq!(tag_by_number(&[object(0, 2), None, object(2, 8)]), Some(20));
        assert_eq!(tag_by_number(&[object(0, 2), object(1, 99)]), None);
        let apart = |index: u64, tag: u64| Some(vec![7, index, tag, 9]);
        assert_eq!(tag_by_number(&[apart(0, 2), apart(1, 8)]), Some(16), "something lies between");
    }

    #[test]
    fn the_top_of_a_humongous_object_is_cut_at_its_region() {
        let tags = Tags { survivor: 3, young: 2, humongous: 4, archive: 0 };
        let layout = Layout { bytes: 24, bottom_at: 0, top_at: 8, tag_at: Some(16), tags };
        let range = Range::of(0x100000, 0x200000);
        let read = |words: [u64; 3]| layout.region(&words, layout.tag_at, range);
        let whole = Region { part: "humongous", used_bytes: 0x100000 };
        assert_eq!(read([0x100000, 0x480000, 4]), Some(whole));
        assert_eq!(read([0x100000, 0x180000, 8]), Some(Region { part: "old", used_bytes: 0x80000 }));
        assert_eq!(read([0x300000, 0x380000, 8]), None);
        assert_eq!(read([0x100000, 0, 8]), None);
    }
}
