//! Numbers in as few bytes as they need: seven bits a byte, lowest first (LEB128). Signed ones are folded, so that small ones
//! of either sign are short.

/// Ten bytes hold 64 bits.
const BYTES_MAX: usize = 10;

pub fn put(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

pub fn put_signed(into: &mut Vec<u8>, number: i64) {
    put(into, ((number << 1) ^ (number >> 63)) as u64);
}

pub fn put_text(into: &mut Vec<u8>, text: &str) {
    put(into, text.len() as u64);
    into.extend_from_slice(text.as_bytes());
}

/// Takes a number off the front. `None`: the bytes end in it, or it is too long for 64 bits.
pub fn take(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for (index, byte) in from.iter().take(BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * index as u32;
        if index == BYTES_MAX - 1 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            *from = &from[index + 1..];
            return Some(number);
        }
    }
    None
}

pub fn take_signed(from: &mut &[u8]) -> Option<i64> {
    let folded = take(from)?;
    Some((folded >> 1) as i64 ^ -((folded & 1) as i64))
}

pub fn take_bytes<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(head)
}

/// Text that is not UTF-8 is converted with replacement characters, not refused.
pub fn take_text(from: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(take(from)?).ok()?;
    Some(String::from_utf8_lossy(take_bytes(from, length)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back_and_small_ones_are_short() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            let mut rest = &bytes[..];
            assert_eq!((take(&mut rest), rest.len()), (Some(number), 0));
            for length in 0..bytes.len() {
                assert_eq!(take(&mut &bytes[..length]), None, "cut short");
            }
        }
        for number in [0, -1, 1, -64, 63, i64::MIN, i64::MAX] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            assert_eq!(take_signed(&mut &bytes[..]), Some(number));
            assert_eq!(bytes.len() == 1, (-64..64).contains(&number));
        }
    }

    #[test]
    fn hostile_bytes() {
        assert_eq!(take(&mut &[0xff; 20][..]), None);
        assert_eq!(take(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02][..]), None);
        assert_eq!(take_text(&mut &[0xff, 0xff, 0xff, 0xff, 0x0f, b'x'][..]), None);
        assert_eq!(take_text(&mut &[1, 0xff][..]).as_deref(), Some("\u{fffd}"));
    }
}
