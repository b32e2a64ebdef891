//! From object to object through a part of the heap. Each object says where the next one begins, so a wrong size would lead into
//! the middle of others: where no class is recognised, the walk goes on at the next word from which several objects in a row
//! make sense, and counts what lies between as unknown.
//!
//! What is done for each object is `inline(always)`: the released program is built to be small, and calls instead would make a
//! walk much slower.

use super::classes::{ClassTable, Form, Head};
use super::duplicates::Texts;
use super::marks::Marks;
use super::on_pages::{OnPages, OnSize};
use super::region::{Lie, Region};
use super::source::{Filled, Source};
use crate::base::{Addr, Range};
use crate::jvm::HeapBytes;
use crate::jvm::hotspot::window::word;

/// Bytes that are read at once.
pub const PIECE_BYTES: u64 = 1 << 20;
const PAGE: u64 = crate::base::PAGE;
/// The words that are looked at of a header, which may lie behind the last object.
const HEAD_BYTES: usize = 24;
/// Objects in a row that must make sense where a walk begins anywhere.
const CHAIN: usize = 5;
const MIRROR_BYTES_MAX: u64 = 16 << 20;
/// In place of an age and a hash, the mark word of a free chunk of CMS has this bit and a size in words (JDK 8 and 11,
/// src/hotspot/share/oops/markOop.hpp, `cms_free_chunk_pattern`).
const CMS_FREE: u64 = 0x81;
const CMS_FREE_BITS: u64 = 0x87;
const CMS_SIZE_SHIFT: u32 = 8;
const CMS_SIZE_BITS: u32 = 35;

/// A part of a region, as it was walked.
#[derive(Debug, Default)]
pub struct Walked {
    /// Where the first object begins; `None`: none was found.
    pub first: Option<u64>,
    /// Where the first object behind the part begins; `None`: it is not known.
    pub next: Option<u64>,
    /// What lies before the first object, if the walk did not begin at one.
    pub lead: HeapBytes,
    pub bytes: HeapBytes,
    pub counts: Vec<(u32, Count)>,
    pub on_pages: Vec<OnSize>,
    /// Its marks could not be read, and all counts as alive.
    pub is_unmarked: bool,
    pub texts: Texts,
}

/// The figures of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub instances: u64,
    pub bytes: u64,
    pub dead_instances: u64,
    pub dead_bytes: u64,
    /// The part of `bytes` allocated since the marking began, if there was one.
    pub since_bytes: u64,
}

impl Count {
    pub fn add(&mut self, other: &Count) {
        self.instances = self.instances.saturating_add(other.instances);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.dead_instances = self.dead_instances.saturating_add(other.dead_instances);
        self.dead_bytes = self.dead_bytes.saturating_add(other.dead_bytes);
        self.since_bytes = self.since_bytes.saturating_add(other.since_bytes);
    }
}

pub struct Walker<'a> {
    table: &'a ClassTable,
    source: Box<dyn Source + 'a>,
    /// Bytes from `start` on, and zeros behind them.
    buffer: Vec<u8>,
    start: u64,
    read_bytes: usize,
    counts: Vec<Count>,
    seen: Vec<u32>,
    /// The bytes of the marks of the part, and the number of the first.
    marks: Vec<u8>,
    first_mark: u64,
    texts: Texts,
    on_pages: OnPages,
}

/// A part while it is walked.
struct Part<'a> {
    region: &'a Region,
    end: u64,
    marks: Option<Marks>,
}

