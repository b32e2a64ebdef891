//! What the VM and malloc of the healthy JVM say.

use super::laid::{CODE_AT, CODE_HEAPS, HEAP, MAIN_ARENA, THREAD_ARENA, THREADS};
use super::{G, M, PID};
use crate::base::{Addr, Bytes, Range};
use crate::jvm::{
    BlockOwner, ClassView, CodeHeapView, Extent, Gc, HeapView, How, JvmThread, JvmView, Kind, ThreadKind,
};
use marusa_account::alloc::{
    AllocView, Arena, ArenaFigures, ArenaHeap, BlockCount, ChunkCount, Chunks, Interval, State,
};
use std::collections::BTreeMap;

/// As JDK 21 prints them for `-Xmx2g` on 4 CPUs.
const FLAGS: [(&str, &str); 44] = [
    ("InitialHeapSize", "268435456"),
    ("MaxHeapSize", "2147483648"),
    ("MinHeapSize", "8388608"),
    ("SoftMaxHeapSize", "2147483648"),
    ("MinHeapFreeRatio", "40"),
    ("MaxHeapFreeRatio", "70"),
    ("MaxRAMPercentage", "25.000000"),
    ("ObjectAlignmentInBytes", "8"),
    ("AlwaysPreTouch", "false"),
    ("UseG1GC", "true"),
    ("UseSerialGC", "false"),
    ("UseParallelGC", "false"),
    ("UseZGC", "false"),
    ("UseShenandoahGC", "false"),
    ("ParallelGCThreads", "4"),
    ("ConcGCThreads", "1"),
    ("G1ConcRefinementThreads", "4"),
    ("G1HeapRegionSize", "1048576"),
    ("G1PeriodicGCInterval", "0"),
    ("UseCompressedOops", "true"),
    ("UseCompressedClassPointers", "true"),
    ("CompressedClassSpaceSize", "1073741824"),
    ("MetaspaceSize", "22020096"),
    ("MaxMetaspaceSize", "18446744073709547520"),
    ("UseSharedSpaces", "true"),
    ("TieredCompilation", "true"),
    ("SegmentedCodeCache", "true"),
    ("InitialCodeCacheSize", "2555904"),
    ("ReservedCodeCacheSize", "251658240"),
    ("CICompilerCount", "3"),
    ("ThreadStackSize", "1024"),
    ("VMThreadStackSize", "1024"),
    ("CompilerThreadStackSize", "1024"),
    ("UseLargePages", "false"),
    ("UseTransparentHugePages", "false"),
    ("THPStackMitigation", "true"),
    ("LargePageSizeInBytes", "0"),
    ("UseNUMA", "false"),
    ("MaxDirectMemorySize", "0"),
    ("NativeMemoryTracking", "off"),
    ("TrimNativeHeapInterval", "0"),
    ("UsePerfData", "true"),
    ("UseContainerSupport", "true"),
    ("ActiveProcessorCount", "-1"),
];

/// Name and kind of a thread of the JVM.
pub fn thread_name(number: u64) -> (String, ThreadKind) {
    match number {
        0 => ("main".to_string(), ThreadKind::Java),
        1..=4 => (format!("GC Thread#{}", number - 1), ThreadKind::Gc),
        5 => ("C2 CompilerThread0".to_string(), ThreadKind::Compiler),
        6 => ("C1 CompilerThread0".to_string(), ThreadKind::Compiler),
        7 => ("VM Thread".to_string(), ThreadKind::Vm),
        number => (format!("http-{number}"), ThreadKind::Java),
    }
}

pub fn jvm(extents: Vec<Extent>, threads: Vec<JvmThread>) -> JvmView {
    let symbols = BlockOwner {
        kind: Kind::VmWork,
        part: "symbols".to_string(),
        nmt_tag: Some("Symbol".to_string()),
        how: How::Shape,
    };
    let heap = HeapView {
        reserved: vec![HEAP],
        max_bytes: Ok(2 * G),
        committed_bytes: Ok(G),
        used_bytes: Ok(600 * M),
        region_bytes: Some(M),
        humongous: None,
    };
    let classes = ClassView {
        loaders: Ok(40),
        classes: Ok(12_000),
        metaspace_used_bytes: Ok(46 * M),
        class_space_used_bytes: Ok(7 * M),
        metaspace_committed_bytes: Ok(48 * M),
        class_space_committed_bytes: Ok(8 * M),
        loader_classes: None,
        unloaded_classes: Some(20),
        old_collections: Some(2),
    };
    JvmView {
        vm: "hotspot".to_string(),
        version: Ok("21.0.8+9".to_string()),
        major: Ok(21),
        gc: Ok(Gc::G1),
        library: "/opt/jdk-21/lib/server/libjvm.so".to_string(),
        build_id: None,
        nmt: Ok("off".to_string()),
        flags: FLAGS.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        heap: Ok(heap),
        code: Ok(code_heaps()),
        classes: Ok(classes),
        threads,
        extents,
        block_owners: vec![symbols],
        nmt_counts: Ok(Vec::new()),
        holders: None,
        loaders: None,
        buffers: None,
        histogram: None,
        gaps: Vec::new(),
    }
}

