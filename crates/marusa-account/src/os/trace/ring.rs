//! The pages of a ring buffer as `per_cpu/cpuN/trace_pipe_raw` gives them: a time, a count of bytes, and events that say how much
//! later than the one before each was.
//!
//! Form: include/linux/ring_buffer.h and kernel/trace/ring_buffer.c, Linux 6.18. An event begins with a word of 32 bits: 5 bits of
//! type and length, 27 bits of nanoseconds since the event before. Type 0 has its length in the next word, 1 to 28 is a
//! length in words, 29 is padding, 30 adds a longer time, 31 sets the time. This is the order of bits on little-endian machines,
//! the only ones that Marusa is built for.

use super::format::PageForm;
use crate::os::symbols::number;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const TYPE_BITS: u32 = 5;
const DELTA_BITS: u32 = 27;
/// A time that is set has 59 bits; those above are the page's (`rb_fix_abs_ts`).
const STAMP_BITS: u32 = DELTA_BITS + 32;
/// `RB_MISSED_EVENTS` and `RB_MISSED_STORED`, flags of the count of bytes.
const MISSED: u32 = 1 << 31;
const MISSED_STORED: u32 = 1 << 30;
/// Bits of the count itself (tools' `COMMIT_MASK`, libtraceevent's kbuffer-parse.c).
const COMMIT_MASK: u32 = (1 << 27) - 1;

/// What one page held next to its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Events between the page before and this one were overwritten.
    pub has_hole: bool,
    /// How many, where the kernel had room to write it down.
    pub lost: Option<u64>,
    /// When the page begins.
    pub from_ns: u64,
    /// The events end before the page's bytes do: it is not a page of a ring buffer.
    pub is_broken: bool,
}

/// Goes through the events of a page, in their order: when each was, and its bytes. `None`: there is no whole head.
pub fn events(page: &[u8], form: &PageForm, mut each: impl FnMut(u64, &[u8])) -> Option<Page> {
    let from_ns = u64::from_le_bytes(page.get(..8)?.try_into().ok()?);
    let commit = form.commit.number(page)? as u32;
    let all = page.get(form.data..)?;
    let length = (commit & COMMIT_MASK) as usize;
    let mut result = Page { has_hole: commit & MISSED != 0, from_ns, ..Page::default() };
    let Some(data) = all.get(..length) else { return Some(Page { is_broken: true, ..result }) };
    if result.has_hole && commit & MISSED_STORED != 0 {
        let count = all.get(length..).and_then(|rest| rest.get(..form.commit.bytes));
        result.lost = count.map(|count| number(count, 0, count.len()));
    }
    let (mut at_ns, mut rest) = (from_ns, data);
    while !rest.is_empty() {
        let Some((step, after)) = step(rest) else {
            result.is_broken = true;
            break;
        };
        match step {
            Step::End => break,
            Step::Later(delta) => at_ns = at_ns.wrapping_add(delta),
            Step::At(stamp) => at_ns = with_upper_bits(stamp, at_ns),
            Step::Event(delta, bytes) => {
                at_ns = at_ns.wrapping_add(delta);
                each(at_ns, bytes);
            }
        }
        rest = after;
    }
    Some(result)
}

enum Step<'a> {
    /// Nothing follows in this page.
    End,
    Later(u64),
    At(u64),
    Event(u64, &'a [u8]),
}

/// The event at the start of `bytes`, and what follows it.
fn step(bytes: &[u8]) -> Option<(Step<'_>, &[u8])> {
    let (head, rest) = word(bytes)?;
    let (kind, delta) = (head & ((1 << TYPE_BITS) - 1), u64::from(head >> TYPE_BITS));
    match kind {
        PADDING if delta == 0 => Some((Step::End, &[])),
        // An event that was undone: its length counts this word. Its time counts, but 1 stands for none
        // (`rb_event_discard` and `rb_read_data_buffer`).
        PADDING => {
            let (length, _) = word(rest)?;
            let after = rest.get(length as usize..).filter(|_| length >= 4)?;
            Some((Step::Later(if delta == 1 { 0 } else { delta }), after))
        }
        TIME_EXTEND | TIME_STAMP => {
            let (high, after) = word(rest)?;
            let time = (u64::from(high) << DELTA_BITS) | delta;
            Some((if kind == TIME_EXTEND { Step::Later(time) } else { Step::At(time) }, after))
        }
        0 => {
            // The length counts its own word; what follows is aligned to words.
            let (length, _) = word(rest)?;
            let data = rest.get(4..length as usize)?;
            let after = rest.get((length as usize).checked_next_multiple_of(4)?..)?;
            Some((Step::Event(delta, data), after))
        }
        words => {
            let length = words as usize * 4;
            Some((Step::Event(delta, rest.get(..length)?), &rest[length..]))
        }
    }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*head), rest))
}

