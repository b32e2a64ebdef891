//! Where ZGC's objects were before they moved: references are corrected when they are used or when the heap is marked next, and
//! until then they lead there. A `ZForwarding` for each page that was evacuated is followed by its entries, the old index and the
//! new offset of each object (src/hotspot/share/gc/z/{zForwarding,zForwardingEntry,zAttachedArray}.hpp, JDK 15 to 25). JDK 11 to 14
//! keep it otherwise. Generational ZGC has a table of them for each generation, the old one first (zHeap.hpp, JDK 21 and 25).

use super::super::Hotspot;
use super::z_heap::Z;
use super::{object_words, z_tables};
use crate::base::{Addr, Gap, Known, Range, Why};
use std::collections::HashSet;

const MOVED_MAX: usize = 8_000_000;
const ENTRIES_MAX: u64 = 1 << 22;
/// Half of the entries are empty, so that few follow each other.
const PROBES_MAX: u64 = 4096;
const POPULATED: u64 = 1;
const OFFSET_BITS: u32 = 45;
const INDEX_SHIFT: u32 = 46;

/// Offsets of objects before and after, for the ones that moved since the heap was marked last.
pub type Moved = Vec<(u64, u64)>;

/// The moved objects of each generation.
pub fn moved(vm: &Hotspot) -> Known<Vec<Moved>> {
    let Forwarding { z, tables, layout, .. } = Forwarding::read(vm)?;
    Ok(tables.into_iter().map(|table| of_table(vm, &z, &layout, table)).collect())
}

fn of_table(vm: &Hotspot, z: &Z, layout: &Layout, table: Range) -> Moved {
    let (mut found, mut met) = (Vec::new(), HashSet::new());
    for piece in vm.target.resident(table) {
        let entries = vm.memory().words(piece.start, (piece.bytes() / 8) as usize).unwrap_or_default();
        for at in entries.into_iter().filter(|at| *at != 0 && met.insert(*at)) {
            layout.entries(vm, z, Addr(at), &mut found);
            if found.len() >= MOVED_MAX {
                return found;
            }
        }
    }
    found
}

/// Looks up single addresses: for a walk that meets few stale references, not all entries need be read.
pub struct Forwarding {
    z: Z,
    base: Addr,
    tables: Vec<Range>,
    layout: Layout,
}

impl Forwarding {
    pub fn read(vm: &Hotspot) -> Known<Forwarding> {
        let z = Z::read(vm)?;
        let base = z.views(vm)?.first().map_or(Addr::NULL, |view| view.base);
        let words = object_words(vm, z.collected, &z.named("CollectedHeap"))?;
        let tables = z_tables::forwarding(vm, &z, &words);
        let layout = Layout::read(vm, &z).ok_or_else(|| {
            Gap::new("where objects of ZGC were before they moved", Why::NotInThisRuntime)
                .hint("it is known from JDK 15 on")
        })?;
        Ok(Forwarding { z, base, tables, layout })
    }

    /// Where the object is that was at `at`; `None`: this generation has not moved it.
    pub fn follow(&self, vm: &Hotspot, at: Addr, generation: usize) -> Option<Addr> {
        let offset = at.offset_from(self.base).filter(|offset| *offset < self.z.offset_max)?;
        let place = (offset / self.z.granule).checked_mul(8)?;
        let table = self.tables.get(generation).filter(|table| place < table.bytes())?;
        let moved = vm.memory().addr(table.start.plus(place)).ok().filter(|moved| !moved.is_null())?;
        Some(self.base.plus(self.layout.entry(vm, &self.z, moved, offset)?))
    }
}

/// `ZHash::uint32_to_uint32` (src/hotspot/share/gc/z/zHash.inline.hpp).
fn hash(index: u32) -> u32 {
    let mut key = (!index).wrapping_add(index << 15);
    key ^= key >> 12;
    key = key.wrapping_add(key << 2);
    key ^= key >> 4;
    key = key.wrapping_mul(2057);
    key ^ (key >> 16)
}

struct Layout {
    start: u64,
    shift: u64,
    length: u64,
    bytes: u64,
}

impl Layout {
    fn read(vm: &Hotspot, z: &Z) -> Option<Layout> {
        let offset = |class: &str, name| vm.structs.offset(&z.named(class), name).ok();
        let start = offset("Forwarding", "_virtual")? + offset("VirtualMemory", "_start")?;
        let length = offset("Forwarding", "_entries")? + offset("AttachedArrayForForwarding", "_length")?;
        let bytes = vm.structs.size_of(&z.named("Forwarding")).ok()?.next_multiple_of(8);
        Some(Layout { start, shift: offset("Forwarding", "_object_alignment_shift")?, length, bytes })
    }

    /// Where the page began, the binary logarithm of the distance of places in it, and the number of entries.
    fn head(&self, vm: &Hotspot, z: &Z, at: Addr) -> Option<(u64, u64, u64)> {
        let word = |offset| vm.memory().u64(at.plus(offset)).ok();
        let (start, shift, length) = (word(self.start)?, word(self.shift)?, word(self.length)?);
        let fits = start < z.offset_max && shift < 32 && length.is_power_of_two() && length <= ENTRIES_MAX;
        fits.then_some((start, shift, length))
    }

    fn entries(&self, vm: &Hotspot, z: &Z, at: Addr, found: &mut Moved) {
        let Some((start, shift, length)) = self.head(vm, z, at) else { return };
        let entries = vm.memory().words(at.plus(self.bytes), length as usize).unwrap_or_default();
        found.extend(entries.into_iter().filter_map(|entry| moved_by(entry, start, shift, z.offset_max)));
    }

    /// Where the object at `offset` went: entries begin at the place that the hash names.
    fn entry(&self, vm: &Hotspot, z: &Z, at: Addr, offset: u64) -> Option<u64> {
        let (start, shift, length) = self.head(vm, z, at)?;
        let index = u32::try_from(offset.checked_sub(start)? >> shift).ok()?;
        let first = u64::from(hash(index));
        for probe in 0..length.min(PROBES_MAX) {
            let place = ((first + probe) & (length - 1)) * 8;
            let entry = vm.memory().u64(at.plus(self.bytes).plus(place)).ok()?;
            match moved_by(entry, start, shift, z.offset_max) {
                Some((from, to)) if from == offset => return Some(to),
                _ if entry & POPULATED == 0 => return None,
                _ => {}
            }
        }
        None
    }
}

/// Before and after.
fn moved_by(entry: u64, start: u64, shift: u64, offset_max: u64) -> Option<(u64, u64)> {
    let to = entry >> 1 & ((1 << OFFSET_BITS) - 1);
    let from = start.checked_add((entry >> INDEX_SHIFT).checked_shl(shift as u32)?)?;
    (entry & POPULATED != 0 && to < offset_max && from < offset_max).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::{hash, moved_by};

    #[test]
    fn an_entry_has_the_old_index_and_the_new_offset() {
        let entry = 5 << 46 | 0x40_0018 << 1 | 1;
        assert_eq!(moved_by(entry, 0x20_0000, 3, 1 << 30), Some((0x20_0028, 0x40_0018)));
        assert_eq!(moved_by(entry & !1, 0x20_0000, 3, 1 << 30), None, "not populated");
        assert_eq!(moved_by(entry, 0x20_0000, 3, 0x40_0000), None, "beyond the heap");
    }
    #[test]
    fn places_differ_and_are_those_of_the_vm() {
        // Computed by the function of the VM in C.
        assert_eq!([hash(0), hash(1), hash(262_143)], [3399731875, 316017654, 1121332783]);
    }
}
