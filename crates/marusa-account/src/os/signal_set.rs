//! A set of signals: what a thread blocks, what is pending for it, and a file that tells when one is. One thin layer above libc, so
//! that nothing else deals with `sigset_t`; all calls are safe after a fork (signal-safety(7)).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

#[derive(Clone, Copy)]
pub struct SignalSet(libc::sigset_t);

impl SignalSet {
    pub fn of(signals: impl IntoIterator<Item = libc::c_int>) -> SignalSet {
        // SAFETY: all zeros are a set, the empty one on Linux.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        for signal in signals {
            // SAFETY: the set outlives the call, which refuses a number that is no signal's.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        SignalSet(set)
    }

    /// The ones that libc lets a program block.
    pub fn all() -> SignalSet {
        SignalSet::of(1..=64)
    }

    /// The ones that wait for this process or this thread, which blocks them.
    pub fn pending() -> SignalSet {
        let mut set = SignalSet::of([]);
        // SAFETY: the set outlives the call.
        unsafe { libc::sigpending(&mut set.0) };
        set
    }

    pub fn has(&self, signal: libc::c_int) -> bool {
        // SAFETY: the set outlives the call.
        unsafe { libc::sigismember(&self.0, signal) == 1 }
    }

    /// Blocks these, too, in the calling thread; the set from before.
    pub fn block(&self) -> SignalSet {
        self.mask(libc::SIG_BLOCK)
    }

    /// Blocks these in the calling thread, and no others.
    pub fn block_only(&self) {
        self.mask(libc::SIG_SETMASK);
    }

    fn mask(&self, how: libc::c_int) -> SignalSet {
        let mut before = SignalSet::of([]);
        // SAFETY: both sets outlive the call.
        unsafe { libc::pthread_sigmask(how, &self.0, &mut before.0) };
        before
    }

    /// A file that can be read while one of these, blocked, is pending: reading takes it away.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the set outlives the call.
        match unsafe { libc::signalfd(-1, &self.0, libc::SFD_CLOEXEC) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: `fd` was just opened and has no other owner.
            fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        }
    }

    /// Takes one of these away, if one is pending; whether it was.
    pub fn take_pending(&self) -> bool {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set and the time outlive the call, and what the signal says of itself is not asked for.
        unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &at_once) > 0 }
    }
}
