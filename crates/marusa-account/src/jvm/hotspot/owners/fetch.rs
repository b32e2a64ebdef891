//! The bytes of blocks in pieces that neighbours share. What is not in memory, or went away in the meantime, is zeros. A busy
//! heap has
//! pages that were not there when the others were looked at, so what is resident is asked anew, for many pieces at once.

use crate::base::{Addr, PAGE, Range, overlapping};
use crate::os::memory::read_or_zeros;

/// Bytes that are read at once, and the widest hole between two blocks that is read with them.
pub const PIECE_BYTES: u64 = 256 << 10;
pub const HOLE_BYTES_MAX: u64 = 4096;
/// How far ahead it is asked what is resident: the slot of one heap of an arena.
const ASKED_BYTES: u64 = 64 << 20;

pub type Read<'a> = &'a dyn Fn(Addr, &mut [u8]) -> bool;
pub type Resident<'a> = &'a dyn Fn(Range) -> Vec<Range>;

pub struct Fetch<'a> {
    read: Read<'a>,
    resident: Resident<'a>,
    /// What is resident in `asked`.
    known: Vec<Range>,
    asked: Range,
}

impl<'a> Fetch<'a> {
    pub fn new(read: Read<'a>, resident: Resident<'a>) -> Fetch<'a> {
        Fetch { read, resident, known: Vec::new(), asked: Range::default() }
    }

    /// The bytes of `range`, at the start of `bytes`.
    pub fn fetch(&mut self, range: Range, bytes: &mut Vec<u8>) {
        if bytes.len() < range.bytes() as usize {
            bytes.resize(range.bytes() as usize, 0);
        }
        let pages = range.widened(PAGE);
        if !self.asked.covers(pages) {
            self.asked = Range::new(pages.start, pages.end.max(pages.start.plus(ASKED_BYTES)));
            self.known = (self.resident)(self.asked);
        }
        let place = |at: Addr| (at.0 - range.start.0) as usize;
        let mut done = range.start;
        for resident in overlapping(&self.known, range, |piece| *piece) {
            let piece = resident.intersect(range);
            bytes[place(done)..place(piece.start)].fill(0);
            read_or_zeros(piece.start, &mut bytes[place(piece.start)..place(piece.end)], self.read);
            done = piece.end;
        }
        bytes[place(done)..place(range.end)].fill(0);
    }
}
