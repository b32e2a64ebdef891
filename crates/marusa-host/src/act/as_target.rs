//! What is done in a directory of the target is done with the rights of the target's own user, never with ours. A target can
//! choose what its /tmp is (a mount namespace of its own, a symbolic link), so a file that root makes "for" it could land in /etc
//! and belong to it: everything here is what the target's user could have done without us.
//!
//! A thread of ours takes the user's ids and ends. It asks the kernel by raw system calls, since libc would change all threads.
//! Only the effective ids change, which file access and the check of a signal go by (credentials(7)): the real and saved ids stay
//! ours, so that this user can neither signal nor trace the thread in the meantime (kill(2), ptrace(2)).

use crate::os::place::{Facts, facts_at, facts_of, open_at};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{self, CapabilitySet};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// The effective user and group of the target, as our user namespace names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

impl User {
    pub fn own() -> User {
        User { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }

    /// Does `work` as this user, without capabilities or supplementary groups.
    pub fn does<T: Send>(self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_a_thread(move || {
            self.take()?;
            work()
        })
    }

    /// The same where being root instead does no harm: root without CAP_SETUID stays root.
    pub fn does_or_we_do<T: Send>(self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_a_thread(move || {
            let _ = self.take();
            work()
        })
    }

    /// For the calling thread alone.
    fn take(self) -> io::Result<()> {
        let ours = User::own();
        let groups = thread::set_thread_groups(&[]);
        if ours != self {
            groups?;
            thread::set_thread_res_gid(None::<Gid>, Gid::from_raw(self.gid), None::<Gid>)?;
            thread::set_thread_res_uid(None::<Uid>, Uid::from_raw(self.uid), None::<Uid>)?;
        }
        drop_capabilities()
    }
}

/// Root of a container has fewer capabilities than root of the host, and a program may have some without being root: none is
/// effective in this thread from here on.
fn drop_capabilities() -> io::Result<()> {
    let mut sets = thread::capabilities(None)?;
    sets.effective = CapabilitySet::empty();
    Ok(thread::set_capabilities(None, sets)?)
}

fn in_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        scope.spawn(work).join().unwrap_or_else(|_| Err(io::Error::other("the thread for it ended")))
    })
}

/// A directory of the target, as the target itself would resolve its path: a link in it may be a trap.
pub fn directory(root: &File, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(root, name, flags, Mode::empty(), resolve)?)
}

/// Whether a file of this user belongs here: in a directory of its own, or in one that is made for all users' files. Anything else
/// is /etc in the place of /tmp.
fn check_directory(facts: &Facts, user: User) -> io::Result<()> {
    const SHARED: u32 = libc::S_ISVTX | libc::S_IWOTH;
    if facts.uid == user.uid || facts.mode & SHARED == SHARED {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "the directory belongs to user {} and has mode {:o}: it is neither the process's own nor shared (sticky and writable \
             by all), so nothing is put there",
            facts.uid,
            facts.mode & 0o7777
        ),
    ))
}

/// A file that we made in a directory of the target. Removed when dropped, if it is still the one that we made.
#[derive(Debug)]
pub struct OwnFile {
    directory: OwnedFd,
    name: CString,
    device: u64,
    inode: u64,
    user: User,
}

impl OwnFile {
    /// A new file with mode 0600 that belongs to `user`, open for writing.
    pub fn create(directory: OwnedFd, name: &str, user: User) -> io::Result<(File, OwnFile)> {
        let name = CString::new(name)?;
        let file = user.does(|| {
            check_directory(&facts_of(&directory)?, user)?;
            open_at(&directory, &name, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY, 0o600)
        })?;
        let facts = facts_of(&file)?;
        Ok((file, OwnFile { directory, name, device: facts.device, inode: facts.inode, user }))
    }

    fn remove(&self) -> io::Result<()> {
        self.user.does(|| {
            let facts = facts_at(&self.directory, &self.name)?;
            if (facts.device, facts.inode) == (self.device, self.inode) {
                let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
            }
            Ok(())
        })
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // A file that the target itself took away is gone.
        let _ = self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::path::Path;

    const NOBODY: User = User { uid: 65_534, gid: 65_534 };

    fn opened(path: &Path) -> OwnedFd {
        let root = File::open("/").expect("it is there");
        let name = CString::new(path.strip_prefix("/").expect("absolute").as_os_str().as_encoded_bytes());
        directory(&root, &name.expect("no NUL")).expect("a directory")
    }

    #[test]
    fn a_file_is_put_only_where_its_user_could_put_it() {
        if User::own().uid != 0 {
            return;
        }
        let place =
            tempfile::Builder::new().prefix("marusa-as-target-").tempdir_in("/tmp").expect("a directory");
        let set = |mode| fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).expect("ours");
        for (mode, owner) in [(0o755, 0), (0o777, 0), (0o1770, 0), (0o1775, 0)] {
            chown(place.path(), Some(owner), None).expect("root");
            set(mode);
            let made = OwnFile::create(opened(place.path()), "x", NOBODY);
            assert_eq!(made.expect_err("not its own").kind(), io::ErrorKind::PermissionDenied, "{mode:o}");
            assert_eq!(fs::read_dir(place.path()).expect("ours").count(), 0);
        }
        for (mode, owner) in [(0o1777, 0), (0o700, NOBODY.uid)] {
            chown(place.path(), Some(owner), None).expect("root");
            set(mode);
            let (file, made) = OwnFile::create(opened(place.path()), "x", NOBODY).expect("its own");
            let facts = file.metadata().expect("open");
            assert_eq!((facts.uid(), facts.gid(), facts.mode() & 0o777), (NOBODY.uid, NOBODY.gid, 0o600));
            assert!(OwnFile::create(opened(place.path()), "x", NOBODY).is_err(), "it is there");
            drop(made);
            assert_eq!(fs::read_dir(place.path()).expect("ours").count(), 0, "it is removed again");
        }
    }

    #[test]
    fn what_took_the_place_of_the_file_is_not_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let (file, made) = OwnFile::create(opened(place.path()), "x", User::own()).expect("our own");
        fs::rename(place.path().join("x"), place.path().join("y")).expect("ours");
        fs::write(place.path().join("x"), "another").expect("ours");
        drop((file, made));
        assert_eq!(fs::read(place.path().join("x")).expect("left alone"), b"another");
    }

    #[test]
    fn another_user_has_neither_our_groups_nor_our_capabilities_and_we_keep_both() {
        if User::own().uid != 0 {
            return;
        }
        let seen = NOBODY.does(|| fs::read_to_string("/proc/thread-self/status")).expect("it is said");
        let field = |name: &str| {
            let line = seen.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().map(str::to_string).collect::<Vec<String>>()
        };
        assert_eq!(field("Uid:"), ["0", "65534", "0", "65534"], "{seen}");
        assert_eq!(
            (field("Groups:").len(), field("CapEff:")),
            (0, vec!["0000000000000000".to_string()]),
            "{seen}"
        );
        let secret = tempfile::NamedTempFile::new().expect("a file of mode 0600");
        assert!(NOBODY.does(|| File::open(secret.path())).is_err());
        assert!(File::open(secret.path()).is_ok() && User::own().uid == 0);
    }
}
