//! What the readers of a runtime hand upwards. Plain data; every part that can fail is `Known`.

use super::buffers::Buffers;
use super::histogram::Histogram;
use super::holders::Holders;
use super::loaders::Loaders;
use crate::base::{Addr, Bytes, Gap, Known, Range};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A JVM as read from outside.
#[derive(Clone, Debug)]
pub struct JvmView {
    /// "hotspot".
    pub vm: String,
    /// "17.0.15+6", as the VM names its release.
    pub version: Known<String>,
    /// 8, 11, 17, 21, 25.
    pub major: Known<u32>,
    pub gc: Known<Gc>,
    /// Path of libjvm.so as mapped, and its build id in hexadecimal.
    pub library: String,
    pub build_id: Option<String>,
    /// "off", "summary" or "detail".
    pub nmt: Known<String>,
    /// The `-XX` flags of the VM by name, values as printed by -XX:+PrintFlagsFinal. Only the ones that
    /// `hotspot::flags::KEPT` names.
    pub flags: BTreeMap<String, String>,
    pub heap: Known<HeapView>,
    pub code: Known<Vec<CodeHeapView>>,
    pub classes: Known<ClassView>,
    /// Every thread whose stack was found: Java threads, the VM's own, and foreign ones.
    pub threads: Vec<JvmThread>,
    /// What the VM owns where. May nest: an extent inside another one refines it.
    pub extents: Vec<Extent>,
    /// Whose a block of malloc with label `index + 1` is (`base::blocks`).
    pub block_owners: Vec<BlockOwner>,
    /// What Native Memory Tracking counted of blocks of malloc by tag, as its counters in the VM's memory said just before
    /// malloc was walked.
    pub nmt_counts: Known<Vec<NmtCount>>,
    /// Who holds the blocks of malloc; `None`: not requested.
    pub holders: Option<Holders>,
    /// What class loaders hold; `None`: not requested.
    pub loaders: Option<Loaders>,
    /// Buffers outside the heap; `None`: not requested.
    pub buffers: Option<Buffers>,
    /// The objects of the heap by class; `None`: not requested. Never kept in a file.
    pub histogram: Option<Known<Histogram>>,
    pub gaps: Vec<Gap>,
}

impl JvmView {
    /// Whether blocks of the VM have headers of Native Memory Tracking that could be read.
    pub fn is_tracked(&self) -> bool {
        self.block_owners.iter().any(|owner| owner.how == How::NmtHeader)
    }
}

/// One owner of blocks of malloc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockOwner {
    pub kind: Kind,
    /// The part of the account: "symbols", "C2 arenas", "zlib".
    pub part: String,
    /// NMT's tag for such blocks: "Symbol", "Compiler", "Other"; `None` for memory that HotSpot does not allocate.
    pub nmt_tag: Option<String>,
    pub how: How,
}

/// Native Memory Tracking's own count of one tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NmtCount {
    /// In the VM's words: "Symbol".
    pub tag: String,
    pub blocks: u64,
    pub bytes: Bytes,
    /// Bytes of arenas of this tag. They lie in blocks that are counted as "Arena Chunk".
    pub arena_bytes: Bytes,
}

/// The garbage collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gc {
    Serial,
    Parallel,
    Cms,
    G1,
    Z,
    ZGenerational,
    Shenandoah,
    ShenandoahGenerational,
    Epsilon,
}

impl Gc {
    /// The name in the account: "g1", "zgc", "zgc generational".
    pub fn name(self) -> &'static str {
        match self {
            Gc::Serial => "serial",
            Gc::Parallel => "parallel",
            Gc::Cms => "cms",
            Gc::G1 => "g1",
            Gc::Z => "zgc",
            Gc::ZGenerational => "zgc generational",
            Gc::Shenandoah => "shenandoah",
            Gc::ShenandoahGenerational => "shenandoah generational",
            Gc::Epsilon => "epsilon",
        }
    }
}

/// A range of memory that the VM owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    pub range: Range,
    pub kind: Kind,
    /// The part, in the VM's words and singular: "eden", "card table", "code heap 'non-profiled nmethods'".
    pub part: String,
    /// Bytes of `range` that hold something; `None` where the VM does not record it.
    pub in_use_bytes: Option<Bytes>,
    pub how: How,
}

/// What kind of memory, in the VM's terms. `map::area` gives each its area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    JavaHeap,
    /// Card tables, mark bitmaps, block offset tables, remembered sets, region tables, mark stacks.
    Gc,
    /// Metaspace outside the class space.
    Metaspace,
    ClassSpace,
    CdsArchive,
    CodeHeap,
    /// The map from code addresses to block starts: `CodeHeap::_segmap`.
    CodeHeapSegmap,
    /// A thread's stack with its guard pages; `thread` names it through `JvmView::threads`.
    Stack,
    /// Polling pages, perf memory, and whatever else the VM maps for its own work.
    VmWork,
    /// Arenas of the compilers, code stubs' descriptions, profiles that are not metadata.
    JitWork,
    /// `java.nio` direct buffers.
    DirectBuffers,
    /// Memory of `Unsafe.allocateMemory` and `java.lang.foreign`. Where direct buffers cannot be distinguished from it, they are
    /// part of it.
    UnsafeMemory,
    /// Blocks that may be the VM's or the program's.
    Unknown,
    /// Memory of JNI libraries.
    NativeLibrary,
    /// What Native Memory Tracking keeps about the rest.
    Tracking,
}

