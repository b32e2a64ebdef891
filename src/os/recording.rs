//! Memory and symbols that remember what was asked of them, so that a snapshot can be replayed without the process; and
//! the replay. Only bytes that were read are kept, never whole pages: the rest may hold the target's secrets.

use super::memory::{Fault, Memory};
use super::target::Symbols;
use crate::base::{Addr, PAGE, Why};
use std::cell::RefCell;
use std::collections::BTreeMap;

const PAGE_BYTES: usize = PAGE as usize;

/// One page of which some bytes are known.
struct PartPage {
    bytes: Box<[u8; PAGE_BYTES]>,
    known: Box<[bool; PAGE_BYTES]>,
}

/// Bytes of a process, known in part.
#[derive(Default)]
pub struct Sparse {
    pages: BTreeMap<u64, PartPage>,
}

impl Sparse {
    pub fn put(&mut self, at: Addr, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let Some(here) = at.0.checked_add(done as u64) else { return };
            let from = (here % PAGE) as usize;
            let step = (PAGE_BYTES - from).min(bytes.len() - done);
            let page = self.pages.entry(here - from as u64).or_insert_with(|| PartPage {
                bytes: Box::new([0; PAGE_BYTES]),
                known: Box::new([false; PAGE_BYTES]),
            });
            page.bytes[from..from + step].copy_from_slice(&bytes[done..done + step]);
            page.known[from..from + step].fill(true);
            done += step;
        }
    }

    /// The known bytes as (address, bytes), sorted; pieces end at page borders.
    pub fn pieces(&self) -> Vec<(Addr, &[u8])> {
        let mut pieces = Vec::new();
        for (start, page) in &self.pages {
            let mut at = 0;
            while at < PAGE_BYTES {
                let length = page.known[at..].iter().take_while(|known| **known == page.known[at]).count();
                if page.known[at] {
                    pieces.push((Addr(start + at as u64), &page.bytes[at..at + length]));
                }
                at += length;
            }
        }
        pieces
    }

    /// Replaces what is known of `bytes` bytes from `at` by zeros.
    pub fn blank(&mut self, at: Addr, bytes: u64) {
        for offset in 0..bytes {
            let Some(here) = at.0.checked_add(offset) else { return };
            if let Some(page) = self.pages.get_mut(&(here - here % PAGE)) {
                page.bytes[(here % PAGE) as usize] = 0;
            }
        }
    }
}

impl Memory for Sparse {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let mut done = 0;
        while done < into.len() {
            let here = at.plus(done as u64);
            let missing = Fault { at: here, why: Why::NotRecorded };
            let from = (here.0 % PAGE) as usize;
            let step = (PAGE_BYTES - from).min(into.len() - done);
            let page = self.pages.get(&(here.0 - from as u64)).ok_or(missing)?;
            if page.known[from..from + step].contains(&false) {
                return Err(missing);
            }
            into[done..done + step].copy_from_slice(&page.bytes[from..from + step]);
            done += step;
        }
        Ok(())
    }
}

/// Passes reads through and keeps what they gave.
pub struct Recording<'a> {
    inner: &'a dyn Memory,
    seen: RefCell<Sparse>,
}

impl<'a> Recording<'a> {
    pub fn of(inner: &'a dyn Memory) -> Recording<'a> {
        Recording { inner, seen: RefCell::default() }
    }
    pub fn into_seen(self) -> Sparse {
        self.seen.into_inner()
    }
}

impl Memory for Recording<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.read(at, into)?;
        self.seen.borrow_mut().put(at, into);
        Ok(())
    }
}

/// (object, name) -> address, with what was asked in vain left out.
pub type SymbolTable = BTreeMap<(String, String), Addr>;

/// Passes questions through and keeps the answers.
pub struct RecordingSymbols<'a> {
    inner: &'a dyn Symbols,
    seen: RefCell<SymbolTable>,
}

impl<'a> RecordingSymbols<'a> {
    pub fn of(inner: &'a dyn Symbols) -> RecordingSymbols<'a> {
        RecordingSymbols { inner, seen: RefCell::default() }
    }
    pub fn into_seen(self) -> SymbolTable {
        self.seen.into_inner()
    }
}

impl Symbols for RecordingSymbols<'_> {
    fn find(&self, object: &str, name: &str) -> Option<Addr> {
        let found = self.inner.find(object, name)?;
        self.seen.borrow_mut().insert((object.to_string(), name.to_string()), found);
        Some(found)
    }
}

impl Symbols for SymbolTable {
    fn find(&self, object: &str, name: &str) -> Option<Addr> {
        self.get(&(object.to_string(), name.to_string())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::memory::Pieces;

    #[test]
    fn a_replay_gives_the_bytes_that_were_read_and_no_others() {
        let mut live = Pieces::default();
        live.put(Addr(0xff0), &(0..64).collect::<Vec<u8>>());
        let recording = Recording::of(&live);
        assert_eq!(recording.u64(Addr(0xffc)), Ok(0x13121110_0f0e0d0c));
        let replay = recording.into_seen();
        assert_eq!(replay.u64(Addr(0xffc)), Ok(0x13121110_0f0e0d0c));
        assert_eq!(replay.u8(Addr(0xffb)).map_err(|fault| fault.why), Err(Why::NotRecorded));
        let pieces: Vec<(Addr, usize)> =
            replay.pieces().iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        assert_eq!(pieces, [(Addr(0xffc), 4), (Addr(0x1000), 4)]);
    }

    #[test]
    fn blanked_bytes_stay_known_and_are_zero() {
        let mut sparse = Sparse::default();
        sparse.put(Addr(0x1000), b"secret!!");
        sparse.blank(Addr(0x1000), 100);
        assert_eq!(sparse.u64(Addr(0x1000)), Ok(0));
    }
}
