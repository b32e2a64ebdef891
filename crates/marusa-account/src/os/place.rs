//! A name in a directory, found without following a link that another user could have planted.
//!
//! Root writes `-o /tmp/report.html`; whoever put a symbolic link of that name there would choose the file that root
//! overwrites. The kernel's `fs.protected_symlinks` guards sticky, world-writable directories only, and may be off
//! (Documentation/admin-guide/sysctl/fs.rst), so the path is walked here one component at a time, with O_NOFOLLOW.
//! A link is followed only if we or root own both it and its directory. From then on the name is used through the open
//! directory: no component can be exchanged between the check and the use.

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Links in one path: the kernel's own limit, MAXSYMLINKS (include/linux/namei.h).
const LINKS_MAX: usize = 40;
/// File system type of /proc (statfs(2)).
const PROC_SUPER_MAGIC: u64 = 0x9fa0;

/// What a path leads to.
#[derive(Debug)]
pub enum Found {
    /// A name in an open directory; the file itself may be absent.
    Place(Place),
    /// A file that we have open already: /dev/stdout, /dev/fd/3.
    Descriptor(RawFd),
}

/// A name in an open directory.
#[derive(Debug)]
pub struct Place {
    pub directory: OwnedFd,
    pub name: CString,
    /// As the user wrote it.
    pub shown: PathBuf,
}

/// What is there, without a link being followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub device: u64,
    pub inode: u64,
}

impl Facts {
    pub fn kind(&self) -> u32 {
        self.mode & libc::S_IFMT
    }
    /// Whether we or root own it.
    fn is_trusted(&self) -> bool {
        self.uid == 0 || self.uid == own_uid()
    }
}

/// The effective user id of this process.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Place {
    /// The place of a regular file; what else the path may lead to is refused.
    pub fn of(path: &Path) -> io::Result<Place> {
        match find(path)? {
            Found::Place(place) => Ok(place),
            Found::Descriptor(_) => {
                Err(refused("it is an open file of this process, not a place for a new one"))
            }
        }
    }

    /// Another name in the same directory.
    pub fn sibling(&self, name: &OsStr) -> io::Result<Place> {
        let shown = self.shown.with_file_name(name);
        Ok(Place { directory: self.directory.try_clone()?, name: CString::new(name.as_bytes())?, shown })
    }

    pub fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.name.to_bytes())
    }

    pub fn facts(&self) -> io::Result<Option<Facts>> {
        match facts_at(&self.directory, &self.name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            facts => facts.map(Some),
        }
    }

    /// A new file. Fails where something has this name, whatever it is.
    pub fn create_new(&self, mode: u32) -> io::Result<File> {
        self.create_with(0, mode)
    }

    /// A new file, in place of one that has this name.
    pub fn create_afresh(&self, mode: u32) -> io::Result<File> {
        match self.create_new(mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.remove()?;
                self.create_new(mode)
            }
            made => made,
        }
    }

    /// A file that is added to: ours that is there, or a new one.
    pub fn open_log(&self, mode: u32) -> io::Result<File> {
        match self.create_with(libc::O_APPEND, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.open_own(libc::O_RDWR | libc::O_APPEND)
            }
            made => made,
        }
    }

    /// What has this name, without a link being followed.
    pub fn open(&self, flags: libc::c_int) -> io::Result<File> {
        open_at(&self.directory, &self.name, flags, 0)
    }

    /// A new file that has no name yet.
    pub fn unnamed(&self, mode: u32) -> io::Result<File> {
        let file = open_at(&self.directory, c".", libc::O_WRONLY | libc::O_TMPFILE, mode)?;
        give_mode(&file, mode)?;
        Ok(file)
    }

    /// Gives this name to a file that has none, unless it is taken.
    pub fn take(&self, unnamed: &File) -> io::Result<()> {
        let follow = AtFlags::SYMLINK_FOLLOW;
        Ok(rustix::fs::linkat(CWD, by_descriptor(unnamed), &self.directory, &self.name, follow)?)
    }

    fn create_with(&self, flags: libc::c_int, mode: u32) -> io::Result<File> {
        let flags = flags | libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        let file = open_at(&self.directory, &self.name, flags, mode)?;
        give_mode(&file, mode)?;
        Ok(file)
    }

    /// A regular file of ours that is there. `flags`: O_RDONLY, O_RDWR, O_WRONLY | O_APPEND.
    pub fn open_own(&self, flags: libc::c_int) -> io::Result<File> {
        let file = self.open(flags | libc::O_NONBLOCK | libc::O_NOCTTY)?;
        check_own(&facts_of(&file)?)?;
        Ok(file)
    }

    /// Gives the file this name instead; what has it already is replaced.
    pub fn rename_to(&self, to: &Place) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.directory, &self.name, &to.directory, &to.name)?)
    }

    /// A second name of the same file.
    pub fn link_to(&self, to: &Place) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.directory, &self.name, &to.directory, &to.name, AtFlags::empty())?)
    }

    pub fn make_directory(&self) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.directory, &self.name, Mode::from_raw_mode(0o755))?)
    }

    pub fn remove_directory(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::REMOVEDIR)?)
    }

    pub fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())?)
    }
}

