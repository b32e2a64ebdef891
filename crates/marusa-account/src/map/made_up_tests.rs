//! Snapshots, accounts and their parts that tests make up, also those of packages above (feature `made-up`).

use super::Area;
use super::bloat::Estimate;
use super::model::{Account, Amounts, AreaAccount, MallocAccount, MallocSums, Totals};
use crate::alloc::{AllocView, Arena, ArenaFigures, ArenaHeap, BlockCount, Interval, State};
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::jvm::{BlockOwner, Extent, Held, HeldBy, How, JvmView, Kind};
use crate::os::maps;
use crate::os::pagemap::PageRun;
use crate::os::status::Status;
use crate::os::target::{OsView, ProcessFacts};
use crate::snapshot::{Snapshot, Taken};
use std::collections::BTreeMap;

pub fn run(start: u64, end: u64, mapped_times: u32) -> PageRun {
    PageRun { range: Range::of(start, end), bits: PageRun::PRESENT, page_bytes: 4096, mapped_times }
}

pub fn extent(start: u64, end: u64, kind: Kind, part: &str, in_use: Option<u64>) -> Extent {
    let range = Range::of(start, end);
    Extent { range, kind, part: part.to_string(), in_use_bytes: in_use, how: How::VmStructs }
}

pub fn unknown<T>() -> Known<T> {
    Err(Gap::new("not read", Why::NotRead))
}

pub fn snapshot(maps: &str, pages: Vec<PageRun>, extents: Vec<Extent>) -> Snapshot {
    let os = OsView {
        process: ProcessFacts::default(),
        status: Status::default(),
        mappings: maps::parse(maps.as_bytes()).0,
        pages: Ok(pages),
        tasks: Vec::new(),
        gaps: Vec::new(),
        late: None,
        page_sizes: None,
        smaps: None,
    };
    let jvm = JvmView {
        vm: "hotspot".to_string(),
        version: unknown(),
        major: unknown(),
        gc: unknown(),
        library: String::new(),
        build_id: None,
        nmt: unknown(),
        flags: BTreeMap::new(),
        heap: unknown(),
        code: unknown(),
        classes: unknown(),
        threads: Vec::new(),
        extents,
        block_owners: Vec::new(),
        nmt_counts: Ok(Vec::new()),
        holders: None,
        loaders: None,
        buffers: None,
        histogram: None,
        gaps: Vec::new(),
    };
    Snapshot {
        taken: Taken::default(),
        os,
        images: Vec::new(),
        jvm: Ok(jvm),
        alloc: unknown(),
        links: Vec::new(),
    }
}

pub const RESERVED: Range = Range { start: Addr(0x10_0000), end: Addr(0x11_0000) };

pub fn interval(start: u64, end: u64, arena: Option<usize>, shares: &[(State, u64)]) -> Interval {
    let sum: u64 = shares.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(sum, end - start, "shares of an interval sum to it");
    Interval { range: Range::of(start, end), arena, shares: shares.to_vec() }
}

pub fn arena(number: usize, figures: Known<ArenaFigures>) -> Arena {
    let in_arena = Range::of(RESERVED.start.0, 0x10_8000);
    Arena {
        at: Addr(0x10_0030),
        number,
        heaps: vec![ArenaHeap { reserved: RESERVED, in_arena }],
        system_bytes: in_arena.bytes(),
        attached_threads: Some(2),
        threads: Vec::new(),
        figures,
    }
}

pub fn view(arenas: Vec<Arena>, mmapped: Vec<Range>, intervals: Vec<Interval>) -> AllocView {
    AllocView {
        other: None,
        allocator: "glibc 2.36".to_string(),
        arenas,
        mmapped,
        intervals,
        in_use: vec![
            BlockCount { blocks: 2, bytes: 0x1001 },
            BlockCount { blocks: 9, bytes: 0x2ff5 },
            BlockCount::default(),
        ],
        gaps: Vec::new(),
    }
}

pub const MAPS: &str = "100000-110000 rw-p 00000000 00:00 0 \n200000-204000 rw-p 00000000 00:00 0 \n";

/// An arena with everything in it, of odd sizes, and a mapped chunk.
pub fn everything(pages: Vec<PageRun>) -> Snapshot {
    let mut snapshot = snapshot(MAPS, pages, Vec::new());
    if let Ok(jvm) = &mut snapshot.jvm {
        jvm.block_owners.push(BlockOwner {
            kind: Kind::JitWork,
            part: "C2 arenas".to_string(),
            nmt_tag: Some("Compiler".to_string()),
            how: How::NmtHeader,
        });
    }
    let intervals = vec![
        interval(
            0x10_0000,
            0x10_4000,
            Some(1),
            &[
                (State::InUse(0), 0xffd),
                (State::InUse(1), 0x1ff9),
                (State::Tcache, 0x7),
                (State::Overhead, 0x1003),
            ],
        ),
        interval(0x10_4000, 0x10_7000, Some(1), &[(State::Large, 0x2fff), (State::Unresolved, 1)]),
        interval(0x10_7000, 0x10_9000, Some(1), &[(State::Top, 0x1000), (State::Beyond, 0x1000)]),
        interval(0x10_9000, 0x11_0000, Some(1), &[(State::Beyond, 0x7000)]),
        interval(
            0x20_0000,
            0x20_4000,
            None,
            &[(State::InUse(0), 4), (State::InUse(1), 0x3fec), (State::Overhead, 16)],
        ),
    ];
    let figures = ArenaFigures { trimmable_bytes: 0x2000, top_kept_bytes: 0x1000, ..ArenaFigures::default() };
    let chunk = Range::of(0x20_0000, 0x20_4000);
    snapshot.alloc = Ok(view(vec![arena(1, Ok(figures))], vec![chunk], intervals));
    snapshot
}

impl Held {
    /// In blocks of 4 KiB.
    pub fn made_up(holder: &str, bytes: Bytes) -> Held {
        Held {
            holder: holder.to_string(),
            how: HeldBy::Field,
            kind: Some("rocksdb::LRUCache".to_string()),
            library: None,
            bytes,
            blocks: bytes / 4096,
            direct_bytes: None,
            direct_blocks: None,
            types: Vec::new(),
            is_mapping: false,
            large: Vec::new(),
        }
    }
}

impl Estimate {
    pub fn exactly(bytes: Bytes) -> Estimate {
        Estimate { bytes, low: bytes, high: bytes }
    }
}

impl Account {
    /// An account of these areas alone; malloc was read if it has freed memory.
    pub fn made_up(figures: &[(Area, Bytes)]) -> Account {
        let area = |(area, resident_bytes): &(Area, Bytes)| AreaAccount {
            amounts: Amounts { resident_bytes: *resident_bytes, ..Amounts::default() },
            area: *area,
            paper_area: None,
            mappings: None,
            parts: Vec::new(),
        };
        let resident_bytes = figures.iter().map(|(_, bytes)| bytes).sum();
        let sums = MallocSums { trimmable_bytes: Some(0), ..MallocSums::default() };
        let is_walked = figures.iter().any(|(area, _)| *area == Area::MallocFreed);
        Account {
            malloc: is_walked.then(|| MallocAccount { sums, ..MallocAccount::default() }),
            totals: Totals { resident_bytes, ..Totals::default() },
            areas: figures.iter().map(area).collect(),
            ..Account::default()
        }
    }
}
