//! The tables by which a JVM describes itself, and its flags, damaged. As `damaged_jvm`, but every hit is in the tables.

use crate::damage::{self, Damaged};
use crate::recorded;
use marusa::jvm::hotspot::find;
use marusa::jvm::hotspot::flags::Flags;
use marusa::jvm::hotspot::vmstructs::VmStructs;
use marusa::os::Target;
use marusa::os::memory::Memory;
use marusa::os::recording::Recording;
use marusa::os::target::{NoSymbols, OsView};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

fn read(os: &OsView, memory: &dyn Memory) {
    let target = Target { view: os, memory, symbols: &NoSymbols };
    let Ok(image) = find::library(&target) else { return };
    black_box(image.build_id(memory));
    let Ok(structs) = VmStructs::read(memory, &image) else { return };
    if let Ok(flags) = Flags::read(memory, &structs) {
        black_box(flags.kept());
    }
}

/// Where the tables lie: what is read for them.
fn pieces(choice: u8) -> Vec<(u64, u64)> {
    static KNOWN: Mutex<Option<HashMap<u8, Vec<(u64, u64)>>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let find = || {
        let frozen = &recorded::choose(choice).frozen;
        let recording = Recording::of(&frozen.memory, &frozen.os.mappings);
        read(&frozen.os, &recording);
        recording.into_seen().pieces().iter().map(|(at, bytes)| (at.0, bytes.len() as u64)).collect()
    };
    known.entry(choice).or_insert_with(find).clone()
}

pub fn run(bytes: &[u8]) {
    let [choice, steps @ ..] = bytes else { return };
    let recorded = recorded::choose(*choice);
    let mut memory = Damaged::of(&recorded.frozen.memory);
    let mut os = recorded.frozen.os.clone();
    damage::apply(steps, recorded, &pieces(*choice), &mut memory, &mut os);
    read(&os, &memory);
}
