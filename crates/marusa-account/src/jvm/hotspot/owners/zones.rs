//! What words may point to besides blocks of malloc: the heap, class metadata, the code of libraries.

use crate::base::{Addr, Range, holding, joined};
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
            let extents = view.extents.iter().filter(|extent| kinds.contains(&extent.kind));
            joined(extents.map(|extent| extent.range))
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
    holding(ranges, Addr(word)).is_some()
}
