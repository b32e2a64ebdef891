//! Which ZGC runs, and where its heap lies: what the readers of its pages, marks and tables share.
//!
//! The non-generational ZGC (JDK 11 to 23) maps one file at three addresses, the views "marked0", "marked1" and
//! "remapped" (src/hotspot/os_cpu/linux_x86/gc/z/zGlobals_linux_x86.hpp, JDK 11); the generational one (21 on) maps it
//! once. JDK 21 has both collectors, and calls the older one's types X instead of Z.

use super::super::Hotspot;
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::jvm::types::Gc;
use crate::os::maps::Mapping;

/// No ZGC puts its heap lower: src/hotspot/cpu/x86/gc/z/zAddress_x86.cpp, at least 42 bits of offset below it.
const HEAP_BASE_SHIFT_MIN: u32 = 40;
const HEAP_BASE_SHIFT_MAX: u32 = 47;
/// NUMA nodes: src/hotspot/os/linux/os_linux.cpp.
const PARTITIONS_MAX: u64 = 1024;
/// Distance of one partition's copy of a value from the next one's: `ZValueStorage<S>::offset`.
const PARTITION_STRIDE: u64 = 4096;

/// The heap and the objects within it.
pub struct Z {
    /// "Z", or "X" for the older ZGC of JDK 21 to 23.
    pub prefix: &'static str,
    pub generational: bool,
    /// The `ZCollectedHeap`, and the `ZHeap`, `ZPageAllocator` and `ZPageTable` within it.
    pub collected: Addr,
    pub heap: Addr,
    pub allocator: Addr,
    pub page_table: Addr,
    /// One more than the highest offset into a view.
    pub offset_max: Bytes,
    pub granule: Bytes,
}

/// One address at which the heap is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub name: &'static str,
    pub base: Addr,
}

/// Which ZGC runs, if one does.
pub fn collector(vm: &Hotspot) -> Option<Gc> {
    if !vm.flags.is_on("UseZGC") {
        return None;
    }
    Some(if is_generational(vm) { Gc::ZGenerational } else { Gc::Z })
}

/// `zoffset` came with the generational ZGC (JDK 21); `XCollectedHeap` is in the ones that still have the older one too.
fn is_generational(vm: &Hotspot) -> bool {
    let has_older = vm.structs.has_type("XCollectedHeap");
    vm.structs.has_type("zoffset") && (!has_older || vm.flags.is_on("ZGenerational"))
}

impl Z {
    pub fn read(vm: &Hotspot) -> Known<Z> {
        let generational = is_generational(vm);
        let older = vm.structs.has_type("XCollectedHeap") && !generational;
        let prefix = if older { "X" } else { "Z" };
        let named = |name: &str| format!("{prefix}{name}");
        let collected = vm.static_addr("Universe", "_collectedHeap")?;
        let heap = collected.plus(vm.structs.offset(&named("CollectedHeap"), "_heap")?);
        let class = named("Heap");
        let allocator = heap.plus(vm.structs.offset(&class, "_page_allocator")?);
        let table = vm.structs.offset_of_any(&[(&class, "_pagetable"), (&class, "_page_table")])?;
        let mut z = Z {
            prefix,
            generational,
            collected,
            heap,
            allocator,
            page_table: heap.plus(table),
            offset_max: 0,
            granule: 0,
        };
        let mask = match vm.structs.constant(&named("AddressOffsetMask")) {
            Ok(mask) if mask != 0 => mask,
            _ => z.global(vm, "AddressOffsetMask")?,
        };
        let shift = ["GranuleSizeShift", "PageSizeMinShift"]
            .iter()
            .find_map(|name| vm.structs.constant(&named(name)).ok())
            .filter(|shift| (12..=30).contains(shift))
            .ok_or_else(|| Gap::new("granule size of ZGC", Why::NotInThisRuntime))?;
        z.granule = 1 << shift;
        z.offset_max = mask
            .checked_add(1)
            .filter(|max| max.is_power_of_two() && *max >= z.granule)
            .ok_or_else(|| Gap::new(format!("{prefix}AddressOffsetMask"), Why::BadData(collected)))?;
        Ok(z)
    }

