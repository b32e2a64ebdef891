//! Copies of the target's pages while one snapshot is taken, in two stores:
//!
//! * `PageCache` keeps each page that was read to the end, so that one snapshot sees one state. A thread's block or a
//!   malloc chunk needs one page; a table that is read from its start to its end gets more pages at once.
//! * `Windows` keeps the last ranges of 8 KiB, for a walk over many small things that lie near each other: classes,
//!   blocks of the code cache. A JVM may have hundreds of megabytes of those, which need not be kept.
//!
//! Memory is taken in slabs of a huge page: one fault for each small page of our own would take as long as the read of the
//! target's.

use super::memory::Fault;
use crate::base::limits::MEMORY_CACHE_BYTES_MAX;
use crate::base::{Addr, PAGE, Range};
use memmap2::{Advice, MmapMut, MmapOptions};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::{Deref, DerefMut};

const PAGE_BYTES: usize = PAGE as usize;
/// Pages that are allocated together, and most pages that are read at once.
const SLAB_PAGES: u32 = 512;
/// For who reads little.
const SMALL_SLAB_PAGES: u32 = 64;
const AHEAD_PAGES_MAX: u32 = 16;
const WINDOW_BYTES: u64 = 8 << 10;
/// 2 MiB in all. The classes of one loader lie in many chunks of metaspace, so with few windows each is read many times.
const WINDOWS_MAX: usize = 256;
/// A walk in rising order gets as many windows at once: the code cache, whose blocks lie one behind another.
const AHEAD_WINDOWS_MAX: usize = 8;
const WINDOW_PAGES: usize = (WINDOW_BYTES / PAGE) as usize;
const WINDOWS_PER_SLAB: usize = SLAB_PAGES as usize * PAGE_BYTES / WINDOW_BYTES as usize;

const _: () = assert!(WINDOWS_MAX.is_multiple_of(WINDOWS_PER_SLAB), "windows in a row lie in one slab");

/// Memory of our own, on a huge page if it is that large and the host has them, and else on small pages that are given at
/// once.
struct Slab {
    /// Twice as long as what is used, so that a huge page's border lies in it.
    map: MmapMut,
    start: usize,
    bytes: usize,
}

impl Slab {
    const HUGE_BYTES: usize = SLAB_PAGES as usize * PAGE_BYTES;

    /// Aborts as an allocation does when the host has no more address space.
    fn new(pages: u32) -> Slab {
        let bytes = pages as usize * PAGE_BYTES;
        let map = MmapOptions::new().len(2 * bytes).map_anon().unwrap_or_else(|_| {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; 2 * Slab::HUGE_BYTES]>())
        });
        let start = map.as_ptr().align_offset(bytes);
        // Where the kernel knows neither, the pages come one by one when they are touched.
        if bytes == Slab::HUGE_BYTES {
            let _ = map.advise_range(Advice::HugePage, start, bytes);
        }
        let _ = map.advise_range(Advice::PopulateWrite, start, bytes);
        Slab { map, start, bytes }
    }
}

impl Deref for Slab {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.map[self.start..self.start + self.bytes]
    }
}

impl DerefMut for Slab {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.bytes]
    }
}

/// Page numbers are the target's choice, so their hash has keys that the target does not know. The two halves of a product
/// with a secret factor, folded together, spread every bit (wyhash, foldhash); SipHash would take as long as the copy of what
/// is looked up.
#[derive(Clone)]
struct PageKeys(u64, u64);

impl Default for PageKeys {
    fn default() -> PageKeys {
        let random = RandomState::new();
        PageKeys(random.hash_one(0), random.hash_one(1) | 1)
    }
}

impl BuildHasher for PageKeys {
    type Hasher = PageHasher;
    fn build_hasher(&self) -> PageHasher {
        PageHasher { keys: self.clone(), hash: 0 }
    }
}

struct PageHasher {
    keys: PageKeys,
    hash: u64,
}

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.hash
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(*byte as u64);
        }
    }
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.hash ^ word ^ self.keys.0) * u128::from(self.keys.1);
        self.hash = product as u64 ^ (product >> 64) as u64;
    }
}

type PageMap<T> = HashMap<u64, T, PageKeys>;

/// Reads resident memory of the target.
pub type ReadResident<'a> = &'a dyn Fn(Addr, &mut [u8]) -> Result<(), Fault>;

pub struct PageCache {
    /// By page number: its place in `slabs`, in pages.
    places: PageMap<u32>,
    slabs: Vec<Slab>,
    slab_pages: u32,
    used: u32,
    last: Option<(u64, u32)>,
    /// The page that a walk in rising order would ask for next, and how many pages the last fetch had.
    next: u64,
    ahead: u32,
}

impl Default for PageCache {
    fn default() -> PageCache {
        PageCache::with_slabs(SLAB_PAGES)
    }
}

impl PageCache {
    /// For some tens of pages.
    pub fn small() -> PageCache {
        PageCache::with_slabs(SMALL_SLAB_PAGES)
    }

