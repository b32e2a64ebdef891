//! The few facts of a VM that a list of JVMs shows, without reading the heap or the threads.

use super::flags::Flags;
use super::perf_memory::PerfMemory;
use super::vmstructs::VmStructs;
use super::{Hotspot, find, heap, launch, version};
use crate::base::{Bytes, Known, Range};
use crate::jvm::types::Gc;
use crate::os::maps::Mapping;
use crate::os::{Target, loaded};

#[derive(Clone, Debug)]
pub struct Summary {
    pub version: Known<String>,
    pub gc: Known<Gc>,
    pub max_heap_bytes: Known<Bytes>,
    pub transparent_huge_pages: Known<bool>,
    /// The main class or jar with its arguments.
    pub java_command: Known<String>,
}

/// Reads them. Fails when the tables of the VM cannot be read.
pub fn read(target: &Target) -> Known<Summary> {
    let image = find::library(target)?;
    let structs = VmStructs::read(target.memory, &image)?;
    let version = version::read(target.memory, &structs);
    let major = version.as_deref().ok().and_then(version::major);
    let flags = Flags::read(target.memory, &structs)?;
    let leads = Default::default();
    let vm = Hotspot { target, image: &image, structs: &structs, flags: &flags, major, leads: &leads };
    let counters = PerfMemory::read(target.memory, &structs);
    Ok(Summary {
        gc: heap::collector(&vm),
        max_heap_bytes: flags.number("MaxHeapSize"),
        transparent_huge_pages: flags.text("UseTransparentHugePages").map(|value| value == "true"),
        java_command: match launch::read(target.memory, &structs) {
            Some(launch) if !launch.java_command.is_empty() => Ok(launch.java_command),
            _ => counters.map(|it| it.text("sun.rt.javaCommand").unwrap_or_default().to_string()),
        },
        version,
    })
}

/// Where the facts lie: libjvm's image, the counters, and the C heap, which holds the flags' texts. The Java heap, which
/// takes the longest to scan, is not among them.
pub fn ranges(mappings: &[Mapping]) -> Vec<Range> {
    const C_HEAP_BYTES_MAX: u64 = 64 << 20;
    let images: Vec<&Mapping> = loaded::hotspot(mappings);
    let is_of_image = |mapping: &Mapping| images.iter().any(|image| image.is_of_same_file(mapping));
    let is_wanted = |mapping: &&Mapping| {
        let is_c_heap = mapping.is_anonymous() && mapping.rights.write && !mapping.rights.execute;
        is_of_image(mapping)
            || mapping.path.contains("hsperfdata")
            || is_c_heap && (mapping.path == "[heap]" || mapping.range.bytes() <= C_HEAP_BYTES_MAX)
    };
    mappings.iter().filter(is_wanted).map(|mapping| mapping.range).collect()
}
