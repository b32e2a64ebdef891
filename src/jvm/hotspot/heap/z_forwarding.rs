//! Where ZGC's objects were before they moved: references are corrected when they are used or when the heap is marked next, so many
//! still lead there. A `ZForwarding` for each page that was evacuated is followed by its entries, the old index and the new offset
//! of each object (src/hotspot/share/gc/z/{zForwarding,zForwardingEntry,zAttachedArray}.hpp, JDK 15 to 25). JDK 11 to 14 keep it
//! otherwise. Generational ZGC has a table of them for each generation, the old one first (zHeap.hpp, JDK 21 and 25).

use super::super::Hotspot;
use super::z::Z;
use super::{object_words, z_tables};
use crate::base::{Addr, Gap, Known, Range, Why};
use std::collections::HashSet;

const MOVED_MAX: usize = 8_000_000;
const ENTRIES_MAX: u64 = 1 << 22;
const POPULATED: u64 = 1;
const OFFSET_BITS: u32 = 45;
const INDEX_SHIFT: u32 = 46;

/// Offsets of objects before and after, for those that moved since the heap was marked last.
pub type Moved = Vec<(u64, u64)>;

/// The moved objects of each generation.
pub fn moved(vm: &Hotspot) -> Known<Vec<Moved>> {
    let z = Z::read(vm)?;
    let words = object_words(vm, z.collected, &z.named("CollectedHeap"))?;
    let layout = Layout::read(vm, &z).ok_or_else(|| {
        Gap::new("where objects of ZGC were before they moved", Why::NotInThisRuntime)
            .hint("it is known from JDK 15 on")
    })?;
    let tables = z_tables::forwarding(vm, &z, &words);
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

    fn entries(&self, vm: &Hotspot, z: &Z, at: Addr, found: &mut Moved) {
        let word = |offset| vm.memory().u64(at.plus(offset)).ok();
        let Some(((start, shift), length)) = word(self.start).zip(word(self.shift)).zip(word(self.length))
        else {
            return;
        };
        let fits = start < z.offset_max && shift < 32 && length.is_power_of_two() && length <= ENTRIES_MAX;
        if !fits {
            return;
        }
        let entries = vm.memory().words(at.plus(self.bytes), length as usize).unwrap_or_default();
        found.extend(entries.into_iter().filter_map(|entry| moved_by(entry, start, shift, z.offset_max)));
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
    use super::moved_by;

    #[test]
    fn an_entry_has_the_old_index_and_the_new_offset() {
        let entry = 5 << 46 | 0x40_0018 << 1 | 1;
        assert_eq!(moved_by(entry, 0x20_0000, 3, 1 << 30), Some((0x20_0028, 0x40_0018)));
        assert_eq!(moved_by(entry & !1, 0x20_0000, 3, 1 << 30), None, "not populated");
        assert_eq!(moved_by(entry, 0x20_0000, 3, 0x40_0000), None, "beyond the heap");
    }
}
