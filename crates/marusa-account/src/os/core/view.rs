//! The kernel's view, as far as a core tells it: the mappings by its segments and its list of files, the pages by what the
//! file holds. What is not in a core is a gap, never a figure.

use super::extents::Extents;
use super::headers::{Headers, Load};
use super::notes::{AT_ENTRY, AT_RANDOM, AT_SYSINFO_EHDR, MappedFile, Notes};
use crate::base::limits::{CORE_ZERO_BYTES_MAX, MAPPINGS_MAX, PAGE_RUNS_MAX};
use crate::base::{Addr, Allowance, Gap, Range, Why};
use crate::os::file_bytes::FileBytes;
use crate::os::machine::base_page;
use crate::os::maps::{Mapping, Rights, find_mapping, is_shmem_name};
use crate::os::pagemap::PageRun;
use crate::os::process::Task;
use crate::os::status::Status;
use crate::os::target::{OsView, ProcessFacts};
use crate::os::users;

/// As long as the smallest base page.
static ZEROS: [u8; 4096] = [0; 4096];
/// What is searched for pages of zeros at a time.
const ZEROS_PIECE_BYTES: u64 = 1 << 20;
/// The kernel's page for old programs on x86-64: asm/vsyscall.h, `VSYSCALL_ADDR`.
const VSYSCALL: Addr = Addr(0xffff_ffff_ff60_0000);
/// The kernel's time pages lie right below the vDSO: 16 KiB and 8 KiB in Linux 6.13 on, 16 KiB before.
const VVAR_BYTES_MAX: u64 = 64 << 10;

pub fn build(bytes: &FileBytes, headers: &Headers, notes: &Notes, extents: &Extents) -> OsView {
    let mut mappings = mappings(headers, notes);
    name_special(&mut mappings, notes);
    let mut gaps = Vec::new();
    let pages = pages(bytes, headers, &mut mappings, extents, &mut gaps);
    gaps.extend(left_out(headers, &mappings));
    gaps.extend(cut_off(headers));
    gaps.extend(unknown(notes));
    if headers.strange + notes.damaged > 0 {
        let what = crate::base::counted(headers.strange + notes.damaged, "part") + " of the core";
        gaps.push(Gap::new(what, Why::BadData(Addr::NULL)).hint("they are damaged, or overlap others"));
    }
    let (process, status) = process(&mappings, notes);
    let tasks = tasks(notes);
    OsView { process, status, tasks, gaps, ..OsView::of(mappings, Ok(pages)) }
}

/// The segments, cut where a mapped file begins or ends: the kernel and gdb write one for each mapping.
fn mappings(headers: &Headers, notes: &Notes) -> Vec<Mapping> {
    let mut mappings = Vec::new();
    // One path may be that of many mappings, and each mapping keeps it.
    let mut allowance = Allowance::of(headers.described_bytes());
    let mut files = notes.files.iter().peekable();
    for load in &headers.loads {
        let mut at = load.range.start;
        while at < load.range.end && mappings.len() < MAPPINGS_MAX {
            while files.peek().is_some_and(|file| file.range.end <= at) {
                files.next();
            }
            let next = files.peek().copied();
            let file = next.filter(|file| file.range.has(at));
            let end = match (file, next) {
                (Some(file), _) => file.range.end,
                (None, Some(next)) => next.range.start,
                (None, None) => load.range.end,
            };
            let range = Range::new(at, end.min(load.range.end));
            let file = file.filter(|file| {
                let path_bytes = notes.paths.get(file.path).map_or(0, String::len);
                allowance.take(path_bytes as u64).is_some()
            });
            mappings.push(mapping(load, range, file, notes));
            at = range.end;
        }
    }
    mappings
}

