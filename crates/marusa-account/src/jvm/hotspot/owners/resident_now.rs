//! Which pages are in memory at this moment, asked for a megabyte at a time: objects that are read one by one lie close
//! together, and a question costs as much as reading one of them.

use crate::base::{Range, holding};
use crate::os::memory::Bulk;
use std::cell::RefCell;
use std::collections::HashMap;

const ASKED_BYTES: u64 = 1 << 20;

/// What was resident when it was asked for, by the number of its megabyte.
#[derive(Default)]
pub struct ResidentNow(RefCell<HashMap<u64, Vec<Range>>>);

impl ResidentNow {
    /// Whether all of `pages` is in memory.
    pub fn covers(&self, memory: &dyn Bulk, pages: Range) -> bool {
        let around = pages.widened(ASKED_BYTES);
        if around.bytes() > ASKED_BYTES {
            return memory.resident(pages).is_some_and(|resident| covers(&resident, pages));
        }
        let mut asked = self.0.borrow_mut();
        let ask = || memory.resident(around).unwrap_or_default();
        covers(asked.entry(around.start.0 / ASKED_BYTES).or_insert_with(ask), pages)
    }
}

/// `resident` is sorted, and its ranges lie apart.
fn covers(resident: &[Range], pages: Range) -> bool {
    holding(resident, pages.start).is_some_and(|range| range.covers(pages))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;
    use crate::os::Fault;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Some3(AtomicUsize);

    impl Bulk for Some3 {
        fn read(&self, at: Addr, _: &mut [u8]) -> Result<(), Fault> {
            panic!("{at} is only asked for")
        }
        fn resident(&self, range: Range) -> Option<Vec<Range>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let all = [Range::of(0x10_0000, 0x10_3000), Range::of(0x1f_f000, 0x20_1000)];
            Some(all.map(|one| one.intersect(range)).into_iter().filter(|one| !one.is_empty()).collect())
        }
    }

    #[test]
    fn pages_are_in_memory_or_not_and_a_megabyte_is_asked_for_once() {
        let (memory, now) = (Some3(AtomicUsize::new(0)), ResidentNow::default());
        let covers = |start, end| now.covers(&memory, Range::of(start, end));
        assert!(covers(0x10_0000, 0x10_1000) && covers(0x10_1000, 0x10_3000));
        assert!(!covers(0x10_2000, 0x10_4000) && !covers(0x11_0000, 0x11_1000));
        assert_eq!(memory.0.load(Ordering::Relaxed), 1);
        assert!(covers(0x1f_f000, 0x20_1000), "over a border");
        assert!(!covers(0x1f_e000, 0x20_1000));
    }
}
