//! Damaged bytes for every reader of bytes: one libFuzzer program, since each more would link all of Marusa again. The rest is what
//! the readers share: recorded JVMs, and the damage that the bytes of an input describe.
#![no_main]

mod bound;
mod damage;
mod recorded;
mod targets;

use marusa::base::limits::{INPUT_PROCESS_BYTES_FREE, INPUT_PROCESS_FACTOR};
use marusa::snapshot::Snapshot;
use marusa::{map, show};
use std::sync::OnceLock;

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
    let account = map::Account::of(snapshot, &joined);
    std::hint::black_box(serde_json::to_string(&account)).expect("the model is JSON");
    show::text::head(&mut std::io::sink(), &account).expect("a sink takes all");
    show::text::by_part(&mut std::io::sink(), &account).expect("a sink takes all");
}

fn chosen() -> targets::Reader {
    let name = std::env::var("MARUSA_FUZZ").unwrap_or_default();
    let known: Vec<&str> = targets::ALL.iter().map(|(name, _)| *name).collect();
    match targets::ALL.iter().find(|(known, _)| *known == name) {
        Some((_, run)) => *run,
        None => panic!("MARUSA_FUZZ={name} names no fuzzer: set it to one of {}", known.join(", ")),
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static CHOSEN: OnceLock<targets::Reader> = OnceLock::new();
    CHOSEN.get_or_init(chosen)(bytes);
});
