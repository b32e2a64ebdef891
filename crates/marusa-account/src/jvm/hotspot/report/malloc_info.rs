//! `System.native_heap_info`: what malloc_info(3) of glibc prints, by arena. JDK 17.0.9, 21 and 25 have the command.
//!
//! glibc, malloc/malloc.c, `__malloc_info`: each `<size>` and `<unsorted>` is a bin with its chunks' size words, the lowest
//! bits of which are flags; "fast" and "rest" sum them up, and "rest" has one chunk more than the bins, the top. Thread
//! caches count as in use.

use super::ReportError;
use crate::base::Bytes;
use crate::base::limits::{ARENAS_MAX, REPORT_LINES_MAX};

/// All arenas, main arena first, then in the order of their ring; and the chunks mapped one by one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MallocInfo {
    pub arenas: Vec<ArenaInfo>,
    pub mmapped: Chunks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Chunks {
    pub chunks: u64,
    pub bytes: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ArenaInfo {
    pub fast: Chunks,
    /// Binned chunks and the top, without the flags that malloc_info sums with them.
    pub rest: Chunks,
    pub system_bytes: Bytes,
}

impl ArenaInfo {
    pub fn free_bytes(&self) -> Bytes {
        self.fast.bytes.saturating_add(self.rest.bytes)
    }
}

pub fn parse(text: &str) -> Result<MallocInfo, ReportError> {
    let mut info = MallocInfo::default();
    let (mut in_arena, mut is_whole) = (false, false);
    for (number, line) in text.lines().enumerate() {
        if number == REPORT_LINES_MAX || info.arenas.len() > ARENAS_MAX {
            return Err(ReportError::OverLimit(REPORT_LINES_MAX));
        }
        let line = line.trim();
        let kind = text_of(line, "type");
        if line.starts_with("<heap ") {
            in_arena = true;
            info.arenas.push(ArenaInfo::default());
        } else if line == "</heap>" {
            in_arena = false;
        } else if line == "</malloc>" {
            is_whole = true;
        } else if line.starts_with("<total ") {
            let chunks = chunks(line).ok_or(ReportError::UnknownForm)?;
            match (kind, info.arenas.last_mut().filter(|_| in_arena)) {
                (Some("fast"), Some(arena)) => arena.fast = chunks,
                (Some("rest"), Some(arena)) => arena.rest = without_flags(chunks),
                (Some("mmap"), None) => info.mmapped = chunks,
                _ => {}
            }
        } else if line.starts_with("<system ")
            && kind == Some("current")
            && let Some(arena) = info.arenas.last_mut().filter(|_| in_arena)
        {
            arena.system_bytes = number_of(line, "size").ok_or(ReportError::UnknownForm)?;
        }
    }
    if is_whole && !info.arenas.is_empty() { Ok(info) } else { Err(ReportError::UnknownForm) }
}

/// A binned chunk has the flag PREV_INUSE and no other: two free chunks never touch. The top is taken without flags.
fn without_flags(chunks: Chunks) -> Chunks {
    Chunks { bytes: chunks.bytes.saturating_sub(chunks.chunks.saturating_sub(1)), ..chunks }
}

fn chunks(line: &str) -> Option<Chunks> {
    Some(Chunks { chunks: number_of(line, "count")?, bytes: number_of(line, "size")? })
}

fn number_of(line: &str, name: &str) -> Option<u64> {
    text_of(line, name)?.parse().ok()
}

/// The value of an attribute.
fn text_of<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut words = line.split([' ', '/', '>']);
    let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix("=\""))?;
    value.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From JDK 21.0.8 on glibc 2.36.
    const TEXT: &str = "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n\
        <total type=\"fast\" count=\"0\" size=\"0\"/>\n<total type=\"rest\" count=\"1\" size=\"129712\"/>\n\
        <system type=\"current\" size=\"286720\"/>\n<system type=\"max\" size=\"286720\"/>\n\
        <aspace type=\"total\" size=\"286720\"/>\n<aspace type=\"mprotect\" size=\"286720\"/>\n</heap>\n\
        <heap nr=\"1\">\n<sizes>\n  <size from=\"17281\" to=\"17281\" total=\"17281\" count=\"1\"/>\n  \
        <unsorted from=\"3457\" to=\"3457\" total=\"3457\" count=\"1\"/>\n</sizes>\n\
        <total type=\"fast\" count=\"2\" size=\"64\"/>\n<total type=\"rest\" count=\"3\" size=\"244949\"/>\n\
        <system type=\"current\" size=\"1372160\"/>\n<aspace type=\"subheaps\" size=\"1\"/>\n</heap>\n\
        <total type=\"fast\" count=\"2\" size=\"64\"/>\n<total type=\"rest\" count=\"4\" size=\"374661\"/>\n\
        <total type=\"mmap\" count=\"5\" size=\"5312512\"/>\n<system type=\"current\" size=\"1658880\"/>\n</malloc>\n";

    #[test]
    fn the_report_of_jdk_21() {
        let info = parse(TEXT).expect("a good report");
        assert_eq!(info.mmapped, Chunks { chunks: 5, bytes: 5312512 });
        assert_eq!(info.arenas.len(), 2);
        assert_eq!((info.arenas[0].rest.bytes, info.arenas[0].system_bytes), (129712, 286720));
        assert_eq!((info.arenas[1].free_bytes(), info.arenas[1].system_bytes), (244947 + 64, 1372160));
    }

    #[test]
    fn what_is_cut_short_or_something_else_is_refused() {
        assert_eq!(parse(&TEXT[..600]), Err(ReportError::UnknownForm));
        assert_eq!(parse("Error: malloc_info(3) is not available"), Err(ReportError::UnknownForm));
        assert_eq!(parse("<malloc>\n<total type=\"mmap\"/>\n</malloc>\n"), Err(ReportError::UnknownForm));
    }
}
