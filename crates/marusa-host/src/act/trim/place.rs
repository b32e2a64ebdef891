//! The library as a file that the target can load: in a directory of the target's own root, so that a container needs no
//! entering, readable by the target's user alone, and removed as soon as the JVM has answered. It is made with the rights of the
//! target's user: a directory of that name may be another one in the target's own mount namespace, such as the host's /etc.

use super::library;
use crate::act::as_target::{OwnFile, User, directory};
use crate::act::signals::Blocked;
use crate::os::process::Process;
use rustix::fs::StatVfsMountFlags;
use std::ffi::CString;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::OwnedFd;

/// Directories of the target that are tried in this order. /tmp is where the attach socket is; it may be mounted noexec.
const DIRECTORIES: [&str; 3] = ["tmp", "var/tmp", "dev/shm"];
const NAME: &str = ".marusa-trim-";

/// A file in the target's root. Removed when dropped, whatever happened; no signal ends us in the meantime.
pub struct Placed {
    _file: OwnFile,
    /// As the target names it.
    pub path: String,
    _blocked: Blocked,
}

/// Why the library cannot be given to the target.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("there is no library for this machine ({})", std::env::consts::ARCH)]
    NoCode,
    #[error("the library can be put neither in /tmp, /var/tmp nor /dev/shm of pid {pid}: {error}")]
    NoDirectory { pid: i32, error: io::Error },
}

/// Puts the library where the target can load it, as its own user would.
pub fn place(process: &Process, user: User) -> Result<Placed, PlaceError> {
    let bytes = library::bytes().ok_or(PlaceError::NoCode)?;
    let blocked = Blocked::start();
    let failed = |error| PlaceError::NoDirectory { pid: process.pid, error };
    let root = File::from(process.reference("root").map_err(failed)?);
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for directory in DIRECTORIES {
        match place_in(&root, directory, &bytes, user) {
            Ok((file, path)) => return Ok(Placed { _file: file, path, _blocked: blocked }),
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

fn place_in(root: &File, directory: &str, bytes: &[u8], user: User) -> io::Result<(OwnFile, String)> {
    let opened = self::directory(root, &CString::new(directory)?)?;
    if is_noexec(&opened)? {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is mounted noexec"));
    }
    // A name that cannot exist yet.
    let file_name = format!("{NAME}{:016x}.so", RandomState::new().hash_one(bytes));
    let (mut file, made) = OwnFile::create(opened, &file_name, user)?;
    file.write_all(bytes)?;
    Ok((made, format!("/{directory}/{file_name}")))
}

fn is_noexec(directory: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatvfs(directory)?.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// The path by which the target knows a library of ours that it has mapped already. The dynamic linker compares names before
/// it looks for a file (glibc elf/dl-load.c, `_dl_map_object`), so this path loads it again though the file is gone, and a
/// JVM that unloads nothing (8, 11) gets it once, however often it is trimmed.
pub fn mapped(process: &Process) -> Option<String> {
    let mappings = process.mappings().ok()?;
    mappings.iter().find_map(|mapping| known_path(mapping.file_path()))
}

/// The kernel may print what lies above the target's root, too.
fn known_path(path: &str) -> Option<String> {
    let (above, name) = path.rsplit_once('/')?;
    let is_ours =
        name.starts_with(NAME) && name.ends_with(".so") && name.len() == NAME.len() + 16 + ".so".len();
    let directory = DIRECTORIES.iter().find(|directory| above.ends_with(&format!("/{directory}")))?;
    // "/var/tmp" ends with "/tmp", too.
    let directory = if above.ends_with("/var/tmp") { "var/tmp" } else { directory };
    is_ours.then(|| format!("/{directory}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_library_is_taken_for_it() {
        let ours = ".marusa-trim-0123456789abcdef.so";
        assert_eq!(known_path(&format!("/tmp/{ours}")), Some(format!("/tmp/{ours}")));
        assert_eq!(known_path(&format!("/overlay/root/tmp/{ours}")), Some(format!("/tmp/{ours}")));
        assert_eq!(known_path(&format!("/var/tmp/{ours}")), Some(format!("/var/tmp/{ours}")));
        assert_eq!(known_path(&format!("/home/{ours}")), None);
        assert_eq!(known_path("/tmp/.marusa-trim-0.so"), None);
        assert_eq!(known_path("/tmp/libjvm.so"), None);
    }

    #[test]
    fn a_placed_file_is_whole_private_and_goes() {
        use std::os::unix::fs::PermissionsExt;
        let me = Process::open(std::process::id() as i32).expect("myself");
        let placed = place(&me, User::own()).expect("placed");
        let path = placed.path.clone();
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read(&path).expect("readable"), library::bytes().expect("a known machine"));
        drop(placed);
        assert!(!std::path::Path::new(&path).exists());
    }
}
