//! A process that takes an instance of tracefs away when we cannot: after kill -9 of ours.
//!
//! It is a fork of ours that runs no other program, so that it works whatever became of our executable, and holds nothing but the
//! reading end of a pipe, the writing end of which is ours alone. The end of that pipe is our end. It has a session of its
//! own, so that Ctrl-C does not reach it, and no signal but SIGKILL ends it. Who kills a whole cgroup kills it too; what is
//! left then is swept away by the next start (`instance::sweep`).

use crate::os::signal_set::SignalSet;
use rustix::fs::{AtFlags, CWD, unlinkat};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::{Timespec, nanosleep};
use std::ffi::{CStr, CString};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How often an instance is tried that is still in use, 5 ms apart: 20 s.
const TRIES: u32 = 4_000;
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// Ours, as long as it lives: dropped, the instance is removed by the guardian.
#[derive(Debug)]
pub struct Guardian {
    /// Closed first of all when it is dropped.
    pipe: Option<PipeWriter>,
    pid: Option<Pid>,
}

impl Guardian {
    /// For a directory that need not be there yet.
    pub fn start(instance: &Path) -> io::Result<Guardian> {
        let path = CString::new(instance.as_os_str().as_bytes())?;
        let (reading, writing) = io::pipe()?;
        let (mut is_ready, ready) = io::pipe()?;
        // SAFETY: the child calls only functions that are safe after a fork (signal-safety(7)), allocates nothing, and never
        // returns: other threads' locks may be held for ever in it.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => guard(&reading, &ready, &path),
            pid => {
                drop(ready);
                let guardian = Guardian { pipe: Some(writing), pid: Pid::from_raw(pid) };
                // Before it has a session of its own, a signal to our group would end it with us.
                match is_ready.read(&mut [0])? {
                    0 => Err(io::Error::other("it ended at once")),
                    _ => Ok(guardian),
                }
            }
        }
    }

    /// There is nothing to remove: it ends, and is waited for.
    pub fn release(mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // A guardian that is gone gives EPIPE, and SIGPIPE is ignored by Rust programs.
            let _ = pipe.write(b"r");
            drop(pipe);
            let _ = waitpid(self.pid, WaitOptions::empty());
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // It may still be at work: then it stays to be collected until we end.
        let _ = waitpid(self.pid, WaitOptions::NOHANG);
    }
}

/// All that the child does: by system calls alone, with texts that end with NUL, so that nothing is allocated.
fn guard(pipe: &PipeReader, ready: &PipeWriter, instance: &CStr) -> ! {
    alone(pipe, ready);
    let is_done = retry_on_intr(|| rustix::io::read(pipe, &mut [0])) == Ok(1) || removes(instance);
    // SAFETY: ends the child without running anything of ours.
    unsafe { libc::_exit(if is_done { 0 } else { 1 }) }
}

fn removes(instance: &CStr) -> bool {
    (0..TRIES).any(|_| {
        let is_gone = matches!(unlinkat(CWD, instance, AtFlags::REMOVEDIR), Ok(()) | Err(Errno::NOENT));
        if !is_gone {
            let _ = nanosleep(&PAUSE);
        }
        is_gone
    })
}

/// Away from the terminal, from signals, and from all files but one: who waits for the end of our output waits for us only.
fn alone(pipe: &PipeReader, ready: &PipeWriter) {
    SignalSet::all().block_only();
    let _ = rustix::process::setsid();
    let _ = rustix::io::write(ready, b"r");
    let _ = rustix::thread::set_name(c"marusa-guardian");
    let _ = rustix::process::chdir(c"/");
    let pipe = pipe.as_raw_fd();
    let number = pipe as libc::c_uint;
    // SAFETY: closes files by their numbers; nothing of this process uses them from here on.
    let close = |from: libc::c_uint, to: libc::c_uint| unsafe {
        libc::syscall(libc::SYS_close_range, from, to, 0) == 0
    };
    let below = number == 0 || close(0, number - 1);
    // Before Linux 5.9 there is no such call.
    if !close(number + 1, libc::c_uint::MAX) || !below {
        (0..4096).filter(|other| *other != pipe).for_each(|other| {
            // SAFETY: as above.
            unsafe { libc::close(other) };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn directory(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("marusa-guardian-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory");
        path
    }

    #[test]
    fn it_removes_when_it_is_left_alone_and_not_when_it_is_released() {
        let (left, kept) = (directory("left"), directory("kept"));
        let guardian = Guardian::start(&left).expect("a fork");
        Guardian::start(&kept).expect("a fork").release();
        assert!(left.exists() && kept.exists());
        let pid = guardian.pid;
        drop(guardian);
        let started = Instant::now();
        while left.exists() && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!left.exists() && kept.exists());
        let _ = waitpid(pid, WaitOptions::empty());
        std::fs::remove_dir(kept).expect("removed");
    }
}
