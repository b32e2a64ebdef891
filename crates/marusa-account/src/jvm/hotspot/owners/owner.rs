//! The owners that blocks of malloc are given to: the area and part of the account, NMT's tag for such a block, by which
//! the labels are measured, and how it is known.

use crate::jvm::types::{BlockOwner, How, Kind};

/// Whose a block is, and how it is known. The order is that of `TABLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Owner {
    Symbols,
    SymbolTable,
    StringTable,
    StringHandles,
    ClassHandles,
    MonitorHandles,
    InternalHandles,
    ThreadHandles,
    ServiceHandles,
    DedupHandles,
    Chunks,
    SymbolChunks,
    ThreadChunks,
    CompilerChunks,
    OopMaps,
    BlobData,
    BlobBranch,
    Loaders,
    LoaderBranch,
    ClassBranch,
    ClassEntries,
    Modules,
    Metaspace,
    MetaspaceHeaders,
    GcBuffers,
    GcBranch,
    TaskQueues,
    Threads,
    ThreadBranch,
    HandleBlocks,
    Monitors,
    MonitorsByHandle,
    MonitorBlocks,
    Locks,
    LockNames,
    DirectBuffers,
    Zlib,
    Last,
}

#[derive(Clone, Copy)]
enum Way {
    Field,
    Shape,
    From(&'static str),
}

struct Row {
    owner: Owner,
    kind: Kind,
    part: &'static str,
    tag: &'static str,
    way: Way,
}

const fn row(owner: Owner, kind: Kind, part: &'static str, tag: &'static str, way: Way) -> Row {
    Row { owner, kind, part, tag, way }
}

use Kind::{DirectBuffers as Direct, Gc, JitWork, NativeLibrary, VmWork};
use Way::{Field, From, Shape};

const TABLE: [Row; Owner::COUNT] = [
    row(Owner::Symbols, VmWork, "symbols", "Symbol", Shape),
    row(Owner::SymbolTable, VmWork, "symbol table", "Symbol", From("what points to symbols")),
    row(
        Owner::StringTable,
        VmWork,
        "string table",
        "Symbol",
        From("what points to handles of the string table"),
    ),
    row(Owner::StringHandles, VmWork, "string table", "Symbol", From("OopStorage")),
    row(Owner::ClassHandles, VmWork, "method handles' table", "Class", From("OopStorage")),
    row(Owner::MonitorHandles, VmWork, "object monitors", "Synchronization", From("OopStorage")),
    row(Owner::InternalHandles, VmWork, "JNI handles", "Internal", From("OopStorage")),
    row(Owner::ThreadHandles, VmWork, "threads", "Thread", From("OopStorage")),
    row(Owner::ServiceHandles, VmWork, "serviceability", "Serviceability", From("OopStorage")),
    row(Owner::DedupHandles, VmWork, "string deduplication", "String Deduplication", From("OopStorage")),
    row(Owner::Chunks, JitWork, "arena chunks", "Arena Chunk", Shape),
    row(Owner::SymbolChunks, VmWork, "symbols", "Arena Chunk", From("the symbol table")),
    row(Owner::ThreadChunks, VmWork, "threads' arenas", "Arena Chunk", From("Thread")),
    row(Owner::CompilerChunks, JitWork, "compiler threads' arenas", "Arena Chunk", From("Thread")),
    row(Owner::OopMaps, JitWork, "oop maps of compiled code", "Code", Shape),
    row(Owner::BlobData, JitWork, "data of compiled code", "Code", Field),
    row(Owner::BlobBranch, JitWork, "data of compiled code", "Code", From("CodeBlob")),
    row(Owner::Loaders, VmWork, "class loaders", "Class", Field),
    row(Owner::LoaderBranch, VmWork, "class loaders", "Class", From("ClassLoaderData")),
    row(Owner::ClassBranch, VmWork, "classes", "Class", From("InstanceKlass")),
    row(Owner::ClassEntries, VmWork, "class tables", "Class", Shape),
    row(Owner::Modules, VmWork, "modules and packages", "Module", From("ClassLoaderData")),
    row(Owner::Metaspace, VmWork, "metaspace's lists", "Metaspace", From("ClassLoaderData")),
    row(Owner::MetaspaceHeaders, VmWork, "metaspace's lists", "Metaspace", From("MetaspaceArena")),
    row(Owner::GcBuffers, Gc, "collector's queues", "GC", Shape),
    row(Owner::GcBranch, Gc, "collector's objects", "GC", From("Universe::_collectedHeap")),
    row(Owner::TaskQueues, Gc, "collector's task queues", "GC", Shape),
    row(Owner::Threads, VmWork, "threads", "Thread", Field),
    row(Owner::ThreadBranch, VmWork, "threads", "Thread", From("Thread")),
    row(Owner::HandleBlocks, VmWork, "JNI handles", "Internal", From("JavaThread::_active_handles")),
    row(Owner::Monitors, VmWork, "object monitors", "Object Monitors", Field),
    row(Owner::MonitorsByHandle, VmWork, "object monitors", "Object Monitors", Shape),
    row(Owner::MonitorBlocks, VmWork, "object monitors", "Internal", From("ObjectSynchronizer::gBlockList")),
    row(Owner::Locks, VmWork, "locks", "Synchronization", Shape),
    row(Owner::LockNames, VmWork, "locks", "Internal", Shape),
    row(Owner::DirectBuffers, Direct, "direct buffers", "Other", From("Cleaner.first")),
    row(Owner::Zlib, NativeLibrary, "zlib", "", From("z_stream")),
];

impl Owner {
    pub const COUNT: usize = Owner::Last as usize;

    pub fn all() -> impl Iterator<Item = Owner> {
        TABLE.iter().map(|row| row.owner)
    }

    /// How this release of the JDK calls the tag.
    fn tag(self, major: Option<u32>) -> &'static str {
        let tag = TABLE[self as usize].tag;
        match self {
            // As NMT's headers say it in 11 and in 17; what lies between was not looked at.
            Owner::StringHandles
            | Owner::ClassHandles
            | Owner::MonitorHandles
            | Owner::InternalHandles
            | Owner::ThreadHandles
            | Owner::ServiceHandles
            | Owner::DedupHandles
                if major < Some(16) =>
            {
                "GC"
            }
            Owner::Metaspace | Owner::MetaspaceHeaders if major < Some(16) => "Class",
            Owner::DirectBuffers if major < Some(11) => "Internal",
            _ if tag == "Synchronization" && major < Some(17) => "Synchronizer",
            _ => tag,
        }
    }

    pub fn describe(self, major: Option<u32>) -> BlockOwner {
        let row = &TABLE[self as usize];
        let how = match row.way {
            Field => How::VmStructs,
            Shape => How::Shape,
            From(root) => How::PointedFrom(root.to_string()),
        };
        let tag = self.tag(major);
        let nmt_tag = (!tag.is_empty()).then(|| tag.to_string());
        BlockOwner { kind: row.kind, part: row.part.to_string(), nmt_tag, how }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_owners() {
        for (place, owner) in Owner::all().enumerate() {
            assert_eq!(place, owner as usize);
        }
    }
}
