//! A path resolved below a directory as if that were the root: neither ".." nor a symbolic link leads out of it.
//!
//! openat2(2), Linux 5.6, does so by itself where the path stays on one mount. Where it does not, where the kernel has no
//! such call, or where a seccomp filter forbids it (EPERM), the path is walked name by name, and each mount is checked before
//! anything below it is looked up: a lookup in a FUSE file system waits for the program that serves it.

use super::mounts::Checked;
use super::owned;
use crate::base::limits::{FOREIGN_LINKS_MAX, FOREIGN_PATH_BYTES_MAX, FOREIGN_PATH_DEPTH_MAX};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// How often a lookup is repeated that something renamed in the meantime made unsafe (openat2(2), EAGAIN).
const TRIES: usize = 16;

/// A reference (O_PATH) to what lies at `path` below `root`, whatever kind of file that is.
pub fn below(root: &OwnedFd, path: &str, mounts: &dyn Checked) -> io::Result<OwnedFd> {
    match by_kernel(root, path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EXDEV)) => {
            by_name(root, path, mounts)
        }
        found => found,
    }
}

/// By openat2. EXDEV: the path leads to another mount.
pub fn by_kernel(root: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let path = CString::new(path).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `open_how` is three numbers, for which 0 is a valid value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS | libc::RESOLVE_NO_XDEV;
    let call = || {
        // SAFETY: the directory is open; `path` and `how` outlive the call, and the size is that of `how`.
        owned(unsafe {
            libc::syscall(
                libc::SYS_openat2,
                root.as_raw_fd(),
                path.as_ptr(),
                &raw const how,
                size_of::<libc::open_how>(),
            )
        })
    };
    let mut found = call();
    for _ in 1..TRIES {
        match &found {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => found = call(),
            _ => break,
        }
    }
    found
}

/// Name by name. What lies above a directory is known from the way down, so that nothing that is renamed in the meantime
/// makes ".." lead out of the root.
pub fn by_name(root: &OwnedFd, path: &str, mounts: &dyn Checked) -> io::Result<OwnedFd> {
    let mut walk = Walk { root, down: Vec::new(), left: Vec::new(), links: 0 };
    walk.add(path.as_bytes())?;
    while let Some(name) = walk.left.pop() {
        walk.step(&name, mounts)?;
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

    fn step(&mut self, name: &CStr, mounts: &dyn Checked) -> io::Result<()> {
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
        let found = reference(here, name)?;
        mounts.check(&found)?;
        let kind = kind(&found)?;
        if kind == libc::S_IFLNK {
            self.links += 1;
            if self.links > FOREIGN_LINKS_MAX {
                return error(libc::ELOOP);
            }
            return self.add(&link(&found)?);
        }
        if self.down.len() == FOREIGN_PATH_DEPTH_MAX {
            return error(libc::ENAMETOOLONG);
        }
        self.down.push((found, kind == libc::S_IFDIR));
        Ok(())
    }
}

/// What one name stands for, a link itself included.
fn reference(directory: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the directory is open, and `name` is a NUL-terminated string that outlives the call.
    owned(unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags) }.into())
}

/// The text of a symbolic link.
fn link(reference: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut text = vec![0_u8; FOREIGN_PATH_BYTES_MAX];
    // SAFETY: the empty name means the link itself; the buffer outlives the call, and the length is its own.
    let length = unsafe {
        libc::readlinkat(reference.as_raw_fd(), c"".as_ptr(), text.as_mut_ptr().cast(), text.len())
    };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    text.truncate(length);
    Ok(text)
}

/// The type of a file: S_IFREG, S_IFDIR, S_IFLNK, ...
pub fn kind(reference: &OwnedFd) -> io::Result<libc::mode_t> {
    Ok(facts(reference)?.st_mode & libc::S_IFMT)
}

/// Owner, group and mode.
pub fn facts(reference: &OwnedFd) -> io::Result<libc::stat> {
    // SAFETY: an all-zero stat is a valid one.
    let mut facts: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and `facts` outlives the call.
    match unsafe { libc::fstat(reference.as_raw_fd(), &mut facts) } {
        0 => Ok(facts),
        _ => Err(io::Error::last_os_error()),
    }
}
