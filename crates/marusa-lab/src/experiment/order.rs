//! In which order the arms run. A block has each arm once, in an order that is drawn for it: so what drifts over a block or over
//! the day (heat, neighbours, a page cache that fills) meets all arms alike, and what comes and goes in step with them does
//! so by chance only. The order of a block hangs on the seed and the number of the block alone, so that a comparison that was
//! interrupted goes on in the order that it would have had.

/// The arms of a block, by number.
pub fn block(seed: u64, block: usize, arms: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..arms).collect();
    // Any mixing will do: blocks must not have related streams.
    let mixed = seed ^ (block as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = fastrand::Rng::with_seed(mixed);
    // The first numbers of streams of near seeds are near.
    for _ in 0..8 {
        random.u64(..);
    }
    random.shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_arm_once_in_each_block_and_as_often_first_as_others() {
        let mut first = [0; 3];
        for number in 0..3000 {
            let order = block(7, number, 3);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            first[order[0]] += 1;
        }
        assert!(first.iter().all(|count| (900..1100).contains(count)), "{first:?}");
        assert_eq!(block(7, 41, 3), block(7, 41, 3), "the same again");
        assert!((0..50).any(|number| block(7, number, 3) != block(8, number, 3)));
    }
}
