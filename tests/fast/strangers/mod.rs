//! Files of strangers: small files that would be a large memory, lists that would take hours, names of things that are not files.
//! Each ends with a typed message and exit status 3, or with its account, in memory that is in proportion to the file.

mod cores;
mod documents;
mod frozen;
mod recordings;
mod things;

use marusa::base::limits::{INPUT_PROCESS_BYTES_FREE, INPUT_PROCESS_FACTOR};
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Far above what any of these files may take, so that a defect does not take the machine down.
const ADDRESS_SPACE_BYTES: u64 = 24 << 30;
/// Far more than a debug build on a busy machine needs; what is quadratic takes hours.
const SECONDS_MAX: u64 = 300;

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Directory {
        Directory(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file with these bytes.
    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("ours");
        path.display().to_string()
    }
}

/// How a command ended, what it printed, and what it took.
struct Ended {
    status: Option<i32>,
    stderr: String,
    peak_bytes: u64,
    cpu: Duration,
}

/// Runs marusa on a file and waits for it; outputs go to files, so that nobody has to empty pipes. The kernel counts the peak of
/// the
/// process that called exec too (fs/exec.c, `exec_mmap`), so the files are made without much memory of ours.
fn marusa(directory: &Directory, arguments: &[&str]) -> Ended {
    let out = |name: &str| File::create(directory.path(name)).expect("ours");
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args(arguments).stdin(std::process::Stdio::null()).stdout(out("stdout")).stderr(out("stderr"));
    // SAFETY: setrlimit is safe between fork and exec, and touches nothing of ours.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: ADDRESS_SPACE_BYTES, rlim_max: ADDRESS_SPACE_BYTES };
            libc::setrlimit(libc::RLIMIT_AS, &limit);
            Ok(())
        });
    }
    #[allow(clippy::zombie_processes, reason = "wait4 below waits for it: only that call says what it took")]
    let child = command.spawn().expect("marusa runs");
    let (status, usage) = wait(child.id() as i32, arguments);
    let text = |name: &str| {
        let mut bytes = Vec::new();
        let opened = File::open(directory.path(name)).expect("ours");
        opened.take(64 << 20).read_to_end(&mut bytes).expect("ours");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let user = Duration::new(usage.ru_utime.tv_sec as u64, usage.ru_utime.tv_usec as u32 * 1000);
    let system = Duration::new(usage.ru_stime.tv_sec as u64, usage.ru_stime.tv_usec as u32 * 1000);
    Ended {
        status: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        stderr: text("stderr"),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
        cpu: user + system,
    }
}

fn wait(pid: i32, arguments: &[&str]) -> (i32, libc::rusage) {
    let started = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: a zeroed rusage is a good one, and both places outlive the call.
        let (done, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid, &mut status, libc::WNOHANG, &mut usage), usage)
        };
        if done == pid {
            return (status, usage);
        }
        if started.elapsed() > Duration::from_secs(SECONDS_MAX) {
            // SAFETY: the child is ours and not waited for yet, so its number is still its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("{arguments:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What every command on a file of a stranger keeps: an exit status of its own, no panic, and the bound on its memory.
fn bounded(directory: &Directory, arguments: &[&str], file: &str) -> Ended {
    let ended = marusa(directory, arguments);
    let length = std::fs::metadata(file).expect("ours").len();
    let bound = INPUT_PROCESS_BYTES_FREE + INPUT_PROCESS_FACTOR * length;
    let taken = ended.peak_bytes;
    println!("{arguments:?}: {} KiB, {} MiB, {:?}", length >> 10, taken >> 20, ended.cpu);
    assert!(taken <= bound, "{arguments:?}: {} MiB for a file of {length} bytes", taken >> 20);
    assert!(!ended.stderr.contains("panicked"), "{arguments:?}: {}", ended.stderr);
    assert!(matches!(ended.status, Some(0 | 1 | 3)), "{arguments:?}: {:?} {}", ended.status, ended.stderr);
    ended
}

/// As `bounded`, and it is refused for this reason.
fn refused(directory: &Directory, arguments: &[&str], file: &str, words: &str) {
    let ended = bounded(directory, arguments, file);
    assert_eq!(ended.status, Some(3), "{arguments:?}: {}", ended.stderr);
    assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
