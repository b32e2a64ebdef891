//! The first touch of memory, in memory of our own: how long it takes by the size of the pages that the kernel gives, and how
//! much of that is the zeroing, which no page size saves.

use super::signals;
use crate::base::{Addr, Bytes, Gap, Known, Range, Why, size};
use crate::os::cpu_time::of_this_thread;
use crate::os::machine::{base_page, huge_page};
use crate::os::process::{Process, gap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Barrier;
use std::time::Instant;

/// Bytes touched between two checks for a signal to end: some 20 ms on 4 KiB pages.
const LOOK_BYTES: Bytes = 64 << 20;
const WHAT: &str = "memory to touch";

/// Pages that memory is touched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(from = "PagesRow", into = "PagesRow")]
pub enum Pages {
    Small,
    /// Transparent ones of this size: 2 MiB, or a smaller size that the host's settings allow to those who ask.
    Transparent(Bytes),
    HugeTlb(Bytes),
}

/// Pages as the results have them.
#[derive(JsonSchema, Serialize, Deserialize)]
struct PagesRow {
    pages: String,
    page_bytes: Bytes,
}

impl From<Pages> for PagesRow {
    fn from(pages: Pages) -> PagesRow {
        PagesRow { pages: pages.name(), page_bytes: pages.bytes() }
    }
}

impl From<PagesRow> for Pages {
    fn from(row: PagesRow) -> Pages {
        match row.pages {
            pages if pages.starts_with("thp-") => Pages::Transparent(row.page_bytes),
            pages if pages.starts_with("hugetlb-") => Pages::HugeTlb(row.page_bytes),
            _ => Pages::Small,
        }
    }
}

impl Pages {
    pub fn bytes(self) -> Bytes {
        match self {
            Pages::Small => base_page(),
            Pages::Transparent(bytes) | Pages::HugeTlb(bytes) => bytes,
        }
    }

    /// "4k", "thp-64k", "thp-2m", "hugetlb-1g".
    pub fn name(self) -> String {
        let size = size(self.bytes()).to_lowercase();
        match self {
            Pages::Small => size,
            Pages::Transparent(_) => format!("thp-{size}"),
            Pages::HugeTlb(_) => format!("hugetlb-{size}"),
        }
    }
}

/// Memory that is reserved and not touched yet, or touched; given back when dropped.
pub struct Field {
    base: *mut libc::c_void,
    length: usize,
    /// What is touched: by address, apart from each other.
    pieces: Vec<Range>,
}

// SAFETY: the mapping belongs to this value alone, and is written through ranges that threads share out among themselves.
unsafe impl Sync for Field {}

/// What a touch took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Touched {
    pub bytes: Bytes,
    pub threads: usize,
    pub touch: Took,
    /// Writing the same bytes once more, all of each page: what zeroing them takes.
    pub fill: Took,
    pub faults: Option<u64>,
    /// What our page tables grew by.
    pub page_table_bytes: Option<Bytes>,
}

/// Time of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Took {
    /// Until the last was done.
    pub wall_ns: f64,
    /// On processors, all threads together: what others took in the meantime is not in it.
    pub cpu_ns: f64,
}

impl Field {
    /// `bytes` must be a multiple of the page size, and of 2 MiB.
    pub fn reserve(bytes: Bytes, pages: Pages) -> Known<Field> {
        match pages {
            Pages::HugeTlb(page_bytes) => Field::hugetlb(bytes, page_bytes),
            Pages::Small => Field::private(bytes, huge_page(), libc::MADV_NOHUGEPAGE),
            // The largest size that fits into a mapping is taken (mm/memory.c, `alloc_anon_folio`; mm/huge_memory.c): smaller
            // ones are had where 2 MiB do not fit.
            Pages::Transparent(page_bytes) if page_bytes < huge_page() => {
                Field::private(bytes, huge_page() - page_bytes, libc::MADV_HUGEPAGE)
            }
            Pages::Transparent(_) => Field::private(bytes, huge_page(), libc::MADV_HUGEPAGE),
        }
    }

