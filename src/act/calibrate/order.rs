//! In which order the nodes of a field are visited: random, so that no prefetcher guesses the next, and the same on every
//! run, so that two runs differ by the machine only.

use super::{LINE, Layout};
use crate::os::machine::base_page;

/// Dense nodes lie four lines apart, in a random one of the four: lines in a row would be fetched by the prefetchers before
/// they are asked for, which spread nodes never are.
pub const DENSE_LINES: u64 = 4;
/// They are visited in ranges of this many nodes, 64 KiB: few enough pages for the smallest first-level TLB. So one step in
/// 16 needs a walk, however large the field.
const RANGE_NODES: usize = 256;

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The lines of a field, counted from its start, in the order of the visit. `pages` nodes in all.
pub fn lines(layout: Layout, pages: usize) -> Vec<u32> {
    let mut random = Random(pages as u64);
    let lines_to_a_page = base_page() / LINE;
    match layout {
        Layout::OneToAPage => {
            let mut lines: Vec<u32> = (0..pages as u64)
                .map(|page| (page * lines_to_a_page + random.next() % lines_to_a_page) as u32)
                .collect();
            random.shuffle(&mut lines);
            lines
        }
        Layout::Dense => {
            let mut lines: Vec<u32> = (0..pages as u64)
                .map(|node| (node * DENSE_LINES + random.next() % DENSE_LINES) as u32)
                .collect();
            let mut ranges: Vec<&mut [u32]> = lines.chunks_mut(RANGE_NODES).collect();
            ranges.iter_mut().for_each(|range| random.shuffle(range));
            random.shuffle(&mut ranges);
            ranges.into_iter().flat_map(|range| range.iter().copied()).collect()
        }
    }
}

/// All numbers below `count`, shuffled.
pub fn shuffled(count: usize) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    Random(!(count as u64)).shuffle(&mut numbers);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_visited_once_and_the_dense_ones_in_ranges() {
        let mut spread = lines(Layout::OneToAPage, 5000);
        assert!(spread.windows(2).filter(|pair| pair[0] < pair[1]).count() < 3000, "in no order");
        spread.sort_unstable();
        assert!(spread.iter().enumerate().all(|(page, line)| *line as usize / 64 == page));
        assert!(spread.iter().map(|line| line % 64).collect::<std::collections::BTreeSet<_>>().len() > 60);

        let dense = lines(Layout::Dense, 5000);
        let changes = dense.windows(2).filter(|pair| pair[0] / 1024 != pair[1] / 1024).count();
        assert_eq!(changes, 19, "twenty ranges of 64 KiB, one after the other");
        let mut sorted = dense.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(node, line)| *line as usize / 4 == node));
        assert_eq!(lines(Layout::Dense, 5000), dense, "the same on every run");
        assert!(lines(Layout::OneToAPage, 0).is_empty());
    }
}
