//! The tags of Native Memory Tracking: their names, as this VM numbers them, and what memory of each is.
//!
//! The same number means different things from release to release (Compiler is 6 in JDK 17 and 7 in 21), so the VM's own
//! table is read: `NMTUtil::_memory_type_names`, an array of names (up to JDK 20), or `NMTUtil::_strings`, pairs of an
//! identifier and a name. Where libjvm has no symbol table, they are found by the strings they point to.

use super::super::Hotspot;
use super::image_bytes;
use crate::base::limits::NMT_TAGS_MAX;
use crate::base::{Addr, Gap, Known, Range, Why};
use crate::jvm::types::{BlockOwner, How, Kind};

const FIRST: &[u8] = b"Java Heap\0";
const SECOND: &str = "Class";
const LAST: &str = "Unknown";
const NAME_BYTES_MAX: usize = 64;
/// Copies of the first name that are tried; linkers keep one.
const FIRSTS_MAX: usize = 8;

/// The names, by number.
pub fn names(vm: &Hotspot) -> Known<Vec<String>> {
    let symbol = |name| vm.target.symbols.find(&vm.image.path, name);
    if let Some(at) = symbol("_ZN7NMTUtil18_memory_type_namesE")
        && let Some(names) = table(vm, at, 8)
    {
        return Ok(names);
    }
    if let Some(at) = symbol("_ZN7NMTUtil8_stringsE")
        && let Some(names) = table(vm, at.plus(8), 16)
    {
        return Ok(names);
    }
    by_shape(vm).ok_or_else(|| Gap::new("names of Native Memory Tracking's tags", Why::NotInThisRuntime))
}

/// The strings that every `stride` bytes from `at` are pointed to, up to "Unknown".
fn table(vm: &Hotspot, at: Addr, stride: u64) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for index in 0..NMT_TAGS_MAX as u64 {
        let text = vm.memory().addr(at.plus(index * stride)).ok()?;
        let name = vm.memory().c_string(text, NAME_BYTES_MAX).ok()?;
        let is_last = name == LAST;
        names.push(name);
        if is_last {
            let starts = names.len() > 8 && names[0].as_bytes() == &FIRST[..9] && names[1] == SECOND;
            return starts.then_some(names);
        }
    }
    None
}

fn by_shape(vm: &Hotspot) -> Option<Vec<String>> {
    let is_code = |range: Range| vm.target.mapping(range.start).is_some_and(|mapping| mapping.rights.execute);
    // Old linkers put constants next to the code, newer ones before it.
    let read_only = vm.image.segments.iter().filter(|(_, is_writable)| !is_writable);
    let mut constants: Vec<Range> = read_only.map(|(range, _)| *range).collect();
    constants.sort_by_key(|range| is_code(*range));
    let firsts = constants.into_iter().map(|range| firsts(vm, range)).find(|found| !found.is_empty())?;
    let mut tables = Vec::new();
    for range in vm.image.data() {
        let bytes = image_bytes(vm, range);
        let words = bytes.as_chunks::<8>().0.iter().enumerate();
        let found = words.filter(|(_, word)| firsts.contains(&u64::from_le_bytes(**word)));
        tables.extend(found.map(|(index, _)| range.start.plus(index as u64 * 8)).take(NMT_TAGS_MAX));
    }
    tables.into_iter().flat_map(|at| [(at, 8), (at, 16)]).find_map(|(at, stride)| table(vm, at, stride))
}

/// Where the first name lies.
fn firsts(vm: &Hotspot, range: Range) -> Vec<u64> {
    let bytes = image_bytes(vm, range);
    let capitals = bytes.iter().enumerate().filter(|(_, byte)| **byte == FIRST[0]);
    let found = capitals.filter(|(at, _)| bytes[*at..].starts_with(FIRST));
    found.map(|(at, _)| range.start.plus(at as u64).0).take(FIRSTS_MAX).collect()
}

/// Parts where direct buffers could not be distinguished from other memory of the tag.
const INTERNAL_MIXED: &str = "internal work, direct buffers and Unsafe memory";
const OTHER_MIXED: &str = "direct buffers, Unsafe and FFM memory";

/// The tag of memory of `Unsafe.allocateMemory`, direct buffers included: up to JDK 10 "Internal", which the VM's own work has
/// too; from 11 on "Other", which nothing else has (prims/unsafe.cpp, `Unsafe_AllocateMemory0`).
pub fn unsafe_tag(major: Option<u32>) -> &'static str {
    if major.is_some_and(|major| major < 11) { "Internal" } else { "Other" }
}

/// What blocks of that tag are which no direct buffer names.
pub fn without_buffers(major: Option<u32>) -> BlockOwner {
    match unsafe_tag(major) {
        "Internal" => own(Kind::Unknown, "internal work and Unsafe memory".to_string(), "Internal"),
        tag => own(Kind::UnsafeMemory, "Unsafe and FFM memory".to_string(), tag),
    }
}

/// What blocks of that tag are which a direct buffer names.
pub fn buffers(major: Option<u32>) -> BlockOwner {
    own(Kind::DirectBuffers, "direct buffers".to_string(), unsafe_tag(major))
}

/// Whose the blocks of a tag are. Two choices want saying. Structures about classes that lie in malloc (dictionaries,
/// loader data, the metaspace manager's lists) are the VM's work, as class metadata is metaspace here; and chunks of
/// HotSpot's arenas are JIT work, as all but a few KB a thread are the compilers'.
pub fn owner(tag: &str, major: Option<u32>) -> BlockOwner {
    let (kind, part) = match tag {
        "Java Heap" => (Kind::Gc, "heap structures"),
        "GC" => (Kind::Gc, "collector's structures"),
        "GCCardSet" => (Kind::Gc, "card sets"),
        "Class" => (Kind::VmWork, "class structures"),
        "Metaspace" => (Kind::VmWork, "metaspace structures"),
        "Shared class space" => (Kind::VmWork, "CDS structures"),
        "Thread" => (Kind::VmWork, "threads' structures"),
        "Symbol" => (Kind::VmWork, "symbols"),
        "Code" => (Kind::JitWork, "code cache structures"),
        "Compiler" => (Kind::JitWork, "compilers' structures"),
        "JVMCI" => (Kind::JitWork, "JVMCI"),
        "Arena Chunk" => (Kind::JitWork, "arena chunks"),
        // Whose blocks of these are, the Java heap may tell: `owners::unsafe_memory`.
        "Internal" if unsafe_tag(major) == tag => (Kind::Unknown, INTERNAL_MIXED),
        "Internal" => (Kind::VmWork, "internal work"),
        "Other" => (Kind::UnsafeMemory, OTHER_MIXED),
        "Native Memory Tracking" => (Kind::Tracking, "native memory tracking"),
        other => return own(Kind::VmWork, other.to_lowercase(), other),
    };
    own(kind, part.to_string(), tag)
}

fn own(kind: Kind, part: String, tag: &str) -> BlockOwner {
    BlockOwner { kind, part, nmt_tag: Some(tag.to_string()), how: How::NmtHeader }
}
