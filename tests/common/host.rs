//! Settings of the host for the length of a test: one test at a time has them, also among the binaries that run on this
//! machine (a lock file), and what was there is restored whatever happens.

use super::{is_root, skip};
use std::fs::{File, read_to_string, write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

pub const THP: &str = "/sys/kernel/mm/transparent_hugepage";
pub const HUGETLB: &str = "/sys/kernel/mm/hugepages";

/// How often a pool of huge pages is asked to grow again.
const POOL_TRIES: usize = 4;

/// Changed files with what they held, and the lock. Files are restored in the opposite order.
pub struct Host {
    changed: Vec<(PathBuf, String)>,
    _lock: File,
}

impl Host {
    /// The host with these settings; says why not where it is not possible.
    pub fn with<V: AsRef<str>>(settings: &[(String, V)]) -> Option<Host> {
        if !is_root() {
            skip("only root may change the host's settings");
            return None;
        }
        let mut host = Host::lock();
        for (path, value) in settings {
            if let Err(why) = host.set(path.clone(), value.as_ref()) {
                skip(&why);
                return None;
            }
        }
        Some(host)
    }

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
        let mut now = chosen(&read_to_string(&path).unwrap_or_default());
        // On a machine whose memory is in small pieces a pool grows when these are put together, without the page cache.
        for _ in 0..POOL_TRIES {
            if now == value || !path.ends_with("nr_hugepages") {
                break;
            }
            let _ = write("/proc/sys/vm/drop_caches", "1");
            let _ = write("/proc/sys/vm/compact_memory", "1");
            write(&path, value).map_err(|error| format!("{path}: {error}"))?;
            now = chosen(&read_to_string(&path).unwrap_or_default());
        }
        self.changed.push((PathBuf::from(&path), chosen(&was)));
        if now == value { Ok(()) } else { Err(format!("{path} took {now:?} for {value:?}")) }
    }
}

impl Host {
    /// How many changes there are, for `undo_to`.
    pub fn changes(&self) -> usize {
        self.changed.len()
    }

    /// Puts back what was changed since.
    pub fn undo_to(&mut self, changes: usize) {
        for (path, was) in self.changed.drain(changes.min(self.changed.len())..).rev() {
            if let Err(error) = write(&path, was) {
                eprintln!("{} could not be restored: {error}", path.display());
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.undo_to(0);
    }
}
