//! The class data sharing archive: files of ready-made metadata that the VM maps at start.
//!
//! JDK 17 and later name the range that holds the archives' metadata (`MetaspaceObj::_shared_metaspace_base`, `_top`), and
//! `FileMapInfo` describes the regions of the static archive in it (src/hotspot/share/cds/filemap.hpp). What is mapped
//! into the Java heap belongs to the heap.

use super::{Found, Hotspot, heap};
use crate::base::{PAGE, Range};
use crate::jvm::types::{Extent, How, Kind};
use crate::os::maps::Mapping;

/// The regions of metadata come first; after them heap regions follow.
const REGIONS: usize = 5;
/// What the reservation for the archives is rounded up to, at most (metaspaceShared.cpp,
/// `reserve_address_space_for_archives`); the class space follows.
const RESERVE_ALIGNMENT_MAX: u64 = 16 << 20;

pub fn read(vm: &Hotspot, found: &mut Found) {
    let shared = shared_metaspace(vm);
    let regions = regions(vm, shared);
    let heaps: Vec<Range> = found
        .extents
        .iter()
        .filter(|extent| extent.kind == Kind::JavaHeap)
        .map(|extent| extent.range)
        .chain(heap::spaces::reserved(vm).ok())
        .collect();
    let in_heap = |range: Range| heaps.iter().any(|heap| heap.overlaps(range));
    let archives = vm.target.view.mappings.iter().filter(|mapping| !in_heap(mapping.range));
    let first_path = archives.clone().find(|mapping| is_archive(mapping)).map(|mapping| mapping.file_path());
    for mapping in archives {
        match shared {
            Some(shared) if shared.overlaps(mapping.range) => {
                claim_shared(mapping.range.intersect(shared), &regions, found);
            }
            _ if !is_archive(mapping) => {}
            Some(_) => found.claim(mapping.range, Kind::CdsArchive, "cds bitmap", None, How::Shape),
            None => {
                let region = regions.iter().find(|(region, _)| region.overlaps(mapping.range));
                let part = match region {
                    Some((_, part)) => part,
                    None if Some(mapping.file_path()) == first_path => "static archive",
                    None => "dynamic archive",
                };
                found.claim(mapping.range, Kind::CdsArchive, part, None, How::Shape);
            }
        }
    }
    claim_rest(vm, found);
}

/// What is reserved behind the last archive, without any right of access.
fn claim_rest(vm: &Hotspot, found: &mut Found) {
    let is_core = |extent: &&Extent| extent.kind == Kind::CdsArchive && extent.part != "cds bitmap";
    let Some(end) = found.extents.iter().filter(is_core).map(|extent| extent.range.end).max() else { return };
    let end = end.up_to(PAGE);
    let rest = vm.target.mapping(end).filter(|rest| {
        rest.range.start == end && rest.is_anonymous() && !rest.rights.any() && !rest.rights.shared
    });
    if let Some(rest) = rest {
        let range = rest.range.intersect(Range::new(end, end.up_to(RESERVE_ALIGNMENT_MAX)));
        found.claim(range, Kind::CdsArchive, "reserved behind the archives", Some(0), How::Shape);
    }
}

fn is_archive(mapping: &Mapping) -> bool {
    mapping.is_file() && mapping.file_name().ends_with(".jsa")
}

/// The static archive's header page and regions come first; what lies above them is the dynamic archive's.
fn claim_shared(range: Range, regions: &[(Range, &'static str)], found: &mut Found) {
    let mut at = range.start;
    for (region, part) in regions {
        let region = region.widened(PAGE).intersect(range);
        let region = Range::new(region.start.max(at), region.end);
        if !region.is_empty() {
            let before = Range::new(at, region.start);
            found.claim(before, Kind::CdsArchive, "static archive", None, How::VmStructs);
            found.claim(region, Kind::CdsArchive, *part, None, How::VmStructs);
            at = region.end;
        }
    }
    let is_above = regions.last().is_some_and(|(last, _)| at >= last.end);
    let part = if is_above { "dynamic archive" } else { "static archive" };
    found.claim(Range::new(at, range.end), Kind::CdsArchive, part, None, How::VmStructs);
}

fn shared_metaspace(vm: &Hotspot) -> Option<Range> {
    let base = vm.static_addr("MetaspaceObj", "_shared_metaspace_base").ok()?;
    let top = vm.static_addr("MetaspaceObj", "_shared_metaspace_top").ok()?;
    Some(Range::new(base, top)).filter(|range| !range.is_empty() && range.bytes() < 1 << 40)
}

/// Regions of the static archive with their parts. JDK 11 numbers them mc 0, rw 1, ro 2, later ones rw 0, ro 1.
fn regions(vm: &Hotspot, shared: Option<Range>) -> Vec<(Range, &'static str)> {
    let table = || {
        let info = vm.static_addr("FileMapInfo", "_current_info").ok()?;
        let header = vm.addr(info, "FileMapInfo", "_header").ok()?;
        let any = |owner, names: [&str; 2]| vm.structs.offset_of_any(&names.map(|name| (owner, name))).ok();
        let first = any("FileMapHeader", ["_regions[0]", "_space[0]"])?;
        let stride = vm.structs.size_of("CDSFileMapRegion").ok().filter(|stride| *stride <= 4096)?;
        let base = any("CDSFileMapRegion", ["_mapped_base", "_addr._base"])?;
        Some((header.plus(first), stride, base, vm.structs.offset("CDSFileMapRegion", "_used").ok()?))
    };
    let Some((first, stride, base, used)) = table() else { return Vec::new() };
    let names: &[&str] = match shared {
        Some(_) => &["static archive rw", "static archive ro"],
        None => {
            &["static archive", "static archive rw", "static archive ro", "static archive", "static archive"]
        }
    };
    let region = |index: usize| {
        let at = first.plus(index as u64 * stride);
        let start = vm.memory().addr(at.plus(base)).ok().filter(|start| !start.is_null())?;
        Some((Range::sized(start, vm.memory().u64(at.plus(used)).ok()?), names[index]))
    };
    let mut regions: Vec<_> = (0..names.len().min(REGIONS)).filter_map(region).collect();
    regions.sort();
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_split_one_mapping_and_the_rest_above_is_the_dynamic_archive() {
        let regions = [
            (Range::of(0x1000, 0x2800), "static archive rw"),
            (Range::of(0x3000, 0x4000), "static archive ro"),
        ];
        let mut found = Found::default();
        claim_shared(Range::of(0, 0x6000), &regions, &mut found);
        let parts: Vec<(u64, u64, &str)> = found
            .extents
            .iter()
            .map(|extent| (extent.range.start.0, extent.range.end.0, extent.part.as_str()))
            .collect();
        assert_eq!(
            parts,
            [
                (0, 0x1000, "static archive"),
                (0x1000, 0x3000, "static archive rw"),
                (0x3000, 0x4000, "static archive ro"),
                (0x4000, 0x6000, "dynamic archive"),
            ]
        );
    }
}
