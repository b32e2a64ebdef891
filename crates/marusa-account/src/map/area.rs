//! The areas of the account, and the area of the 2010 paper that each falls in.
//!
//! Blocks of malloc whose owner is not known are an area of their own, `malloc_unknown`: they may be the JVM's, a native
//! library's or the program's (`Unsafe.allocateMemory`; with Native Memory Tracking that is a part of its own). The paper counts
//! them in its JVM work area, and so do we under its taxonomy.
//!
//! The paper: "A Study of Java's Non-Java Memory" (OOPSLA 2010), which counts eight areas next to the Java heap.

use crate::jvm::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! areas {
    ($($variant:ident, $name:literal, $title:literal, $paper:expr;)*) => {
        /// Who owns a byte, coarsely.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Area { $($variant),* }

        impl Area {
            pub const ALL: &'static [Area] = &[$(Area::$variant),*];
            /// The key in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Area::$variant => $name),* }
            }
            /// The name for people.
            pub fn title(self) -> &'static str {
                match self { $(Area::$variant => $title),* }
            }
            /// The area of the paper; `None` for what the paper does not count.
            pub fn paper(self) -> Option<PaperArea> {
                match self { $(Area::$variant => $paper),* }
            }
        }
    };
}

areas! {
    JavaHeap, "java_heap", "Java heap", None;
    Gc, "gc", "GC tables", Some(PaperArea::JvmWork);
    ClassMetadata, "class_metadata", "class metadata", Some(PaperArea::ClassMetadata);
    CdsArchive, "cds_archive", "CDS archive", Some(PaperArea::ClassMetadata);
    JitCode, "jit_code", "JIT code", Some(PaperArea::JitCode);
    JitWork, "jit_work", "JIT work", Some(PaperArea::JitWork);
    Stack, "stack", "stacks", Some(PaperArea::Stack);
    DirectBuffers, "direct_buffers", "direct buffers", Some(PaperArea::JvmWork);
    JvmWork, "jvm_work", "JVM work", Some(PaperArea::JvmWork);
    NativeLibrary, "native_library", "native libraries' memory", Some(PaperArea::JvmWork);
    Code, "code", "executables and libraries", Some(PaperArea::Code);
    MappedFile, "mapped_file", "mapped files", Some(PaperArea::JvmWork);
    MallocUnknown, "malloc_unknown", "malloc, owner unknown", Some(PaperArea::JvmWork);
    MallocFreed, "malloc_freed", "malloc-then-freed", Some(PaperArea::MallocFreed);
    Overhead, "overhead", "overhead", Some(PaperArea::Overhead);
    Unattributed, "unattributed", "unattributed", None;
}

/// The eight areas of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaperArea {
    Code,
    JvmWork,
    ClassMetadata,
    JitCode,
    JitWork,
    MallocFreed,
    Overhead,
    Stack,
}

impl PaperArea {
    pub const ALL: [PaperArea; 8] = [
        PaperArea::Code,
        PaperArea::JvmWork,
        PaperArea::ClassMetadata,
        PaperArea::JitCode,
        PaperArea::JitWork,
        PaperArea::MallocFreed,
        PaperArea::Overhead,
        PaperArea::Stack,
    ];

    /// The paper's own words.
    pub fn title(self) -> &'static str {
        match self {
            PaperArea::Code => "code area",
            PaperArea::JvmWork => "JVM work area",
            PaperArea::ClassMetadata => "class metadata",
            PaperArea::JitCode => "JIT-compiled code",
            PaperArea::JitWork => "JIT work area",
            PaperArea::MallocFreed => "malloc-then-freed area",
            PaperArea::Overhead => "management overhead",
            PaperArea::Stack => "stack",
        }
    }
}

/// The area of what the runtime calls `kind`.
pub fn of_kind(kind: Kind) -> Area {
    match kind {
        Kind::JavaHeap => Area::JavaHeap,
        Kind::Gc => Area::Gc,
        Kind::Metaspace | Kind::ClassSpace => Area::ClassMetadata,
        Kind::CdsArchive => Area::CdsArchive,
        Kind::CodeHeap => Area::JitCode,
        Kind::CodeHeapSegmap => Area::JitWork,
        Kind::Stack => Area::Stack,
        Kind::VmWork => Area::JvmWork,
        Kind::JitWork => Area::JitWork,
        Kind::DirectBuffers => Area::DirectBuffers,
        Kind::NativeLibrary => Area::NativeLibrary,
        Kind::Tracking => Area::Overhead,
        // Only Native Memory Tracking separates it from other blocks: it has the same area with tracking and without.
        Kind::UnsafeMemory | Kind::Unknown => Area::MallocUnknown,
    }
}
