//! What the rooms above get to read a runtime or an allocator from: the kernel's view already taken, the memory, and the
//! symbols of mapped files. A live process, a frozen file and a core file all present themselves as this.

use super::late_pages::LatePages;
use super::maps::{Mapping, find_mapping};
use super::memory::Memory;
use super::page_kind::PageSizes;
use super::page_run::PageRun;
use super::process::Task;
use super::smaps::Smap;
use super::status::Status;
use crate::base::limits::IMAGE_DATA_BYTES_MAX;
use crate::base::redact;
use crate::base::{Addr, Gap, Known, Range, overlapping};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The kernel's view of one process at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OsView {
    pub process: ProcessFacts,
    pub status: Status,
    /// Sorted by address, disjoint.
    pub mappings: Vec<Mapping>,
    /// Runs of pages that are resident or swapped, sorted, each within one mapping; every other page is absent.
    /// `Err` when not even per-mapping figures could be read.
    pub pages: Known<Vec<PageRun>>,
    /// Pages that are still being looked at while others read: not in `pages` yet. `None` in every finished snapshot.
    #[serde(skip)]
    pub late: Option<Arc<LatePages>>,
    pub tasks: Vec<Task>,
    pub gaps: Vec<Gap>,
    /// The folios of the pages; `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_sizes: Option<Known<PageSizes>>,
    /// What smaps says of each mapping; `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smaps: Option<Known<Vec<Smap>>>,
}

/// Who the process is. Everything that could not be read is `None` or has an entry in `OsView::gaps`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessFacts {
    pub pid: i32,
    /// The pid in the innermost pid namespace; equals `pid` outside containers.
    pub namespace_pid: i32,
    /// The command as it may be shown: without the values of its arguments, unless the user asked for them. Empty in an
    /// anonymised frozen file.
    pub command: String,
    /// The arguments as they are, for readers that go by them. Never printed, never saved.
    #[serde(skip)]
    pub arguments: Vec<String>,
    /// The name of the server that it runs, where it is a known one; not saved.
    #[serde(skip)]
    pub server: Option<String>,
    pub user: String,
    pub uid: u32,
    /// Container id or cgroup path when it is not the root's.
    pub container: Option<String>,
    /// RFC 3339, UTC.
    pub started: Option<String>,
    /// Start time in clock ticks after boot (/proc/PID/stat field 22): identity together with the pid.
    pub start_ticks: u64,
    pub executable: String,
}

impl ProcessFacts {
    /// Sets what the process was started with.
    pub fn set_arguments(&mut self, arguments: Vec<String>) {
        self.command = redact::command(&arguments);
        self.arguments = arguments;
    }

    /// Sets what the runtime in the process was started with, where the arguments of the process are others. `line`: the program
    /// that the runtime runs, and its arguments.
    pub fn set_launch(&mut self, options: &[String], line: &str) {
        let executable = self.executable.strip_suffix(" (deleted)").unwrap_or(&self.executable);
        let first = || self.command.split(' ').next().unwrap_or_default();
        let program = if executable.is_empty() { first() } else { executable }.to_string();
        self.command = redact::runtime(&program, options, line);
        let words = line.split(' ').filter(|word| !word.is_empty()).map(str::to_string);
        self.arguments = [program].into_iter().chain(options.iter().cloned()).chain(words).collect();
    }
}

/// Looks symbols up in mapped files. Exported ones can also be read from memory (`os::elf`); this finds local ones too.
pub trait Symbols {
    /// Where the symbol `name` of the file mapped as `object` (a path in the mappings) lies in the target.
    /// `None`: no such file, no such symbol, or a file without a symbol table.
    fn find(&self, object: &str, name: &str) -> Option<Addr>;

    /// The name of the symbol of that file that lies exactly at `at` in the target.
    fn name_at(&self, _object: &str, _at: Addr) -> Option<String> {
        None
    }
}

/// No symbols at all.
pub struct NoSymbols;

impl Symbols for NoSymbols {
    fn find(&self, _object: &str, _name: &str) -> Option<Addr> {
        None
    }
}

