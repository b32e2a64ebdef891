//! `/proc/buddyinfo`: free blocks of memory by their size, in each zone of each node. A huge page needs one free block of its
//! size, so this is what is available at once, before anything is moved.
//!
//! Format: Documentation/filesystems/proc.rst, "buddyinfo": one column for each order, a block of order n has 2^n base pages.
//! On x86-64 the zone DMA (16 MiB) is kept for devices by its reserve (`lowmem_reserve_ratio`) and is left out by who counts;
//! on aarch64 it is all memory below 4 GiB (arch/arm64/mm/init.c, `zone_sizes_init`).

use super::machine::{base_page, is_aarch64};
use crate::base::Bytes;
use crate::base::limits::{MEMORY_ORDERS_MAX, MEMORY_ZONES_MAX};

/// The free blocks of one zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeBlocks {
    pub node: u32,
    /// "DMA", "DMA32", "Normal", "Movable".
    pub zone: String,
    /// By order.
    pub blocks: Vec<u64>,
}

/// Lines that are none are left out.
pub fn parse(text: &str) -> Vec<FreeBlocks> {
    text.lines().take(MEMORY_ZONES_MAX).filter_map(zone).collect()
}

/// "Node 0, zone   Normal  70 10347": a column for each order here, for each type of block in /proc/pagetypeinfo.
pub(super) fn zone(line: &str) -> Option<FreeBlocks> {
    let (node, rest) = line.strip_prefix("Node ")?.split_once(", zone")?;
    let mut words = rest.split_ascii_whitespace();
    let zone = words.next()?.to_string();
    let blocks: Vec<u64> = words.take(MEMORY_ORDERS_MAX).map_while(|word| word.parse().ok()).collect();
    Some(FreeBlocks { node: node.trim().parse().ok()?, zone, blocks })
}

/// Whether a zone is too small to count.
pub fn is_for_devices(zone: &str) -> bool {
    zone == "DMA" && !is_aarch64()
}

/// The order of a block of this size: 9 for 2 MiB.
pub fn order(bytes: Bytes) -> usize {
    (bytes / base_page()).max(1).ilog2() as usize
}

impl FreeBlocks {
    /// How many pages of this size the free blocks hold. None larger than the largest block: 1 GiB pages are found by
    /// moving memory, not in this list.
    pub fn pages_of(&self, page_bytes: Bytes) -> u64 {
        let order = order(page_bytes);
        let larger = self.blocks.iter().enumerate().skip(order);
        larger.fold(0, |sum: u64, (at, blocks)| sum.saturating_add(blocks.saturating_mul(1 << (at - order))))
    }
    pub fn free_bytes(&self) -> Bytes {
        let all = self.blocks.iter().enumerate();
        all.fold(0, |sum: u64, (at, blocks)| sum.saturating_add(blocks.saturating_mul(base_page() << at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n\
                        Node 0, zone    DMA32    885    278    228    187    164    118     86     64     44     23    698 \n\
                        Node 1, zone   Normal   3747   4499   3112   1877   1044    957    779    267     93    239   2996 \n";

    #[test]
    fn blocks_of_two_megabytes_and_larger() {
        let zones = parse(TEXT);
        assert_eq!(zones.len(), 3);
        assert_eq!((zones[2].node, zones[2].zone.as_str()), (1, "Normal"));
        assert_eq!(zones[0].pages_of(2 << 20), 1 + 2 * 3);
        assert_eq!(zones[1].pages_of(2 << 20), 23 + 2 * 698);
        assert_eq!(zones[2].pages_of(1 << 30), 0, "no block is that large");
        assert_eq!(zones[0].free_bytes(), (1 << 20) + (2 << 20) + 3 * (4 << 20));
    }

    #[test]
    fn nonsense_is_no_zone_and_no_overflow() {
        assert_eq!(parse("Node x, zone DMA 1\nNode 0\n\nzone"), []);
        let line = format!("Node 0, zone Normal {}\n", format!("{} ", u64::MAX).repeat(100));
        let zones = parse(&line);
        assert_eq!(zones[0].blocks.len(), MEMORY_ORDERS_MAX);
        assert_eq!(zones[0].pages_of(2 << 20), u64::MAX);
    }
}
