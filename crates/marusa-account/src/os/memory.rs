//! One way to read the target's memory, whether it lives, is frozen in a file, or is made up by a test.
//!
//! A fault carries its address. Helpers read the few shapes that the rooms above need; each is bounded.

use crate::base::{Addr, Gap, PAGE, Range, Why};
use std::sync::Arc;

const FIND_PIECE_BYTES: u64 = 64 << 10;

/// One failed read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: Addr,
    pub why: Why,
}

impl Fault {
    /// The gap that this fault leaves in the reading of `what`.
    pub fn gap(self, what: impl Into<String>) -> Gap {
        Gap::new(format!("{} (at {})", what.into(), self.at), self.why)
    }
}

/// The bytes of a process. Implementations never bring an absent page into memory.
pub trait Memory {
    /// Fills `into` from `at`, whole or not at all.
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault>;

    /// As `read`, for a walk over many small things that lie near each other: what is around may be read too, and need not
    /// be kept.
    fn read_among_many(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.read(at, into)
    }

    /// Whether what is read is kept, so that nothing should be read beyond what is needed.
    fn keeps_what_is_read(&self) -> bool {
        false
    }

    /// As `read`, for a walk that goes once through a whole region: past every store of pages. Not recorded: the walker says
    /// with `used` what it relied on. A replay gives zeros for what was not recorded.
    fn read_once(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.read(at, into)
    }

    /// As `read_once`, for what may have come into memory since the reading of the pages: what is resident is asked for again.
    fn read_now(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.read_once(at, into)
    }

    /// As `read`, for a reading of what may be private data. Not recorded: the reader says with `used` what it relied on. A
    /// replay gives zeros for what was not recorded.
    fn peek(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.read(at, into)
    }

    /// As `peek`, `count` words of 8 bytes.
    fn peek_words(&self, at: Addr, count: usize) -> Result<Vec<u64>, Fault> {
        let mut bytes = vec![0; count * 8];
        self.peek(at, &mut bytes)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// As `read`, for a name that the account shows: a recording keeps it though it is text.
    fn read_text(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.read(at, into)
    }

    /// Notes that `bytes`, which `read_once`, `peek` or `Bulk` gave at `at`, mattered: a recording keeps them.
    fn used(&self, _at: Addr, _bytes: &[u8]) {}

    /// Notes that `bytes` do as well as those at `at`, which may be text of the target: a recording keeps them in their place,
    /// unless it was given the others.
    fn stands_for(&self, _at: Addr, _bytes: &[u8]) {}

    /// The same memory for several threads at once, where there is such a way. Not where reads are recorded or replayed.
    fn bulk(&self) -> Option<&dyn Bulk> {
        None
    }

    /// The same memory for another thread, with stores of its own, where there is such a way. Not where reads are recorded.
    fn another(&self) -> Option<Box<dyn Memory + Send + '_>> {
        None
    }

