//! Files that the user names: snapshots, recordings, cores, accounts, logs, saved trials. They may come from a stranger, and the
//! name may be that of a FIFO or a device, which would block, never end, or do something when it is opened. So there is one way
//! to open them: regular files only, without waiting, and never more bytes than the caller has a limit for. Symbolic links are
//! followed: the user gave the name.

use super::{foreign, small_file};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    foreign::open(path.as_ref())
}

/// The whole file; one that has more than `bytes_max` is an error.
pub fn read(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_all(&mut open(path)?, bytes_max)
}

/// What is left of an open file.
pub fn read_all(file: &mut File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_long = || {
        let what = format!("longer than the {} MiB that are read of such a file", bytes_max >> 20);
        io::Error::new(io::ErrorKind::FileTooLarge, what)
    };
    // A file of /proc has length 0 and may never end; others may grow while they are read.
    if file.metadata()?.len() > bytes_max {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_long()) } else { Ok(bytes) }
}

/// As `read`; bytes that are no UTF-8 are an error.
pub fn text(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<String> {
    as_text(read(path, bytes_max)?)
}

pub fn as_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text"))
}

/// The first bytes of a file, at most `bytes_max`.
pub fn start(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    small_file::start(open(path)?, bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn only_regular_files_are_opened_and_no_open_waits() {
        let directory = tempfile::tempdir().expect("a directory");
        let fifo = directory.path().join("fifo");
        let name = CString::new(fifo.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the name outlives the call, which makes a file in a directory of ours.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&fifo, &link).expect("a link");
        for path in [fifo.as_path(), &link, Path::new("/dev/zero"), directory.path()] {
            let error = open(path).expect_err("no regular file");
            assert_eq!(error.to_string(), "not a regular file", "{}", path.display());
        }
        assert_eq!(
            open(directory.path().join("none")).map(|_| ()).map_err(|e| e.kind()),
            Err(io::ErrorKind::NotFound)
        );
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, [7; 100]).expect("ours");
        assert_eq!(read(&path, 100).map(|bytes| bytes.len()).ok(), Some(100));
        assert_eq!(read(&path, 99).map_err(|error| error.kind()), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(start(&path, 3).ok(), Some(vec![7; 3]));
        // Its reported length is 0, but it has more.
        assert_eq!(
            read("/proc/self/maps", 9).map_err(|error| error.kind()),
            Err(io::ErrorKind::FileTooLarge)
        );
        fs::write(&path, [0xff]).expect("ours");
        assert!(text(&path, 9).is_err());
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert_eq!(read(&link, 9).ok(), Some(vec![0xff]), "the user gave the name");
    }
}
