//! Asks a JVM to open its socket: a file .attach_pidN in its /tmp or working directory, owned by its user, then SIGQUIT.
//! Without the file the same signal means a thread dump on the JVM's standard output; without a handler it means death.
//! So the order is: check everything that can be checked, make the file, signal through a pidfd (a pid that was given to
//! another process meanwhile is never hit), wait, remove the file whatever happened.

use super::connect::Door;
use super::{AttachError, Receipt, options};
use crate::os::process::Process;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Bit of SIGQUIT (3) in `SigCgt`.
const SIGQUIT_BIT: u64 = 1 << (libc::SIGQUIT - 1);

/// Starts the listener, and waits for its socket.
pub fn wake(
    process: &Process,
    door: &Door,
    receipt: &mut Receipt,
    limit: Duration,
) -> Result<(), AttachError> {
    let pid = process.pid;
    let status = process.status().map_err(|_| AttachError::Gone { pid })?;
    if status.signals_caught.is_none_or(|signals| signals & SIGQUIT_BIT == 0) {
        return Err(AttachError::SignalNotCaught { pid });
    }
    let words = |name| process.bytes(name).unwrap_or_default();
    if options::forbid_attachment(&words("cmdline"), &words("environ")) {
        return Err(AttachError::Disabled { pid, option: "-XX:+DisableAttachMechanism".to_string() });
    }
    let handle = pin(process)?;
    let trigger = Trigger::make(process, door)?;
    receipt.trigger_file = Some(trigger.shown.clone());
    quit(&handle).map_err(|error| failure(door, "SIGQUIT", error))?;
    receipt.signal_sent = Some("SIGQUIT");
    wait(process, door, limit)?;
    receipt.listener_started = true;
    Ok(())
}

fn wait(process: &Process, door: &Door, limit: Duration) -> Result<(), AttachError> {
    let pid = process.pid;
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if door.is_open() {
            return Ok(());
        }
        if !process.is_same() {
            return Err(AttachError::Gone { pid });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let stopped = process.status().is_ok_and(|status| matches!(status.state, Some('T' | 't')));
    if stopped {
        return Err(AttachError::Stopped { pid });
    }
    Err(AttachError::NoAnswer {
        pid,
        tried: format!("{} was made and SIGQUIT sent", door.trigger_name()),
        seconds: limit.as_secs(),
        hint: "attachment may be disabled (-XX:+DisableAttachMechanism), or the JVM is frozen, or its /tmp can not be \
               written; it may print a thread dump on its standard output",
    })
}

fn failure(door: &Door, tried: &str, error: io::Error) -> AttachError {
    let pid = door.pid;
    match error.raw_os_error() {
        Some(libc::ESRCH) => AttachError::Gone { pid },
        Some(libc::EPERM | libc::EACCES) => {
            AttachError::NoRights { pid, tried: tried.to_string(), error, uid: door.uid, gid: door.gid }
        }
        _ => AttachError::Io { pid, tried: tried.to_string(), error },
    }
}

/// A handle of exactly this process: opened by pid, and the process was still the same after.
fn pin(process: &Process) -> Result<OwnedFd, AttachError> {
    let pid = process.pid;
    // SAFETY: a system call with two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::ESRCH) => AttachError::Gone { pid },
            _ => AttachError::Io { pid, tried: "pidfd_open".to_string(), error },
        });
    }
    // SAFETY: `fd` was just opened and belongs to nobody else.
    let handle = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
    if process.is_same() { Ok(handle) } else { Err(AttachError::Gone { pid }) }
}

fn quit(handle: &OwnedFd) -> io::Result<()> {
    let no_details = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the handle is open, and the details of the signal may be null.
    let failed = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), libc::SIGQUIT, no_details, 0)
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The file that tells the JVM what the signal means. Removed when dropped, if we made it.
struct Trigger {
    folder: OwnedFd,
    name: CString,
    /// As the target names it.
    shown: String,
    ours: bool,
}

impl Trigger {
    /// In /tmp, where the socket will be too; else in the working directory, where the JVM looks first.
    fn make(process: &Process, door: &Door) -> Result<Trigger, AttachError> {
        let tmp = door.tmp.try_clone().map(|folder| ("/tmp/", folder));
        let here = process.open_file("cwd").map(|folder| ("./", OwnedFd::from(folder)));
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for place in [tmp, here] {
            let made = place.and_then(|(place, folder)| Trigger::make_in(folder, place, door));
            match made {
                Ok(trigger) => return Ok(trigger),
                Err(error) => last = error,
            }
        }
        let tried = format!("{} can be made neither in its /tmp nor in its folder", door.trigger_name());
        Err(failure(door, &tried, last))
    }

    fn make_in(folder: OwnedFd, place: &str, door: &Door) -> io::Result<Trigger> {
        let name = CString::new(door.trigger_name())?;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_WRONLY;
        // SAFETY: the directory is open, and `name` is a NUL-terminated string that outlives the call.
        let fd = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, 0o600) };
        let shown = format!("{place}{}", door.trigger_name());
        if fd < 0 {
            let error = io::Error::last_os_error();
            // Another tool is attaching now, or died doing so: its file serves as well, and is not ours to remove.
            let exists = error.raw_os_error() == Some(libc::EEXIST);
            return if exists { Ok(Trigger { folder, name, shown, ours: false }) } else { Err(error) };
        }
        // SAFETY: `fd` was just opened and belongs to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let trigger = Trigger { folder, name, shown, ours: true };
        // The JVM heeds it only if its own user owns it (JDK 11 and on: or root).
        // SAFETY: the file is open.
        let failed = unsafe { libc::fchown(file.as_raw_fd(), door.uid, door.gid) };
        if failed != 0 && door.other_user().is_some() {
            return Err(io::Error::last_os_error());
        }
        Ok(trigger)
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        if self.ours {
            // SAFETY: the directory is open, and `name` is a NUL-terminated string that outlives the call.
            unsafe { libc::unlinkat(self.folder.as_raw_fd(), self.name.as_ptr(), 0) };
        }
    }
}
