//! What large pages hold of nothing: pages of zeros in huge pages, by area and part, and what of it would come back by a
//! split or by the kernel's own shrinker. Pure: from what `os::zeros` found and the account.
//!
//! A page of zeros is resident memory that was never written, or was cleared and not used since. On 4 KiB pages the first
//! kind would not be there; so it is what the large page costs. It is not proof of it: what `-XX:+AlwaysPreTouch` touched is
//! zeros as well, on whatever pages.
//!
//! A large page may hold memory of several owners. What lies on the range of one is its own; blocks of malloc that share
//! pages have their part of the zeros in proportion to what they have of the pages.

use super::area::Area;
use super::split::apportion;
use super::types::{Instance, MemoryMap, Span};
use crate::base::{Bytes, Gap, Range, overlapping};
use crate::os::folio_sample;
use crate::os::machine::base_page;
use crate::os::thp_shrinker::Shrinker;
use crate::os::zero_ranges::Sort;
use crate::os::zeros::{self, Seen, Zeros};
use std::collections::{BTreeMap, BTreeSet};

/// The first kernel whose split makes zero pages of pages of zeros (commit b1f202060afe).
const GIVES_BACK_SINCE: (u32, u32) = (6, 12);

/// A figure and the interval that holds the true one in 95 of 100 cases; where all was read, both ends are the figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    pub bytes: Bytes,
    pub low: Bytes,
    pub high: Bytes,
}

impl Estimate {
    /// The sum of two that know nothing of each other.
    fn plus(self, other: Estimate) -> Estimate {
        let bytes = self.bytes.saturating_add(other.bytes);
        let root = |one: Bytes, two: Bytes| (one as f64).hypot(two as f64) as Bytes;
        let below = root(self.bytes - self.low.min(self.bytes), other.bytes - other.low.min(other.bytes));
        let above = root(self.high.saturating_sub(self.bytes), other.high.saturating_sub(other.bytes));
        Estimate { bytes, low: bytes.saturating_sub(below), high: bytes.saturating_add(above) }
    }
}

/// The sums for one sort of large pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZeroSum {
    pub resident_bytes: Bytes,
    pub read_bytes: Bytes,
    pub zero: Estimate,
    /// The part of `resident_bytes` in huge pages that are more than half zeros, and in the ones that are all zeros.
    pub mostly_zero_bytes: Bytes,
    pub all_zero_bytes: Bytes,
    /// Zeros in the ones that the kernel would split by its present settings, when memory runs short.
    pub shrinker_bytes: Bytes,
}

/// By sort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums(pub BTreeMap<Sort, ZeroSum>);

impl Sums {
    pub fn of(&self, sort: Sort) -> ZeroSum {
        self.0.get(&sort).copied().unwrap_or_default()
    }
    /// On pages larger than 4 KiB, of whatever sort.
    pub fn large_bytes(&self) -> Bytes {
        self.large().map(|sum| sum.resident_bytes).sum()
    }
    pub fn large_zero(&self) -> Estimate {
        self.large().fold(Estimate::default(), |all, sum| all.plus(sum.zero))
    }
    fn large(&self) -> impl Iterator<Item = &ZeroSum> {
        self.0.iter().filter(|(sort, _)| **sort != Sort::StackSmall).map(|(_, sum)| sum)
    }
}

/// All that is known of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bloat {
    pub total: Sums,
    /// Only areas and parts that have any.
    pub areas: BTreeMap<Area, Sums>,
    pub parts: BTreeMap<(Area, String), Sums>,
    /// The sums for malloc, for all owners of the blocks.
    pub malloc: Sums,
    /// Threads of whose stack something lies on pages larger than 4 KiB.
    pub threads_on_large: usize,
    /// Whether a split gives pages of zeros back: Linux 6.12.
    pub split_gives_back: bool,
    pub shrinker: Shrinker,
    pub is_sampled: bool,
    pub read_bytes: Bytes,
    pub read_ms: f64,
    pub gaps: Vec<Gap>,
}

