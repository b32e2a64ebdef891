//! What larger pages cost in memory. A transparent huge page fills its holes: of one of which one small page was touched, all is
//! resident then. HugeTLB pages are all taken at the start: the whole reserved heap, the code cache before it.
//!
//! The JVM puts there the Java heap, the code cache and the collector's tables (JDK 11 to 25: the callers of
//! `os::reserve_memory_special` and `os::realign_memory`, os_linux.cpp); nothing else.

use crate::base::{Bytes, Range};
use crate::map::Area;
use crate::os::machine::huge_page;
use std::collections::BTreeMap;

pub const GIGANTIC: Bytes = 1 << 30;

/// A smaller table shares a small page whatever the flags. (Shenandoah rounds its regions' half MiB up to a large page.)
const TABLE_BYTES_MIN: Bytes = 128 << 10;

/// The areas that -XX:+UseTransparentHugePages and -XX:+UseLargePages put on large pages.
pub const MOVED: [Area; 3] = [Area::JavaHeap, Area::Gc, Area::JitCode];

/// What one area has now and would have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AreaPrice {
    pub now: Bytes,
    /// The part of `now` on pages smaller than a huge one.
    pub on_small: Bytes,
    /// The part of `on_small` that larger pages would take: not malloc's, which stays where it is.
    pub movable: Bytes,
    /// At least, and at most.
    pub after: (Bytes, Bytes),
}

impl AreaPrice {
    pub fn lost(&self) -> (Bytes, Bytes) {
        (self.after.0.saturating_sub(self.now), self.after.1.saturating_sub(self.now))
    }
}

/// Resident memory in a row, in one mapping, of one area; or in one file, if that is mapped at several addresses.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub mapping: Range,
    pub range: Range,
    /// `None`: of no memory that would be on large pages.
    pub area: Option<Area>,
    pub page_bytes: Bytes,
}

/// The holes that would be filled if each aligned huge page of a mapping in which a page is resident were one page: the most that
/// comes on top, since the kernel may leave a nearly empty block alone. `pieces` are in the order of addresses.
pub fn holes(pieces: impl IntoIterator<Item = Piece>) -> BTreeMap<Area, Bytes> {
    let mut holes: BTreeMap<Area, Bytes> = BTreeMap::new();
    let mut block = Block::default();
    for piece in pieces.into_iter().filter(|piece| piece.page_bytes < huge_page() && !piece.range.is_empty())
    {
        let (first, last) =
            (piece.range.start.down_to(huge_page()), piece.range.end.minus(1).down_to(huge_page()));
        // The blocks between these two have no holes.
        for start in [Some(first), (last != first).then_some(last)].into_iter().flatten() {
            block.close_unless(start.0, piece.mapping, &mut holes);
            let part = Range::sized(start, huge_page()).intersect(piece.range);
            *block.bytes.entry(piece.area).or_default() += part.bytes();
        }
    }
    block.close_unless(u64::MAX, Range::default(), &mut holes);
    holes
}

/// The 2 MiB that are looked at, and whose its resident bytes are.
#[derive(Default)]
struct Block {
    start: u64,
    mapping: Range,
    bytes: BTreeMap<Option<Area>, Bytes>,
}

impl Block {
    /// Gives the holes of the block that ends here to the area that has most of it. A block that its mapping does not hold
    /// whole can be no large page.
    fn close_unless(&mut self, start: u64, mapping: Range, holes: &mut BTreeMap<Area, Bytes>) {
        if start == self.start && mapping == self.mapping {
            return;
        }
        let whole = Range::of(self.start, self.start.saturating_add(huge_page()));
        let resident: Bytes = self.bytes.values().sum();
        if let Some((Some(area), _)) = self.bytes.iter().max_by_key(|(_, bytes)| **bytes)
            && self.mapping.start <= whole.start
            && whole.end <= self.mapping.end
        {
            *holes.entry(*area).or_default() += huge_page().saturating_sub(resident);
        }
        *self = Block { start, mapping, bytes: BTreeMap::new() };
    }
}

/// What a JVM takes of HugeTLB pages at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// -Xmx.
    pub heap: Bytes,
    /// Each code heap, as reserved.
    pub code: Vec<Bytes>,
    /// Each table of the collector, as reserved.
    pub tables: Vec<Bytes>,
}

