//! Whose malloc's bytes are: each state that the walk of the heap found is an owner of the account.

use crate::alloc::{AllocView, Interval, State};
use crate::base::blocks::Label;
use crate::base::{Bytes, Range, holding};
use crate::jvm::{BlockOwner, JvmView};
use crate::map::area::{Area, of_kind};
use crate::map::claim::{Claim, ClaimShare, Claims, RANK_ALLOC, RANK_INTERVAL, how};
use crate::map::types::{Instance, Owner};
use std::collections::HashMap;

/// Blocks in use with no known owner.
pub const OWNER_UNKNOWN: &str = "malloc, owner unknown";
pub const BEYOND: &str = "malloc arenas, not in use yet";
/// The part of an allocator that is not walked, after its name.
pub const NOT_WALKED: &str = ": free, its own tables, other libraries'";
/// There is some of it wherever chunks were walked.
pub const HEADERS: &str = "malloc, chunk headers and rounding";
const NMT_HEADERS: &str = "NMT headers of blocks";
pub const OVERHEAD: [&str; 2] = [HEADERS, NMT_HEADERS];
const UNRESOLVED: &str = "malloc, unresolved";
/// Memory whose chunks were not walked.
const MAIN_ARENA: &str = "malloc main arena";
const THREAD_ARENAS: &str = "malloc thread arenas";
const MMAPPED: &str = "malloc mmapped chunks";
pub const WHOLE: [&str; 3] = [MAIN_ARENA, THREAD_ARENAS, MMAPPED];

/// What [heap] is where no arena claims it.
pub fn unwalked_main_arena(how: &str) -> Owner {
    owner(Area::MallocUnknown, MAIN_ARENA, Instance::Arena(0), how)
}

/// malloc's claims: its memory as a whole, and stronger, what the walk found in it.
pub fn claim(alloc: &AllocView, jvm: Option<&JvmView>, claims: &mut Claims) {
    of_whole(alloc, claims);
    let mut mmapped = alloc.mmapped.clone();
    mmapped.sort();
    let is_mapped = |range: Range| holding(&mmapped, range.start).is_some_and(|whole| whole.covers(range));
    // The owners of each arena's states. A heap has thousands of ranges, but an arena has a few dozen states.
    let mut known: HashMap<Instance, Vec<(State, usize)>> = HashMap::new();
    for interval in &alloc.intervals {
        let instance = match interval.arena {
            Some(arena) => Instance::Arena(arena),
            None if alloc.other.is_some() && !is_mapped(interval.range) => Instance::OtherAllocator,
            None => Instance::Mmapped,
        };
        let known = known.entry(instance.clone()).or_default();
        let shares: Vec<ClaimShare> = shares(interval)
            .map(|(state, bytes)| {
                let owner = known.iter().find(|(known, _)| *known == state).map(|(_, owner)| *owner);
                let owner = owner.unwrap_or_else(|| {
                    known.push((state, claims.owner(of_state(state, instance.clone(), jvm, alloc))));
                    claims.owners.len() - 1
                });
                ClaimShare { owner, bytes, in_use: in_use(state, bytes) }
            })
            .collect();
        if !shares.is_empty() {
            claims.list.push(Claim { range: interval.range, rank: RANK_INTERVAL, shares });
        }
    }
}

fn shares(interval: &Interval) -> impl Iterator<Item = (State, Bytes)> {
    interval.shares.iter().copied().filter(|(_, bytes)| *bytes > 0)
}

fn in_use(state: State, bytes: Bytes) -> Option<Bytes> {
    match state {
        State::InUse(_) => Some(bytes),
        State::Unresolved | State::NotWalked => None,
        _ => Some(0),
    }
}

/// Arenas and mapped chunks whole: what stays of them was not walked.
fn of_whole(alloc: &AllocView, claims: &mut Claims) {
    let mut claim = |range: Range, owner: Owner| claims.one(range, RANK_ALLOC, owner, None);
    for arena in &alloc.arenas {
        let part = if arena.number == 0 { MAIN_ARENA } else { THREAD_ARENAS };
        for heap in &arena.heaps {
            let instance = Instance::Arena(arena.number);
            claim(heap.in_arena, owner(Area::MallocUnknown, part, instance.clone(), "arena ring"));
            if heap.reserved != heap.in_arena {
                claim(heap.reserved, owner(Area::MallocFreed, BEYOND, instance, "arena ring"));
            }
        }
    }
    for range in &alloc.mmapped {
        claim(*range, owner(Area::MallocUnknown, MMAPPED, Instance::Mmapped, "chunk header"));
    }
}

fn of_state(state: State, instance: Instance, jvm: Option<&JvmView>, alloc: &AllocView) -> Owner {
    let (area, part, how) = match state {
        State::InUse(label) => return in_use_by(label, instance, jvm),
        State::Tcache => (Area::MallocFreed, "in thread caches", "thread cache"),
        State::Fast => (Area::MallocFreed, "in fast bins", "free list"),
        State::Unsorted => (Area::MallocFreed, "unsorted", "free list"),
        State::Small => (Area::MallocFreed, "in small bins", "free list"),
        State::Large => (Area::MallocFreed, "in large bins", "free list"),
        State::Unlisted => (Area::MallocFreed, "on no list", "chunk header"),
        State::Top if instance == Instance::Arena(0) => {
            (Area::MallocFreed, "top of the main arena", "top chunk")
        }
        State::Top => (Area::MallocFreed, "tops of thread arenas", "top chunk"),
        State::NotWalked => return not_walked(instance, alloc),
        State::Overhead if instance == Instance::OtherAllocator => {
            (Area::Overhead, NMT_HEADERS, "NMT header")
        }
        State::Overhead => (Area::Overhead, HEADERS, "chunk header"),
        State::Beyond => (Area::MallocFreed, BEYOND, "arena ring"),
        State::Unresolved => (Area::Unattributed, UNRESOLVED, "not walked to the end"),
    };
    owner(area, part, instance, how)
}

fn not_walked(instance: Instance, alloc: &AllocView) -> Owner {
    let (title, how) = match &alloc.other {
        Some(other) => (other.title(), other.how.as_str()),
        None => (alloc.allocator.clone(), "no claim"),
    };
    owner(Area::MallocUnknown, &format!("{title}{NOT_WALKED}"), instance, how)
}

/// The owner that the runtime gave a label to.
fn in_use_by(label: Label, instance: Instance, jvm: Option<&JvmView>) -> Owner {
    match jvm.and_then(|jvm| labelled(jvm, label)) {
        Some(by) => Owner { area: of_kind(by.kind), part: by.part.clone(), instance, how: how(&by.how) },
        None => owner(Area::MallocUnknown, OWNER_UNKNOWN, instance, "chunk header"),
    }
}

/// What the runtime calls blocks with this label; `None` for the label of the unknown.
pub fn labelled(jvm: &JvmView, label: Label) -> Option<&BlockOwner> {
    jvm.block_owners.get(usize::from(label).checked_sub(1)?)
}

fn owner(area: Area, part: &str, instance: Instance, how: &str) -> Owner {
    Owner { area, part: part.to_string(), instance, how: how.to_string() }
}
