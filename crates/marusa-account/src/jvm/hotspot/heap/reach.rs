//! Finds the tables of a collector that vmStructs does not name: starts at an object of the collector, looks in it for
//! words that bound memory, and follows its pointers breadth first to the next objects.
//!
//! Bounds are believed only when they have the shape of one of HotSpot's own structures, are whole pages, and all between
//! them is anonymous memory without an owner so far and that is not malloc's. They come from the words and not from the
//! kernel's mappings, because reservations that touch are one mapping to the kernel. So this runs when all other owners
//! have claimed theirs.

use super::unowned::{Unowned, is_memory};
use crate::base::limits::{REACH_DEPTH_MAX, REACH_OBJECT_WORDS_MAX, REACH_OBJECTS_MAX, REACH_ROWS_MAX};
use crate::base::{Addr, Bytes, Range, USER_END};
use crate::jvm::types::Extent;
use crate::os::Target;
use crate::os::machine::base_page;
use std::collections::{HashSet, VecDeque};

/// Bytes of one chunk of G1's mark stack (g1ConcurrentMark.hpp, `TaskQueueEntryChunk`): 1023 entries and a link.
const MARK_CHUNK_BYTES: u64 = 8192;
/// How often a mark stack can have doubled: to all memory there is.
const MARK_DOUBLINGS_MAX: usize = 16;
/// How far from a pointer its count may lie, in words.
const COUNT_WORDS: usize = 8;
/// More than HotSpot aligns the rows of a table to (`DEFAULT_CACHE_LINE_SIZE`).
const ROW_ALIGNMENT_MAX: u64 = 128;

/// Memory that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    pub range: Range,
    pub shape: Shape,
    /// How many pointers were followed to it.
    pub depth: usize,
    /// "G1CollectedHeap+0x130 -> +0x8": the way from the root.
    pub path: String,
}

/// By what it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The bounds of what is reserved, then of what is committed of it: `VirtualSpace`, `PSVirtualSpace`.
    Space,
    /// (start, count of mark stack chunks).
    Chunks,
    /// Starts with pointers to its own rows of one length.
    Rows,
}

/// A walk from the roots. Memory that one root reached is not reached again.
pub struct Search<'a> {
    target: &'a Target<'a>,
    unowned: Unowned<'a>,
    visited: HashSet<Addr>,
    /// Mark stacks are looked for, and are at least this long.
    pub mark_stack_bytes_least: Option<Bytes>,
    pub found: Vec<Reached>,
    /// Whether the walk ended at its limit.
    pub over_limit: bool,
}

/// An object on the walk.
struct Step {
    words: Vec<u64>,
    depth: usize,
    path: String,
    /// Small numbers next to the pointer that led here.
    counts: Vec<u64>,
}

