//! The one door by which the host is changed: numbers and words of /proc/sys and /sys, files, mounts, swap, cgroups.
//!
//! Each change is a [`step::Step`] of data. It is written into a journal before it is made, so that a crash between any two
//! moments leaves what `undo` needs; what others changed in the meantime is noticed and never overwritten. `docs/pages-apply.md`
//! has the guarantees.

mod add;
pub mod allowed;
mod apply;
pub mod content;
mod copy;
mod history;
pub mod identity;
pub mod journal;
pub mod journal_check;
pub mod jvm_option;
mod linux;
mod look;
pub mod machine;
mod memory;
mod mount;
mod number;
mod room;
mod run;
pub mod settings;
pub mod step;
pub mod store;
mod take_back;
mod undo;

#[cfg(test)]
#[path = "fake_tests.rs"]
mod fake;
#[cfg(test)]
mod tests;

pub use apply::{Made, Outcome, Receipt, Request, apply, with_own_directory};
pub use linux::Linux;
pub use look::{Preview, preview};
pub use store::Store;
pub use take_back::TakenBack;
pub use undo::{UndoReceipt, undo};

use crate::os::rights::{self, Capability};
use std::io;

/// Why a change is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    /// The plan, the journal or the command asks for what the door does not do.
    #[error("{0}")]
    Refused(String),
    /// The host does not let us.
    #[error("{0}")]
    Rights(String),
    /// Unavailable, or held by another run.
    #[error("{0}")]
    No(String),
    /// A journal or a file cannot be read.
    #[error("{0}")]
    Broken(String),
}

/// What the kernel refused, in words.
pub fn denied(what: &str, error: &io::Error) -> DoorError {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => DoorError::Rights(format!(
            "{what}: {error}; {}",
            rights::hint(
                &[Capability::SYS_ADMIN, Capability::DAC_OVERRIDE],
                "run marusa as root of the host (CAP_SYS_ADMIN, CAP_DAC_OVERRIDE)"
            )
        )),
        Some(libc::EROFS) => DoorError::Rights(format!(
            "{what} is read only here, as in a container without the host's settings; run marusa on the host"
        )),
        Some(libc::ENOENT) => DoorError::Rights(format!(
            "{what} is not there: this kernel does not have it, or this container does not show it; run marusa on the host"
        )),
        Some(libc::ELOOP | libc::ENOTDIR) => DoorError::Refused(format!(
            "{what}: a symbolic link or a file is on the way; the door follows none"
        )),
        Some(libc::EBUSY) => DoorError::No(format!("{what} is busy")),
        Some(libc::EINVAL) => DoorError::No(format!("{what}: the kernel does not take this value ({error})")),
        _ if error.kind() == io::ErrorKind::PermissionDenied => {
            DoorError::Rights(format!("{what}: {error}; run marusa on the host"))
        }
        _ => DoorError::Broken(format!("{what}: {error}")),
    }
}
