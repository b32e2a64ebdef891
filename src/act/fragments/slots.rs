//! Memory of the holder's own in slots of the size of a huge page, of which each base page is held or not. A fault of a base page
//! takes the smallest free pieces first and leaves the whole blocks alone, so a block is taken as one huge page, which is split.

use crate::base::{Addr, Bytes, Known};
use crate::os::machine::{base_page, huge_page};
use crate::os::process::gap;
use std::io;

pub struct Slots {
    start: Addr,
    slots: Vec<Slot>,
    /// Slots of which a page is held, and slots of which none is.
    used: Vec<u32>,
    empty: Vec<u32>,
    held_pages: u64,
}

/// By page, whether it is held.
#[derive(Clone)]
struct Slot {
    held: Vec<u64>,
    count: u64,
}

impl Slots {
    /// As many as memory of this size has.
    pub fn reserve(bytes: Bytes) -> Known<Slots> {
        let count = bytes / huge_page();
        let length = ((count + 1) * huge_page()) as usize;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place that the kernel chooses. It is never given back: it ends with the process.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(gap("memory to hold", &io::Error::last_os_error()));
        }
        let start = Addr((base as u64).next_multiple_of(huge_page()));
        let slot = Slot { held: vec![0; pages().div_ceil(64) as usize], count: 0 };
        let slots = Slots {
            start,
            slots: vec![slot; count as usize],
            used: Vec::new(),
            empty: (0..count as u32).rev().collect(),
            held_pages: 0,
        };
        advise(start, count * huge_page(), libc::MADV_NOHUGEPAGE);
        Ok(slots)
    }

    pub fn held_bytes(&self) -> Bytes {
        self.held_pages * base_page()
    }

    fn at(&self, slot: u32) -> Addr {
        self.start.plus(u64::from(slot) * huge_page())
    }

    /// Takes any free pages, the smallest pieces first. `false`: no slot is left.
    pub fn fill(&mut self) -> bool {
        let Some(slot) = self.empty.pop() else { return false };
        (0..pages()).for_each(|page| touch(self.at(slot).plus(page * base_page())));
        self.took(slot);
        true
    }

    /// Takes a block in one piece, or as many pages where there is none. `false`: no slot is left.
    pub fn take_whole(&mut self) -> bool {
        if let Some(slot) = self.empty.last() {
            advise(self.at(*slot), huge_page(), libc::MADV_HUGEPAGE);
        }
        self.fill()
    }

    /// Takes one whole block and splits it. `false`: the kernel gave none.
    pub fn take_block(&mut self) -> bool {
        let Some(slot) = self.empty.pop() else { return false };
        let at = self.at(slot);
        advise(at, huge_page(), libc::MADV_HUGEPAGE);
        touch(at);
        let is_huge = is_resident(at.plus(base_page())) && is_resident(at.plus(huge_page() - base_page()));
        if is_huge {
            // Since Linux 6.12 a split gives pages of zeros back, and the block would be whole again.
            (0..pages()).for_each(|page| touch(at.plus(page * base_page())));
        }
        // MADV_FREE of a part splits at once (mm/huge_memory.c, madvise_free_huge_pmd); MADV_DONTNEED would only put the page on a
        // list.
        match is_huge {
            true => advise(at, base_page(), libc::MADV_FREE),
            false => advise(at, huge_page(), libc::MADV_DONTNEED),
        }
        // khugepaged must not undo it.
        advise(at, huge_page(), libc::MADV_NOHUGEPAGE);
        match is_huge {
            true => self.took(slot),
            false => self.empty.push(slot),
        }
        is_huge
    }

    fn took(&mut self, slot: u32) {
        let one = &mut self.slots[slot as usize];
        one.held.fill(u64::MAX);
        one.count = pages();
        self.held_pages += pages();
        self.used.push(slot);
    }

    /// Gives pages back that chance chooses, until no more than this is held.
    pub fn give_back(&mut self, held_bytes_max: Bytes) {
        while self.held_bytes() > held_bytes_max && !self.used.is_empty() {
            let place = fastrand::usize(..self.used.len());
            let slot = self.used[place];
            // What is nearly empty is emptied, so that there are slots again.
            let tries = if self.slots[slot as usize].count < pages() / 8 { pages() } else { 1 };
            let first = fastrand::u64(..pages());
            (first..first + tries).for_each(|page| self.drop_page(slot, page % pages()));
            if self.slots[slot as usize].count == 0 {
                self.used.swap_remove(place);
                self.empty.push(slot);
            }
        }
    }

    fn drop_page(&mut self, slot: u32, page: u64) {
        let at = self.at(slot).plus(page * base_page());
        let one = &mut self.slots[slot as usize];
        let (word, bit) = (&mut one.held[page as usize / 64], 1 << (page % 64));
        if *word & bit != 0 {
            *word &= !bit;
            one.count -= 1;
            self.held_pages -= 1;
            advise(at, base_page(), libc::MADV_DONTNEED);
        }
    }
}

fn pages() -> u64 {
    huge_page() / base_page()
}

/// One byte of a page.
fn touch(at: Addr) {
    // SAFETY: all callers give an address of the mapping, which can be written and to which no reference exists.
    unsafe { (at.0 as *mut u8).write_volatile(1) };
}

fn advise(at: Addr, bytes: Bytes, advice: libc::c_int) {
    // SAFETY: the range lies within the mapping, the bytes of which nobody reads.
    unsafe { libc::madvise(at.0 as *mut libc::c_void, bytes as usize, advice) };
}

fn is_resident(at: Addr) -> bool {
    let mut one = 0_u8;
    // SAFETY: one page of the mapping, and one byte for it.
    let done = unsafe { libc::mincore(at.0 as *mut libc::c_void, base_page() as usize, &mut one) };
    done == 0 && one & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back_page_by_page() {
        let mut slots = Slots::reserve(8 * huge_page()).expect("address space");
        assert!(slots.fill() && slots.fill());
        assert_eq!(slots.held_bytes(), 2 * huge_page());
        assert!(is_resident(slots.at(0)) && !is_resident(slots.at(2)));
        slots.give_back(huge_page());
        assert_eq!(slots.held_bytes(), huge_page());
        let held: u64 = slots.slots.iter().map(|slot| slot.count).sum();
        assert_eq!(held * base_page(), huge_page());
        slots.give_back(0);
        assert_eq!((slots.held_bytes(), slots.empty.len()), (0, 8));
        assert!(!is_resident(slots.at(0)) && !is_resident(slots.at(1)));
    }
}
