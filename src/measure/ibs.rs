//! AMD's instruction-based sampling: the one place where an AMD processor tells how long a reload of the TLB took. Each sample
//! is one operation with the latency of its own reload (bare metal only; hypervisors do not pass it on).
//!
//! Layout: arch/x86/include/asm/amd-ibs.h, `union ibs_op_data3`; place of the registers in a raw sample:
//! tools/perf/util/amd-sample-raw.c, `amd_dump_ibs_op` (Linux 6.12).

use super::events::{SIZE_1G, SIZE_2M};

/// Capabilities, then the registers IBSOPCTL, OPRIP, OPDATA, OPDATA2, OPDATA3.
const DATA3_AT: usize = 4 + 4 * 8;

/// What a sampled operation says of translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub is_load: bool,
    pub is_store: bool,
    pub missed_l1: bool,
    pub missed_l2: bool,
    /// Of the entry that was hit, where it was a large one; `None`: 4 KiB, or missed.
    pub hit_page_bytes: Option<u64>,
    /// From the miss in the first level to the entry; 0 without a miss.
    pub refill_cycles: u16,
}

impl Operation {
    /// The register IBS_OP_DATA3.
    pub fn of_data3(word: u64) -> Operation {
        let bit = |number: u32| word >> number & 1 == 1;
        let missed_l1 = bit(2);
        Operation {
            is_load: bit(0),
            is_store: bit(1),
            missed_l1,
            missed_l2: bit(3),
            hit_page_bytes: match () {
                () if bit(5) || bit(19) => Some(SIZE_1G),
                () if bit(4) || bit(6) => Some(SIZE_2M),
                () => None,
            },
            // Meaningful only with a miss; else it holds the value of an operation before.
            refill_cycles: if missed_l1 { (word >> 48) as u16 } else { 0 },
        }
    }

    /// The body of a raw sample (`PERF_SAMPLE_RAW`, without its length). `None`: too short for an operation's registers.
    pub fn of_raw(bytes: &[u8]) -> Option<Operation> {
        let word = bytes.get(DATA3_AT..DATA3_AT + 8)?;
        Some(Operation::of_data3(u64::from_le_bytes(word.try_into().ok()?)))
    }
}

/// Latency of reloads by samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    pub samples: u64,
    pub walks: u64,
    /// Of reloads that missed both levels: walks.
    pub walk_cycles: u64,
    /// Of all reloads.
    pub refill_cycles: u64,
}

impl Latency {
    pub fn add(&mut self, operation: Operation) {
        self.samples = self.samples.saturating_add(1);
        self.refill_cycles = self.refill_cycles.saturating_add(operation.refill_cycles.into());
        if operation.missed_l1 && operation.missed_l2 {
            self.walks = self.walks.saturating_add(1);
            self.walk_cycles = self.walk_cycles.saturating_add(operation.refill_cycles.into());
        }
    }

    /// How long a walk took on average. `None`: no walk was sampled.
    pub fn cycles_each(&self) -> Option<f64> {
        (self.walks > 0).then(|| self.walk_cycles as f64 / self.walks as f64)
    }

    /// The share of `cycles` that reloads took when one operation in `period` was sampled: an upper bound of the stall,
    /// for reloads overlap one another and other work. `None`: nothing was sampled.
    pub fn share(&self, period: u64, cycles: f64) -> Option<f64> {
        let lost = self.refill_cycles as f64 * period as f64;
        (self.samples > 0 && cycles > 0.0).then(|| (lost / cycles).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load that missed both levels, 138 cycles.
    const WALK: u64 = 138 << 48 | 0b1101;
    /// A store that hit a 2 MiB entry of the second level, 9 cycles.
    const SECOND_LEVEL: u64 = 9 << 48 | 1 << 6 | 0b0110;
    /// A load that hit; the latency is a leftover.
    const HIT: u64 = 500 << 48 | 1 << 4 | 1;

    #[test]
    fn the_bits_of_the_register() {
        let walk = Operation::of_data3(WALK);
        assert!(walk.is_load && !walk.is_store && walk.missed_l1 && walk.missed_l2);
        assert_eq!((walk.refill_cycles, walk.hit_page_bytes), (138, None));
        let second = Operation::of_data3(SECOND_LEVEL);
        assert!(second.is_store && second.missed_l1 && !second.missed_l2);
        assert_eq!((second.refill_cycles, second.hit_page_bytes), (9, Some(SIZE_2M)));
        let hit = Operation::of_data3(HIT);
        assert_eq!((hit.refill_cycles, hit.hit_page_bytes), (0, Some(SIZE_2M)));
        assert_eq!(Operation::of_data3(1 << 19 | 0b0101).hit_page_bytes, Some(SIZE_1G));
    }

    #[test]
    fn a_raw_sample_and_one_that_is_cut() {
        let mut bytes = vec![0; 4 + 7 * 8];
        bytes[36..44].copy_from_slice(&WALK.to_le_bytes());
        assert_eq!(Operation::of_raw(&bytes), Some(Operation::of_data3(WALK)));
        assert_eq!(Operation::of_raw(&bytes[..43]), None);
    }

    #[test]
    fn latency_becomes_a_share() {
        let mut latency = Latency::default();
        assert_eq!((latency.cycles_each(), latency.share(1000, 1e6)), (None, None));
        [WALK, SECOND_LEVEL, HIT].into_iter().for_each(|word| latency.add(Operation::of_data3(word)));
        assert_eq!(latency, Latency { samples: 3, walks: 1, walk_cycles: 138, refill_cycles: 147 });
        assert_eq!(latency.cycles_each(), Some(138.0));
        assert_eq!(latency.share(1000, 1_470_000.0), Some(0.1));
        assert_eq!(latency.share(u64::MAX, 1.0), Some(1.0), "never more than all of it");
    }
}
