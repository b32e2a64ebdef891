//! How long each of many stalls took: kept in buckets that are 6 % wide, so that millions take a few hundred numbers, and shown
//! in powers of two. The longest is kept as it is.

use std::collections::BTreeMap;

/// Buckets in each power of two.
const PARTS: u64 = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: BTreeMap<u16, u64>,
    count: u64,
    worst_ns: u64,
}

/// One bar: stalls of at least `from_ns` and less than twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Bar {
    pub from_ns: u64,
    pub count: u64,
}

impl Histogram {
    pub fn add(&mut self, ns: u64) {
        let bucket = self.buckets.entry(bucket(ns)).or_default();
        *bucket = bucket.saturating_add(1);
        self.count = self.count.saturating_add(1);
        self.worst_ns = self.worst_ns.max(ns);
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (bucket, count) in &other.buckets {
            let sum = self.buckets.entry(*bucket).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// What 99 of 100 did not exceed, 6 % too high at most; of fewer than 100 it is the longest. `None`: there is none.
    pub fn p99_ns(&self) -> Option<u64> {
        let rank = self.count.checked_sub(self.count / 100)?;
        let mut seen = 0_u64;
        let bucket = self.buckets.iter().find(|(_, count)| {
            seen = seen.saturating_add(**count);
            seen >= rank
        });
        Some(end(*bucket?.0).min(self.worst_ns))
    }

    /// In powers of two, from the first that has any to the last: those without any in between as well.
    pub fn bars(&self) -> Vec<Bar> {
        let power = |bucket: u16| start(bucket).checked_ilog2().unwrap_or(0);
        let (Some((first, _)), Some((last, _))) =
            (self.buckets.first_key_value(), self.buckets.last_key_value())
        else {
            return Vec::new();
        };
        let of = |wanted: u32| {
            let counts = self.buckets.iter().filter(|(bucket, _)| power(**bucket) == wanted);
            let count = counts.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
            Bar { from_ns: 1 << wanted, count }
        };
        (power(*first)..=power(*last)).map(of).collect()
    }
}

/// Below `PARTS` each number has its own; above, the power of two and the next four bits say which.
fn bucket(ns: u64) -> u16 {
    if ns < PARTS {
        return ns as u16;
    }
    let power = ns.ilog2();
    let part = (ns >> (power - PARTS.ilog2())) & (PARTS - 1);
    (u64::from(power - PARTS.ilog2() + 1) * PARTS + part) as u16
}

/// The least that falls into it.
fn start(bucket: u16) -> u64 {
    let (power, part) = (u64::from(bucket) / PARTS, u64::from(bucket) % PARTS);
    match power {
        0 => part,
        _ => (PARTS + part).checked_shl(power as u32 - 1).unwrap_or(u64::MAX),
    }
}

/// The most that falls into it.
fn end(bucket: u16) -> u64 {
    match start(bucket.saturating_add(1)) {
        next if next > start(bucket) => next - 1,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_falls_into_a_bucket_that_is_6_percent_wide() {
        for ns in [0, 1, 15, 16, 17, 31, 32, 1000, 1_048_575, 1_048_576, 123_456_789, u64::MAX - 1, u64::MAX]
        {
            let bucket = bucket(ns);
            assert!(start(bucket) <= ns && ns <= end(bucket), "{ns} in {bucket}");
            assert!((end(bucket) - start(bucket)) as f64 <= ns as f64 / 16.0, "{ns} in {bucket}");
        }
    }

    #[test]
    fn the_99th_of_a_hundred_and_the_longest() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.p99_ns(), histogram.bars().len()), (None, 0));
        for ns in 1..=99 {
            histogram.add(ns * 1000);
        }
        assert_eq!(histogram.p99_ns(), Some(99_000), "of fewer than 100 the longest");
        histogram.add(50_000_000);
        let p99 = histogram.p99_ns().expect("there are some");
        assert!((99_000..=105_000).contains(&p99), "{p99}");
        assert_eq!((histogram.count(), histogram.worst_ns), (100, 50_000_000));
    }

    #[test]
    fn bars_are_powers_of_two_without_gaps_and_sums_stay() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        [1000, 1023, 1024, 9000].iter().for_each(|ns| one.add(*ns));
        other.add(1025);
        one.merge(&other);
        let bars: Vec<(u64, u64)> = one.bars().iter().map(|bar| (bar.from_ns, bar.count)).collect();
        assert_eq!(bars, [(512, 2), (1024, 2), (2048, 0), (4096, 0), (8192, 1)]);
        assert_eq!((one.count(), one.worst_ns), (5, 9000));
    }
}
