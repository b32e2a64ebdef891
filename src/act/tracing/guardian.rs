//! A process that takes an instance of tracefs away when we cannot: after kill -9 of ours.
//!
//! It is a fork of ours that runs no other program, so that it works whatever became of our executable, and holds nothing but the
//! reading end of a pipe, the writing end of which is ours alone. The end of that pipe is our end. It has a session of its
//! own, so that Ctrl-C does not reach it, and no signal but SIGKILL ends it. Who kills a whole cgroup kills it too; what is
//! left then is swept away by the next start (`instance::sweep`).

use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How often an instance is tried that is still in use, 5 ms apart: 20 s.
const TRIES: u32 = 4_000;
static PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// Ours, as long as it lives: dropped, the instance is removed by the guardian.
#[derive(Debug)]
pub struct Guardian {
    /// Closed first of all when it is dropped.
    pipe: Option<OwnedFd>,
    pid: libc::pid_t,
}

impl Guardian {
    /// For a directory that need not be there yet.
    pub fn start(instance: &Path) -> io::Result<Guardian> {
        let path = CString::new(instance.as_os_str().as_bytes())?;
        let (reading, writing) = pipe()?;
        let (is_ready, ready) = pipe()?;
        // SAFETY: the child calls only functions that are safe after a fork (signal-safety(7)), allocates nothing, and never
        // returns: other threads' locks may be held for ever in it.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => guard(reading.as_raw_fd(), ready.as_raw_fd(), &path),
            pid => {
                drop(ready);
                let guardian = Guardian { pipe: Some(writing), pid };
                // Before it has a session of its own, a signal to our group would end it with us.
                match std::fs::File::from(is_ready).read(&mut [0])? {
                    0 => Err(io::Error::other("it ended at once")),
                    _ => Ok(guardian),
                }
            }
        }
    }

    /// There is nothing to remove: it ends, and is waited for.
    pub fn release(mut self) {
        if let Some(pipe) = self.pipe.take() {
            // SAFETY: one byte of a constant. A guardian that is gone gives EPIPE, and SIGPIPE is ignored by Rust programs.
            unsafe { libc::write(pipe.as_raw_fd(), b"r".as_ptr().cast(), 1) };
            drop(pipe);
            // SAFETY: it is our child, and no other code waits for it.
            unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // SAFETY: it is our child. It may still be at work: then it stays to be collected until we end.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) };
    }
}

/// The reading and the writing end.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: the array has room for the two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just opened and have no other owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// All that the child does.
fn guard(pipe: RawFd, ready: RawFd, instance: &CStr) -> ! {
    alone(pipe, ready);
    let mut byte = 0_u8;
    // SAFETY: a byte of ours to read into, a path that ends with NUL, and constants.
    unsafe {
        loop {
            match libc::read(pipe, (&raw mut byte).cast(), 1) {
                1 => libc::_exit(0),
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => break,
            }
        }
        for _ in 0..TRIES {
            if libc::rmdir(instance.as_ptr()) == 0 || *libc::__errno_location() == libc::ENOENT {
                libc::_exit(0);
            }
            libc::nanosleep(&raw const PAUSE, std::ptr::null_mut());
        }
        libc::_exit(1)
    }
}

/// Away from the terminal, from signals, and from all files but one: who waits for the end of our output waits for us only.
fn alone(pipe: RawFd, ready: RawFd) {
    // SAFETY: system calls with numbers and constant texts; the set of signals is ours.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::setsid();
        libc::write(ready, c"r".as_ptr().cast(), 1);
        libc::prctl(libc::PR_SET_NAME, c"marusa-guardian".as_ptr());
        libc::chdir(c"/".as_ptr());
        let close = |from: libc::c_uint, to: libc::c_uint| libc::syscall(libc::SYS_close_range, from, to, 0);
        let number = pipe as libc::c_uint;
        let below = if number == 0 { 0 } else { close(0, number - 1) };
        // Before Linux 5.9 there is no such call.
        if close(number + 1, libc::c_uint::MAX) != 0 || below != 0 {
            (0..4096).filter(|other| *other != pipe).for_each(|other| {
                libc::close(other);
            });
        }
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
        // SAFETY: it is our child.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        std::fs::remove_dir(kept).expect("removed");
    }
}
