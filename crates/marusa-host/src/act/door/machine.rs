//! What the door needs of a machine. The real one is `linux::Linux`; tests have one that behaves as the kernel's files do and
//! that dies between any two operations.

use crate::base::limits::DOOR_KERNEL_FILE_BYTES_MAX;
use std::io;
use std::time::Duration;

/// What lies at a path, without following a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    Nothing,
    File,
    Directory {
        empty: bool,
    },
    /// A link, a device: nothing that the door touches.
    Other,
}

pub trait Machine {
    /// At most `bytes_max` bytes of a file.
    fn read(&self, file: &str, bytes_max: u64) -> io::Result<Vec<u8>>;
    /// Opens an existing file for writing, and closes it again.
    fn may_write(&self, file: &str) -> io::Result<()>;
    /// Whether something could be made in the directory of this path.
    fn may_create(&self, path: &str) -> io::Result<()>;
    /// One write(2) into an existing file.
    fn write(&self, file: &str, text: &str) -> io::Result<()>;
    fn lies(&self, path: &str) -> io::Result<Lies>;
    /// A new file, whole or not at all; never over one that is there.
    fn create(&self, file: &str, text: &str, mode: u32) -> io::Result<()>;
    fn remove(&self, file: &str) -> io::Result<()>;
    fn make_directory(&self, path: &str) -> io::Result<()>;
    /// An empty one.
    fn remove_directory(&self, path: &str) -> io::Result<()>;
    fn mount_tmpfs(&self, at: &str, source: &str, options: &str) -> io::Result<()>;
    /// The source of what is mounted on top at a path: our own name for our own tmpfs.
    fn mounted(&self, at: &str) -> io::Result<Option<String>>;
    fn unmount(&self, at: &str) -> io::Result<()>;
    /// Processes that keep a mount busy.
    fn users(&self, at: &str) -> Vec<i32>;
    /// Bytes that were copied.
    fn copy_tree(&self, from: &str, to: &str, linked: &[String]) -> io::Result<u64>;
    /// A new file of zeros that is swapped to.
    fn swap_on(&self, file: &str, bytes: u64) -> io::Result<()>;
    /// Whether the host swaps to this file.
    fn is_swap(&self, file: &str) -> io::Result<bool>;
    /// Brings back what was swapped to it; the file stays.
    fn swap_off(&self, file: &str) -> io::Result<()>;
    /// A new cgroup with a memory limit.
    fn make_group(&self, path: &str, limit_bytes: u64) -> io::Result<()>;
    /// One without processes.
    fn remove_group(&self, path: &str) -> io::Result<()>;
    /// Processes in a group.
    fn members(&self, path: &str) -> Vec<i32>;
    /// The id of the running kernel: another one after each start of the host.
    fn boot_id(&self) -> String;
    fn pause(&self, time: Duration);
    /// Whether a signal asked us to end.
    fn stopped(&self) -> bool;
    /// Called before and after each write of the journal: where tests let the machine die.
    fn moment(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A file of the kernel's, which is short and plain.
pub fn kernel_text(machine: &dyn Machine, file: &str) -> io::Result<String> {
    String::from_utf8(machine.read(file, DOOR_KERNEL_FILE_BYTES_MAX)?)
        .map_err(|_| io::ErrorKind::InvalidData.into())
}
