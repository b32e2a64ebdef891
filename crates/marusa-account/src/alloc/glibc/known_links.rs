//! Links of free chunks, kept while a heap is walked: the walk has them at hand, and a list that jumps back and forth would
//! cost one read for each chunk later. As many are kept as fit a share of the heap. A chunk in a bin that leads to the free
//! chunk before it, as chunks do that were freed in order, needs no room: while all others are kept, that is what a
//! missing link means.

use crate::base::{Addr, Bytes};
use std::sync::atomic::{AtomicI64, Ordering};

const UNIT: i64 = 16;
const NULL: i32 = 0;
/// Units of heap for which it is kept where their links begin.
const BLOCK_UNITS: u32 = 64;
/// Links are asked for in blocks of this many.
const GRANT: i64 = 1024;
/// Divisor of the heap's size; small heaps get at least the constant below.
const SHARE_OF_HEAP: Bytes = 64;
const BYTES_MIN: Bytes = 16 << 20;

/// How many links may still be kept, of all heaps together.
pub struct Budget(AtomicI64);

impl Budget {
    pub fn of(heap_bytes: Bytes) -> Budget {
        let links = (heap_bytes / SHARE_OF_HEAP).max(BYTES_MIN) / size_of::<Link>() as Bytes;
        Budget(AtomicI64::new(i64::try_from(links).unwrap_or(i64::MAX)))
    }

    fn grant(&self) -> bool {
        let is_granted = self.0.fetch_sub(GRANT, Ordering::Relaxed) >= GRANT;
        if !is_granted {
            self.0.fetch_add(GRANT, Ordering::Relaxed);
        }
        is_granted
    }

    fn give_back(&self, links: usize) {
        self.0.fetch_add(links as i64, Ordering::Relaxed);
    }
}

/// Where a chunk is, and how far from it the next one of its list is, in units of 16 bytes.
#[derive(Clone, Copy)]
struct Link {
    at: u32,
    step: i32,
}

/// The links of one heap, by rising address.
#[derive(Default)]
pub struct KnownLinks {
    start: Addr,
    links: Vec<Link>,
    /// Where the links of each block of `BLOCK_UNITS` begin, and the end; laid out when the first link is asked for.
    blocks: Vec<u32>,
    granted: i64,
    is_full: bool,
    /// Whether a link was not kept.
    has_gaps: bool,
}

impl KnownLinks {
    pub fn of(start: Addr) -> KnownLinks {
        KnownLinks { start, ..KnownLinks::default() }
    }

    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// Forgets all but the first `links`.
    pub fn truncate(&mut self, links: usize) {
        self.links.truncate(links);
        self.blocks.clear();
    }

    /// Takes over the links of `other`, all of which lie behind these, in the same heap.
    pub fn append(&mut self, other: KnownLinks) {
        self.links.extend(other.links);
        self.granted += other.granted;
        self.has_gaps |= other.has_gaps;
        self.blocks.clear();
    }

    /// Keeps that `next` follows the chunk at `at`, if that fits into few bytes and there is room.
    #[inline]
    pub fn put(&mut self, at: Addr, next: Addr, budget: &Budget) {
        let place = at.0.wrapping_sub(self.start.0) / UNIT as u64;
        let step = (next.0 as i64).wrapping_sub(at.0 as i64);
        let is_near = next.is_null() || (step != 0 && step % UNIT == 0);
        let step = if next.is_null() { i64::from(NULL) } else { step / UNIT };
        let (Ok(at), Ok(step), true) = (u32::try_from(place), i32::try_from(step), is_near) else {
            self.has_gaps = true;
            return;
        };
        if self.links.len() as i64 >= self.granted {
            if self.is_full || !budget.grant() {
                (self.is_full, self.has_gaps) = (true, true);
                return;
            }
            self.granted += GRANT;
        }
        self.links.push(Link { at, step });
    }

    pub fn give_back(&mut self, budget: &Budget) {
        budget.give_back(self.granted as usize);
        *self = KnownLinks::default();
    }

    /// Whether a chunk in a bin whose link was not kept leads to the free chunk before it.
    pub fn are_complete(&self) -> bool {
        !self.has_gaps
    }

    /// What follows the chunk at `at`, if it was kept.
    pub fn next(&mut self, at: Addr) -> Option<Addr> {
        let place = u32::try_from(at.0.checked_sub(self.start.0)? / UNIT as u64).ok()?;
        let index = self.search(place)?;
        let step = self.links[index].step;
        if step == NULL {
            Some(Addr::NULL)
        } else {
            Some(Addr(at.0.wrapping_add_signed(i64::from(step) * UNIT)))
        }
    }

    /// By the block that the link lies in: lists lead anywhere.
    fn search(&mut self, place: u32) -> Option<usize> {
        if self.blocks.is_empty() {
            self.lay_out();
        }
        let block = (place / BLOCK_UNITS) as usize;
        let (low, high) = (*self.blocks.get(block)? as usize, *self.blocks.get(block + 1)? as usize);
        let found = self.links.get(low..high)?.iter().position(|link| link.at == place)?;
        Some(low + found)
    }

    /// Notes where the links of each block begin.
    fn lay_out(&mut self) {
        let count = self.links.last().map_or(0, |last| last.at / BLOCK_UNITS + 1);
        self.blocks.reserve_exact(count as usize + 1);
        let mut place = 0;
        for block in 0..=count {
            while self.links.get(place).is_some_and(|link| link.at / BLOCK_UNITS < block) {
                place += 1;
            }
            self.blocks.push(place as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_found_from_wherever_the_last_one_was() {
        let budget = Budget::of(0);
        let mut links = KnownLinks::of(Addr(0x1000));
        for index in 0..1000_u64 {
            let next = if index == 7 { Addr::NULL } else { Addr(0x1000 + (999 - index) * 48) };
            links.put(Addr(0x1000 + index * 48), next, &budget);
        }
        for index in [500, 0_u64, 1, 7, 499, 500, 501, 999] {
            let next = if index == 7 { Addr::NULL } else { Addr(0x1000 + (999 - index) * 48) };
            assert_eq!(links.next(Addr(0x1000 + index * 48)), Some(next), "{index}");
        }
        for nowhere in [0xff0, 0x1010, 0x1000 + 1000 * 48, 0x7000_0000] {
            assert_eq!(links.next(Addr(nowhere)), None, "{nowhere:#x}");
        }
        assert_eq!(KnownLinks::default().next(Addr(0x1000)), None);
    }

    #[test]
    fn what_is_far_or_beyond_the_budget_is_not_kept() {
        let budget = Budget(AtomicI64::new(GRANT));
        let mut links = KnownLinks::of(Addr(0));
        links.put(Addr(16), Addr(1 << 50), &budget);
        links.put(Addr(32), Addr(49), &budget);
        assert!(links.links.is_empty() && !links.are_complete());
        for index in 0..2 * GRANT as u64 {
            links.put(Addr(index * 32), Addr(index * 32 + 64), &budget);
        }
        assert_eq!((links.links.len(), links.is_full), (GRANT as usize, true));
        links.give_back(&budget);
        assert_eq!(budget.0.load(Ordering::Relaxed), GRANT);
    }
}