/// How it is known that a range is what its label says; the strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// A field that vmStructs names.
    VmStructs,
    /// A pair of words (bounds, or start and size) in an object that was reached from the named root and that fit a
    /// mapping exactly.
    PointedFrom(String),
    /// The header that Native Memory Tracking puts before each block.
    NmtHeader,
    /// Its size and place alone fit.
    Shape,
}

/// The Java heap as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapView {
    /// Every address range that is reserved for the heap; ZGC reserves several.
    pub reserved: Vec<Range>,
    pub max_bytes: Known<Bytes>,
    pub committed_bytes: Known<Bytes>,
    pub used_bytes: Known<Bytes>,
    /// G1, Shenandoah and ZGC: bytes of a region; ZGC: of a small page.
    pub region_bytes: Option<Bytes>,
    /// G1: `None` where no object is humongous, or their headers could not be read.
    pub humongous: Option<Humongous>,
}

/// Objects of G1 that have regions of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Humongous {
    pub objects: u64,
    pub object_bytes: Bytes,
    /// The number of their regions, whose ends behind the objects hold nothing.
    pub regions: u64,
}

/// Class loaders that were looked at, by their class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoaderClasses {
    pub looked_at: u64,
    /// "com.example.PluginLoader".
    pub by_class: BTreeMap<String, u64>,
}

/// One code heap (JDK 8: the only one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeHeapView {
    pub name: String,
    pub reserved: Range,
    pub committed: Range,
    pub used_bytes: Known<Bytes>,
    /// Blobs by kind: "nmethod", "adapter", "interpreter", "stub", ...: count and bytes.
    pub blobs: BTreeMap<String, BlobCount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct BlobCount {
    pub count: u64,
    pub bytes: Bytes,
}

/// Class metadata as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassView {
    pub loaders: Known<u64>,
    pub classes: Known<u64>,
    /// From the perf memory counters; as of the last collection.
    pub metaspace_used_bytes: Known<Bytes>,
    pub class_space_used_bytes: Known<Bytes>,
    /// What was committed at that time; used and committed can be compared.
    pub metaspace_committed_bytes: Known<Bytes>,
    pub class_space_committed_bytes: Known<Bytes>,
    /// Where there are very many loaders.
    pub loader_classes: Option<LoaderClasses>,
    /// Since the start.
    pub unloaded_classes: Option<u64>,
    pub old_collections: Option<u64>,
}

/// One thread of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JvmThread {
    pub tid: i32,
    /// The Java name where it can be read, else the kernel's 15 bytes.
    pub name: String,
    pub kind: ThreadKind,
    /// From the lowest address of the stack, guard pages included, to its base.
    pub stack: Known<Range>,
    /// The `Thread` object of the VM.
    pub object: Option<Addr>,
    /// For a compiler thread; `None`: nothing, or it is not known.
    pub compiling: Option<Compiling>,
}

/// What a compiler thread compiles.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Compiling {
    /// "com.example.Main::run".
    pub method: String,
    /// 1 to 3: C1, 4: C2; 0: a wrapper of a native method.
    pub level: Option<u32>,
    /// Whether the code is to replace a loop that runs already.
    pub is_osr: Option<bool>,
    /// The chunks of the thread's arenas; part of the area `jit_work`, or of `jvm_work`. `None`: a frozen file.
    pub arena_bytes: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadKind {
    Java,
    Compiler,
    Gc,
    /// VM Thread, VM Periodic, Signal Dispatcher and other threads of the VM.
    Vm,
    /// The thread that main() ran on.
    Primordial,
    /// A thread the VM does not know: made by a native library.
    Foreign,
}

impl Compiling {
    /// "com.example.Main::run, level 4".
    pub fn title(&self) -> String {
        let level = self.level.map_or(String::new(), |level| format!(", level {level}"));
        let osr = if self.is_osr == Some(true) { ", a loop that runs" } else { "" };
        format!("{}{level}{osr}", self.method)
    }
}

impl JvmView {
    /// The JDK to which its libjvm.so belongs.
    pub fn java_home(&self) -> Option<&str> {
        home_of(&self.library)
    }

    /// Everything about the VM that could not be read.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut gaps = self.gaps.clone();
        let mut note = |gap: Option<&Gap>| gaps.extend(gap.cloned());
        note(self.version.as_ref().err());
        note(self.gc.as_ref().err());
        note(self.nmt.as_ref().err());
        note(self.heap.as_ref().err());
        note(self.code.as_ref().err());
        note(self.classes.as_ref().err());
        gaps
    }
}

impl ThreadKind {
    /// The word in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            ThreadKind::Java => "java",
            ThreadKind::Compiler => "compiler",
            ThreadKind::Gc => "gc",
            ThreadKind::Vm => "vm",
            ThreadKind::Primordial => "primordial",
            ThreadKind::Foreign => "foreign",
        }
    }
}

impl JvmThread {
    /// Whether it runs Java code: compiler threads and the like are Java threads to HotSpot, but not to people.
    pub fn is_java(&self) -> bool {
        self.kind == ThreadKind::Java
    }
}

/// HOME/lib/server, HOME/jre/lib/amd64/server of 8. HOME itself may lie below a lib, as /usr/lib/jvm.
fn home_of(library: &str) -> Option<&str> {
    let (home, _) = library.rsplit_once("/lib/")?;
    Some(home.strip_suffix("/jre").unwrap_or(home))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jdk_of_a_libjvm() {
        assert_eq!(home_of("/usr/lib/jvm/java-17/lib/server/libjvm.so"), Some("/usr/lib/jvm/java-17"));
        assert_eq!(home_of("/usr/lib/jvm/8/jre/lib/amd64/server/libjvm.so"), Some("/usr/lib/jvm/8"));
        assert_eq!(home_of("libjvm.so"), None);
    }
}