    fn with_slabs(slab_pages: u32) -> PageCache {
        let (places, slabs) = Default::default();
        PageCache { places, slabs, slab_pages, used: 0, last: None, next: 0, ahead: 0 }
    }

    /// Copies from the page that holds `at`, if it is here; `into` must not go past its end.
    pub fn copy(&mut self, at: Addr, into: &mut [u8]) -> bool {
        let number = at.0 / PAGE;
        let place = match self.last {
            Some((last, place)) if last == number => place,
            _ => match self.places.get(&number) {
                Some(place) => *place,
                None => return false,
            },
        };
        self.last = Some((number, place));
        let from = (at.0 % PAGE) as usize;
        into.copy_from_slice(&self.pages(place, 1)[from..from + into.len()]);
        true
    }

    /// Reads the page that holds `at`, and more of `resident`, the range around it, when pages are asked for in a row.
    pub fn fetch(&mut self, at: Addr, resident: Range, read: ReadResident) -> Result<(), Fault> {
        if self.slabs.len() * self.slab_pages as usize * PAGE_BYTES > MEMORY_CACHE_BYTES_MAX {
            *self = PageCache::with_slabs(self.slab_pages);
        }
        let number = at.0 / PAGE;
        let wanted = if number == self.next { (self.ahead * 2).clamp(1, AHEAD_PAGES_MAX) } else { 1 };
        if self.used == self.slabs.len() as u32 * self.slab_pages {
            self.slabs.push(Slab::new(self.slab_pages));
        }
        let room = self.slab_pages - self.used % self.slab_pages;
        let most = wanted.min(room) as u64;
        let is_new = |page: &u64| (page + 1) * PAGE <= resident.end.0 && !self.places.contains_key(page);
        let count = (number..number.saturating_add(most)).take_while(is_new).count().max(1) as u32;
        let place = self.used;
        let start = Addr(number * PAGE);
        let count = match read(start, self.pages(place, count)) {
            Ok(()) => count,
            // One of the pages after it may be gone.
            Err(_) => read(start, self.pages(place, 1)).map(|()| 1)?,
        };
        self.places.extend((0..count).map(|page| (number + page as u64, place + page)));
        self.used += count;
        (self.next, self.ahead) = (number + count as u64, count);
        Ok(())
    }

    fn pages(&mut self, place: u32, count: u32) -> &mut [u8] {
        let from = (place % self.slab_pages) as usize * PAGE_BYTES;
        &mut self.slabs[(place / self.slab_pages) as usize][from..from + count as usize * PAGE_BYTES]
    }
}

#[derive(Default)]
pub struct Windows {
    slots: Vec<Window>,
    /// The slabs of consecutive windows.
    slabs: Vec<Slab>,
    places: PageMap<usize>,
    victim: usize,
    last: usize,
    /// Where a walk in rising order would go on, and how many windows the last load had.
    next: u64,
    ahead: usize,
}

struct Window {
    start: u64,
    /// A bit a page: whether its bytes are here.
    pages: u16,
}

impl Windows {
    /// Copies from the window that holds `at`, if it has that page; `into` must not go past the end of the page.
    /// `load` fills a window that is not here yet.
    pub fn copy(
        &mut self,
        at: Addr,
        into: &mut [u8],
        resident: &dyn Fn(Range) -> Vec<Range>,
        read: ReadResident,
    ) -> bool {
        let start = at.down_to(WINDOW_BYTES);
        if self.slots.get(self.last).is_none_or(|window| window.start != start.0) {
            self.last = match self.places.get(&(start.0 / WINDOW_BYTES)) {
                Some(place) => *place,
                None => self.load(start, resident, read),
            };
        }
        let window = &self.slots[self.last];
        let skip = (at.0 - start.0) as usize;
        let is_here = window.pages >> (skip / PAGE_BYTES) & 1 == 1;
        if is_here {
            let from = self.last % WINDOWS_PER_SLAB * WINDOW_BYTES as usize + skip;
            into.copy_from_slice(&self.slabs[self.last / WINDOWS_PER_SLAB][from..from + into.len()]);
        }
        is_here
    }