impl Bloat {
    /// `kernel`: its release.
    pub fn of(kernel: &str, map: &MemoryMap, zeros: &Zeros) -> Bloat {
        let mut tallies = Tallies::new(map);
        for (range, sort) in &zeros.candidates {
            each_span(map, *range, |span, piece| tallies.resident(span, *sort, piece.bytes()));
        }
        for (index, seen) in zeros.seen.iter().enumerate() {
            tallies.seen(index, seen, zeros.shrinker);
        }
        let mut bloat = Bloat {
            threads_on_large: tallies.threads.len(),
            split_gives_back: is_since(kernel, GIVES_BACK_SINCE),
            shrinker: zeros.shrinker,
            is_sampled: zeros.is_sampled,
            read_bytes: zeros.read_bytes,
            read_ms: zeros.read_ms,
            gaps: zeros.gaps.clone(),
            ..Bloat::default()
        };
        for (key, by_sort) in tallies.groups.into_iter().filter(|(_, by_sort)| !by_sort.is_empty()) {
            let sums = Sums(by_sort.into_iter().map(|(sort, tally)| (sort, tally.sum())).collect());
            match key {
                Key::Total => bloat.total = sums,
                Key::Malloc => bloat.malloc = sums,
                Key::Area(area) => drop(bloat.areas.insert(area, sums)),
                Key::Part(area, part) => drop(bloat.parts.insert((area, part), sums)),
            }
        }
        bloat
    }

    pub fn area(&self, area: Area) -> Sums {
        self.areas.get(&area).cloned().unwrap_or_default()
    }

    /// What `pages split` of that memory gives back on this kernel.
    pub fn split_returns(&self, sums: &Sums) -> Estimate {
        if self.split_gives_back { sums.of(Sort::Thp).zero } else { Estimate::default() }
    }
}

/// "6.18.44-generic" against (6, 12).
pub fn is_since(release: &str, (major, minor): (u32, u32)) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok);
    next().zip(next()).is_some_and(|found| found >= (major, minor))
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Total,
    Malloc,
    Area(Area),
    Part(Area, String),
}

/// What is counted for one key and sort.
#[derive(Default)]
struct Tally {
    resident: Bytes,
    cells: Vec<Cell>,
}

/// The part that a key has of a block that was read.
#[derive(Clone, Copy)]
struct Cell {
    index: usize,
    read: Bytes,
    zero: Bytes,
    /// Bytes of the cell for each byte that was read of its block.
    weight: f64,
    is_mostly_zero: bool,
    is_all_zero: bool,
    would_be_split: bool,
}

struct Tallies<'a> {
    map: &'a MemoryMap,
    /// By owner, as numbers of `groups`.
    keys: Vec<Vec<usize>>,
    groups: Vec<(Key, BTreeMap<Sort, Tally>)>,
    threads: BTreeSet<i32>,
}

