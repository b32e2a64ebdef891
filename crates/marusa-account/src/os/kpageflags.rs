//! `/proc/kpageflags`: one word of flags for every frame of the host's memory, of which two say where folios begin and go
//! on (include/uapi/linux/kernel-page-flags.h; fs/proc/page.c, `stable_page_flags`). Nothing says how large a folio is, but
//! each lies at a multiple of its size, so its head is found by rounding down, and its end is the first frame at a power of
//! two from the head that is not a tail.
//!
//! A call costs 0.5 us, a frame 0.1 to 0.2 us: frames are sorted and read in ranges.

use super::machine::base_page;
use super::process::gap;
use super::rights::{self, Capability};
use crate::base::{Bytes, Gap, Known};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

const FILE: &str = "/proc/kpageflags";
/// Frames that lie this close are read at once.
const FRAME_GAP: u64 = 3;
const FRAMES_PER_READ: u64 = 8192;
/// The largest folio that is looked for: 1 GiB.
const ORDER_MAX: u32 = 18;

/// The flags of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u64);

impl Flags {
    fn bit(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }
    pub fn is_anonymous(self) -> bool {
        self.bit(12)
    }
    /// Whether the page would go to swap: anonymous and shared memory.
    pub fn is_swap_backed(self) -> bool {
        self.bit(14)
    }
    pub fn is_head(self) -> bool {
        self.bit(15)
    }
    pub fn is_tail(self) -> bool {
        self.bit(16)
    }
}

/// The frames of one folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folio {
    pub first: u64,
    pub order: u32,
}

impl Folio {
    pub fn bytes(self) -> Bytes {
        base_page() << self.order
    }
    pub fn end(self) -> u64 {
        self.first.saturating_add(1 << self.order)
    }
    fn has(self, frame: u64) -> bool {
        self.first <= frame && frame < self.end()
    }
}

/// The folio that `frame` is of. What contradicts itself, because it changed while it was read, counts as a single page.
pub fn folio_of(frame: u64, flags: &mut dyn FnMut(u64) -> Option<Flags>) -> Folio {
    let single = Folio { first: frame, order: 0 };
    let Some(own) = flags(frame) else { return single };
    let Some((first, least)) = head_of(frame, own, flags) else { return single };
    let mut order = least.max(1);
    while order < ORDER_MAX {
        let Some(next) = first.checked_add(1 << order) else { break };
        match flags(next) {
            Some(next) if next.is_tail() => order += 1,
            _ => break,
        }
    }
    Folio { first, order }
}

/// The head, and the least order that the folio has for `frame` to be in it.
fn head_of(frame: u64, own: Flags, flags: &mut dyn FnMut(u64) -> Option<Flags>) -> Option<(u64, u32)> {
    if own.is_head() {
        return Some((frame, 0));
    }
    if !own.is_tail() {
        return None;
    }
    for order in 1..=ORDER_MAX {
        let first = frame & !((1 << order) - 1);
        if first == frame {
            continue;
        }
        let flags = flags(first)?;
        if flags.is_head() {
            return Some((first, order));
        }
        if !flags.is_tail() {
            return None;
        }
    }
    None
}

/// The open file.
pub struct FrameFlags {
    file: File,
}

impl FrameFlags {
    pub fn open() -> Known<FrameFlags> {
        let file = File::open(FILE).map_err(|error| {
            gap(FILE, &error).hint(format!(
                "which folio a page is of is visible only with CAP_SYS_ADMIN: {}",
                rights::hint(&[Capability::SYS_ADMIN], "run as root")
            ))
        })?;
        Ok(FrameFlags { file })
    }

    fn read(&self, first: u64, bytes: &mut [u8]) -> Known<()> {
        let at = first.checked_mul(8).ok_or_else(|| Gap::new(FILE, crate::base::Why::OverLimit))?;
        self.file.read_exact_at(bytes, at).map_err(|error| gap(FILE, &error))
    }

    fn one(&self, frame: u64) -> Option<Flags> {
        let mut bytes = [0; 8];
        self.read(frame, &mut bytes).ok()?;
        Some(Flags(u64::from_le_bytes(bytes)))
    }

    /// Calls `visit` with every folio that the frames of `runs` (first frame and number, sorted, perhaps overlapping) are
    /// of: the index of the run, the first frame within it, how many, the folio, and the flags of that frame.
    pub fn each_folio(&self, runs: &[(u64, u64)], visit: &mut dyn FnMut(usize, u64, u64, Folio, Flags)) {
        let mut reader =
            Reader { flags: self, start: 0, words: Vec::new(), bytes: Vec::new(), far: HashMap::new() };
        let mut index = 0;
        while index < runs.len() {
            let group = reader.read_group(&runs[index..]);
            for (index, (first, count)) in (index..).zip(&runs[index..index + group]) {
                reader.walk(*first, *count, &mut |from, count, folio, flags| {
                    visit(index, from, count, folio, flags)
                });
            }
            index += group;
        }
    }
}

