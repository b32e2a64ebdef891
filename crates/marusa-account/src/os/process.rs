//! One process, pinned: the directory /proc/PID is held open, so a pid that is used again by another process is never
//! read by mistake (reads through the old directory fail with ESRCH), and the start time says which process it was.

use super::budget;
use super::machine;
use super::maps::{self, Mapping};
use super::rights::{self, Capability};
use super::status::{self, Status};
use crate::base::limits::{MAPPINGS_MAX, THREADS_MAX};
use crate::base::{Gap, Known, Why};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Largest /proc file that is read whole, in bytes: 4 million mappings of 100 bytes.
const PROC_FILE_BYTES_MAX: u64 = MAPPINGS_MAX as u64 * 100;

/// Bytes of one that are asked for at a time, and that are read whatever the budget says.
const PROC_PIECE_BYTES: usize = 16 << 10;
const PROC_SMALL_BYTES: usize = 8 << 10;

/// An open process.
pub struct Process {
    pub pid: i32,
    /// Clock ticks after boot.
    pub start_ticks: u64,
    directory: OwnedFd,
}

/// One thread, from /proc/PID/task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub tid: i32,
    /// The kernel's 15 bytes of its name.
    pub name: String,
    /// Its id inside a pid namespace that is not the reader's; `None` where there is none, or the thread ended first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_tid: Option<i32>,
}

const HIDDEN_HELP: &str = "run marusa as root, or in the group that the mount option gid= names";

/// Why a process cannot be opened: the one early failure.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("no process with pid {0}")]
    None(i32),
    #[error(
        "pid {0} is another user's, and /proc is mounted so that it hides those (hidepid): {help}",
        help = rights::hint(&[Capability::SYS_PTRACE], HIDDEN_HELP)
    )]
    Hidden(i32),
    #[error("pid {0} has no memory: it is ending just now, or it has not begun to run its program")]
    NoMemory(i32),
    #[error("pid {0} is a zombie: it has ended and holds no memory; its parent has not collected it yet")]
    Zombie(i32),
    #[error("pid {0} is a kernel thread: it has no memory of its own")]
    KernelThread(i32),
    #[error("/proc/{0} cannot be read: {1}")]
    Denied(i32, io::Error),
}