impl<'a> Tallies<'a> {
    fn new(map: &'a MemoryMap) -> Tallies<'a> {
        let mut numbers: BTreeMap<Key, usize> = BTreeMap::new();
        let mut number = |key: Key| {
            let next = numbers.len();
            *numbers.entry(key).or_insert(next)
        };
        let keys = map.owners.iter().map(|owner| {
            let mut keys = vec![number(Key::Total), number(Key::Area(owner.area))];
            keys.push(number(Key::Part(owner.area, owner.part.clone())));
            if owner.instance.is_mallocs() {
                keys.push(number(Key::Malloc));
            }
            keys
        });
        let keys = keys.collect();
        let mut groups: Vec<(usize, Key)> = numbers.into_iter().map(|(key, number)| (number, key)).collect();
        groups.sort();
        let groups = groups.into_iter().map(|(_, key)| (key, BTreeMap::new())).collect();
        Tallies { map, keys, groups, threads: BTreeSet::new() }
    }

    fn each(&mut self, owner: usize, sort: Sort, mut change: impl FnMut(&mut Tally)) {
        for key in &self.keys[owner] {
            change(self.groups[*key].1.entry(sort).or_default());
        }
    }

    fn resident(&mut self, span: &Span, sort: Sort, bytes: Bytes) {
        for (share, bytes) in span.shares.iter().zip(apportion(bytes, &weights(span))) {
            if bytes == 0 {
                continue;
            }
            self.each(share.owner, sort, |tally| tally.resident += bytes);
            let owner = &self.map.owners[share.owner];
            if let (Area::Stack, Instance::Thread(tid)) = (owner.area, &owner.instance)
                && sort != Sort::StackSmall
            {
                self.threads.insert(*tid);
            }
        }
    }

    fn seen(&mut self, index: usize, seen: &Seen, shrinker: Shrinker) {
        let map = self.map;
        let (read, zero) = (zeros::bytes(&seen.read), zeros::bytes(&seen.zeros));
        let block = Cell {
            index,
            read: 0,
            zero: 0,
            weight: seen.stands_for_bytes as f64 / read.max(1) as f64,
            is_mostly_zero: zero * 2 > read,
            is_all_zero: zero == read,
            would_be_split: shrinker.would_split(zero / base_page(), read / base_page()),
        };
        for range in &seen.read {
            each_span(map, *range, |span, piece| {
                let weights = weights(span);
                let read = apportion(piece.bytes(), &weights);
                let zero = apportion(zero_bytes(&seen.zeros, piece), &weights);
                for (share, (read, zero)) in span.shares.iter().zip(read.into_iter().zip(zero)) {
                    if read > 0 {
                        self.each(share.owner, seen.sort, |tally| tally.add(Cell { read, zero, ..block }));
                    }
                }
            });
        }
    }
}

/// What each share of a span has of its resident pages.
fn weights(span: &Span) -> Vec<Bytes> {
    span.shares.iter().map(|share| share.figures.resident + share.figures.aliased).collect()
}

fn zero_bytes(zeros: &[Range], piece: Range) -> Bytes {
    overlapping(zeros, piece, |range| *range).map(|range| range.intersect(piece).bytes()).sum()
}

fn each_span<'a>(map: &'a MemoryMap, range: Range, mut visit: impl FnMut(&'a Span, Range)) {
    for span in overlapping(&map.spans, range, |span| span.range) {
        visit(span, span.range.intersect(range));
    }
}

impl Tally {
    fn add(&mut self, part: Cell) {
        match self.cells.last_mut() {
            Some(last) if last.index == part.index => {
                last.read += part.read;
                last.zero += part.zero;
            }
            _ => self.cells.push(part),
        }
    }

    fn sum(&self) -> ZeroSum {
        let over = |wanted: &dyn Fn(&Cell) -> Bytes| -> f64 {
            self.cells.iter().map(|cell| wanted(cell) as f64 * cell.weight).sum()
        };
        let read: Bytes = self.cells.iter().map(|cell| cell.read).sum();
        let zero: Bytes = self.cells.iter().map(|cell| cell.zero).sum();
        let stands_for = over(&|cell| cell.read);
        let scale = if stands_for > 0.0 { self.resident as f64 / stands_for } else { 0.0 };
        let all = |wanted: &dyn Fn(&Cell) -> Bytes| -> Bytes {
            // What lacks less than a page is what shares were rounded by.
            let is_whole = read + base_page() > self.resident;
            if is_whole { self.cells.iter().map(wanted).sum() } else { (over(wanted) * scale) as Bytes }
        };
        let bytes = all(&|cell| cell.zero).min(self.resident);
        let error = self.error_bytes(read, scale);
        // What was read is sure.
        let most = self.resident.saturating_sub(read.saturating_sub(zero)).max(zero);
        ZeroSum {
            resident_bytes: self.resident,
            read_bytes: read,
            zero: Estimate {
                bytes,
                low: bytes.saturating_sub(error).clamp(zero.min(bytes), bytes),
                high: bytes.saturating_add(error).min(most).max(bytes),
            },
            mostly_zero_bytes: all(&|cell| if cell.is_mostly_zero { cell.read } else { 0 }),
            all_zero_bytes: all(&|cell| if cell.is_all_zero { cell.read } else { 0 }),
            shrinker_bytes: all(&|cell| if cell.would_be_split { cell.zero } else { 0 }),
        }
    }

    fn error_bytes(&self, read: Bytes, scale: f64) -> Bytes {
        if read == 0 {
            return self.resident;
        }
        if read + base_page() > self.resident {
            return 0;
        }
        let cell = |cell: &Cell| ((cell.read as f64 * cell.weight) as Bytes, cell.zero, cell.read);
        let cells: Vec<(Bytes, Bytes, Bytes)> = self.cells.iter().map(cell).collect();
        (folio_sample::error_bytes(&cells) as f64 * scale) as Bytes
    }
}

#[cfg(test)]
#[path = "bloat_tests.rs"]
mod tests;
