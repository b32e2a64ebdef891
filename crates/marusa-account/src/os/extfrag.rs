//! Why a free block of a size is not available: -1 it is, towards 0 memory is short, towards 1 it is in pieces. The kernel's own
//! index (mm/vmstat.c of Linux 6.18, `__fragmentation_index`), which it shows to root where debugfs is mounted, from the counts
//! of free blocks that every user may read.

use super::buddyinfo::{FreeBlocks, is_for_devices};

/// The index of the zone where it is best; the zone for devices does not count. `None`: there is no other.
pub fn best(zones: &[FreeBlocks], order: usize) -> Option<f64> {
    zones
        .iter()
        .filter(|zone| !is_for_devices(&zone.zone))
        .map(|zone| index(&zone.blocks, order))
        .min_by(f64::total_cmp)
}

fn index(blocks: &[u64], order: usize) -> f64 {
    let all: u64 = blocks.iter().fold(0, |sum, blocks| sum.saturating_add(*blocks));
    if blocks.iter().skip(order).any(|blocks| *blocks > 0) {
        return -1.0;
    }
    if all == 0 {
        return 0.0;
    }
    let pages: f64 =
        blocks.iter().enumerate().map(|(order, blocks)| *blocks as f64 * 2_f64.powi(order as i32)).sum();
    1.0 - (1.0 + pages / 2_f64.powi(order as i32)) / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str, blocks: &[u64]) -> FreeBlocks {
        FreeBlocks { node: 0, zone: name.to_string(), blocks: blocks.to_vec() }
    }

    #[test]
    fn short_in_pieces_and_there() {
        assert_eq!(index(&[9, 9, 1], 2), -1.0);
        assert_eq!(index(&[0, 0, 0], 2), 0.0);
        // 1,000 pages, each alone: 1 - (1 + 1000 / 512) / 1000.
        let pieces = [1000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!((index(&pieces, 9) - 0.997).abs() < 1e-3);
        assert!(
            index(&[0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0], 9) < 0.01,
            "two halves are as good as nothing in pieces"
        );
    }

    #[test]
    fn the_best_zone_but_not_that_of_devices() {
        let zones = [zone("DMA", &[0, 5]), zone("DMA32", &[2, 0]), zone("Normal", &[400, 0])];
        assert_eq!(best(&zones, 1), Some(index(&[2, 0], 1)));
        assert_eq!((best(&zones[..1], 1), best(&[], 1)), (None, None));
    }
}
