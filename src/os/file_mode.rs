//! The mode of the files that commands write. An account names users, paths and libraries, and a recording may be kept
//! for months, so a file is its owner's alone whatever the umask allows; `--file-mode` asks for another.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Readable and writable by the owner only.
pub const PRIVATE: u32 = 0o600;
const PERMISSION_BITS: u32 = 0o777;

static WANTED: AtomicU32 = AtomicU32::new(PRIVATE);

/// Parses an octal mode such as "0644". The owner must be able to read and write: recordings and comparisons are continued.
pub fn parse(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).map_err(|_| "not an octal mode such as 0644".to_string())?;
    match mode {
        mode if mode & !PERMISSION_BITS != 0 => Err("a mode has at most 0777".to_string()),
        mode if mode & PRIVATE != PRIVATE => Err("the owner needs to read and write: 06xx".to_string()),
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

/// Options that create a file with the wanted mode; the caller adds how it is opened.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(wanted());
    options
}

/// An empty file at `path`, as `File::create`. A file of ours that was there gets the wanted mode, too.
pub fn create(path: &Path) -> io::Result<File> {
    let file = options().write(true).create(true).truncate(true).open(path)?;
    fit(&file)?;
    Ok(file)
}

/// A whole file, as `fs::write`.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// A directory for files that others write for us: who may read them may enter it.
pub fn fit_directory(path: &Path) -> io::Result<()> {
    let readable = wanted() & 0o444;
    std::fs::set_permissions(path, Permissions::from_mode(wanted() | readable >> 2))
}

/// Gives a regular file of ours the wanted mode, so that neither the umask nor an earlier file decides.
pub fn fit(file: &File) -> io::Result<()> {
    let facts = file.metadata()?;
    // SAFETY: a system call without arguments.
    let is_ours = facts.uid() == unsafe { libc::geteuid() };
    if !facts.is_file() || !is_ours || facts.mode() & PERMISSION_BITS == wanted() {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(wanted()))
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
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("ours");
        fit_directory(folder.path()).expect("ours");
        assert_eq!(folder.path().metadata().expect("there").mode() & PERMISSION_BITS, 0o700);
    }

    #[test]
    fn a_file_is_private_even_where_an_open_one_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let mode = || std::fs::metadata(&path).expect("written").mode() & PERMISSION_BITS;
        write(&path, "secret").expect("written");
        assert_eq!(mode(), PRIVATE);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("ours");
        write(&path, "again").expect("written");
        assert_eq!((mode(), std::fs::read(&path).expect("read")), (PRIVATE, b"again".to_vec()));
    }
}
