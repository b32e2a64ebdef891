//! Links of free chunks, kept while a heap is walked: the walk has them at hand, and a list that leads to and fro would
//! cost one read for each chunk later. As many are kept as fit a share of the heap.

use crate::base::{Addr, Bytes};
use std::sync::atomic::{AtomicI64, Ordering};

const UNIT: i64 = 16;
const NULL: i32 = 0;
/// Links are asked for in blocks of this many.
const GRANT: i64 = 1024;
/// One part in so many of the heap, but for small heaps at least this much.
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
    /// Where the last answer was found.
    near: usize,
    granted: i64,
    is_full: bool,
}

impl KnownLinks {
    pub fn of(start: Addr) -> KnownLinks {
        KnownLinks { start, ..KnownLinks::default() }
    }

    pub fn len(&self) -> usize {
        self.links.len()
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Forgets all but the first `links`.
    pub fn truncate(&mut self, links: usize) {
        self.links.truncate(links);
    }

    /// Keeps that `next` follows the chunk at `at`, if that can be said in few bytes and there is room.
    #[inline]
    pub fn put(&mut self, at: Addr, next: Addr, budget: &Budget) {
        let place = at.0.wrapping_sub(self.start.0) / UNIT as u64;
        let step = (next.0 as i64).wrapping_sub(at.0 as i64);
        let is_near = next.is_null() || (step != 0 && step % UNIT == 0);
        let step = if next.is_null() { i64::from(NULL) } else { step / UNIT };
        let (Ok(at), Ok(step), true) = (u32::try_from(place), i32::try_from(step), is_near) else { return };
        if self.links.len() as i64 >= self.granted {
            if self.is_full || !budget.grant() {
                self.is_full = true;
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

    /// What follows the chunk at `at`, if it was kept.
    pub fn next(&mut self, at: Addr) -> Option<Addr> {
        let place = u32::try_from(at.0.checked_sub(self.start.0)? / UNIT as u64).ok()?;
        let index = self.search(place, self.near)?;
        self.near = index;
        let step = self.links[index].step;
        if step == NULL {
            Some(Addr::NULL)
        } else {
            Some(Addr(at.0.wrapping_add_signed(i64::from(step) * UNIT)))
        }
    }

    /// By steps that double, from `near`: lists mostly lead to a neighbour.
    fn search(&self, place: u32, near: usize) -> Option<usize> {
        let links = &self.links;
        let near = near.min(links.len().checked_sub(1)?);
        let (mut low, mut high) = (near, near + 1);
        let mut step = 1;
        if links[near].at <= place {
            while high < links.len() && links[high].at <= place {
                low = high;
                high = (high + step).min(links.len());
                step *= 2;
            }
        } else {
            high = near;
            loop {
                low = high.saturating_sub(step);
                if low == 0 || links[low].at <= place {
                    break;
                }
                high = low;
                step *= 2;
            }
        }
        let found = links[low..high].binary_search_by_key(&place, |link| link.at).ok()?;
        Some(low + found)
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
        for near in [0, 1, 500, 998, 999, 5000] {
            for index in [0_u64, 1, 7, 499, 500, 501, 999] {
                let next = if index == 7 { Addr::NULL } else { Addr(0x1000 + (999 - index) * 48) };
                links.near = near;
                assert_eq!(links.next(Addr(0x1000 + index * 48)), Some(next), "{near} {index}");
            }
            assert_eq!(links.next(Addr(0x1010)), None);
        }
        assert_eq!(KnownLinks::default().next(Addr(0x1000)), None);
    }

    #[test]
    fn what_is_far_or_beyond_the_budget_is_not_kept() {
        let budget = Budget(AtomicI64::new(GRANT));
        let mut links = KnownLinks::of(Addr(0));
        links.put(Addr(16), Addr(1 << 50), &budget);
        links.put(Addr(32), Addr(49), &budget);
        assert!(links.links.is_empty());
        for index in 0..2 * GRANT as u64 {
            links.put(Addr(index * 32), Addr(index * 32 + 64), &budget);
        }
        assert_eq!((links.links.len(), links.is_full), (GRANT as usize, true));
        links.give_back(&budget);
        assert_eq!(budget.0.load(Ordering::Relaxed), GRANT);
    }
}
