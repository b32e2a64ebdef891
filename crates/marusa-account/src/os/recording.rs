//! Memory and symbols that remember what was asked of them, so that a snapshot can be replayed without the process; and
//! the replay. Only bytes that were read are kept, never whole pages: the rest may hold the target's secrets. For the same
//! reason no text is kept of writable memory, except where the reader asked for a text.

mod scrub;

use super::flat::Flat;
use super::maps::{Mapping, find_mapping};
use super::memory::{Fault, Memory};
use super::target::Symbols;
use crate::base::{Addr, PAGE, Range, Why};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

const PAGE_BYTES: usize = PAGE as usize;
/// A word below this is a number: three letters at most.
const NUMBER_END: u64 = 1 << 24;
/// User addresses end at 2^48 at the latest.
const ADDRESS_END: u64 = 1 << 48;

/// One page of which some bytes are known.
struct PartPage {
    bytes: Box<[u8; PAGE_BYTES]>,
    known: Box<[bool; PAGE_BYTES]>,
}

/// What was recorded so far, by the addresses of pages.
#[derive(Default)]
struct Sparse(BTreeMap<u64, PartPage>);

impl Sparse {
    fn put(&mut self, at: Addr, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let Some(here) = at.0.checked_add(done as u64) else { return };
            let from = (here % PAGE) as usize;
            let step = (PAGE_BYTES - from).min(bytes.len() - done);
            let page = self.0.entry(here - from as u64).or_insert_with(|| PartPage {
                bytes: Box::new([0; PAGE_BYTES]),
                known: Box::new([false; PAGE_BYTES]),
            });
            page.bytes[from..from + step].copy_from_slice(&bytes[done..done + step]);
            page.known[from..from + step].fill(true);
            done += step;
        }
    }

    fn put_all(&mut self, others: &Sparse) {
        others.pieces().for_each(|(at, bytes)| self.put(at, bytes));
    }

    /// The known bytes as (address, bytes), sorted; pieces end at page borders.
    fn pieces(&self) -> impl Iterator<Item = (Addr, &[u8])> {
        self.0.iter().flat_map(|(start, page)| {
            let mut at = 0;
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
}

impl Memory for Sparse {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let mut done = 0;
        while done < into.len() {
            let here = at.plus(done as u64);
            let from = (here.0 % PAGE) as usize;
            let end = (from + into.len() - done).min(PAGE_BYTES);
            let page =
                self.0.get(&here.down_to(PAGE).0).filter(|page| !page.known[from..end].contains(&false));
            let page = page.ok_or(Fault { at: here, why: Why::NotRecorded })?;
            into[done..done + end - from].copy_from_slice(&page.bytes[from..end]);
            done += end - from;
        }
        Ok(())
    }
}

/// Passes reads through and keeps what they gave.
pub struct Recording<'a> {
    inner: &'a dyn Memory,
    mappings: &'a [Mapping],
    seen: RefCell<Sparse>,
    scanned: RefCell<Sparse>,
    stand_ins: RefCell<Sparse>,
    /// What a reader said that mattered, as it was.
    used: RefCell<Sparse>,
    /// What was asked for as a text.
    texts: RefCell<Sparse>,
}

impl<'a> Recording<'a> {
    /// `mappings`: sorted; what an address is.
    pub fn of(inner: &'a dyn Memory, mappings: &'a [Mapping]) -> Recording<'a> {
        let (seen, scanned, stand_ins, used, texts) = Default::default();
        Recording { inner, mappings, seen, scanned, stand_ins, used, texts }
    }

    pub fn into_seen(self) -> Flat {
        let (mappings, mut seen) = (self.mappings, self.seen.into_inner());
        let programs = programs(mappings);
        let may_hold_text = |at| may_hold_text(mappings, &programs, at);
        let scrubbed = scrub::scrub(&mut seen, may_hold_text, |word| is_kept(mappings, word));
        let [mut all, stand_ins, used, texts] =
            [self.scanned, self.stand_ins, self.used, self.texts].map(RefCell::into_inner);
        all.put_all(&stand_ins);
        all.put_all(&seen);
        for at in scrubbed.into_iter().flat_map(|range| (range.start.0..range.end.0).map(Addr)) {
            if let Ok(byte) = stand_ins.u8(at) {
                all.put(at, &[byte]);
            }
        }
        all.put_all(&used);
        all.put_all(&texts);
        Flat::of(all.pieces())
    }
}