    /// Fills the window at `start`, and those after it in a walk in rising order; gives the place of the first.
    fn load(&mut self, start: Addr, resident: &dyn Fn(Range) -> Vec<Range>, read: ReadResident) -> usize {
        let wanted = if start.0 == self.next { (self.ahead * 2).min(AHEAD_WINDOWS_MAX) } else { 1 };
        let place = if self.slots.len() < WINDOWS_MAX { self.slots.len() } else { self.victim };
        let number = start.0 / WINDOW_BYTES;
        let room = WINDOWS_PER_SLAB - place % WINDOWS_PER_SLAB;
        let is_new = |index: &u64| !self.places.contains_key(&(number + index));
        let count = (0..wanted.min(room) as u64).take_while(is_new).count().max(1);
        for index in 0..count {
            self.clear(place + index, start.plus(index as u64 * WINDOW_BYTES));
        }
        let first = place % WINDOWS_PER_SLAB * WINDOW_BYTES as usize;
        let bytes = &mut self.slabs[place / WINDOWS_PER_SLAB][first..first + count * WINDOW_BYTES as usize];
        for piece in resident(Range::sized(start, count as u64 * WINDOW_BYTES)) {
            let from = (piece.start.0 - start.0) as usize;
            let to = from + piece.bytes() as usize;
            if read(piece.start, &mut bytes[from..to]).is_ok() {
                for page in from / PAGE_BYTES..to / PAGE_BYTES {
                    self.slots[place + page / WINDOW_PAGES].pages |= 1 << (page % WINDOW_PAGES);
                }
            }
        }
        (self.next, self.ahead) = (start.0 + count as u64 * WINDOW_BYTES, count);
        self.victim = (place + count) % WINDOWS_MAX;
        place
    }

    /// Makes the slot at `place` that of the window at `start`, of which no page is here yet.
    fn clear(&mut self, place: usize, start: Addr) {
        if place / WINDOWS_PER_SLAB == self.slabs.len() {
            self.slabs.push(Slab::new(SLAB_PAGES));
        }
        let window = Window { start: start.0, pages: 0 };
        match self.slots.get_mut(place) {
            Some(old) => {
                self.places.remove(&(old.start / WINDOW_BYTES));
                *old = window;
            }
            None => self.slots.push(window),
        }
        self.places.insert(start.0 / WINDOW_BYTES, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Why;
    use std::cell::RefCell;

    /// Each page holds its own number; what was read is kept.
    #[derive(Default)]
    struct Source(RefCell<Vec<(u64, usize)>>);

    impl Source {
        fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
            self.0.borrow_mut().push((at.0 / PAGE, into.len() / PAGE_BYTES));
            let pages = into.chunks_mut(PAGE_BYTES).zip(at.0 / PAGE..);
            pages.for_each(|(page, number)| page.fill(number as u8));
            if at.0 / PAGE == 99 { Err(Fault { at, why: Why::Gone }) } else { Ok(()) }
        }
    }

    fn byte(cache: &mut PageCache, source: &Source, at: u64) -> Result<u8, Why> {
        let mut byte = [0];
        if !cache.copy(Addr(at), &mut byte) {
            let resident = Range::of(0, 100 * PAGE);
            cache.fetch(Addr(at), resident, &|at, into| source.read(at, into)).map_err(|fault| fault.why)?;
            assert!(cache.copy(Addr(at), &mut byte));
        }
        Ok(byte[0])
    }

    #[test]
    fn single_pages_are_read_alone_and_pages_in_a_row_in_growing_pieces() {
        let (mut cache, source) = (PageCache::default(), Source::default());
        for page in [50, 7, 50, 20, 21, 22, 23, 24, 25, 26, 27] {
            assert_eq!(byte(&mut cache, &source, page * PAGE + 5), Ok(page as u8));
        }
        assert_eq!(*source.0.borrow(), [(50, 1), (7, 1), (20, 1), (21, 2), (23, 4), (27, 8)]);
        assert_eq!(byte(&mut cache, &source, 99 * PAGE), Err(Why::Gone));
        assert_eq!(byte(&mut cache, &source, 98 * PAGE), Ok(98));
    }

    #[test]
    fn a_window_has_the_resident_pages_and_the_oldest_goes() {
        let (mut windows, source) = (Windows::default(), Source::default());
        let resident = |range: Range| vec![Range::new(range.start.plus(PAGE), range.end)];
        let read = |at: Addr, into: &mut [u8]| source.read(at, into);
        let mut byte = [0];
        // Beyond the page that cannot be read.
        let second_page = |window: u64| Addr((64 + window) * WINDOW_BYTES + PAGE);
        assert!(!windows.copy(Addr(65 * WINDOW_BYTES), &mut byte, &resident, &read), "not resident");
        assert!(windows.copy(second_page(1), &mut byte, &resident, &read));
        assert_eq!((byte[0], source.0.borrow().len()), ((second_page(1).0 / PAGE) as u8, 1));
        for window in 2..WINDOWS_MAX as u64 + 8 {
            assert!(windows.copy(second_page(window), &mut byte, &resident, &read));
        }
        assert_eq!((windows.slots.len(), windows.places.len()), (WINDOWS_MAX, WINDOWS_MAX));
        let reads = source.0.borrow().len();
        assert!(reads < WINDOWS_MAX / 4, "{reads} reads: a walk in rising order gets several at once");
        assert!(windows.copy(second_page(1), &mut byte, &resident, &read));
        assert_eq!((byte[0], source.0.borrow().len()), ((second_page(1).0 / PAGE) as u8, reads + 1));
        assert!(windows.copy(second_page(1), &mut byte, &resident, &read));
        assert_eq!(source.0.borrow().len(), reads + 1);
    }
}