    /// A field of private memory; the first `piece` bytes of each 2 MiB can be touched.
    fn private(bytes: Bytes, piece: Bytes, advice: libc::c_int) -> Known<Field> {
        let blocks = bytes.div_ceil(piece);
        // Nothing of ours lies next to it, so that the kernel makes no mapping of two.
        let length = ((blocks + 2) * huge_page()) as usize;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mut field = Field::map(length, libc::PROT_NONE, kind)?;
        let start = (field.base as u64 + 1).next_multiple_of(huge_page());
        if piece == huge_page() {
            field.pieces.push(Range::sized(Addr(start), bytes));
        } else {
            let one = |block: u64| {
                let left = bytes - block * piece;
                Range::sized(Addr(start + block * huge_page()), left.min(piece))
            };
            field.pieces.extend((0..blocks).map(one));
        }
        for range in &field.pieces {
            let (at, length) = (range.start.0 as *mut libc::c_void, range.bytes() as usize);
            // SAFETY: the range lies within this mapping, which nothing refers to yet.
            let done = unsafe {
                libc::mprotect(at, length, libc::PROT_READ | libc::PROT_WRITE) == 0
                    && libc::madvise(at, length, advice) == 0
            };
            if !done {
                return Err(gap(WHAT, &io::Error::last_os_error()));
            }
        }
        Ok(field)
    }

    fn hugetlb(bytes: Bytes, page_bytes: Bytes) -> Known<Field> {
        const MAP_HUGE_SHIFT: u32 = 26;
        let size = (page_bytes.trailing_zeros() as libc::c_int) << MAP_HUGE_SHIFT;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | size;
        let mut field = Field::map(bytes as usize, libc::PROT_READ | libc::PROT_WRITE, kind)
            .map_err(|gap| gap.hint("the pool has too few free pages of this size"))?;
        field.pieces.push(Range::sized(Addr(field.base as u64), bytes));
        Ok(field)
    }

    fn map(length: usize, rights: libc::c_int, kind: libc::c_int) -> Known<Field> {
        // SAFETY: a new mapping at a place that the kernel chooses.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, kind, -1, 0) };
        match base == libc::MAP_FAILED {
            true => Err(gap(WHAT, &io::Error::last_os_error())),
            false => Ok(Field { base, length, pieces: Vec::new() }),
        }
    }

    pub fn bytes(&self) -> Bytes {
        self.pieces.iter().map(|piece| piece.bytes()).sum()
    }

    /// All that is touched lies within.
    pub fn range(&self) -> Range {
        Range::sized(Addr(self.base as u64), self.length as u64)
    }

    /// One byte of each 4 KiB is written, in the order of addresses; each thread has a part in a row.
    pub fn touch(&self, threads: usize) -> Known<Touched> {
        let me = Process::own().map_err(|error| Gap::new(WHAT, Why::Denied).hint(error.to_string()))?;
        let tables = || me.status().ok()?.page_table_bytes;
        let (faults, before) = (me.minor_faults().ok(), tables());
        let touch = self.by(threads, |range| {
            for at in (range.start.0..range.end.0).step_by(base_page() as usize) {
                // SAFETY: `at` lies in a piece, which can be written; no other thread has it.
                unsafe { (at as *mut u8).write_volatile(1) };
            }
        });
        let faults = faults.zip(me.minor_faults().ok()).map(|(before, now)| now.saturating_sub(before));
        let page_table_bytes = before.zip(tables()).map(|(before, now)| now.saturating_sub(before));
        let fill = self.by(threads, |range| {
            // SAFETY: as above.
            unsafe { std::ptr::write_bytes(range.start.0 as *mut u8, 0, range.bytes() as usize) };
        });
        Ok(Touched { bytes: self.bytes(), threads, touch, fill, faults, page_table_bytes })
    }

    /// One byte of each 4 KiB is read of memory that was never written: each fault maps the zero page, which is neither taken
    /// nor zeroed.
    pub fn read(&self, threads: usize) -> Took {
        self.by(threads, |range| {
            for at in (range.start.0..range.end.0).step_by(base_page() as usize) {
                // SAFETY: `at` lies in a piece, which can be read.
                unsafe { (at as *const u8).read_volatile() };
            }
        })
    }

