//! The known bytes of a process as a frozen file holds them: pieces in the order of their addresses. A piece takes its bytes and
//! 12 more, so memory stays in proportion to what was read: a file that names one byte in each of a million pages costs
//! 13 MB and not the pages.

use super::budget;
use super::memory::{Fault, Memory};
use crate::base::{Addr, PAGE, Range, Why};

/// A piece grows no longer than this, so that a file written from it can be read again.
const PIECE_BYTES_MAX: usize = crate::base::limits::FROZEN_PIECE_BYTES_MAX as usize;

#[derive(Clone, Debug, Default)]
pub struct Flat {
    /// Where each piece starts; sorted.
    starts: Vec<u64>,
    /// Where each ends in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Flat {
    /// Pieces that are sorted, as they are.
    pub fn of<'a>(pieces: impl IntoIterator<Item = (Addr, &'a [u8])>) -> Flat {
        let mut flat = Flat::default();
        for (at, bytes) in pieces {
            let Ok(end) = u32::try_from(flat.bytes.len() + bytes.len()) else { break };
            flat.bytes.extend_from_slice(bytes);
            flat.starts.push(at.0);
            flat.ends.push(end);
        }
        flat
    }

    fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Adds a piece behind all others. `None`: it begins before their end, or passes the end of all addresses.
    pub fn push(&mut self, at: Addr, bytes: &[u8]) -> Option<()> {
        let end = self.starts.len().checked_sub(1).map_or(0, |last| self.end_address(last));
        at.0.checked_add(bytes.len() as u64)?;
        if at.0 < end {
            return None;
        }
        let last_bytes = self.ends.len().checked_sub(1).map_or(0, |last| self.piece(last).1.len());
        let goes_on = !self.is_empty() && at.0 == end && last_bytes + bytes.len() <= PIECE_BYTES_MAX;
        if bytes.is_empty() {
            return Some(());
        }
        self.bytes.extend_from_slice(bytes);
        let ends = u32::try_from(self.bytes.len()).ok()?;
        match self.ends.last_mut() {
            Some(last) if goes_on => *last = ends,
            _ => {
                self.starts.push(at.0);
                self.ends.push(ends);
            }
        }
        Some(())
    }

    fn len(&self) -> usize {
        self.starts.len()
    }

    fn piece(&self, index: usize) -> (Addr, &[u8]) {
        let from = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        (Addr(self.starts[index]), &self.bytes[from..self.ends[index] as usize])
    }

    fn end_address(&self, index: usize) -> u64 {
        let (at, bytes) = self.piece(index);
        at.0 + bytes.len() as u64
    }

    /// The first piece that ends behind `at`.
    fn index(&self, at: Addr) -> usize {
        let after = self.starts.partition_point(|start| *start <= at.0);
        match after.checked_sub(1) {
            Some(before) if self.end_address(before) > at.0 => before,
            _ => after,
        }
    }

    /// Where in `bytes` lies what is known from `at` on: empty where `at` itself is not.
    fn place(&self, at: Addr) -> std::ops::Range<usize> {
        let index = self.index(at);
        if index == self.len() || self.starts[index] > at.0 {
            return 0..0;
        }
        let end = self.ends[index] as usize;
        end - (self.end_address(index) - at.0) as usize..end
    }

    fn known(&self, at: Addr) -> &[u8] {
        &self.bytes[self.place(at)]
    }

    /// What is known of `bytes` bytes from `at` becomes `with`.
    pub fn fill(&mut self, at: Addr, bytes: u64, with: u8) {
        for here in at.0..at.0.saturating_add(bytes) {
            let place = self.place(Addr(here));
            self.bytes[place].iter_mut().take(1).for_each(|byte| *byte = with);
        }
    }

    /// Replaces the known text from `at` by zeros, up to its NUL.
    pub fn blank_text(&mut self, at: Addr, bytes_max: u64) {
        let is_text = |offset: &u64| self.u8(at.plus(*offset)).is_ok_and(|byte| byte != 0);
        let length = (0..bytes_max).take_while(is_text).count();
        self.fill(at, length as u64, 0);
    }

    /// All pieces.
    pub fn pieces(&self) -> Vec<(Addr, &[u8])> {
        self.pieces_from(Addr::NULL).collect()
    }

    /// Pieces from an address on; the first one is cut there.
    pub fn pieces_from(&self, from: Addr) -> impl Iterator<Item = (Addr, &[u8])> {
        (self.index(from)..self.len()).map(move |index| {
            let (start, bytes) = self.piece(index);
            let skip = from.0.saturating_sub(start.0) as usize;
            (start.plus(skip as u64), &bytes[skip..])
        })
    }
}

