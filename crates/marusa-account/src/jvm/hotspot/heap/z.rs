//! ZGC's heap: what its pages hold. Every view of it is claimed; in-use bytes are given in the first one alone, so that sums count
//! them once.

use super::super::{Found, Hotspot};
use super::z_heap::{View, Z, is_reserved, mappings_of};
use super::z_pages::{self, Page};
use super::z_tables;
use crate::base::{Known, Range, joined};
use crate::jvm::types::{HeapView, How, Kind};
use crate::os::maps::Mapping;

/// Claims the views and their pages, and the collector's tables.
pub fn read(vm: &Hotspot, found: &mut Found) -> Known<HeapView> {
    let z = Z::read(vm)?;
    let views = z.views(vm)?;
    let mappings = mappings_of(&vm.target.view.mappings, &views, z.offset_max);
    let pages = found.note(z_pages::read(vm, &z, &views));
    for (number, mapping) in &mappings {
        claim(found, &views, *number, mapping, pages.as_deref());
    }
    z_tables::read(vm, &z, found);
    Ok(HeapView {
        reserved: joined(mappings.iter().map(|(_, mapping)| mapping.range)),
        max_bytes: z.capacity(vm, "_max_capacity"),
        committed_bytes: z.committed_bytes(vm),
        used_bytes: z.used_bytes(vm),
        region_bytes: Some(z.granule),
        humongous: None,
    })
}

/// What is allocated of each page, at each address where the heap is mapped.
pub fn used(vm: &Hotspot) -> Known<Vec<Range>> {
    let z = Z::read(vm)?;
    let views = z.views(vm)?;
    let pages = z_pages::read(vm, &z, &views)?;
    let range = |view: &View, page: &Page| Range::sized(view.base.plus(page.start), page.in_use);
    Ok(views.iter().flat_map(|view| pages.iter().map(|page| range(view, page))).collect())
}

/// Claims one mapping of the heap, cut into runs of like pages where the pages are known.
fn claim(found: &mut Found, views: &[View], number: usize, mapping: &Mapping, pages: Option<&[Page]>) {
    if is_reserved(mapping) {
        let part = "reserved address space";
        return found.claim(mapping.range, Kind::JavaHeap, part, 0, How::VmStructs);
    }
    let view = &views[number];
    let Some(pages) = pages else {
        let part = if views.len() > 1 { format!("heap (view {})", view.name) } else { "heap".to_string() };
        return found.claim(mapping.range, Kind::JavaHeap, part, None, How::VmStructs);
    };
    let start = mapping.range.start.0 - view.base.0;
    for run in z_pages::runs(pages, start, start.saturating_add(mapping.range.bytes())) {
        let range = Range::sized(view.base.plus(run.range.start.0), run.range.bytes());
        let in_use = if number == 0 { run.used_bytes } else { 0 };
        found.claim(range, Kind::JavaHeap, run.part, in_use, How::VmStructs);
    }
}
