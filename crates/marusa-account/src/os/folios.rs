//! The page size of every resident byte. The runs of pages already tell what one entry maps; this looks up the folios of
//! the ones that are mapped 4 KiB at a time.
//!
//! Three ways, from the cheapest: what the host counts proves that there is nothing to find (`os::host_folios`); every page
//! is looked at (`os::folio_look`); blocks of them are, where there are too many (`os::folio_sample`).

use super::budget;
use super::folio_look::{self, Seen};
use super::folio_sample::{self, Cell, cells};
use super::host_folios::HostFolios;
use super::kpageflags::FrameFlags;
use super::machine::base_page;
use super::maps::{Mapping, find_mapping};
use super::page_kind::{Backing, Contiguous, How, Look, PageKind, PageSizes, SizeRun};
use super::pagemap::PageRun;
use super::pagemap_words::Words;
use super::process::Process;
use super::rights::{self, Capability};
use super::smaps;
use super::status::Status;
use crate::base::limits::{CONTIGUITY_BYTES_READ_MAX, FOLIO_BYTES_READ_MAX, SIZE_RUNS_MAX};
use crate::base::{Addr, Bytes, Covered, Gap, Known, Range, Why};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of 2 MiB that are looked at where a sample must do: of folios 110 us each, of contiguity alone 13 us.
const BLOCKS: usize = 128;
/// What one thread looks at alone: a second one for less would only take time from the other readers.
const ALONE_BYTES: Bytes = 320 << 20;
/// Bytes of one piece of work where all is read.
const PIECE_BYTES: Bytes = 32 << 20;
/// What would help where folios are not known.
fn hint() -> String {
    let help = rights::hint(&[Capability::SYS_ADMIN], "run as root");
    format!(
        "which folio a page is of is visible only with CAP_SYS_ADMIN: {help}; pages count as mapped, 4 KiB each"
    )
}

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Bytes of one backing whose folios are looked up page by page; of more, a sample.
    pub folio_bytes: Bytes,
    /// The same for contiguity, where folios need no sample.
    pub contiguity_bytes: Bytes,
    /// The blocks of a sample.
    pub blocks: usize,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort {
            folio_bytes: FOLIO_BYTES_READ_MAX,
            contiguity_bytes: CONTIGUITY_BYTES_READ_MAX,
            blocks: BLOCKS,
        }
    }
}

/// The folios of the resident pages in `runs`. Fails only where the words of the pages cannot be read at all.
pub fn read(process: &Process, mappings: &[Mapping], runs: &[PageRun], status: &Status) -> Known<PageSizes> {
    read_with(process, mappings, runs, status, Effort::default())
}

pub fn read_with(
    process: &Process,
    mappings: &[Mapping],
    runs: &[PageRun],
    status: &Status,
    effort: Effort,
) -> Known<PageSizes> {
    let words = Words::open(process)?;
    let flags = FrameFlags::open();
    let host = HostFolios::read();
    let (hugetlb, mut gaps) = hugetlb(process, mappings, status);
    let classes = classes(mappings, runs, &host, flags.is_ok(), effort);
    if let Some(gap) = unplaced(runs) {
        gaps.push(gap);
    }
    let found = looked_at(&words, flags.as_ref().ok(), &classes)?;
    let mut sizes = PageSizes {
        runs: Vec::new(),
        looks: Vec::new(),
        contiguous: Ok(Contiguous::default()),
        hugetlb,
        shmem_devices: Vec::new(),
        seed: folio_sample::SEED,
        gaps,
    };
    let mut contiguity = Contiguity::default();
    for (class, found) in classes.iter().zip(&found) {
        sizes.looks.push(class.look(found, &mut sizes.runs));
        contiguity.add(class, found);
    }
    let hidden: Bytes = found.iter().flatten().map(|seen| seen.hidden_bytes).sum();
    sizes.contiguous = match hidden {
        0 => Ok(contiguity.sum()),
        _ => Err(Gap::new("contiguous pages", Why::Denied).hint(hint())),
    };
    let unknown: Bytes =
        sizes.looks.iter().filter(|look| look.how == How::Hidden).map(|look| look.resident_bytes).sum();
    if unknown > 0 {
        let why = flags.as_ref().err().map_or(Why::Denied, |gap| gap.why);
        sizes
            .gaps
            .push(Gap::new(format!("folios of {} KiB in 4 KiB entries", unknown >> 10), why).hint(hint()));
    }
    sizes.runs.sort_unstable_by_key(|run| run.range.start);
    sizes.runs = folio_look::joined(std::mem::take(&mut sizes.runs));
    if sizes.runs.len() > SIZE_RUNS_MAX {
        return Err(Gap::new("sizes of folios", Why::OverLimit));
    }
    sizes.shmem_devices = shmem_devices(mappings, &found);
    Ok(sizes)
}