impl<'a> Search<'a> {
    pub fn new(target: &'a Target<'a>, extents: &[Extent]) -> Search<'a> {
        Search {
            target,
            unowned: Unowned::new(target, extents),
            visited: HashSet::new(),
            mark_stack_bytes_least: None,
            found: Vec::new(),
            over_limit: false,
        }
    }

    /// Walks from words that were read at `name`; pointers are followed `depth` times, to objects of up to
    /// `object_words`.
    pub fn walk(&mut self, words: &[u64], name: &str, depth: usize, object_words: usize) {
        let first = Step { words: words.to_vec(), depth: 0, path: name.to_string(), counts: Vec::new() };
        let mut queue = VecDeque::from([first]);
        while let Some(step) = queue.pop_front() {
            self.look(&step);
            if step.depth == depth.min(REACH_DEPTH_MAX) {
                continue;
            }
            for index in 0..step.words.len() {
                if self.visited.len() >= REACH_OBJECTS_MAX {
                    self.over_limit = true;
                    return;
                }
                if let Some(next) = self.follow(&step, index, object_words) {
                    queue.push_back(next);
                }
            }
        }
    }

    /// The object that word `index` points to, unless it was seen or can be no object of malloc's.
    fn follow(&mut self, step: &Step, index: usize, object_words: usize) -> Option<Step> {
        let at = Addr(step.words[index]);
        if !is_pointer(at) || !at.is_aligned(8) || !self.visited.insert(at) {
            return None;
        }
        let mapping = self.target.mapping(at)?;
        // With MALLOC_ARENA_MAX=1, which WildFly sets, the VM's objects are all in the main arena.
        let may_hold = is_memory(mapping) || mapping.path == "[heap]";
        if !may_hold || !mapping.rights.write || self.unowned.owned.overlaps(Range::sized(at, 8)) {
            return None;
        }
        let run = self.target.view.resident_run(at)?;
        let count = ((run.end.0 - at.0) / 8).min(object_words.min(REACH_OBJECT_WORDS_MAX) as u64);
        let words = self.target.memory.scan(at, count as usize).ok()?;
        let path = format!("{}+{:#x} -> ", step.path, index * 8);
        Some(Step { words, depth: step.depth + 1, path, counts: counts_near(&step.words, index) })
    }

    /// Looks for bounds of memory in one object.
    fn look(&mut self, step: &Step) {
        for (index, four) in step.words.windows(4).enumerate() {
            if let Some(range) = space(four)
                && self.unowned.is_free(range)
            {
                self.keep(range, Shape::Space, step, index);
            }
        }
        let Some(least) = self.mark_stack_bytes_least else { return };
        for index in 0..step.words.len() {
            if let Some(range) = self.chunks(step, index, least) {
                self.keep(range, Shape::Chunks, step, index);
            }
        }
    }

    fn keep(&mut self, range: Range, shape: Shape, step: &Step, index: usize) {
        self.unowned.owned.add(range);
        let path = format!("{}+{:#x}", step.path, index * 8);
        self.found.push(Reached { range, shape, depth: step.depth, path });
    }

    /// A mark stack that word `index` points to: its length in chunks lies near the pointer, or near the pointer to the
    /// array that holds it (JDK 22 and on, where the third and later words of the array lead to twice as many chunks as
    /// the one before; g1ConcurrentMark.hpp, `ChunkAllocator`).
    fn chunks(&self, step: &Step, index: usize, bytes_least: Bytes) -> Option<Range> {
        let start = Addr(step.words[index]);
        if !is_pointer(start) || !start.is_aligned(base_page()) {
            return None;
        }
        let mapping = self.target.mapping(start).filter(|mapping| mapping.rights.write)?;
        let doubled = index.saturating_sub(1).min(MARK_DOUBLINGS_MAX);
        let mut counts = counts_near(&step.words, index);
        counts.extend(step.counts.iter().map(|count| count << doubled));
        let sized = counts.iter().map(|count| Range::sized(start, count * MARK_CHUNK_BYTES));
        let fits = |range: &Range| {
            range.bytes() >= bytes_least && mapping.range.covers(*range) && self.unowned.is_free(*range)
        };
        // The least is what there is now; the others are what there may be one day.
        sized.filter(fits).min_by_key(|range| range.end)
    }

    /// Looks in static data for pointers to tables whose first words point to their own rows
    /// (`Padded2DArray::create_unfreeable`, padded.inline.hpp): G1's "from card cache" of JDK 11 and on.
    pub fn rows(&mut self, words: &[u64], name: &str) {
        for (index, word) in words.iter().enumerate() {
            let start = Addr(*word);
            if !is_pointer(start) || !start.is_aligned(base_page()) {
                continue;
            }
            let Some(range) = self.row_table(start).filter(|range| self.unowned.is_free(*range)) else {
                continue;
            };
            let step = Step { words: Vec::new(), depth: 0, path: name.to_string(), counts: Vec::new() };
            self.keep(range, Shape::Rows, &step, index);
        }
    }

    fn row_table(&self, start: Addr) -> Option<Range> {
        let mapping = self.target.mapping(start).filter(|mapping| is_memory(mapping))?;
        let memory = self.target.memory;
        let first = memory.u64(start).ok()?;
        let table_bytes = first.checked_sub(start.0).filter(|bytes| (16..1 << 20).contains(bytes))?;
        let row_bytes = memory.u64(start.plus(8)).ok()?.checked_sub(first)?;
        if row_bytes == 0 || row_bytes % 64 != 0 || row_bytes > mapping.range.bytes() {
            return None;
        }
        let pointers = memory.words(start, (table_bytes / 8).min(REACH_ROWS_MAX) as usize).ok()?;
        let is_row = |(row, at): (u64, &u64)| first.checked_add(row * row_bytes) == Some(*at);
        let rows = (0..).zip(&pointers).take_while(|row| is_row(*row)).count();
        let rest_is_padding = pointers[rows..].iter().all(|word| *word == 0);
        let end = Addr(first).plus(rows as u64 * row_bytes).plus(ROW_ALIGNMENT_MAX);
        let range = Range::new(start, end).widened(base_page());
        (rest_is_padding && mapping.range.covers(range)).then_some(range)
    }
}

