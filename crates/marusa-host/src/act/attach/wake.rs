//! Asks a JVM to open its socket: a file .attach_pidN in its /tmp, owned by its user, then SIGQUIT. Without the file the same
//! signal means a thread dump on the JVM's standard output; without a handler it means death. So the order is: check everything
//! that can be checked, make the file, check again, signal through a pidfd (a process that was given the pid since is never hit),
//! wait, remove the file whatever happened.
//!
//! The JVM also looks in its working directory (attachListener_posix.cpp, `is_init_trigger`), which may be anywhere, /etc
//! included. It is not used: a JVM that cannot write to /tmp cannot make its socket there either.

use super::connect::{Door, check_runtime};
use super::{AttachError, Receipt, options};
use crate::act::as_target::OwnFile;
use crate::act::signals::{self, Blocked};
use crate::os::pidfd;
use crate::os::place::facts_at;
use crate::os::process::Process;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
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
    prove(process, door)?;
    let words = |name| process.bytes(name).unwrap_or_default();
    if options::forbid_attachment(&words("cmdline"), &words("environ")) {
        return Err(AttachError::Disabled { pid, option: "-XX:+DisableAttachMechanism".to_string() });
    }
    let handle = pin(process)?;
    // A signal to end waits until the file is gone.
    let _blocked = Blocked::start();
    let trigger = trigger(door)?;
    receipt.trigger_file = Some(format!("/tmp/{}", door.trigger_name()));
    // It may have run another program since.
    prove(process, door)?;
    door.user().does(|| quit(&handle)).map_err(|error| failure(door, "SIGQUIT", error))?;
    receipt.signal_sent = Some("SIGQUIT");
    wait(process, door, limit)?;
    drop(trigger);
    receipt.listener_started = true;
    Ok(())
}

/// Whether this is still the process that was meant, of the same user, and a HotSpot JVM that catches SIGQUIT: any other would
/// end by it.
fn prove(process: &Process, door: &Door) -> Result<(), AttachError> {
    let pid = process.pid;
    let status = process.status().map_err(|_| AttachError::Gone { pid })?;
    check_runtime(process, &|tried: &str, error| failure(door, tried, error))?;
    if status.signals_caught.is_none_or(|signals| signals & SIGQUIT_BIT == 0) {
        return Err(AttachError::SignalNotCaught { pid });
    }
    let is_its_user = status.uid == Some(door.uid) && status.gid == Some(door.gid);
    if is_its_user && process.is_same() { Ok(()) } else { Err(AttachError::Gone { pid }) }
}

fn wait(process: &Process, door: &Door, limit: Duration) -> Result<(), AttachError> {
    let pid = process.pid;
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if door.is_open()? {
            return Ok(());
        }
        if !process.is_same() {
            return Err(AttachError::Gone { pid });
        }
        if signals::pending() {
            return Err(AttachError::Interrupted { pid });
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
        hint: "attachment may be disabled (-XX:+DisableAttachMechanism), or the JVM is frozen, or its /tmp cannot be \
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
        _ if error.kind() == io::ErrorKind::PermissionDenied => {
            AttachError::Unsafe { pid, tried: tried.to_string(), error }
        }
        _ => AttachError::Io { pid, tried: tried.to_string(), error },
    }
}

/// A handle of exactly this process: opened by pid, and the process was still the same after.
fn pin(process: &Process) -> Result<OwnedFd, AttachError> {
    let pid = process.pid;
    pidfd::of(process).map_err(|error| match error.raw_os_error() {
        Some(libc::ESRCH) => AttachError::Gone { pid },
        _ => AttachError::Io { pid, tried: "pidfd_open".to_string(), error },
    })
}

fn quit(handle: &OwnedFd) -> io::Result<()> {
    Ok(rustix::process::pidfd_send_signal(handle, rustix::process::Signal::QUIT)?)
}

/// The file that tells the JVM what the signal means, where its socket will be too. Removed when dropped, if we made it.
fn trigger(door: &Door) -> Result<Option<OwnFile>, AttachError> {
    let tried = format!("cannot create /tmp/{}", door.trigger_name());
    let made = door.tmp.try_clone().and_then(|tmp| OwnFile::create(tmp, &door.trigger_name(), door.user()));
    match made {
        Ok((_, file)) => Ok(Some(file)),
        // Another tool is attaching now, or died doing so: its file serves as well, and is not ours to remove.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_heeded(door) => Ok(None),
        Err(error) => Err(failure(door, &tried, error)),
    }
}

/// Whether the JVM heeds the file that is there: only if its own user owns it (JDK 11 and on: or root). It answers the signal with
/// a thread dump otherwise.
fn is_heeded(door: &Door) -> bool {
    let name = CString::new(door.trigger_name()).unwrap_or_default();
    facts_at(&door.tmp, &name).is_ok_and(|facts| facts.kind() == libc::S_IFREG && facts.uid == door.uid)
}
