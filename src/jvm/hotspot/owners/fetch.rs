//! The bytes of blocks in pieces that neighbours share. What is not in memory, or went away in the meantime, is zeros. A busy
//! heap has
//! pages that were not there when the others were looked at, so what is resident is asked anew, for many pieces at once.

use crate::base::{Addr, PAGE, Range};

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
        let first = self.known.partition_point(|piece| piece.end <= range.start);
        let place = |at: Addr| (at.0 - range.start.0) as usize;
        let mut done = range.start;
        for resident in self.known[first..].iter().take_while(|piece| piece.start < range.end) {
            let piece = resident.intersect(range);
            bytes[place(done)..place(piece.start)].fill(0);
            self.read_pages(piece, &mut bytes[place(piece.start)..place(piece.end)]);
            done = piece.end;
        }
        bytes[place(done)..place(range.end)].fill(0);
    }

    /// At once, and page by page where one is gone, or not recorded.
    fn read_pages(&self, piece: Range, into: &mut [u8]) {
        if (self.read)(piece.start, into) {
            return;
        }
        into.fill(0);
        let mut at = piece.start;
        while at < piece.end {
            let end = at.plus(1).up_to(PAGE).min(piece.end);
            let page = &mut into[(at.0 - piece.start.0) as usize..(end.0 - piece.start.0) as usize];
            if !(self.read)(at, page) {
                page.fill(0);
            }
            at = end;
        }
    }
}