fn mapping(load: &Load, range: Range, file: Option<&MappedFile>, notes: &Notes) -> Mapping {
    let path = file.and_then(|file| notes.paths.get(file.path)).cloned().unwrap_or_default();
    let (offset, inode) = match file {
        Some(file) => (file.offset.saturating_add(range.start.0 - file.range.start.0), file.path as u64 + 1),
        None => (0, 0),
    };
    // Which mappings are shared is not in a core; memory of these names always is: memfd_create(2) as ZGC uses it,
    // MAP_SHARED | MAP_ANONYMOUS (mm/shmem.c, `shmem_zero_setup`), SysV segments (ipc/shm.c), POSIX shared memory.
    let rights = Rights { shared: is_shmem_name(&path), ..load.rights };
    // Memory that is shared without a file has one name, whosever it is.
    let device =
        if path == "/dev/zero (deleted)" { format!("core:{:x}", range.start.0) } else { "core".to_string() };
    Mapping { range, rights, offset, device, inode, path }
}

/// Names that the kernel gives in /proc/PID/maps and a core does not have. `[heap]` needs malloc's help: `snapshot::core`.
fn name_special(mappings: &mut [Mapping], notes: &Notes) {
    let mut name = |at: Option<Addr>, name: &str| {
        let at = at?;
        let place = mappings.partition_point(|mapping| mapping.range.end <= at);
        let mapping = mappings.get_mut(place).filter(|m| m.range.has(at) && m.inode == 0)?;
        mapping.path = name.to_string();
        Some(place)
    };
    // The kernel puts the random bytes on the first stack.
    name(notes.auxiliary_value(AT_RANDOM).map(Addr), "[stack]");
    name(Some(VSYSCALL), "[vsyscall]");
    let vdso = name(notes.auxiliary_value(AT_SYSINFO_EHDR).map(Addr), "[vdso]");
    let Some(mut place) = vdso else { return };
    let mut left = VVAR_BYTES_MAX;
    let mut times = Vec::new();
    while let Some(below) = place.checked_sub(1) {
        let (start, mapping) = (mappings[place].range.start, &mut mappings[below]);
        let is_time = mapping.inode == 0 && mapping.range.end == start && mapping.rights.text() == "r--p";
        if !is_time || mapping.range.bytes() > left {
            break;
        }
        left -= mapping.range.bytes();
        mapping.path = "[vvar]".to_string();
        times.push(below);
        place = below;
    }
    // Linux 6.13 on has two, that of the clocks next to the vDSO (arch/x86/entry/vdso/vma.c, `map_vdso`).
    if let [clocks, _, ..] = times[..] {
        mappings[clocks].path = "[vvar_vclock]".to_string();
    }
}

/// The pages that the file holds, as runs. A hole is a page that was never touched. In a file without holes (a copy, or
/// gdb's) a page of zeros may be one, and counts as one.
fn pages(
    bytes: &FileBytes,
    headers: &Headers,
    mappings: &mut [Mapping],
    extents: &Extents,
    gaps: &mut Vec<Gap>,
) -> Vec<PageRun> {
    let held: u64 = headers.loads.iter().map(|load| load.held).sum();
    let is_full =
        headers.loads.iter().all(|load| extents.covers(load.offset, load.offset.saturating_add(load.held)));
    let is_unsure = is_full || headers.is_by_gdb;
    // In a true core no two mappings lie at one place of the file.
    let can_look = held <= CORE_ZERO_BYTES_MAX.min(bytes.length());
    let mut finder = Finder { bytes, extents, is_unsure, can_look, zeros: 0, of_files: 0 };
    let mut runs = Vec::new();
    let mut loads = headers.loads.iter().peekable();
    for mapping in mappings {
        while loads.peek().is_some_and(|load| load.range.end <= mapping.range.start) {
            loads.next();
        }
        let Some(load) = loads.peek().filter(|load| load.range.covers(mapping.range)) else { continue };
        let before = runs.len();
        // The gaps between the segments of a library are never touched.
        let is_gap = mapping.is_file() && !mapping.rights.any();
        if mapping.counts_in_rss(mapping.rights.shared) && !is_gap {
            finder.runs(load, mapping, &mut runs);
        }
        // gdb marks reservations without any right readable, and writes their zeros.
        let rights = mapping.rights;
        let is_reserved = mapping.path.is_empty() && !rights.write && !rights.execute && runs.len() == before;
        if headers.is_by_gdb && is_reserved && load.held > 0 {
            mapping.rights.read = false;
        }
    }
    gaps.push(residency_gap(&finder));
    runs
}

