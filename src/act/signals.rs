//! What is changed is changed whole: while a signal to end is blocked it waits, and a loop that waits for it ends between two
//! rounds, not in one.

use crate::os::budget::ENDING_SIGNALS as ENDING;
use crate::os::pidfd;
use crate::os::process::Process;
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// While it lives, this thread gets none of the signals that end a program; threads that it starts, neither. Several may live
/// at once, and end in any order: the last one lets the signals through again.
#[derive(Debug)]
pub struct Blocked {
    /// The mask is that of a thread.
    _stays: PhantomData<*const ()>,
}

thread_local! {
    /// How many live, and the mask from before the first.
    static BLOCKED: Cell<(usize, Option<libc::sigset_t>)> = const { Cell::new((0, None)) };
}

impl Blocked {
    pub fn start() -> Blocked {
        let (count, mut before) = BLOCKED.get();
        if count == 0 {
            let ending = ending();
            // SAFETY: an all-zero set is one to write to.
            let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
            // SAFETY: both sets outlive the call.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &ending, &mut mask) };
            before = Some(mask);
        }
        BLOCKED.set((count + 1, before));
        Blocked { _stays: PhantomData }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let (count, before) = BLOCKED.get();
        BLOCKED.set((count.saturating_sub(1), before));
        if let (1, Some(before)) = (count, before) {
            // SAFETY: the set is the one that the kernel gave.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
        }
    }
}

fn ending() -> libc::sigset_t {
    // SAFETY: an all-zero set is one to write to.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set outlives the calls, and the numbers are those of signals.
    unsafe {
        libc::sigemptyset(&mut set);
        ENDING.iter().for_each(|signal| {
            libc::sigaddset(&mut set, *signal);
        });
    }
    set
}

/// Whether a signal to end waits while it is blocked.
pub fn pending() -> bool {
    crate::os::budget::is_signal_pending()
}

