//! `/proc/pagetypeinfo` (root only): what each block of the size of a huge page is used for. Movable blocks can be emptied by
//! compaction and reclaim; a block with one unmovable page in it is lost for huge pages until that page is freed.
//!
//! Format: mm/vmstat.c, `pagetypeinfo_show`: a head with the pages of a block, the free lists by type, the number of blocks
//! by type.

use super::buddyinfo::{self, FreeBlocks};
use super::host::field;
use super::machine::base_page;
use crate::base::Bytes;
use crate::base::limits::MEMORY_ZONES_MAX;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTypes {
    /// The size of one block.
    pub block_bytes: Bytes,
    pub zones: Vec<ZoneBlocks>,
}

/// The blocks of one zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneBlocks {
    pub node: u32,
    pub zone: String,
    /// Movable, and the ones that are set aside for large ranges of movable memory (CMA).
    pub movable: u64,
    pub all: u64,
}

pub fn parse(text: &str) -> Option<BlockTypes> {
    let block_pages: u64 = field(text, "Pages per block:")?.parse().ok()?;
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Number of blocks type"));
    let types: Vec<&str> =
        lines.next()?.trim_start_matches("Number of blocks type").split_ascii_whitespace().collect();
    let line = |line: &str| {
        let FreeBlocks { node, zone, blocks: numbers } = buddyinfo::zone(line)?;
        let of = |wanted: &str| {
            types.iter().position(|name| *name == wanted).and_then(|at| numbers.get(at)).copied()
        };
        Some(ZoneBlocks {
            node,
            zone,
            movable: of("Movable")?.saturating_add(of("CMA").unwrap_or(0)),
            all: numbers.iter().fold(0, |sum: u64, number| sum.saturating_add(*number)),
        })
    };
    let zones = lines.take(MEMORY_ZONES_MAX).map_while(line).collect();
    Some(BlockTypes { block_bytes: block_pages.checked_mul(base_page())?, zones })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Page block order: 9\nPages per block:  512\n\n\
                        Free pages count per migrate type at order       0      1 \n\
                        Node    0, zone   Normal, type    Unmovable      0      0 \n\n\
                        Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate \n\
                        Node 0, zone      DMA            1            7            0            0            0 \n\
                        Node 0, zone   Normal           70        10347          335            0            0 \n";

    #[test]
    fn the_blocks_that_can_be_emptied() {
        let types = parse(TEXT).expect("as Linux 6.18 prints it");
        assert_eq!(types.block_bytes, 2 << 20);
        let normal = ZoneBlocks { node: 0, zone: "Normal".into(), movable: 10347, all: 10752 };
        assert_eq!((types.zones.len(), &types.zones[1]), (2, &normal));
    }

    #[test]
    fn a_file_that_breaks_off_gives_what_it_has() {
        assert_eq!(parse("Page block order: 9\n"), None);
        let cut = &TEXT[..TEXT.len() - 90];
        assert_eq!(parse(cut).expect("a head").zones.len(), 1);
    }
}