/// A new file in place of one that has this name.
pub fn afresh(path: &Path, mode: u32) -> io::Result<File> {
    Place::of(path)?.create_afresh(mode)
}

/// Gives a new file its mode, whatever the umask took from it.
pub(super) fn give_mode(file: &File, mode: u32) -> io::Result<()> {
    if facts_of(file)?.mode & 0o7777 == mode {
        Ok(())
    } else {
        file.set_permissions(Permissions::from_mode(mode))
    }
}

/// A regular file of ours may be written to or replaced; nothing else.
pub(super) fn check_own(facts: &Facts) -> io::Result<()> {
    match facts.kind() {
        libc::S_IFREG if facts.uid == own_uid() => Ok(()),
        libc::S_IFREG => Err(refused(format!(
            "it belongs to user {}, not to us; give another name or remove it",
            facts.uid
        ))),
        libc::S_IFLNK => Err(refused("it is a symbolic link now; give the path that it points to")),
        _ => Err(refused("it is not a regular file; give another name")),
    }
}

/// Walks `path`.
pub fn find(path: &Path) -> io::Result<Found> {
    let mut at = open_directory(if path.is_absolute() { c"/" } else { c"." })?;
    let mut rest = parts(path);
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        let name = CString::new(part.as_bytes())?;
        let here = match open_at(&at, &name, libc::O_PATH | libc::O_NOFOLLOW, 0) {
            Ok(here) => here,
            Err(error) if error.kind() == io::ErrorKind::NotFound && rest.is_empty() => {
                return Ok(Found::Place(Place { directory: at, name, shown: path.to_path_buf() }));
            }
            Err(error) => return Err(error),
        };
        let facts = facts_of(&here)?;
        match facts.kind() {
            libc::S_IFLNK => {
                if let Some(number) = descriptor(&at, &part)? {
                    return Ok(Found::Descriptor(number));
                }
                check_link(&at, &facts, &part)?;
                links += 1;
                if links > LINKS_MAX {
                    return Err(io::Error::from_raw_os_error(libc::ELOOP));
                }
                let target = read_link(&here)?;
                if target.is_absolute() {
                    at = open_directory(c"/")?;
                }
                parts(&target).into_iter().rev().for_each(|part| rest.push_front(part));
            }
            libc::S_IFDIR => at = OwnedFd::from(here),
            _ if rest.is_empty() => {
                return Ok(Found::Place(Place { directory: at, name, shown: path.to_path_buf() }));
            }
            _ => return Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EISDIR))
}

/// The names to walk; a `..` is walked too, in the directory that was reached.
fn parts(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    named.collect()
}

/// Whether this link may be followed.
fn check_link(directory: &OwnedFd, link: &Facts, name: &OsStr) -> io::Result<()> {
    let name = name.display();
    if is_proc(directory)?
        && !["self", "thread-self", "mounts", "net"].iter().any(|known| *known == name.to_string())
    {
        return Err(refused(format!("{name} in /proc leads into another process; give the path itself")));
    }
    let holder = facts_of(directory)?;
    for facts in [link, &holder] {
        if !facts.is_trusted() {
            return Err(refused(format!(
                "user {} controls the symbolic link {name} in it; give the path that it points to",
                facts.uid
            )));
        }
    }
    Ok(())
}

/// The number of our own open file, where `directory` is /proc/self/fd: such a link holds no path to walk.
fn descriptor(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<RawFd>> {
    let Some(number) = name.to_str().and_then(|name| name.parse::<RawFd>().ok()) else { return Ok(None) };
    if !is_proc(directory)? {
        return Ok(None);
    }
    let own = facts_of(&open_directory(c"/proc/self/fd")?)?;
    let here = facts_of(directory)?;
    Ok(((own.device, own.inode) == (here.device, here.inode)).then_some(number))
}

fn is_proc(directory: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(directory)?.f_type as u64 == PROC_SUPER_MAGIC)
}

pub(super) fn read_link(link: impl AsFd) -> io::Result<PathBuf> {
    let text = rustix::fs::readlinkat(link, c"", Vec::with_capacity(libc::PATH_MAX as usize))?;
    Ok(PathBuf::from(OsString::from_vec(text.into_bytes())))
}

fn open_directory(path: &CStr) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a name in a directory, never through a link. `flags`: those of open(2).
pub fn open_at(directory: impl AsFd, name: &CStr, flags: libc::c_int, mode: u32) -> io::Result<File> {
    let flags = OFlags::from_bits_retain(flags as u32) | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(mode))?.into())
}

/// The name in /proc of an open file or directory, which needs no path.
pub fn by_descriptor(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// A file system or a kernel that has no files without a name.
pub fn has_no_unnamed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT | libc::EINVAL))
}

/// The facts of an open file, also of one opened with O_PATH.
pub fn facts_of(file: impl AsFd) -> io::Result<Facts> {
    Ok(facts(&rustix::fs::fstat(file)?))
}

/// The facts of a name in a directory, without following a link.
pub fn facts_at(directory: impl AsFd, name: &CStr) -> io::Result<Facts> {
    Ok(facts(&rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

fn facts(stat: &rustix::fs::Stat) -> Facts {
    Facts { mode: stat.st_mode, uid: stat.st_uid, gid: stat.st_gid, device: stat.st_dev, inode: stat.st_ino }
}

pub(super) fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why.into())
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
