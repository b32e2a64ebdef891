//! NMT's tags and the areas of the account that each may stand for: the one table of them, by both of the names under
//! which the JVM prints them.
//!
//! Sources: memTag.hpp (JDK 24; memflags.hpp, allocation.hpp before) for the tags and the names of the summary,
//! memMapPrinter.cpp for the short names of System.map.

use crate::map::area::Area;

pub struct Tag {
    /// In `VM.native_memory`.
    pub name: &'static str,
    /// In `System.map`.
    pub short: &'static str,
    /// The areas that memory of this tag may be in; none: the tag says nothing that could be compared.
    pub areas: &'static [Area],
}

const fn tag(name: &'static str, short: &'static str, areas: &'static [Area]) -> Tag {
    Tag { name, short, areas }
}

const WORK: &[Area] = &[Area::JvmWork];

pub const TAGS: &[Tag] = &[
    // The archive of classes brings heap objects, which are mapped into the heap.
    tag("Java Heap", "JAVAHEAP", &[Area::JavaHeap, Area::CdsArchive]),
    tag("Class", "CLASS", &[Area::ClassMetadata]),
    tag("Metaspace", "META", &[Area::ClassMetadata]),
    // The summary counts stacks under "Thread"; its malloc and arenas are the threads' structures.
    tag("Thread", "mtThread", WORK),
    tag("Thread Stack", "STACK", &[Area::Stack]),
    // The segment maps of the code heaps are tagged as code.
    tag("Code", "CODE", &[Area::JitCode, Area::JitWork]),
    tag("GC", "GC", &[Area::Gc]),
    tag("GCCardSet", "CARDTBL", &[Area::Gc]),
    tag("Compiler", "mtCompiler", &[Area::JitWork]),
    tag("JVMCI", "mtJVMCI", &[Area::JitWork]),
    tag("Internal", "INTERN", WORK),
    tag("Other", "JDK", &[Area::DirectBuffers, Area::NativeLibrary, Area::JvmWork, Area::MallocUnknown]),
    tag("Symbol", "mtSymbol", WORK),
    tag("Native Memory Tracking", "mtNMT", &[Area::Overhead, Area::JvmWork]),
    tag("Shared class space", "CDS", &[Area::CdsArchive]),
    tag("Arena Chunk", "mtChunk", &[Area::JitWork, Area::JvmWork]),
    tag("Test", "TEST", WORK),
    tag("Tracing", "mtTracing", WORK),
    tag("Logging", "mtLogging", WORK),
    tag("Statistics", "mtStatistics", WORK),
    tag("Arguments", "mtArguments", WORK),
    tag("Module", "mtModule", WORK),
    tag("Synchronizer", "mtSynchronizer", WORK),
    tag("Synchronization", "mtSynchronizer", WORK),
    tag("Safepoint", "POLL", WORK),
    tag("Serviceability", "mtServiceability", WORK),
    tag("String Deduplication", "mtStringDedup", WORK),
    tag("Object Monitors", "mtObjectMonitor", WORK),
    // What was reserved before its owner was known. JDK 17 leaves the class space so where there is no CDS archive.
    tag("Unknown", "mtNone", &[]),
];

/// The areas that a tag may stand for, by either name; empty for a tag that is not known.
pub fn areas(name: &str) -> &'static [Area] {
    TAGS.iter().find(|tag| tag.name == name || tag.short == name).map_or(&[], |tag| tag.areas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_lead_to_the_same_areas() {
        assert_eq!(areas("Shared class space"), areas("CDS"));
        assert_eq!(areas("Class"), [Area::ClassMetadata]);
        assert!(areas("POLL").contains(&Area::JvmWork));
        assert!(areas("no such tag").is_empty());
    }
}
