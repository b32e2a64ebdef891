//! Settings of the host for the length of a test: one test at a time has them, also among the binaries that run on this
//! machine (a lock file), and what was there is put back whatever happens.

use std::fs::{File, read_to_string, write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

pub const THP: &str = "/sys/kernel/mm/transparent_hugepage";
pub const HUGETLB: &str = "/sys/kernel/mm/hugepages";

/// Changed files with what they held, and the lock. Files are put back in the opposite order.
pub struct Host {
    changed: Vec<(PathBuf, String)>,
    _lock: File,
}

impl Host {
    pub fn lock() -> Host {
        let path = std::env::temp_dir().join("marusa-host.lock");
        let lock = File::options().create(true).truncate(false).write(true).open(path).expect("a lock file");
        // SAFETY: the file is open; the lock ends with it.
        assert_eq!(unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) }, 0);
        Host { changed: Vec::new(), _lock: lock }
    }

    /// Whether the host took the value.
    pub fn set(&mut self, path: String, value: &str) -> Result<(), String> {
        let was = read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        write(&path, value).map_err(|error| format!("{path}: {error}"))?;
        let chosen = |text: &str| match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
            Some((word, _)) => word.to_string(),
            None => text.trim().to_string(),
        };
        let now = chosen(&read_to_string(&path).unwrap_or_default());
        self.changed.push((PathBuf::from(&path), chosen(&was)));
        if now == value { Ok(()) } else { Err(format!("{path} took {now:?} for {value:?}")) }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for (path, was) in self.changed.drain(..).rev() {
            if let Err(error) = write(&path, was) {
                eprintln!("{} could not be put back: {error}", path.display());
            }
        }
    }
}
