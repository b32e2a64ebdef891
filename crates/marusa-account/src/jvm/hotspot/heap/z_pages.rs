//! ZGC's pages, from its page table: an array with a pointer to a `ZPage` for each granule (2 MiB) of the heap's address
//! space. Only its resident part is read; the rest was never written. A page that the collector frees leaves the table, or
//! is free in it (JDK 11), so what is mapped beyond is memory that waits in ZGC's cache.

use super::super::Hotspot;
use super::spaces::Run;
use super::z_heap::{View, Z};
use crate::base::limits::{HEAP_REGIONS_MAX, Z_PAGE_TABLE_BYTES_MAX};
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::jvm::hotspot::window::array;

const CHUNK_BYTES: u64 = 64 << 10;
/// The fields that are read lie in the first words of a `ZPage`; JDK 11's `_refcount` is the last.
const PAGE_HEAD_BYTES: usize = 112;
/// Looks at a page's object that makes no sense.
const READ_AGAIN_MAX: usize = 3;

/// One page, by offsets into a view of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub start: u64,
    pub end: u64,
    /// What is allocated in it.
    pub in_use: Bytes,
    pub size: Size,
    /// `None` where ZGC has no generations.
    pub generation: Option<Generation>,
    /// The number of the collection that it was allocated in; 0 where the VM does not name it.
    pub sequence: u32,
    pub live: Option<LiveMap>,
}

/// `ZLiveMap`: what the last marking of a page found (zLiveMap.hpp, JDK 11 to 25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveMap {
    /// The number of the collection that marked.
    pub sequence: u32,
    /// How many objects it found; threads add what they found when they are done.
    pub objects: u32,
    pub segments: u64,
    pub map: Addr,
    pub bits: u64,
}

impl LiveMap {
    /// From its words: two numbers, bytes, two maps of 64 segments, and the bitmap. Since JDK 22 the bitmap is made when it is
    /// needed, and its size lies before it; in JDK 25 the size of a segment and its logarithm come first instead.
    fn of(words: [u64; 7]) -> LiveMap {
        let [numbers, second, third, fourth, fifth, sixth, seventh] = words;
        let (segment, shift) = (numbers & 0xffff_ffff, numbers >> 32);
        let begins_with_size =
            segment > 1 && segment.is_power_of_two() && u64::from(segment.ilog2()) == shift;
        let is_absent = sixth == 0 && seventh == 0;
        if begins_with_size && (is_absent || seventh == segment * 64) {
            let objects = (second >> 32) as u32;
            return LiveMap {
                sequence: second as u32,
                objects,
                segments: fourth,
                map: Addr(sixth),
                bits: seventh,
            };
        }
        let is_lazy = is_absent || fifth == seventh;
        let (map, bits) = if is_lazy { (sixth, seventh) } else { (fifth, sixth) };
        LiveMap {
            sequence: numbers as u32,
            objects: (numbers >> 32) as u32,
            segments: third,
            map: Addr(map),
            bits,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Small,
    Medium,
    Large,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    Young,
    Old,
}

impl Page {
    pub fn part(&self) -> &'static str {
        match (self.size, self.generation) {
            (Size::Small, None) => "small page",
            (Size::Medium, None) => "medium page",
            (Size::Large, None) => "large page",
            (Size::Small, Some(Generation::Young)) => "young small page",
            (Size::Medium, Some(Generation::Young)) => "young medium page",
            (Size::Large, Some(Generation::Young)) => "young large page",
            (Size::Small, Some(Generation::Old)) => "old small page",
            (Size::Medium, Some(Generation::Old)) => "old medium page",
            (Size::Large, Some(Generation::Old)) => "old large page",
        }
    }
}

/// Cuts the offsets from `start` to `end`, which are mapped, into runs by offsets. `pages` are sorted.
pub fn runs(pages: &[Page], start: u64, end: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut add = |start: u64, end: u64, part: &'static str, used_bytes: Bytes| {
        Run { range: Range::of(start, end), part, used_bytes }.add_to(&mut runs);
    };
    let mut at = start;
    let first = pages.partition_point(|page| page.end <= start);
    for page in pages[first..].iter().take_while(|page| page.start < end) {
        let from = page.start.max(at);
        add(at, from, "free page", 0);
        let to = page.end.min(end);
        // A page that is mapped in several pieces is filled from its start.
        let filled = page.start.saturating_add(page.in_use).clamp(from, to.max(from)) - from;
        add(from, to, page.part(), filled);
        at = at.max(to);
    }
    add(at, end, "free page", 0);
    runs
}