struct Finder<'a> {
    bytes: &'a FileBytes,
    extents: &'a Extents,
    /// Private memory without a file may have zeros that were never touched.
    is_unsure: bool,
    can_look: bool,
    /// Bytes of pages that were left out for it.
    zeros: u64,
    /// Bytes held of files' mappings.
    of_files: u64,
}

impl Finder<'_> {
    fn runs(&mut self, load: &Load, mapping: &Mapping, runs: &mut Vec<PageRun>) {
        let inside = mapping.range.start.0 - load.range.start.0;
        let held = load.held.saturating_sub(inside).min(mapping.range.bytes());
        let from = load.offset.saturating_add(inside);
        let to_address = |at: u64| mapping.range.start.plus(at - from);
        let mut done = mapping.range.start;
        for (start, end) in self.extents.within(from, from.saturating_add(held)) {
            let range = Range::new(to_address(start), to_address(end)).widened(base_page());
            let range = Range::new(range.start.max(done), range.end.min(mapping.range.end));
            done = range.end;
            if mapping.is_file() && !mapping.rights.shared {
                self.of_files += range.bytes();
            }
            // To write shared memory without a file is to touch it all; no file is looked at for zeros.
            let is_unsure_here = mapping.rights.shared || (self.is_unsure && !mapping.is_file());
            match is_unsure_here && self.can_look {
                true => self.without_zeros(range, from, mapping, runs),
                false => push(runs, range, mapping),
            }
        }
    }

    /// `from`: where in the file the mapping begins.
    fn without_zeros(&mut self, range: Range, from: u64, mapping: &Mapping, runs: &mut Vec<PageRun>) {
        let mut piece = vec![0; range.bytes().min(ZEROS_PIECE_BYTES) as usize];
        let mut at = range.start;
        while at < range.end {
            let inside = from.saturating_add(at.0 - mapping.range.start.0);
            let mut piece = &mut piece[..(range.end.0 - at.0).min(ZEROS_PIECE_BYTES) as usize];
            let mut is_there = self.bytes.read(inside, piece).is_some();
            if !is_there {
                // The file ends within it.
                let page = (base_page() as usize).min(piece.len());
                piece = &mut piece[..page];
                is_there = self.bytes.read(inside, piece).is_some();
            }
            for bytes in piece.chunks(base_page() as usize) {
                let page = Range::sized(at, bytes.len() as u64);
                let is_zero = |piece: &[u8]| *piece == ZEROS[..piece.len()];
                match is_there && bytes.chunks(ZEROS.len()).all(is_zero) {
                    true => self.zeros += page.bytes(),
                    false => push(runs, page, mapping),
                }
                at = page.end;
            }
        }
    }
}

fn push(runs: &mut Vec<PageRun>, range: Range, mapping: &Mapping) {
    let bits = PageRun::PRESENT | if mapping.rights.shared { PageRun::FILE } else { 0 };
    let is_full = runs.len() == PAGE_RUNS_MAX;
    match runs.last_mut() {
        Some(last) if last.range.end == range.start && range.start > mapping.range.start => {
            last.range.end = range.end;
        }
        _ if range.is_empty() || is_full => {}
        _ => runs.push(PageRun { range, bits, page_bytes: base_page() as u32, mapped_times: 0 }),
    }
}

