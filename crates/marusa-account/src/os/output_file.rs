//! A file that the user asked for (`-o`, `--html`, `--csv`): whole or absent, private, and never written through a link or
//! into a file that another user prepared (`place.rs`).
//!
//! The bytes go to a file without a name, which gets one when all of them are there; who reads in the meantime sees the earlier
//! file. What is not a regular file is written to as it is: /dev/stdout, /dev/null, a FIFO of ours.

use super::place::{
    Facts, Found, Place, by_descriptor, check_own, facts_of, find, has_no_unnamed, own_uid, refused,
};
use crate::base::limits::FIFO_READER_WAIT;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a FIFO without a reader is asked again.
const FIFO_POLL: Duration = Duration::from_millis(10);

/// The end of the name that a file has while it is written.
pub const DRAFT_ENDING: &str = ".part";
/// Of a file's name in that of its draft: a name has at most 255 bytes.
const DRAFT_NAME_BYTES_MAX: usize = 200;

/// A file that is being written. Without `finish`, nothing of it stays.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    bytes: u64,
    /// A regular file gets its name at the end.
    place: Option<Place>,
    /// Its name until then, where the file system has no files without one.
    draft: Option<Place>,
}

/// Whether the user permits it: `--force`.
static OVERWRITES: AtomicBool = AtomicBool::new(false);

/// Lets this process write over files that are there.
pub fn overwrite() {
    OVERWRITES.store(true, Ordering::Relaxed);
}

pub fn overwrites() -> bool {
    OVERWRITES.load(Ordering::Relaxed)
}

/// Fails where `path` cannot be written without `--force`: before work that takes long.
pub fn check(path: &Path) -> io::Result<()> {
    match find(path)? {
        Found::Place(place) => place.facts()?.map_or(Ok(()), |facts| check_free(&facts)),
        Found::Descriptor(_) => Ok(()),
    }
}

/// A file that may still be needed is kept; a device or a FIFO loses nothing.
fn check_free(facts: &Facts) -> io::Result<()> {
    if matches!(facts.kind(), libc::S_IFIFO | libc::S_IFCHR) {
        return Ok(());
    }
    check_own(facts)?;
    match overwrites() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it exists; give another name, or --force to overwrite it",
        )),
    }
}

impl OutputFile {
    /// A file that the user asked for: never over one that is there, unless `--force` says so. `mode`: `file_mode::wanted()`,
    /// whatever the umask is.
    pub fn create(path: &Path, mode: u32) -> io::Result<OutputFile> {
        check(path)?;
        OutputFile::replace(path, mode)
    }

    /// A file that is ours to replace, like one of a cache.
    pub fn replace(path: &Path, mode: u32) -> io::Result<OutputFile> {
        let place = match find(path)? {
            Found::Descriptor(number) => return Ok(OutputFile::stream(duplicate(number)?)),
            Found::Place(place) => place,
        };
        if let Some(facts) = place.facts()? {
            match facts.kind() {
                libc::S_IFIFO | libc::S_IFCHR => return Ok(OutputFile::stream(open_stream(&place)?)),
                _ => check_own(&facts)?,
            }
        }
        let (file, draft) = match place.unnamed(mode) {
            Ok(file) => (file, None),
            Err(error) if has_no_unnamed(&error) => {
                let draft = draft_of(&place)?;
                (draft.create_new(mode)?, Some(draft))
            }
            Err(error) => return Err(error),
        };
        Ok(OutputFile { file, bytes: 0, place: Some(place), draft })
    }

    fn stream(file: File) -> OutputFile {
        OutputFile { file, bytes: 0, place: None, draft: None }
    }

    /// Waits until the disk has what was written so far.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Gives the file its name. Returns the number of bytes written.
    pub fn finish(mut self) -> io::Result<u64> {
        self.file.flush()?;
        let Some(place) = &self.place else { return Ok(self.bytes) };
        if self.draft.is_none() {
            let draft = draft_of(place)?;
            draft.take(&self.file)?;
            self.draft = Some(draft);
        }
        if let Some(draft) = &self.draft {
            draft.rename_to(place)?;
        }
        self.draft = None;
        Ok(self.bytes)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            let _ = draft.remove();
        }
    }
}

/// A whole file at once, in place of an earlier one.
pub fn replace(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<u64> {
    let mut file = OutputFile::replace(path, mode)?;
    file.write_all(bytes)?;
    file.finish()
}

/// A whole file at once that the user asked for.
pub fn write(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<u64> {
    let mut file = OutputFile::create(path, mode)?;
    file.write_all(bytes)?;
    file.finish()
}

/// A name next to the file that cannot be predicted. It begins as the file's does, so that what a kill left is recognised.
fn draft_of(place: &Place) -> io::Result<Place> {
    let chance = RandomState::new().hash_one(place.name());
    let name = place.name().as_bytes();
    let name = &name[..name.len().min(DRAFT_NAME_BYTES_MAX)];
    let ending = format!(".{chance:016x}{DRAFT_ENDING}");
    place.sibling(OsStr::from_bytes(&[b".", name, ending.as_bytes()].concat()))
}

fn duplicate(number: RawFd) -> io::Result<File> {
    // SAFETY: used for this one call, which fails for a number that is not of an open file.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(file, 0)?.into())
}

/// A FIFO or a character device of ours or of root's: opened without waiting, and only if it is still what was looked at.
fn open_stream(place: &Place) -> io::Result<File> {
    let pinned = place.open(libc::O_PATH)?;
    let facts = facts_of(&pinned)?;
    if !is_ours_to_write(&facts) {
        return Err(refused(format!("user {} owns this device or FIFO; give another name", facts.uid)));
    }
    let end = Instant::now() + FIFO_READER_WAIT;
    let file = loop {
        match reopen(&pinned) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) && Instant::now() < end => {
                std::thread::sleep(FIFO_POLL);
            }
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "no process reads from it; start one first",
                ));
            }
            opened => break opened?,
        }
    };
    rustix::fs::fcntl_setfl(&file, OFlags::WRONLY)?;
    Ok(file)
}

fn is_ours_to_write(facts: &Facts) -> bool {
    matches!(facts.kind(), libc::S_IFIFO | libc::S_IFCHR) && (facts.uid == 0 || facts.uid == own_uid())
}

fn reopen(pinned: &File) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(by_descriptor(pinned), flags, Mode::empty())?.into())
}

#[cfg(test)]
#[path = "output_file_tests.rs"]
mod tests;
