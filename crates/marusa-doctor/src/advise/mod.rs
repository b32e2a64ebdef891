//! Which container limit, -Xmx and malloc options a workload needs, from what its JVMs were seen to need over time. Nothing here
//! reads a file or a network: recordings come in as histories (`record`), and the advice goes out as one model.
//!
//! A limit is a sum whose parts are known one by one: the heap at -Xmx, the collector's tables that grow with it, the highest
//! joint need next to the heap that was seen (`need`), what `leak` says grows (`limit`), and a reserve that depends on how much
//! was seen. No percentage of the whole is added, and what cannot be judged is named instead of guessed.

mod budget;
mod check;
mod heap;
mod limit;
mod malloc;
mod need;
#[cfg(test)]
mod tests;
mod workload;

pub use budget::{Budget, HeapShare, split};
pub use check::{Check, Earlier, Outcome, check};
pub use heap::{Decided, Heap};
pub use limit::{Growing, Limit, Part, Peak};
pub use malloc::Malloc;
pub use workload::{CodeCache, Key, Observed, Workload};

use crate::base::Bytes;
use crate::record::History;
use std::time::Duration;

/// What the advice is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// How far ahead growth is counted.
    pub until: Duration,
    /// The share of time that collections may take, 0 to 1.
    pub gc_ratio: f64,
}

/// One for each workload, by name.
pub fn workloads(jvms: &[&History], wanted: Wanted) -> Vec<Workload> {
    let shared = workload::shared_containers(jvms);
    workload::groups(jvms).into_iter().map(|(key, jvms)| Workload::of(key, &jvms, &shared, wanted)).collect()
}

const MIB: Bytes = 1 << 20;
/// Recommended limits and heaps are multiples of this.
const STEP: Bytes = 16 * MIB;

fn stepped(bytes: Bytes) -> Bytes {
    bytes.checked_next_multiple_of(STEP).unwrap_or(Bytes::MAX)
}