impl Process {
    pub fn open(pid: i32) -> Result<Process, OpenError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(format!("/proc/{pid}"), flags, Mode::empty());
        let directory = opened.map_err(|_| match is_hidden(pid) {
            true => OpenError::Hidden(pid),
            false => OpenError::None(pid),
        })?;
        let mut process = Process { pid, start_ticks: 0, directory };
        machine::of_host();
        let stat = process.text("stat").map_err(|error| match error.raw_os_error() {
            // Every user may read it, unless hidepid is 1 or 2.
            Some(libc::EPERM | libc::ENOENT) if is_hidden(pid) => OpenError::Hidden(pid),
            Some(libc::ESRCH | libc::ENOENT) => OpenError::None(pid),
            _ => OpenError::Denied(pid, error),
        })?;
        let stat = Stat::parse(&stat).ok_or_else(|| {
            OpenError::Denied(
                pid,
                io::Error::new(io::ErrorKind::InvalidData, "stat is not of the known form"),
            )
        })?;
        process.start_ticks = stat.start_ticks;
        match stat {
            Stat { state: 'Z' | 'X', .. } => Err(OpenError::Zombie(pid)),
            Stat { virtual_bytes: 0, .. } if stat.is_kernel_thread() => Err(OpenError::KernelThread(pid)),
            Stat { virtual_bytes: 0, .. } => Err(OpenError::NoMemory(pid)),
            _ => Ok(process),
        }
    }

    /// This very process.
    pub fn own() -> Result<Process, OpenError> {
        Process::open(std::process::id() as i32)
    }

    /// Opens a file below /proc/PID for reading: the kernel's own, never a link to what the target names (`foreign::open_link`).
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        open_below(&self.directory, name)
    }

    /// A reference (O_PATH) to a file below /proc/PID, or to what a link there leads to: it opens nothing.
    pub fn reference(&self, name: &str) -> io::Result<OwnedFd> {
        open_with(&self.directory, name, libc::O_PATH | libc::O_CLOEXEC)
    }

    /// /proc/PID, for calls that take a directory and a name.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// A file below /proc/PID, whole.
    pub fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut file = self.open_file(name)?;
        let mut bytes = Vec::new();
        let mut piece = vec![0; PROC_PIECE_BYTES];
        loop {
            // The kernel gives a page or so at a time, and may look at every page of a mapping for it.
            match file.read(&mut piece) {
                Ok(0) => return Ok(bytes),
                Ok(length) => bytes.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if bytes.len() as u64 >= PROC_FILE_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "over the limit"));
            }
            // What is small is read also when the time is over: what is known of the rest is of no use without it.
            if bytes.len() > PROC_SMALL_BYTES {
                budget::check_now().map_err(ended)?;
            }
        }
    }

    pub fn text(&self, name: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(name)?).into_owned())
    }

    /// The arguments of the command; empty when the process has overwritten or unmapped them.
    pub fn arguments(&self) -> io::Result<Vec<String>> {
        let bytes = self.bytes("cmdline")?;
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        Ok(bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect())
    }

    /// Where a link below /proc/PID points: `exe`, `root`, `ns/mnt`.
    pub fn link(&self, name: &str) -> io::Result<PathBuf> {
        std::fs::read_link(self.path(name))
    }

    /// The path of a file below /proc/PID, for calls that take no directory. Racy against a recycled pid: check
    /// `is_same` after.
    pub fn path(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.pid.to_string()).join(name)
    }

    /// Whether the process that was opened still lives.
    pub fn is_same(&self) -> bool {
        let is_ours = |stat: Stat| stat.start_ticks == self.start_ticks && !matches!(stat.state, 'Z' | 'X');
        self.stat().is_ok_and(is_ours)
    }

    fn stat(&self) -> Known<Stat> {
        let text = self.text("stat").map_err(|error| gap("/proc/PID/stat", &error))?;
        Stat::parse(&text).ok_or_else(|| Gap::new("/proc/PID/stat", Why::Gone))
    }

    /// Page faults so far that needed no input or output.
    pub fn minor_faults(&self) -> Known<u64> {
        Ok(self.stat()?.minor_faults)
    }

    /// Page faults so far that waited for a disk.
    pub fn major_faults(&self) -> Known<u64> {
        Ok(self.stat()?.major_faults)
    }

    pub fn status(&self) -> Known<Status> {
        let text = self.text("status").map_err(|error| gap("/proc/PID/status", &error))?;
        Ok(status::parse(&text))
    }

    pub fn mappings(&self) -> Known<Vec<Mapping>> {
        Ok(maps::parse(&self.maps_text()?).0)
    }

    /// The mappings as the kernel prints them: two samples that are alike need not both be parsed.
    pub fn maps_text(&self) -> Known<Vec<u8>> {
        self.bytes("maps").map_err(|error| gap("/proc/PID/maps", &error))
    }

    /// The threads that exist now. One that ends while it is listed is left out.
    pub fn tasks(&self) -> Known<Vec<Task>> {
        let failed = |error| gap("/proc/PID/task", &error);
        let entries = std::fs::read_dir(self.path("task")).map_err(failed)?;
        let directory = self.open_file("task").map_err(failed)?;
        let mut tasks = Vec::new();
        for entry in entries.flatten() {
            budget::check().map_err(|why| Gap::new("/proc/PID/task", why))?;
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if tasks.len() == THREADS_MAX {
                return Err(Gap::new("/proc/PID/task", Why::OverLimit));
            }
            // The name of a thread of the kernel may be longer than 15 bytes (fs/proc/array.c, `proc_task_name`); one read
            // gives all of it.
            let mut name = [0; 64];
            let read =
                open_below(&directory, &format!("{tid}/comm")).and_then(|mut file| file.read(&mut name));
            let Ok(length) = read else { continue };
            let name = String::from_utf8_lossy(&name[..length]);
            tasks.push(Task { tid, name: name.trim_end_matches('\n').to_string(), inner_tid: None });
        }
        tasks.sort_by_key(|task| task.tid);
        Ok(tasks)
    }

    /// Fills in `Task::inner_tid`, which takes the reading of one file for each.
    pub(crate) fn read_inner_tids(&self, tasks: &mut [Task]) {
        for task in tasks.iter_mut().take_while(|_| budget::check().is_ok()) {
            let status = self.text(&format!("task/{}/status", task.tid)).map(|text| status::parse(&text));
            task.inner_tid = status.ok().and_then(|status| status.namespace_pids.last().copied());
        }
    }
}

/// Whether there is a process that /proc does not show: it is mounted with hidepid (proc(5)). A signal that is not sent tells.
fn is_hidden(pid: i32) -> bool {
    let pid = (pid > 0).then(|| Pid::from_raw(pid)).flatten();
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
}

fn open_below(directory: impl AsFd, name: &str) -> io::Result<File> {
    open_with(directory, name, libc::O_RDONLY | libc::O_CLOEXEC).map(File::from)
}

fn open_with(directory: impl AsFd, name: &str, flags: libc::c_int) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(directory, name, OFlags::from_bits_retain(flags as u32), Mode::empty())?)
}

