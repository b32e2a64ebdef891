//! Which blocks of 2 MiB of a running JVM can be put on huge pages without making it larger, and why the rest cannot.
//! Pure: from a snapshot and its account.
//!
//! A collapse fills what is absent of a block. In private memory a small share of that is allowed, as far as the process
//! does not grow by more than is asked; in shared memory none is: there the collector gives back single pages that lie
//! between others (ZGC), and would not learn that they are taken again.

pub use crate::act::promote::{Done, Pace, Price, Refusal, Stopped};
use crate::base::{Addr, Bytes, Range};
use crate::map::{Area, MemoryMap, Span};
use crate::os::machine::huge_page;
use crate::os::maps::Mapping;
use crate::os::pagemap::PageRun;
use crate::os::smaps::{self, Smap};
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// What is wanted.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Wanted {
    pub areas: Vec<Area>,
    /// The share of a block of private memory that must be in memory.
    pub density: f64,
    /// By how much the process may grow, as a share of what it has in memory.
    pub growth: f64,
}

/// Why resident memory is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    /// Outside of whole blocks of its mapping.
    NoBlock,
    /// Its place in the file and its address do not fit.
    Offset,
    NoThp,
    Locked,
    Hugetlb,
    File,
    OtherArea,
    Sparse,
    SharedSparse,
    Growth,
    Swapped,
    OtherProcess,
    Alias,
    NoPlace,
}

impl Left {
    pub fn words(self) -> &'static str {
        match self {
            Left::NoBlock => "in no whole, aligned block of 2 MiB of its mapping",
            Left::Offset => "its place in the file and its address do not fit for huge pages",
            Left::NoThp => "the JVM or the kernel forbade huge pages here (nothp: stacks, say)",
            Left::Locked => "locked in memory: it could not be undone",
            Left::Hugetlb => "on hugetlb pages already",
            Left::File => "pages of a file, or private copies of them",
            Left::OtherArea => "the block holds memory of an area that is not asked for, too",
            Left::Sparse => "blocks with holes: a huge page would fill them",
            Left::SharedSparse => "blocks of shared memory with holes: a huge page would fill them",
            Left::Growth => "blocks with few holes, beyond the growth that is allowed (--growth)",
            Left::Swapped => "blocks that are swapped out in part",
            Left::OtherProcess => "shared with a forked process",
            Left::Alias => "the same memory at another address",
            Left::NoPlace => "this kernel does not report its offset in the mapping",
        }
    }
}

/// A block that is to be on a huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedBlock {
    pub range: Range,
    pub area: Area,
    pub resident: Bytes,
    pub is_shared: bool,
}

/// One area, in resident bytes: `resident` is the sum of the others.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct AreaBlocks {
    pub area: Area,
    #[serde(rename = "resident_bytes")]
    pub resident: Bytes,
    /// On transparent huge pages.
    #[serde(rename = "on_2m_bytes")]
    pub on_2m: Bytes,
    #[serde(rename = "fit_bytes")]
    pub planned: Bytes,
    #[serde(skip)]
    pub left: BTreeMap<Left, Bytes>,
}

impl AreaBlocks {
    fn new(area: Area) -> AreaBlocks {
        AreaBlocks { area, resident: 0, on_2m: 0, planned: 0, left: BTreeMap::new() }
    }
}

/// The blocks, fullest first among equals in address order, and the sums.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockPlan {
    /// Sorted by address.
    pub blocks: Vec<PlannedBlock>,
    /// Blocks of the areas that are on transparent huge pages now; sorted, not joined.
    pub on_2m: Vec<PlannedBlock>,
    pub areas: Vec<AreaBlocks>,
    /// The bytes that the blocks lack, by which the process grows.
    pub growth: Bytes,
    pub resident: Bytes,
}

/// What is known of a block that has anything in memory.
#[derive(Default)]
struct Seen {
    resident: Bytes,
    huge: Bytes,
    shared_with_others: bool,
    swapped: bool,
    by_area: BTreeMap<Area, Bytes>,
}

