//! Words of a heap that is walked from its start to its end, read in windows. A window grows while chunks are small, so that
//! these are read at the speed of memory; where chunks are large only their headers are read. Only pages that are in memory
//! are read.

use crate::base::{Addr, PAGE, Range, Why, holding};
use crate::os::memory::{Bulk, Fault, Memory};

/// From where a walk reads: several threads at once, or one memory that may be recorded or replayed.
pub trait Source {
    /// The caller asks only for what is resident.
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault>;
    /// What is resident of `range` at this moment; `None`: no newer source than the view already taken.
    fn resident(&self, _range: Range) -> Option<Vec<Range>> {
        None
    }
    /// Whether what is not there now may be there a millisecond later.
    fn is_live(&self) -> bool {
        false
    }
    /// Whether `used` does anything.
    fn keeps(&self) -> bool {
        false
    }
    /// Notes that these bytes mattered.
    fn used(&self, _at: Addr, _bytes: &[u8]) {}
}

pub struct BulkSource<'a>(pub &'a dyn Bulk);

impl Source for BulkSource<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.0.read(at, into)
    }
    fn resident(&self, range: Range) -> Option<Vec<Range>> {
        self.0.resident(range)
    }
    fn is_live(&self) -> bool {
        true
    }
}

pub struct MemorySource<'a>(pub &'a dyn Memory);

impl Source for MemorySource<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.0.read_once(at, into)
    }
    fn keeps(&self) -> bool {
        self.0.keeps_what_is_read()
    }
    fn used(&self, at: Addr, bytes: &[u8]) {
        self.0.used(at, bytes)
    }
}

const WINDOW_BYTES_MIN: usize = 8 << 10;
const WINDOW_BYTES_MAX: usize = 256 << 10;
/// Up to this distance between two words that are asked for, reading all that lies between costs less than a call for each:
/// a call takes as long as copying this much.
const DENSE_STRIDE_BYTES: u64 = 6 << 10;
/// How many of the last words make that distance.
const STRIDE_WORDS: u64 = 16;
/// Behind a jump this far beyond the window it begins small again.
const FAR_BYTES: u64 = 64 << 10;
/// The body of a chunk of this size is worth jumping over. Where such bodies are most of the heap, windows stay small: they
/// hold the small chunks between two bodies.
pub const BODY_BYTES: u64 = 12 << 10;

pub struct Window<'a> {
    source: &'a dyn Source,
    /// Sorted, disjoint.
    resident: Vec<Range>,
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
    step: usize,
    /// Whether `used` of the source does anything.
    keeps: bool,
    /// Words asked for since the window was filled.
    words: u64,
    /// The number of words in the last `STRIDE_WORDS`, and how far they went.
    last_words: u64,
    last_bytes: u64,
    /// The bytes of these within bodies.
    last_body_bytes: u64,
    /// The last word, and how much since the window was filled lay in bodies.
    last_word: u64,
    body_bytes: u64,
}