impl Memory for Flat {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let mut done = 0;
        while done < into.len() {
            let here = at.plus(done as u64);
            budget::check().map_err(|why| Fault { at: here, why })?;
            // Up to the page's end, all or nothing: a fault names where that begins.
            let needed = (into.len() - done).min((PAGE - here.0 % PAGE) as usize);
            let known = self.known(here).get(..needed).ok_or(Fault { at: here, why: Why::NotRecorded })?;
            into[done..done + needed].copy_from_slice(known);
            done += needed;
        }
        Ok(())
    }

    /// What is not known is 0: nothing there mattered, or it would have been noted. A fault would say more than that: what
    /// lies next to it in the same read was not available either.
    fn read_once(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        into.fill(0);
        let end = at.0.saturating_add(into.len() as u64);
        for (start, bytes) in self.pieces_from(at).take_while(|(start, _)| start.0 < end) {
            let offset = (start.0 - at.0) as usize;
            let length = bytes.len().min(into.len() - offset);
            into[offset..offset + length].copy_from_slice(&bytes[..length]);
        }
        Ok(())
    }

    fn peek(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.read_once(at, into)
    }

    /// All of the text must be known.
    fn c_string(&self, at: Addr, bytes_max: usize) -> Result<String, Fault> {
        let mut found: Vec<u8> = Vec::new();
        while found.len() < bytes_max {
            let here = at.plus(found.len() as u64);
            // A page at a time, so that a text without an end costs no more than one page beyond the limit.
            let known = self.known(here);
            let room = known.len().min((PAGE - here.0 % PAGE) as usize).min(bytes_max - found.len());
            if room == 0 {
                return Err(Fault { at: here, why: Why::NotRecorded });
            }
            match known[..room].iter().position(|byte| *byte == 0) {
                None => found.extend_from_slice(&known[..room]),
                Some(end) => {
                    found.extend_from_slice(&known[..end]);
                    return Ok(String::from_utf8_lossy(&found).into_owned());
                }
            }
        }
        Err(Fault { at, why: Why::BadData(at) })
    }

    /// Within one piece.
    fn find(&self, range: Range, needle: &[u8]) -> Option<Addr> {
        if needle.is_empty() {
            return None;
        }
        let mut pieces = self.pieces_from(range.start).take_while(|(start, _)| *start < range.end);
        let found =
            pieces.find_map(|(start, bytes)| Some(start.plus(memchr::memmem::find(bytes, needle)? as u64)));
        found.filter(|at| range.has(*at))
    }

    fn keeps_what_is_read(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat() -> Flat {
        let mut flat = Flat::default();
        flat.push(Addr(0x1ffc), b"abcd").expect("the first");
        flat.push(Addr(0x2000), b"efg\0").expect("right behind");
        flat.push(Addr(0x5000), b"xyz").expect("behind");
        flat
    }

    #[test]
    fn pieces_that_touch_are_one_and_what_is_between_is_not_known() {
        let flat = flat();
        assert_eq!(flat.len(), 2);
        assert_eq!(flat.known(Addr(0x1ffe)), b"cdefg\0");
        assert!(flat.known(Addr(0x2004)).is_empty() && flat.known(Addr(0)).is_empty());
        let from: Vec<_> = flat.pieces_from(Addr(0x2002)).collect();
        assert_eq!(from, [(Addr(0x2002), &b"g\0"[..]), (Addr(0x5000), &b"xyz"[..])]);
        let mut bytes = [9; 8];
        assert_eq!(flat.read_once(Addr(0x4ffe), &mut bytes), Ok(()));
        assert_eq!(&bytes, b"\0\0xyz\0\0\0");
    }

    #[test]
    fn texts_and_needles() {
        let flat = flat();
        assert_eq!(flat.c_string(Addr(0x1ffc), 100).as_deref(), Ok("abcdefg"));
        assert_eq!(flat.c_string(Addr(0x5000), 100).map_err(|fault| fault.at), Err(Addr(0x5003)));
        assert!(flat.c_string(Addr(0x1ffc), 4).is_err(), "longer than it may be");
        assert_eq!(flat.find(Range::of(0, 0x9000), b"yz"), Some(Addr(0x5001)));
        assert_eq!(flat.find(Range::of(0, 0x5001), b"yz"), None);
        assert_eq!(flat.find(Range::of(0, 0x9000), b"cde"), Some(Addr(0x1ffe)), "over the end of a page");
    }

    #[test]
    fn what_is_out_of_order_is_refused() {
        let mut flat = flat();
        assert_eq!(flat.push(Addr(0x5002), b"a"), None);
        assert_eq!(flat.push(Addr(u64::MAX), b"ab"), None);
        assert_eq!(flat.push(Addr(0x5003), b""), Some(()));
        assert_eq!(flat.len(), 2);
    }

    #[test]
    fn filled_bytes_stay_known_and_what_is_not_known_stays_so() {
        let mut flat = flat();
        flat.fill(Addr(0x2001), 100, 0);
        assert_eq!(flat.u32(Addr(0x1fff)), Ok(u32::from_le_bytes(*b"de\0\0")));
        assert!(flat.u8(Addr(0x2004)).is_err());
    }
}
