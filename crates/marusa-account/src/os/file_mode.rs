//! The mode of the files that commands write. An account names users, paths and libraries, and a recording may be kept
//! for months, so a file is its owner's alone whatever the umask allows; `--file-mode` asks for another.

use crate::base::{Refused, refuse};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Readable and writable by the owner only.
pub const PRIVATE: u32 = 0o600;
const PERMISSION_BITS: u32 = 0o777;

static WANTED: AtomicU32 = AtomicU32::new(PRIVATE);

/// Parses an octal mode such as "0644". The owner must be able to read and write: recordings and comparisons are continued.
pub fn parse(text: &str) -> Result<u32, Refused> {
    let mode = u32::from_str_radix(text, 8).map_err(|_| "not an octal mode such as 0644".to_string())?;
    match mode {
        mode if mode & !PERMISSION_BITS != 0 => refuse!("a mode has at most 0777"),
        mode if mode & PRIVATE != PRIVATE => refuse!("the owner needs to read and write: 06xx"),
        mode => Ok(mode),
    }
}

/// Sets the mode of every file that this process writes from now on.
pub fn set(mode: u32) {
    WANTED.store(mode, Ordering::Relaxed);
}

/// The mode of files that are written now.
pub fn wanted() -> u32 {
    WANTED.load(Ordering::Relaxed)
}

/// A directory for files that others write for us: who may read them may enter it.
pub fn fit_directory(path: &Path) -> io::Result<()> {
    let readable = wanted() & 0o444;
    std::fs::set_permissions(path, Permissions::from_mode(wanted() | readable >> 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_octal_and_leaves_the_owner_his_rights() {
        assert_eq!((parse("0644"), parse("600"), parse("0777")), (Ok(0o644), Ok(0o600), Ok(0o777)));
        for bad in ["", "644x", "0844", "0444", "07777", "-1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_directory_is_for_the_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("ours");
        fit_directory(directory.path()).expect("ours");
        assert_eq!(directory.path().metadata().expect("there").permissions().mode() & PERMISSION_BITS, 0o700);
    }
}