fn is_pointer(at: Addr) -> bool {
    (0x1_0000..USER_END).contains(&at.0)
}

/// The bounds that two words give: whole pages, the lower one first.
pub fn bounds(low: u64, high: u64) -> Option<Range> {
    let (start, end) = (Addr(low), Addr(high));
    let are_pages = start.is_aligned(base_page()) && end.is_aligned(base_page());
    (are_pages && is_pointer(start) && is_pointer(end) && start < end).then(|| Range::new(start, end))
}

/// The reservation of a `VirtualSpace` or `PSVirtualSpace`: what is committed lies in it and starts or ends with it
/// (virtualspace.hpp; psVirtualspace.hpp, whose spaces may grow downwards).
fn space(four: &[u64]) -> Option<Range> {
    let reserved = bounds(four[0], four[1])?;
    let committed = Range { start: Addr(four[2]), end: Addr(four[3]) };
    let is_within = committed.start <= committed.end && reserved.covers(committed);
    let at_an_end = committed.start == reserved.start || committed.end == reserved.end;
    (is_within && at_an_end && committed.end.is_aligned(base_page())).then_some(reserved)
}

/// Numbers near word `index` that may count chunks.
fn counts_near(words: &[u64], index: usize) -> Vec<u64> {
    let near = &words[index.saturating_sub(COUNT_WORDS)..(index + COUNT_WORDS).min(words.len())];
    near.iter().copied().filter(|word| (8..1 << 24).contains(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Known;
    use crate::jvm::types::{How, Kind};
    use crate::os::maps;
    use crate::os::memory::Pieces;
    use crate::os::target::{NoSymbols, OsView, ProcessFacts};

    const MAPS: &str = "\
7f0000000000-7f0000010000 rw-p 00000000 00:00 0
7f0001000000-7f0001004000 rw-p 00000000 00:00 0
7f0001004000-7f0001020000 ---p 00000000 00:00 0
7f0002000000-7f0004000000 rw-p 00000000 00:00 0
7f0005000000-7f0005010000 r--p 00000000 08:01 7 /lib/libc.so.6
7f0008000000-7f0008100000 rw-p 00000000 00:00 0
";

    fn view() -> OsView {
        let unknown: Known<_> = Err(crate::base::Gap::new("pages", crate::base::Why::NotRecorded));
        OsView {
            process: ProcessFacts::default(),
            status: Default::default(),
            mappings: maps::parse(MAPS.as_bytes()).0,
            pages: unknown,
            tasks: Vec::new(),
            gaps: Vec::new(),
            late: None,
            page_sizes: None,
            smaps: None,
        }
    }

    fn search(memory: &Pieces, owned: &[Range], run: impl FnOnce(&mut Search)) -> Vec<Reached> {
        let view = view();
        let target = Target { view: &view, memory, symbols: &NoSymbols };
        let extent = |range: &Range| Extent {
            range: *range,
            kind: Kind::Metaspace,
            part: String::new(),
            in_use_bytes: None,
            how: How::Shape,
        };
        let extents: Vec<Extent> = owned.iter().map(extent).collect();
        let mut search = Search::new(&target, &extents);
        run(&mut search);
        search.found
    }

    const SPACE: [u64; 4] = [0x7f0001001000, 0x7f0001010000, 0x7f0001001000, 0x7f0001004000];

    #[test]
    fn a_space_behind_a_pointer_is_found_across_two_mappings() {
        let mut memory = Pieces::default();
        memory.put_words(Addr(0x7f0000000100), &[[9, 8].as_slice(), &SPACE, &[0; 64]].concat());
        let found = search(&memory, &[], |search| search.walk(&[1, 0x7f0000000100], "Heap", 1, 16));
        let range = Range::of(0x7f0001001000, 0x7f0001010000);
        let path = "Heap+0x8 -> +0x10".to_string();
        assert_eq!(found, [Reached { range, shape: Shape::Space, depth: 1, path }]);
        let owned = [Range::of(0x7f000100f000, 0x7f0001010000)];
        assert_eq!(search(&memory, &owned, |search| search.walk(&SPACE, "Heap", 0, 0)), []);
    }

    #[test]
    fn pairs_that_are_no_space_are_left_alone() {
        let high_first = [SPACE[1], SPACE[0], SPACE[0], SPACE[1]];
        let committed_outside = [SPACE[0], SPACE[1], SPACE[0], SPACE[1] + 4096];
        let of_a_file = [0x7f0005000000, 0x7f0005001000, 0x7f0005000000, 0x7f0005001000];
        let hole = [0x7f0000000000, 0x7f0001004000, 0x7f0000000000, 0x7f0001004000];
        for words in [high_first, committed_outside, of_a_file, hole, [u64::MAX; 4]] {
            assert_eq!(search(&Pieces::default(), &[], |search| search.walk(&words, "Heap", 1, 16)), []);
        }
    }

    #[test]
    fn memory_of_malloc_is_left_alone() {
        let mut memory = Pieces::default();
        memory.put_words(Addr(0x7f0001000000), &[0, 0x4002, 0, 0]);
        memory.put_words(Addr(0x7f0008000000), &[0x7f0008000030, 0, 0x21000, 0x21000]);
        let chunk = [0x7f0001001000, 0x7f0001002000, 0x7f0001001000, 0x7f0001002000];
        let arena = [0x7f0008001000, 0x7f0008002000, 0x7f0008001000, 0x7f0008002000];
        for words in [chunk, arena] {
            assert_eq!(search(&memory, &[], |search| search.walk(&words, "Heap", 0, 0)), []);
        }
    }

    #[test]
    fn a_mark_stack_is_as_long_as_its_count_of_chunks_says() {
        let stack = |words: &[u64]| {
            let found = search(&Pieces::default(), &[], |search| {
                search.mark_stack_bytes_least = Some(1 << 20);
                search.walk(words, "ConcurrentMark", 0, 0);
            });
            found.iter().map(|reached| reached.range).collect::<Vec<_>>()
        };
        // JDK 17: what it may become, the base, what it is.
        assert_eq!(stack(&[4096, 0x7f0002000000, 256, 0]), [Range::of(0x7f0002000000, 0x7f0002200000)]);
        assert_eq!(stack(&[9, 0x7f0002000000, 16, 0]), []);
    }

    #[test]
    fn the_buckets_of_a_mark_stack_double() {
        let mut memory = Pieces::default();
        let buckets = [0x7f0002000000, 0x7f0002100000, 0x7f0002200000, 0];
        memory.put_words(Addr(0x7f0000000200), &[buckets.as_slice(), &[0; 64]].concat());
        let found = search(&memory, &[], |search| {
            search.mark_stack_bytes_least = Some(1 << 20);
            search.walk(&[128, 4096, 512, 9, 0, 0x7f0000000200], "ConcurrentMark", 1, 4);
        });
        let bytes: Vec<u64> = found.iter().map(|reached| reached.range.bytes()).collect();
        assert_eq!(bytes, [1 << 20, 1 << 20, 2 << 20]);
    }

    #[test]
    fn a_table_that_points_to_its_own_rows() {
        let mut memory = Pieces::default();
        let start = 0x7f0002000000;
        let rows: Vec<u64> = (0..3).map(|row| start + 128 + row * 1408).chain([0; 13]).collect();
        memory.put_words(Addr(start), &rows);
        let found = search(&memory, &[], |search| search.rows(&[5, start], "libjvm.so"));
        let range = Range::of(start, start + 8192);
        let path = "libjvm.so+0x8".to_string();
        assert_eq!(found, [Reached { range, shape: Shape::Rows, depth: 0, path }]);
        let mut broken = Pieces::default();
        broken.put_words(Addr(start), &[[start + 128, start + 200].as_slice(), &[0; 14]].concat());
        assert_eq!(search(&broken, &[], |search| search.rows(&[start], "libjvm.so")), []);
    }
}
