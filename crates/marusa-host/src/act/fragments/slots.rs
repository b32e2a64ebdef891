//! Memory of the holder's own in slots of the size of a huge page, of which each base page is held or not. A fault of a base page
//! takes the smallest free pieces first and leaves the whole blocks alone, so a block is taken as one huge page, which is split.

use super::pins::Pins;
use crate::base::{Addr, Bytes, Known};
use crate::os::machine::{base_page, huge_page};
use crate::os::process::gap;
use std::io;

pub struct Slots {
    start: Addr,
    slots: Vec<Slot>,
    /// Slots of which a page is held that can be given back, and slots of which none is held.
    used: Vec<u32>,
    empty: Vec<u32>,
    held_pages: u64,
    pins: Pins,
}

/// By page, whether it is held.
#[derive(Clone)]
struct Slot {
    held: Vec<u64>,
    count: u64,
    /// Its first page is held to the end, where the kernel has put it.
    is_pinned: bool,
}

impl Slots {
    /// As many as memory of this size has.
    pub fn reserve(bytes: Bytes) -> Known<Slots> {
        let count = bytes / huge_page();
        let length = (count + 1) * huge_page();
        let base = map(Addr::NULL, length, 0).map_err(|error| gap("memory to hold", &error))?;
        let start = base.up_to(huge_page());
        let slot = Slot { held: vec![0; pages().div_ceil(64) as usize], count: 0, is_pinned: false };
        let slots = Slots {
            start,
            slots: vec![slot; count as usize],
            used: Vec::new(),
            empty: (0..count as u32).rev().collect(),
            held_pages: 0,
            pins: Pins::default(),
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

    /// Takes this many whole blocks, and then splits them: others who want blocks take theirs as fast. Fewer where the kernel has
    /// no more; the number of blocks.
    pub fn take_blocks(&mut self, count: u64) -> u64 {
        let taken: Vec<u32> = (0..count).map_while(|_| self.take_block()).collect();
        for slot in &taken {
            let at = self.at(*slot);
            // Since Linux 6.12 a split gives pages of zeros back, and the block would be whole again.
            (0..pages()).for_each(|page| touch(at.plus(page * base_page())));
            // MADV_FREE of a part splits at once (mm/huge_memory.c, madvise_free_huge_pmd); MADV_DONTNEED would only put the page
            // on a list.
            advise(at, base_page(), libc::MADV_FREE);
            // khugepaged must not undo it.
            advise(at, huge_page(), libc::MADV_NOHUGEPAGE);
            self.took(*slot);
        }
        taken.len() as u64
    }

    /// `None`: no slot is left, or the kernel gave no whole block.
    fn take_block(&mut self) -> Option<u32> {
        let slot = self.empty.pop()?;
        let at = self.at(slot);
        advise(at, huge_page(), libc::MADV_HUGEPAGE);
        touch(at);
        if is_resident(at.plus(base_page())) && is_resident(at.plus(huge_page() - base_page())) {
            return Some(slot);
        }
        self.emptied(slot);
        None
    }

    /// Where there is a page table, however empty, the kernel gives no huge page: it goes too (`free_pgtables`, mm/memory.c).
    fn emptied(&mut self, slot: u32) {
        if map(self.at(slot), huge_page(), libc::MAP_FIXED).is_err() {
            advise(self.at(slot), huge_page(), libc::MADV_DONTNEED);
        }
        advise(self.at(slot), huge_page(), libc::MADV_NOHUGEPAGE);
        self.empty.push(slot);
    }

    fn took(&mut self, slot: u32) {
        let one = &mut self.slots[slot as usize];
        one.held.fill(u64::MAX);
        one.count = pages();
        self.held_pages += pages();
        self.used.push(slot);
    }

    /// From here on the kernel cannot make a whole block of one of which a page is held.
    pub fn pin(&mut self) -> Known<()> {
        for slot in self.used.clone() {
            let one = &self.slots[slot as usize];
            if !one.is_pinned && one.held[0] & 1 != 0 {
                let failed =
                    |error: rustix::io::Errno| gap("memory that the kernel cannot move", &error.into());
                self.pins.add(self.at(slot)).map_err(failed)?;
                self.slots[slot as usize].is_pinned = true;
            }
        }
        Ok(())
    }

    /// Gives pages back that chance chooses, until no more than this is held.
    pub fn give_back(&mut self, held_bytes_max: Bytes) {
        let held_bytes_max = held_bytes_max.max(self.pins.count * base_page());
        while self.held_bytes() > held_bytes_max && !self.used.is_empty() {
            let place = fastrand::usize(..self.used.len());
            let slot = self.used[place];
            // What is nearly empty is emptied, so that there are slots again.
            let tries = if self.slots[slot as usize].count < pages() / 8 { pages() } else { 1 };
            let first = fastrand::u64(..pages());
            (first..first + tries).for_each(|page| self.drop_page(slot, page % pages()));
            let one = &self.slots[slot as usize];
            if one.count <= u64::from(one.is_pinned) {
                self.used.swap_remove(place);
                if !one.is_pinned {
                    self.emptied(slot);
                }
            }
        }
    }

    fn drop_page(&mut self, slot: u32, page: u64) {
        let at = self.at(slot).plus(page * base_page());
        let one = &mut self.slots[slot as usize];
        let (word, bit) = (&mut one.held[page as usize / 64], 1 << (page % 64));
        if *word & bit != 0 && !(page == 0 && one.is_pinned) {
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

/// Memory of zeros, at a place that the kernel chooses or, fixed, at this one.
fn map(at: Addr, bytes: Bytes, fixed: libc::c_int) -> io::Result<Addr> {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at a place that the kernel chooses, or in place of a part of one, to which no reference exists. It is
    // never given back: it ends with the process.
    let base = unsafe { libc::mmap(at.0 as *mut libc::c_void, bytes as usize, rights, kind, -1, 0) };
    if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Addr(base as u64)) }
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

    #[test]
    fn a_slot_that_was_used_can_hold_a_block_again() {
        let mut slots = Slots::reserve(huge_page()).expect("address space");
        let mut is_taken = || {
            slots.take_blocks(1) == 1 && {
                slots.give_back(0);
                true
            }
        };
        if !(0..9).any(|_| is_taken()) {
            return println!("skipped: the kernel gives no huge pages now");
        }
        assert!((0..9).any(|_| is_taken() && is_taken()), "its page table is in the way");
    }

    #[test]
    fn the_first_page_of_a_pinned_slot_stays() {
        let mut slots = Slots::reserve(2 * huge_page()).expect("address space");
        assert!(slots.fill());
        slots.pin().expect("a pipe");
        slots.pin().expect("nothing to do");
        slots.give_back(base_page());
        assert_eq!(slots.held_bytes(), base_page());
        assert!(is_resident(slots.at(0)) && !is_resident(slots.at(0).plus(base_page())));
    }
}
