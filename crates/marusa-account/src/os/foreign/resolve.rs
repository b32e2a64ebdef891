//! A path resolved below a directory as if that were the root: neither ".." nor a symbolic link leads out of it.
//!
//! openat2(2), Linux 5.6, does so by itself where the path stays on one mount. Where it does not, where the kernel has no
//! such call, or where a seccomp filter forbids it (EPERM), the path is walked name by name, and each mount is checked before
//! anything below it is looked up: a lookup in a FUSE file system waits for the program that serves it.

use crate::base::limits::{FOREIGN_LINKS_MAX, FOREIGN_PATH_BYTES_MAX, FOREIGN_PATH_DEPTH_MAX};
use crate::os::place::{facts_of, open_at, read_link};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// How often a lookup is repeated that something renamed in the meantime made unsafe (openat2(2), EAGAIN).
const TRIES: usize = 16;

/// Says whether what was found may be opened, or gone through.
type Check<'a> = &'a dyn Fn(&OwnedFd) -> io::Result<()>;

/// A reference (O_PATH) to what lies at `path` below `root`, whatever kind of file that is.
pub fn below(root: &OwnedFd, path: &str, check: Check) -> io::Result<OwnedFd> {
    match by_kernel(root, path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EXDEV)) => {
            by_name(root, path, check)
        }
        found => found,
    }
}

/// By openat2. EXDEV: the path leads to another mount.
pub fn by_kernel(root: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let call = || openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
    let mut found = call();
    for _ in 1..TRIES {
        match &found {
            Err(Errno::AGAIN) => found = call(),
            _ => break,
        }
    }
    Ok(found?)
}

/// Name by name. What lies above a directory is known from the way down, so that nothing that is renamed in the meantime
/// makes ".." lead out of the root.
pub fn by_name(root: &OwnedFd, path: &str, check: Check) -> io::Result<OwnedFd> {
    let mut walk = Walk { root, down: Vec::new(), left: Vec::new(), links: 0 };
    walk.add(path.as_bytes())?;
    while let Some(name) = walk.left.pop() {
        walk.step(&name, check)?;
    }
    match walk.down.pop() {
        Some((found, _)) => Ok(found),
        None => root.try_clone(),
    }
}

struct Walk<'a> {
    root: &'a OwnedFd,
    /// The way down from the root, and whether each is a directory.
    down: Vec<(OwnedFd, bool)>,
    /// Names that are still to be looked up, the next one last.
    left: Vec<CString>,
    links: usize,
}

impl Walk<'_> {
    /// Puts the names of a path before the ones that are left. An empty last name demands a directory.
    fn add(&mut self, path: &[u8]) -> io::Result<()> {
        let error = |number| Err(io::Error::from_raw_os_error(number));
        if path.is_empty() {
            return error(libc::ENOENT);
        }
        if path.len() >= FOREIGN_PATH_BYTES_MAX {
            return error(libc::ENAMETOOLONG);
        }
        if path.starts_with(b"/") {
            self.down.clear();
        }
        for name in path.split(|byte| *byte == b'/').rev() {
            self.left.push(CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?);
        }
        if self.left.len() > FOREIGN_PATH_BYTES_MAX {
            return error(libc::ENAMETOOLONG);
        }
        Ok(())
    }

    fn step(&mut self, name: &CStr, check: Check) -> io::Result<()> {
        let error = |number| Err(io::Error::from_raw_os_error(number));
        if self.down.last().is_some_and(|(_, is_directory)| !is_directory) {
            return error(libc::ENOTDIR);
        }
        match name.to_bytes() {
            b"" | b"." => return Ok(()),
            b".." => {
                self.down.pop();
                return Ok(());
            }
            _ => {}
        }
        let here = self.down.last().map_or(self.root, |(directory, _)| directory);
        let found = OwnedFd::from(open_at(here, name, libc::O_PATH, 0)?);
        check(&found)?;
        let kind = facts_of(&found)?.kind();
        if kind == libc::S_IFLNK {
            self.links += 1;
            if self.links > FOREIGN_LINKS_MAX {
                return error(libc::ELOOP);
            }
            return self.add(read_link(&found)?.as_os_str().as_bytes());
        }
        if self.down.len() == FOREIGN_PATH_DEPTH_MAX {
            return error(libc::ENAMETOOLONG);
        }
        self.down.push((found, kind == libc::S_IFDIR));
        Ok(())
    }
}
