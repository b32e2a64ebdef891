//! How small a difference a number of blocks can show nine times of ten, by Student's t with as many degrees of freedom as the
//! blocks leave. The noise of a block is itself an estimate of the blocks that were run, so this is one too; after few
//! blocks it is a rough one.

use crate::experiment::stats::sample::student;
use statrs::distribution::ContinuousCDF;

/// How often a difference that is there is to be shown.
pub const POWER: f64 = 0.9;

/// The smallest difference that a number of blocks shows, in percent. `noise`: standard deviation of the logarithms of one
/// block's ratio.
pub fn visible(noise: f64, blocks: usize, alpha: f64) -> Option<f64> {
    let t = student(blocks)?;
    let deviations = (t.inverse_cdf(1.0 - alpha / 2.0) + t.inverse_cdf(POWER)) / (blocks as f64).sqrt();
    Some((deviations * noise).exp_m1() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_blocks_show_less() {
        // (2.0 + 1.3) * 3 % / 5 for 25 blocks.
        let shown = visible(0.03, 25, 0.05).expect("some");
        assert!((1.9..2.2).contains(&shown), "{shown}");
        assert!(visible(0.03, 9, 0.05).is_some_and(|few| few > shown));
        assert_eq!(visible(0.03, 1, 0.05), None);
    }
}