impl<'a> Walker<'a> {
    pub fn new(table: &'a ClassTable, source: Box<dyn Source + 'a>) -> Walker<'a> {
        Walker {
            table,
            source,
            buffer: Vec::with_capacity(PIECE_BYTES as usize + HEAD_BYTES),
            start: 0,
            read_bytes: 0,
            counts: vec![Count::default(); table.len()],
            seen: Vec::new(),
            marks: Vec::new(),
            first_mark: 0,
            texts: Texts::default(),
            on_pages: OnPages::new(table.len()),
        }
    }

    /// Walks `part` of the region from the object at `from`; without, from the first one that is found.
    pub fn walk(&mut self, region: &Region, part: Range, from: Option<u64>) -> Walked {
        let mut walked = Walked::default();
        // What another walk read may be old.
        self.read_bytes = 0;
        let start = from.unwrap_or(part.start.0).max(region.range.start.0);
        let end = part.end.0.min(region.range.end.0);
        let marks = region.marks.filter(|marks| self.read_marks(marks, start, end));
        walked.is_unmarked = region.marks != marks;
        self.on_pages.start(self.source.pages(Range::new(Addr(start), Addr(end))));
        let part = Part { region, end, marks };
        let first = match from {
            Some(_) => Some(start),
            None => self.next_object(&part, start, &mut walked.lead),
        };
        walked.first = first;
        walked.next = first.and_then(|first| self.objects(&part, first, &mut walked.bytes));
        walked.texts = std::mem::take(&mut self.texts);
        self.on_pages.take(&self.seen, &mut walked.on_pages);
        walked.counts.extend(
            self.seen.drain(..).map(|number| (number, std::mem::take(&mut self.counts[number as usize]))),
        );
        walked
    }

    fn objects(&mut self, part: &Part, mut at: u64, sums: &mut HeapBytes) -> Option<u64> {
        let region = part.region;
        let mut hole = region.holes.partition_point(|hole| hole.end.0 <= at);
        while at < part.end {
            if let Some(unused) = region.holes.get(hole).filter(|unused| unused.start.0 <= at) {
                sums.unused_buffer_bytes += unused.end.0.saturating_sub(at);
                at = at.max(unused.end.0);
                hole += 1;
                continue;
            }
            match self.object(part, at) {
                Some((head, bytes)) => {
                    let is_live =
                        part.marks.is_none_or(|marks| marks.is_live(at, self.first_mark, &self.marks));
                    self.count(head.number, bytes, is_live);
                    if part.marks.is_some_and(|marks| at >= marks.limit) {
                        self.counts[head.number as usize].since_bytes += bytes;
                    }
                    if is_live {
                        self.on_pages.count(|beyond| self.source.pages(beyond), head.number, at, bytes);
                    }
                    if is_live && self.table.value_at.is_some() {
                        self.note_text(part, at, head.form);
                    }
                    match is_live {
                        true => sums.object_bytes += bytes,
                        false => sums.dead_bytes += bytes,
                    }
                    at += bytes;
                    let padding = region.padding(bytes).min(region.range.end.0 - at);
                    sums.tail_bytes += padding;
                    at += padding;
                    if region.lie == Lie::Single {
                        sums.tail_bytes += region.range.end.0 - at;
                        return Some(region.range.end.0);
                    }
                }
                None => match self.free_chunk(part, at) {
                    Some(bytes) => {
                        sums.free_bytes += bytes;
                        at += bytes;
                    }
                    None => {
                        at = self.next_object(part, at, sums)?;
                        hole = region.holes.partition_point(|hole| hole.end.0 <= at);
                    }
                },
            }
        }
        Some(at)
    }

    #[inline(always)]
    fn count(&mut self, number: u32, bytes: u64, is_live: bool) {
        let sum = &mut self.counts[number as usize];
        if sum.instances + sum.dead_instances == 0 {
            self.seen.push(number);
        }
        match is_live {
            true => (sum.instances, sum.bytes) = (sum.instances + 1, sum.bytes + bytes),
            false => (sum.dead_instances, sum.dead_bytes) = (sum.dead_instances + 1, sum.dead_bytes + bytes),
        }
    }

    #[inline]
    fn note_text(&mut self, part: &Part, at: u64, form: Form) {
        match (form, self.table.value_at) {
            (Form::String, Some(field)) if self.hold(part, at, field as usize + 8).is_ok() => {
                let place = (at - self.start + field) as usize;
                let word = word(&self.buffer, place);
                self.texts.strings.push(if self.table.is_narrow { word & 0xffff_ffff } else { word });
            }
            (Form::Bytes | Form::Chars, Some(_)) => {
                let _ = self.note_array(part, at, u32::from(form == Form::Chars));
            }
            _ => {}
        }
    }

    /// Reads an array that does not fit into the buffer piece by piece.
    fn note_array(&mut self, part: &Part, at: u64, shift: u32) -> Result<(), Filled> {
        let words = self.words(part, at)?;
        let (_, bytes) = self.object(part, at).ok_or(Filled::Gone)?;
        let (length, mut place) = (self.table.array_length(words), at + self.table.text_at);
        let end = (place + (length << shift)).min(at + bytes);
        let mut hash = self.texts.start(length);
        while place < end {
            self.hold(part, place, 1)?;
            let from = (place - self.start) as usize;
            let most = self.read_bytes.min((end - self.start) as usize);
            self.texts.mix(&mut hash, &self.buffer[from..most]);
            place = self.start + most as u64;
        }
        self.texts.arrays.push((at, hash, bytes));
        Ok(())
    }

    fn read_marks(&mut self, marks: &Marks, start: u64, end: u64) -> bool {
        let (first, bytes) = marks.bytes(start, end);
        self.first_mark = first;
        self.marks.clear();
        self.marks.resize(bytes, 0);
        bytes == 0 || self.source.aside(marks.map.plus(first), &mut self.marks)
    }

    /// The object at `at`, if it fits into the region.
    #[inline(always)]
    fn object(&mut self, part: &Part, at: u64) -> Option<(Head, u64)> {
        let words = self.words(part, at).ok()?;
        if part.region.lie == Lie::WithFreeChunks && words[0] & CMS_FREE_BITS == CMS_FREE {
            return None;
        }
        let head = self.table.head(words)?;
        let bytes = match head.bytes {
            Some(bytes) => bytes,
            None => self.mirror_bytes(part, at)?,
        };
        (bytes <= part.region.range.end.0 - at).then_some((head, bytes))
    }

    /// The first words of what is at `at`.
    #[inline(always)]
    fn words(&mut self, part: &Part, at: u64) -> Result<[u64; 3], Filled> {
        self.hold(part, at, HEAD_BYTES)?;
        let place = (at - self.start) as usize;
        let bytes: &[u8; HEAD_BYTES] = self.buffer[place..].first_chunk().ok_or(Filled::Gone)?;
        let words = bytes.as_chunks::<8>().0;
        Ok([0, 1, 2].map(|place| u64::from_le_bytes(words[place])))
    }

    /// Fills the buffer with `bytes` from `at` on, as far as the region has that many.
    #[inline(always)]
    fn hold(&mut self, part: &Part, at: u64, bytes: usize) -> Result<(), Filled> {
        let place = at.wrapping_sub(self.start) as usize;
        if place < self.read_bytes && self.read_bytes - place >= bytes {
            return Ok(());
        }
        self.refill(part, at, bytes)
    }

    #[cold]
    fn refill(&mut self, part: &Part, at: u64, bytes: usize) -> Result<(), Filled> {
        let place = at.wrapping_sub(self.start) as usize;
        let ends = self.start + self.read_bytes as u64 == part.region.range.end.0;
        if place < self.read_bytes && ends && place + bytes <= self.buffer.len() {
            return Ok(());
        }
        self.read_bytes = 0;
        let wanted = (at + PIECE_BYTES).min(part.end.max(at + PAGE)).min(part.region.range.end.0);
        match self.source.fill(at, wanted, &mut self.buffer) {
            Filled::Read => {}
            other => return Err(other),
        }
        (self.start, self.read_bytes) = (at, self.buffer.len());
        self.buffer.resize(self.read_bytes + HEAD_BYTES.max(bytes), 0);
        Ok(())
    }

    /// A mirror has its size in words in a field of its own.
    #[cold]
    fn mirror_bytes(&mut self, part: &Part, at: u64) -> Option<u64> {
        let field = self.table.mirror_size_at?;
        if field + 4 > part.region.range.end.0 - at || field > PAGE {
            return None;
        }
        self.hold(part, at, field as usize + 4).ok()?;
        let place = (at - self.start + field) as usize;
        let words = u32::from_le_bytes(*self.buffer.get(place..)?.first_chunk::<4>()?);
        let bytes = (u64::from(words) * 8).next_multiple_of(self.table.alignment);
        (field + 4..MIRROR_BYTES_MAX).contains(&bytes).then_some(bytes)
    }

    fn free_chunk(&mut self, part: &Part, at: u64) -> Option<u64> {
        if part.region.lie != Lie::WithFreeChunks {
            return None;
        }
        let [mark, next, _] = self.words(part, at).ok()?;
        // Where classes are whole words, the lowest bit of the second one says that it is none (`FreeChunk::is_free`).
        let words = match self.table.header_bytes {
            16 if next & 1 == 1 => mark,
            12 if mark & CMS_FREE_BITS == CMS_FREE => mark >> CMS_SIZE_SHIFT & ((1 << CMS_SIZE_BITS) - 1),
            _ => return None,
        };
        let bytes = words.checked_mul(8)?;
        (8..=part.region.range.end.0 - at).contains(&bytes).then_some(bytes)
    }

    /// The next place from `at` on from which objects make sense; what lies before it is counted.
    #[cold]
    fn next_object(&mut self, part: &Part, mut at: u64, sums: &mut HeapBytes) -> Option<u64> {
        let holes = &part.region.holes;
        let mut hole = holes.partition_point(|hole| hole.end.0 <= at);
        while at < part.end {
            if let Some(unused) = holes.get(hole).filter(|unused| unused.start.0 <= at) {
                // What lies behind it begins with an object.
                sums.unused_buffer_bytes += unused.end.0 - at;
                return Some(unused.end.0);
            }
            match self.words(part, at) {
                Ok(words) if self.begins_objects(part, at, words) => return Some(at),
                Ok(_) => {
                    at += self.table.alignment;
                    sums.unknown_bytes += self.table.alignment;
                }
                Err(Filled::Absent(next)) => {
                    let next = next.clamp(at + self.table.alignment, part.end.max(at + self.table.alignment));
                    sums.absent_bytes += next - at;
                    at = next;
                }
                Err(_) => {
                    sums.unread_bytes += part.end - at;
                    return None;
                }
            }
            hole += usize::from(holes.get(hole).is_some_and(|hole| hole.end.0 <= at));
        }
        None
    }

    /// Whether several objects in a row lie here, as far as the buffer goes.
    fn begins_objects(&mut self, part: &Part, at: u64, words: [u64; 3]) -> bool {
        if !self.table.is_plain_mark(words[0]) || self.table.head(words).is_none() {
            return false;
        }
        let in_buffer = self.start + self.read_bytes as u64;
        let mut place = at;
        for count in 0..CHAIN {
            let ends = place == part.region.range.end.0
                || part.region.holes.binary_search_by_key(&place, |hole| hole.start.0).is_ok();
            if ends || count > 1 && place + PAGE > in_buffer {
                return true;
            }
            match self.object(part, place) {
                Some((_, bytes)) => {
                    place = (place + bytes + part.region.padding(bytes)).min(part.region.range.end.0);
                }
                None => match self.free_chunk(part, place) {
                    Some(bytes) => place += bytes,
                    None => return false,
                },
            }
        }
        true
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
