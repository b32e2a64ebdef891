//! What the targets share: recorded JVMs, and the damage that the bytes of an input describe.

pub mod bound;
pub mod damage;
pub mod recorded;

use marusa::base::limits::{INPUT_PROCESS_BYTES_FREE, INPUT_PROCESS_FACTOR};
use marusa::snapshot::Snapshot;
use marusa::{map, show};

/// What reading a file of this length and printing what is in it may take.
pub fn allowed(file_bytes: usize) -> u64 {
    INPUT_PROCESS_BYTES_FREE + INPUT_PROCESS_FACTOR * file_bytes as u64
}

/// The whole way of a snapshot to its account; the laws hold whatever the target's bytes say.
pub fn account(snapshot: &Snapshot) {
    let joined = map::join(snapshot);
    if let Err(broken) = map::law::check(&joined, snapshot) {
        panic!("a law is broken: {broken}");
    }
    std::hint::black_box(show::json::map(snapshot, &joined).to_string());
}
