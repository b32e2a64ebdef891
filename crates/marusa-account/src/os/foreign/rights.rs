//! The rights of another user for one call: what root opens for a process it opens as that process could, so that a name
//! never gives a process a file that it may not read itself, nor has root create one where the process could not.

use crate::os::place::Facts;
use crate::os::rights::{self as host_rights, Capability};
use rustix::process::{DumpableBehavior, Gid, dumpable_behavior, getgroups, set_dumpable_behavior};
use rustix::thread::set_thread_groups;
use std::io;

/// Runs `call` with the user and group `ids` for access to files, on this thread alone (setfsuid(2)). Without root's rights,
/// or where these ids are ours, nothing changes. The call has no supplementary groups: neither root's nor the user's.
pub fn with_rights_of<T>(ids: (u32, u32), call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _taken = Taken::start(ids)?;
    call()
}

/// Whether we are root, but without the rights to become another user, as in a container with few capabilities.
pub(super) fn cannot_be_taken(ids: (u32, u32)) -> bool {
    let own = own_ids();
    own.0 == 0 && own != ids && !host_rights::has(&[Capability::SETGID, Capability::SETUID])
}

fn own_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// Whether a user may read a file, look up names in a directory, or follow a link: by the mode alone, as path_resolution(7) has it,
/// without supplementary groups. What an access control list gives on top is refused.
pub(super) fn permits(facts: &Facts, (uid, gid): (u32, u32)) -> bool {
    let wanted = match facts.kind() {
        libc::S_IFLNK => return true,
        libc::S_IFDIR => 1,
        _ => 4,
    };
    let shift = match () {
        () if uid == 0 => return facts.uid == 0 || facts.mode & wanted != 0,
        () if facts.uid == uid => 6,
        () if facts.gid == gid => 3,
        () => 0,
    };
    facts.mode >> shift & wanted != 0
}

/// Ids that were taken; dropped, the thread has its own again.
struct Taken {
    own: Option<((u32, u32), Vec<Gid>)>,
    /// A change of ids clears this flag of the process (kernel/cred.c, `commit_creds`), which guards /proc/self.
    is_dumpable: bool,
}

impl Taken {
    fn start((uid, gid): (u32, u32)) -> io::Result<Taken> {
        let own = own_ids();
        if own.0 != 0 || own == (uid, gid) {
            return Ok(Taken { own: None, is_dumpable: false });
        }
        let is_dumpable = dumpable_behavior() == Ok(DumpableBehavior::Dumpable);
        // Of this thread alone: libc changes the groups of all (setgroups(2), "C library/kernel differences").
        let groups = getgroups()?;
        set_thread_groups(&[])?;
        let taken = Taken { own: Some((own, groups)), is_dumpable };
        set((uid, gid));
        // The calls report no error: a second one returns the id in force (setfsuid(2)).
        match set((uid, gid)) {
            in_force if in_force == (uid, gid) => Ok(taken),
            _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "cannot take the user's rights")),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let Some((ids, groups)) = &self.own else { return };
        set(*ids);
        // A thread that keeps none of its groups has fewer rights, not more.
        let _ = set_thread_groups(groups);
        if self.is_dumpable {
            let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
        }
    }
}

/// Returns the ids before the call. CAP_SETGID and CAP_SETUID are not among the rights that come and go with the user
/// (capabilities(7), "Effect of user ID changes"), so the way back is open.
fn set((uid, gid): (u32, u32)) -> (u32, u32) {
    // SAFETY: system calls of one number each, which change this thread's credentials alone.
    unsafe {
        let gid = libc::setfsgid(gid);
        (libc::setfsuid(uid) as u32, gid as u32)
    }
}
