//! The lists of free chunks, followed over the map of chunks. Chunks in bins are known to be free from the walk and their
//! size says in which bin they belong, so of the bins only the unsorted one is followed; chunks in fastbins look as if
//! they were in use, so every fastbin is. A list that a change tore ends at a chunk that was marked already or that
//! cannot be its next one.

use super::chunk_map::Code;
use super::layout::Layout;
use super::links::{Linking, Links};
use super::region::Region;
use crate::base::limits::LIST_CHUNKS_MAX;
use crate::base::{Addr, place_of};

pub const FASTBINS: usize = 10;
/// The place of the links in a chunk.
const NEXT: u64 = 16;
const PREVIOUS: u64 = 24;
/// Heaps of an arena are mapped near each other.
const NEAR_BYTES: u64 = 32 << 30;

/// The words of an arena from which its lists begin.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    pub fast: Vec<Addr>,
    /// The unsorted bin: first, last, and its own address as a chunk.
    pub unsorted: Option<(Addr, Addr, Addr)>,
}

impl Heads {
    /// From the bytes of a `malloc_state` at `arena`.
    pub fn of(layout: &Layout, arena: Addr, state: &[u8]) -> Heads {
        let word = |offset: u64| {
            let bytes = state.get(offset as usize..)?.first_chunk()?;
            Some(Addr(u64::from_le_bytes(*bytes)))
        };
        let fast = layout
            .fastbins()
            .map(|offset| (0..FASTBINS as u64).map_while(|bin| word(offset + bin * 8)).collect());
        let unsorted = word(layout.bins).zip(word(layout.bins + 8));
        Heads {
            fast: fast.unwrap_or_default(),
            unsorted: unsorted.map(|(first, last)| (first, last, arena.plus(layout.bins).minus(16))),
        }
    }
}

/// The region of `regions`, which are sorted by address, that holds `at`.
pub fn region_of(regions: &[Region], at: Addr) -> Option<usize> {
    place_of(regions, at, |region| region.map.range())
}

/// What begins at `at`: its region, and what it is.
fn code_at(regions: &[Region], at: Addr) -> Option<(usize, Code)> {
    let index = region_of(regions, at)?;
    Some((index, regions[index].map.get(at)?))
}

/// What begins at `at`: its region, what it is, and its size.
pub fn chunk_at(regions: &[Region], at: Addr) -> Option<(usize, Code, u64)> {
    let index = region_of(regions, at)?;
    let map = &regions[index].map;
    let code = map.get(at)?;
    Some((index, code, map.end_of(at).0 - at.0))
}

/// Which linking the lists of fastbins have; `None` without any list.
pub fn linking(regions: &[Region], heads: &Heads, links: &mut Links) -> Option<Linking> {
    heads.fast.iter().enumerate().find_map(|(bin, head)| {
        let (index, _, bytes) = chunk_at(regions, *head)?;
        let field = head.plus(NEXT);
        let word = links.word(&regions[index].resident, field)?;
        let fits = |linking: Linking| {
            let next = linking.follow(field, word);
            next.is_null() || chunk_at(regions, next).is_some_and(|(_, _, size)| size == bytes)
        };
        (bytes == fast_bytes(bin)).then(|| which(fits)).flatten()
    })
}

/// The linking that alone fits.
pub fn which(fits: impl Fn(Linking) -> bool) -> Option<Linking> {
    match (fits(Linking::Plain), fits(Linking::Safe)) {
        (true, false) => Some(Linking::Plain),
        (false, true) => Some(Linking::Safe),
        _ => None,
    }
}

/// The linking that a fastbin's first chunk at `head` with this link seems to have: lists stay near.
pub fn likely_linking(head: Addr, word: u64) -> Option<Linking> {
    which(|linking| {
        let next = linking.follow(head.plus(NEXT), word);
        next.is_null() || (next.is_aligned(16) && next.0.abs_diff(head.0) < NEAR_BYTES)
    })
}

fn fast_bytes(bin: usize) -> u64 {
    (bin as u64 + 2) * 16
}

/// Marks what the lists of one arena hold. `regions`: those of the arena, sorted by address.
pub fn mark(regions: &mut [Region], heads: &Heads, linking: Linking, links: &mut Links) {
    for (bin, head) in heads.fast.iter().enumerate() {
        mark_fast(regions, *head, fast_bytes(bin), linking, links);
    }
    if let Some((first, last, bin)) = heads.unsorted {
        let is_whole = mark_unsorted(regions, first, bin, NEXT, links);
        if !is_whole {
            mark_unsorted(regions, last, bin, PREVIOUS, links);
        }
    }
}

fn mark_fast(regions: &mut [Region], head: Addr, bytes: u64, linking: Linking, links: &mut Links) {
    let mut at = head;
    for _ in 0..LIST_CHUNKS_MAX {
        let Some((index, code, size)) = chunk_at(regions, at) else { return };
        let looks_used = code.label().is_some() || code == Code::TCACHE;
        if !looks_used || size != bytes {
            return;
        }
        regions[index].map.put(at, Code::FAST);
        let known = regions[index].links.next(at);
        let field = at.plus(NEXT);
        let read = || Some(linking.follow(field, links.word(&regions[index].resident, field)?));
        let Some(next) = known.or_else(read) else { return };
        at = next;
    }
}

/// Whether the list led back to its bin.
fn mark_unsorted(regions: &mut [Region], from: Addr, bin: Addr, link: u64, links: &mut Links) -> bool {
    let mut at = from;
    for _ in 0..LIST_CHUNKS_MAX {
        if at == bin {
            return true;
        }
        match code_at(regions, at) {
            Some((index, Code::SMALL | Code::LARGE)) => {
                regions[index].map.put(at, Code::UNSORTED);
                let known = if link == NEXT { known_next(&mut regions[index], at) } else { None };
                let read = || links.word(&regions[index].resident, at.plus(link)).map(Addr);
                let Some(next) = known.or_else(read) else { return false };
                at = next;
            }
            _ => return false,
        }
    }
    false
}

/// Where a chunk in the unsorted bin leads, if the walk kept it.
fn known_next(region: &mut Region, at: Addr) -> Option<Addr> {
    let before = || if region.plan.kept.unsorted { region.map.free_before(at) } else { None };
    match region.links.next(at) {
        None if region.links.are_complete() => before(),
        known => known,
    }
}
