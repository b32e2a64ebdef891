use super::*;

const K: u64 = 1024;

#[test]
fn the_summary_of_jdk_8() {
    let text = "\nNative Memory Tracking:\n\nTotal: reserved=1507731KB, committed=145855KB\n\
                -                 Java Heap (reserved=131072KB, committed=70656KB)\n                            \
                (mmap: reserved=131072KB, committed=70656KB) \n \n\
                -                    Thread (reserved=21596KB, committed=21596KB)\n                            \
                (thread #22)\n                            (stack: reserved=21504KB, committed=21504KB)\n                            \
                (malloc=69KB #126) \n                            (arena=23KB #40)\n \n\
                -    Native Memory Tracking (reserved=227KB, committed=227KB)\n                            \
                (malloc=119KB #1687) \n                            (tracking overhead=107KB)\n";
    let summary = summary(text).expect("a good report");
    assert_eq!(summary.unit_bytes, K);
    let heap = summary.tag("Java Heap").expect("there");
    assert_eq!(heap.mmap, Some(Usage { reserved_bytes: 131072 * K, committed_bytes: 70656 * K }));
    let thread = summary.tag("Thread").expect("there");
    assert_eq!(thread.stack.map(|stack| stack.committed_bytes), Some(21504 * K));
    assert_eq!((thread.malloc_bytes, thread.arena_bytes), (Some(69 * K), Some(23 * K)));
    assert_eq!(thread.mmap, None, "absent is not zero");
    let nmt = summary.tag("Native Memory Tracking").expect("there");
    assert_eq!(nmt.tracking_overhead_bytes, Some(107 * K));
}

#[test]
fn the_summary_of_jdk_25_in_bytes() {
    let text = "\nNative Memory Tracking:\n\nTotal: reserved=1599029438, committed=134197438\n       \
                malloc: 11018430 #14325, peak=16014966 #14016\n       mmap:   reserved=1588011008, committed=123179008\n\n\
                -                     Class (reserved=1073830608, committed=678608)\n                            \
                (classes #843)\n                            (malloc=88784 tag=Class #1154) (at peak)\n                            \
                (mmap: reserved=1073741824, committed=589824, at peak)\n                            \
                (  Metadata:   )\n                            (    reserved=67108864, committed=5177344)\n                            \
                (    used=5112728)\n\n\
                -        Shared class space (reserved=16777312, committed=14241888, readonly=0)\n                            \
                (malloc=96 tag=Shared class space #2) (at peak)\n                            \
                (mmap: reserved=16777216, committed=14241792, peak=14454784)\n\n\
                -                   Logging (reserved=0, committed=0)\n                            \
                (malloc=0 tag=Logging) (peak=512 #1)\n";
    let summary = summary(text).expect("a good report");
    assert_eq!(summary.unit_bytes, 1);
    let class = summary.tag("Class").expect("there");
    assert_eq!(class.mmap, Some(Usage { reserved_bytes: 1073741824, committed_bytes: 589824 }));
    assert_eq!(class.malloc_bytes, Some(88784));
    let cds = summary.tag("Shared class space").expect("there");
    assert_eq!(cds.mmap.map(|mmap| mmap.committed_bytes), Some(14241792));
    assert_eq!(summary.tag("Logging").and_then(|tag| tag.malloc_bytes), Some(0));
}

#[test]
fn refusals() {
    assert_eq!(summary("Native memory tracking is not enabled\n"), Err(ReportError::NmtOff));
    assert_eq!(summary("Incorrect scale value: b\n"), Err(ReportError::BadScale));
    assert_eq!(summary("hello\n"), Err(ReportError::UnknownForm));
    assert_eq!(regions("Native memory tracking is not enabled\n"), Err(ReportError::NmtOff));
}

#[test]
fn the_map_of_jdk_11() {
    let text = "Total: reserved=1KB\nVirtual memory map:\n \n\
                [0x00000000f8000000 - 0x0000000100000000] reserved 131072KB for Java Heap from\n    \
                [0x00007fec35ad3f65] Threads::create_vm(JavaVMInitArgs*, bool*)+0x185\n\n\
                \t[0x00000000f8000000 - 0x00000000fc500000] committed 70656KB from\n            \
                [0x00007fe899a10dd8]\n\n\
                \t[0x00000000ff800000 - 0x00000000ff900000] committed 1024KB from\n \n\
                [0x00007fec06dfc000 - 0x00007fec06efc000] reserved 1024KB for Thread Stack from\n\n\
                \t[0x00007fec06ef9000 - 0x00007fec06efc000] committed 12KB \n \nDetails:\n\n\
                [0x0000000000001000 - 0x0000000000002000] reserved 4KB for GC from\n";
    let regions = regions(text).expect("a good report");
    assert_eq!(regions.len(), 2);
    assert_eq!(regions[0].tag, "Java Heap");
    assert_eq!(regions[0].committed, [Range::of(0xf8000000, 0xfc500000), Range::of(0xff800000, 0xff900000)]);
    assert_eq!(regions[1].tag, "Thread Stack");
    assert_eq!(regions[1].committed, [Range::of(0x7fec06ef9000, 0x7fec06efc000)]);
}

#[test]
fn the_map_of_jdk_25_with_zgc() {
    let text = "Virtual memory map:\n\n\
                [0x00007fbe31457000 - 0x00007fbe31458000] reserved and committed 4KB for Internal from\n    \
                [0x00007fbe3018fe9e]initialize_assert_poison()+0x1e\n\n        \
                [0x00007fbe31457000 - 0x00007fbe31458000] committed 4KB from\n\n\
                Memory map of ZGC heap backing file\n\n\
                [0x0000000000000000 - 0x0000000008000000] allocated 131072KB for Java Heap from\n";
    let regions = regions(text).expect("a good report");
    assert_eq!(regions.len(), 1);
    assert_eq!(regions[0].committed, [Range::of(0x7fbe31457000, 0x7fbe31458000)], "once");
}
