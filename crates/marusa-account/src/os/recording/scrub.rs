//! Takes text out of bytes that were read as numbers and pointers: padding and unused fields of a structure hold what
//! the memory held before, which may be a password. Texts that the account needs are recorded as such and do not come here.

use super::Sparse;
use crate::base::{Addr, PAGE, Range};
use crate::os::Memory;

/// Printable bytes in a row, or printable UTF-16 units, that are taken for text. A number below 2^40, a pair of them, and
/// nearly every other value has fewer.
const TEXT_UNITS: usize = 6;

/// Replaces text by zeros in all that is known and for which `may_hold_text` is true; where it did. Words for which `is_kept`
/// is true stay.
pub(super) fn scrub(
    known: &mut Sparse,
    may_hold_text: impl Fn(Addr) -> bool,
    is_kept: impl Fn(u64) -> bool,
) -> Vec<Range> {
    let mut scrubbed = Vec::new();
    for range in runs(known) {
        if !may_hold_text(range.start) {
            continue;
        }
        let mut bytes = vec![0; range.bytes() as usize];
        if known.read(range.start, &mut bytes).is_err() {
            continue;
        }
        let is_text = text(&bytes);
        if !is_text.contains(&true) {
            continue;
        }
        for (index, byte) in bytes.iter_mut().enumerate().filter(|(index, _)| is_text[*index]) {
            let at = range.start.plus(index as u64);
            if !is_kept(word_around(known, at)) {
                *byte = 0;
                scrubbed.push(Range::sized(at, 1));
            }
        }
        known.put(range.start, &bytes);
    }
    scrubbed
}

/// Longer runs are cut, so that a file as a whole is never copied.
const RUN_BYTES_MAX: u64 = 64 * PAGE;

/// What is known without a break.
fn runs(known: &Sparse) -> Vec<Range> {
    let mut runs: Vec<Range> = Vec::new();
    for (at, bytes) in known.pieces() {
        let piece = Range::sized(at, bytes.len() as u64);
        match runs.last_mut() {
            Some(last) if last.end == at && last.bytes() < RUN_BYTES_MAX => last.end = piece.end,
            _ => runs.push(piece),
        }
    }
    runs
}

/// The word of 8 bytes that `at` lies in; what is not known of it is 0.
fn word_around(known: &Sparse, at: Addr) -> u64 {
    let mut word = [0; 8];
    match known.read(at.down_to(8), &mut word) {
        Ok(()) => u64::from_le_bytes(word),
        // Half a word is not an address.
        Err(_) => u64::MAX,
    }
}

/// Which bytes belong to a text.
fn text(bytes: &[u8]) -> Vec<bool> {
    let is_printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let mut is_text = vec![false; bytes.len()];
    let mut start = 0;
    for run in bytes.chunk_by(|one, next| is_printable(*one) == is_printable(*next)) {
        let is_run = is_printable(run[0]) && run.len() >= TEXT_UNITS;
        is_text[start..start + run.len()].fill(is_run);
        start += run.len();
    }
    // UTF-16 at either parity.
    for parity in 0..2.min(bytes.len()) {
        let units: Vec<bool> = bytes[parity..]
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[low, high]| *high == 0 && is_printable(*low))
            .collect();
        let mut start = parity;
        for run in units.chunk_by(|one, next| one == next) {
            let end = start + run.len() * 2;
            if run[0] && run.len() >= TEXT_UNITS {
                is_text[start..end].fill(true);
            }
            start = end;
        }
    }
    is_text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(bytes: &[u8]) -> Vec<u8> {
        let mut known = Sparse::default();
        known.put(Addr(0x1ffc), bytes);
        scrub(&mut known, |_| true, |word| word == u64::from_le_bytes(*b"pointer!"));
        let mut left = vec![0; bytes.len()];
        known.read(Addr(0x1ffc), &mut left).expect("known");
        left
    }

    #[test]
    fn text_goes_and_numbers_and_short_words_stay() {
        assert_eq!(scrubbed(b"\x01hunter2\x02\x03"), b"\x01\0\0\0\0\0\0\0\x02\x03");
        assert_eq!(scrubbed(b"hunte\0r2"), b"hunte\0r2", "five letters");
        let wide: Vec<u8> = b"hunter2".iter().flat_map(|byte| [*byte, 0]).collect();
        assert_eq!(scrubbed(&wide), vec![0; 14]);
        assert_eq!(scrubbed(&wide[..10]), &wide[..10]);
        let odd = [&[9][..], &wide].concat();
        assert_eq!(scrubbed(&odd)[1..], vec![0; 14]);
        assert_eq!(scrubbed(&[]), b"");
    }

    #[test]
    fn a_word_that_is_kept_is_part_of_a_run_and_stays() {
        // 0x2000 and 0x2008 are words.
        assert_eq!(scrubbed(b"\0\0\0\0pointer!secret\0\0"), b"\0\0\0\0pointer!\0\0\0\0\0\0\0\0");
        assert_eq!(scrubbed(b"secrpointer!"), b"\0\0\0\0pointer!", "four letters before it are text with it");
    }

    #[test]
    fn a_run_over_the_end_of_a_page_is_one() {
        assert_eq!(scrubbed(b"\0hunter2\0"), [0; 9], "0x1ffd to 0x2004");
        let mut known = Sparse::default();
        known.put(Addr(0x1000), b"hunter2");
        scrub(&mut known, |at| at != Addr(0x1000), |_| false);
        assert_eq!(known.u8(Addr(0x1000)), Ok(b'h'), "this memory holds none of the target's texts");
    }
}
