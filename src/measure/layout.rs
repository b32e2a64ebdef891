//! What the memory of a JVM looks like now, as far as larger pages would change it: resident bytes by area as the account has
//! them, and the holes that large pages would fill.
//!
//! Memory of a file that is mapped at several addresses (ZGC's heap until JDK 21: three views of one memfd) is looked at in the
//! file: a page that any view has is there once, and so is a hole.

use super::price::{self, AreaPrice, Piece, Reserved};
use crate::base::{Bytes, Gap, Known, Range, Why, joined};
use crate::jvm::Gc;
use crate::map::residency::Aliases;
use crate::map::{Area, MemoryMap, Span};
use crate::os::machine::huge_page;
use crate::snapshot::Snapshot;
use std::collections::BTreeMap;

/// What the memory looks like now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub areas: BTreeMap<Area, AreaPrice>,
    /// `Err`: the pages could not be read, or not where in its mapping each lies, so nothing is known of `areas`.
    pub pages: Known<()>,
    pub reserved: Known<Reserved>,
    pub takes_gigantic: bool,
}

/// What `predict` needs of an account.
pub fn layout(snapshot: &Snapshot, map: &MemoryMap) -> Layout {
    let pages = match &snapshot.os.pages {
        Err(gap) => Err(gap.clone()),
        Ok(runs) if runs.iter().any(|run| run.is_present() && !run.is_placed()) => {
            Err(Gap::new("place of each page", Why::NotInThisKernel)
                .hint("without it, holes cannot be counted"))
        }
        Ok(_) => Ok(()),
    };
    Layout {
        areas: areas(snapshot, map),
        pages,
        reserved: reserved(snapshot, map),
        takes_gigantic: !is_z(snapshot),
    }
}

fn is_z(snapshot: &Snapshot) -> bool {
    matches!(&snapshot.jvm, Ok(jvm) if matches!(jvm.gc, Ok(Gc::Z | Gc::ZGenerational)))
}

fn reserved(snapshot: &Snapshot, map: &MemoryMap) -> Known<Reserved> {
    let jvm = snapshot.jvm.as_ref().map_err(Gap::clone)?;
    let heap = jvm.heap.as_ref().map_err(Gap::clone)?.max_bytes.clone()?;
    let code = jvm.code.as_ref().map_err(Gap::clone)?.iter().map(|heap| heap.reserved.bytes()).collect();
    // ZGC puts nothing but its heap there: its tables are larger than any heap, and nearly empty. What the collector has of
    // malloc's memory stays where it is.
    let tables = match is_z(snapshot) {
        true => Vec::new(),
        false => tables(map),
    };
    Ok(Reserved { heap, code, tables })
}

/// The collector's tables, as reserved.
fn tables(map: &MemoryMap) -> Vec<Bytes> {
    let mut parts: BTreeMap<&str, Bytes> = BTreeMap::new();
    let shares = map.shares().filter(|(owner, _)| owner.area == Area::Gc && !owner.instance.is_mallocs());
    for (owner, share) in shares {
        let sum = parts.entry(&owner.part).or_default();
        *sum = sum.saturating_add(share.figures.reserved);
    }
    parts.into_values().collect()
}

/// The account's figures, and what the holes would add to them.
fn areas(snapshot: &Snapshot, map: &MemoryMap) -> BTreeMap<Area, AreaPrice> {
    let mut areas: BTreeMap<Area, AreaPrice> = BTreeMap::new();
    for (owner, share) in map.shares().filter(|(_, share)| share.figures.resident > 0) {
        let sum = areas.entry(owner.area).or_default();
        let sizes = share.figures.by_page_size.iter();
        let on_small: Bytes = sizes.filter(|(size, _)| **size < huge_page()).map(|(_, bytes)| bytes).sum();
        sum.now += share.figures.resident;
        sum.on_small += on_small;
        sum.movable += if owner.instance.is_mallocs() { 0 } else { on_small };
    }
    let (plain, aliased) = pieces(snapshot, map);
    let mut holes = price::holes(plain);
    for (area, bytes) in aliased.into_iter().flat_map(price::holes) {
        *holes.entry(area).or_default() += bytes;
    }
    for (area, price) in &mut areas {
        price.after = (price.now, price.now.saturating_add(holes.get(area).copied().unwrap_or(0)));
    }
    areas
}