/// The upper 5 bits of a time are those of the time before, unless it would be earlier: then a turn was made.
fn with_upper_bits(stamp: u64, before: u64) -> u64 {
    let upper = before >> STAMP_BITS << STAMP_BITS;
    let time = stamp | upper;
    if upper != 0 && time < before { time.wrapping_add(1 << STAMP_BITS) } else { time }
}

#[cfg(test)]
mod tests {
    use super::super::format::Field;
    use super::*;

    const FORM: PageForm =
        PageForm { commit: Field { offset: 8, bytes: 8, is_signed: true }, data: 16, bytes: 4096 };

    fn page(from_ns: u64, flags: u32, words: &[u32]) -> Vec<u8> {
        let mut page = from_ns.to_le_bytes().to_vec();
        // The kernel adds its flags as an `int`, so that the upper one fills the upper half.
        let commit = (words.len() as u32 * 4 + flags) as i32;
        page.extend(i64::from(commit).to_le_bytes());
        words.iter().for_each(|word| page.extend(word.to_le_bytes()));
        page
    }

    fn read(page: &[u8]) -> (Option<Page>, Vec<(u64, Vec<u8>)>) {
        let mut found = Vec::new();
        let result = events(page, &FORM, |at_ns, bytes| found.push((at_ns, bytes.to_vec())));
        (result, found)
    }

    #[test]
    fn events_short_and_long_padding_and_times() {
        let words = [
            1 | 5 << 5, // 4 bytes, 5 ns later
            0xdddd_dddd,
            TIME_EXTEND | 3 << 5, // 2^27 * 2 + 3 later
            2,
            10 << 5, // its length is in the next word: 4 + 8
            12,
            0x1111_1111,
            0x2222_2222,
            PADDING | 7 << 5, // undone, 7 ns later, 8 bytes after this word
            8,
            0xffff_ffff,
            PADDING | 1 << 5,
            4,
            2, // two words, at once
            0x3333_3333,
            0x4444_4444,
            TIME_STAMP | 9 << 5,
            1,
            1,
            0x5555_5555,
            PADDING,
            0x6666_6666,
        ];
        let (result, found) = read(&page(1000, 0, &words));
        assert_eq!(result, Some(Page { from_ns: 1000, ..Page::default() }));
        let second = 1005 + (2 << 27) + 3 + 10;
        assert_eq!(found[0], (1005, vec![0xdd; 4]));
        assert_eq!(found[1], (second, [[0x11; 4], [0x22; 4]].concat()));
        assert_eq!(found[2], (second + 7, [[0x33; 4], [0x44; 4]].concat()));
        assert_eq!(found[3], ((1 << 27) + 9, vec![0x55; 4]));
        assert_eq!(found.len(), 4, "nothing after padding without a time");
    }

    #[test]
    fn holes_with_and_without_a_count() {
        let mut with_count = page(7, MISSED | MISSED_STORED, &[1, 2]);
        with_count.extend(123_456_u64.to_le_bytes());
        let (result, found) = read(&with_count);
        assert_eq!(result, Some(Page { has_hole: true, lost: Some(123_456), from_ns: 7, is_broken: false }));
        assert_eq!(found, [(7, vec![2, 0, 0, 0])]);
        let without = read(&page(7, MISSED, &[])).0.expect("a page");
        assert_eq!((without.has_hole, without.lost), (true, None));
    }

    #[test]
    fn the_upper_bits_of_a_time_are_those_of_the_page() {
        let high = 3 << STAMP_BITS;
        assert_eq!(with_upper_bits(500, high | 400), high | 500);
        assert_eq!(with_upper_bits(300, high | 400), (4 << STAMP_BITS) | 300);
        assert_eq!(with_upper_bits(300, 400), 300);
    }

    #[test]
    fn damaged_pages_end_and_say_so() {
        assert_eq!(read(&[0; 12]).0, None);
        let broken = |words: &[u32]| read(&page(0, 0, words)).0.is_some_and(|page| page.is_broken);
        assert!(broken(&[28, 1]) && broken(&[0, 3, 1]) && broken(&[0, u32::MAX]) && broken(&[TIME_EXTEND]));
        assert!(broken(&[PADDING | 5 << 5, 0]) && broken(&[PADDING | 5 << 5, u32::MAX]));
        let mut long = page(0, 0, &[1, 2]);
        long[8] = 0xff;
        assert!(read(&long).0.is_some_and(|page| page.is_broken));
    }
}