/// The words that were read last, and single ones.
struct Reader<'a> {
    flags: &'a FrameFlags,
    start: u64,
    words: Vec<Flags>,
    bytes: Vec<u8>,
    far: HashMap<u64, Option<Flags>>,
}

/// Single words that are kept.
const FAR_MAX: usize = 65_536;

impl Reader<'_> {
    /// Reads the flags of the first of `runs` and of the ones close behind it; returns their number.
    fn read_group(&mut self, runs: &[(u64, u64)]) -> usize {
        let Some((start, count)) = runs.first().copied() else { return 0 };
        let most = start.saturating_add(FRAMES_PER_READ);
        let (mut end, mut group) = (start.saturating_add(count), 1);
        for (first, count) in &runs[1..] {
            let next = first.saturating_add(*count);
            if *first > end.saturating_add(FRAME_GAP) || next > most {
                break;
            }
            end = end.max(next);
            group += 1;
        }
        self.load(start, end);
        group
    }

    /// At most `FRAMES_PER_READ`, and the frame behind, which mostly shows where the last folio ends.
    fn load(&mut self, start: u64, end: u64) {
        let count = end.saturating_sub(start).clamp(1, FRAMES_PER_READ) as usize;
        self.start = start;
        self.words.clear();
        for count in [count + 1, count] {
            self.bytes.resize(count * 8, 0);
            // Frames of a device have no entry: a short read leaves them out.
            if self.flags.read(start, &mut self.bytes).is_ok() {
                let words = self.bytes.as_chunks::<8>().0;
                self.words.extend(words.iter().map(|bytes| Flags(u64::from_le_bytes(*bytes))));
                return;
            }
        }
    }

    fn flags(&mut self, frame: u64) -> Option<Flags> {
        let near = frame.checked_sub(self.start).and_then(|index| self.words.get(index as usize));
        if let Some(flags) = near {
            return Some(*flags);
        }
        if let Some(flags) = self.far.get(&frame) {
            return *flags;
        }
        if self.far.len() >= FAR_MAX {
            self.far.clear();
        }
        let flags = self.flags.one(frame);
        self.far.insert(frame, flags);
        flags
    }

    fn walk(&mut self, first: u64, count: u64, visit: &mut dyn FnMut(u64, u64, Folio, Flags)) {
        let end = first.saturating_add(count);
        let mut frame = first;
        while frame < end {
            if frame < self.start || self.start.saturating_add(self.words.len() as u64) <= frame {
                self.load(frame, end);
            }
            let Some(flags) = self.flags(frame) else { return };
            let folio = match flags.is_head() || flags.is_tail() {
                true => folio_of(frame, &mut |frame| self.flags(frame)),
                false => Folio { first: frame, order: 0 },
            };
            let here = if folio.has(frame) { folio.end().min(end) - frame } else { 1 };
            visit(frame, here, folio, flags);
            frame += here;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: u64 = 1 << 15;
    const TAIL: u64 = 1 << 16;

    /// Frames 0 to 63: single ones, except for folios of 4 at 8, of 2 at 12, of 16 at 16, and of 4 at 32 and at 36.
    fn flags(frame: u64) -> Option<Flags> {
        let within = |first, count| (first..first + count).contains(&frame).then_some(first);
        let folio =
            [(8, 4), (12, 2), (16, 16), (32, 4), (36, 4)].into_iter().find_map(|(at, n)| within(at, n));
        let word = match folio {
            Some(first) if first == frame => HEAD,
            Some(_) => TAIL,
            None => 0,
        };
        (frame < 64).then_some(Flags(word))
    }

    #[test]
    fn the_folio_of_every_frame() {
        let folio = |frame| {
            let folio = folio_of(frame, &mut flags);
            (folio.first, folio.end())
        };
        let expected =
            [(7, (7, 8)), (8, (8, 12)), (10, (8, 12)), (11, (8, 12)), (12, (12, 14)), (13, (12, 14))];
        for (frame, wanted) in expected {
            assert_eq!(folio(frame), wanted, "frame {frame}");
        }
        (16..32).for_each(|frame| assert_eq!(folio(frame), (16, 32), "frame {frame}"));
        (36..40).for_each(|frame| assert_eq!(folio(frame), (36, 40), "frame {frame}"));
        assert_eq!(folio(64), (64, 65), "behind the end");
    }

    #[test]
    fn flags_that_contradict_each_other_end() {
        let mut all_tails = |_| Some(Flags(TAIL));
        for frame in [0, 1, u64::MAX - 1, u64::MAX] {
            assert_eq!(folio_of(frame, &mut all_tails).order, 0);
        }
        let mut all_heads = |_| Some(Flags(HEAD));
        assert_eq!(folio_of(u64::MAX, &mut all_heads).order, 1);
        let mut endless = |frame| Some(Flags(if frame == 0 { HEAD } else { TAIL }));
        assert_eq!(folio_of(5, &mut endless).order, ORDER_MAX);
    }
}