/// All that `jvm` and `alloc` need.
pub struct Target<'a> {
    pub view: &'a OsView,
    pub memory: &'a dyn Memory,
    pub symbols: &'a dyn Symbols,
}

impl Target<'_> {
    /// The mapping that holds `at`.
    pub fn mapping(&self, at: Addr) -> Option<&Mapping> {
        find_mapping(&self.view.mappings, at)
    }
    /// Whether all of `range` is mapped, and `is_it` holds for each of its mappings.
    pub fn is_all(&self, range: Range, is_it: impl Fn(&Mapping) -> bool) -> bool {
        let mut at = range.start;
        while at < range.end {
            match self.mapping(at).filter(|mapping| is_it(mapping)) {
                Some(mapping) => at = mapping.range.end,
                None => return false,
            }
        }
        true
    }
    /// Whether the page that holds `at` is in memory. `true` when residency is unknown.
    pub fn is_resident(&self, at: Addr) -> bool {
        self.view.is_resident(at)
    }
    /// The words of a loaded image's writable segment, as far as they are in memory and still writable: each piece with its
    /// start. What the loader made read-only after it wrote there ("relro": tables of virtual functions, two thirds of
    /// libjvm's) points to nothing that came later.
    pub fn data(&self, segment: Range) -> impl Iterator<Item = (Addr, Arc<Vec<u64>>)> {
        let segment = segment.widened(8);
        let mappings = overlapping(&self.view.mappings, segment, |mapping| mapping.range);
        let writable = mappings.filter(|mapping| mapping.rights.write);
        let pieces = writable.flat_map(move |mapping| self.resident(mapping.range.intersect(segment)));
        pieces.filter_map(|piece| {
            let words = piece.bytes().min(IMAGE_DATA_BYTES_MAX) / 8;
            Some((piece.start, self.memory.scan_shared(piece.start, words as usize).ok()?))
        })
    }
    /// Resident ranges within `range`, sorted, adjacent ones joined. All of `range` that is mapped when residency is
    /// unknown.
    pub fn resident(&self, range: Range) -> Vec<Range> {
        self.view.resident_ranges(range)
    }
}

impl OsView {
    /// A view with nothing but these.
    pub fn of(mappings: Vec<Mapping>, pages: Known<Vec<PageRun>>) -> OsView {
        let (process, status) = (ProcessFacts::default(), Status::default());
        let (late, tasks, gaps, page_sizes, smaps) = (None, Vec::new(), Vec::new(), None, None);
        OsView { process, status, mappings, pages, late, tasks, gaps, page_sizes, smaps }
    }

    /// Whether nothing can be read of `range` without waiting.
    pub fn is_late(&self, range: Range) -> bool {
        self.late.as_ref().is_some_and(|late| late.overlaps(range))
    }

    /// The runs of which those of `range` are some.
    fn pages_of(&self, range: Range) -> &Known<Vec<PageRun>> {
        match &self.late {
            Some(late) if late.overlaps(range) => late.all(),
            _ => &self.pages,
        }
    }

    /// The same view with all pages, where some are late.
    pub fn completed(&self) -> Option<OsView> {
        let pages = self.late.as_ref()?.all().clone();
        Some(OsView { pages, late: None, ..self.clone() })
    }

    pub fn is_resident(&self, at: Addr) -> bool {
        self.resident_run(at).is_some()
    }

    /// The resident run of pages around `at`, joined over alike neighbours only as far as the scan did.
    pub fn resident_run(&self, at: Addr) -> Option<Range> {
        match self.pages_of(Range::sized(at, 1)) {
            Ok(pages) => match pages.get(pages.partition_point(|run| run.range.end <= at)) {
                Some(run) if run.range.has(at) && run.is_placed() => run.is_present().then_some(run.range),
                _ => self.perhaps_resident(pages, at),
            },
            Err(_) => find_mapping(&self.mappings, at).map(|mapping| mapping.range),
        }
    }

    /// The mapping around `at` if some of its pages are resident and it is not known which: any may be read then.
    fn perhaps_resident(&self, pages: &[PageRun], at: Addr) -> Option<Range> {
        let mapping = find_mapping(&self.mappings, at)?;
        let first = pages.get(pages.partition_point(|run| run.range.end <= mapping.range.start))?;
        let is_unplaced = mapping.range.has(first.range.start) && first.is_present() && !first.is_placed();
        is_unplaced.then_some(mapping.range)
    }

