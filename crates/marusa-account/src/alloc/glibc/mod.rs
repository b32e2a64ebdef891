//! glibc's malloc: which bytes are its own. Its layouts differ by version and by vendor, so none is looked up: each is
//! derived from the shape of the data and proved by sums that malloc keeps itself (`system_mem`, `mp_.n_mmaps`).
//!
//! Sources: malloc/malloc.c and malloc/arena.c, glibc 2.15 to 2.43.

pub mod arena;
pub mod chunk_entries;
pub mod chunk_map;
pub mod figures;
pub mod find;
pub mod known_links;
pub mod layout;
pub mod links;
pub mod lists;
pub mod main_arena;
pub mod mmapped;
pub mod plan;
pub mod region;
mod resync;
mod split;
#[cfg(any(test, fuzzing))]
#[path = "synthetic_tests.rs"]
pub mod synthetic;
pub mod tcache;
pub mod walk;
pub mod walker;
pub mod window;

use crate::alloc::types::{AllocView, ArenaFigures};
use crate::base::blocks::Witness;
use crate::base::{Gap, Known, Range, Why};
use crate::os::Target;
use crate::os::memory::Fault;
use walk::Walked;

/// The gap in an arena whose chunks were not looked at.
fn not_walked() -> Gap {
    Gap::new("chunks of an arena", Why::NotRead)
}

/// Reads the arenas and the mmapped chunks, and walks them. `owned` is sorted and disjoint: what is not malloc's, so need
/// not be searched. `witness` is asked about each block in use.
pub fn read(target: &Target, owned: &[Range], witness: &dyn Witness) -> Known<(AllocView, Walked)> {
    let mut gaps = Vec::new();
    let libc = find::library(target, &mut gaps)?;
    let layout = find::layout(target, &libc)?;
    let totals = layout::Totals::find(target, &libc, &layout);
    let sbrk_base = totals.as_ref().ok().map(|totals| totals.sbrk_base);
    let mut arenas = arena::read(target, &layout, sbrk_base, owned, &mut gaps)?;
    let mmapped = mmapped::read(target, &arena::taken(owned, &arenas), totals.ok(), &mut gaps);
    let walked = walk::read(target, &layout, &arenas, &mmapped, witness);
    for region in &walked.regions {
        let arena = &mut arenas[region.plan.arena];
        arena.heaps[region.plan.heap] = region.plan.ranges.clone();
        arena.figures = Ok(ArenaFigures::default());
    }
    note(target, &walked, &mut gaps);
    let allocator = match find::version(target, &libc) {
        Some(version) => format!("glibc {version}"),
        None => "glibc".to_string(),
    };
    Ok((AllocView { allocator, arenas, mmapped, gaps, ..AllocView::default() }, walked))
}

/// What the walk could not decide.
fn note(target: &Target, walked: &Walked, gaps: &mut Vec<Gap>) {
    let broken: Vec<Fault> = walked.regions.iter().filter_map(|region| region.broken).collect();
    if let Some(Fault { at, why }) = broken.first() {
        let what = format!(
            "chunks in {} of {} heaps of malloc, the first at {at}",
            broken.len(),
            walked.regions.len()
        );
        // A chunk that makes no sense is one that changed in the meantime.
        let why = if matches!(why, Why::BadData(_)) { Why::Torn } else { *why };
        gaps.push(Gap::new(what, why).hint("their bytes are shown as unresolved"));
    }
    let is_new = |region: &&region::Region| target.mapping(region.map.range().start).is_none();
    let new = walked.regions.iter().filter(is_new).count();
    if new > 0 {
        let gap = Gap::new(format!("pages of {new} heaps of malloc"), Why::Torn);
        gaps.push(
            gap.hint("they were mapped after the mappings were read: in the sums of their arenas only"),
        );
    }
    if walked.gone > 0 {
        gaps.push(Gap::new(crate::base::counted(walked.gone, "heap") + " of malloc", Why::Gone));
    }
    if walked.lists_left {
        let gap = Gap::new("lists of free chunks", Why::OverLimit);
        gaps.push(
            gap.hint("their free lists exceed the read limit: some chunks of fastbins count as in use"),
        );
    }
    if target.view.pages.is_err() {
        gaps.push(Gap::new("which of malloc's free memory is resident", Why::Denied));
    }
}

#[cfg(test)]
mod walk_tests;
