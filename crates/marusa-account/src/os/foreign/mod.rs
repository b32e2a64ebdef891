//! The one way to open a file with an untrusted name: the target by its mappings, its command line or its open files, or a
//! core by its list of mapped files. Such a name may be a symbolic link out of a container, a FIFO whose open never returns,
//! a device whose open does something, or a file that only root may read.
//!
//! A name is therefore resolved below the target's own root, with the rights of the target's user, on file systems that hold
//! files (`mounts`). The result is first a mere reference (O_PATH), which touches nothing; only a regular file is then opened,
//! with O_NONBLOCK, so that a lease (fcntl(2), F_SETLEASE) does not hold us up either. Nothing here is mapped into our
//! memory: its owner could truncate it, and a read of the missing page would end us with SIGBUS.

mod mounts;
mod resolve;
mod rights;

use super::maps::Mapping;
use super::place::{by_descriptor, facts_of};
use super::process::Process;
pub use super::small_file::start;
use mounts::Mounts;
pub(super) use mounts::mount_id;
pub use rights::with_rights_of;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A root directory below which names are resolved.
pub struct Root {
    directory: OwnedFd,
    /// As seen from our own root; "/" in a container, whose root has no name here.
    path: String,
    mounts: Mounts,
    /// The user and group with whose rights files are opened, where we could take more.
    ids: Option<(u32, u32)>,
}

impl Root {
    /// The root of a process. Its files are opened with the rights of its user.
    pub fn of(process: &Process) -> io::Result<Root> {
        let directory = process.reference("root")?;
        let mounts = Mounts::of(process);
        mounts.check(&directory)?;
        let status = process.status().map_err(|gap| io::Error::other(gap.to_string()))?;
        let ids = status
            .uid
            .zip(status.gid)
            .ok_or_else(|| io::Error::other("the user of the process is unknown"))?;
        let path = process.link("root")?.to_string_lossy().into_owned();
        Ok(Root { directory, path, mounts, ids: Some(ids) })
    }

    /// Our own root, with our own rights: for names that come from a file.
    pub fn own() -> io::Result<Root> {
        Root::at(Path::new("/"))
    }

    /// A directory that the user names as a root, with our own rights. Paths below it begin at it.
    pub fn at(directory: &Path) -> io::Result<Root> {
        let directory =
            File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(directory)?;
        Ok(Root { directory: directory.into(), path: "/".to_string(), mounts: Mounts::own(), ids: None })
    }

    /// Opens the regular file at `path`, as the kernel prints it for us.
    pub fn open(&self, path: &str) -> io::Result<File> {
        self.found(path, regular)
    }

    /// The names in the directory at `path`.
    pub fn directory(&self, path: &str) -> io::Result<std::fs::ReadDir> {
        self.found(path, |found| std::fs::read_dir(by_descriptor(found)))
    }

    fn found<T>(&self, path: &str, open: impl FnOnce(&OwnedFd) -> io::Result<T>) -> io::Result<T> {
        let path = self.inside(path);
        let check = |found: &OwnedFd| self.mounts.check(found);
        match self.ids {
            // The user's rights cannot be taken: each directory on the way and the file are asked for their mode.
            Some(ids) if rights::cannot_be_taken(ids) => {
                open(&resolve::by_name(&self.directory, path, &|found| {
                    check(found)?;
                    match rights::permits(&facts_of(found)?, ids) {
                        true => Ok(()),
                        false => Err(io::Error::from_raw_os_error(libc::EACCES)),
                    }
                })?)
            }
            Some(ids) => with_rights_of(ids, || open(&resolve::below(&self.directory, path, &check)?)),
            None => open(&resolve::below(&self.directory, path, &check)?),
        }
    }

    /// The file behind a mapping, if the file at its path is still that one.
    fn open_mapped(&self, mapping: &Mapping) -> io::Result<File> {
        let file = self.open(mapping.file_path())?;
        let facts = file.metadata()?;
        let device = |number: u64| format!("{:02x}:{:02x}", libc::major(number), libc::minor(number));
        let is_same = facts.ino() == mapping.inode
            && (device(facts.dev()) == mapping.device || self.mounts.is_on(&file, &mapping.device));
        match is_same {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "another file has this name now")),
        }
    }

    /// The kernel prints paths from our root; those of a process in a chroot begin with the path of its own root.
    fn inside<'a>(&self, path: &'a str) -> &'a str {
        let below = path.strip_prefix(self.path.trim_end_matches('/'));
        below.filter(|rest| rest.starts_with('/')).unwrap_or(path)
    }
}

/// The file behind a mapping: by /proc/PID/map_files, which finds deleted files and those outside of the root too but needs
/// CAP_CHECKPOINT_RESTORE, else by its path. `None`: there is no such regular file.
pub fn mapped(process: &Process, mapping: &Mapping) -> Option<File> {
    let link = format!("map_files/{:x}-{:x}", mapping.range.start.0, mapping.range.end.0);
    match open_link(process, &link) {
        Ok(file) => Some(file),
        Err(_) => Root::of(process).ok()?.open_mapped(mapping).ok(),
    }
}

/// The regular file that a link below /proc/PID leads to: `fd/1`, an entry of `map_files`. The target has it open already.
pub fn open_link(process: &Process, name: &str) -> io::Result<File> {
    let found = process.reference(name)?;
    Mounts::of(process).check(&found)?;
    regular(&found)
}

/// A reference to what lies at a path below the root of a process, which opens nothing. Its mounts were checked by the caller.
pub(super) fn below(root: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let mounts = Mounts::own();
    resolve::below(root, path, &|found| mounts.check(found))
}

/// A regular file that the user names, but whose directory or contents may belong to another user: a log.
pub fn open(path: &Path) -> io::Result<File> {
    regular(&File::options().read(true).custom_flags(libc::O_PATH).open(path)?.into())
}

/// The list of mounts that a process sees, or its start.
pub(super) fn mountinfo(process: &Process, bytes_max: u64) -> String {
    let bytes = process.open_file("mountinfo").and_then(|file| start(file, bytes_max));
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// Opens what a reference refers to, if that is a regular file. The reference pins it, so nothing can take its place.
pub(super) fn regular(found: &OwnedFd) -> io::Result<File> {
    if facts_of(found)?.kind() != libc::S_IFREG {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().read(true).custom_flags(flags).open(by_descriptor(found))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
