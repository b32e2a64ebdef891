//! What is changed is changed whole: while a signal to end is blocked it waits, and a loop that waits for it ends between two
//! rounds, not in one.

use crate::os::budget::ENDING_SIGNALS as ENDING;
use crate::os::pidfd;
use crate::os::process::Process;
use crate::os::signal_set::SignalSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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
    static BLOCKED: Cell<(usize, Option<SignalSet>)> = const { Cell::new((0, None)) };
}

impl Blocked {
    pub fn start() -> Blocked {
        let (count, mut before) = BLOCKED.get();
        if count == 0 {
            before = Some(ending().block());
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
            before.block_only();
        }
    }
}

fn ending() -> SignalSet {
    SignalSet::of(ENDING)
}

/// Whether a signal to end waits while it is blocked.
pub fn pending() -> bool {
    crate::os::budget::is_signal_pending()
}

/// Waits for a signal to end that is blocked, and leaves it to whoever answers it.
pub fn until_pending() {
    let signals = ending().descriptor();
    while !pending() {
        match &signals {
            Ok(signals) => {
                let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], None);
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Ends this process at once, with the status that a shell gives one that the pending signal ended.
pub fn exit_as_ended() {
    let pending = SignalSet::pending();
    let signal = ENDING.into_iter().find(|signal| pending.has(*signal)).unwrap_or(libc::SIGTERM);
    // SAFETY: ends the process without running anything of it.
    unsafe { libc::_exit(128 + signal) };
}

/// Takes away what `pending` saw, by a program that ends in its own way: it would end us as soon as it is no longer blocked.
pub fn take_pending() {
    while ending().take_pending() {}
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
        Ok(Waiting { target, signals: ending().descriptor()?, _blocked: blocked })
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
            let left = deadline.saturating_duration_since(Instant::now());
            let watch = |file| PollFd::from_borrowed_fd(file, PollFlags::IN);
            let target = self.target.as_fd();
            // Without a bell, the target stands in its place, too.
            let mut watched = [target, self.signals.as_fd(), bell.unwrap_or(target)].map(watch);
            // A time too far for the kernel is none.
            let woken = poll(&mut watched, Timespec::try_from(left).ok().as_ref()).is_ok();
            let [ended, signal, rung] = watched.map(|file| woken && !file.revents().is_empty());
            match () {
                () if signal => {
                    self.take();
                    return Woken::Signal;
                }
                () if ended => return Woken::Ended,
                () if rung => return Woken::Time,
                () => {}
            }
            if Instant::now() >= deadline {
                return Woken::Time;
            }
        }
    }

    /// Takes the pending signal away: it would end us as soon as it is no longer blocked.
    fn take(&self) {
        let _ = rustix::io::read(&self.signals, &mut [0_u8; size_of::<libc::signalfd_siginfo>()]);
    }
}

#[cfg(test)]
pub(crate) use tests::with_one_pending;

#[cfg(test)]
mod tests {
    use super::*;

    /// To this thread alone: the other tests go on.
    fn interrupt() {
        // SAFETY: the thread is this one, and the signal is blocked.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGINT) };
    }

    /// Runs `work` while a signal to end is pending for this thread; the signal is taken away afterwards.
    pub(crate) fn with_one_pending<T>(work: impl FnOnce() -> T) -> T {
        let _blocked = Blocked::start();
        interrupt();
        let result = work();
        take_pending();
        result
    }

    fn is_blocked() -> bool {
        let now = SignalSet::of([]).block();
        ENDING.iter().all(|signal| now.has(*signal))
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
        interrupt();
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