impl<'a> Window<'a> {
    pub fn new(source: &'a dyn Source) -> Window<'a> {
        let (resident, buffer) = (Vec::new(), Vec::new());
        let (start, filled, step, keeps) = (0, 0, 0, source.keeps());
        let (words, last_words, last_bytes) = (0, 0, 0);
        let (last_body_bytes, last_word, body_bytes) = (0, 0, 0);
        Window {
            source,
            resident,
            buffer,
            start,
            filled,
            step,
            keeps,
            words,
            last_words,
            last_bytes,
            last_body_bytes,
            last_word,
            body_bytes,
        }
    }

    /// Whether the evidence is wanted.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    pub fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// Begins on other memory, or again on the same.
    pub fn restart(&mut self, resident: Vec<Range>) {
        self.resident = resident;
        self.forget();
    }

    /// What is in the window is read again.
    pub fn forget(&mut self) {
        (self.start, self.filled, self.step) = (0, 0, 0);
        (self.words, self.last_words, self.last_bytes) = (0, 0, 0);
        (self.last_body_bytes, self.last_word, self.body_bytes) = (0, 0, 0);
    }

    /// The first resident address from `at` on.
    pub fn next_resident(&self, at: Addr) -> Option<Addr> {
        let after = self.resident.partition_point(|range| range.end <= at);
        self.resident.get(after).map(|range| range.start.max(at))
    }

    /// Whether `bytes` bytes from `at` are in the window.
    #[inline]
    pub fn has(&self, at: Addr, bytes: usize) -> bool {
        let offset = at.0.wrapping_sub(self.start);
        offset < self.filled as u64 && bytes <= self.filled - offset as usize
    }

    /// The bytes from `at` on that are in the window.
    #[inline]
    pub fn bytes(&self, at: Addr) -> &[u8] {
        let offset = at.0.wrapping_sub(self.start).min(self.filled as u64) as usize;
        &self.buffer[offset..self.filled]
    }

    /// All that is in the window, and where it begins.
    #[inline]
    pub fn filled(&self) -> (Addr, &[u8]) {
        (Addr(self.start), &self.buffer[..self.filled])
    }

    /// Notes that `filled` looked at `words` words, the last one at `last`, with `body_bytes` in bodies between them.
    pub fn passed(&mut self, words: u64, body_bytes: u64, last: Addr) {
        self.words += words;
        self.body_bytes = self.body_bytes.saturating_add(body_bytes);
        self.last_word = last.0;
    }

    /// The word at `at`, which is a multiple of 8.
    #[inline]
    pub fn word(&mut self, at: Addr) -> Result<u64, Fault> {
        if !self.has(at, 8) {
            self.load(at)?;
        }
        self.words += 1;
        let stride = at.0.wrapping_sub(self.last_word);
        if stride >= BODY_BYTES && self.last_word != 0 {
            self.body_bytes = self.body_bytes.saturating_add(stride);
        }
        self.last_word = at.0;
        match self.bytes(at).first_chunk() {
            Some(bytes) => Ok(u64::from_le_bytes(*bytes)),
            None => Err(Fault { at, why: Why::NotResident(at) }),
        }
    }

    /// How much is worth reading from `at` on.
    fn next_step(&mut self, at: Addr) -> usize {
        let end = self.start + self.filled as u64;
        let is_far = self.filled == 0 || at.0 < self.start || at.0 > end.saturating_add(FAR_BYTES);
        if at.0 >= self.start && self.filled > 0 {
            self.last_bytes = self.last_bytes.saturating_add(at.0 - self.start);
            self.last_words += self.words;
            self.last_body_bytes = self.last_body_bytes.saturating_add(self.body_bytes);
            if self.last_words > STRIDE_WORDS {
                let scaled = |bytes: u64| (bytes / self.last_words).saturating_mul(STRIDE_WORDS);
                (self.last_bytes, self.last_body_bytes) =
                    (scaled(self.last_bytes), scaled(self.last_body_bytes));
                self.last_words = STRIDE_WORDS;
            }
        }
        (self.words, self.body_bytes) = (0, 0);
        let is_dense = self.last_bytes <= self.last_words.saturating_mul(DENSE_STRIDE_BYTES);
        if is_dense {
            let has_bodies = self.last_body_bytes > self.last_bytes / 2;
            self.step = if is_far || has_bodies { 0 } else { self.step * 2 };
            self.step = self.step.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
            return self.step;
        }
        self.step = 0;
        // Up to the page's end: a second page costs as much as the first.
        let to_page_end = (PAGE - at.0 % PAGE) as usize;
        if to_page_end >= 64 { to_page_end } else { to_page_end + PAGE as usize }
    }

    /// Fills the window from `at` on.
    #[cold]
    fn load(&mut self, at: Addr) -> Result<(), Fault> {
        let absent = Fault { at, why: Why::NotResident(at) };
        let run = holding(&self.resident, at).ok_or(absent)?;
        let wanted = self.next_step(at);
        let bytes = (run.end.0 - at.0).min(wanted as u64) as usize;
        (self.start, self.filled) = (at.0, 0);
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes.next_power_of_two(), 0);
        }
        self.filled = match self.source.read(at, &mut self.buffer[..bytes]) {
            Ok(()) => bytes,
            // A page behind it may be gone, or was of no use to the walk that was recorded.
            Err(_) => {
                let to_page_end = bytes.min((PAGE - at.0 % PAGE) as usize);
                self.source.read(at, &mut self.buffer[..to_page_end])?;
                to_page_end
            }
        };
        Ok(())
    }

    /// Fills `into` from `at`, from the window or past it; what is not resident stays as it is.
    pub fn copy(&mut self, at: Addr, into: &mut [u8]) -> bool {
        if self.has(at, into.len()) {
            into.copy_from_slice(&self.bytes(at)[..into.len()]);
            return true;
        }
        let wanted = Range::sized(at, into.len() as u64);
        let is_resident = holding(&self.resident, at).is_some_and(|range| range.covers(wanted));
        is_resident && self.source.read(at, into).is_ok()
    }
}
