//! Reading many small things that lie near each other: blocks of the code cache, classes, metadata. One read of 64 KiB in
//! place of some hundred small ones; only resident pages are read, and only so many windows are kept. Nothing
//! is read beyond what was asked for where it would be kept: in a recording.

use crate::base::{Addr, PAGE, Range};
use crate::os::{Fault, Target};
use std::collections::HashMap;

const WINDOW_BYTES: u64 = 64 << 10;

pub struct Windows<'a> {
    target: &'a Target<'a>,
    slots: Vec<Slot>,
    index: HashMap<u64, usize>,
    slots_max: usize,
    victim: usize,
    last: usize,
}

struct Slot {
    start: u64,
    bytes: Box<[u8]>,
    /// A bit a page: whether its bytes are here.
    pages: u16,
}

impl<'a> Windows<'a> {
    pub fn new(target: &'a Target<'a>, slots_max: usize) -> Windows<'a> {
        let slots_max = slots_max.max(1);
        Windows { target, slots: Vec::new(), index: HashMap::new(), slots_max, victim: 0, last: 0 }
    }

    /// Fills `into` from `at`, whole or not at all.
    pub fn read(&mut self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let mut done = 0;
        while done < into.len() {
            let here = at.plus(done as u64);
            let to_page_end = (PAGE - (here.0 & (PAGE - 1))) as usize;
            let step = to_page_end.min(into.len() - done);
            let slot = self.slot(here.down_to(WINDOW_BYTES));
            let slot = &self.slots[slot];
            let skip = (here.0 & (WINDOW_BYTES - 1)) as usize;
            if slot.pages >> (skip as u64 / PAGE) & 1 == 1 {
                into[done..done + step].copy_from_slice(&slot.bytes[skip..skip + step]);
            } else {
                self.target.memory.read(here, &mut into[done..done + step])?;
            }
            done += step;
        }
        Ok(())
    }

    pub fn u64(&mut self, at: Addr) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
    pub fn addr(&mut self, at: Addr) -> Result<Addr, Fault> {
        self.u64(at).map(Addr)
    }

    fn slot(&mut self, start: Addr) -> usize {
        if self.slots.get(self.last).is_some_and(|slot| slot.start == start.0) {
            return self.last;
        }
        self.last = match self.index.get(&start.0) {
            Some(slot) => *slot,
            None => self.load(start),
        };
        self.last
    }

    fn load(&mut self, start: Addr) -> usize {
        let slot = if self.slots.len() < self.slots_max {
            let bytes = vec![0; WINDOW_BYTES as usize].into_boxed_slice();
            self.slots.push(Slot { start: start.0, bytes, pages: 0 });
            self.slots.len() - 1
        } else {
            self.victim = (self.victim + 1) % self.slots.len();
            self.index.remove(&self.slots[self.victim].start);
            self.victim
        };
        let this = &mut self.slots[slot];
        (this.start, this.pages) = (start.0, 0);
        self.index.insert(start.0, slot);
        if self.target.memory.keeps_what_is_read() {
            return slot;
        }
        for piece in self.target.resident(Range::sized(start, WINDOW_BYTES)) {
            let from = (piece.start.0 - start.0) as usize;
            let bytes = &mut this.bytes[from..from + piece.bytes() as usize];
            if self.target.memory.read(piece.start, bytes).is_ok() {
                for page in from as u64 / PAGE..(from as u64 + piece.bytes()) / PAGE {
                    this.pages |= 1 << page;
                }
            }
        }
        slot
    }
}