    /// Each thread has its share.
    fn by(&self, threads: usize, work: impl Fn(Range) + Sync) -> Took {
        let shares = shares(&self.pieces, threads);
        let gate = Barrier::new(threads + 1);
        std::thread::scope(|scope| {
            let ends: Vec<_> = shares
                .iter()
                .map(|share| {
                    let (gate, work) = (&gate, &work);
                    scope.spawn(move || {
                        gate.wait();
                        let before = of_this_thread();
                        // What is cut short by a signal is thrown away by whoever blocked it.
                        let all = share.iter().flat_map(|range| cut(*range));
                        all.take_while(|_| !signals::pending()).for_each(work);
                        (Instant::now(), of_this_thread().saturating_sub(before))
                    })
                })
                .collect();
            // Before the gate: on one processor all might be done before we run again.
            let started = Instant::now();
            gate.wait();
            let mut took = Took::default();
            for (end, cpu) in ends.into_iter().filter_map(|thread| thread.join().ok()) {
                took.wall_ns = took.wall_ns.max(end.duration_since(started).as_nanos() as f64);
                took.cpu_ns += cpu.as_nanos() as f64;
            }
            took
        })
    }
}

/// Pieces of `LOOK_BYTES`: between two of them a signal to end is noticed.
fn cut(range: Range) -> impl Iterator<Item = Range> {
    let starts = (range.start.0..range.end.0).step_by(LOOK_BYTES as usize);
    starts.map(move |start| Range::sized(Addr(start), LOOK_BYTES.min(range.end.0 - start)))
}

impl Drop for Field {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing points into it any more.
        unsafe { libc::munmap(self.base, self.length) };
    }
}

/// One part in a row for each thread, cut at whole 2 MiB: only in a page of 1 GiB can two meet.
fn shares(pieces: &[Range], threads: usize) -> Vec<Vec<Range>> {
    let all: Bytes = pieces.iter().map(|piece| piece.bytes()).sum();
    let each = all.div_ceil(threads as u64).next_multiple_of(huge_page()).max(huge_page());
    let mut shares: Vec<Vec<Range>> = vec![Vec::new(); threads];
    let mut before = 0;
    for piece in pieces {
        let mut start = piece.start;
        while start < piece.end {
            let thread = ((before / each) as usize).min(threads - 1);
            let room = if thread == threads - 1 { Bytes::MAX } else { each - before % each };
            let end = Addr(start.0.saturating_add(room).min(piece.end.0));
            shares[thread].push(Range { start, end });
            before += end.0 - start.0;
            start = end;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_touched_once_whoever_does_it() {
        for threads in [1, 3] {
            let field = Field::reserve(16 << 20, Pages::Small).expect("memory");
            let touched = field.touch(threads).expect("/proc is there");
            assert_eq!((touched.bytes, touched.threads), (16 << 20, threads));
            assert!(touched.faults.is_some_and(|faults| faults >= 4096), "{touched:?}");
            // 8 tables of one page each; that many for the levels above and for what else we did.
            let tables = touched.page_table_bytes.expect("VmPTE");
            assert!((32 << 10..=256 << 10).contains(&tables), "{tables}");
            for took in [touched.touch, touched.fill] {
                assert!(took.wall_ns > 0.0 && took.cpu_ns > 0.0, "{took:?}");
                assert!(took.cpu_ns <= 1.1 * took.wall_ns * threads as f64, "{took:?}");
            }
        }
    }

    #[test]
    fn where_2_mib_do_not_fit_the_pieces_lie_apart_and_sum_up() {
        let page = 64 << 10;
        let field = Field::reserve(16 << 20, Pages::Transparent(page)).expect("memory");
        assert_eq!(field.bytes(), 16 << 20);
        assert!(field.pieces.len() > 8);
        for piece in &field.pieces {
            assert!(piece.start.0.is_multiple_of(huge_page()) && piece.bytes() <= huge_page() - page);
        }
    }

    #[test]
    fn shares_cover_all_once() {
        let pieces = [Range::sized(Addr(0x4000_0000), 3 << 20), Range::sized(Addr(0x5000_0000), 5 << 20)];
        for threads in 1..6 {
            let shares = shares(&pieces, threads);
            let mut ranges: Vec<Range> = shares.iter().flatten().copied().collect();
            ranges.sort_by_key(|range| range.start);
            assert_eq!(ranges.iter().map(|range| range.bytes()).sum::<u64>(), 8 << 20);
            assert!(ranges.windows(2).all(|two| two[0].end <= two[1].start), "{ranges:?}");
            assert_eq!(shares.len(), threads);
        }
    }
}
