//! A lock on a file of ours: it ends with the file, however the process ends.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Whether the lock was free; it does not wait.
pub fn try_lock(file: &File) -> io::Result<bool> {
    // SAFETY: the file is open, and the lock ends with it.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) }
}

/// Gives it back, whoever else still has the file: a child that was just forked has it until it runs its program.
pub fn unlock(file: &File) {
    // SAFETY: the file is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}