/// What is resident, with the area of the span's biggest owner: by address, and for each file that is mapped at several
/// addresses by its offsets, each once.
fn pieces(snapshot: &Snapshot, map: &MemoryMap) -> (Vec<Piece>, Vec<Vec<Piece>>) {
    let mappings = &snapshot.os.mappings;
    let aliases = Aliases::new(mappings);
    let mut plain = Vec::new();
    let mut files: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
    let runs = snapshot.os.pages.as_deref().unwrap_or_default();
    for run in runs.iter().filter(|run| run.is_present() && run.is_placed()) {
        let first = map.spans.partition_point(|span| span.range.end <= run.range.start);
        let spans = map.spans[first..].iter().take_while(|span| span.range.start < run.range.end);
        for (span, mapping) in spans.filter_map(|span| Some((span, mappings.get(span.mapping)?))) {
            let (range, page_bytes) = (run.range.intersect(span.range), run.page_bytes as Bytes);
            let piece = Piece { mapping: mapping.range, range, area: area_of(map, span), page_bytes };
            match aliases.place(mapping, span.mapping, range) {
                Some((file, range)) => files.entry(file).or_default().push(Piece { range, ..piece }),
                None => plain.push(piece),
            }
        }
    }
    let mut mapped: BTreeMap<usize, Vec<Range>> = BTreeMap::new();
    for (index, mapping) in mappings.iter().enumerate() {
        if let Some((file, offsets)) = aliases.place(mapping, index, mapping.range) {
            mapped.entry(file).or_default().push(offsets);
        }
    }
    let in_file = |(file, pieces)| once(pieces, mapped.remove(&file).unwrap_or_default());
    (plain, files.into_iter().map(in_file).collect())
}

/// Pieces of one file in the order of its offsets, each offset once. `mapped`: the offsets that any mapping has.
fn once(mut pieces: Vec<Piece>, mapped: Vec<Range>) -> Vec<Piece> {
    let mapped = joined(mapped);
    pieces.sort_unstable_by_key(|piece| (piece.range.start, piece.range.end));
    let mut end = 0;
    for piece in &mut pieces {
        let start = piece.range.start.0.max(end).min(piece.range.end.0);
        piece.range = Range::of(start, piece.range.end.0);
        end = end.max(piece.range.end.0);
        let whole = mapped.partition_point(|range| range.end <= piece.range.start);
        piece.mapping = mapped.get(whole).copied().unwrap_or_default();
    }
    pieces.retain(|piece| !piece.range.is_empty());
    pieces
}

/// `None` where malloc has it: its memory stays on small pages.
fn area_of(map: &MemoryMap, span: &Span) -> Option<Area> {
    let resident = |figures: &crate::map::Figures| figures.resident.saturating_add(figures.aliased);
    let biggest = span.shares.iter().max_by_key(|share| resident(&share.figures))?;
    let owner = &map.owners[biggest.owner];
    (!owner.instance.is_mallocs()).then_some(owner.area)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_file_that_several_views_have_count_once() {
        const MIB: u64 = 1 << 20;
        let piece = |start: u64, end: u64| Piece {
            mapping: Range::default(),
            range: Range::of(start * MIB, end * MIB),
            area: Some(Area::JavaHeap),
            page_bytes: 4096,
        };
        // Views of the first 2 MiB and of the next: the one saw 1 MiB, the other half of it and more.
        let mapped = [(0, 2), (2, 4), (0, 4), (8, 10)].map(|(start, end)| Range::of(start * MIB, end * MIB));
        let pieces = once(vec![piece(8, 9), piece(0, 1), piece(0, 1), piece(0, 3)], mapped.to_vec());
        let bytes: Bytes = pieces.iter().map(|piece| piece.range.bytes()).sum();
        assert_eq!((bytes, pieces.len()), (4 * MIB, 3));
        assert_eq!(price::holes(pieces), BTreeMap::from([(Area::JavaHeap, 2 * MIB)]));
    }
}
