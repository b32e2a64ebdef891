//! One reading of a few pages at this very moment, cheap enough to be taken before and after each change of them: what is in
//! memory, and whether it is one huge page.
//!
//! PAGEMAP_SCAN answers both. Before Linux 6.7 there are the words of /proc/PID/pagemap, which know no huge pages.

use super::machine::base_page;
use super::pagemap_scan::each_now;
use super::pagemap_words::words_of;
use crate::base::{Bytes, Gap, Known, Range, Why};
use std::fs::File;

/// More is not looked at by words: one block of the largest huge page that `act` makes.
const WORD_BYTES_MAX: Bytes = 32 << 20;

/// The pages of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// In memory, without the ones that are the zero page.
    pub resident: Bytes,
    /// Mapped to the zero page: read, never written, or found to be all zeros.
    pub zero: Bytes,
    pub swapped: Bytes,
    /// The part of `resident` mapped by 2 MiB entries; `None` where this kernel does not say.
    pub huge: Option<Bytes>,
}

/// By an open /proc/PID/pagemap.
pub fn look(pagemap: &File, range: Range) -> Known<Look> {
    let mut look = Look { huge: Some(0), ..Look::default() };
    let scanned = each_now(pagemap, range, |piece, now| {
        let bytes = piece.intersect(range).bytes();
        match now {
            now if now.is_swapped => look.swapped += bytes,
            now if now.is_zero_page => look.zero += bytes,
            now => {
                look.resident += bytes;
                look.huge = look.huge.map(|huge| huge + if now.is_huge { bytes } else { 0 });
            }
        }
        0
    });
    match scanned {
        Err(Gap { why: Why::NotInThisKernel, .. }) => by_words(pagemap, range),
        scanned => scanned.map(|()| look),
    }
}

/// A page that is not exclusive is the zero page, or shared with a forked process, which is taken for it.
fn by_words(pagemap: &File, range: Range) -> Known<Look> {
    if range.bytes() > WORD_BYTES_MAX {
        return Err(Gap::new("/proc/PID/pagemap", Why::OverLimit));
    }
    let mut look = Look::default();
    for word in words_of(pagemap, range)? {
        if word.is_swapped() {
            look.swapped += base_page();
        } else if word.is_present() && (word.is_exclusive() || word.is_file()) {
            look.resident += base_page();
        } else if word.is_present() {
            look.zero += base_page();
        }
    }
    Ok(look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;
    use crate::base::PAGE;

    #[test]
    fn pages_that_were_written_are_there_and_others_are_not() {
        let pages = 8;
        let length = pages * PAGE as usize;
        let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, of which three pages are written or read.
        let at = unsafe {
            let at = libc::mmap(std::ptr::null_mut(), length, rights, kind, -1, 0).cast::<u8>();
            assert!(!at.is_null() && at as isize != -1);
            libc::madvise(at.cast(), length, libc::MADV_NOHUGEPAGE);
            at.write(1);
            at.add(2 * PAGE as usize).write(1);
            // Only read: the zero page.
            assert_eq!(at.add(4 * PAGE as usize).read_volatile(), 0);
            at
        };
        let range = Range::sized(Addr(at as u64), length as u64);
        let pagemap = File::open("/proc/self/pagemap").expect("my own");
        let found = look(&pagemap, range).expect("a kernel with pagemap");
        assert_eq!((found.resident, found.zero, found.swapped), (2 * PAGE, PAGE, 0));
        assert!(found.huge.is_none_or(|huge| huge == 0));
        let by_words = by_words(&pagemap, range).expect("words");
        assert_eq!((by_words.resident, by_words.zero, by_words.huge), (2 * PAGE, PAGE, None));
        // SAFETY: the mapping made above; nothing refers to it.
        unsafe { libc::munmap(at.cast(), length) };
    }
}