    fn u8(&self, at: Addr) -> Result<u8, Fault> {
        Ok(array::<1>(self, at)?[0])
    }
    fn u16(&self, at: Addr) -> Result<u16, Fault> {
        array(self, at).map(u16::from_le_bytes)
    }
    fn u32(&self, at: Addr) -> Result<u32, Fault> {
        array(self, at).map(u32::from_le_bytes)
    }
    fn i32(&self, at: Addr) -> Result<i32, Fault> {
        Ok(self.u32(at)? as i32)
    }
    fn u64(&self, at: Addr) -> Result<u64, Fault> {
        array(self, at).map(u64::from_le_bytes)
    }
    /// A pointer at `at`.
    fn addr(&self, at: Addr) -> Result<Addr, Fault> {
        Ok(Addr(self.u64(at)?))
    }
    /// `count` words of 8 bytes from `at`.
    fn words(&self, at: Addr, count: usize) -> Result<Vec<u64>, Fault> {
        let mut words = vec![0_u64; count];
        self.read(at, bytes_of(&mut words))?;
        words.iter_mut().for_each(|word| *word = u64::from_le(*word));
        Ok(words)
    }
    /// As `words`, for a search: only addresses of mapped memory, small numbers and multiples of a page mean something
    /// to the caller. A recording keeps nothing else of them.
    fn scan(&self, at: Addr, count: usize) -> Result<Vec<u64>, Fault> {
        self.words(at, count)
    }
    /// As `scan`, for data that several readers search: read once.
    fn scan_shared(&self, at: Addr, count: usize) -> Result<Arc<Vec<u64>>, Fault> {
        Ok(Arc::new(self.scan(at, count)?))
    }
    /// Where `needle` first lies within `range`, which is read as far as it can be.
    fn find(&self, range: Range, needle: &[u8]) -> Option<Addr> {
        let mut piece = Vec::new();
        let mut from = range.start;
        while from < range.end && !needle.is_empty() {
            let step = (range.end.0 - from.0).min(FIND_PIECE_BYTES);
            piece.resize(step as usize, 0);
            if self.read(from, &mut piece).is_ok()
                && let Some(found) = memchr::memmem::find(&piece, needle)
            {
                return Some(from.plus(found as u64));
            }
            // The next piece begins so early that nothing on the border is missed.
            from = from.plus(if step < FIND_PIECE_BYTES { step } else { step - needle.len() as u64 });
        }
        None
    }
    /// The C string at `at`, without its NUL, at most `max_bytes` long; bytes that are no UTF-8 become U+FFFD.
    /// Fails with `BadData` when no NUL is found within the bound.
    fn c_string(&self, at: Addr, max_bytes: usize) -> Result<String, Fault> {
        let mut found = Vec::new();
        while found.len() < max_bytes {
            let here = at.plus(found.len() as u64);
            // Never past the end of a page, the next one may be absent.
            let mut step = (64 - (here.0 & 63)) as usize;
            let mut piece = [0; 64];
            if self.keeps_what_is_read() || self.read(here, &mut piece[..step]).is_err() {
                step = 1;
                self.read(here, &mut piece[..1])?;
            }
            if let Some(end) = piece[..step].iter().position(|byte| *byte == 0) {
                found.extend_from_slice(&piece[..end]);
                return Ok(String::from_utf8_lossy(&found).into_owned());
            }
            found.extend_from_slice(&piece[..step]);
        }
        Err(Fault { at, why: Why::BadData(at) })
    }
}

fn array<const N: usize>(memory: &(impl Memory + ?Sized), at: Addr) -> Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    memory.read(at, &mut bytes)?;
    Ok(bytes)
}

/// Memory that several threads may read at once, without any store.
pub trait Bulk: Sync {
    /// Fills `into` from `at`, whole or not at all. The caller asks only for what is resident.
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault>;

    /// What is resident of `range` at this moment, sorted, disjoint; `None`: only the view already taken tells.
    fn resident(&self, range: Range) -> Option<Vec<Range>>;
}

/// Fills `into` from `at` by `read`, which tells whether it could: at once, else page by page. Zeros stand for what cannot be read.
pub fn read_or_zeros(at: Addr, into: &mut [u8], read: impl Fn(Addr, &mut [u8]) -> bool) {
    if read(at, into) {
        return;
    }
    let mut done = 0;
    while done < into.len() {
        let page = at.plus(done as u64);
        let end = ((page.plus(1).up_to(PAGE).0 - at.0) as usize).min(into.len());
        if !read(page, &mut into[done..end]) {
            into[done..end].fill(0);
        }
        done = end;
    }
}

/// The memory of a process that may not be read.
pub struct NoMemory(pub Why);

impl Memory for NoMemory {
    fn read(&self, at: Addr, _into: &mut [u8]) -> Result<(), Fault> {
        Err(Fault { at, why: self.0 })
    }
}

/// The same memory as bytes.
pub(super) fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: the bytes are those of `words`, which is borrowed as long as they are; any bytes are good words.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
#[cfg(test)]
pub use tests::Pieces;
