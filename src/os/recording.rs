//! Memory and symbols that remember what was asked of them, so that a snapshot can be replayed without the process; and
//! the replay. Only bytes that were read are kept, never whole pages: the rest may hold the target's secrets. For the same
//! reason, of memory that was only searched for pointers nothing is kept that may be text.

use super::budget;
use super::flat::Flat;
use super::maps::{Mapping, find_mapping};
use super::memory::{Fault, Memory};
use super::target::Symbols;
use crate::base::{Addr, PAGE, Range, Why};
use std::cell::RefCell;
use std::collections::BTreeMap;

const PAGE_BYTES: usize = PAGE as usize;
/// A word below this is a number: three letters at most.
const NUMBER_END: u64 = 1 << 24;

static ALL_KNOWN: [bool; PAGE_BYTES] = [true; PAGE_BYTES];

/// One page of which some bytes are known.
struct PartPage {
    bytes: Box<[u8; PAGE_BYTES]>,
    known: Box<[bool; PAGE_BYTES]>,
}

/// Bytes of a process, known in part.
#[derive(Default)]
pub struct Sparse {
    pages: BTreeMap<u64, PartPage>,
    /// In place of the pages, where all of it came from a file.
    flat: Flat,
}

impl Sparse {
    /// What a file holds.
    pub fn of_file(flat: Flat) -> Sparse {
        Sparse { pages: BTreeMap::new(), flat }
    }

    /// What came from a file is put into pages before it is changed.
    fn unfold(&mut self) {
        let flat = std::mem::take(&mut self.flat);
        flat.pieces_from(Addr::NULL).for_each(|(at, bytes)| self.put_in_pages(at, bytes));
    }

    pub fn put(&mut self, at: Addr, bytes: &[u8]) {
        self.unfold();
        self.put_in_pages(at, bytes);
    }

    fn put_in_pages(&mut self, at: Addr, bytes: &[u8]) {
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

    /// `bytes` bytes from `at`, or those up to the page's end; all must be known.
    fn known_in_page(&self, at: Addr, bytes: usize) -> Result<&[u8], Fault> {
        budget::check().map_err(|why| Fault { at, why })?;
        if !self.flat.is_empty() {
            let needed = bytes.min((PAGE - at.0 % PAGE) as usize);
            return self.flat.known(at).get(..needed).ok_or(not_recorded(at));
        }
        let page = self.pages.get(&at.down_to(PAGE).0).ok_or(not_recorded(at))?;
        let from = (at.0 % PAGE) as usize;
        let end = (from + bytes).min(PAGE_BYTES);
        if page.known[from..end] != ALL_KNOWN[from..end] {
            return Err(not_recorded(at));
        }
        Ok(&page.bytes[from..end])
    }

    /// The known bytes as (address, bytes), sorted; pieces end at page borders.
    pub fn pieces(&self) -> Vec<(Addr, &[u8])> {
        self.pieces_from(Addr::NULL).collect()
    }

    /// As `pieces`, from an address on.
    pub fn pieces_from(&self, from: Addr) -> impl Iterator<Item = (Addr, &[u8])> {
        self.flat.pieces_from(from).chain(self.pieces_of_pages(from))
    }

    fn pieces_of_pages(&self, from: Addr) -> impl Iterator<Item = (Addr, &[u8])> {
        self.pages.range(from.down_to(PAGE).0..).flat_map(move |(start, page)| {
            let mut at = from.0.saturating_sub(*start) as usize;
            let mut pieces = Vec::new();
            while at < PAGE_BYTES {
                let length = page.known[at..].iter().take_while(|known| **known == page.known[at]).count();
                if page.known[at] {
                    pieces.push((Addr(start + at as u64), &page.bytes[at..at + length]));
                }
                at += length;
            }
            pieces
        })
    }

    /// Replaces the known text from `at` by zeros, up to its NUL.
    pub fn blank_text(&mut self, at: Addr, bytes_max: u64) {
        let length =
            (0..bytes_max).take_while(|offset| self.u8(at.plus(*offset)).is_ok_and(|byte| byte != 0));
        self.blank(at, length.count() as u64);
    }

    /// Replaces what is known of `bytes` bytes from `at` by zeros.
    pub fn blank(&mut self, at: Addr, bytes: u64) {
        self.unfold();
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
            let piece = self.known_in_page(here, into.len() - done)?;
            into[done..done + piece.len()].copy_from_slice(piece);
            done += piece.len();
        }
        Ok(())
    }

