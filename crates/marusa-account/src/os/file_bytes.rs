//! The bytes of a file that another process may change while it is read: a library, a core. They are copied by pread(2), never
//! mapped: a page of a mapping that is truncated away raises SIGBUS, and a process that maps libjvm.so is taken for a JVM.
//!
//! Small reads go through windows that are kept, so that a walk over a structure costs few system calls; large ones go past
//! them. Memory is bounded whatever the file's length.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

const WINDOW_BYTES: u64 = 64 << 10;
/// Reads this long go past the windows.
const LARGE_BYTES: usize = 64 << 10;
const SEARCH_BYTES: usize = 1 << 20;

/// A file of the length that it had when it was opened.
pub struct FileBytes {
    source: Source,
    length: u64,
    /// A window is kept in the place that its number gives it.
    windows: Mutex<Vec<Option<Window>>>,
    windows_max: usize,
}

enum Source {
    File(File),
    Given(Vec<u8>),
}

struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl FileBytes {
    /// Keeps at most `windows` windows of 64 KiB.
    pub fn of(file: File, windows: usize) -> io::Result<FileBytes> {
        let length = file.metadata()?.len();
        Ok(FileBytes { source: Source::File(file), length, windows: places(windows), windows_max: windows })
    }

    pub fn given(bytes: Vec<u8>) -> FileBytes {
        FileBytes {
            length: bytes.len() as u64,
            source: Source::Given(bytes),
            windows: places(0),
            windows_max: 0,
        }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Fills `into` from `at`. `None`: the file is not that long, or not any more.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Option<()> {
        let end = at.checked_add(into.len() as u64).filter(|end| *end <= self.length)?;
        let file = match &self.source {
            Source::Given(bytes) => {
                into.copy_from_slice(&bytes[usize::try_from(at).ok()?..usize::try_from(end).ok()?]);
                return Some(());
            }
            Source::File(file) => file,
        };
        if into.len() >= LARGE_BYTES || self.windows_max == 0 {
            return file.read_exact_at(into, at).ok();
        }
        let mut windows = self.windows.lock().ok()?;
        let mut done = 0;
        while done < into.len() {
            let here = at + done as u64;
            let window = window(file, &mut windows, here / WINDOW_BYTES * WINDOW_BYTES)?;
            let from = window.get((here % WINDOW_BYTES) as usize..).filter(|rest| !rest.is_empty())?;
            let step = from.len().min(into.len() - done);
            into[done..done + step].copy_from_slice(&from[..step]);
            done += step;
        }
        Some(())
    }

    /// Whether `needle` lies anywhere in the file. `None`: it is longer than `max`, or it was cut while it was searched.
    pub fn contains(&self, needle: &[u8], max: u64) -> Option<bool> {
        let overlap = needle.len().saturating_sub(1) as u64;
        let mut piece = vec![0; SEARCH_BYTES + overlap as usize];
        let mut at = 0;
        while at < self.length && self.length <= max {
            let piece = &mut piece[..(self.length - at).min(SEARCH_BYTES as u64 + overlap) as usize];
            self.read(at, piece)?;
            if memchr::memmem::find(piece, needle).is_some() {
                return Some(true);
            }
            at += SEARCH_BYTES as u64;
        }
        (self.length <= max).then_some(false)
    }

    /// `length` bytes from `at`, if they are all there and no more than `max`.
    pub fn copy(&self, at: u64, length: u64, max: u64) -> Option<Vec<u8>> {
        at.checked_add(length).filter(|end| *end <= self.length && length <= max)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.read(at, &mut bytes)?;
        Some(bytes)
    }
}

fn places(count: usize) -> Mutex<Vec<Option<Window>>> {
    Mutex::new((0..count).map(|_| None).collect())
}

/// The window that starts at `start`, kept or read. It is shorter than others at the end of the file, and empty behind it.
fn window<'a>(file: &File, kept: &'a mut [Option<Window>], start: u64) -> Option<&'a [u8]> {
    let place = usize::try_from(start / WINDOW_BYTES % kept.len().max(1) as u64).ok()?;
    let place = kept.get_mut(place)?;
    if place.as_ref().is_none_or(|window| window.start != start) {
        let mut bytes = place.take().map(|window| window.bytes).unwrap_or_default();
        bytes.resize(WINDOW_BYTES as usize, 0);
        let length = read_up_to(file, start, &mut bytes)?;
        bytes.truncate(length);
        *place = Some(Window { start, bytes });
    }
    place.as_ref().map(|window| &window.bytes[..])
}

fn read_up_to(file: &File, start: u64, into: &mut [u8]) -> Option<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], start + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(bytes, 0).expect("written");
        file
    }

    #[test]
    fn every_range_has_the_files_bytes_whatever_was_read_before() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|number| (number / 7 % 251) as u8).collect();
        let read = FileBytes::of(file(&bytes), 2).expect("read");
        assert_eq!(read.length(), 300_000);
        for (at, length) in
            [(0, 10), (65_530, 20), (131_000, 60_000), (299_999, 1), (3, 200_000), (65_530, 20)]
        {
            assert_eq!(
                read.copy(at, length, 1 << 20).as_deref(),
                Some(&bytes[at as usize..][..length as usize])
            );
        }
        for (at, length) in [(299_999, 2), (300_000, 1), (u64::MAX, 1), (0, 300_001)] {
            assert_eq!(read.copy(at, length, 1 << 20), None, "{at} {length}");
        }
        assert_eq!(read.copy(0, 9, 8), None, "over the limit");
    }

    #[test]
    fn a_file_that_is_cut_while_it_is_read_ends_early() {
        let cut = file(&[7; 200_000]);
        let read = FileBytes::of(cut.try_clone().expect("open"), 4).expect("read");
        cut.set_len(70_000).expect("cut");
        assert!(read.copy(69_000, 1_000, 1 << 20).is_some());
        assert_eq!(read.copy(69_000, 1_001, 1 << 20), None);
        assert_eq!(read.copy(0, 200_000, 1 << 20), None);
        assert_eq!(read.copy(140_000, 4, 1 << 20), None);
    }

    #[test]
    fn a_word_is_found_also_where_two_pieces_meet() {
        let mut bytes = vec![b'.'; 2 * SEARCH_BYTES + 100];
        let read = |bytes: &[u8]| FileBytes::of(file(bytes), 0).expect("read");
        assert_eq!(read(&bytes).contains(b"needle", u64::MAX), Some(false));
        assert_eq!(read(&bytes).contains(b"needle", 100), None, "over the limit");
        bytes[SEARCH_BYTES - 3..SEARCH_BYTES + 3].copy_from_slice(b"needle");
        assert_eq!(read(&bytes).contains(b"needle", u64::MAX), Some(true));
        bytes.truncate(SEARCH_BYTES + 2);
        assert_eq!(read(&bytes).contains(b"needle", u64::MAX), Some(false));
        assert_eq!(read(b"").contains(b"needle", 0), Some(false));
    }

    #[test]
    fn given_bytes_are_read_alike() {
        let read = FileBytes::given(b"abcdef".to_vec());
        assert_eq!(read.copy(2, 3, 9).as_deref(), Some(&b"cde"[..]));
        assert_eq!((read.copy(5, 2, 9), read.copy(6, 0, 9)), (None, Some(Vec::new())));
    }
}