impl Reserved {
    /// Bytes of each area after the start, with the heap on pages of `heap_page`; all else is on 2 MiB. Each of the
    /// collector's tables may be there or not, by its size and the release.
    pub fn after(&self, heap_page: Bytes) -> [(Area, (Bytes, Bytes)); 3] {
        let up = |bytes: Bytes, page: Bytes| bytes.checked_next_multiple_of(page).unwrap_or(bytes);
        let heap = up(self.heap, heap_page);
        // JDK 17 cuts one reservation into code heaps, JDK 25 rounds each.
        let sum = |sizes: &mut dyn Iterator<Item = Bytes>| sizes.fold(0, Bytes::saturating_add);
        let each = sum(&mut self.code.iter().map(|bytes| up(*bytes, huge_page())));
        let code = (up(sum(&mut self.code.iter().copied()), huge_page()).min(each), each);
        let large = self.tables.iter().filter(|bytes| **bytes >= TABLE_BYTES_MIN);
        let tables = sum(&mut large.map(|bytes| up(*bytes, huge_page())));
        [(Area::JavaHeap, (heap, heap)), (Area::JitCode, code), (Area::Gc, (0, tables))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: Bytes = 2 << 20;

    const MIB: u64 = 1 << 20;

    fn piece(area: Area, mapping: (u64, u64), start: u64, end: u64, page_bytes: u64) -> Piece {
        Piece {
            mapping: Range::of(mapping.0, mapping.1),
            range: Range::of(start, end),
            area: Some(area),
            page_bytes,
        }
    }

    #[test]
    fn holes_of_touched_blocks_are_filled_and_whole_or_unaligned_ones_have_none() {
        let heap = (0, 10 * MIB);
        let holes = holes([
            piece(Area::JavaHeap, heap, 0, 4096, 4096),
            piece(Area::JavaHeap, heap, MIB, MIB + 4096, 4096),
            // Blocks 1 to 3 whole, and 1 MiB of block 4.
            piece(Area::JavaHeap, heap, 2 * MIB, 9 * MIB, 4096),
            // Never a large page: the mapping has no aligned 2 MiB.
            piece(Area::Stack, (21 * MIB, 22 * MIB), 21 * MIB, 21 * MIB + 4096, 4096),
            // One already.
            piece(Area::Gc, (40 * MIB, 44 * MIB), 40 * MIB, 42 * MIB, 2 * MIB),
        ]);
        assert_eq!(holes, BTreeMap::from([(Area::JavaHeap, 2 * MIB - 8192 + MIB)]));
    }

    #[test]
    fn a_block_of_two_areas_is_filled_once_by_who_has_most_of_it() {
        let both = (0, 4 * MIB);
        let holes = holes([
            piece(Area::JitCode, both, 0, 8192, 4096),
            piece(Area::Gc, both, MIB, MIB + 4096, 4096),
            piece(Area::Gc, both, 3 * MIB, 3 * MIB + 4096, 4096),
            // malloc's blocks stay on small pages.
            Piece { area: None, ..piece(Area::Gc, (6 * MIB, 8 * MIB), 6 * MIB, 7 * MIB, 4096) },
        ]);
        assert_eq!(holes, BTreeMap::from([(Area::JitCode, 2 * MIB - 12288), (Area::Gc, 2 * MIB - 4096)]));
    }

    /// Pages that JDK 17 took with -Xms2g -Xmx2g and the default code cache of 240 MiB, counted in the pool: Serial 1145,
    /// Parallel 1177, G1 1182.
    #[test]
    fn hugetlb_takes_the_heap_the_code_cache_and_the_tables_that_have_a_pages_size() {
        let pages = |reserved: &Reserved, page: Bytes| {
            let after = reserved.after(page);
            let sum = |end: fn(&(Bytes, Bytes)) -> Bytes| {
                after.iter().map(|(_, both)| end(both)).sum::<Bytes>() / HUGE
            };
            (sum(|both| both.0), sum(|both| both.1))
        };
        let code = vec![6 * MIB - 4096, 117 * MIB, 117 * MIB + 4096];
        let g1 = [vec![32 * MIB; 2], vec![4 * MIB; 3], vec![65_536]].concat();
        let g1 = Reserved { heap: 2048 * MIB, code: code.clone(), tables: g1 };
        assert_eq!(pages(&g1, HUGE), (1144, 1183));
        let serial = Reserved { heap: 2048 * MIB, code, tables: vec![4 * MIB] };
        assert_eq!(pages(&serial, HUGE), (1144, 1147));
        let odd = Reserved { heap: 1500 * MIB + 4096, ..Reserved::default() };
        assert_eq!(pages(&odd, HUGE), (751, 751));
        assert_eq!(pages(&odd, GIGANTIC), (1024, 1024));
        let hostile = Reserved { heap: u64::MAX, code: vec![u64::MAX; 2], tables: vec![u64::MAX; 2] };
        assert_eq!(hostile.after(GIGANTIC)[0].1, (u64::MAX, u64::MAX));
    }
}