    /// What is not known is 0: nothing there mattered, or it would have been noted. A fault would say more than that: what
    /// lies beside it in the same read could not be had either.
    fn read_once(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        if !self.flat.is_empty() {
            self.flat.read_or_zeros(at, into);
            return Ok(());
        }
        let mut done = 0;
        while done < into.len() {
            let here = at.plus(done as u64);
            let from = (here.0 % PAGE) as usize;
            let step = (PAGE_BYTES - from).min(into.len() - done);
            match self.pages.get(&here.down_to(PAGE).0) {
                Some(page) => into[done..done + step].copy_from_slice(&page.bytes[from..from + step]),
                None => into[done..done + step].fill(0),
            }
            done += step;
        }
        Ok(())
    }

    /// As the trait's, a page at once.
    fn c_string(&self, at: Addr, max_bytes: usize) -> Result<String, Fault> {
        if !self.flat.is_empty() {
            return self.flat.c_string(at, max_bytes);
        }
        let mut found = Vec::new();
        while found.len() < max_bytes {
            let here = at.plus(found.len() as u64);
            let page = self.pages.get(&here.down_to(PAGE).0).ok_or(not_recorded(here))?;
            let from = (here.0 % PAGE) as usize;
            let room = (PAGE_BYTES - from).min(max_bytes - found.len());
            // What is not known is 0 and so the end of what is looked at.
            let length = page.bytes[from..from + room].iter().position(|byte| *byte == 0);
            let known = self.known_in_page(here, length.map_or(room, |length| length + 1))?;
            found.extend_from_slice(&known[..length.unwrap_or(room)]);
            if length.is_some() {
                return Ok(String::from_utf8_lossy(&found).into_owned());
            }
        }
        Err(Fault { at, why: Why::BadData(at) })
    }

    /// In one known piece; a page's end ends a piece too, except where all came from a file.
    fn find(&self, range: Range, needle: &[u8]) -> Option<Addr> {
        if !self.flat.is_empty() {
            return self.flat.find(range, needle);
        }
        let first = range.start.down_to(PAGE).0;
        for (start, page) in self.pages.range(first..range.end.0) {
            for (offset, window) in page.bytes.windows(needle.len().max(1)).enumerate() {
                let at = Addr(start + offset as u64);
                let is_known = || !page.known[offset..offset + window.len()].contains(&false);
                if window == needle && range.has(at) && is_known() {
                    return Some(at);
                }
            }
        }
        None
    }

    fn keeps_what_is_read(&self) -> bool {
        true
    }
}

fn not_recorded(at: Addr) -> Fault {
    Fault { at, why: Why::NotRecorded }
}

/// Passes reads through and keeps what they gave.
pub struct Recording<'a> {
    inner: &'a dyn Memory,
    mappings: &'a [Mapping],
    seen: RefCell<Sparse>,
    scanned: RefCell<Sparse>,
    stand_ins: RefCell<Sparse>,
}

impl<'a> Recording<'a> {
    /// `mappings`: sorted; what an address is.
    pub fn of(inner: &'a dyn Memory, mappings: &'a [Mapping]) -> Recording<'a> {
        let (seen, scanned, stand_ins) = Default::default();
        Recording { inner, mappings, seen, scanned, stand_ins }
    }

    pub fn into_seen(self) -> Sparse {
        let mut all = self.scanned.into_inner();
        for better in [self.stand_ins, self.seen] {
            better.into_inner().pieces().into_iter().for_each(|(at, bytes)| all.put(at, bytes));
        }
        all
    }

    /// What is kept of a word that was searched: an address, the end of a mapping included, a small number, or whole pages.
    fn kept(&self, word: u64) -> u64 {
        let is_mapped = |at: u64| find_mapping(self.mappings, Addr(at)).is_some();
        let is_number = word < NUMBER_END || word.is_multiple_of(PAGE);
        if is_number || is_mapped(word) || is_mapped(word - 1) { word } else { 0 }
    }
}