    pub fn resident_ranges(&self, range: Range) -> Vec<Range> {
        let mut found: Vec<Range> = Vec::new();
        let mut add = |piece: Range| match found.last_mut() {
            Some(last) if last.end == piece.start => last.end = piece.end,
            _ => found.push(piece),
        };
        match self.pages_of(range) {
            Ok(pages) => {
                let mut from = range.start;
                if let Some(mapping) = self.perhaps_resident(pages, range.start) {
                    add(mapping.intersect(range));
                    from = mapping.end;
                }
                let runs = overlapping(pages, range, |run| run.range);
                for run in runs.filter(|run| run.is_present()) {
                    if run.range.start < from && !run.is_placed() {
                        continue;
                    }
                    let whole = self.perhaps_resident(pages, run.range.start).filter(|_| !run.is_placed());
                    let piece = whole.unwrap_or(run.range);
                    from = piece.end;
                    add(piece.intersect(range));
                }
            }
            Err(_) => {
                let mappings = overlapping(&self.mappings, range, |mapping| mapping.range);
                mappings.for_each(|mapping| add(mapping.range.intersect(range)));
            }
        }
        found
    }

    /// Whether `page_sizes_in` has an answer.
    pub fn has_page_sizes(&self) -> bool {
        self.late.as_ref().map_or(&self.pages, |late| late.all()).is_ok()
    }

    /// What is resident of `range`, sorted, each piece with the page size that it counts under: of the folio where folios were
    /// looked at, else what an entry of the page table maps. Nothing where the place of pages is not known.
    pub fn page_sizes_in(&self, range: Range) -> Vec<(Range, u64)> {
        let Ok(pages) = self.pages_of(range) else { return Vec::new() };
        let runs = overlapping(pages, range, |run| run.range);
        let mut found = Vec::new();
        for run in runs.filter(|run| run.is_present() && run.is_placed()) {
            let piece = run.range.intersect(range);
            match (&self.page_sizes, find_mapping(&self.mappings, piece.start)) {
                (Some(Ok(sizes)), Some(mapping)) => {
                    sizes.each(piece, run, mapping, |piece, kind| found.push((piece, kind.page_bytes())));
                }
                _ => found.push((piece, run.page_bytes.into())),
            }
        }
        found
    }

    /// Resident bytes within `range`, split by byte at its ends.
    pub fn resident_bytes(&self, range: Range) -> u64 {
        self.resident_ranges(range).iter().map(|piece| piece.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps;

    #[test]
    fn any_page_of_a_mapping_may_be_read_where_the_place_of_its_pages_is_not_known() {
        let text = b"1000-9000 rw-p 0 00:00 0 \na000-c000 rw-p 0 00:00 0 \nd000-f000 rw-p 0 00:00 0 \n";
        let run = |start, end, bits| PageRun {
            range: Range::of(start, end),
            bits: bits | PageRun::PLACE_UNKNOWN,
            page_bytes: 4096,
            mapped_times: 0,
        };
        let (present, swapped) = (PageRun::PRESENT, PageRun::SWAPPED);
        let pages =
            vec![run(0x1000, 0x2000, present), run(0x2000, 0x3000, present), run(0xd000, 0xe000, swapped)];
        let view = OsView {
            process: ProcessFacts::default(),
            status: Status::default(),
            mappings: maps::parse(text).0,
            pages: Ok(pages),
            tasks: Vec::new(),
            gaps: Vec::new(),
            late: None,
            page_sizes: None,
            smaps: None,
        };
        assert!(view.is_resident(Addr(0x8fff)) && !view.is_resident(Addr(0xa000)));
        assert!(!view.is_resident(Addr(0xd000)), "swapped only");
        assert_eq!(view.resident_ranges(Range::of(0x4000, 0xe000)), [Range::of(0x4000, 0x9000)]);
        assert_eq!(view.resident_ranges(Range::of(0, 0xe000)), [Range::of(0x1000, 0x9000)]);
    }
}
