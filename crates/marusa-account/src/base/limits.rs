//! Every bound of every walk, named in one place. The target's bytes are hostile: a list may be cyclic, a count may be
//! 2^63. A walk that reaches its bound ends with `Why::OverLimit`, never with a hang or with the machine's memory gone.

use super::Bytes;
use std::time::Duration;

/// What one target may take of us, whatever its memory looks like (`os::budget`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetLimits {
    pub time: Duration,
    /// Memory of our own, beyond what was there when the target was begun.
    pub bytes: Bytes,
}

const fn target(seconds: u64, mib: u64) -> TargetLimits {
    TargetLimits { time: Duration::from_secs(seconds), bytes: mib << 20 }
}

/// A JVM that the user named: map, freeze, diff, audit, trim, doctor TARGET, pages. A JVM of 200 GB with millions of runs of
/// pages takes 2 to 10 s and 3 GiB.
pub const TARGET_ALONE: TargetLimits = target(60, 8 << 10);
/// One of all JVMs, read whole: doctor without TARGET.
pub const TARGET_OF_MANY: TargetLimits = target(15, 4 << 10);
/// One of all JVMs, of which a few facts are read: list, and the search for a TARGET by name. 5 ms are usual.
pub const TARGET_LISTED: TargetLimits = target(3, 256);
/// One that is read again and again: top, record TARGET. The next reading comes soon.
pub const TARGET_WATCHED: TargetLimits = target(20, 4 << 10);
/// A file that was made before: frozen files, cores, recordings. A core without holes is searched at the speed of the disk.
pub const TARGET_FILE: TargetLimits = target(600, 16 << 10);
/// What the slow ones of all JVMs share, and what each gets when that is used up: of list, doctor and top.
pub const LIST_SLOW: (Duration, Duration) = (Duration::from_secs(20), Duration::from_millis(100));
pub const DOCTOR_SLOW: (Duration, Duration) = (Duration::from_secs(60), Duration::from_millis(500));
pub const TOP_SLOW: (Duration, Duration) = (Duration::from_secs(10), Duration::from_millis(250));
/// `record --all`: the first reading of a JVM, of which nothing is known, and the longest one. A JVM that could not be read in
/// its time is read again later, each time with four times as much, up to the last.
pub const RECORD_FIRST: TargetLimits = TargetLimits { time: Duration::from_secs(2), bytes: 512 << 20 };
pub const RECORD_MOST: TargetLimits = target(8, 4 << 10);
/// Who a JVM is that `record --all` has just found.
pub const RECORD_FACTS: TargetLimits = TargetLimits { time: Duration::from_millis(500), bytes: 128 << 20 };
/// The last account of a recording, after a signal to end.
pub const RECORD_LAST: TargetLimits = TargetLimits { time: Duration::from_millis(500), bytes: 4 << 30 };
/// JVMs that `record --all` watches at once; how long it looks for new ones at a time, and the shortest part of it for one.
pub const RECORD_JVMS_MAX: usize = 5_000;
pub const RECORD_FIND: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(50));

/// What one target may take, by command; a command that reads files, or all JVMs, says so when it runs.
pub fn of_command(name: &str) -> TargetLimits {
    match name {
        "list" => TARGET_LISTED,
        "top" | "record" | "serve" | "stalls" | "tlb" => TARGET_WATCHED,
        "report" | "leak" | "export" | "advise" => TARGET_FILE,
        _ => TARGET_ALONE,
    }
}