/// The plan. `Err` where the place of the pages is not known.
pub fn plan(snapshot: &Snapshot, map: &MemoryMap, wanted: &Wanted) -> Result<BlockPlan, crate::base::Gap> {
    let runs = snapshot.os.pages.as_ref().map_err(Clone::clone)?;
    let smaps = match &snapshot.os.smaps {
        Some(Ok(smaps)) => smaps.as_slice(),
        Some(Err(gap)) => return Err(gap.clone()),
        None => &[],
    };
    let resident = runs.iter().filter(|run| run.is_present()).map(|run| run.range.bytes()).sum();
    let mut planner = Planner { wanted, areas: BTreeMap::new(), found: Vec::new(), on_2m: Vec::new() };
    let mut spans = map.spans.as_slice();
    for (index, mapping) in snapshot.os.mappings.iter().enumerate() {
        let count = spans.iter().take_while(|span| span.mapping == index).count();
        let (own, rest) = spans.split_at(count);
        spans = rest;
        let is_wanted = |span: &Span| wanted.areas.contains(&main_area(map, span));
        if !own.iter().any(is_wanted) {
            continue;
        }
        let first = runs.partition_point(|run| run.range.end <= mapping.range.start);
        let last = runs.partition_point(|run| run.range.start < mapping.range.end);
        let smap = smaps::find(smaps, mapping.range.start);
        planner.mapping(mapping, smap, own, map, &runs[first.min(last)..last]);
    }
    Ok(planner.finish(resident))
}

/// The area that has most of a span.
fn main_area(map: &MemoryMap, span: &Span) -> Area {
    let most = span.shares.iter().max_by_key(|share| share.figures.reserved);
    most.map_or(Area::Unattributed, |share| map.owners[share.owner].area)
}

struct Planner<'a> {
    wanted: &'a Wanted,
    areas: BTreeMap<Area, AreaBlocks>,
    /// Blocks that may be planned, with the file and the offset of those of shared memory.
    found: Vec<(PlannedBlock, Option<FileBlock>)>,
    on_2m: Vec<PlannedBlock>,
}

/// Device, inode, and offset in the file.
type FileBlock = (String, u64, u64);

impl Planner<'_> {
    fn mapping(
        &mut self,
        mapping: &Mapping,
        smap: Option<&Smap>,
        spans: &[Span],
        map: &MemoryMap,
        runs: &[PageRun],
    ) {
        let whole =
            Range::new(mapping.range.start.up_to(huge_page()), mapping.range.end.down_to(huge_page()));
        let never = never(mapping, smap);
        let mut blocks: BTreeMap<Addr, Seen> = BTreeMap::new();
        let mut first = 0;
        for span in spans {
            let area = main_area(map, span);
            first += runs[first..].iter().take_while(|run| run.range.end <= span.range.start).count();
            for run in runs[first..].iter().take_while(|run| run.range.start < span.range.end) {
                let piece = run.range.intersect(span.range);
                let inside = piece.intersect(whole);
                if !run.is_placed() {
                    self.leave(area, Left::NoPlace, if run.is_present() { piece.bytes() } else { 0 });
                    continue;
                }
                if run.is_present() {
                    self.leave(area, never.unwrap_or(Left::NoBlock), piece.bytes() - inside.bytes());
                }
                note(&mut blocks, run, inside, area);
            }
        }
        for (start, seen) in blocks {
            let range = Range::sized(start, huge_page());
            self.block(mapping, range, &seen, never, is_all_wanted(self.wanted, spans, map, range));
        }
    }

    fn block(
        &mut self,
        mapping: &Mapping,
        range: Range,
        seen: &Seen,
        never: Option<Left>,
        is_all_wanted: bool,
    ) {
        let is_shared = mapping.rights.shared;
        let main = seen.by_area.iter().max_by_key(|(_, bytes)| **bytes).map(|(area, _)| *area);
        let block = PlannedBlock {
            range,
            area: main.unwrap_or(Area::Unattributed),
            resident: seen.resident,
            is_shared,
        };
        let has_holes = seen.resident < huge_page();
        let left = match never {
            Some(Left::Hugetlb) => Some(Left::Hugetlb),
            _ if seen.huge == huge_page() => {
                for (area, bytes) in &seen.by_area {
                    if let Some(sums) = self.sums(*area) {
                        sums.resident += bytes;
                        sums.on_2m += bytes;
                    }
                }
                if is_all_wanted {
                    self.on_2m.push(block);
                }
                return;
            }
            Some(never) => Some(never),
            None if !is_all_wanted => Some(Left::OtherArea),
            None if seen.swapped => Some(Left::Swapped),
            None if seen.shared_with_others => Some(Left::OtherProcess),
            None if is_shared && has_holes => Some(Left::SharedSparse),
            None if (seen.resident as f64) < huge_page() as f64 * self.wanted.density => Some(Left::Sparse),
            None => None,
        };
        if let Some(left) = left {
            seen.by_area.iter().for_each(|(area, bytes)| self.leave(*area, left, *bytes));
            return;
        }
        let offset = mapping.offset.saturating_add(range.start.0 - mapping.range.start.0);
        let file = is_shared.then(|| (mapping.device.clone(), mapping.inode, offset));
        // Of one block all areas are wanted here: it is counted for the one that has most of it.
        self.found.push((block, file));
    }

    fn sums(&mut self, area: Area) -> Option<&mut AreaBlocks> {
        let is_wanted = self.wanted.areas.contains(&area);
        is_wanted.then(|| self.areas.entry(area).or_insert_with(|| AreaBlocks::new(area)))
    }

    fn leave(&mut self, area: Area, left: Left, bytes: Bytes) {
        if bytes == 0 {
            return;
        }
        if let Some(sums) = self.sums(area) {
            sums.resident += bytes;
            *sums.left.entry(left).or_default() += bytes;
        }
    }

    fn finish(mut self, resident: Bytes) -> BlockPlan {
        let allowed = (resident as f64 * self.wanted.growth.max(0.0)) as Bytes;
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|(block, _)| (std::cmp::Reverse(block.resident), block.range.start));
        let mut seen: HashMap<FileBlock, ()> = HashMap::new();
        let (mut growth, mut blocks) = (0, Vec::with_capacity(found.len()));
        for (block, file) in found {
            let holes = huge_page() - block.resident.min(huge_page());
            if file.is_some_and(|file| seen.insert(file, ()).is_some()) {
                self.leave(block.area, Left::Alias, block.resident);
            } else if growth + holes > allowed {
                self.leave(block.area, Left::Growth, block.resident);
            } else {
                growth += holes;
                if let Some(sums) = self.sums(block.area) {
                    sums.resident += block.resident;
                    sums.planned += block.resident;
                }
                blocks.push(block);
            }
        }
        blocks.sort_by_key(|block| block.range.start);
        let areas = self.areas.into_values().collect();
        BlockPlan { blocks, on_2m: self.on_2m, areas, growth, resident }
    }
}