fn residency_gap(finder: &Finder) -> Gap {
    let mut hint = format!(
        "the ones that the core holds count as resident: swapped ones too, and {} MiB of files, absent ones of which were read \
         to write the core",
        finder.of_files >> 20
    );
    if finder.zeros > 0 {
        let mib = finder.zeros >> 20;
        hint += &format!("; {mib} MiB of zeros count as absent, for they may never have been touched");
    }
    if finder.is_unsure && !finder.can_look {
        hint += "; the core is too large to be searched for zeros, so untouched memory counts too";
    }
    Gap::new("which pages were in memory", Why::NotRecorded).hint(hint)
}

/// Mappings with rights of which the core was to hold nothing: `coredump_filter`, MADV_DONTDUMP, unchanged files.
fn left_out(headers: &Headers, mappings: &[Mapping]) -> Option<Gap> {
    let is_out = |load: &&Load| load.rights.any() && load.dumped < load.range.bytes();
    let out = || {
        headers.loads.iter().filter(is_out).filter(|load| {
            find_mapping(mappings, load.range.start).is_some_and(|mapping| mapping.rights.any())
        })
    };
    let bytes: u64 = out().map(|load| load.range.bytes() - load.dumped).sum();
    let what = format!(
        "resident pages of what the core leaves out ({} KiB, mappings: {})",
        bytes >> 10,
        out().count()
    );
    (bytes > 0).then(|| {
        Gap::new(what, Why::NotRecorded)
            .hint("the core leaves them out, unchanged files mostly (/proc/PID/coredump_filter); they count as absent")
    })
}

fn cut_off(headers: &Headers) -> Option<Gap> {
    let bytes: u64 = headers.loads.iter().map(|load| load.dumped - load.held).sum();
    let what = format!("{bytes} bytes of memory that are cut off the end of the core");
    (bytes > 0).then(|| Gap::new(what, Why::NotRecorded).hint("ulimit -c, or a full disk"))
}

fn unknown(notes: &Notes) -> Vec<Gap> {
    let mut gaps = vec![
        Gap::new("RSS, swap, page tables, page sizes, sharing, start, container", Why::NotRecorded)
            .hint("the kernel does not write them into a core; all pages are shown as 4 KiB pages"),
        Gap::new("the kernel's names of threads", Why::NotRecorded).hint(
            "Java threads have the names that are in the Java heap, the VM's own the ones that it gave them",
        ),
    ];
    if notes.pid.is_none() {
        gaps.push(Gap::new("pid, user and command", Why::NotRecorded).hint("the core has no NT_PRPSINFO"));
    }
    if notes.files.is_empty() {
        gaps.push(Gap::new("names of mapped files", Why::NotRecorded).hint("the core has no NT_FILE"));
    }
    if notes.threads.is_empty() {
        gaps.push(Gap::new("threads", Why::NotRecorded).hint("the core has no NT_PRSTATUS"));
    }
    gaps
}

fn process(mappings: &[Mapping], notes: &Notes) -> (ProcessFacts, Status) {
    let pid = notes.pid.unwrap_or_default();
    let entry = notes.auxiliary_value(AT_ENTRY).and_then(|at| find_mapping(mappings, Addr(at)));
    let facts = ProcessFacts {
        pid,
        namespace_pid: pid,
        user: notes.uid.map(users::name).unwrap_or_default(),
        uid: notes.uid.unwrap_or_default(),
        executable: entry.map(|mapping| mapping.path.clone()).unwrap_or_default(),
        ..ProcessFacts::default()
    };
    let status = Status {
        threads: Some(notes.threads.len() as u64).filter(|threads| *threads > 0),
        uid: notes.uid,
        namespace_pids: notes.pid.into_iter().collect(),
        ..Status::default()
    };
    (facts, status)
}

fn tasks(notes: &Notes) -> Vec<Task> {
    let tids: std::collections::BTreeSet<i32> = notes.threads.iter().copied().collect();
    tids.into_iter().map(|tid| Task { tid, name: String::new(), inner_tid: None }).collect()
}
