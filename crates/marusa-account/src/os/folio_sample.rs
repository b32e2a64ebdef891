//! A sample of pages where there are too many to look at all, and what it says of the rest.
//!
//! The pages of one backing are cut, in the order of addresses, into blocks of about 2 MiB, and these into as many cells
//! of neighbouring blocks as are looked at. One block of each cell is chosen by chance, and its cell counts as it is: so
//! an old generation on large folios and an eden on small ones both show. The interval comes from how neighbouring
//! cells differ (the successive-difference estimate of a systematic sample; Wolter, Introduction to Variance Estimation,
//! 8.2). Blocks that are all alike would give none: then at most 3 in n may be otherwise, which 95 of 100 samples would
//! have shown.

use super::folio_look::Seen;
use super::machine::base_page;
use super::page_kind::{PageKind, SizeRun};
use crate::base::{Bytes, Range};
use std::collections::BTreeMap;

/// With what the blocks are chosen; the same on each run, so that two readings of the same process can be compared.
pub const SEED: u64 = 0x6d61_7275_7361;
const BLOCK_BYTES: Bytes = 2 << 20;

/// Neighbouring ranges of about 2 MiB in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub ranges: Vec<Range>,
    pub bytes: Bytes,
}

/// Neighbouring blocks of which one was chosen.
#[derive(Clone, Debug)]
pub struct Cell {
    pub blocks: Vec<Block>,
    pub chosen: usize,
}

/// Cuts at multiples of 2 MiB, and joins what is smaller.
pub fn blocks(ranges: &[Range]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let piece = Range::new(at, at.plus(1).up_to(BLOCK_BYTES).min(range.end));
            at = piece.end;
            match blocks.last_mut() {
                Some(last) if last.bytes + piece.bytes() <= BLOCK_BYTES => {
                    last.bytes += piece.bytes();
                    last.ranges.push(piece);
                }
                _ => blocks.push(Block { ranges: vec![piece], bytes: piece.bytes() }),
            }
        }
    }
    blocks
}

/// At most `cells_max` cells; where there are fewer blocks, each is its own.
pub fn cells(blocks: Vec<Block>, cells_max: usize) -> Vec<Cell> {
    let count = blocks.len().min(cells_max.max(1));
    let total = blocks.len();
    let mut blocks = blocks.into_iter();
    (0..count)
        .map(|index| {
            let size = total * (index + 1) / count - total * index / count;
            let blocks: Vec<Block> = blocks.by_ref().take(size).collect();
            Cell { chosen: (random(index as u64) % size.max(1) as u64) as usize, blocks }
        })
        .collect()
}

/// splitmix64.
fn random(index: u64) -> u64 {
    let mut word = SEED.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

impl Cell {
    pub fn bytes(&self) -> Bytes {
        self.blocks.iter().map(|block| block.bytes).sum()
    }
    pub fn chosen(&self) -> Option<&Block> {
        self.blocks.get(self.chosen)
    }

    /// The runs of the cell: those of the chosen block, and for each other block the same shares, laid out from its start.
    pub fn estimate(&self, seen: &Seen) -> Vec<SizeRun> {
        let Some(chosen) = self.chosen() else { return Vec::new() };
        let shares = shares(seen);
        let mut runs = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            if index == self.chosen {
                runs.extend(&seen.runs);
                continue;
            }
            let mut rest = block.ranges.iter().copied();
            let mut range = rest.next().unwrap_or_default();
            for (kind, bytes) in &shares {
                let mut wanted = scaled(*bytes, block.bytes, chosen.bytes) / base_page() * base_page();
                while wanted > 0 && !range.is_empty() {
                    let here = Range::sized(range.start, wanted).intersect(range);
                    runs.push(SizeRun { range: here, kind: *kind, estimated: true });
                    wanted -= here.bytes();
                    range.start = here.end;
                    if range.is_empty() {
                        range = rest.next().unwrap_or_default();
                    }
                }
            }
        }
        runs
    }
}

