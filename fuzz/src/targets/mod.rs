//! The readers that are fuzzed, by name: `fuzz/run` gives the name of one in $MARUSA_FUZZ.

mod account_json;
mod core;
mod damaged_jvm;
mod elf;
mod frozen_bomb;
mod frozen_file;
mod gc_log;
mod jvm_text;
mod malloc_heap;
mod maps;
mod names;
mod plan;
mod proc_text;
mod recording;
mod recording_bomb;
mod trace;
mod vmstructs;

/// What reads the bytes of an input.
pub type Reader = fn(&[u8]);

pub const ALL: &[(&str, Reader)] = &[
    ("account_json", account_json::run),
    ("core", core::run),
    ("damaged_jvm", damaged_jvm::run),
    ("elf", elf::run),
    ("frozen_bomb", frozen_bomb::run),
    ("frozen_file", frozen_file::run),
    ("gc_log", gc_log::run),
    ("jvm_text", jvm_text::run),
    ("malloc_heap", malloc_heap::run),
    ("maps", maps::run),
    ("names", names::run),
    ("plan", plan::run),
    ("proc_text", proc_text::run),
    ("recording", recording::run),
    ("recording_bomb", recording_bomb::run),
    ("trace", trace::run),
    ("vmstructs", vmstructs::run),
];