impl Memory for Recording<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.read(at, into)?;
        self.seen.borrow_mut().put(at, into);
        Ok(())
    }

    fn scan(&self, at: Addr, count: usize) -> Result<Vec<u64>, Fault> {
        let words = self.inner.scan(at, count)?;
        let kept: Vec<u8> = words.iter().flat_map(|word| self.kept(*word).to_le_bytes()).collect();
        self.scanned.borrow_mut().put(at, &kept);
        Ok(words)
    }

    fn find(&self, range: Range, needle: &[u8]) -> Option<Addr> {
        let found = self.inner.find(range, needle)?;
        self.seen.borrow_mut().put(found, needle);
        Some(found)
    }

    fn keeps_what_is_read(&self) -> bool {
        true
    }

    fn read_once(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.read_once(at, into)
    }

    fn used(&self, at: Addr, bytes: &[u8]) {
        self.seen.borrow_mut().put(at, bytes);
    }

    fn stands_for(&self, at: Addr, bytes: &[u8]) {
        self.stand_ins.borrow_mut().put(at, bytes);
    }

    fn read_among_many(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.read_among_many(at, into)?;
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
        let recording = Recording::of(&live, &[]);
        assert_eq!(recording.u64(Addr(0xffc)), Ok(0x13121110_0f0e0d0c));
        let replay = recording.into_seen();
        assert_eq!(replay.u64(Addr(0xffc)), Ok(0x13121110_0f0e0d0c));
        assert_eq!(replay.u8(Addr(0xffb)).map_err(|fault| fault.why), Err(Why::NotRecorded));
        let pieces: Vec<(Addr, usize)> =
            replay.pieces().iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        assert_eq!(pieces, [(Addr(0xffc), 4), (Addr(0x1000), 4)]);
    }

    #[test]
    fn of_searched_words_only_addresses_and_small_numbers_are_kept() {
        let (mappings, _) = crate::os::maps::parse(b"7000-9000 rw-p 0 00:00 0 \n");
        let mut live = Pieces::default();
        let secret = u64::from_le_bytes(*b"hunter2!");
        live.put_words(Addr(0x1000), &[0x7008, secret, 0x9000, 17, 0xabcd_ef01]);
        let recording = Recording::of(&live, &mappings);
        assert_eq!(recording.scan(Addr(0x1000), 2), Ok(vec![0x7008, secret]), "the caller sees all");
        assert!(recording.scan(Addr(0x1000), 5).is_ok());
        assert_eq!(recording.u64(Addr(0x1020)), Ok(0xabcd_ef01), "read, not only searched");
        let replay = recording.into_seen();
        assert_eq!(replay.scan(Addr(0x1000), 5), Ok(vec![0x7008, 0, 0x9000, 17, 0xabcd_ef01]));
    }

    #[test]
    fn a_text_is_kept_up_to_its_nul_and_a_needle_alone() {
        let mut live = Pieces::default();
        live.put(Addr(0x1000), &[b"shown\0hidden\0".to_vec(), vec![7; 128]].concat());
        let recording = Recording::of(&live, &[]);
        let range = Range::of(0x1000, 0x1040);
        assert_eq!(recording.find(range, b"dde"), Some(Addr(0x1008)));
        assert_eq!(recording.c_string(Addr(0x1000), 100), Ok("shown".to_string()));
        let replay = recording.into_seen();
        assert_eq!(replay.c_string(Addr(0x1000), 100), Ok("shown".to_string()));
        assert_eq!(replay.find(range, b"dde"), Some(Addr(0x1008)));
        let known: usize = replay.pieces().iter().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(known, 6 + 3);
    }

    #[test]
    fn what_stands_for_text_never_covers_what_was_read() {
        let mut live = Pieces::default();
        live.put(Addr(0x1000), b"hidden..shown...");
        let recording = Recording::of(&live, &[]);
        assert!(recording.u64(Addr(0x1008)).is_ok());
        recording.stands_for(Addr(0x1000), b"x");
        recording.stands_for(Addr(0x1008), b"x");
        let replay = recording.into_seen();
        let mut bytes = [9; 16];
        assert_eq!(replay.read_once(Addr(0x1000), &mut bytes), Ok(()));
        assert_eq!(&bytes, b"x\0\0\0\0\0\0\0shown...");
        assert_eq!(replay.read_once(Addr(0x9000), &mut bytes), Ok(()), "nothing there mattered");
        assert_eq!(bytes, [0; 16]);
    }

    #[test]
    fn blanked_bytes_stay_known_and_are_zero() {
        let mut sparse = Sparse::default();
        sparse.put(Addr(0x1000), b"secret!!");
        sparse.blank(Addr(0x1000), 100);
        assert_eq!(sparse.u64(Addr(0x1000)), Ok(0));
    }
}