    pub fn named(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A global variable that `ZGlobalsForVMStructs` points to, named without the leading Z.
    pub fn global(&self, vm: &Hotspot, name: &str) -> Known<u64> {
        let at = self.global_at(vm, name)?;
        vm.memory().u64(at).map_err(|fault| fault.gap(format!("{}{name}", self.prefix)))
    }

    /// Whether the last marking is complete, without generations: in `ZPhaseRelocate`, which lasts until the next collection begins
    /// (src/hotspot/share/gc/z/zGlobals.hpp, JDK 11 to 23).
    pub fn has_marked(&self, vm: &Hotspot) -> bool {
        let phase = self.global_at(vm, "GlobalPhase").ok().and_then(|at| vm.memory().u32(at).ok());
        let relocate = vm.structs.constant(&self.named("PhaseRelocate")).ok();
        phase.zip(relocate).is_some_and(|(phase, relocate)| u64::from(phase) == relocate)
    }

    fn global_at(&self, vm: &Hotspot, name: &str) -> Known<Addr> {
        let class = self.named("GlobalsForVMStructs");
        let instance = vm.static_addr(&class, "_instance_p")?;
        let field = format!("_{}", self.named(name));
        vm.addr(instance, &class, &field)
    }

    /// Where the heap is mapped.
    pub fn views(&self, vm: &Hotspot) -> Known<Vec<View>> {
        let bits = match (self.global(vm, "AddressMetadataMask"), self.global(vm, "AddressGoodMask")) {
            (Ok(all), _) => all & !self.global(vm, "AddressMetadataFinalizable")?,
            // JDK 11: the four metadata bits are the good ones and the bad ones.
            (_, Ok(good)) => good | self.global(vm, "AddressBadMask")?,
            _ => return self.single_view(vm).map(|view| vec![view]),
        };
        let views = views_of_bits(bits);
        if views.is_empty() || views[0].base.0 < self.offset_max {
            return Err(Gap::new("address views of ZGC", Why::BadData(Addr(bits))));
        }
        Ok(views)
    }

    /// The generational ZGC's heap base is a power of two that vmStructs does not name: the lowest with shared memory
    /// in reach of an offset.
    fn single_view(&self, vm: &Hotspot) -> Known<View> {
        let mappings = &vm.target.view.mappings;
        (HEAP_BASE_SHIFT_MIN..=HEAP_BASE_SHIFT_MAX)
            .map(|shift| View { name: "heap", base: Addr(1 << shift) })
            .filter(|view| view.base.0 >= self.offset_max)
            .find(|view| {
                mappings_of(mappings, std::slice::from_ref(view), self.offset_max)
                    .iter()
                    .any(|(_, m)| is_backing(m))
            })
            .ok_or_else(|| Gap::new("heap base of ZGC", Why::NotInThisRuntime))
    }

    /// From the lowest to the highest offset that any view maps.
    pub fn mapped_offsets(&self, vm: &Hotspot, views: &[View]) -> std::ops::Range<u64> {
        let mappings = mappings_of(&vm.target.view.mappings, views, self.offset_max);
        let backing = || mappings.iter().filter(|(_, mapping)| is_backing(mapping));
        let start = backing().map(|(number, mapping)| mapping.range.start.0 - views[*number].base.0).min();
        let end = backing().map(|(number, mapping)| mapping.range.end.0 - views[*number].base.0).max();
        start.unwrap_or(0)..end.unwrap_or(0)
    }

    /// JDK 11 keeps the capacity in the manager of physical memory.
    pub fn capacity(&self, vm: &Hotspot, field: &str) -> Known<Bytes> {
        let class = self.named("PageAllocator");
        vm.word(self.allocator, &class, field).or_else(|_| {
            let physical = self.allocator.plus(vm.structs.offset(&class, "_physical")?);
            vm.word(physical, &self.named("PhysicalMemoryManager"), field)
        })
    }

    pub fn committed_bytes(&self, vm: &Hotspot) -> Known<Bytes> {
        if vm.structs.has_type("ZPartition") {
            return self.sum_of_partitions(vm, "_capacity");
        }
        self.capacity(vm, "_capacity")
    }

    pub fn used_bytes(&self, vm: &Hotspot) -> Known<Bytes> {
        if vm.structs.has_type("ZPartition") {
            return self.sum_of_partitions(vm, "_used");
        }
        vm.word(self.allocator, &self.named("PageAllocator"), "_used")
    }

    /// JDK 24 on: one `ZPartition` per NUMA node.
    fn sum_of_partitions(&self, vm: &Hotspot, field: &str) -> Known<Bytes> {
        let at = vm.structs.static_at("ZNUMA", "_count")?;
        let count = vm.memory().u32(at).map_err(|fault| fault.gap("ZNUMA::_count"))? as u64;
        if count > PARTITIONS_MAX {
            return Err(Gap::new("ZNUMA::_count", Why::BadData(at)));
        }
        let partitions = self.allocator.plus(vm.structs.offset("ZPageAllocator", "_partitions")?);
        let first = vm.addr(partitions, "ZPerNUMAZPartition", "_addr")?;
        (0..count).try_fold(0_u64, |sum, number| {
            let partition = first.plus(number * PARTITION_STRIDE);
            Ok(sum.saturating_add(vm.word(partition, "ZPartition", field)?))
        })
    }
}

/// The three lowest metadata bits are the views; the fourth, "finalizable", is never mapped.
fn views_of_bits(bits: u64) -> Vec<View> {
    let bases = (0..u64::BITS).map(|bit| 1_u64 << bit).filter(|bit| bits & bit != 0);
    let names = ["marked0", "marked1", "remapped"];
    names.iter().zip(bases).map(|(name, base)| View { name, base: Addr(base) }).collect()
}

/// The memory of the heap: a file that is shared between the views, even when there is only one.
fn is_backing(mapping: &Mapping) -> bool {
    mapping.rights.shared && mapping.is_file()
}

/// Address space that is reserved and not mapped.
pub fn is_reserved(mapping: &Mapping) -> bool {
    mapping.is_anonymous() && !mapping.rights.any()
}

/// The mappings that are heap, each with the number of its view. JDK 11 reserves from the first view to the last in one
/// piece, so what is reserved right behind a view is heap too. The file is the one with most of the addresses.
pub fn mappings_of<'a>(
    mappings: &'a [Mapping],
    views: &[View],
    offset_max: Bytes,
) -> Vec<(usize, &'a Mapping)> {
    let mut found: Vec<(usize, &Mapping)> = Vec::new();
    let start = views.first().map_or(Addr::NULL, |view| view.base);
    let end = views.last().map_or(Addr::NULL, |view| view.base.plus(offset_max));
    let first = mappings.partition_point(|mapping| mapping.range.start < start);
    for mapping in mappings[first..].iter().take_while(|mapping| mapping.range.start < end) {
        let at = mapping.range.start;
        let number = views.partition_point(|view| view.base <= at).saturating_sub(1);
        let inside = Range::sized(views[number].base, offset_max).has(at);
        let behind = found.last().is_some_and(|(_, last)| last.range.end == at);
        if (inside && is_backing(mapping)) || ((inside || behind) && is_reserved(mapping)) {
            found.push((number, mapping));
        }
    }
    let mut files: Vec<(&str, u64, Bytes)> = Vec::new();
    for (_, mapping) in found.iter().filter(|(_, mapping)| is_backing(mapping)) {
        match files.iter_mut().find(|file| (file.0, file.1) == (&*mapping.device, mapping.inode)) {
            Some(file) => file.2 += mapping.range.bytes(),
            None => files.push((&mapping.device, mapping.inode, mapping.range.bytes())),
        }
    }
    if let Some(file) = files.iter().max_by_key(|file| file.2) {
        found.retain(|(_, m)| is_reserved(m) || (&*m.device, m.inode) == (file.0, file.1));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::joined;

    #[test]
    fn finalizable_is_no_view() {
        let names = |bits| views_of_bits(bits).iter().map(|v| (v.name, v.base.0)).collect::<Vec<_>>();
        let expected = vec![("marked0", 1 << 42), ("marked1", 1 << 43), ("remapped", 1 << 44)];
        assert_eq!(names(0b1111 << 42), expected);
        assert_eq!(names(0b0111 << 42), expected);
        assert_eq!(names(0), vec![]);
    }

    fn maps(text: &str) -> Vec<Mapping> {
        crate::os::maps::parse(text.as_bytes()).0
    }

    #[test]
    fn heap_is_what_the_views_map_and_what_is_reserved_behind() {
        // JDK 11 after some work; a file that a library mapped shared into the same terabyte; a gap's neighbour.
        let mappings = maps(
            "40000000000-40005c00000 rw-s 00000000 00:01 33 /memfd:java_heap (deleted)\n\
             40005c00000-80000000000 ---p 00000000 00:00 0 \n\
             80000000000-80005c00000 rw-s 00000000 00:01 33 /memfd:java_heap (deleted)\n\
             80005c00000-c0000000000 ---p 00000000 00:00 0 \n\
             c0000000000-100000000000 ---p 00000000 00:00 0 \n\
             100000000000-100005c00000 rw-s 00000000 00:01 33 /memfd:java_heap (deleted)\n\
             100005c00000-100005d00000 rw-s 00000000 fe:00 99 /data/file\n\
             150000000000-150002000000 ---p 00000000 00:00 0 \n",
        );
        let found = mappings_of(&mappings, &views_of_bits(0b1111 << 42), 1 << 42);
        assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 0, 1, 1, 1, 2]);
        let reserved = joined(found.iter().map(|(_, mapping)| mapping.range));
        assert_eq!(reserved, [Range::of(0x40000000000, 0x100005c00000)]);
    }
}
