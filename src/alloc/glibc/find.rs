//! Finds glibc in the process, and in its writable data the main arena: 127 pairs of list heads, each of which points at
//! itself or at chunks that point back. No symbol is needed, so a stripped libc serves as well.

use super::layout::{BINS, Layout};
use crate::base::limits::{C_STRING_BYTES_MAX, LIBC_DATA_BYTES_MAX};
use crate::base::{Addr, Gap, Known, Range, Why};
use crate::os::elf::Image;
use crate::os::maps::Mapping;
use crate::os::{Memory, Target};

/// Largest stretch of read-only data that is searched for the banner.
const BANNER_SEARCH_BYTES_MAX: u64 = 4 << 20;
const BANNER: &[u8] = b"GNU C Library (";

/// "libc.so.6", "libc-2.31.so".
fn is_libc(mapping: &Mapping) -> bool {
    let name = mapping.file_name();
    let is_named = name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"));
    mapping.offset == 0 && mapping.is_file() && is_named
}

pub fn library(target: &Target) -> Known<Image> {
    let first = target.view.mappings.iter().find(|mapping| is_libc(mapping)).ok_or_else(|| {
        Gap::new("glibc", Why::NotInThisRuntime)
            .hint("the process maps no libc.so.6: static, or another C library")
    })?;
    Image::read(target.memory, first).map_err(|fault| fault.gap("headers of libc"))
}

/// "2.36", from the banner that `gnu_get_libc_version` and `libc.so.6` itself print (csu/version.c).
pub fn version(target: &Target, libc: &Image) -> Option<String> {
    for (segment, is_writable) in libc.segments.iter().rev() {
        if *is_writable || segment.bytes() > BANNER_SEARCH_BYTES_MAX {
            continue;
        }
        if let Some(at) = target.memory.find(*segment, BANNER)
            && let Ok(banner) = target.memory.c_string(at, C_STRING_BYTES_MAX)
            && let Some(version) = version_in(&banner)
        {
            return Some(version);
        }
    }
    None
}

fn version_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("version ")?;
    let version: String =
        rest.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '.').collect();
    let version = version.trim_end_matches('.');
    (!version.is_empty()).then(|| version.to_string())
}

/// The writable data of `libc` that is in memory.
pub fn data(target: &Target, libc: &Image) -> Vec<(Addr, Vec<u64>)> {
    let mut found = Vec::new();
    let mut left = LIBC_DATA_BYTES_MAX;
    for (segment, _) in libc.segments.iter().filter(|(_, is_writable)| *is_writable) {
        for piece in target.resident(segment.widened(8)) {
            let piece = Range::sized(piece.start, piece.bytes().min(left));
            left -= piece.bytes();
            if let Ok(words) = target.memory.words(piece.start, piece.bytes() as usize / 8) {
                found.push((piece.start, words));
            }
        }
    }
    found
}

/// The layout of an arena, learnt from the main arena.
pub fn layout(target: &Target, libc: &Image) -> Known<Layout> {
    let mut best: Option<Layout> = None;
    for (start, words) in data(target, libc) {
        for bins in bins(target.memory, start, &words) {
            best = best.or_else(|| Layout::of_main_arena(target, bins));
        }
    }
    best.ok_or_else(|| {
        Gap::new("glibc's main arena", Why::NotInThisRuntime)
            .hint("glibc's malloc has never been used, so another allocator serves this process, or its data is not in memory")
    })
}

/// Where an array of 127 bins may start, the surest first.
fn bins(memory: &dyn Memory, start: Addr, words: &[u64]) -> Vec<Addr> {
    // A bin's header is a chunk whose links are the pair, so it begins two words before.
    let header = |at: usize| start.plus(at as u64 * 8).minus(16);
    let is_empty = |at: usize| words[at] == header(at).0 && words[at + 1] == header(at).0;
    let pairs = words.len().saturating_sub(1);
    let mut windows: Vec<(usize, Addr)> = Vec::new();
    for parity in 0..2 {
        let empty: Vec<bool> = (parity..pairs).step_by(2).map(is_empty).collect();
        let mut sums = vec![0_usize];
        for is_empty in &empty {
            sums.push(sums[sums.len() - 1] + usize::from(*is_empty));
        }
        for first in 0..empty.len().saturating_sub(BINS - 1) {
            // A busy arena still has a third of its bins empty: the large ones.
            if sums[first + BINS] - sums[first] < BINS / 4 {
                continue;
            }
            let leads_back = |index: usize| {
                let at = parity + index * 2;
                let (next, previous) = (Addr(words[at]), Addr(words[at + 1]));
                memory.addr(next.plus(24)) == Ok(header(at))
                    && memory.addr(previous.plus(16)) == Ok(header(at))
            };
            let valid = (first..first + BINS).filter(|index| empty[*index] || leads_back(*index)).count();
            // A few lists may be torn.
            if valid + 6 >= BINS {
                windows.push((valid, start.plus((parity + first * 2) as u64 * 8)));
            }
        }
    }
    windows.sort_by_key(|(valid, _)| std::cmp::Reverse(*valid));
    windows.into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::memory::Pieces;

    #[test]
    fn the_version_stands_in_the_banner() {
        let text = "GNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.\nCopyright";
        assert_eq!(version_in(text).as_deref(), Some("2.36"));
        assert_eq!(version_in("GNU C Library (no end"), None);
    }

    #[test]
    fn an_array_of_self_pointing_pairs_is_found_whatever_its_place() {
        let start = Addr(0x7000);
        let mut words = vec![0; 400];
        for bin in 0..BINS {
            let at = 31 + bin * 2;
            words[at] = start.0 + at as u64 * 8 - 16;
            words[at + 1] = words[at];
        }
        assert_eq!(bins(&Pieces::default(), start, &words)[0], Addr(0x7000 + 31 * 8));
    }
}
