//! What a JVM says about itself: the answers of the attach protocol, its counters, its command line.

use marusa::jvm::command_line;
use marusa::jvm::hotspot::perf_memory;
use marusa::jvm::hotspot::report::{heap_info, malloc_info, nmt, system_map};
use std::hint::black_box;

pub fn run(bytes: &[u8]) {
    black_box(perf_memory::parse(bytes));
    for range in perf_memory::texts(bytes) {
        black_box(&bytes[range]);
    }
    let text = String::from_utf8_lossy(bytes);
    let _ = black_box(nmt::summary(&text));
    let _ = black_box(nmt::regions(&text));
    let _ = black_box(system_map::parse(&text));
    let _ = black_box(heap_info::parse(&text));
    let _ = black_box(malloc_info::parse(&text));
    let arguments: Vec<String> = text.split(['\0', '\n']).map(str::to_string).collect();
    black_box(command_line::parse(&arguments));
}
