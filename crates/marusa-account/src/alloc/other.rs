//! Allocators other than glibc: recognised and named, not walked. Of their memory, the runtime's blocks are identified where
//! the runtime marks them (`scan`).

use super::pointed;
use super::scan;
use super::types::{AllocView, BlockCount, OtherAllocator};
use super::version;
use crate::base::blocks::Witness;
use crate::base::{Gap, Known, Range, Why};
use crate::os::Target;
use crate::os::elf::Image;
use crate::os::maps::Mapping;

/// How an allocator is recognised.
pub(super) struct Kind {
    pub name: &'static str,
    /// A symbol that it alone exports.
    symbol: Option<&'static str>,
    /// How the name of its library starts.
    library: &'static str,
    /// The way to have it print its own figures.
    statistics: &'static str,
}

const JEMALLOC: &str = "jemalloc";

const KNOWN: &[Kind] = &[
    Kind {
        name: JEMALLOC,
        symbol: Some("mallctl"),
        library: "libjemalloc",
        statistics: "MALLOC_CONF=stats_print:true makes jemalloc print its own figures at the end",
    },
    Kind {
        name: "tcmalloc",
        symbol: Some("MallocExtension_ReleaseFreeMemory"),
        library: "libtcmalloc",
        statistics: "MALLOCSTATS=1 makes tcmalloc print its own figures at the end",
    },
    Kind {
        name: "mimalloc",
        symbol: Some("mi_malloc"),
        library: "libmimalloc",
        statistics: "MIMALLOC_SHOW_STATS=1 makes mimalloc print its own figures at the end",
    },
    Kind {
        name: "musl",
        symbol: None,
        library: "ld-musl-",
        statistics: "musl's malloc has no figures of its own",
    },
];

/// Adds to glibc's view, or puts in its place, the allocator that stands before it. `owned` is sorted and disjoint.
pub fn read(
    target: &Target,
    glibc: Known<AllocView>,
    owned: &[Range],
    witness: &dyn Witness,
) -> Known<AllocView> {
    let Some((kind, first)) = recognise(target) else { return glibc };
    let image = Image::read(target.memory, first).ok();
    let version = image.and_then(|image| version::of(target, kind.name, &image));
    let how =
        if witness.marks_blocks() { "around blocks of the VM" } else { "pointed into as at blocks (weak)" };
    let (name, path) = (kind.name.to_string(), first.path.clone());
    let other = OtherAllocator { name, version, path, how: how.to_string() };
    let mut view = match glibc {
        // glibc still serves what was allocated before, or by the ones that call it directly.
        Ok(mut view) => {
            view.allocator = format!("{}, and {}", other.title(), view.allocator);
            // An arena that has nothing from the system was never used: what lies in [heap] is the other's.
            view.arenas
                .iter_mut()
                .filter(|arena| arena.system_bytes == 0)
                .for_each(|arena| arena.heaps.clear());
            view
        }
        Err(_) => AllocView { allocator: other.title(), ..AllocView::default() },
    };
    view.gaps.push(not_walked(kind, &other, witness));
    view.other = Some(other);
    add(target, &mut view, kind, owned, witness);
    Ok(view)
}

/// What is not known, and what would help.
fn not_walked(kind: &Kind, other: &OtherAllocator, witness: &dyn Witness) -> Gap {
    let tags = match witness.marks_blocks() {
        true => {
            "the headers of the VM's blocks say what it uses; the rest of the memory around them is given whole"
        }
        false => "with -XX:NativeMemoryTracking=summary (JDK 17 on) the VM's own use would be known",
    };
    Gap::new(format!("arenas, spans and free lists of {} ({})", other.title(), other.path), Why::NotRead)
        .hint(format!("{tags}; {}", kind.statistics))
}

/// Adds the blocks that the runtime's marks show in memory that is not glibc's.
fn add(target: &Target, view: &mut AllocView, kind: &Kind, owned: &[Range], witness: &dyn Witness) {
    if let Err(gap) = &target.view.pages {
        view.gaps.push(Gap::new("memory of the allocator", gap.why));
    }
    let mut taken = owned.to_vec();
    taken.extend(view.arenas.iter().flat_map(|arena| arena.heaps.iter().map(|heap| heap.reserved)));
    taken.extend(&view.mmapped);
    taken.sort();
    let scanned = match witness.marks_blocks() {
        true => scan::scan(target, &taken, witness),
        false => scan::unmarked(target, &pointed::pieces(target, &taken, kind.name == JEMALLOC)),
    };
    view.intervals.extend(scanned.intervals);
    view.intervals.sort_by_key(|interval| interval.range);
    view.gaps.extend(scanned.gaps);
    if view.in_use.len() < scanned.in_use.len() {
        view.in_use.resize(scanned.in_use.len(), BlockCount::default());
    }
    for (sum, count) in view.in_use.iter_mut().zip(&scanned.in_use) {
        sum.blocks += count.blocks;
        sum.bytes = sum.bytes.saturating_add(count.bytes);
    }
}

fn recognise<'a>(target: &'a Target) -> Option<(&'static Kind, &'a Mapping)> {
    let firsts = || target.view.mappings.iter().filter(|mapping| mapping.offset == 0 && mapping.is_file());
    let named = |mapping: &Mapping| KNOWN.iter().find(|kind| mapping.file_name().starts_with(kind.library));
    if let Some(found) = firsts().find_map(|mapping| Some((named(mapping)?, mapping))) {
        return Some(found);
    }
    // A program may carry its allocator in itself: the executable is the image of the lowest address or of its own path.
    let executable = firsts().find(|mapping| mapping.path == target.view.process.executable)?;
    let image = Image::read(target.memory, executable).ok()?;
    let exports = |symbol: &str| matches!(image.exported(target.memory, symbol), Ok(Some(_)));
    let known = KNOWN.iter().find(|kind| kind.symbol.is_some_and(exports))?;
    Some((known, executable))
}
