//! What the rooms above get to read a runtime or an allocator from: the kernel's view already taken, the memory, and the
//! symbols of mapped files. A live process, a frozen file and a core file all present themselves as this.

use super::maps::{Mapping, find_mapping};
use super::memory::Memory;
use super::pagemap::PageRun;
use super::status::Status;
use crate::base::{Addr, Gap, Known, PAGE, Range};
use serde::{Deserialize, Serialize};

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
    pub tasks: Vec<Task>,
    pub gaps: Vec<Gap>,
}

/// Who the process is. Everything that could not be read is `None` or has an entry in `OsView::gaps`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessFacts {
    pub pid: i32,
    /// The pid in the innermost pid namespace; equals `pid` outside containers.
    pub namespace_pid: i32,
    /// The arguments, NUL bytes as spaces; empty in an anonymised frozen file.
    pub command: String,
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

/// One thread, from /proc/PID/task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub tid: i32,
    /// The kernel's 15 bytes of its name.
    pub name: String,
}

/// Looks symbols up in mapped files. Exported ones can also be read from memory (`os::elf`); this finds local ones too.
pub trait Symbols {
    /// Where the symbol `name` of the file mapped as `object` (a path in the mappings) lies in the target.
    /// `None`: no such file, no such symbol, or a file without a symbol table.
    fn find(&self, object: &str, name: &str) -> Option<Addr>;
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
    /// Whether the page that holds `at` is in memory. `true` when residency is unknown.
    pub fn is_resident(&self, at: Addr) -> bool {
        self.view.is_resident(at)
    }
    /// Resident ranges within `range`, sorted, adjacent ones joined. All of `range` that is mapped when residency is
    /// unknown.
    pub fn resident(&self, range: Range) -> Vec<Range> {
        self.view.resident_ranges(range)
    }
}

impl OsView {
    pub fn is_resident(&self, at: Addr) -> bool {
        let Ok(pages) = &self.pages else { return true };
        let after = pages.partition_point(|run| run.range.end <= at);
        pages.get(after).is_some_and(|run| run.range.has(at) && run.is_present())
    }

    /// The resident run of pages around `at`, joined over alike neighbours only as far as the scan did.
    pub fn resident_run(&self, at: Addr) -> Option<Range> {
        match &self.pages {
            Ok(pages) => {
                let run = pages.get(pages.partition_point(|run| run.range.end <= at))?;
                (run.range.has(at) && run.is_present()).then_some(run.range)
            }
            Err(_) => find_mapping(&self.mappings, at).map(|mapping| mapping.range),
        }
    }

    pub fn resident_ranges(&self, range: Range) -> Vec<Range> {
        let mut found: Vec<Range> = Vec::new();
        let mut add = |piece: Range| match found.last_mut() {
            Some(last) if last.end == piece.start => last.end = piece.end,
            _ => found.push(piece),
        };
        match &self.pages {
            Ok(pages) => {
                let first = pages.partition_point(|run| run.range.end <= range.start);
                for run in pages[first..].iter().take_while(|run| run.range.start < range.end) {
                    if run.is_present() {
                        add(run.range.intersect(range));
                    }
                }
            }
            Err(_) => {
                let first = self.mappings.partition_point(|mapping| mapping.range.end <= range.start);
                for mapping in self.mappings[first..].iter().take_while(|m| m.range.start < range.end) {
                    add(mapping.range.intersect(range));
                }
            }
        }
        found
    }

    /// Resident bytes within `range`, split by byte at its ends.
    pub fn resident_bytes(&self, range: Range) -> u64 {
        self.resident_ranges(range).iter().map(|piece| piece.bytes()).sum()
    }

    /// The base page size of the kernel.
    pub fn page(&self) -> u64 {
        PAGE
    }
}