/// The mappings of hugetlb pages, whose runs look like those of transparent ones.
fn hugetlb(process: &Process, mappings: &[Mapping], status: &Status) -> (Vec<Range>, Vec<Gap>) {
    if status.hugetlb_bytes == Some(0) {
        return (Vec::new(), Vec::new());
    }
    match smaps::read(process) {
        Ok(smaps) => {
            let is_hugetlb = |smap: &&smaps::Smap| smap.has_flag("ht") || smap.hugetlb_bytes() > 0;
            (smaps.iter().filter(is_hugetlb).map(|smap| smap.range).collect(), Vec::new())
        }
        Err(gap) => {
            let named = mappings.iter().filter(|mapping| mapping.is_hugetlb_name());
            (named.map(|mapping| mapping.range).collect(), vec![gap])
        }
    }
}

/// Where only smaps is available, the place of a page is not known, so nothing can be looked up.
fn unplaced(runs: &[PageRun]) -> Option<Gap> {
    let bytes: Bytes =
        runs.iter().filter(|run| is_small(run) && !run.is_placed()).map(|run| run.range.bytes()).sum();
    let what = format!("folios of {} KiB in 4 KiB entries", bytes >> 10);
    (bytes > 0).then(|| {
        Gap::new(what, Why::NotInThisKernel).hint(
            "smaps has the bytes mapped 2 MiB at a time and the hugetlb pages; the rest counts as 4 KiB pages",
        )
    })
}

fn is_small(run: &PageRun) -> bool {
    run.is_present() && Bytes::from(run.page_bytes) == base_page()
}

/// What is done with the pages of one backing.
struct Class {
    backing: Backing,
    how: How,
    /// Sorted; each within one mapping.
    cells: Vec<Cell>,
    bytes: Bytes,
    /// The page sizes are proved, and only which kind of 4 KiB pages they are is asked.
    sizes_proved: bool,
}

fn classes(
    mappings: &[Mapping],
    runs: &[PageRun],
    host: &HostFolios,
    may_read: bool,
    effort: Effort,
) -> Vec<Class> {
    let mut ranges: BTreeMap<Backing, Vec<Range>> = BTreeMap::new();
    let mut met = Met::default();
    for run in runs.iter().filter(|run| is_small(run) && run.is_placed()) {
        if !run.is_file() {
            ranges.entry(Backing::Anonymous).or_default().push(run.range);
            continue;
        }
        let mapping = find_mapping(mappings, run.range.start);
        let is_shmem = mapping.is_some_and(Mapping::is_shmem_name);
        let backing = if is_shmem { Backing::Shmem } else { Backing::File };
        let of_backing = ranges.entry(backing).or_default();
        match mapping.filter(|mapping| mapping.rights.shared) {
            Some(mapping) => of_backing.extend(met.first_time(mapping, run.range)),
            None => of_backing.push(run.range),
        }
    }
    let class = |(backing, ranges): (Backing, Vec<Range>)| {
        let bytes: Bytes = ranges.iter().map(|range| range.bytes()).sum();
        let sizes_proved = backing == Backing::Anonymous && host.has_no_small_anon_folio();
        let none_on_host = match backing {
            Backing::Anonymous => sizes_proved && host.maps_all_huge_whole(),
            Backing::Shmem => host.has_no_shmem_folio(),
            _ => false,
        };
        let how = match () {
            () if none_on_host => How::NoneOnHost,
            () if !may_read => How::Hidden,
            () if bytes > effort.folio_bytes => How::Sampled,
            () => How::Read,
        };
        Class { backing, how, cells: cut(&ranges, bytes, how, effort), bytes, sizes_proved }
    };
    ranges.into_iter().map(class).collect()
}

