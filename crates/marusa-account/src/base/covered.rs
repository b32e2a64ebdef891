//! Which bytes of a file or an address space were met already: memory that is mapped at several addresses counts once.

use super::{Addr, Bytes, Range};
use std::collections::BTreeMap;

/// A set of disjoint half-open ranges: start to end.
#[derive(Clone, Debug, Default)]
pub struct Covered(BTreeMap<u64, u64>);

impl Covered {
    pub fn of(ranges: impl IntoIterator<Item = Range>) -> Covered {
        let mut covered = Covered::default();
        ranges.into_iter().for_each(|range| _ = covered.add(range));
        covered
    }

    /// Adds a range and returns how much of it was there already.
    pub fn add(&mut self, range: Range) -> Bytes {
        let (wanted_start, wanted_end) = (range.start.0, range.end.0);
        let (mut start, mut end) = (wanted_start, wanted_end);
        let mut there = 0;
        while let Some((&old_start, &old_end)) = self.0.range(..=end).next_back() {
            if old_end < start {
                break;
            }
            there += old_end.min(wanted_end).saturating_sub(old_start.max(wanted_start));
            self.0.remove(&old_start);
            start = start.min(old_start);
            end = end.max(old_end);
        }
        if start < end {
            self.0.insert(start, end);
        }
        there
    }

    /// The parts of a range that are not there, in their order.
    pub fn missing(&self, range: Range) -> Vec<Range> {
        let mut parts = Vec::new();
        let mut at = range.start;
        let before = self.0.range(..=range.start.0).next_back();
        let after = self.0.range(range.start.0..range.end.0);
        for (start, end) in before.into_iter().chain(after) {
            let hole = Range::new(at, Addr((*start).min(range.end.0)));
            if !hole.is_empty() {
                parts.push(hole);
            }
            at = at.max(Addr(*end));
        }
        let rest = Range::new(at, range.end);
        if !rest.is_empty() {
            parts.push(rest);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_counts_once_however_it_is_cut() {
        let mut set = Covered::default();
        let mut add = |start, end| set.add(Range::of(start, end));
        assert_eq!(add(0, 100), 0);
        assert_eq!(add(50, 150), 50);
        assert_eq!(add(300, 400), 0);
        assert_eq!(add(100, 350), 100);
        assert_eq!(add(0, 400), 400);
        assert_eq!(add(500, 500), 0);
        assert_eq!(set.0.len(), 1);
    }

    #[test]
    fn what_is_missing_lies_between_what_is_there() {
        let mut set = Covered::default();
        assert_eq!(set.missing(Range::of(5, 9)), [Range::of(5, 9)]);
        for (start, end) in [(10, 20), (30, 40)] {
            set.add(Range::of(start, end));
        }
        assert_eq!(set.missing(Range::of(0, 50)), [Range::of(0, 10), Range::of(20, 30), Range::of(40, 50)]);
        assert_eq!(set.missing(Range::of(15, 35)), [Range::of(20, 30)]);
        assert_eq!(set.missing(Range::of(10, 20)), []);
        assert_eq!(set.missing(Range::of(20, 30)), [Range::of(20, 30)]);
    }
}
