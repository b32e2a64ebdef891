//! The memory of a running process, through /proc/PID/mem.
//!
//! The open file is bound to the address space, so a recycled pid is never read. Absent pages are never touched: a read of
//! one would map the zero page or bring a file's page in (mm/memory.c, `faultin_page`), and so change what we measure.
//! Absent pages of mapped files are read from the file instead; other absent pages are faults. Pages that were read are
//! kept until the snapshot is done, so that one snapshot sees one state.

use super::maps::find_mapping;
use super::memory::{Bulk, Fault, Memory};
use super::page_cache::{PageCache, Windows};
use super::pagemap;
use super::process::{Process, gap};
use super::rights::{self, Capability};
use super::target::OsView;
use super::{budget, foreign};
use crate::base::limits::{FETCHED_MAPPINGS_MAX, MEMORY_CACHE_BYTES_MAX};
use crate::base::{Addr, Known, PAGE, Range, Why};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Reads this long go past the cache.
const LARGE_READ_BYTES: usize = 64 << 10;

/// By address and number of words.
type SharedWords = HashMap<(Addr, usize), Arc<Vec<u64>>>;

pub struct Live<'a> {
    process: &'a Process,
    memory: File,
    view: &'a OsView,
    bulk: LiveBulk,
    pages: RefCell<PageCache>,
    windows: RefCell<Windows>,
    files: RefCell<HashMap<(String, u64), Option<File>>>,
    shared: RefCell<SharedWords>,
}

impl<'a> Live<'a> {
    /// Needs the right to ptrace the process: the same user and Yama's ptrace_scope 0, or CAP_SYS_PTRACE.
    pub fn open(process: &'a Process, view: &'a OsView) -> Known<Live<'a>> {
        let memory = open(process, "mem")?;
        let live = Live::of(process, memory, view).map_err(|error| gap("/proc/PID/mem", &error))?;
        live.fetch_starts();
        Ok(live)
    }

    fn of(process: &'a Process, memory: File, view: &'a OsView) -> io::Result<Live<'a>> {
        Ok(Live {
            process,
            view,
            bulk: LiveBulk { memory: memory.try_clone()?, pagemap: process.open_file("pagemap").ok() },
            memory,
            pages: RefCell::default(),
            windows: RefCell::default(),
            files: RefCell::default(),
            shared: RefCell::default(),
        })
    }

    /// Takes what is short-lived before anything else is read: the first words of each mapping, where malloc keeps the
    /// size of a mapped block that a busy JVM frees again in milliseconds, and the small data of libraries, where
    /// malloc counts them.
    fn fetch_starts(&self) {
        let writable =
            self.view.mappings.iter().filter(|m| m.rights.read && m.rights.write && !m.rights.shared);
        // Who maps that much at once keeps it for longer than this takes.
        let early = writable.filter(|mapping| !self.view.is_late(mapping.range));
        for mapping in early.take(FETCHED_MAPPINGS_MAX) {
            let end = match mapping.is_file() && mapping.range.bytes() <= LARGE_READ_BYTES as u64 {
                true => mapping.range.end,
                false => mapping.range.start.plus(1),
            };
            let mut at = mapping.range.start;
            while at < end {
                if self.view.is_resident(at) {
                    // The page is kept; whoever needs it will meet the fault, if there is one.
                    let _ = self.u64(at);
                }
                at = at.plus(PAGE);
            }
        }
    }

    /// Reads from the process; `range` must be resident.
    fn read_resident(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        read_memory(&self.memory, at, into)
    }

    /// Reads an absent page of a file mapping from the file.
    fn read_file(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        budget::check_now().map_err(|why| Fault { at, why })?;
        let absent = Fault { at, why: Why::NotResident(at) };
        let mapping = find_mapping(&self.view.mappings, at).ok_or(Fault { at, why: Why::BadData(at) })?;
        if !mapping.is_file() || mapping.range.end < at.plus(into.len() as u64) {
            return Err(absent);
        }
        let key = (mapping.device.clone(), mapping.inode);
        let mut files = self.files.borrow_mut();
        let file = files.entry(key).or_insert_with(|| foreign::mapped(self.process, mapping));
        let offset = mapping.offset + (at.0 - mapping.range.start.0);
        file.as_ref().ok_or(absent)?.read_exact_at(into, offset).map_err(|_| absent)
    }
}

/// Opens a file of a process, which takes the right to trace it.
pub(super) fn open(process: &Process, name: &str) -> Known<File> {
    process.open_file(name).map_err(|error| {
        gap(&format!("/proc/PID/{name}"), &error).hint(rights::hint(
            &[Capability::SYS_PTRACE],
            "run as root, or with CAP_SYS_PTRACE, or as the JVM's user with kernel.yama.ptrace_scope=0",
        ))
    })
}

pub(super) fn read_memory(memory: &File, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
    budget::check().map_err(|why| Fault { at, why })?;
    memory.read_exact_at(into, at.0).map_err(|error| {
        let why = match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Why::Denied,
            _ => Why::Gone,
        };
        Fault { at, why }
    })
}

/// The part of `Live` that threads may share: it keeps nothing.
struct LiveBulk {
    memory: File,
    pagemap: Option<File>,
}