/// Pages of files that were met at one address need no sample at another: the account counts them at the first, too.
#[derive(Default)]
pub(super) struct Met<'a>(BTreeMap<(&'a str, u64), Covered>);

impl<'a> Met<'a> {
    /// The parts of a run whose place in the file was not met before.
    pub fn first_time(&mut self, mapping: &'a Mapping, range: Range) -> Vec<Range> {
        let place = |at: Addr| Addr(mapping.offset).plus(at.minus(mapping.range.start.0).0);
        let covered = self.0.entry((&mapping.device, mapping.inode)).or_default();
        let offsets = Range::new(place(range.start), place(range.end));
        let parts = covered.missing(offsets);
        covered.add(offsets);
        let address = |offset: Addr| range.start.plus(offset.minus(offsets.start.0).0);
        parts.into_iter().map(|part| Range::new(address(part.start), address(part.end))).collect()
    }
}

/// What is looked at: all in pieces, or one block of each cell.
fn cut(ranges: &[Range], bytes: Bytes, how: How, effort: Effort) -> Vec<Cell> {
    let blocks = folio_sample::blocks(ranges);
    let is_sample = match how {
        How::Sampled => true,
        How::Read => false,
        How::NoneOnHost | How::Hidden => bytes > effort.contiguity_bytes,
    };
    if is_sample {
        return cells(blocks, effort.blocks);
    }
    let mut pieces: Vec<Cell> = Vec::new();
    for block in blocks {
        match pieces.last_mut().and_then(|cell| cell.blocks.first_mut()) {
            Some(piece) if piece.bytes + block.bytes <= PIECE_BYTES => {
                piece.bytes += block.bytes;
                piece.ranges.extend(block.ranges);
            }
            _ => pieces.push(Cell { blocks: vec![block], chosen: 0 }),
        }
    }
    pieces
}

/// What the chosen block of each cell shows, by class and cell. Two threads look where it is much.
fn looked_at(words: &Words, flags: Option<&FrameFlags>, classes: &[Class]) -> Known<Vec<Vec<Seen>>> {
    let cells: Vec<(&Class, &Cell)> =
        classes.iter().flat_map(|class| class.cells.iter().map(move |cell| (class, cell))).collect();
    let is_large = classes.iter().map(Class::looked_at).sum::<Bytes>() > ALONE_BYTES;
    let look = |index: usize| {
        let (class, cell) = cells[index];
        let flags = flags.filter(|_| matches!(class.how, How::Read | How::Sampled));
        let ranges = cell.chosen().map(|block| &block.ranges[..]).unwrap_or_default();
        folio_look::look(words, flags, ranges, class.backing)
    };
    let failed = Gap::new("sizes of folios", Why::Torn);
    let mut seen = budget::divided(cells.len(), is_large, failed, || look)?.into_iter();
    Ok(classes.iter().map(|class| seen.by_ref().take(class.cells.len()).collect()).collect())
}

impl Class {
    fn looked_at(&self) -> Bytes {
        self.cells.iter().filter_map(Cell::chosen).map(|block| block.bytes).sum()
    }

