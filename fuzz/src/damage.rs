//! A recorded JVM with damage. The input is a list of steps of 8 bytes:
//!
//! | byte | meaning |
//! | --- | --- |
//! | 0 | what is done |
//! | 1, 2, 3 | to which recorded piece of memory, and at which word of it |
//! | 4, 5, 6, 7 | with which value: a kind, and three bytes for it |
//!
//! Pieces are chosen with equal chance: a reader's single field is one, and so is a table of a thousand entries.

use crate::recorded::Recorded;
use marusa::base::{Addr, PAGE, Range, Why};
use marusa::os::flat::Flat;
use marusa::os::memory::{Fault, Memory};
use marusa::os::pagemap::PageRun;
use marusa::os::target::OsView;
use std::collections::{BTreeMap, BTreeSet};

const STEP_BYTES: usize = 8;
const STEPS_MAX: usize = 64;

/// The memory of a recorded JVM, some bytes of which are others, and some pages of which are gone.
pub struct Damaged<'a> {
    inner: &'a Flat,
    bytes: BTreeMap<u64, u8>,
    gone: BTreeSet<u64>,
}

impl<'a> Damaged<'a> {
    pub fn of(inner: &'a Flat) -> Damaged<'a> {
        Damaged { inner, bytes: BTreeMap::new(), gone: BTreeSet::new() }
    }

    fn with_damage(
        &self,
        at: Addr,
        into: &mut [u8],
        read: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let end = at.0.saturating_add(into.len() as u64);
        if let Some(page) = self.gone.range(at.0 - at.0 % PAGE..end).next() {
            return Err(Fault { at: Addr(*page), why: Why::NotRecorded });
        }
        read(into)?;
        for (here, byte) in self.bytes.range(at.0..end) {
            into[(here - at.0) as usize] = *byte;
        }
        Ok(())
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        self.bytes
            .extend(bytes.iter().enumerate().map(|(index, byte)| (at.wrapping_add(index as u64), *byte)));
    }
}

impl Memory for Damaged<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.with_damage(at, into, |into| self.inner.read(at, into))
    }

    fn read_once(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.with_damage(at, into, |into| self.inner.read_once(at, into))
    }

    fn c_string(&self, at: Addr, max_bytes: usize) -> Result<String, Fault> {
        let text = self.inner.c_string(at, max_bytes)?;
        let end = at.0.saturating_add(text.len() as u64 + 1);
        let is_damaged = self.bytes.range(at.0..end).next().is_some();
        if !is_damaged && self.gone.range(at.0 - at.0 % PAGE..end).next().is_none() {
            return Ok(text);
        }
        let bytes: Vec<u8> = (at.0..end).map_while(|at| self.u8(Addr(at)).ok()).collect();
        let length = bytes.iter().position(|byte| *byte == 0).ok_or(Fault { at, why: Why::BadData(at) })?;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    fn find(&self, range: Range, needle: &[u8]) -> Option<Addr> {
        self.inner.find(range, needle)
    }

    fn keeps_what_is_read(&self) -> bool {
        true
    }
}

/// Does to the memory and to the kernel's view what the steps say. `pieces`: what of the memory may be hit.
pub fn apply(
    steps: &[u8],
    recorded: &Recorded,
    pieces: &[(u64, u64)],
    memory: &mut Damaged,
    os: &mut OsView,
) {
    for step in steps.as_chunks::<STEP_BYTES>().0.iter().take(STEPS_MAX) {
        let Some(at) = word(pieces, u16::from_le_bytes([step[1], step[2]]), step[3]) else { return };
        let value = value(&recorded.pieces, at, [step[4], step[5], step[6], step[7]]);
        match step[0] % 16 {
            0..=7 => memory.put(at, &value.to_le_bytes()),
            8 => memory.put(at, &(value as u32).to_le_bytes()),
            9 => memory.put(at, &[value as u8]),
            10 => memory.put(at, &nearby(memory, at, value as i8)),
            11 => memory.put(at, &[step[5]; 64]),
            12 => drop(memory.gone.insert(at - at % PAGE)),
            13 => shrink_mapping(os, at, step[4]),
            14 => drop_mapping(os, at),
            _ if step[4] & 1 == 0 => drop_pages(os, at),
            _ => grow_mapping(os, at, step[5]),
        }
    }
}