/// Every page of the heap that a view maps, sorted.
pub fn read(vm: &Hotspot, z: &Z, views: &[View]) -> Known<Vec<Page>> {
    let layout = Layout::read(vm, z)?;
    let table = table(vm, z)?;
    let entry = |offset: u64| table.start.plus((offset / z.granule).saturating_mul(8));
    let offsets = z.mapped_offsets(vm, views);
    let wanted = Range::new(entry(offsets.start), entry(offsets.end)).intersect(table);
    let mut pages: Vec<Page> = Vec::new();
    let mut last = Addr::NULL;
    let (mut seen, mut bad) = (0, 0);
    for (number, entry) in entries(vm, table.start, wanted)? {
        // JDK 11 marks a page that is being relocated in the lowest bit (zPageTableEntry.hpp).
        let at = Addr(entry & !1);
        if at == last {
            continue;
        }
        last = at;
        seen += 1;
        match layout.page(vm, z, at, number).or_else(|| layout.page_now(vm, z, table.start, number)) {
            Some(page) => pages.extend(page),
            None => bad += 1,
        }
    }
    // Some pages may come and go while they are read, but not most.
    if bad > seen / 2 {
        return Err(Gap::new("pages of ZGC", Why::BadData(table.start)));
    }
    // Believed only when every page has them in order.
    if pages.iter().any(|page| page.generation.is_none()) {
        pages.iter_mut().for_each(|page| page.generation = None);
    }
    pages.sort_by_key(|page| page.start);
    Ok(pages)
}

/// The `ZPage` objects of the whole table, which lie in malloc's memory: each holds the bitmaps of its marks and, with generations,
/// of remembered fields.
pub fn objects(vm: &Hotspot) -> Known<Vec<Addr>> {
    let table = table(vm, &Z::read(vm)?)?;
    let mut objects: Vec<Addr> =
        entries(vm, table.start, table)?.into_iter().map(|(_, entry)| Addr(entry & !1)).collect();
    objects.dedup();
    Ok(objects)
}

/// The whole array, without the rounding to pages.
pub fn table(vm: &Hotspot, z: &Z) -> Known<Range> {
    let map = vm.structs.offset(&z.named("PageTable"), "_map")?;
    let classes = [z.named("GranuleMapForPageTable"), z.named("AddressRangeMapForPageTable")];
    let names = [(&*classes[0], "_map"), (&*classes[1], "_map")];
    let field = vm.structs.offset_of_any(&names)?;
    let at = z.page_table.plus(map).plus(field);
    let start = vm.memory().addr(at).map_err(|fault| fault.gap("ZPageTable::_map"))?;
    // A ZGranuleMap (JDK 12 on) starts with the number of its entries; JDK 11's map has one for each granule.
    let entries = if field == 0 {
        z.offset_max / z.granule
    } else {
        vm.memory().u64(at.minus(8)).map_err(|fault| fault.gap("ZPageTable::_map::_size"))?
    };
    let bytes = entries.saturating_mul(8);
    let range = Range::sized(start, bytes);
    let mapped = vm.target.mapping(start).is_some_and(|mapping| mapping.range.covers(range));
    if bytes == 0 || bytes > Z_PAGE_TABLE_BYTES_MAX || !mapped {
        return Err(Gap::new("page table of ZGC", Why::BadData(at)));
    }
    Ok(range)
}

