//! What the collector's last marking found alive: a bitmap with one bit or two for each place at which an object may begin.

use crate::base::Addr;

/// The bits of one region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Where the bitmap lies, and how many bits it has.
    pub map: Addr,
    pub bits: u64,
    /// The address that the first bit stands for, the binary logarithm of the bytes from one place to the next, and the bits of
    /// each: ZGC, and Shenandoah since JDK 16, have a second one for what only finalizers or weak references lead to.
    pub first: u64,
    pub shift: u32,
    pub bits_each: u32,
    /// Bits count only in parts of the bitmap whose bit is set here (ZGC's segments); all are of `1 << segment_shift` bits.
    pub segments: u64,
    pub segment_shift: u32,
    /// From here on, all was allocated since the marking began, and counts as alive.
    pub limit: u64,
}

impl Marks {
    /// Everything is alive.
    pub const ALL: Marks = Marks {
        map: Addr::NULL,
        bits: 0,
        first: 0,
        shift: 3,
        bits_each: 1,
        segments: u64::MAX,
        segment_shift: u64::BITS - 1,
        limit: 0,
    };

    fn bit(&self, at: u64) -> u64 {
        (at.saturating_sub(self.first) >> self.shift) * u64::from(self.bits_each)
    }

    /// Where the bits of the addresses from `start` to `end` lie: the first byte, and how many.
    pub fn bytes(&self, start: u64, end: u64) -> (u64, usize) {
        let end = end.min(self.limit);
        if start >= end {
            return (0, 0);
        }
        let first = self.bit(start) / 8;
        let behind = (self.bit(end) + u64::from(self.bits_each)).min(self.bits).div_ceil(8);
        (first, behind.saturating_sub(first) as usize)
    }

    /// Whether the object at `at` is alive by `bytes`, the first of which is number `first` of the bitmap.
    #[inline(always)]
    pub fn is_live(&self, at: u64, first: u64, bytes: &[u8]) -> bool {
        if at >= self.limit {
            return true;
        }
        let bit = self.bit(at);
        if self.segments >> (bit >> self.segment_shift & 63) & 1 == 0 {
            return false;
        }
        let is_set = |bit: u64| {
            let byte = (bit / 8).checked_sub(first).and_then(|place| bytes.get(place as usize));
            byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
        };
        is_set(bit) || self.bits_each == 2 && is_set(bit + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_or_two_for_each_place() {
        let one = Marks { bits: 64, first: 0x1000, limit: 0x1100, ..Marks::ALL };
        assert_eq!(one.bytes(0x1000, 0x1200), (0, 5));
        assert_eq!(one.bytes(0x1100, 0x1200), (0, 0), "all is alive");
        let bytes = [0b101, 0, 0, 0, 0];
        let live = |at: u64| one.is_live(at, 0, &bytes);
        assert!(live(0x1000) && !live(0x1008) && live(0x1010) && !live(0x1018) && live(0x1100));
        let two = Marks { bits_each: 2, bits: 128, ..one };
        assert!(two.is_live(0x1008, 0, &[0b1000]), "weakly");
        assert!(!two.is_live(0x1008, 0, &[0b0001]));
        let segments = Marks { segment_shift: 1, segments: 0b01, ..two };
        assert!(segments.is_live(0x1000, 0, &[0b0101]) && !segments.is_live(0x1008, 0, &[0b0101]));
        assert!(Marks::ALL.is_live(0, 0, &[]));
    }
}