fn shares(seen: &Seen) -> BTreeMap<PageKind, Bytes> {
    let mut shares = BTreeMap::new();
    for run in &seen.runs {
        *shares.entry(run.kind).or_default() += run.range.bytes();
    }
    shares
}

/// `part` of `whole`, as part of `total`.
pub fn scaled(part: Bytes, total: Bytes, whole: Bytes) -> Bytes {
    if whole == 0 { 0 } else { (u128::from(part) * u128::from(total) / u128::from(whole)) as Bytes }
}

/// Half the width of the 95 % interval of a sum over cells, of which each has the bytes of its cell, and those of its chosen
/// block that count, with the bytes of that block.
pub fn error_bytes(cells: &[(Bytes, Bytes, Bytes)]) -> Bytes {
    let looked_at: Bytes = cells.iter().map(|(_, _, block)| *block).sum();
    let total: Bytes = cells.iter().map(|(cell, _, _)| *cell).sum();
    if cells.is_empty() || looked_at >= total {
        return 0;
    }
    let share = |(_, part, block): &(Bytes, Bytes, Bytes)| *part as f64 / (*block).max(1) as f64;
    let count = cells.len() as f64;
    let squares: f64 =
        cells.windows(2).map(|pair| (share(&pair[1]) - share(&pair[0])).powi(2)).sum::<f64>() / 2.0;
    let not_seen = 1.0 - looked_at as f64 / total as f64;
    let variance = not_seen * squares / (count - 1.0).max(1.0) / count;
    let least = (3.0 / count).min(1.0) * not_seen;
    let half = (1.96 * variance.sqrt()).max(least);
    (half * total as f64) as Bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;
    use crate::base::PAGE;
    use crate::os::page_kind::Backing;

    #[test]
    fn blocks_cover_all_and_small_ranges_are_joined() {
        let ranges =
            [Range::of(0x1ff000, 0x601000), Range::of(0x700000, 0x701000), Range::of(0x702000, 0x703000)];
        let blocks = blocks(&ranges);
        let bytes: Vec<Bytes> = blocks.iter().map(|block| block.bytes).collect();
        assert_eq!(bytes, [PAGE, 2 << 20, 2 << 20, 3 * PAGE]);
        assert_eq!(blocks[3].ranges.len(), 3);
        let cells = cells(blocks, 3);
        let all: Bytes = ranges.iter().map(|range| range.bytes()).sum();
        assert_eq!(cells.iter().map(Cell::bytes).sum::<Bytes>(), all);
        assert!(cells.len() == 3 && cells.iter().all(|cell| cell.chosen < cell.blocks.len()));
    }

    #[test]
    fn the_rest_of_a_cell_is_as_its_chosen_block() {
        let block = |start| Block { ranges: vec![Range::sized(Addr(start), 0x4000)], bytes: 0x4000 };
        let cell = Cell { blocks: vec![block(0x10000), block(0x20000)], chosen: 1 };
        let kind = PageKind::of_folio(Backing::Anonymous, 16 << 10);
        let run = |start, end, estimated| SizeRun { range: Range::of(start, end), kind, estimated };
        let seen = Seen { runs: vec![run(0x21000, 0x24000, false)], ..Seen::default() };
        assert_eq!(cell.estimate(&seen), [run(0x10000, 0x13000, true), run(0x21000, 0x24000, false)]);
    }

    #[test]
    fn the_interval_is_none_where_all_was_seen_and_never_none_elsewhere() {
        assert_eq!(error_bytes(&[(100, 50, 100)]), 0);
        let alike = vec![(1000, 100, 100); 100];
        assert_eq!(error_bytes(&alike), 2_700, "3 in 100 of what was not seen");
        let mixed: Vec<_> = (0..100).map(|index| (1000, if index % 2 == 0 { 100 } else { 0 }, 100)).collect();
        assert!((12_000..15_000).contains(&error_bytes(&mixed)), "{}", error_bytes(&mixed));
    }
}
