//! The header that Native Memory Tracking puts before each block, in its two eras.
//!
//! JDK 8 to 17.0.5: `{size_t size; flags:8, pos_idx:16, bucket_idx:40}`, nothing behind the block (services/mallocTracker.hpp
//! of jdk8u and jdk11u). Unless NMT keeps details, only the flags of the second word are written: the rest is what was
//! there before. JDK 17.0.6 and 18 on (JDK-8275320): `{u64 size; u32 site; u8 tag; u8 unused; u16 0xE99E}` and the bytes
//! E8 8E behind the block (nmt/mallocHeader.hpp of JDK 25); a freed block has D99D and D8 8D.
//!
//! Which era it is, blocks that are known to be the VM's tell.

use crate::base::blocks::Head;
use crate::base::{Bytes, Range};
use crate::os::machine::base_page;

pub const HEADER_BYTES: Bytes = 16;
pub const FOOTER: [u8; 2] = [0xe8, 0x8e];
const CANARY: u64 = 0xe99e;
/// `MallocHeader::max_reasonable_malloc_size`.
const SIZE_MAX: Bytes = 256 << 30;
/// malloc rounds up to 16, and gives 16 more where so little would be left over.
const ROUNDING_MAX: Bytes = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// No canary: a block is proved by its size alone.
    Plain,
    /// Canaries before and behind.
    Marked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub requested_bytes: Bytes,
    pub tag: u8,
}

impl Layout {
    /// The layout of a block that is known to be the VM's, by the two words before what the VM got; `None`: no header.
    pub fn of(words: [u64; 2], requested_bytes: Bytes, tag: u8) -> Option<Layout> {
        [Layout::Marked, Layout::Plain].into_iter().find(|layout| {
            let header = layout.header(words);
            header.is_some_and(|header| header.requested_bytes == requested_bytes && header.tag == tag)
        })
    }

    fn header(self, words: [u64; 2]) -> Option<Header> {
        let [size, marks] = words;
        if size > SIZE_MAX {
            return None;
        }
        match self {
            Layout::Plain => Some(Header { requested_bytes: size, tag: marks as u8 }),
            Layout::Marked if marks >> 40 == CANARY << 8 => {
                Some(Header { requested_bytes: size, tag: (marks >> 32) as u8 })
            }
            Layout::Marked => None,
        }
    }

    /// The words of a header without what it is not known by: where the block was allocated, and in a plain header that was
    /// written without details what the memory held before.
    pub fn evidence(self, words: [u64; 2]) -> [u64; 2] {
        let [size, marks] = words;
        match self {
            Layout::Plain => [size, marks & 0xff],
            Layout::Marked => [size, marks & !u64::from(u32::MAX)],
        }
    }

    /// The header at the start of a block that malloc says is in use.
    pub fn of_block(self, payload: Range, head: &Head) -> Option<Header> {
        let header = self.header([head[0], head[1]])?;
        let footer_bytes = if self == Layout::Marked { FOOTER.len() as u64 } else { 0 };
        let left =
            payload.bytes().checked_sub(HEADER_BYTES + footer_bytes)?.checked_sub(header.requested_bytes)?;
        // `os::malloc` makes 1 of a size of 0 (runtime/os.cpp of jdk8u, jdk11u and 17); zeros are what a replay has of others'.
        if self == Layout::Plain && header.requested_bytes == 0 {
            return None;
        }
        let fits = left < ROUNDING_MAX || (payload.end.is_aligned(base_page()) && left < base_page());
        (self == Layout::Marked || fits).then_some(header)
    }