/// Mappings of one process. The kernel's default `vm.max_map_count` is 65,530; hosts that raise it stay below this.
pub const MAPPINGS_MAX: usize = 4_000_000;
/// Runs of alike pages that are kept for one process: 64 bytes each.
pub const PAGE_RUNS_MAX: usize = 16_000_000;
/// Threads of one process that are looked at.
pub const THREADS_MAX: usize = 200_000;
/// Bytes of the target's memory that are kept while one snapshot is taken.
pub const MEMORY_CACHE_BYTES_MAX: usize = 256 << 20;
/// Entries of each vmStructs table; JDK 11 has the most, 838 fields.
pub const VMSTRUCTS_ENTRIES_MAX: usize = 20_000;
/// Length of a name in those tables, and bytes of all names and texts of one VM. The longest name is 78 bytes long, all
/// names of JDK 8 take 90 KB; texts of flags may be longer.
pub const VM_NAME_BYTES_MAX: usize = 512;
pub const VM_TEXTS_BYTES_MAX: usize = 16 << 20;
/// Length of a C string of the target, in bytes.
pub const C_STRING_BYTES_MAX: usize = 4_096;
/// Options that a VM was started with, and bytes of them and of the main class's arguments.
pub const LAUNCH_OPTIONS_MAX: usize = 4_096;
pub const LAUNCH_TEXTS_BYTES_MAX: usize = 2 << 20;
/// `-XX` flags; JDK 8 has the most, 1,449.
pub const FLAGS_MAX: usize = 10_000;
/// Regions of a heap (G1, Shenandoah, ZGC pages).
pub const HEAP_REGIONS_MAX: usize = 2_000_000;
/// Shenandoah's region objects, 256 bytes each in JDK 25.
pub const REGION_TABLE_BYTES_MAX: u64 = 256 << 20;
/// ZGC's page table: 8 bytes for each 2 MiB of address space, and ZGC reserves at most 16 times 16 TiB.
pub const Z_PAGE_TABLE_BYTES_MAX: u64 = 1 << 30;
/// A collector's object that is searched for its tables; JDK 21's ZCollectedHeap has 16,384 bytes.
pub const COLLECTOR_BYTES_MAX: u64 = 64 << 10;
/// Class loaders and classes that are walked.
pub const LOADERS_MAX: usize = 1_000_000;
pub const CLASSES_MAX: usize = 4_000_000;
/// Chunks of metaspace of one loader: 4 GiB of the smallest. And groups of alike loaders: a program may name each loader anew.
pub const LOADER_CHUNKS_MAX: u64 = 4 << 20;
pub const LOADER_GROUPS_MAX: usize = 20_000;
/// Code heaps, and blocks in one code heap.
pub const CODE_HEAPS_MAX: usize = 16;
pub const CODE_BLOCKS_MAX: usize = 4_000_000;
/// Arenas, and heaps of one arena, of glibc's malloc.
pub const ARENAS_MAX: usize = 65_536;
pub const ARENA_HEAPS_MAX: usize = 1_000_000;
/// Objects that are visited when pointers are followed from a collector to its side tables.
pub const REACH_OBJECTS_MAX: usize = 20_000;
/// A mapping larger than this is not read page by page from /proc/PID/pagemap: 8 bytes a page, 2 GiB in all.
pub const PAGEMAP_MAPPING_BYTES_MAX: u64 = 1 << 40;
/// Threads from which the layout of a thread control block is learnt, and bytes of a block that are looked at for it.
pub const THREAD_SEEDS_MAX: usize = 32;
pub const THREAD_BLOCK_BYTES_MAX: u64 = 4_096;
/// How long the answer of one command to a JVM may be, and how long it may take. `System.map` of a JVM with 65,530
/// mappings is 12 MB.
pub const ATTACH_ANSWER_BYTES_MAX: usize = 64 << 20;
pub const ATTACH_ANSWER_SECONDS_MAX: u64 = 30;
/// How long a JVM may take to open its socket after it was asked to.
pub const ATTACH_OPEN_SECONDS_MAX: u64 = 10;
/// Pages that are not mapped once whose count is looked up, and the runs that this may add.
pub const SHARED_PAGES_MAX: usize = 262_144;
pub const SHARING_RUNS_MAX: usize = 1_000_000;
/// Writable data of a libc that is searched for its arenas, in bytes; glibc has 80 KB, static programs a few MB.
pub const LIBC_DATA_BYTES_MAX: u64 = 16 << 20;
/// Pages that are tried as the start of a mapped segment of the main arena, and chunks in one.
pub const SEGMENT_STARTS_MAX: usize = 100_000;
pub const SEGMENT_CHUNKS_MAX: usize = 1_000_000;
/// Pages whose first words are looked at for a mapped chunk of malloc: 1 GiB of memory without a claim.
pub const MMAPPED_PAGES_MAX: usize = 262_144;
/// The performance counters of a VM: 32 KiB by default, -XX:PerfDataMemorySize sets more; JDK 25 has 187 of them.
pub const PERF_MEMORY_BYTES_MAX: u64 = 32 << 20;
pub const PERF_COUNTERS_MAX: usize = 100_000;
/// Objects looked at on the way from one class loader to the metaspace node that its classes lie in, and how far away.
pub const NODE_OBJECTS_MAX: usize = 4_000;
pub const NODE_DEPTH_MAX: u32 = 7;
/// Metaspace nodes: one has 64 MB in JDK 17 and later, 2 to 8 MB before.
pub const METASPACE_NODES_MAX: usize = 4_096;
/// A range of an image's writable data that is searched for pointers; libjvm.so of JDK 25 has 1.7 MB.
pub const IMAGE_DATA_BYTES_MAX: u64 = 64 << 20;
/// Loaded images whose calls of `fork` are looked for.
pub const FORKING_IMAGES_MAX: usize = 1_024;
/// Words of libraries' data that are searched for pointers to memory without an owner, and objects they point to.
pub const LINK_WORDS_MAX: usize = 8_000_000;
pub const LINK_OBJECTS_MAX: usize = 100_000;
/// Lines of one report that a JVM prints. The detail report has ten lines for each call site.
pub const REPORT_LINES_MAX: usize = 4_000_000;
/// How far pointers are followed from a collector to its side tables, how many words of each object are looked at, and
/// rows of a table that points to its own rows.
pub const REACH_DEPTH_MAX: usize = 3;
pub const REACH_OBJECT_WORDS_MAX: usize = 128;
pub const REACH_ROWS_MAX: u64 = 65_536;
/// Mappings whose start is read before all else.
pub const FETCHED_MAPPINGS_MAX: usize = 4096;
/// How often one walk of a heap may lose its way, and chunks that are looked at to find back.
pub const RESYNCS_MAX: usize = 1_000;
pub const RESYNC_CHUNKS_MAX: usize = 4_000_000;
/// Chunks that are looked at along one list of free chunks, and bytes of one read past every window for all lists.
pub const LIST_CHUNKS_MAX: usize = 100_000_000;
pub const LIST_FAR_READS_MAX: usize = 2_000_000;
/// The search for an allocator's memory by what points into it: loaded files, and bytes that are looked at.
pub const POINTED_IMAGES_MAX: usize = 4_096;
pub const POINTED_BYTES_MAX: u64 = 128 << 20;
/// Tags of Native Memory Tracking: JDK 25 has 28.
pub const NMT_TAGS_MAX: usize = 64;
/// Resident bytes that are searched for marked blocks of the runtime in the memory of an allocator that is not walked: 1
/// GB takes about a second. And pieces into which that memory falls.
pub const MARK_SCAN_BYTES_MAX: u64 = 16 << 30;
pub const MARK_SCAN_PIECES_MAX: usize = 1_000_000;
/// How much of a library's constants is searched for its version, in bytes; libjemalloc has 0.7 MB.
pub const VERSION_SCAN_BYTES_MAX: u64 = 8 << 20;
/// Notes of a core: 3 to 14 KB for each thread, by the registers that the machine has.
pub const CORE_NOTE_BYTES_MAX: u64 = 4 << 30;
/// Extents of data between the holes of a core.
pub const CORE_EXTENTS_MAX: usize = 8_000_000;
/// A core without holes that is larger is not searched for pages of zeros.
pub const CORE_ZERO_BYTES_MAX: u64 = 64 << 30;
/// Files of a core that are opened.
pub const CORE_FILES_MAX: usize = 8_192;
/// Chunks of the arenas of one compiler thread, usually 32 KiB each.
pub const ARENA_CHUNKS_MAX: usize = 200_000;
/// Blocks of malloc whose owners are looked for, some 20 bytes each, and pointers between them that are kept, 12 bytes each.
pub const OWNED_BLOCKS_MAX: usize = 2_000_000;
pub const BLOCK_POINTERS_MAX: usize = 16_000_000;
/// A block larger than the first is searched for pointers only at its start, as far as the second says, and as far as the
/// third when it has an owner who gives what it points to.
pub const BLOCK_WHOLE_BYTES_MAX: u64 = 16 << 10;
pub const BLOCK_START_BYTES: u64 = 4 << 10;
pub const BLOCK_SEARCHED_BYTES_MAX: u64 = 1 << 20;
/// The size of one heap of malloc that is walked: the map of its chunks takes a 32nd of it.
pub const HEAP_WALK_BYTES_MAX: u64 = 256 << 30;
/// Objects looked at by all searches from loaders to metaspace nodes together, and for lists of nodes.
pub const NODE_SEARCHES_OBJECTS_MAX: usize = 20_000;
pub const NODE_LISTS_OBJECTS_MAX: usize = 100_000;
/// Cleaners and deallocators of direct buffers that are followed.
pub const DIRECT_BUFFERS_MAX: usize = 1_000_000;
/// Object monitors, or blocks of 128 of them, that are followed.
pub const MONITORS_MAX: usize = 4_000_000;
/// Bytes on small pages up to which the kernel is asked what was advised of each mapping: it takes 15 to 20 ms a gigabyte.
pub const ADVICE_SMALL_PAGES_BYTES_MAX: u64 = 256 << 20;
/// How much of the start of a JVM's output is searched for what it says of its pages.
pub const OUTPUT_BYTES_MAX: u64 = 256 << 10;
/// Resident bytes of one backing in 4 KiB entries whose folios are looked up one by one, some 60 us a MiB; of more than that, a
/// sample. And bytes whose frames are looked at for contiguity: 6 us a MiB.
pub const FOLIO_BYTES_READ_MAX: u64 = 2 << 30;
pub const CONTIGUITY_BYTES_READ_MAX: u64 = 256 << 20;
/// Runs of pages on larger folios that are kept, 40 bytes each.
pub const SIZE_RUNS_MAX: usize = 4_000_000;
/// Counters that are open at once: 38 for each thread on Intel, and while threads come and go two sets of them.
/// Counters that are open at once: 40 for each thread on Intel, and while threads come and go two sets of them.
pub const COUNTERS_MAX: usize = 4_000_000;
/// A receipt of `pages collapse`: its length, and the blocks of 2 MiB that it may name (8 TiB).
pub const RECEIPT_BYTES_MAX: u64 = 256 << 20;
pub const RECEIPT_BLOCKS_MAX: usize = 4 << 20;
/// Blocks that all lines of a receipt name together: each block when it is begun, when it is done and when it is split again.
pub const RECEIPT_BLOCKS_NAMED_MAX: u64 = 8 * RECEIPT_BLOCKS_MAX as u64;
/// Lines of a JVM's log that are searched for messages, and different messages that are kept.
pub const LOG_LINES_MAX: usize = 200_000;
pub const LOG_MESSAGES_MAX: usize = 64;
/// How much of the start of a jar is searched for the classes of its launcher, which the builders of such jars write first.
pub const JAR_START_BYTES_MAX: u64 = 64 << 10;
/// Open files of a JVM that are compared with the names of its logs and its jar.
pub const OPEN_FILES_MAX: usize = 65_536;
/// Zones and nodes of memory, and sizes of free blocks: a node has up to 5 zones, Linux up to 1,024 nodes, 11 sizes by default.
pub const MEMORY_ZONES_MAX: usize = 8_192;
pub const MEMORY_NODES_MAX: usize = 1_024;
pub const MEMORY_ORDERS_MAX: usize = 32;
/// What a JDK may print when it is asked for its flags, and how long it may take: JDK 8 prints 1,449 lines.
pub const FLAGS_TEXT_BYTES_MAX: usize = 4 << 20;
pub const FLAGS_TEXT_SECONDS_MAX: u64 = 30;
/// The door: a path of a plan's step, the values of a file that a step makes, the steps of a plan, a plan's file and a journal;
/// and what is read of a file of the kernel's.
pub const DOOR_PATH_BYTES_MAX: usize = 1_024;
pub const DOOR_VALUES_MAX: usize = 64;
pub const DOOR_STEPS_MAX: usize = 1_000;
pub const DOOR_PLAN_BYTES_MAX: u64 = 16 << 20;
pub const DOOR_JOURNAL_BYTES_MAX: u64 = 64 << 20;
pub const DOOR_KERNEL_FILE_BYTES_MAX: u64 = 4 << 10;
/// Journals in a state directory.
pub const DOOR_JOURNALS_MAX: usize = 100_000;
/// Files of a tree that is copied, and how deep it is; a JDK has some 500 in 10 levels.
pub const DOOR_COPIED_FILES_MAX: usize = 200_000;
pub const DOOR_COPIED_DEPTH_MAX: usize = 64;
/// Files and directories that a copy has as links.
pub const DOOR_LINKED_MAX: usize = 10_000;
/// Turns of the ladder by which pages are got that the kernel did not give at once.
pub const DOOR_POOL_ROUNDS_MAX: usize = 4;
/// cgroups on the way from a process to the root; the kernel itself has no limit below 2^31.
pub const GROUP_DEPTH_MAX: usize = 64;
/// Cgroups below one, and processes in all of them.
pub const GROUPS_BELOW_MAX: usize = 20_000;
pub const GROUP_PROCESSES_MAX: usize = 20_000;
/// Open files and mappings of a cgroup's processes that are looked at, 1 KiB of text each; and different files among them whose
/// pages are counted.
pub const GROUP_OPEN_FILES_MAX: usize = 2_000_000;
pub const GROUP_FILES_MAX: usize = 300_000;
/// Rows of each kind that a ledger shows where nothing else is asked for; the rest of them is one row.
pub const GROUP_TOP: usize = 50;
/// The same on a terminal.
pub const GROUP_SHOWN: usize = 10;
/// The same of a ledger that is recorded near a limit, and the bytes from which on a row is kept.
pub const GROUP_RECORDED: usize = 5;
pub const GROUP_RECORDED_BYTES_MIN: u64 = 1 << 20;
/// The bytes that are read of each table of sockets of a network namespace, 150 to 200 bytes a socket.
pub const SOCKET_TABLE_BYTES_MAX: u64 = 32 << 20;
/// Mounts of tmpfs that are asked for what they hold.
pub const GROUP_TMPFS_MAX: usize = 4_096;
/// JVMs that `doctor` examines at once.
pub const DOCTOR_JVMS_MAX: usize = 500;
/// Bytes on large pages, and of stacks, that are all searched for pages of zeros; of more, a sample of about this size.
pub const ZEROS_BYTES_READ_MAX: u64 = 1 << 30;
pub const ZEROS_SAMPLE_BYTES: u64 = 512 << 20;
/// Threads that are in a stall of memory at once, or were lately, and holes in the trace that are kept at once.
pub const STALL_THREADS_MAX: usize = 200_000;
pub const STALL_HOLES_MAX: usize = 10_000;
/// Processes whose names and CPU time are kept while stalls are watched.
pub const STALL_PROCESSES_MAX: usize = 20_000;
/// tracefs: a format, the head of a page and other small files; fields of an event and words of a status; a page of a ring
/// buffer (4 KiB unless it is set); pages of one CPU that are read at a time.
pub const TRACE_FILE_BYTES_MAX: u64 = 256 << 10;
pub const TRACE_FIELDS_MAX: usize = 128;
pub const TRACE_WORDS_MAX: usize = 256;
pub const TRACE_PAGE_BYTES_MAX: usize = 1 << 20;
pub const TRACE_PAGES_READ_MAX: usize = 65_536;
/// Ring buffers of one instance, in all and for each CPU: an event takes some 50 bytes.
pub const TRACE_BUFFER_BYTES: u64 = 32 << 20;
pub const TRACE_CPU_BUFFER_BYTES_MAX: u64 = 4 << 20;
pub const TRACE_CPU_BUFFER_BYTES_MIN: u64 = 64 << 10;
/// Threads whose process is remembered, 40 bytes each; and instances of tracefs that are looked at.
pub const TRACE_THREADS_MAX: usize = 1_000_000;
pub const TRACE_INSTANCES_MAX: usize = 10_000;
/// A path that the target names (PATH_MAX), the links on its way (MAXSYMLINKS, as the kernel has it), and the directories above
/// each other, each of which is held open while the path is walked.
pub const FOREIGN_PATH_BYTES_MAX: usize = 4_096;
pub const FOREIGN_LINKS_MAX: usize = 40;
pub const FOREIGN_PATH_DEPTH_MAX: usize = 128;
/// The list of mounts of one process; the kernel allows 100,000 in a namespace (fs.mount-max).
pub const FOREIGN_MOUNTS_BYTES_MAX: u64 = 64 << 20;
pub const FOREIGN_MOUNTS_MAX: usize = 200_000;
/// Who a process is to its platform: how much of its list of mounts is searched (a pod has some 40 mounts, 200 bytes each), of a
/// file in its root that holds one name, and directories of pods' logs on a host, which runs some hundreds of pods.
pub const IDENTITY_MOUNTS_BYTES_MAX: u64 = 1 << 20;
pub const IDENTITY_FILE_BYTES_MAX: u64 = 512;
pub const POD_LOGS_MAX: usize = 10_000;
/// The file `release` of a JDK: GraalVM 21 has the longest, 2 KB.
pub const RELEASE_BYTES_MAX: u64 = 64 << 10;
/// The symbols and their names that are read of one file, each: a debug build of libjvm.so has 20 MB of names. And the file itself,
/// where it is searched whole.
pub const SYMBOL_BYTES_MAX: u64 = 64 << 20;
pub const SEARCHED_FILE_BYTES_MAX: u64 = 1 << 30;
/// One note of a core. The kernel's own longest is the list of mapped files, 16 MiB at most (kernel.core_file_note_size_limit).
pub const CORE_ONE_NOTE_BYTES_MAX: u64 = 64 << 20;
/// Files that the user names, which may come from a stranger. What is unpacked of one, and the memory that what was read of it
/// takes, is at most `INPUT_FACTOR` times its length and `INPUT_BYTES_FREE` more, each. A frozen JVM unpacks to 8 times its
/// file, the series of a recording take some 20 times theirs; deflate alone reaches 1,030.
pub const INPUT_FACTOR: u64 = 64;
pub const INPUT_BYTES_FREE: u64 = 16 << 20;
/// The whole process, while it reads such a file and prints what is in it: at most `INPUT_PROCESS_FACTOR` times the length of
/// the file and `INPUT_PROCESS_BYTES_FREE`, its own program included. tests/fast/strangers measures this.
pub const INPUT_PROCESS_FACTOR: u64 = 2_048;
pub const INPUT_PROCESS_BYTES_FREE: u64 = 512 << 20;
/// A frozen file: its unpacked bytes. Each mapping takes more than 4 bytes of a packed file and each run of pages more than 1:
/// their addresses differ.
pub const FROZEN_UNPACKED_BYTES_MAX: u64 = 2 << 30;
pub const FROZEN_PIECE_BYTES_MAX: u64 = 1 << 20;
pub const FROZEN_MAPPINGS_FREE: u64 = 65_536;
pub const FROZEN_BYTES_PER_MAPPING: u64 = 4;
pub const FROZEN_RUNS_FREE: u64 = 262_144;
/// Devices whose files are shared memory; a host has a handful. And the largest page: aarch64 has 16 GiB with 64 KiB pages.
pub const FROZEN_SHMEM_DEVICES_MAX: usize = 256;
pub const PAGE_BYTES_MAX: u64 = 16 << 30;
/// Files of one recording together.
pub const RECORDING_BYTES_MAX: u64 = 16 << 30;
/// Series of a JVM times its moments: readers look at each series at each moment. A file that claims more than this many, and
/// this many for each of its bytes, is refused: a recorder writes some 10 bytes for a moment of 300 series.
pub const RECORDING_FIGURES_FREE: u64 = 1 << 30;
pub const RECORDING_FIGURES_PER_BYTE: u64 = 1_024;
/// Figures of a recording that a report draws, 16 bytes each; of more, it draws every second moment, every third, and so on.
/// And notes of the recorder that it draws, for all JVMs together.
pub const REPORT_FIGURES_MAX: usize = 8 << 20;
pub const REPORT_NOTES_MAX: usize = 1 << 16;
/// The account of `marusa map --json` has some hundreds of kilobytes; 65,530 mappings listed make 30 MB.
pub const ACCOUNT_JSON_BYTES_MAX: u64 = 256 << 20;
/// A log of collections: a line takes some 100 bytes, a busy JVM writes 100 MB a day.
pub const GC_LOG_BYTES_MAX: u64 = 256 << 20;
/// What a comparison or a bench saved, and the trials in it: some kilobytes each.
pub const SAVED_BYTES_MAX: u64 = 256 << 20;
pub const SAVED_HEAD_BYTES_MAX: u64 = 16 << 20;
/// A core: bytes of paths of mapped files, which one name may give to many mappings; the longest path has 4,096.
pub const CORE_PATH_BYTES_MAX: usize = 4_096;
/// How long a FIFO that the user names for output may be without a reader.
pub const FIFO_READER_WAIT: std::time::Duration = std::time::Duration::from_secs(10);
