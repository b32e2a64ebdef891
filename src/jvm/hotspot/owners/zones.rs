//! What words may point to besides blocks of malloc: the heap, class metadata, the code of libraries.

use crate::base::{Addr, Range, joined};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::types::{JvmView, Kind};

/// What else words may point to. Each sorted.
#[derive(Debug, Default)]
pub struct Zones {
    /// The collector's and the Java heap.
    pub heap: Vec<Range>,
    pub classes: Vec<Range>,
    /// Code of files other than libjvm.
    pub libraries: Vec<Range>,
}

impl Zones {
    pub fn read(vm: &Hotspot, view: &JvmView) -> Zones {
        let of = |kinds: &[Kind]| {
            let mut ranges: Vec<Range> = view
                .extents
                .iter()
                .filter(|extent| kinds.contains(&extent.kind))
                .map(|extent| extent.range)
                .collect();
            ranges.sort();
            joined(ranges)
        };
        let library = vm.image.extent();
        let files = vm
            .target
            .view
            .mappings
            .iter()
            .filter(|m| m.is_file() && m.rights.execute && !library.has(m.range.start));
        Zones {
            heap: of(&[Kind::JavaHeap, Kind::Gc]),
            classes: of(&[Kind::Metaspace, Kind::ClassSpace, Kind::CdsArchive]),
            libraries: files.map(|mapping| mapping.range).collect(),
        }
    }
}

/// Whether `word` lies in one of the ranges.
pub fn has(ranges: &[Range], word: u64) -> bool {
    let at = Addr(word);
    ranges.get(ranges.partition_point(|range| range.end <= at)).is_some_and(|range| range.has(at))
}