impl LiveBulk {
    fn is_resident(&self, range: Range) -> bool {
        self.resident(range.widened(PAGE)).is_some_and(|runs| matches!(runs[..], [run] if run.covers(range)))
    }
}

impl Bulk for LiveBulk {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        read_memory(&self.memory, at, into)
    }

    fn resident(&self, range: Range) -> Option<Vec<Range>> {
        pagemap::resident_now(self.pagemap.as_ref()?, range).ok()
    }
}

impl Memory for Live<'_> {
    fn read_once(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let wanted = Range::sized(at, into.len() as u64);
        match self.view.resident_run(at) {
            Some(run) if run.covers(wanted) => self.read_resident(at, into),
            // Over a border of runs, or of a file.
            _ => self.read(at, into),
        }
    }

    fn read_now(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let wanted = Range::sized(at, into.len() as u64);
        match self.read_once(at, into) {
            Err(Fault { why: Why::NotResident(_), .. }) if self.bulk.is_resident(wanted) => {
                self.read_resident(at, into)
            }
            read => read,
        }
    }

    fn bulk(&self) -> Option<&dyn Bulk> {
        Some(&self.bulk)
    }

    fn another(&self) -> Option<Box<dyn Memory + Send + '_>> {
        let memory = self.memory.try_clone().ok()?;
        let mut live = Live::of(self.process, memory, self.view).ok()?;
        live.shared = self.shared.clone();
        live.pages = RefCell::new(PageCache::small());
        Some(Box::new(live))
    }

    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        if at.0.checked_add(into.len() as u64).is_none() {
            return Err(Fault { at, why: Why::BadData(at) });
        }
        // What is kept costs no call, but a walk in a circle ends here, too.
        budget::check().map_err(|why| Fault { at, why })?;
        let mut pages = self.pages.borrow_mut();
        let mut done = 0;
        while done < into.len() {
            let here = at.plus(done as u64);
            let left = into.len() - done;
            let to_page_end = (PAGE - (here.0 & (PAGE - 1))) as usize;
            let step = to_page_end.min(left);
            if pages.copy(here, &mut into[done..done + step]) {
                done += step;
                continue;
            }
            let Some(run) = self.view.resident_run(here) else {
                self.read_file(here, &mut into[done..done + step])?;
                done += step;
                continue;
            };
            let large = (run.end.0 - here.0).min(left as u64) as usize;
            if large >= LARGE_READ_BYTES {
                self.read_resident(here, &mut into[done..done + large])?;
                done += large;
                continue;
            }
            pages.fetch(here, run, &|at, into| self.read_resident(at, into))?;
        }
        Ok(())
    }

    fn scan_shared(&self, at: Addr, count: usize) -> Result<Arc<Vec<u64>>, Fault> {
        let mut shared = self.shared.borrow_mut();
        if let Some(words) = shared.get(&(at, count)) {
            return Ok(words.clone());
        }
        let words = Arc::new(self.scan(at, count)?);
        let kept: usize = shared.values().map(|words| words.len() * 8).sum();
        if kept + count * 8 <= MEMORY_CACHE_BYTES_MAX {
            shared.insert((at, count), words.clone());
        }
        Ok(words)
    }

    fn read_among_many(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        budget::check().map_err(|why| Fault { at, why })?;
        let mut windows = self.windows.borrow_mut();
        let mut done = 0;
        while done < into.len() {
            let here = at.plus(done as u64);
            let to_page_end = (PAGE - (here.0 & (PAGE - 1))) as usize;
            let step = to_page_end.min(into.len() - done);
            let piece = &mut into[done..done + step];
            let resident = |range| self.view.resident_ranges(range);
            if !windows.copy(here, piece, &resident, &|at, into| self.read_resident(at, into)) {
                self.read(here, piece)?;
            }
            done += step;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::maps;
    use super::super::target::ProcessFacts;
    use super::*;

    #[test]
    fn what_came_into_memory_after_the_look_is_read_by_read_now_alone() {
        let process = Process::open(std::process::id() as i32).expect("ourselves");
        let mut ours = memmap2::MmapMut::map_anon(16 * PAGE as usize).expect("16 pages");
        let at = Addr(ours.as_ptr() as u64);
        let (status, maps_text) = (process.status().expect("status"), process.maps_text().expect("maps"));
        let mappings = maps::parse(&maps_text).0;
        let pages = pagemap::read(&process, &mappings, &status, None).map(|pages| pages.runs);
        let view = OsView {
            process: ProcessFacts::default(),
            status,
            mappings,
            pages,
            late: None,
            tasks: Vec::new(),
            gaps: Vec::new(),
            page_sizes: None,
            smaps: None,
        };
        let live = Live::open(&process, &view).expect("our memory");
        ours[..8].copy_from_slice(b"pointers");
        let mut word = [0; 8];
        let absent = |read: Result<(), Fault>| matches!(read, Err(Fault { why: Why::NotResident(_), .. }));
        assert!(absent(live.read_once(at, &mut word)));
        assert_eq!(live.read_now(at, &mut word), Ok(()));
        assert_eq!(&word, b"pointers");
        let next = at.plus(PAGE);
        assert!(absent(live.read_now(next, &mut word)), "it was not touched");
        assert!(absent(live.read_now(next.minus(4), &mut word)), "half of it");
    }
}
