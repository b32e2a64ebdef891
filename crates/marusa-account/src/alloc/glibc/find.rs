//! Finds glibc in the process, and in its writable data the main arena: 127 pairs of list heads, each of which points at
//! itself or at chunks that point back. No symbol is needed, so a stripped libc serves as well.

use super::layout::{BINS, Layout, Totals};
use crate::base::limits::{C_STRING_BYTES_MAX, LIBC_DATA_BYTES_MAX};
use crate::base::{Addr, Gap, Known, PAGE, Range, USER_END, Why};
use crate::os::elf::Image;
use crate::os::maps::Mapping;
use crate::os::{Memory, Target};

/// Largest range of read-only data that is searched for the banner.
const BANNER_SEARCH_BYTES_MAX: u64 = 4 << 20;
const BANNER: &[u8] = b"GNU C Library (";

/// C libraries of one process that are looked at: glibc has 16 namespaces (DL_NNS).
const LIBCS_MAX: usize = 16;

/// "libc.so.6", "libc-2.31.so".
fn is_libc(mapping: &Mapping) -> bool {
    let name = mapping.file_name();
    let is_named = name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"));
    mapping.offset == 0 && mapping.is_file() && is_named
}

/// The C library whose malloc has the break, or else the first; and a gap for the others: dlmopen(3) loads one more for each
/// namespace, and each has a malloc of its own.
pub fn library(target: &Target, gaps: &mut Vec<Gap>) -> Known<Image> {
    let all: Vec<&Mapping> =
        target.view.mappings.iter().filter(|mapping| is_libc(mapping)).take(LIBCS_MAX).collect();
    let first = all.first().ok_or_else(|| {
        Gap::new("glibc", Why::NotInThisRuntime)
            .hint("the process maps no libc.so.6: static, or another C library")
    })?;
    let read =
        |first: &Mapping| Image::read(target.memory, first).map_err(|fault| fault.gap("headers of libc"));
    if all.len() == 1 {
        return read(first);
    }
    gaps.push(
        Gap::new(format!("malloc of {} more libc.so.6", all.len() - 1), Why::NotRead)
            .hint("a library was loaded with dlmopen(3); what its own malloc holds has no owner"),
    );
    let images = || all.iter().filter_map(|first| read(first).ok());
    let has_the_break = |libc: &Image| {
        let totals = layout(target, libc).and_then(|layout| Totals::find(target, libc, &layout));
        let base = totals.ok().and_then(|totals| target.mapping(totals.sbrk_base));
        base.is_some_and(|mapping| mapping.path == "[heap]")
    };
    images().find(has_the_break).map_or_else(|| read(first), Ok)
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
    for segment in libc.data() {
        for piece in target.resident(segment.widened(8)) {
            let piece = Range::sized(piece.start, piece.bytes().min(left));
            left -= piece.bytes();
            if let Ok(words) = target.memory.scan(piece.start, piece.bytes() as usize / 8) {
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

/// Lists of a busy arena that may be torn at the moment, of `BINS`: those of small chunks change all the time.
const TORN_LISTS_MAX: usize = BINS / 5;

/// Where an array of 127 bins may start, the surest first.
fn bins(memory: &dyn Memory, start: Addr, words: &[u64]) -> Vec<Addr> {
    // A bin's header is a chunk whose links are the pair, so it begins two words before.
    let header = |at: usize| start.plus(at as u64 * 8).minus(16);
    let is_empty = |at: usize| words[at] == header(at).0 && words[at + 1] == header(at).0;
    let may_be_links = |at: usize| {
        words[at..at + 2].iter().all(|word| word.is_multiple_of(8) && (PAGE..USER_END).contains(word))
    };
    let leads_back = |at: usize| {
        let (next, previous) = (Addr(words[at]), Addr(words[at + 1]));
        memory.addr(next.plus(24)) == Ok(header(at)) || memory.addr(previous.plus(16)) == Ok(header(at))
    };
    let pairs = words.len().saturating_sub(1);
    let mut windows: Vec<(usize, Addr)> = Vec::new();
    for parity in 0..2 {
        // No word of a list is ever null, so only long runs of pointers are looked at.
        let places: Vec<usize> = (parity..pairs).step_by(2).collect();
        for run in places.chunk_by(|one, next| may_be_links(*one) == may_be_links(*next)) {
            if run.len() < BINS || !may_be_links(run[0]) {
                continue;
            }
            let mut sums = vec![0_usize];
            for at in run {
                let is_list = is_empty(*at) || leads_back(*at);
                sums.push(sums[sums.len() - 1] + usize::from(is_list));
            }
            for first in 0..=run.len() - BINS {
                let valid = sums[first + BINS] - sums[first];
                if valid + TORN_LISTS_MAX >= BINS {
                    windows.push((valid, start.plus(run[first] as u64 * 8)));
                }
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

    /// An arena that fragments has chunks in nearly all of its lists, and some change between two reads.
    #[test]
    fn a_busy_arena_whose_lists_are_torn_is_found() {
        let (start, chunks) = (Addr(0x7000), Addr(0x10_0000));
        let mut memory = Pieces::default();
        let mut links = vec![0_u64; 4 * BINS];
        let mut words = vec![0_u64; 400];
        for bin in 0..BINS {
            let header = start.0 + (40 + bin as u64 * 2) * 8 - 16;
            let chunk = chunks.plus(bin as u64 * 32);
            words[40 + bin * 2] = chunk.0;
            words[41 + bin * 2] = chunk.0;
            let is_torn = bin % 6 == 0;
            links[bin * 4 + 2] = if is_torn { 0 } else { header };
            links[bin * 4 + 3] = links[bin * 4 + 2];
        }
        memory.put_words(chunks, &links);
        assert_eq!(bins(&memory, start, &words), [Addr(0x7000 + 40 * 8)]);
        memory.put_words(chunks, &vec![0; 4 * BINS]);
        assert!(bins(&memory, start, &words).is_empty());
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
