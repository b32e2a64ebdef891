//! glibc's malloc: which bytes are its own. Its layouts differ by version and by vendor, so none is looked up: each is
//! derived from the shape of the data and proved by sums that malloc keeps itself (`system_mem`, `mp_.n_mmaps`).
//!
//! Sources: malloc/malloc.c and malloc/arena.c, glibc 2.15 to 2.43.

pub mod arena;
pub mod find;
pub mod layout;
pub mod main_arena;
pub mod mmapped;

use crate::alloc::types::AllocView;
use crate::base::{Gap, Known, Range, Why};
use crate::os::Target;

/// The gap in an arena whose chunks were not looked at.
fn not_walked() -> Gap {
    Gap::new("chunks of an arena", Why::NotRead)
}

/// Reads the arenas and the mmapped chunks. `owned` is sorted and disjoint: what is not malloc's, so need not be searched.
pub fn read(target: &Target, owned: &[Range]) -> Known<AllocView> {
    let mut gaps =
        vec![Gap::new("what is free within malloc's memory", Why::NotRead).hint(
            "arenas and large chunks are named whole, as JVM work, with what malloc keeps free in them",
        )];
    let libc = find::library(target, &mut gaps)?;
    let layout = find::layout(target, &libc)?;
    let totals = layout::Totals::find(target, &libc, &layout);
    let sbrk_base = totals.as_ref().ok().map(|totals| totals.sbrk_base);
    let arenas = arena::read(target, &layout, sbrk_base, owned, &mut gaps)?;
    let (mmapped_count, mmapped_bytes) = match &totals {
        Ok(totals) => (Ok(totals.mmapped_count), Ok(totals.mmapped_bytes)),
        Err(gap) => (Err(gap.clone()), Err(gap.clone())),
    };
    let taken = mmapped::joined(
        owned
            .iter()
            .copied()
            .chain(arenas.iter().flat_map(|arena| arena.heaps.iter().map(|heap| heap.reserved))),
    );
    let mmapped = mmapped::read(target, &taken, totals.ok(), &mut gaps);
    let allocator = match find::version(target, &libc) {
        Some(version) => format!("glibc {version}"),
        None => "glibc".to_string(),
    };
    Ok(AllocView {
        allocator,
        arenas,
        mmapped,
        mmapped_count,
        mmapped_bytes,
        stretches: Vec::new(),
        in_use: Vec::new(),
        gaps,
    })
}
