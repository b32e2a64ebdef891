//! Where pages of zeros are looked for: memory on pages larger than 4 KiB, and thread stacks on whatever pages, cut into the
//! blocks that are read.
//!
//! Up to a limit all of it is read. Of more, a sample: one block of 2 MiB out of each cell of neighbouring blocks
//! (`os::folio_sample`), with every mapping and every kind of page in cells of its own, so that a small arena next to a large
//! heap is looked at as well. A cell says how much memory its block stands for.

use super::folio_sample::{self, Cell};
use super::folios::Met;
use super::machine::base_page;
use super::maps::{Mapping, find_mapping};
use super::page_kind::{Backing, PageKind, PageSizes};
use super::pagemap::PageRun;
use super::smaps;
use super::target::OsView;
use crate::base::{Addr, Bytes, Range, overlapping};
use std::collections::BTreeMap;

/// Blocks that each mapping gets at least in a sample, as long as that is not most of it.
const BLOCKS_OF_MAPPING: usize = 16;
const BLOCK_BYTES: Bytes = 2 << 20;

/// Resident pages in a row that are alike, within one mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub range: Range,
    pub kind: PageKind,
    pub sort: Sort,
}

/// What becomes of a page of zeros when the larger page that it is part of is split (mm/huge_memory.c, Linux 6.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// A transparent huge page of private memory: its zeros become the zero page, which no process is charged for.
    Thp,
    /// The same, but locked in memory, or mapped by a forked process too: its zeros stay.
    ThpKept,
    /// Part of a larger folio of private memory that is mapped 4 KiB at a time: no command of ours splits it.
    Folio,
    /// Shared memory: a split leaves its pages in the file.
    Shared,
    /// Pages of hugetlb are never split.
    Hugetlb,
    /// A small page of a thread's stack.
    StackSmall,
}

impl Sort {
    /// The key in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Thp => "thp",
            Sort::ThpKept => "thp_not_split",
            Sort::Folio => "large_folio",
            Sort::Shared => "shared_memory",
            Sort::Hugetlb => "hugetlb",
            Sort::StackSmall => "stack_4k",
        }
    }
}

/// All that is worth a sample, sorted, disjoint. Memory that is mapped at several addresses is there once. `stacks`: what of
/// them is on small pages counts too.
pub fn candidates(view: &OsView, stacks: &[Range]) -> Vec<Candidate> {
    let Ok(runs) = &view.pages else { return Vec::new() };
    let sizes = match &view.page_sizes {
        Some(Ok(sizes)) => Some(sizes),
        _ => None,
    };
    let mut finder = Finder { view, sizes, met: Met::default(), found: Vec::new() };
    for run in runs.iter().filter(|run| run.is_present() && run.is_placed()) {
        let Some(mapping) = find_mapping(&view.mappings, run.range.start) else { continue };
        if Bytes::from(run.page_bytes) > base_page() {
            finder.large(mapping, run);
        } else {
            finder.small(mapping, run, stacks);
        }
    }
    let mut found = finder.found;
    found.sort_unstable_by_key(|candidate| candidate.range.start);
    found
}

struct Finder<'a> {
    view: &'a OsView,
    sizes: Option<&'a PageSizes>,
    met: Met<'a>,
    found: Vec<Candidate>,
}

impl<'a> Finder<'a> {
    fn large(&mut self, mapping: &'a Mapping, run: &PageRun) {
        let bytes = Bytes::from(run.page_bytes);
        let backing = match self.sizes {
            Some(sizes) => sizes.kind_of_run(run, mapping).backing,
            None if mapping.is_hugetlb_name() => Backing::Hugetlb,
            None if !run.is_file() => Backing::Anonymous,
            None if mapping.is_shmem_name() => Backing::Shmem,
            None => Backing::File,
        };
        let kind = PageKind { backing, folio_bytes: bytes, entry_bytes: bytes };
        let kept = run.mapped_times > 1 || self.is_locked(mapping);
        self.add(mapping, run.range, kind, kept);
    }

    /// Parts of larger folios, and stacks.
    fn small(&mut self, mapping: &'a Mapping, run: &PageRun, stacks: &[Range]) {
        let mut rest = run.range;
        if let Some(sizes) = self.sizes {
            let inside = overlapping(&sizes.runs, run.range, |size| size.range);
            for size in inside.filter(|size| !size.estimated && size.kind.folio_bytes > base_page()) {
                let here = size.range.intersect(run.range);
                self.stack(run, Range::new(rest.start, here.start), stacks);
                rest = Range::new(here.end, rest.end);
                self.add(mapping, here, size.kind, false);
            }
        }
        self.stack(run, rest, stacks);
    }