/// The entries in `wanted` that are not null, each with its granule's number.
fn entries(vm: &Hotspot, table: Addr, wanted: Range) -> Known<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for piece in vm.target.resident(wanted) {
        let mut at = piece.start;
        while at < piece.end {
            let count = ((piece.end.0 - at.0).min(CHUNK_BYTES) / 8) as usize;
            if count == 0 {
                break;
            }
            let words = vm.memory().words(at, count).map_err(|fault| fault.gap("page table of ZGC"))?;
            let first = (at.0 - table.0) / 8;
            found.extend((first..).zip(words).filter(|(_, word)| *word & !1 != 0));
            at = at.plus(count as u64 * 8);
            if found.len() > HEAP_REGIONS_MAX {
                return Err(Gap::new("pages of ZGC", Why::OverLimit));
            }
        }
    }
    Ok(found)
}

/// Where the fields of a `ZPage` lie.
struct Layout {
    class: u64,
    sequence: Option<u64>,
    start: u64,
    /// The offset of the end, or of the size from JDK 24 on.
    end: u64,
    end_is_size: bool,
    top: u64,
    /// JDK 11 only.
    references: Option<u64>,
}

impl Layout {
    fn read(vm: &Hotspot, z: &Z) -> Known<Layout> {
        let (class, range) = (z.named("Page"), z.named("VirtualMemory"));
        let at = vm.structs.offset(&class, "_virtual")?;
        let end = vm.structs.offset(&range, "_end");
        let end_is_size = end.is_err();
        let end = end.or_else(|_| vm.structs.offset(&range, "_size"))?;
        let layout = Layout {
            class: vm.structs.offset(&class, "_type")?,
            // JDK 11 does not name it; it lies before `_virtual` (zPage.hpp).
            sequence: vm.structs.offset(&class, "_seqnum").ok().or_else(|| at.checked_sub(4)),
            start: at.saturating_add(vm.structs.offset(&range, "_start")?),
            end: at.saturating_add(end),
            end_is_size,
            // JDK 11 does not name `_top`; it follows `_virtual` (zPage.hpp), and `page` checks what it reads.
            top: vm.structs.offset(&class, "_top").unwrap_or(at.saturating_add(16)),
            // JDK 11 leaves free pages in its table; their `_refcount`, the word before `_forwarding`, is 0 (zPage.hpp).
            references: vm.structs.offset(&class, "_forwarding").ok().and_then(|at| at.checked_sub(8)),
        };
        let fields = [layout.start, layout.end, layout.top, layout.class, layout.references.unwrap_or(0)];
        let fields = fields.into_iter().chain(layout.sequence);
        let highest = fields.max().unwrap_or(0);
        if highest.saturating_add(8) > PAGE_HEAD_BYTES as u64 {
            return Err(Gap::new("layout of ZPage", Why::NotInThisRuntime));
        }
        Ok(layout)
    }

    /// As it is at this moment: what was kept of the page's object may be older than the table, and its memory younger than the
    /// look at what is resident.
    #[cold]
    fn page_now(&self, vm: &Hotspot, z: &Z, table: Addr, number: u64) -> Option<Option<Page>> {
        (0..READ_AGAIN_MAX).find_map(|_| {
            let (mut entry, mut head) = ([0; 8], [0; PAGE_HEAD_BYTES]);
            vm.memory().read_now(table.plus(number.saturating_mul(8)), &mut entry).ok()?;
            match u64::from_le_bytes(entry) & !1 {
                0 => Some(None),
                at => {
                    vm.memory().read_now(Addr(at), &mut head).ok()?;
                    self.of_head(z, &head, number)
                }
            }
        })
    }

    /// The page at `at`, if it makes sense and holds granule `number`; within that, `None` for a free one.
    fn page(&self, vm: &Hotspot, z: &Z, at: Addr, number: u64) -> Option<Option<Page>> {
        let mut head = [0; PAGE_HEAD_BYTES];
        vm.memory().read(at, &mut head).ok()?;
        self.of_head(z, &head, number)
    }