/// The word of a recorded piece.
fn word(pieces: &[(u64, u64)], piece: u16, word: u8) -> Option<u64> {
    // More than 65,536 pieces: the second byte of the choice is spread over all of them.
    let index = piece as usize * pieces.len().max(1) / (u16::MAX as usize + 1);
    let (at, bytes) = pieces.get(index)?;
    let words = bytes.div_ceil(8).max(1);
    let nth = if words <= 256 { word as u64 % words } else { word as u64 * words / 256 };
    Some(at + nth * 8)
}

/// A value that readers stumble over.
fn value(pieces: &[(u64, u64)], at: u64, [kind, a, b, c]: [u8; 4]) -> u64 {
    let number = u32::from_le_bytes([a, b, c, 0]) as u64;
    match kind % 12 {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << (a % 64),
        3 => (1_u64 << (a % 64)).wrapping_sub(1),
        4 => number,
        5 => number.wrapping_neg(),
        6 => at,
        7 => at.wrapping_add(a as u64).wrapping_sub(b as u64),
        8 => u64::from_le_bytes([a, b, c, a, b, c, a, b]),
        9 => i64::MAX as u64 - a as u64,
        _ => word(pieces, u16::from_le_bytes([a, b]), c).unwrap_or(0),
    }
}

/// The word that is there, a little larger or smaller.
fn nearby(memory: &Damaged, at: u64, by: i8) -> [u8; 8] {
    memory.u64(Addr(at)).unwrap_or(0).wrapping_add_signed(by as i64).to_le_bytes()
}

fn mapping_at(os: &OsView, at: u64) -> Option<usize> {
    let index = os.mappings.partition_point(|mapping| mapping.range.end.0 <= at);
    os.mappings.get(index).filter(|mapping| mapping.range.start.0 <= at).map(|_| index)
}

/// Runs of pages stay within mappings, as `Frozen::load` and the kernel guarantee.
fn shrink_mapping(os: &mut OsView, at: u64, how: u8) {
    let Some(index) = mapping_at(os, at) else { return };
    let range = os.mappings[index].range;
    let pages = (range.end.0 - range.start.0) / PAGE;
    let cut = pages * (how >> 1) as u64 / 128 * PAGE;
    let kept = match how & 1 {
        0 => Range::of(range.start.0, range.end.0 - cut),
        _ => Range::of(range.start.0 + cut, range.end.0),
    };
    os.mappings[index].range = kept;
    if let Ok(pages) = &mut os.pages {
        pages.retain_mut(|run| {
            if range.covers(run.range) {
                run.range = run.range.intersect(kept);
            }
            !run.range.is_empty()
        });
    }
}

/// As far as the next mapping, all of it in memory: what a process can have that reserves terabytes, at no cost of its own.
fn grow_mapping(os: &mut OsView, at: u64, how: u8) {
    let Some(index) = mapping_at(os, at) else { return };
    let range = os.mappings[index].range;
    let next = os.mappings.get(index + 1).map_or(1 << 47, |next| next.range.start.0);
    let grown = Range::of(range.start.0, range.end.0.max(next));
    os.mappings[index].range = grown;
    if let Ok(pages) = &mut os.pages {
        pages.retain(|run| !range.covers(run.range));
        let place = pages.partition_point(|run| run.range.start < grown.start);
        let bits = if how & 1 == 0 { PageRun::PRESENT } else { PageRun::SWAPPED };
        pages.insert(place, PageRun { range: grown, bits, page_bytes: PAGE as u32, mapped_times: 1 });
    }
}

fn drop_mapping(os: &mut OsView, at: u64) {
    let Some(index) = mapping_at(os, at) else { return };
    let range = os.mappings.remove(index).range;
    if let Ok(pages) = &mut os.pages {
        pages.retain(|run| !range.covers(run.range));
    }
}

fn drop_pages(os: &mut OsView, at: u64) {
    if let Ok(pages) = &mut os.pages {
        pages.retain(|run| !run.range.has(Addr(at)));
    }
}