/// Whether a word that was searched is kept: an address, the end of a mapping included, a small number, or whole pages. A
/// larger number in whole pages has room for a text, an address of user memory for five letters.
fn is_kept(mappings: &[Mapping], word: u64) -> bool {
    let is_mapped = |at: u64| find_mapping(mappings, Addr(at)).is_some();
    let is_number = word < NUMBER_END || word.is_multiple_of(PAGE) && word < ADDRESS_END;
    is_number || is_mapped(word) || is_mapped(word - 1)
}

/// The files, by device and inode, of which some part is executable: programs and libraries.
fn programs(mappings: &[Mapping]) -> HashSet<(&str, u64)> {
    let programs = mappings.iter().filter(|mapping| mapping.is_file() && mapping.rights.execute);
    programs.map(|mapping| (mapping.device.as_str(), mapping.inode)).collect()
}

/// What cannot be written holds what its file holds, and only that of a program is known to hold no private data.
fn may_hold_text(mappings: &[Mapping], programs: &HashSet<(&str, u64)>, at: Addr) -> bool {
    let is_program = |mapping: &Mapping| {
        !mapping.rights.write && mapping.is_file() && programs.contains(&(&*mapping.device, mapping.inode))
    };
    !find_mapping(mappings, at).is_some_and(is_program)
}

impl Memory for Recording<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.read(at, into)?;
        self.seen.borrow_mut().put(at, into);
        Ok(())
    }

    fn scan(&self, at: Addr, count: usize) -> Result<Vec<u64>, Fault> {
        let words = self.inner.scan(at, count)?;
        let kept = |word: &u64| if is_kept(self.mappings, *word) { *word } else { 0 };
        let kept: Vec<u8> = words.iter().flat_map(|word| kept(word).to_le_bytes()).collect();
        self.scanned.borrow_mut().put(at, &kept);
        Ok(words)
    }

    fn find(&self, range: Range, needle: &[u8]) -> Option<Addr> {
        let found = self.inner.find(range, needle)?;
        self.texts.borrow_mut().put(found, needle);
        Some(found)
    }

    fn keeps_what_is_read(&self) -> bool {
        true
    }

    fn read_once(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.read_once(at, into)
    }

    fn read_now(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.read_now(at, into)
    }

    fn used(&self, at: Addr, bytes: &[u8]) {
        self.used.borrow_mut().put(at, bytes);
    }

    fn peek(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.peek(at, into)
    }

    fn read_text(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.read_text(at, into)?;
        self.texts.borrow_mut().put(at, into);
        Ok(())
    }

    /// A text that does not end within the bound is not kept.
    fn c_string(&self, at: Addr, max_bytes: usize) -> Result<String, Fault> {
        let mut found = Vec::new();
        while found.len() < max_bytes {
            let mut byte = [0];
            self.inner.read(at.plus(found.len() as u64), &mut byte)?;
            found.extend(byte);
            if byte == [0] {
                self.texts.borrow_mut().put(at, &found);
                return Ok(String::from_utf8_lossy(&found[..found.len() - 1]).into_owned());
            }
        }
        Err(Fault { at, why: Why::BadData(at) })
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

    fn name_at(&self, object: &str, at: Addr) -> Option<String> {
        let name = self.inner.name_at(object, at)?;
        self.seen.borrow_mut().insert((object.to_string(), name.clone()), at);
        Some(name)
    }
}

impl Symbols for SymbolTable {
    fn find(&self, object: &str, name: &str) -> Option<Addr> {
        self.get(&(object.to_string(), name.to_string())).copied()
    }

    fn name_at(&self, object: &str, at: Addr) -> Option<String> {
        let is_it = |((of, _), found): &(&(String, String), &Addr)| of == object && **found == at;
        self.iter().find(is_it).map(|((_, name), _)| name.clone())
    }
}

#[cfg(test)]
mod tests;
