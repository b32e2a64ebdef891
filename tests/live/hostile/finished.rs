//! Runs of the real binary with a time limit, and what each used.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A run that ended or was killed.
pub struct Finished {
    pub what: String,
    pub pid: i64,
    /// `None`: a signal ended it.
    pub status: Option<i32>,
    /// It was still running at its limit, and was killed.
    pub late: bool,
    /// Since its start or, where it was asked to end, since then.
    pub took: Duration,
    pub lived: Duration,
    pub cpu: Duration,
    pub resident_kb: i64,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs `marusa ARGUMENTS` for at most `limit`.
pub fn marusa_within(arguments: &[&str], limit: Duration) -> Finished {
    Running::start(arguments).within(limit)
}

/// A run that goes on.
pub struct Running {
    what: String,
    child: Child,
    started: Instant,
    readers: Vec<std::thread::JoinHandle<Vec<u8>>>,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("marusa runs");
        let readers =
            vec![reader(child.stdout.take().expect("a pipe")), reader(child.stderr.take().expect("a pipe"))];
        let what = format!("marusa {}", arguments.join(" "));
        Running { what, child, started: Instant::now(), readers }
    }

    /// Polls until `done`; the run must go on in the meantime.
    pub fn wait_until(&mut self, limit: Duration, done: impl Fn() -> bool) {
        let started = Instant::now();
        while !done() {
            assert!(self.child.try_wait().expect("ours").is_none(), "{} ended by itself", self.what);
            assert!(started.elapsed() < limit, "{}: not reached in {limit:?}", self.what);
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn end_by(self, signal: i32, limit: Duration) -> Finished {
        super::signal(self.child.id() as i32, signal);
        self.within(limit)
    }

    fn within(mut self, limit: Duration) -> Finished {
        let since = Instant::now();
        let mut late = false;
        let (status, usage) = loop {
            if let Some(ended) = ended(self.child.id() as i32) {
                break ended;
            }
            if since.elapsed() > limit && !late {
                late = true;
                // A process that waits in the kernel may not be reaped at once, even when killed.
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = since.elapsed();
        let readers = std::mem::take(&mut self.readers);
        let mut outputs = readers.into_iter().map(|reader| reader.join().expect("a reader"));
        Finished {
            pid: i64::from(self.child.id()),
            status: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            late,
            took,
            lived: self.started.elapsed(),
            cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            resident_kb: usage.ru_maxrss,
            stdout: outputs.next().unwrap_or_default(),
            stderr: outputs.next().unwrap_or_default(),
            what: std::mem::take(&mut self.what),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only a test that failed leaves it running.
        let _ = self.child.kill();
    }
}

fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

fn seconds(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}

/// The status and the resources of a child that ended.
fn ended(pid: i32) -> Option<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: rusage is plain data; zeros are a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both are valid for writes; the pid is of our own child, which nobody else waits for.
    let reaped = unsafe { libc::wait4(pid, &mut status, libc::WNOHANG, &mut usage) };
    assert!(reaped >= 0, "wait4: {}", std::io::Error::last_os_error());
    (reaped == pid).then_some((status, usage))
}