    /// The first header that starts in `bytes` at or after `from`, at a multiple of 16; marked ones only.
    pub fn next(self, bytes: &[u8], from: usize) -> Option<(usize, Header)> {
        if self == Layout::Plain {
            return None;
        }
        let first = from.div_ceil(16);
        let headers = bytes.as_chunks::<16>().0.get(first..)?.iter().enumerate();
        for (index, chunk) in headers {
            // Two bytes sort nearly all out.
            if chunk[14..] != [0x9e, 0xe9] {
                continue;
            }
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| chunk[at + byte]));
            if let Some(header) = self.header([word(0), word(8)]) {
                return Some(((first + index) * 16, header));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_os_thread_tells_the_era() {
        // JDK 11: e0.. | 02; JDK 17, 21, 25: c8.. | site 0, tag 2, canary.
        assert_eq!(Layout::of([0xe0, 2], 0xe0, 2), Some(Layout::Plain));
        assert_eq!(Layout::of([0xc8, 0xe99e_0002_0000_0000], 0xc8, 2), Some(Layout::Marked));
        assert_eq!(Layout::of([0, 0xd5], 0xc8, 2), None, "the size word of glibc's chunk");
    }

    #[test]
    fn a_marked_block_may_be_any_part_of_its_chunk_and_a_plain_one_fills_it() {
        let payload = Range::of(0x1000, 0x1038);
        let marked = |size| Layout::Marked.of_block(payload, &[size, 0xe99e_0009_0000_0007, 1, 2]);
        assert_eq!(marked(0x20), Some(Header { requested_bytes: 0x20, tag: 9 }));
        assert_eq!(
            marked(0x26),
            Some(Header { requested_bytes: 0x26, tag: 9 }),
            "with its footer it just fits"
        );
        assert_eq!(marked(0x27), None);
        assert_eq!(Layout::Marked.of_block(payload, &[0x20, 0xd99d_0009_0000_0000, 0, 0]), None, "freed");
        let plain = |size| Layout::Plain.of_block(payload, &[size, 0x1234_5609, 1, 2]);
        assert_eq!(plain(0x28), Some(Header { requested_bytes: 0x28, tag: 9 }));
        assert_eq!((plain(0x29), plain(8)), (None, None));
        assert_eq!(Layout::Plain.of_block(Range::of(0x1000, 0x1018), &[0; 4]), None, "not known");
        let mapped = Range::of(0x7f00_0000_0010, 0x7f00_0002_1000);
        let head = |size| Layout::Plain.of_block(mapped, &[size, 8, 0, 0]).is_some();
        assert!(head(0x20_000) && head(0x20_fe0) && !head(0x1_f000));
        assert_eq!(Layout::Plain.of_block(payload, &[u64::MAX, 1, 0, 0]), None);
    }

    #[test]
    fn of_a_header_only_size_tag_and_canary_are_evidence() {
        let stale = u64::from_le_bytes(*b"\x02secret!");
        assert_eq!(Layout::Plain.evidence([0xe0, stale]), [0xe0, 2]);
        let marks = 0xe99e_0002_0000_0000;
        assert_eq!(Layout::Marked.evidence([0xc8, marks | 0x7465_7274]), [0xc8, marks]);
        for (layout, words) in [(Layout::Plain, [0xe0, stale]), (Layout::Marked, [0xc8, marks | 7])] {
            assert_eq!(layout.header(layout.evidence(words)), layout.header(words));
        }
    }

    #[test]
    fn headers_are_found_where_they_may_be() {
        let mut bytes = vec![0x41; 100];
        bytes[32..48].copy_from_slice(&[0x18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0x9e, 0xe9]);
        let header = Header { requested_bytes: 0x18, tag: 5 };
        assert_eq!(Layout::Marked.next(&bytes, 0), Some((32, header)));
        assert_eq!(Layout::Marked.next(&bytes, 17), Some((32, header)));
        assert_eq!((Layout::Marked.next(&bytes, 33), Layout::Plain.next(&bytes, 0)), (None, None));
        assert_eq!(Layout::Marked.next(&bytes, 4096), None);
        bytes[45] = 1;
        assert_eq!(Layout::Marked.next(&bytes, 0), None, "the byte that is never used");
    }
}