    fn stack(&mut self, run: &PageRun, range: Range, stacks: &[Range]) {
        if run.is_file() {
            return;
        }
        for stack in overlapping(stacks, range, |stack| *stack) {
            let range = stack.intersect(range).widened(base_page()).intersect(range);
            let kind = PageKind::small(Backing::Anonymous);
            self.found.push(Candidate { range, kind, sort: Sort::StackSmall });
        }
    }

    fn add(&mut self, mapping: &'a Mapping, range: Range, kind: PageKind, kept: bool) {
        let sort = match kind.backing {
            // Zeros of a file are its own.
            Backing::File => return,
            Backing::Hugetlb => Sort::Hugetlb,
            Backing::Shmem => Sort::Shared,
            Backing::Anonymous if kind.entry_bytes <= base_page() => Sort::Folio,
            Backing::Anonymous if kept => Sort::ThpKept,
            Backing::Anonymous => Sort::Thp,
        };
        if !mapping.is_file() || !mapping.rights.shared {
            self.found.push(Candidate { range, kind, sort });
            return;
        }
        let parts = self.met.first_time(mapping, range).into_iter();
        self.found.extend(parts.map(|range| Candidate { range, kind, sort }));
    }

    fn is_locked(&self, mapping: &Mapping) -> bool {
        let Some(Ok(smaps)) = &self.view.smaps else { return false };
        smaps::at(smaps, mapping.range.start).is_some_and(|smap| smap.has_flag("lo"))
    }
}

/// What is read: a block, and how much it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub sort: Sort,
    /// Sorted; 2 MiB in all at most.
    pub ranges: Vec<Range>,
    /// The bytes of the cell; those of `ranges` where all is read.
    pub stands_for_bytes: Bytes,
}

/// All blocks, or those of a sample of about `sample_bytes` where there are more than `all_bytes`.
pub fn pieces(view: &OsView, candidates: &[Candidate], all_bytes: Bytes, sample_bytes: Bytes) -> Vec<Piece> {
    let total: Bytes = candidates.iter().map(|candidate| candidate.range.bytes()).sum();
    let strata = strata(view, candidates);
    let rate = if total <= all_bytes { 1.0 } else { sample_bytes as f64 / total as f64 };
    let blocks_max = (sample_bytes / BLOCK_BYTES) as usize;
    let least = (blocks_max / (2 * strata.len()).max(1)).clamp(1, BLOCKS_OF_MAPPING);
    let mut pieces = Vec::new();
    for ((sort, _), ranges) in strata {
        let blocks = folio_sample::blocks(&ranges);
        let wanted = (blocks.len() as f64 * rate).round() as usize;
        let count = blocks.len();
        for cell in folio_sample::cells(blocks, wanted.clamp(least.min(count), count)) {
            pieces.extend(piece(sort, cell));
        }
    }
    pieces.sort_by_key(|piece| piece.ranges.first().map(|range| range.start));
    pieces
}

fn piece(sort: Sort, cell: Cell) -> Option<Piece> {
    let stands_for_bytes = cell.bytes();
    let ranges = cell.chosen()?.ranges.clone();
    Some(Piece { sort, ranges, stands_for_bytes })
}

