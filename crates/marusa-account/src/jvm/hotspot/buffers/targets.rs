//! The objects that references are looked for to. Every word of the heap is asked about, so most must be refused within a
//! nanosecond: by the span of all, then by a filter of bits, then by a table. The target chooses its addresses, so the hash has a
//! secret.

use super::oops::GENERATIONS;
use std::hash::{BuildHasher, RandomState};

const EMPTY: u64 = 0;
const FILTER_BITS_PER_KEY: usize = 16;

/// Keys are plain addresses; none is 0.
pub struct Targets {
    low: u64,
    span: u64,
    secret: u64,
    filter: Vec<u64>,
    table: Vec<(u64, u32)>,
}

impl Targets {
    /// Each key leads to its value; of equal ones, the first.
    pub fn new(keys: &[(u64, u32)]) -> Targets {
        let low = keys.iter().map(|key| key.0).min().unwrap_or(u64::MAX);
        let high = keys.iter().map(|key| key.0).max().unwrap_or(0);
        let secret = RandomState::new().hash_one(0_u64) | 1;
        let places = (keys.len() * 2).next_power_of_two().max(2);
        let filter = vec![0; (keys.len() * FILTER_BITS_PER_KEY).next_power_of_two().max(64) / 64];
        let mut targets =
            Targets { low, span: high.saturating_sub(low), secret, filter, table: vec![(EMPTY, 0); places] };
        for (key, value) in keys.iter().filter(|key| key.0 != EMPTY) {
            let (word, bit) = targets.bit(*key);
            targets.filter[word] |= bit;
            let mut place = targets.place(*key);
            while targets.table[place].0 != EMPTY && targets.table[place].0 != *key {
                place = (place + 1) & (places - 1);
            }
            if targets.table[place].0 == EMPTY {
                targets.table[place] = (*key, *value);
            }
        }
        targets
    }

    /// None for each generation.
    pub fn none() -> [Targets; GENERATIONS] {
        std::array::from_fn(|_| Targets::new(&[]))
    }

    pub fn is_empty(&self) -> bool {
        self.low > self.span.saturating_add(self.low) || self.low == u64::MAX
    }

    #[inline(always)]
    pub fn find(&self, key: u64) -> Option<u32> {
        if key.wrapping_sub(self.low) > self.span {
            return None;
        }
        let (word, bit) = self.bit(key);
        if self.filter[word] & bit == 0 { None } else { self.in_table(key) }
    }

    fn in_table(&self, key: u64) -> Option<u32> {
        let mut place = self.place(key);
        while self.table[place].0 != EMPTY {
            if self.table[place].0 == key {
                return Some(self.table[place].1);
            }
            place = (place + 1) & (self.table.len() - 1);
        }
        None
    }

    fn place(&self, key: u64) -> usize {
        (self.hash(key) >> 20) as usize & (self.table.len() - 1)
    }

    #[inline(always)]
    fn bit(&self, key: u64) -> (usize, u64) {
        let hash = self.hash(key);
        ((hash >> 26) as usize & (self.filter.len() - 1), 1 << (hash >> 20 & 63))
    }

    #[inline(always)]
    fn hash(&self, key: u64) -> u64 {
        // The high bits of a product depend on all bits of the key.
        let product = u128::from(key >> 3) * u128::from(self.secret);
        (product as u64) ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Targets;

    #[test]
    fn what_was_put_in_is_found_and_nothing_else() {
        let keys: Vec<(u64, u32)> = (1..20_000_u32).map(|n| (u64::from(n) * 24 + (1 << 40), n)).collect();
        let targets = Targets::new(&keys);
        assert!(keys.iter().all(|(key, value)| targets.find(*key) == Some(*value)));
        assert!(keys.iter().all(|(key, _)| targets.find(*key + 8).is_none()));
        assert_eq!((targets.find(0), targets.find(u64::MAX)), (None, None));
        let none = Targets::new(&[]);
        assert!(none.is_empty() && none.find(0).is_none() && !targets.is_empty());
    }
}
