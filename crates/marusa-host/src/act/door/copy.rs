//! Copies a directory, as `cp -a` does: owners, modes and times stay. Times matter: a JVM takes its class data archive only when
//! the time of lib/modules is the one that the archive was made with (JDK 17 cds/filemap.cpp, `SharedClassPathEntry::validate`).

use super::linux::name;
use crate::base::limits::{DOOR_COPIED_DEPTH_MAX, DOOR_COPIED_FILES_MAX};
use crate::os::place::{by_descriptor, open_at};
use rustix::fs::{Mode, mkdirat, symlinkat};
use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Bytes that were copied. `path` is where `from` lies; what is `linked` below it is not copied.
pub fn tree(from: &OwnedFd, to: &OwnedFd, path: &str, linked: &[String]) -> io::Result<u64> {
    let linked = linked.iter().map(String::as_str).collect();
    let mut copy = Copy { root: PathBuf::from(path), linked, files: 0, bytes: 0 };
    copy.directory(from, to, &mut Vec::new())?;
    Ok(copy.bytes)
}

struct Copy<'a> {
    root: PathBuf,
    linked: HashSet<&'a str>,
    files: usize,
    bytes: u64,
}

impl Copy<'_> {
    fn directory(&mut self, from: &OwnedFd, to: &OwnedFd, below: &mut Vec<String>) -> io::Result<()> {
        if below.len() > DOOR_COPIED_DEPTH_MAX {
            return Err(io::Error::other(format!("more than {DOOR_COPIED_DEPTH_MAX} directories deep")));
        }
        for entry in std::fs::read_dir(by_descriptor(from))? {
            let entry = entry?;
            self.files += 1;
            if self.files > DOOR_COPIED_FILES_MAX {
                return Err(io::Error::other(format!("more than {DOOR_COPIED_FILES_MAX} files")));
            }
            let text = entry.file_name().into_string().map_err(|_| io::ErrorKind::InvalidData)?;
            let kind = entry.file_type()?;
            let one = name(&text)?;
            let place = below.iter().chain([&text]).map(String::as_str).collect::<Vec<&str>>().join("/");
            match () {
                () if self.linked.contains(place.as_str()) => link(&self.root.join(&place), to, &one)?,
                () if kind.is_dir() => {
                    let inner = open_at(from, &one, libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
                    mkdirat(to, &one, Mode::from_raw_mode(0o700))?;
                    let made = open_at(to, &one, libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
                    below.push(text);
                    self.directory(&inner.into(), &made.into(), below)?;
                    below.pop();
                }
                () if kind.is_file() => self.file(from, to, &one)?,
                () if kind.is_symlink() => {
                    let target = std::fs::read_link(entry.path())?;
                    link(&kept_target(&self.root, below, &target), to, &one)?;
                }
                () => return Err(io::Error::other(format!("{text} is not a file, directory or link"))),
            }
        }
        as_before(&File::from(from.try_clone()?), &File::from(to.try_clone()?))
    }

    fn file(&mut self, from: &OwnedFd, to: &OwnedFd, one: &CString) -> io::Result<()> {
        let mut from = open_at(from, one, libc::O_RDONLY | libc::O_NONBLOCK, 0)?;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY;
        let mut to = open_at(to, one, flags, 0o600)?;
        // A tmpfs that gives huge pages within the size of a file (huge=within_size) must know it before they are written.
        let length = from.metadata()?.len();
        to.set_len(length)?;
        // The library lets the kernel copy, or uses a small buffer.
        let copied = io::copy(&mut from, &mut to)?;
        if copied != length {
            return Err(io::Error::other(format!("{one:?} has changed while it was copied")));
        }
        self.bytes += copied;
        as_before(&from, &to)
    }
}

fn link(target: &Path, to: &OwnedFd, one: &CString) -> io::Result<()> {
    Ok(symlinkat(target, to, one)?)
}

/// A relative link that leaves the tree would point elsewhere from the copy: it becomes absolute.
fn kept_target(root: &Path, below: &[String], target: &Path) -> PathBuf {
    let mut depth = below.len();
    let mut leaves = false;
    for part in target.components() {
        match part {
            Component::ParentDir if depth == 0 => leaves = true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
    }
    if target.is_absolute() || !leaves {
        return target.to_path_buf();
    }
    let mut whole = root.to_path_buf();
    whole.extend(below);
    for part in target.components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            other => whole.push(other),
        }
    }
    whole
}

fn as_before(from: &File, to: &File) -> io::Result<()> {
    let meta = from.metadata()?;
    std::os::unix::fs::fchown(to, Some(meta.uid()), Some(meta.gid()))?;
    to.set_permissions(meta.permissions())?;
    let times = std::fs::FileTimes::new().set_accessed(meta.accessed()?).set_modified(meta.modified()?);
    to.set_times(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn links_within_stay_and_links_out_become_absolute() {
        let kept = |below: &[&str], target: &str| {
            let below: Vec<String> = below.iter().map(|one| one.to_string()).collect();
            kept_target(Path::new("/usr/lib/jvm/j"), &below, Path::new(target)).display().to_string()
        };
        assert_eq!(kept(&["lib"], "../conf/x"), "../conf/x");
        assert_eq!(kept(&["lib"], "../../k/x"), "/usr/lib/jvm/k/x");
        assert_eq!(kept(&[], "../../../share/doc"), "/usr/share/doc");
        assert_eq!(kept(&["lib"], "/etc/java"), "/etc/java");
    }

    #[test]
    fn modes_times_links_and_bytes_are_those_of_the_original() {
        let base = std::env::temp_dir().join(format!("marusa-copy-{}", std::process::id()));
        let (from, to) = (base.join("from"), base.join("to"));
        std::fs::create_dir_all(from.join("lib/a")).expect("directories");
        std::fs::create_dir_all(&to).expect("a directory");
        std::fs::write(from.join("lib/modules"), vec![7; 300_000]).expect("a file");
        std::fs::set_permissions(from.join("lib/modules"), PermissionsExt::from_mode(0o555)).expect("a mode");
        symlink("modules", from.join("lib/link")).expect("a link");
        let then = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000, 5);
        let file = File::open(from.join("lib/modules")).expect("open");
        file.set_modified(then).expect("a time");
        let open = |path: &Path| OwnedFd::from(File::open(path).expect("a directory"));
        let linked = ["lib/b".to_string()];
        std::fs::create_dir_all(from.join("lib/b/c")).expect("directories");
        let copied = tree(&open(&from), &open(&to), "/x", &linked).expect("copied");
        assert_eq!(copied, 300_000);
        assert_eq!(std::fs::read_link(to.join("lib/b")).ok(), Some(PathBuf::from("/x/lib/b")));
        let meta = std::fs::metadata(to.join("lib/link")).expect("the link leads to the file");
        assert_eq!((meta.len(), meta.mode() & 0o777, meta.modified().ok()), (300_000, 0o555, Some(then)));
        assert!(to.join("lib/a").is_dir());
        std::fs::remove_dir_all(base).expect("removed");
    }
}