/// By sort and mapping; of mappings that hold less than a block, all of one sort together.
fn strata(view: &OsView, candidates: &[Candidate]) -> BTreeMap<(Sort, Addr), Vec<Range>> {
    let mut strata: BTreeMap<(Sort, Addr), Vec<Range>> = BTreeMap::new();
    for candidate in candidates {
        let mapping = find_mapping(&view.mappings, candidate.range.start);
        let large = mapping
            .filter(|mapping| mapping.range.bytes() >= BLOCK_BYTES && candidate.sort != Sort::StackSmall);
        let key = large.map_or(Addr::NULL, |mapping| mapping.range.start);
        strata.entry((candidate.sort, key)).or_default().push(candidate.range);
    }
    strata
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps;
    use crate::os::page_kind::SizeRun;
    use crate::os::smaps;
    use crate::os::status::Status;
    use crate::os::target::ProcessFacts;

    const M: u64 = 1 << 20;

    fn view(maps: &str, pages: Vec<PageRun>, folios: Vec<SizeRun>) -> OsView {
        let sizes = PageSizes {
            runs: folios,
            looks: Vec::new(),
            contiguous: Ok(Default::default()),
            hugetlb: vec![Range::of(0x4000_0000, 0x4040_0000)],
            shmem_devices: Vec::new(),
            seed: 1,
            gaps: Vec::new(),
        };
        OsView {
            process: ProcessFacts::default(),
            status: Status::default(),
            mappings: maps::parse(maps.as_bytes()).0,
            pages: Ok(pages),
            tasks: Vec::new(),
            gaps: Vec::new(),
            late: None,
            page_sizes: Some(Ok(sizes)),
            smaps: None,
        }
    }

    fn run(start: u64, bytes: u64, page_bytes: u32, bits: u8) -> PageRun {
        let range = Range::sized(Addr(start), bytes);
        PageRun { range, bits: PageRun::PRESENT | bits, page_bytes, mapped_times: 1 }
    }

    #[test]
    fn each_sort_of_memory_is_found_and_files_are_left_alone() {
        let maps = "10000000-10400000 rw-p 0 00:00 0 \n20000000-20400000 rw-s 0 00:01 7 /memfd:java_heap (deleted)\n\
                    30000000-30400000 rw-s 0 00:01 7 /memfd:java_heap (deleted)\n40000000-40400000 rw-p 0 00:00 0 \n\
                    50000000-50400000 r-xp 0 fe:00 9 /lib/libjvm.so\n60000000-60400000 rw-p 0 00:00 0 \n";
        let shared = PageRun::FILE;
        let forked = PageRun { mapped_times: 2, ..run(0x1020_0000, 2 * M, 2 << 20, 0) };
        let pages = vec![
            run(0x1000_0000, 2 * M, 2 << 20, 0),
            forked,
            run(0x2000_0000, 2 * M, 2 << 20, shared),
            run(0x3000_0000, 4 * M, 2 << 20, shared),
            run(0x4000_0000, 2 * M, 2 << 20, 0),
            run(0x5000_0000, 2 * M, 2 << 20, shared),
            run(0x6000_0000, M, 4096, 0),
        ];
        let kind = PageKind::of_folio(Backing::Anonymous, 64 << 10);
        let folio = SizeRun { range: Range::sized(Addr(0x6001_0000), 64 << 10), kind, estimated: false };
        let guess = SizeRun { range: Range::sized(Addr(0x6003_0000), 64 << 10), kind, estimated: true };
        let stacks = [Range::of(0x6000_8800, 0x6002_2000)];
        let found = candidates(&view(maps, pages, vec![folio, guess]), &stacks);
        let sorts: Vec<(u64, u64, Sort)> =
            found.iter().map(|s| (s.range.start.0, s.range.bytes() >> 10, s.sort)).collect();
        let expected = [
            (0x1000_0000, 2048, Sort::Thp),
            (0x1020_0000, 2048, Sort::ThpKept),
            (0x2000_0000, 2048, Sort::Shared),
            // The first half is the same memory as at the address before.
            (0x3020_0000, 2048, Sort::Shared),
            (0x4000_0000, 2048, Sort::Hugetlb),
            (0x6000_8000, 32, Sort::StackSmall),
            (0x6001_0000, 64, Sort::Folio),
            (0x6002_0000, 8, Sort::StackSmall),
        ];
        assert_eq!(sorts, expected);
    }

    #[test]
    fn locked_memory_is_distinguished() {
        let mut view = view(
            "10000000-10400000 rw-p 0 00:00 0 \n",
            vec![run(0x1000_0000, 4 * M, 2 << 20, 0)],
            Vec::new(),
        );
        view.smaps = Some(Ok(smaps::parse("10000000-10400000 rw-p 0 00:00 0 \nVmFlags: rd wr lo\n")));
        assert_eq!(candidates(&view, &[])[0].sort, Sort::ThpKept);
    }

    #[test]
    fn a_sample_stands_for_all_and_no_mapping_is_left_out() {
        let maps = "100000000-140000000 rw-p 0 00:00 0 \n200000000-200600000 rw-p 0 00:00 0 \n";
        let pages = vec![run(0x1_0000_0000, 1024 * M, 2 << 20, 0), run(0x2_0000_0000, 6 * M, 2 << 20, 0)];
        let view = view(maps, pages, Vec::new());
        let candidates = candidates(&view, &[]);
        let all = pieces(&view, &candidates, 1 << 40, 0);
        assert_eq!(all.len(), 515);
        assert!(all.iter().all(|piece| piece.stands_for_bytes == 2 * M));
        let sample = pieces(&view, &candidates, 512 * M, 128 * M);
        let of_small = sample.iter().filter(|piece| piece.ranges[0].start.0 >= 0x2_0000_0000).count();
        assert_eq!((sample.len() - of_small, of_small), (64, 3));
        assert_eq!(sample.iter().map(|piece| piece.stands_for_bytes).sum::<u64>(), 1030 * M);
        assert!(sample.windows(2).all(|pair| pair[0].ranges[0].start < pair[1].ranges[0].start));
    }
}
