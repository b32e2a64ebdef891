//! Allocators other than glibc: recognised, not walked. What they hold is seen only as anonymous memory of theirs.

use super::types::AllocView;
use crate::base::{Gap, Known, Why};
use crate::os::Target;
use crate::os::elf::Image;
use crate::os::maps::Mapping;

/// Each allocator by a symbol that it alone exports and by how its library is called.
const KNOWN: &[(&str, &str, &str)] = &[
    ("jemalloc", "mallctl", "libjemalloc"),
    ("tcmalloc", "MallocExtension_ReleaseFreeMemory", "libtcmalloc"),
    ("mimalloc", "mi_malloc", "libmimalloc"),
    ("musl", "", "ld-musl-"),
];

/// Adds to glibc's view, or puts in its place, the allocator that stands before it.
pub fn read(target: &Target, glibc: Known<AllocView>) -> Known<AllocView> {
    let Some((name, path)) = recognise(target) else { return glibc };
    let gap = Gap::new(format!("{name}'s arenas, spans and free lists ({path})"), Why::NotInThisRuntime)
        .hint(format!(
            "memory of {name} is not told from other anonymous memory; glibc's malloc is read in full"
        ));
    match glibc {
        // glibc still serves what was allocated before, or by those that call it directly.
        Ok(mut view) => {
            view.allocator = format!("{name}, and {}", view.allocator);
            view.gaps.push(gap);
            Ok(view)
        }
        Err(why) => Ok(AllocView {
            allocator: name.to_string(),
            arenas: Vec::new(),
            mmapped: Vec::new(),
            stretches: Vec::new(),
            in_use: Vec::new(),
            mmapped_count: Err(why.clone()),
            mmapped_bytes: Err(why),
            gaps: vec![gap],
        }),
    }
}

fn recognise(target: &Target) -> Option<(&'static str, String)> {
    let firsts = || target.view.mappings.iter().filter(|mapping| mapping.offset == 0 && mapping.is_file());
    let named = |mapping: &Mapping| KNOWN.iter().find(|(_, _, start)| mapping.file_name().starts_with(start));
    if let Some(found) = firsts().find_map(|mapping| Some((named(mapping)?.0, mapping.path.clone()))) {
        return Some(found);
    }
    // A program may carry its allocator in itself: the executable is the image of the lowest address or of its own path.
    let executable = firsts().find(|mapping| mapping.path == target.view.process.executable)?;
    let image = Image::read(target.memory, executable).ok()?;
    let exports = |symbol: &str| matches!(image.exported(target.memory, symbol), Ok(Some(_)));
    let known = KNOWN.iter().find(|(_, symbol, _)| !symbol.is_empty() && exports(symbol))?;
    Some((known.0, executable.path.clone()))
}
