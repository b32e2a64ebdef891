//! The version of an allocator, as far as its own constants or code have it.
//!
//! jemalloc keeps `JEMALLOC_VERSION` ("5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"), gperftools what `tc_version`
//! returns ("gperftools 2.10"), musl `__libc_version` ("1.2.3"). mimalloc has no such text: `mi_version` returns a number
//! (209 is 2.0.9), so its few instructions are read.

use crate::base::limits::VERSION_SCAN_BYTES_MAX;
use crate::base::{Addr, PAGE, Range};
use crate::os::Target;
use crate::os::elf::Image;

/// The longest text that is looked for.
const TEXT_BYTES_MAX: usize = 64;

pub fn of(target: &Target, name: &str, image: &Image) -> Option<String> {
    match name {
        "jemalloc" => text(target, image, jemalloc),
        "tcmalloc" => text(target, image, gperftools),
        "musl" => text(target, image, musl),
        "mimalloc" => {
            let at = image.exported(target.memory, "mi_version").ok()??;
            let mut code = [0; 16];
            target.memory.read(at, &mut code).ok()?;
            mimalloc(returned(&code)?)
        }
        _ => None,
    }
}

/// The first C string of the image's constants in which `version` finds one.
fn text(target: &Target, image: &Image, version: impl Fn(&str) -> Option<String>) -> Option<String> {
    let constants = image.segments.iter().filter(|(_, is_writable)| !is_writable);
    constants.map(|(range, _)| *range).find_map(|range| {
        let mut bytes = Vec::new();
        let end = range.end.min(range.start.plus(VERSION_SCAN_BYTES_MAX));
        let mut page = range.start;
        while page < end {
            // What is left of a string that began in the page before stays in front.
            let kept = bytes.len();
            let next = page.plus(PAGE).down_to(PAGE).min(end);
            bytes.resize(kept + (next.0 - page.0) as usize, 0);
            if target.memory.read_once(page, &mut bytes[kept..]).is_err() {
                bytes[kept..].fill(0);
            }
            if let Some(found) = in_bytes(target, page.minus(kept as u64), &bytes, &version) {
                return Some(found);
            }
            let last = bytes.iter().rposition(|byte| *byte == 0).unwrap_or(0);
            bytes.drain(..last.max(bytes.len().saturating_sub(TEXT_BYTES_MAX)));
            page = next;
        }
        None
    })
}

fn in_bytes(
    target: &Target,
    at: Addr,
    bytes: &[u8],
    version: &impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let mut from = 0;
    for piece in bytes.split(|byte| *byte == 0) {
        let start = from;
        from += piece.len() + 1;
        let is_text = (3..=TEXT_BYTES_MAX).contains(&piece.len()) && from <= bytes.len();
        if is_text && let Some(found) = str::from_utf8(piece).ok().and_then(version) {
            let range = Range::sized(at.plus(start as u64), piece.len() as u64 + 1);
            target.memory.used(range.start, &bytes[start..from]);
            return Some(found);
        }
    }
    None
}

/// Whether it is numbers with points between them: "5.3.0".
fn is_numbers(text: &str, count: usize) -> bool {
    let is_number =
        |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split('.').count() == count && text.split('.').all(is_number)
}

fn jemalloc(text: &str) -> Option<String> {
    let (version, rest) = text.split_once('-')?;
    (is_numbers(version, 3) && rest.contains("-g")).then(|| version.to_string())
}

fn gperftools(text: &str) -> Option<String> {
    let version = text.strip_prefix("gperftools ")?;
    (is_numbers(version, 2) || is_numbers(version, 3)).then(|| format!("(gperftools {version})"))
}

fn musl(text: &str) -> Option<String> {
    is_numbers(text, 3).then(|| text.to_string())
}

/// 209 is 2.0.9, 2112 would be 21.1.2: one digit each for minor and patch (mimalloc.h, `MI_MALLOC_VERSION`).
fn mimalloc(number: u32) -> Option<String> {
    (100..10_000).contains(&number).then(|| {
        let (major, minor, patch) = (number / 100, number / 10 % 10, number % 10);
        format!("{major}.{minor}.{patch}")
    })
}

/// The number that a function returns which does nothing else.
fn returned(code: &[u8; 16]) -> Option<u32> {
    let immediate = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| code[at + byte]));
    // x86-64: [endbr64] mov eax, imm32; ret.
    let start = if code[..4] == [0xf3, 0x0f, 0x1e, 0xfa] { 4 } else { 0 };
    if code[start] == 0xb8 && code[start + 5] == 0xc3 {
        return Some(immediate(start + 1));
    }
    // aarch64: [bti c] mov w0, #imm16; ret.
    let start = if immediate(0) == 0xd503_245f { 4 } else { 0 };
    let (mov, ret) = (immediate(start), immediate(start + 4));
    (mov & 0xffe0_001f == 0x5280_0000 && ret == 0xd65f_03c0).then_some(mov >> 5 & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_texts() {
        let text = "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c";
        assert_eq!(jemalloc(text).as_deref(), Some("5.3.0"));
        assert_eq!(jemalloc("5.3.0"), None);
        assert_eq!(gperftools("gperftools 2.10").as_deref(), Some("(gperftools 2.10)"));
        assert_eq!((gperftools("gperftools x"), musl("127.0.0.1")), (None, None));
        assert_eq!(musl("1.2.3").as_deref(), Some("1.2.3"));
    }

    #[test]
    fn a_number_is_read_from_code() {
        let mut code = [0; 16];
        code[..6].copy_from_slice(&[0xb8, 0xd1, 0, 0, 0, 0xc3]);
        assert_eq!(returned(&code).and_then(mimalloc).as_deref(), Some("2.0.9"));
        code[..10].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 0xd1, 0, 0, 0, 0xc3]);
        assert_eq!(returned(&code), Some(209));
        code[..8].copy_from_slice(&[0x20, 0x1a, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6]);
        assert_eq!(returned(&code), Some(209));
        assert_eq!((returned(&[0; 16]), mimalloc(7)), (None, None));
    }
}