fn code_heaps() -> Vec<CodeHeapView> {
    let mut at = CODE_AT;
    let heap = |(name, reserved, committed, used): (&str, u64, u64, u64)| {
        let start = Addr(at);
        at += reserved * M;
        CodeHeapView {
            name: name.to_string(),
            reserved: Range::sized(start, reserved * M),
            committed: Range::sized(start, committed * M),
            used_bytes: Ok(used * M),
            blobs: BTreeMap::new(),
        }
    };
    CODE_HEAPS.map(heap).into()
}

/// Two arenas: 52 MiB in use, 8 MiB freed, of which malloc_trim would give back 4.
pub fn alloc() -> AllocView {
    let main = arena(0, MAIN_ARENA, MAIN_ARENA, [35 * M, 2 * M, 2 * M]);
    let of_threads = Range::sized(THREAD_ARENA.start, 20 * M);
    let second = arena(1, THREAD_ARENA, of_threads, [15 * M, M, 3 * M]);
    let beyond = Range::new(of_threads.end, THREAD_ARENA.end);
    let intervals = vec![
        interval(MAIN_ARENA, 0, [35 * M, 2 * M, 2 * M]),
        interval(of_threads, 1, [15 * M, M, 3 * M]),
        Interval { range: beyond, arena: Some(1), shares: vec![(State::Beyond, beyond.bytes())] },
    ];
    AllocView {
        allocator: "glibc 2.36".to_string(),
        other: None,
        arenas: vec![main, second],
        mmapped: Vec::new(),
        intervals,
        in_use: vec![
            BlockCount { blocks: 100_000, bytes: 30 * M },
            BlockCount { blocks: 200_000, bytes: 20 * M },
        ],
        gaps: Vec::new(),
    }
}

/// In use (a third of it of an owner that is not known), freed in small bins, freed at the top; what is left is headers.
fn interval(range: Range, number: usize, [in_use, small, top]: [Bytes; 3]) -> Interval {
    let overhead = range.bytes() - in_use - small - top;
    let unknown = in_use / 3 / 4096 * 4096;
    let shares = vec![
        (State::InUse(0), unknown),
        (State::InUse(1), in_use - unknown),
        (State::Small, small),
        (State::Top, top),
        (State::Overhead, overhead),
    ];
    Interval { range, arena: Some(number), shares }
}

fn arena(number: usize, reserved: Range, in_arena: Range, [in_use, small, top]: [Bytes; 3]) -> Arena {
    let chunks = |chunks, bytes| ChunkCount { chunks, bytes };
    let trimmable_bytes = if number == 0 { small / 2 + top } else { small };
    let figures = ArenaFigures {
        chunks: Chunks {
            in_use: chunks(150_000, in_use),
            small: chunks(3_000, small),
            top: chunks(1, top),
            ..Chunks::default()
        },
        overhead_bytes: in_arena.bytes() - in_use - small - top,
        free_resident_bytes: small + top,
        free_whole_page_bytes: trimmable_bytes + if number == 0 { 0 } else { top },
        trimmable_bytes,
        top_kept_bytes: if number == 0 { 0 } else { top },
        ..ArenaFigures::default()
    };
    let mine = (0..THREADS as i32).filter(|at| (at % 2 == 1) == (number == 1));
    Arena {
        at: reserved.start.plus(0x30),
        number,
        heaps: vec![ArenaHeap { reserved, in_arena }],
        system_bytes: in_arena.bytes(),
        attached_threads: Some(THREADS / 2),
        threads: mine.map(|at| PID + at).collect(),
        figures: Ok(figures),
    }
}
