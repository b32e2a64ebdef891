//! The records of a file: a line that says what it is, then one record after the other, each with its kind, its length, its
//! bytes and a checksum over all of that. Records are only ever added, each with one write, so whatever moment a recorder
//! ends at, every record but the last is whole, and the last one shows that it is not.
//!
//! Form 1: kind (1 byte; bit 7: the payload is deflated), length of the payload (LEB128), payload, CRC-32 (little endian). A kind
//! that is not known is skipped; a form that is not known is refused.

use crate::base::limits::INPUT_FACTOR;
use crate::base::varint;
use crate::base::{Allowance, Why};
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use std::borrow::Cow;
use std::io::{Read, Write};

pub const MAGIC: &[u8; 16] = b"marusa-record 1\n";
const MAGIC_START: &[u8] = b"marusa-record ";
/// A payload that claims more is damaged.
const PAYLOAD_BYTES_MAX: u64 = 64 << 20;
/// Shorter payloads do not get shorter.
const DEFLATE_BYTES_MIN: usize = 256;
const DEFLATED: u8 = 0x80;

/// What a record holds. The numbers stand in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Who records what, as JSON; first in each file, and again where a recorder went on with a file.
    Session,
    /// A JVM, as JSON, and its number in what follows.
    Jvm,
    /// Keys of a JVM's series, numbered on.
    Keys,
    /// What changed of a JVM.
    Sample,
    /// A JVM is gone.
    End,
    /// What people should know: a gap, a clock that was set, a full disk.
    Note,
    /// The recorder ended as it should.
    Close,
    /// A kind of a later version.
    Unknown,
}

const KINDS: [(Kind, u8); 7] = [
    (Kind::Session, 1),
    (Kind::Jvm, 2),
    (Kind::Keys, 3),
    (Kind::Sample, 4),
    (Kind::End, 5),
    (Kind::Note, 6),
    (Kind::Close, 7),
];

/// Why a file is not a recording that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    #[error("it is not a recording (its first bytes would be \"marusa-record\")")]
    Foreign,
    #[error("it is not a recording yet: its recorder ended before it wrote anything")]
    Empty,
    #[error(
        "it is a recording of form {0}, and this marusa reads form 1: a newer marusa wrote it; read it with that one"
    )]
    Newer(u64),
    #[error("its records unpack to more than {INPUT_FACTOR} times its length")]
    Packed,
    #[error("what its records describe takes more than {INPUT_FACTOR} times its length")]
    Large,
    #[error("it describes {keys} series at {moments} moments, more than its length allows")]
    Figures { keys: usize, moments: usize },
    #[error("reading it was given up: {0}")]
    GivenUp(Why),
}

/// Takes the first line off.
pub fn body(file: &[u8]) -> Result<&[u8], FormError> {
    if let Some(body) = file.strip_prefix(MAGIC) {
        return Ok(body);
    }
    if MAGIC.starts_with(file) {
        return Err(FormError::Empty);
    }
    let form = file.strip_prefix(MAGIC_START).ok_or(FormError::Foreign)?;
    let digits: String =
        form.iter().take(9).map_while(|byte| byte.is_ascii_digit().then_some(*byte as char)).collect();
    match digits.parse() {
        Ok(form) if form > 1 => Err(FormError::Newer(form)),
        _ => Err(FormError::Foreign),
    }
}

/// Whether a file begins as a recording of any form.
pub fn begins_like_one(file: &[u8]) -> bool {
    file.starts_with(MAGIC_START)
}

pub fn put(into: &mut Vec<u8>, kind: Kind, payload: &[u8]) {
    let start = into.len();
    let number = KINDS.iter().find(|(known, _)| *known == kind).map_or(0, |(_, number)| *number);
    let packed = deflated(payload);
    into.push(number | if packed.is_some() { DEFLATED } else { 0 });
    let payload = packed.as_deref().unwrap_or(payload);
    varint::put(into, payload.len() as u64);
    into.extend_from_slice(payload);
    let sum = checksum(&into[start..]);
    into.extend_from_slice(&sum.to_le_bytes());
}

/// What stands next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    Record(Kind, Cow<'a, [u8]>),
    End,
    /// No whole record: why.
    Torn(&'static str),
    /// It unpacks to more than is allowed.
    TooLarge,
}