    fn of_head(&self, z: &Z, head: &[u8; PAGE_HEAD_BYTES], number: u64) -> Option<Option<Page>> {
        let word = |offset: u64| array(head, offset as usize).map(u64::from_le_bytes);
        let start = word(self.start)?;
        let end = word(self.end)?;
        let end = if self.end_is_size { start.checked_add(end)? } else { end };
        let (top, granule) = (word(self.top)?, number.checked_mul(z.granule)?);
        let size = match head[self.class as usize] {
            0 => Size::Small,
            1 => Size::Medium,
            2 => Size::Large,
            _ => return None,
        };
        let aligned = start % z.granule == 0 && end % z.granule == 0;
        if !aligned || end > z.offset_max || !(start..end).contains(&granule) || !(start..=end).contains(&top)
        {
            return None;
        }
        let generation = if z.generational { generation(head, self.class as usize) } else { None };
        let sequence = self.sequence.and_then(word).unwrap_or(0) as u32;
        let live = [0, 1, 2, 3, 4, 5, 6].map(|place| word(self.top + 8 + place * 8).unwrap_or(0));
        let live = Some(LiveMap::of(live)).filter(|_| self.sequence.is_some());
        let is_free = match self.references {
            Some(offset) => word(offset)? as u32 == 0,
            None => false,
        };
        Some((!is_free).then_some(Page { start, end, in_use: top - start, size, generation, sequence, live }))
    }
}

/// `_generation_id` (0 young, 1 old) and `_age` (0 to 14 young, 15 old) follow `_type` in the generational ZGC (zPage.hpp,
/// JDK 21 to 25; vmStructs names neither).
fn generation(head: &[u8], class: usize) -> Option<Generation> {
    const AGE_OLD: u8 = 15;
    match (head.get(class + 1)?, head.get(class + 2)?) {
        (1, &AGE_OLD) => Some(Generation::Old),
        (0, age) if *age < AGE_OLD => Some(Generation::Young),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(start: u64, end: u64, in_use: Bytes, size: Size) -> Page {
        Page { start, end, in_use, size, generation: None, sequence: 0, live: None }
    }

    #[test]
    fn like_pages_are_joined_and_the_rest_is_free() {
        let pages = [page(2, 4, 1, Size::Small), page(4, 6, 2, Size::Small), page(6, 12, 6, Size::Large)];
        let run = |start, end, part, used_bytes| Run { range: Range::of(start, end), part, used_bytes };
        assert_eq!(
            runs(&pages, 0, 14),
            vec![
                run(0, 2, "free page", 0),
                run(2, 6, "small page", 3),
                run(6, 12, "large page", 6),
                run(12, 14, "free page", 0)
            ]
        );
    }

    #[test]
    fn a_page_in_two_mappings_is_filled_from_its_start() {
        let pages = [page(0, 8, 5, Size::Large)];
        assert_eq!(runs(&pages, 0, 4)[0].used_bytes, 4);
        assert_eq!(runs(&pages, 4, 8)[0].used_bytes, 1);
        assert_eq!(runs(&pages, 8, 8), vec![]);
    }

    #[test]
    fn maps_of_living_objects_of_11_of_22_and_of_25() {
        let map = |sequence, objects| LiveMap {
            sequence,
            objects,
            segments: 5,
            map: Addr(0x7000),
            bits: 8192 * 64,
        };
        let bits = 8192 * 64;
        assert_eq!(LiveMap::of([7 | 100 << 32, 4096, 5, 5, 0x7000, bits, 13]), map(7, 100));
        assert_eq!(
            LiveMap::of([2 | 1 << 32, 4096, 5, 5, 0x7000, bits, 13]),
            map(2, 1),
            "no size of a segment"
        );
        assert_eq!(LiveMap::of([7 | 100 << 32, 4096, 5, 5, bits, 0x7000, bits]), map(7, 100));
        assert_eq!(LiveMap::of([8192 | 13 << 32, 7 | 100 << 32, 4096, 5, 5, 0x7000, bits]), map(7, 100));
        assert_eq!(LiveMap::of([8192 | 13 << 32, 0, 0, 0, 0, 0, 0]).sequence, 0);
    }

    #[test]
    fn the_age_must_agree_with_the_generation() {
        assert_eq!(generation(&[0, 1, 15], 0), Some(Generation::Old));
        assert_eq!(generation(&[0, 0, 3], 0), Some(Generation::Young));
        assert_eq!(generation(&[0, 1, 3], 0), None);
    }
}