/// Waits for a signal to end that is blocked, and leaves it to whoever answers it.
pub fn until_pending() {
    let ending = ending();
    // SAFETY: the set outlives the call.
    let signals = owned(|| unsafe { libc::signalfd(-1, &ending, libc::SFD_CLOEXEC) });
    while !pending() {
        match &signals {
            Ok(signals) => {
                let mut watched = libc::pollfd { fd: signals.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: the one element outlives the call.
                unsafe { libc::poll(&mut watched, 1, -1) };
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Ends this process at once, with the status that a shell gives one that the pending signal ended.
pub fn exit_as_ended() {
    // SAFETY: an all-zero set is one to write to.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set outlives the calls.
    let mut is = |signal| unsafe { libc::sigpending(&mut set) == 0 && libc::sigismember(&set, signal) == 1 };
    let signal = ENDING.into_iter().find(|signal| is(*signal)).unwrap_or(libc::SIGTERM);
    // SAFETY: ends the process without running anything of it.
    unsafe { libc::_exit(128 + signal) };
}

/// Takes away what `pending` saw, by a program that ends in its own way: it would end us as soon as it is no longer blocked.
pub fn take_pending() {
    let ending = ending();
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set and the time outlive the calls, and what the signal says of itself is not asked for.
    while unsafe { libc::sigtimedwait(&ending, std::ptr::null_mut(), &at_once) } > 0 {}
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time was over.
    Time,
    /// The target ended.
    Ended,
    /// Ctrl-C, or another signal to end.
    Signal,
}

/// Waits for the next round, for the target's end, or for a signal.
pub struct Waiting {
    target: OwnedFd,
    signals: OwnedFd,
    _blocked: Blocked,
}

impl Waiting {
    pub fn on(process: &Process) -> io::Result<Waiting> {
        let waiting = Waiting::on_child(process.pid)?;
        if !process.is_same() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(waiting)
    }

    /// On a child of ours that is not waited for yet: its pid is its own, even when it has ended.
    pub fn on_child(pid: i32) -> io::Result<Waiting> {
        let blocked = Blocked::start();
        let target = pidfd::of_pid(pid)?;
        let ending = ending();
        // SAFETY: the set outlives the call.
        let signals = owned(|| unsafe { libc::signalfd(-1, &ending, libc::SFD_CLOEXEC) })?;
        Ok(Waiting { target, signals, _blocked: blocked })
    }

    /// Whether the target has ended; takes no signal.
    pub fn has_ended(&self) -> bool {
        pidfd::ended_within(&self.target, Some(Duration::ZERO))
    }

    pub fn until(&self, deadline: Instant) -> Woken {
        self.until_or(deadline, None)
    }

    /// As `until`, but the time is over too when `bell` can be read.
    pub fn until_or(&self, deadline: Instant, bell: Option<BorrowedFd>) -> Woken {
        loop {
            // Rounded up, so that the last turn does not spin.
            let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
            let milliseconds = left.as_millis().min(i32::MAX as u128) as libc::c_int;
            let watch = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // poll(2): what is negative is left out.
            let bell = bell.map_or(-1, |bell| bell.as_raw_fd());
            let mut watched = [watch(self.target.as_raw_fd()), watch(self.signals.as_raw_fd()), watch(bell)];
            // SAFETY: the array outlives the call, and the count is its length.
            let ready = unsafe { libc::poll(watched.as_mut_ptr(), 3, milliseconds) };
            match (ready, watched[1].revents, watched[0].revents) {
                (1.., 0, 0) if watched[2].revents != 0 => return Woken::Time,
                (1.., 0, 0) | (..0, ..) => {}
                (1.., 0, _) => return Woken::Ended,
                (1.., ..) => {
                    self.take();
                    return Woken::Signal;
                }
                (0, ..) => {}
            }
            if Instant::now() >= deadline {
                return Woken::Time;
            }
        }
    }

    /// Takes the pending signal away: it would end us as soon as it is no longer blocked.
    fn take(&self) {
        let mut taken = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the buffer outlives the call, and the length is its size.
        unsafe { libc::read(self.signals.as_raw_fd(), taken.as_mut_ptr().cast(), taken.len()) };
    }
}

fn owned(open: impl FnOnce() -> libc::c_int) -> io::Result<OwnedFd> {
    let fd = open();
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Runs `work` while a signal to end is pending for this thread; the signal is taken away afterwards.
#[cfg(test)]
pub(crate) fn with_one_pending<T>(work: impl FnOnce() -> T) -> T {
    let _blocked = Blocked::start();
    // To this thread alone: the other tests go on.
    // SAFETY: the thread is this one, and the signal is blocked.
    unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGINT) };
    let result = work();
    take_pending();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_blocked() -> bool {
        // SAFETY: an all-zero set is one to write to, and it outlives the calls.
        unsafe {
            let mut now: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut now);
            ENDING.iter().all(|signal| libc::sigismember(&now, *signal) == 1)
        }
    }

    #[test]
    fn signals_come_through_when_the_last_one_who_blocks_them_ends() {
        assert!(!is_blocked());
        let (first, second) = (Blocked::start(), Blocked::start());
        drop(first);
        assert!(is_blocked());
        assert!(std::thread::spawn(is_blocked).join().expect("no panic"));
        drop(second);
        assert!(!is_blocked());
        drop(Blocked::start());
        assert!(!is_blocked());
    }

    #[test]
    fn a_wait_ends_with_the_time_with_the_target_or_with_a_signal() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let process = Process::open(child.id() as i32).expect("it is there");
        let waiting = Waiting::on(&process).expect("a pidfd");
        let now = Instant::now();
        assert_eq!(waiting.until(now + Duration::from_millis(20)), Woken::Time);
        assert!(now.elapsed() >= Duration::from_millis(20));
        child.kill().expect("killed");
        assert_eq!(waiting.until(now + Duration::from_secs(60)), Woken::Ended);
        child.wait().expect("waited for");
        // To this thread alone: the other tests go on.
        // SAFETY: the thread is this one, and the signal is blocked.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGINT) };
        assert_eq!(waiting.until(now + Duration::from_secs(60)), Woken::Signal);
    }

    #[test]
    fn a_signal_to_end_does_not_wait_for_a_page() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", silent.local_addr().expect("its address"));
        let page = with_one_pending(|| crate::os::http::get_within(&url, Duration::from_secs(600)));
        assert!(page.is_err_and(|gap| gap.why == crate::base::Why::Interrupted));
    }
}