/// Takes a record off the front; of a torn one, nothing is taken. What is unpacked is taken off the allowance of the file.
pub fn next<'a>(from: &mut &'a [u8], allowance: &mut Allowance) -> Next<'a> {
    let start = *from;
    let mut rest = start;
    let Some((first, after)) = rest.split_first() else { return Next::End };
    rest = after;
    let Some(length) = varint::take(&mut rest) else { return Next::Torn("it ends within a record") };
    if length > PAYLOAD_BYTES_MAX {
        return Next::Torn("a record claims an impossible length");
    }
    let Some(payload) = varint::take_bytes(&mut rest, length as usize) else {
        return Next::Torn("it ends within a record");
    };
    let covered = start.len() - rest.len();
    let Some(sum) = varint::take_bytes(&mut rest, 4).and_then(|sum| sum.first_chunk::<4>()) else {
        return Next::Torn("it ends within a record");
    };
    if u32::from_le_bytes(*sum) != checksum(&start[..covered]) {
        return Next::Torn("the checksum of a record is wrong");
    }
    let payload = match first & DEFLATED {
        0 => Cow::Borrowed(payload),
        _ => match inflated(payload, allowance) {
            Some(payload) => Cow::Owned(payload),
            None if allowance.is_spent() => return Next::TooLarge,
            None => return Next::Torn("a record cannot be unpacked"),
        },
    };
    *from = rest;
    let kind = KINDS.iter().find(|(_, number)| *number == first & !DEFLATED);
    Next::Record(kind.map_or(Kind::Unknown, |(kind, _)| *kind), payload)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = Crc::new();
    sum.update(bytes);
    sum.sum()
}

/// `None`: it would not get shorter.
fn deflated(payload: &[u8]) -> Option<Vec<u8>> {
    if payload.len() < DEFLATE_BYTES_MIN {
        return None;
    }
    let mut packed = DeflateEncoder::new(Vec::with_capacity(payload.len()), Compression::fast());
    packed.write_all(payload).ok()?;
    packed.finish().ok().filter(|packed| packed.len() < payload.len())
}

fn inflated(payload: &[u8], allowance: &mut Allowance) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let bytes_max = PAYLOAD_BYTES_MAX.min(allowance.left());
    DeflateDecoder::new(payload).take(bytes_max + 1).read_to_end(&mut plain).ok()?;
    allowance.take(plain.len() as u64)?;
    (plain.len() as u64 <= PAYLOAD_BYTES_MAX).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, Kind::Session, b"{}");
        put(&mut bytes, Kind::Keys, &[7; 5000]);
        put(&mut bytes, Kind::Close, b"");
        bytes
    }

    fn kinds(mut bytes: &[u8]) -> (Vec<(Kind, usize)>, bool) {
        let (mut found, mut allowance) = (Vec::new(), Allowance::of(bytes.len() as u64));
        loop {
            match next(&mut bytes, &mut allowance) {
                Next::Record(kind, payload) => found.push((kind, payload.len())),
                Next::End => return (found, false),
                Next::Torn(_) | Next::TooLarge => return (found, true),
            }
        }
    }

    #[test]
    fn what_is_put_comes_back_and_long_payloads_are_packed() {
        let bytes = file();
        assert_eq!(kinds(&bytes), (vec![(Kind::Session, 2), (Kind::Keys, 5000), (Kind::Close, 0)], false));
        assert!(bytes.len() < 200, "{}", bytes.len());
    }

    #[test]
    fn cut_anywhere_it_keeps_every_whole_record_and_is_torn_unless_cut_between_two() {
        let bytes = file();
        let mut ends = vec![0];
        let mut rest = &bytes[..];
        while let Next::Record(..) = next(&mut rest, &mut Allowance::of(0)) {
            ends.push(bytes.len() - rest.len());
        }
        for length in 0..=bytes.len() {
            let (found, is_torn) = kinds(&bytes[..length]);
            assert_eq!(found.len(), ends.iter().filter(|end| **end <= length).count() - 1, "{length}");
            assert_eq!(is_torn, !ends.contains(&length), "{length}");
        }
    }

    #[test]
    fn a_flipped_bit_is_seen_wherever_it_is() {
        let bytes = file();
        for at in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[at / 8] ^= 1 << (at % 8);
            assert!(kinds(&bad).1, "bit {at}");
        }
    }

    #[test]
    fn a_record_that_unpacks_to_more_than_the_file_may_is_too_large() {
        let mut bytes = Vec::new();
        put(&mut bytes, Kind::Note, &vec![0; 60 << 20]);
        assert!(bytes.len() < 400_000, "{}", bytes.len());
        let mut allowance = Allowance::of(bytes.len() as u64);
        assert_eq!(next(&mut &bytes[..], &mut allowance), Next::TooLarge);
    }

    #[test]
    fn another_form_is_refused_by_its_number() {
        assert_eq!(body(MAGIC), Ok(&b""[..]));
        assert_eq!(body(b"marusa-record 2\nxyz"), Err(FormError::Newer(2)));
        assert_eq!(body(b"marusa-record x\n"), Err(FormError::Foreign));
        assert_eq!(body(b"PAR1"), Err(FormError::Foreign));
        assert_eq!((body(b""), body(&MAGIC[..9])), (Err(FormError::Empty), Err(FormError::Empty)));
    }

    #[test]
    fn a_kind_of_a_later_version_is_distinguished() {
        let mut bytes = vec![0x55, 1, 9];
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        let mut allowance = Allowance::of(0);
        assert_eq!(
            next(&mut &bytes[..], &mut allowance),
            Next::Record(Kind::Unknown, Cow::Borrowed(&[9][..]))
        );
    }
}
