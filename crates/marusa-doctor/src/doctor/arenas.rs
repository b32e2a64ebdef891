//! Many arenas of malloc, with freed memory in each: how much fewer of them could not hold. Two rules ask: the one about
//! arenas, and the one about freed memory, which leaves the warning to the first.

use super::{JvmFacts, Level};
use crate::base::{Bytes, Known};
use crate::map::trim::ArenaPrediction;

/// The number to keep: the main arena and one for threads; with many CPUs their threads would meet at one lock too often.
const KEPT: usize = 2;
const KEPT_MANY_CPUS: usize = 4;
const MANY_CPUS: u32 = 8;
/// Fewer than this beyond the ones that are kept are not spread.
const BEYOND_MIN: usize = 2;
const INFO_BYTES: Bytes = 32 << 20;
const INFO_PERCENT: f64 = 5.0;
const WARN_BYTES: Bytes = 64 << 20;
const WARN_PERCENT: f64 = 10.0;
/// An arena that holds less is not counted among the ones that hold some.
const HOLDS_BYTES: Bytes = 1 << 20;

/// Freed memory in arenas beyond the few that hold the most.
pub struct Spread {
    pub kept: usize,
    pub arenas: usize,
    /// The number of arenas that hold some.
    pub holding: usize,
    pub freed_bytes: Bytes,
    pub beyond_bytes: Bytes,
    pub attached_threads: u64,
    /// MALLOC_ARENA_MAX or glibc.malloc.arena_max.
    pub set: Known<Option<u64>>,
}

impl Spread {
    pub fn of(jvm: &JvmFacts) -> Option<Spread> {
        let freed = jvm.freed()?;
        let cpus = jvm.cpus.as_ref().map_or(1, |cpus| cpus.count());
        let kept = if cpus >= MANY_CPUS { KEPT_MANY_CPUS } else { KEPT };
        let of = |arena: &ArenaPrediction| arena.held.as_ref().map_or(0, |held| held.free_resident_bytes);
        let mut held: Vec<Bytes> = freed.arenas.iter().map(of).collect();
        held.sort_unstable_by(|a, b| b.cmp(a));
        let threads = freed.arenas.iter().filter_map(|arena| arena.attached_threads);
        Some(Spread {
            kept,
            arenas: held.len(),
            holding: held.iter().filter(|bytes| **bytes >= HOLDS_BYTES).count(),
            freed_bytes: freed.total.free_resident_bytes,
            beyond_bytes: held.iter().skip(kept).fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            attached_threads: threads.fold(0, u64::saturating_add),
            set: arena_max(jvm),
        })
    }

    /// `None`: fewer arenas would not help.
    pub fn level(&self, jvm: &JvmFacts) -> Option<Level> {
        let percent = jvm.percent_of_resident(self.beyond_bytes);
        let set = self.set.as_ref().ok().copied().flatten();
        if set.is_some_and(|set| set <= self.kept as u64) || self.holding < self.kept + BEYOND_MIN {
            return None;
        }
        match self.beyond_bytes {
            // The number was chosen deliberately.
            WARN_BYTES.. if percent >= WARN_PERCENT && set.is_none() => Some(Level::Warn),
            INFO_BYTES.. if percent >= INFO_PERCENT => Some(Level::Info),
            _ => None,
        }
    }
}

/// Whether this is a warning.
pub fn warns(jvm: &JvmFacts) -> bool {
    Spread::of(jvm).and_then(|spread| spread.level(jvm)) >= Some(Level::Warn)
}

/// What the user set (glibc's manual, "Memory Allocation Tunables"); 0 is not a limit.
fn arena_max(jvm: &JvmFacts) -> Known<Option<u64>> {
    let variable = jvm.variable("MALLOC_ARENA_MAX")?;
    let tunables = jvm.variable("GLIBC_TUNABLES")?.unwrap_or_default();
    let tunable = tunables.split(':').find_map(|one| one.strip_prefix("glibc.malloc.arena_max="));
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
    Ok(tunable.and_then(number).or_else(|| variable.and_then(number)))
}
