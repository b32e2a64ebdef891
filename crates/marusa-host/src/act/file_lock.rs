//! A lock on a file of ours: it ends with the file, however the process ends.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// Whether the lock was free; it does not wait.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}

/// Gives it back, whoever else still has the file: a child that was just forked has it until it runs its program.
pub fn unlock(file: &File) {
    let _ = flock(file, FlockOperation::Unlock);
}
