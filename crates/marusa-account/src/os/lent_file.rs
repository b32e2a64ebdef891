//! A file that a process has open, lent: pidfd_getfd(2) (Linux 5.6) duplicates the descriptor, which opens nothing and does not
//! stop the process; cachestat(2) (Linux 6.5) counts the pages of it that are in memory, by the kernel's own index.
//!
//! Closing the duplicate calls the file system's `flush`, which sends data to a server on NFS, CIFS and FUSE: so nothing is lent
//! that is not on a local file system (`os::mounted`).

use super::machine::base_page;
use super::pidfd;
use super::process::Process;
use crate::base::Bytes;
use rustix::fs::{AtFlags, Statx, StatxFlags};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The same number on every architecture (arch/*/kernel/syscalls, Linux 6.5); the libc crate does not have it.
const SYS_CACHESTAT: libc::c_long = 451;

/// Lends files of one process.
pub struct Lender {
    pidfd: OwnedFd,
}

impl Lender {
    pub fn of(process: &Process) -> io::Result<Lender> {
        Ok(Lender { pidfd: pidfd::of(process)? })
    }

    /// Needs the right to trace the process (PTRACE_MODE_ATTACH_REALCREDS).
    pub fn lend(&self, descriptor: i32) -> io::Result<OwnedFd> {
        Ok(pidfd_getfd(&self.pidfd, descriptor, PidfdGetfdFlags::empty())?)
    }
}

/// The bytes of a file that are in memory, whoever was charged for them.
pub fn cached_bytes(file: &OwnedFd) -> io::Result<Bytes> {
    /// include/uapi/linux/mman.h. A length of 0 is until the end.
    #[repr(C)]
    struct Range {
        offset: u64,
        length: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Counts {
        cached: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let (range, mut counts) = (Range { offset: 0, length: 0 }, Counts::default());
    // SAFETY: the descriptor is open, and both structs outlive the call.
    let failed =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, 0) } != 0;
    if failed {
        return Err(io::Error::last_os_error());
    }
    Ok(counts.cached.saturating_mul(base_page()))
}

/// What is known of a file below /proc/PID (`fd/3`) without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    pub is_regular: bool,
    pub inode: u64,
    /// Allocated bytes; for tmpfs, those in memory and in swap.
    pub allocated_bytes: Bytes,
}

/// Asks the file system: for local ones only.
pub fn facts(process: &Process, name: &str) -> io::Result<FileFacts> {
    statx(process.directory(), name, StatxFlags::BASIC_STATS).map(FileFacts::of)
}

pub fn facts_of(file: &OwnedFd) -> io::Result<FileFacts> {
    statx(file, "", StatxFlags::BASIC_STATS).map(FileFacts::of)
}

/// The device as the kernel knows it, without a question to the file system.
pub fn device(file: &OwnedFd) -> io::Result<(u32, u32)> {
    statx(file, "", StatxFlags::empty()).map(|found| (found.stx_dev_major, found.stx_dev_minor))
}

impl FileFacts {
    fn of(found: Statx) -> FileFacts {
        FileFacts {
            is_regular: u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG,
            inode: found.stx_ino,
            allocated_bytes: found.stx_blocks.saturating_mul(512),
        }
    }
}

/// An empty name means the file itself.
fn statx(at: impl AsFd, name: &str, wanted: StatxFlags) -> io::Result<Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    Ok(rustix::fs::statx(at, name, flags, wanted)?)
}

/// What the file system of a file holds, by fstatfs(2): for local ones only.
pub fn used_bytes(file: &OwnedFd) -> io::Result<Bytes> {
    let found = rustix::fs::fstatfs(file)?;
    let block = u64::try_from(found.f_bsize).unwrap_or(base_page());
    Ok(found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(block))
}

/// A memory file of our own: all of them lie on one mount that no list shows.
pub fn memory_file() -> io::Result<OwnedFd> {
    Ok(rustix::fs::memfd_create(c"marusa", rustix::fs::MemfdFlags::CLOEXEC)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::PAGE;
    use std::io::Write;

    #[test]
    fn a_file_of_our_own_lent_and_counted() {
        let mut file = std::fs::File::from(memory_file().expect("a memfd"));
        file.write_all(&[7; 5 << 12]).expect("written");
        let me = Process::own().expect("myself");
        let name = format!("fd/{}", file.as_raw_fd());
        let found = facts(&me, &name).expect("facts");
        assert!(found.is_regular && found.allocated_bytes == 5 * PAGE, "{found:?}");
        let lent = Lender::of(&me).expect("a pidfd").lend(file.as_raw_fd()).expect("lent");
        match cached_bytes(&lent) {
            Ok(bytes) => assert_eq!(bytes, 5 * PAGE),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSYS), "before Linux 6.5"),
        }
        assert!(Lender::of(&me).expect("a pidfd").lend(1 << 30).is_err());
    }
}
