//! malloc's memory in the account: how it divides, by arena and in all. Bytes come from the account's spans, so that they
//! sum to it; what only the walk knows (chunks, what a trim would give back) comes from the walk.

pub mod owners;

use super::area::Area;
use super::types::{Figures, Instance, MemoryMap, Owner};
use crate::alloc::{AllocView, Arena, ArenaFigures, BlockCount};
use crate::base::{Bytes, Gap, Known, Why};
use crate::jvm::BlockOwner;
use crate::snapshot::Snapshot;
use std::collections::HashMap;

/// How memory of malloc divides. The parts sum to `whole`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Divided {
    pub whole: Figures,
    /// Payload of blocks in use.
    pub in_use: Figures,
    /// In thread caches, bins and tops.
    pub freed: Figures,
    pub overhead: Figures,
    /// Behind the ends of arenas.
    pub beyond: Figures,
    pub unresolved: Figures,
    /// Memory whose chunks were not read.
    pub unwalked: Figures,
}

#[derive(Clone, Debug)]
pub struct ArenaSum<'a> {
    pub arena: &'a Arena,
    pub divided: Divided,
}

/// Blocks in use of one owner.
#[derive(Clone, Debug)]
pub struct OwnerSum<'a> {
    /// `None`: not known whose they are.
    pub owner: Option<&'a BlockOwner>,
    pub count: BlockCount,
}

/// malloc's memory in all.
#[derive(Clone, Debug)]
pub struct MallocSum<'a> {
    /// In the order of the ring.
    pub arenas: Vec<ArenaSum<'a>>,
    pub mmapped: Divided,
    /// Memory of an allocator that is not walked: blocks in use that are identified by their own headers, and the rest, which
    /// counts as unwalked. Not in `total`.
    pub other: Divided,
    pub total: Divided,
    /// By label, the ones that have blocks.
    pub owners: Vec<OwnerSum<'a>>,
    /// The sums over arenas, of what only the walk knows; an error where one was not walked, so that its chunks are missing. The
    /// walk looks at the pages of each heap anew: of a process that moves its resident bytes may differ from the account's.
    pub figures: Known<ArenaFigures>,
}

/// `None` where the allocator could not be read.
pub fn sum<'a>(snapshot: &'a Snapshot, map: &MemoryMap) -> Option<MallocSum<'a>> {
    let alloc = snapshot.alloc.as_ref().ok()?;
    let mut sum = MallocSum {
        arenas: alloc.arenas.iter().map(|arena| ArenaSum { arena, divided: Divided::default() }).collect(),
        mmapped: Divided::default(),
        other: Divided::default(),
        total: Divided::default(),
        owners: owners(snapshot, alloc),
        figures: Ok(ArenaFigures::default()),
    };
    let numbers = alloc.arenas.iter().map(|arena| arena.number);
    let places: HashMap<usize, usize> = numbers.enumerate().map(|(place, number)| (number, place)).collect();
    for (owner, share) in map.shares() {
        match owner.instance {
            Instance::Arena(number) => {
                let arena = places.get(&number).and_then(|place| sum.arenas.get_mut(*place));
                arena.into_iter().for_each(|arena| arena.divided.add(owner, &share.figures));
            }
            Instance::Mmapped => sum.mmapped.add(owner, &share.figures),
            Instance::OtherAllocator => {
                sum.other.add(owner, &share.figures);
                continue;
            }
            _ => continue,
        }
        sum.total.add(owner, &share.figures);
    }
    sum.figures = figures(alloc, &sum.total);
    Some(sum)
}

impl Divided {
    /// Resident bytes of malloc-then-freed: what is free, and what lies behind the ends of arenas.
    pub fn held_bytes(&self) -> Bytes {
        self.freed.resident.saturating_add(self.beyond.resident)
    }

    fn add(&mut self, owner: &Owner, figures: &Figures) {
        self.whole.add(figures);
        let part = match owner.area {
            _ if owners::WHOLE.contains(&owner.part.as_str()) => &mut self.unwalked,
            Area::MallocUnknown if owner.part.ends_with(owners::NOT_WALKED) => &mut self.unwalked,
            Area::MallocFreed if owner.part == owners::BEYOND => &mut self.beyond,
            Area::MallocFreed => &mut self.freed,
            // Blocks of the VM's own tracking of memory are overhead to the account, but in use to malloc.
            Area::Overhead if owners::OVERHEAD.contains(&owner.part.as_str()) => &mut self.overhead,
            Area::Unattributed => &mut self.unresolved,
            _ => &mut self.in_use,
        };
        part.add(figures);
    }
}

fn owners<'a>(snapshot: &'a Snapshot, alloc: &AllocView) -> Vec<OwnerSum<'a>> {
    let jvm = snapshot.jvm.as_ref().ok();
    let counts = alloc.in_use.iter().enumerate().filter(|(_, count)| count.blocks > 0);
    counts
        .map(|(label, count)| OwnerSum {
            owner: jvm.zip(label.try_into().ok()).and_then(|(jvm, label)| owners::labelled(jvm, label)),
            count: *count,
        })
        .collect()
}

fn figures(alloc: &AllocView, divided: &Divided) -> Known<ArenaFigures> {
    if alloc.arenas.is_empty() || divided.unwalked.reserved > 0 && alloc.intervals.is_empty() {
        return Err(Gap::new("malloc's chunks", Why::NotRead));
    }
    let mut sum = ArenaFigures::default();
    for arena in &alloc.arenas {
        sum.add(arena.figures.as_ref().map_err(Gap::clone)?);
    }
    Ok(sum)
}

#[cfg(test)]
#[path = "malloc/tests.rs"]
mod tests;
