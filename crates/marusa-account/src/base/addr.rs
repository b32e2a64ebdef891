//! Addresses of the target and half-open ranges of them. The target's words are hostile, so arithmetic never wraps: it
//! saturates, and a range can only be made with its start at or below its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An address in the target's address space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema, Serialize, Deserialize)]
pub struct Addr(pub u64);

/// User addresses end at 2^47 on x86-64 and at 2^48 on aarch64; a core may be of either.
pub const USER_END: u64 = 1 << 48;

impl Addr {
    pub const NULL: Addr = Addr(0);

    pub fn is_null(self) -> bool {
        self.0 == 0
    }
    /// The address `bytes` higher; saturates at the end of the address space.
    pub fn plus(self, bytes: u64) -> Addr {
        Addr(self.0.saturating_add(bytes))
    }
    /// The address `bytes` lower; saturates at 0.
    pub fn minus(self, bytes: u64) -> Addr {
        Addr(self.0.saturating_sub(bytes))
    }
    /// How far this address lies above `base`, or `None` if below it.
    pub fn offset_from(self, base: Addr) -> Option<u64> {
        self.0.checked_sub(base.0)
    }
    /// Rounded down to a multiple of `unit`, which is a power of two.
    pub fn down_to(self, unit: u64) -> Addr {
        Addr(self.0 & !(unit - 1))
    }
    /// Rounded up to a multiple of `unit`, which is a power of two; saturates.
    pub fn up_to(self, unit: u64) -> Addr {
        self.plus(unit - 1).down_to(unit)
    }
    pub fn is_aligned(self, unit: u64) -> bool {
        self.0 & (unit - 1) == 0
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The addresses from `start` up to, and without, `end`; `start <= end` always.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Range {
    pub start: Addr,
    pub end: Addr,
}

impl Range {
    /// The range from `start` to `end`; empty at `start` when `end` lies below it.
    pub fn new(start: Addr, end: Addr) -> Range {
        Range { start, end: end.max(start) }
    }
    pub fn of(start: u64, end: u64) -> Range {
        Range::new(Addr(start), Addr(end))
    }
    pub fn sized(start: Addr, bytes: u64) -> Range {
        Range { start, end: start.plus(bytes) }
    }
    pub fn bytes(self) -> u64 {
        self.end.0 - self.start.0
    }
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
    pub fn has(self, at: Addr) -> bool {
        self.start <= at && at < self.end
    }
    /// Whether every address of `other` lies in this range.
    pub fn covers(self, other: Range) -> bool {
        self.start <= other.start && other.end <= self.end
    }
    pub fn overlaps(self, other: Range) -> bool {
        self.start < other.end && other.start < self.end
    }
    /// The addresses in both; empty when there are none.
    pub fn intersect(self, other: Range) -> Range {
        Range::new(self.start.max(other.start), self.end.min(other.end))
    }
    /// The smallest range that holds both.
    pub fn hull(self, other: Range) -> Range {
        Range { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
    /// Widened outwards to multiples of `unit`, a power of two.
    pub fn widened(self, unit: u64) -> Range {
        Range::new(self.start.down_to(unit), self.end.up_to(unit))
    }
}

/// Sorted, with overlapping and touching ranges joined.
pub fn joined(ranges: impl IntoIterator<Item = Range>) -> Vec<Range> {
    let mut ranges: Vec<Range> = ranges.into_iter().collect();
    ranges.sort();
    let mut out: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// The place of the one that holds `at`, of some that are sorted by range and disjoint.
#[inline]
pub fn place_of<T>(sorted: &[T], at: Addr, range_of: impl Fn(&T) -> Range) -> Option<usize> {
    let place = sorted.partition_point(|one| range_of(one).end <= at);
    sorted.get(place).is_some_and(|one| range_of(one).has(at)).then_some(place)
}

/// The range that holds `at`, of some that are sorted and disjoint.
#[inline]
pub fn holding(sorted: &[Range], at: Addr) -> Option<Range> {
    place_of(sorted, at, |range| *range).map(|place| sorted[place])
}

/// The ones that overlap `range`, of some that are sorted by range and disjoint.
#[inline]
pub fn overlapping<T>(
    sorted: &[T],
    range: Range,
    range_of: impl Fn(&T) -> Range,
) -> impl Iterator<Item = &T> {
    let first = sorted.partition_point(|one| range_of(one).end <= range.start);
    sorted[first..].iter().take_while(move |one| range_of(one).start < range.end)
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.start.0, self.end.0)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:012x}-{:012x}", self.start.0, self.end.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_never_turns_inside_out() {
        let range = Range::of(0x2000, 0x1000);
        assert_eq!(range.bytes(), 0);
        assert_eq!(Range::sized(Addr(u64::MAX - 1), 16).bytes(), 1);
        assert_eq!(Range::of(0, 0x1000).intersect(Range::of(0x2000, 0x3000)).bytes(), 0);
    }

    #[test]
    fn rounding_saturates_at_the_top() {
        assert_eq!(Addr(u64::MAX).up_to(4096), Addr(!4095));
        assert_eq!(Addr(4097).up_to(4096), Addr(8192));
        assert_eq!(Range::of(5000, 5001).widened(4096), Range::of(4096, 8192));
    }
}