/// Why no block of a mapping may be on a transparent huge page.
fn never(mapping: &Mapping, smap: Option<&Smap>) -> Option<Left> {
    let has = |flag: &str| smap.is_some_and(|smap| smap.has_flag(flag));
    let is_shmem = mapping.rights.shared && mapping.is_shmem_name();
    match () {
        () if has("ht") || mapping.is_hugetlb_name() => Some(Left::Hugetlb),
        () if has("nh") => Some(Left::NoThp),
        () if !mapping.is_anonymous() && !is_shmem => Some(Left::File),
        () if has("lo") => Some(Left::Locked),
        () if is_shmem && !mapping.range.start.minus(mapping.offset).is_aligned(huge_page()) => {
            Some(Left::Offset)
        }
        () => None,
    }
}

/// Adds a piece of a run to the blocks that it lies in.
fn note(blocks: &mut BTreeMap<Addr, Seen>, run: &PageRun, piece: Range, area: Area) {
    let mut at = piece.start;
    while at < piece.end {
        let start = at.down_to(huge_page());
        let here = Range::new(at, start.plus(huge_page()).min(piece.end));
        at = here.end;
        let seen = blocks.entry(start).or_default();
        if run.is_swapped() {
            seen.swapped = true;
        }
        if run.is_present() {
            seen.resident += here.bytes();
            *seen.by_area.entry(area).or_default() += here.bytes();
            seen.shared_with_others |= run.mapped_times > 1 && !run.is_file();
            if run.page_bytes as Bytes >= huge_page() {
                seen.huge += here.bytes();
            }
        }
    }
}

/// Whether all that lies in a block is of the areas that are asked for, also what is not in memory.
fn is_all_wanted(wanted: &Wanted, spans: &[Span], map: &MemoryMap, block: Range) -> bool {
    let first = spans.partition_point(|span| span.range.end <= block.start);
    let mut inside = spans[first..].iter().take_while(|span| span.range.start < block.end);
    let mut covered = 0;
    inside.all(|span| {
        covered += span.range.intersect(block).bytes();
        span.shares.iter().all(|share| wanted.areas.contains(&map.owners[share.owner].area))
    }) && covered == block.bytes()
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
