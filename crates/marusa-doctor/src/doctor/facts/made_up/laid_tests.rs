//! The memory of the healthy JVM: mappings, their pages and sums, and what the VM says that it owns, laid out together so that
//! they agree.

use super::host::pages;
use super::views::{alloc, jvm, thread_name};
use super::{G, M, PID};
use crate::base::{Addr, Bytes, Gap, PAGE, Range, Why};
use crate::jvm::{Extent, How, JvmThread, Kind};
use crate::os::maps;
use crate::os::page_kind::PageSizes;
use crate::os::pagemap::PageRun;
use crate::os::process::Task;
use crate::os::smaps::Smap;
use crate::os::status::Status;
use crate::os::target::{OsView, ProcessFacts};
use crate::snapshot::page_settings::PageSettings;
use crate::snapshot::{Snapshot, Taken};
use std::collections::BTreeMap;

/// 2 GiB, of which 1 GiB is committed and 900 MiB are resident, on small pages, as no others were asked for.
pub const HEAP: Range = Range { start: Addr(0x8000_0000), end: Addr(0x1_0000_0000) };
/// 40 MiB.
pub const MAIN_ARENA: Range = Range { start: Addr(0x5555_5600_0000), end: Addr(0x5555_5880_0000) };
/// 64 MiB are reserved, 20 MiB in the arena.
pub const THREAD_ARENA: Range = Range { start: Addr(0x7f30_0000_0000), end: Addr(0x7f30_0400_0000) };
/// Name, and MiB reserved, committed, used.
pub const CODE_HEAPS: [(&str, u64, u64, u64); 3] =
    [("non-nmethods", 6, 3, 2), ("profiled nmethods", 117, 30, 26), ("non-profiled nmethods", 117, 14, 12)];
pub const CODE_AT: u64 = 0x7f20_0000_0000;
const CLASSES_AT: u64 = 0x7f10_0000_0000;
const STACKS_AT: u64 = 0x7f40_0000_0000;
const STACK_BYTES: u64 = M;
const GUARD_BYTES: u64 = 4 * PAGE;
const STACK_RESIDENT_BYTES: u64 = 100 << 10;
pub const THREADS: u64 = 30;

/// What is laid so far.
#[derive(Default)]
struct Laid {
    maps: String,
    runs: Vec<PageRun>,
    smaps: Vec<Smap>,
    extents: Vec<Extent>,
    threads: Vec<JvmThread>,
}

impl Laid {
    /// A mapping of which the first bytes are resident; `file`: "inode path".
    fn mapping(&mut self, range: Range, rights: &str, file: &str, resident: Bytes) {
        let (start, end) = (range.start.0, range.end.0);
        let device = if file.starts_with('0') { "00:00" } else { "fe:00" };
        self.maps.push_str(&format!("{start:x}-{end:x} {rights} 00000000 {device} {file}\n"));
        let is_file = device != "00:00";
        if resident > 0 {
            let bits = PageRun::PRESENT | if is_file { PageRun::FILE } else { 0 };
            let pages = Range::sized(range.start, resident);
            self.runs.push(PageRun { range: pages, bits, page_bytes: 4096, mapped_times: 1 });
        }
        self.smaps.push(Smap {
            range,
            kernel_page_bytes: PAGE,
            resident_bytes: resident,
            proportional_bytes: resident,
            anonymous_bytes: if is_file { 0 } else { resident },
            thp_eligible: Some(false),
            flags: "rd wr mr mw me ac".to_string(),
            ..Smap::default()
        });
    }

    /// Anonymous memory that may be written.
    fn memory(&mut self, range: Range, resident: Bytes) {
        self.mapping(range, "rw-p", "0 ", resident);
    }
    fn reserved(&mut self, range: Range) {
        if !range.is_empty() {
            self.mapping(range, "---p", "0 ", 0);
        }
    }
    /// Committed from the start, and all of that resident.
    fn committed(&mut self, range: Range, committed: Bytes) {
        let middle = range.start.plus(committed);
        self.memory(Range::new(range.start, middle), committed);
        self.reserved(Range::new(middle, range.end));
    }
    fn extent(&mut self, range: Range, kind: Kind, part: &str, in_use: Bytes) {
        let (part, in_use_bytes) = (part.to_string(), Some(in_use));
        self.extents.push(Extent { range, kind, part, in_use_bytes, how: How::VmStructs });
    }

    /// In the order of addresses.
    fn all() -> Laid {
        let mut laid = Laid::default();
        laid.heap();
        let program = Range::sized(Addr(0x5555_5500_0000), 4 * PAGE);
        laid.mapping(program, "r-xp", "11 /opt/jdk-21/bin/java", 4 * PAGE);
        laid.mapping(MAIN_ARENA, "rw-p", "0 [heap]", MAIN_ARENA.bytes());
        laid.classes();
        laid.code();
        laid.committed(THREAD_ARENA, 20 * M);
        laid.stacks();
        let tables = Range::sized(Addr(0x7f50_0000_0000), 40 * M);
        laid.memory(tables, 20 * M);
        laid.extent(tables, Kind::Gc, "mark bitmap", 40 * M);
        let library = Range::sized(Addr(0x7f60_0000_0000), 20 * M);
        laid.mapping(library, "r-xp", "12 /opt/jdk-21/lib/server/libjvm.so", 15 * M);
        laid
    }