/// The end of a target's budget, as an error of the reading of a file.
fn ended(why: Why) -> io::Error {
    let kind = match why {
        Why::OverMemory => io::ErrorKind::OutOfMemory,
        Why::Interrupted => io::ErrorKind::Interrupted,
        _ => io::ErrorKind::TimedOut,
    };
    io::Error::new(kind, why.word())
}

/// The gap that a failed read of a /proc file leaves. A process that ended leaves no file, or an empty one.
pub fn gap(what: &str, error: &io::Error) -> Gap {
    let why = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Why::Denied,
        Some(libc::ESRCH | libc::ENOENT) => Why::Gone,
        Some(libc::ENOTTY | libc::EINVAL | libc::ENOSYS) => Why::NotInThisKernel,
        Some(_) => Why::Failed,
        None => match error.kind() {
            io::ErrorKind::FileTooLarge => Why::OverLimit,
            io::ErrorKind::TimedOut => Why::OverDeadline,
            io::ErrorKind::OutOfMemory => Why::OverMemory,
            io::ErrorKind::Interrupted => Why::Interrupted,
            io::ErrorKind::PermissionDenied => Why::Denied,
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Why::Gone,
            _ => Why::Failed,
        },
    };
    let gap = Gap::new(what, why);
    if why == Why::Failed { gap.hint(error.to_string()) } else { gap }
}

/// The fields of /proc/PID/stat that are used (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub state: char,
    pub parent: i32,
    /// PF_* of include/linux/sched.h.
    pub flags: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub start_ticks: u64,
    pub virtual_bytes: u64,
}

/// The name in /proc/PID/stat, which may hold anything, and the fields after it, the first of which is number 3.
pub(super) fn stat_fields(text: &str) -> Option<(&str, Vec<&str>)> {
    let (start, end) = (text.find('(')?, text.rfind(')')?);
    Some((text.get(start + 1..end)?, text.get(end + 1..)?.split_ascii_whitespace().collect()))
}

impl Stat {
    fn is_kernel_thread(&self) -> bool {
        const PF_KTHREAD: u64 = 0x0020_0000;
        self.flags & PF_KTHREAD != 0
    }

    /// The name in parentheses may hold spaces and parentheses: the last one ends it.
    pub fn parse(text: &str) -> Option<Stat> {
        let (_, fields) = stat_fields(text)?;
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Stat {
            state: fields.first()?.chars().next()?,
            parent: number(4)? as i32,
            flags: number(9)?,
            minor_faults: number(10)?,
            major_faults: number(12)?,
            start_ticks: number(22)?,
            virtual_bytes: number(23)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 29 0 8123 3487563776 5 1844674407370955 1 2 \
                    140733 0 0 0 0 0 0";
        let stat = Stat::parse(text).expect("a good line");
        assert_eq!((stat.state, stat.parent, stat.start_ticks), ('S', 7, 8123));
        assert!(!stat.is_kernel_thread() && Stat { flags: 0x0020_8040, ..stat }.is_kernel_thread());
        assert_eq!(stat.virtual_bytes, 3487563776);
    }

    #[test]
    fn this_very_process_can_be_opened_and_pid_0_can_not() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        assert!(me.is_same());
        assert!(me.mappings().expect("my maps").len() > 5);
        assert!(me.tasks().expect("my threads").iter().any(|task| task.tid == me.pid));
        assert!(matches!(Process::open(0), Err(OpenError::None(0))));
    }

    #[test]
    fn an_error_that_says_nothing_of_its_end_is_no_end() {
        let of = |error: io::Error| gap("/proc/PID/maps", &error);
        assert_eq!(of(io::Error::from_raw_os_error(libc::ESRCH)), Gap::new("/proc/PID/maps", Why::Gone));
        assert_eq!(of(io::ErrorKind::UnexpectedEof.into()).why, Why::Gone);
        assert_eq!(of(io::Error::new(io::ErrorKind::PermissionDenied, "FUSE")).why, Why::Denied);
        let failed = of(io::Error::from_raw_os_error(libc::EMFILE));
        assert_eq!(failed.why, Why::Failed);
        assert!(failed.hint.is_some_and(|hint| hint.contains("open files")));
    }

    #[test]
    fn a_kernel_thread_has_no_memory() {
        if let Err(error) = Process::open(2) {
            assert!(matches!(error, OpenError::KernelThread(2) | OpenError::None(2)), "{error}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_hidden() {
        assert!(!is_hidden(0) && !is_hidden(-1) && !is_hidden(4_194_304));
        assert!(!is_hidden(std::process::id() as i32));
    }
}
