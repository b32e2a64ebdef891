//! In which order the arms take turns: blocks of four periods, ABBA or BAAB by the toss of a coin. Within such a block a drift
//! that is a straight line (a program that warms up, a neighbour that takes more and more) adds the same to both arms, and the
//! coin keeps anything that comes and goes in step with the blocks from favouring one.

/// The two arms: memory as it is without us, and on 2 MiB pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    Small,
    Huge,
}

/// Periods of one block.
pub const PERIODS: usize = 4;

/// The order within the next block.
pub fn block(coin: bool) -> [Arm; PERIODS] {
    let (first, second) = if coin { (Arm::Small, Arm::Huge) } else { (Arm::Huge, Arm::Small) };
    [first, second, second, first]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_drift_adds_the_same_to_both_arms() {
        for coin in [true, false] {
            let of = |wanted: Arm| -> usize {
                block(coin).iter().enumerate().filter(|(_, arm)| **arm == wanted).map(|(at, _)| at).sum()
            };
            assert_eq!(of(Arm::Small), of(Arm::Huge));
        }
        assert_ne!(block(true), block(false));
    }
}
