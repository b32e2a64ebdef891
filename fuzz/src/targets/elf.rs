//! An ELF image made of the input, as it would lie in memory.

use marusa::base::{Addr, Range};
use marusa::os::elf::Image;
use marusa::os::flat::Flat;
use marusa::os::maps::{Mapping, Rights};
use std::hint::black_box;

const START: u64 = 0x7f00_0000_0000;

pub fn run(bytes: &[u8]) {
    let memory = Flat::of([(Addr(START), bytes)]);
    let rights = Rights { read: true, write: false, execute: true, shared: false };
    let first = Mapping {
        range: Range::of(START, START + 0x10000),
        rights,
        offset: 0,
        device: "fe:00".to_string(),
        inode: 1,
        path: "/usr/lib/libjvm.so".to_string(),
    };
    let Ok(image) = Image::read(&memory, &first) else { return };
    black_box(image.extent());
    black_box(image.build_id(&memory));
    for name in ["gHotSpotVMStructs", "jvm_version", ""] {
        let _ = black_box(image.exported(&memory, name));
    }
}
