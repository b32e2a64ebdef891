//! Which mounts may be read on behalf of a process, by its mountinfo, without a question to the file system.
//!
//! Refused are the file systems of the kernel itself, some of whose files do something or wait when they are read (/proc/kmsg,
//! trace_pipe); for root autofs, which would mount what the target names; and FUSE that another user serves: its program may
//! leave any question unanswered, and a process that waits for the answer cannot be killed (fs/fuse/dev.c,
//! `request_wait_answer`). FUSE is open to others only with `allow_other` and only within the user namespace that mounted it
//! (fs/fuse/dir.c, `fuse_allow_current_process`), so the id 0 that a mount of another namespace shows is never taken for root's.
//!
//! Not recognised: an overlay that a user mounted, in a user namespace of theirs, over a FUSE file system of theirs.

use crate::base::limits::{FOREIGN_MOUNTS_BYTES_MAX, FOREIGN_MOUNTS_MAX};
use crate::os::lent_file;
use crate::os::mounted::Mounted;
use crate::os::place::own_uid;
use crate::os::process::Process;
use crate::os::small_file;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

/// The mounts of a process and our own, read when the first is asked for.
pub struct Mounts {
    text: String,
    known: OnceLock<HashMap<u64, Mounted>>,
}

impl Mounts {
    pub fn of(process: &Process) -> Mounts {
        Mounts { text: super::mountinfo(process, FOREIGN_MOUNTS_BYTES_MAX), known: OnceLock::new() }
    }

    pub fn own() -> Mounts {
        Mounts { text: String::new(), known: OnceLock::new() }
    }

    fn known(&self) -> &HashMap<u64, Mounted> {
        self.known.get_or_init(|| {
            let own =
                small_file::read_start("/proc/self/mountinfo", FOREIGN_MOUNTS_BYTES_MAX).unwrap_or_default();
            let own = String::from_utf8_lossy(&own);
            let lines = own.lines().chain(self.text.lines()).take(FOREIGN_MOUNTS_MAX);
            lines.filter_map(Mounted::parse).map(|mount| (mount.id, mount)).collect()
        })
    }

    fn mount(&self, found: BorrowedFd) -> Option<&Mounted> {
        self.known().get(&mount_id(found)?)
    }

    /// Whether a file lies on the file system of `device`, as /proc/PID/maps prints it, hexadecimal. Kernels before 6.8 print
    /// the device of a layer for a file of an overlay (fs/proc/task_mmu.c, `file_user_inode`): there only the inode can be
    /// compared.
    pub fn is_on(&self, file: &File, device: &str) -> bool {
        self.mount(file.as_fd()).is_some_and(|mount| mount.kind == "overlay" || mount.device == device)
    }

    /// Whether what was found lies where files may be opened.
    pub fn check(&self, found: &OwnedFd) -> io::Result<()> {
        let refused = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_string()));
        match self.mount(found.as_fd()) {
            Some(mount) => match refusal(mount, own_uid()) {
                Some(why) => refused(&why),
                None => Ok(()),
            },
            // memfd_create(2) and shared memory lie on a mount that nobody sees.
            None if is_shared_memory(found)? => Ok(()),
            None => refused("it is on a mount that is in no list of mounts"),
        }
    }
}

/// Why nothing is opened there by a process of the user `own`.
fn refusal(mount: &Mounted, own: u32) -> Option<String> {
    let kind = mount.kind.as_str();
    if kind == "autofs" && own != 0 {
        return None;
    }
    let is_fuse = kind == "fuse" || kind == "fuseblk" || kind.starts_with("fuse.");
    // Who serves a FUSE file system.
    let user = mount.options.split(',').filter_map(|option| option.strip_prefix("user_id="));
    match user.flat_map(str::parse::<u32>).next() {
        Some(user) if is_fuse && user != 0 && user != own => {
            Some(format!("it is on a FUSE file system that user {user} serves"))
        }
        None if is_fuse => Some("it is on a FUSE file system without a named owner".to_string()),
        _ => mount.has_no_pages().then(|| format!("it is on a {kind} file system")),
    }
}

/// proc_pid_fdinfo(5), since Linux 3.15. Answered by the kernel from what it holds.
pub fn mount_id(found: BorrowedFd) -> Option<u64> {
    let text = small_file::text(format!("/proc/thread-self/fdinfo/{}", found.as_raw_fd())).ok()?;
    small_file::field(&text, "mnt_id:")?.parse().ok()
}

/// All shared memory without a file system of its own lies on one device: that of a memfd of ours.
fn is_shared_memory(found: &OwnedFd) -> io::Result<bool> {
    Ok(lent_file::device(found)? == lent_file::device(&lent_file::memory_file()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> bool {
        refusal(&Mounted::parse(line).expect("a line"), 1000).is_some()
    }

    #[test]
    fn which_mounts_hold_files() {
        assert!(!refused("36 35 98:0 / / rw,noatime master:1 - ext4 /dev/root rw"));
        assert!(!refused("40 36 0:38 / /srv rw - nfs4 server:/srv rw,vers=4.2"));
        assert!(!refused("41 36 0:39 / /a rw - overlay overlay rw,lowerdir=/x"));
        assert!(refused("42 36 0:5 / /proc rw - proc proc rw"));
        let autofs = Mounted::parse("44 36 0:50 / /home rw - autofs systemd-1 rw,fd=40").expect("a line");
        assert!(refusal(&autofs, 0).is_some() && refusal(&autofs, 1000).is_none());
        assert!(refused("43 36 0:12 / /sys/kernel/tracing rw shared:4 - tracefs tracefs rw"));
    }

    #[test]
    fn fuse_only_of_root_and_of_ourselves() {
        let fuse = |options: &str| format!("50 36 0:60 / /mnt rw - fuse.sshfs a:/ rw,{options}");
        assert!(!refused(&fuse("user_id=1000,group_id=0,allow_other")));
        assert!(!refused(&fuse("user_id=0,group_id=0,allow_other")));
        assert!(refused(&fuse("user_id=1001,group_id=0,allow_other")));
        assert!(refused(&fuse("group_id=0")) && refused("50 36 0:60 / /mnt rw - fuse a rw,user_id=7"));
    }

    #[test]
    fn a_file_of_ours_is_on_its_device_and_a_memfd_on_none_that_is_listed() {
        let mounts = Mounts::own();
        let file = File::open(std::env::current_exe().expect("this program")).expect("readable");
        assert!(mounts.mount(file.as_fd()).is_some());
        assert!(mounts.check(&file.into()).is_ok());
        let memory = rustix::fs::memfd_create(c"a", rustix::fs::MemfdFlags::empty()).expect("a memfd");
        assert!(mounts.mount(memory.as_fd()).is_none() && mounts.check(&memory).is_ok());
        let status = File::open("/proc/self/status").expect("readable");
        assert!(mounts.check(&status.into()).is_err());
    }
}