    fn heap(&mut self) {
        let old = Range::sized(HEAP.start, 600 * M);
        let eden = Range::sized(old.end, 300 * M);
        let free = Range::new(eden.end, Addr(HEAP.start.0 + G));
        self.memory(Range::new(HEAP.start, free.end), 900 * M);
        self.reserved(Range::new(free.end, HEAP.end));
        self.extent(HEAP, Kind::JavaHeap, "reserved heap", 0);
        self.extent(old, Kind::JavaHeap, "old", 500 * M);
        self.extent(eden, Kind::JavaHeap, "eden", 100 * M);
        self.extent(free, Kind::JavaHeap, "free", 0);
    }

    fn classes(&mut self) {
        let archive = Range::sized(Addr(CLASSES_AT), 16 * M);
        self.mapping(archive, "rw-p", "13 /opt/jdk-21/lib/server/classes.jsa", 12 * M);
        self.extent(archive, Kind::CdsArchive, "CDS archive", 16 * M);
        let class_space = Range::sized(Addr(CLASSES_AT + 16 * M), G);
        self.committed(class_space, 8 * M);
        self.extent(class_space, Kind::ClassSpace, "class space", 7 * M);
        let metaspace = Range::sized(Addr(CLASSES_AT + 2 * G), 64 * M);
        self.committed(metaspace, 48 * M);
        self.extent(metaspace, Kind::Metaspace, "metaspace", 46 * M);
    }

    fn code(&mut self) {
        let mut at = CODE_AT;
        for (name, reserved, committed, used) in CODE_HEAPS {
            let range = Range::sized(Addr(at), reserved * M);
            self.mapping(Range::sized(range.start, committed * M), "rwxp", "0 ", committed * M);
            self.reserved(Range::new(range.start.plus(committed * M), range.end));
            self.extent(range, Kind::CodeHeap, &format!("code heap '{name}'"), used * M);
            at += reserved * M;
        }
    }

    /// The base of a stack is its highest address.
    fn stacks(&mut self) {
        for number in 0..THREADS {
            let stack = Range::sized(Addr(STACKS_AT + number * 2 * STACK_BYTES), STACK_BYTES);
            let guard = Range::sized(stack.start, GUARD_BYTES);
            self.reserved(guard);
            self.memory(Range::new(guard.end, stack.end), 0);
            let resident = Range::new(stack.end.minus(STACK_RESIDENT_BYTES), stack.end);
            self.runs.push(PageRun {
                range: resident,
                bits: PageRun::PRESENT,
                page_bytes: 4096,
                mapped_times: 1,
            });
            if let Some(smap) = self.smaps.last_mut() {
                smap.resident_bytes = STACK_RESIDENT_BYTES;
                smap.proportional_bytes = STACK_RESIDENT_BYTES;
                smap.anonymous_bytes = STACK_RESIDENT_BYTES;
            }
            self.extent(stack, Kind::Stack, "Java thread stack", STACK_RESIDENT_BYTES);
            self.threads.push(JvmThread {
                compiling: None,
                tid: PID + number as i32,
                name: thread_name(number).0,
                kind: thread_name(number).1,
                stack: Ok(stack),
                object: None,
            });
        }
    }
}

pub fn snapshot() -> Snapshot {
    let laid = Laid::all();
    let mappings = maps::parse(laid.maps.as_bytes()).0;
    let resident: Bytes = laid.runs.iter().map(|run| run.range.bytes()).sum();
    let task = |at| Task { tid: PID + at, name: thread_name(at as u64).0, inner_tid: None };
    let tasks = (0..THREADS as i32).map(task);
    let status = Status {
        threads: Some(THREADS),
        resident_bytes: Some(resident),
        hugetlb_bytes: Some(0),
        swapped_bytes: Some(0),
        page_table_bytes: Some(3 * M),
        thp_enabled: Some(true),
        ..Status::default()
    };
    let page_sizes = PageSizes {
        runs: Vec::new(),
        looks: Vec::new(),
        contiguous: Err(Gap::new("frames", Why::NotRead)),
        hugetlb: Vec::new(),
        shmem_devices: Vec::new(),
        seed: 1,
        gaps: Vec::new(),
    };
    let os = OsView {
        process: ProcessFacts {
            pid: PID,
            namespace_pid: PID,
            command: "java -Xmx2g -jar /srv/app.jar".to_string(),
            arguments: crate::base::redact::words_of("java -Xmx2g -jar /srv/app.jar"),
            user: "app".to_string(),
            uid: 1000,
            executable: "/opt/jdk-21/bin/java".to_string(),
            ..ProcessFacts::default()
        },
        status,
        mappings,
        pages: Ok(laid.runs),
        late: None,
        tasks: tasks.collect(),
        gaps: Vec::new(),
        page_sizes: Some(Ok(page_sizes)),
        smaps: Some(Ok(laid.smaps)),
    };
    let settings = PageSettings { host: pages(), advice: Some(BTreeMap::new()) };
    let taken = Taken {
        kernel: "6.12.0".to_string(),
        kernel_resident_bytes: Some(resident),
        changed_while_reading_bytes: Some(0),
        page_settings: Some(settings),
        ..Taken::default()
    };
    let (jvm, alloc) = (Ok(jvm(laid.extents, laid.threads)), Ok(alloc()));
    Snapshot { taken, os, images: Vec::new(), jvm, alloc, links: Vec::new() }
}
