//! The class data sharing archive: files of ready-made metadata that the VM maps at start.
//!
//! JDK 17 and later name the range that holds the archives' metadata (`MetaspaceObj::_shared_metaspace_base`, `_top`), and
//! `FileMapInfo` describes the regions of the static archive in it (src/hotspot/share/cds/filemap.hpp). What is mapped
//! into the Java heap belongs to the heap.

use super::{Found, Hotspot};
use crate::base::{Addr, Range};
use crate::jvm::types::{How, Kind};
use crate::os::maps::Mapping;

/// The regions of metadata come first; after them heap regions follow.
const REGIONS: usize = 5;

pub fn read(vm: &Hotspot, found: &mut Found) {
    let shared = shared_metaspace(vm);
    let regions = regions(vm, shared);
    let heaps: Vec<Range> = found
        .extents
        .iter()
        .filter(|extent| extent.kind == Kind::JavaHeap)
        .map(|extent| extent.range)
        .chain(heap(vm))
        .collect();
    let in_heap = |range: Range| heaps.iter().any(|heap| heap.overlaps(range));
    let mappings = &vm.target.view.mappings;
    let static_archive = static_path(mappings, shared, &regions);
    for mapping in mappings.iter().filter(|mapping| !in_heap(mapping.range)) {
        if let Some(shared) = shared.filter(|shared| shared.overlaps(mapping.range)) {
            let range = mapping.range.intersect(shared);
            let part = part_of(mapping, range, static_archive, &regions);
            found.claim(range, Kind::CdsArchive, part, None, How::VmStructs);
        } else if mapping.is_file() && mapping.file_name().ends_with(".jsa") {
            let part = match shared {
                Some(_) => "cds bitmap",
                None => part_of(mapping, mapping.range, static_archive, &regions),
            };
            found.claim(mapping.range, Kind::CdsArchive, part, None, How::Shape);
        }
    }
}

fn shared_metaspace(vm: &Hotspot) -> Option<Range> {
    let base = vm.static_addr("MetaspaceObj", "_shared_metaspace_base").ok()?;
    let top = vm.static_addr("MetaspaceObj", "_shared_metaspace_top").ok()?;
    Some(Range::new(base, top)).filter(|range| !range.is_empty() && range.bytes() < 1 << 40)
}

fn heap(vm: &Hotspot) -> Option<Range> {
    let heap = vm.static_addr("Universe", "_collectedHeap").ok()?;
    let reserved = heap.plus(vm.structs.offset("CollectedHeap", "_reserved").ok()?);
    let start = vm.addr(reserved, "MemRegion", "_start").ok()?;
    let words = vm.word(reserved, "MemRegion", "_word_size").ok()?;
    Some(Range::sized(start, words.checked_mul(8)?))
}

/// Regions of the static archive with their parts. JDK 11 numbers them mc 0, rw 1, ro 2, later ones rw 0, ro 1.
fn regions(vm: &Hotspot, shared: Option<Range>) -> Vec<(Range, &'static str)> {
    let table = || {
        let info = vm.static_addr("FileMapInfo", "_current_info").ok()?;
        let header = vm.addr(info, "FileMapInfo", "_header").ok()?;
        let first = vm
            .structs
            .offset_of_any(&[("FileMapHeader", "_regions[0]"), ("FileMapHeader", "_space[0]")])
            .ok()?;
        let stride = vm.structs.size_of("CDSFileMapRegion").ok().filter(|stride| *stride <= 4096)?;
        let base = vm
            .structs
            .offset_of_any(&[("CDSFileMapRegion", "_mapped_base"), ("CDSFileMapRegion", "_addr._base")])
            .ok()?;
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
    (0..names.len().min(REGIONS)).filter_map(region).collect()
}

/// The file of the static archive: the first in the shared range, or the first of all.
fn static_path<'a>(
    mappings: &'a [Mapping],
    shared: Option<Range>,
    regions: &[(Range, &'static str)],
) -> Option<&'a str> {
    let first = regions.first().map(|(range, _)| range.start);
    let is_archive = |mapping: &&Mapping| match (first, shared) {
        (Some(first), _) => mapping.range.has(first),
        (None, Some(shared)) => shared.overlaps(mapping.range) && mapping.is_file(),
        (None, None) => mapping.is_file() && mapping.file_name().ends_with(".jsa"),
    };
    mappings.iter().find(is_archive).filter(|mapping| mapping.is_file()).map(|mapping| mapping.file_path())
}

fn part_of(
    mapping: &Mapping,
    range: Range,
    static_archive: Option<&str>,
    regions: &[(Range, &'static str)],
) -> &'static str {
    let middle = Addr(range.start.0 + range.bytes() / 2);
    if let Some((_, part)) = regions.iter().find(|(region, _)| region.has(middle) || region.has(range.start))
    {
        return part;
    }
    match static_archive {
        Some(path) if mapping.is_file() && mapping.file_path() != path => "dynamic archive",
        _ => "static archive",
    }
}