    /// Adds the runs of what was found, and says how good they are.
    fn look(&self, found: &[Seen], runs: &mut Vec<SizeRun>) -> Look {
        let hidden = found.iter().any(|seen| seen.hidden_bytes > 0);
        let how = if hidden && self.how != How::NoneOnHost { How::Hidden } else { self.how };
        let is_read = matches!(how, How::Read | How::Sampled);
        let mut look = Look {
            backing: self.backing,
            how,
            resident_bytes: self.bytes,
            looked_at_bytes: if is_read { self.looked_at() } else { 0 },
            blocks: if how == How::Sampled { self.cells.len() } else { 0 },
            error_bytes: BTreeMap::new(),
        };
        if is_read {
            for (cell, seen) in self.cells.iter().zip(found) {
                runs.extend(cell.estimate(seen));
            }
        }
        if how == How::Sampled && !self.sizes_proved {
            look.error_bytes = self.errors(found);
        }
        look
    }

    /// For each page size that was found, and for that of 4 KiB, which all the others are.
    fn errors(&self, found: &[Seen]) -> BTreeMap<Bytes, Bytes> {
        let size = |run: &SizeRun| PageKind::page_bytes(run.kind);
        let sizes: BTreeSet<Bytes> =
            found.iter().flat_map(|seen| seen.runs.iter().map(size)).chain([base_page()]).collect();
        let error = |wanted: Bytes| {
            let of = |seen: &Seen, is: &dyn Fn(Bytes) -> bool| -> Bytes {
                seen.runs.iter().filter(|run| is(size(run))).map(|run| run.range.bytes()).sum()
            };
            let cells: Vec<(Bytes, Bytes, Bytes)> = self
                .cells
                .iter()
                .zip(found)
                .map(|(cell, seen)| {
                    let block = cell.chosen().map_or(0, |block| block.bytes);
                    let part = match wanted {
                        size if size == base_page() => {
                            block.saturating_sub(of(seen, &|size| size > base_page()))
                        }
                        wanted => of(seen, &|size| size == wanted),
                    };
                    (cell.bytes(), part, block)
                })
                .collect();
            folio_sample::error_bytes(&cells)
        };
        sizes.into_iter().map(|size| (size, error(size))).collect()
    }
}

/// Sums of what is contiguous; squares of the errors, which are those of samples that know nothing of each other.
#[derive(Default)]
struct Contiguity {
    sum: Contiguous,
    squares: [f64; 2],
}

impl Contiguity {
    fn add(&mut self, class: &Class, found: &[Seen]) {
        let sum = &mut self.sum;
        sum.resident_bytes += class.bytes;
        sum.looked_at_bytes += class.looked_at();
        let parts: [&dyn Fn(&Seen) -> Bytes; 2] = [&|seen| seen.in_16k_bytes, &|seen| seen.in_64k_bytes];
        let totals = [&mut sum.in_16k_bytes, &mut sum.in_64k_bytes];
        for ((part, total), square) in parts.into_iter().zip(totals).zip(&mut self.squares) {
            let mut cells: Vec<(Bytes, Bytes, Bytes)> = Vec::with_capacity(found.len());
            for (cell, seen) in class.cells.iter().zip(found) {
                let block = cell.chosen().map_or(0, |block| block.bytes);
                *total += folio_sample::scaled(part(seen), cell.bytes(), block);
                cells.push((cell.bytes(), part(seen), block));
            }
            *square += (folio_sample::error_bytes(&cells) as f64).powi(2);
        }
    }

    fn sum(self) -> Contiguous {
        let [in_16k, in_64k] = self.squares.map(|square| square.sqrt() as Bytes);
        Contiguous { in_16k_error_bytes: in_16k, in_64k_error_bytes: in_64k, ..self.sum }
    }
}

/// The devices of the files that were found to be shared memory.
fn shmem_devices(mappings: &[Mapping], found: &[Vec<Seen>]) -> Vec<String> {
    let seen = found.iter().flatten().flat_map(|seen| &seen.shmem);
    let devices: BTreeSet<&String> =
        seen.filter_map(|at| find_mapping(mappings, *at)).map(|mapping| &mapping.device).collect();
    devices.into_iter().cloned().collect()
}
