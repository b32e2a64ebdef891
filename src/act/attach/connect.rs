//! The socket of a JVM: found in the target's own /tmp, through /proc/PID/root, so that containers need no entering (a
//! socket in a file system belongs to no network namespace), and connected to as the JVM's own user.
//!
//! JDK 8 takes a peer only if its effective user and group are the JVM's own, so root is refused; JDK 11 and on take root
//! as well. A thread of ours changes its own credentials by raw system calls, which libc would change for all threads,
//! connects (the kernel notes the credentials at that moment), and ends.

use super::AttachError;
use crate::base::limits::ATTACH_ANSWER_BYTES_MAX;
use crate::os::process::Process;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Where a JVM is to be met.
#[derive(Debug)]
pub struct Door {
    pub pid: i32,
    /// The pid as the JVM itself sees it: the last of `NSpid`.
    pub own_pid: i32,
    /// Effective ids, as our user namespace names them.
    pub uid: u32,
    pub gid: u32,
    /// /tmp of the target. The JVM uses it whatever TMPDIR says.
    pub tmp: OwnedFd,
}

impl Door {
    /// The door, and whether a socket is there.
    pub fn find(process: &Process) -> Result<(Door, bool), AttachError> {
        let pid = process.pid;
        let status = process.status().map_err(|_| AttachError::Gone { pid })?;
        let (Some(uid), Some(gid)) = (status.uid, status.gid) else { return Err(AttachError::Gone { pid }) };
        let denied =
            |tried: &str, error| AttachError::NoRights { pid, tried: tried.to_string(), error, uid, gid };
        check_runtime(process, &denied)?;
        let ours = our_ids();
        if ours.0 != 0 && ours.0 != uid {
            let error = io::Error::from_raw_os_error(libc::EPERM);
            return Err(denied("the JVM belongs to another user", error));
        }
        let tmp = process
            .open_file("root")
            .and_then(|root| open_within(&root, c"tmp"))
            .map_err(|error| denied("/tmp of the process can not be opened", error))?;
        let own_pid = status.namespace_pids.last().copied().unwrap_or(pid);
        let door = Door { pid, own_pid, uid, gid, tmp };
        if !process.is_same() {
            return Err(AttachError::Gone { pid });
        }
        if matches!(status.state, Some('T' | 't')) {
            return Err(AttachError::Stopped { pid });
        }
        let found = door.is_open();
        Ok((door, found))
    }

    pub fn socket_name(&self) -> String {
        format!(".java_pid{}", self.own_pid)
    }

    pub fn trigger_name(&self) -> String {
        format!(".attach_pid{}", self.own_pid)
    }

    /// The ids to connect with, where they are not our own and we may take them.
    pub fn other_user(&self) -> Option<(u32, u32)> {
        let ours = our_ids();
        (ours.0 == 0 && ours != (self.uid, self.gid)).then_some((self.uid, self.gid))
    }

    /// Whether somebody listens. A socket file may be left of a process that had this pid before; the JVM, once asked,
    /// puts its own in its place.
    pub fn is_open(&self) -> bool {
        let at_once = Instant::now();
        self.has_socket()
            && !self.connect(at_once).is_err_and(|error| error.raw_os_error() == Some(libc::ECONNREFUSED))
    }

    fn has_socket(&self) -> bool {
        let Ok(name) = CString::new(self.socket_name()) else { return false };
        // SAFETY: an all-zero stat is a valid one.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the directory is open, the name is NUL-terminated, and `stat` outlives the call.
        let failed = unsafe {
            libc::fstatat(self.tmp.as_raw_fd(), name.as_ptr(), &mut stat, libc::AT_SYMLINK_NOFOLLOW)
        };
        failed == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFSOCK
    }

    /// One request and its whole answer, over a connection of its own.
    pub fn exchange(&self, request: &[u8], line: &str, deadline: Instant) -> Result<Vec<u8>, AttachError> {
        let start = Instant::now();
        let mut stream = self.connect(deadline).map_err(|error| self.failure(error, line, start))?;
        self.check_peer(&stream)?;
        let mut bytes = Vec::new();
        match converse(&mut stream, request, &mut bytes, deadline) {
            Ok(()) if bytes.is_empty() => Err(self.refused()),
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(AttachError::OverLimit { pid: self.pid, line: line.to_string() })
            }
            Err(error) if bytes.is_empty() && is_closed(&error) => Err(self.refused()),
            Err(error) => Err(self.failure(error, line, start)),
        }
    }

    fn refused(&self) -> AttachError {
        AttachError::Refused { pid: self.pid, uid: self.uid, gid: self.gid }
    }

    fn failure(&self, error: io::Error, line: &str, start: Instant) -> AttachError {
        let pid = self.pid;
        let tried = format!("'{line}' through /tmp/{}", self.socket_name());
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock if self.is_stopped() => {
                AttachError::Stopped { pid }
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => AttachError::NoAnswer {
                pid,
                tried,
                seconds: start.elapsed().as_secs(),
                hint: "the JVM may be stopped or frozen, hang at a safepoint, or be busy with another command",
            },
            io::ErrorKind::PermissionDenied => {
                AttachError::NoRights { pid, tried, error, uid: self.uid, gid: self.gid }
            }
            _ => AttachError::Io { pid, tried, error },
        }
    }

    fn is_stopped(&self) -> bool {
        let status = Process::open(self.pid).ok().and_then(|process| process.status().ok());
        status.is_some_and(|status| matches!(status.state, Some('T' | 't')))
    }

    fn connect(&self, deadline: Instant) -> io::Result<UnixStream> {
        // Through our own open directory the path is short enough for a socket address, and can not be exchanged.
        let path = format!("/proc/self/fd/{}/{}", self.tmp.as_raw_fd(), self.socket_name());
        let Some((uid, gid)) = self.other_user() else { return connect(&path, deadline) };
        std::thread::scope(|scope| {
            let one = scope.spawn(|| {
                take_ids(uid, gid);
                connect(&path, deadline)
            });
            one.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        })
    }

    /// Whether the process that listens is the one that was asked for. It sees as pid 0 one that our pid namespace does
    /// not know; then its user must do.
    fn check_peer(&self, stream: &UnixStream) -> Result<(), AttachError> {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: `peer` and `length` outlive the call and `length` is the size of `peer`.
        let failed = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut peer).cast(),
                &mut length,
            )
        };
        let same = peer.pid == self.pid || (peer.pid == 0 && peer.uid == self.uid);
        if failed == 0 && same {
            return Ok(());
        }
        let socket = format!("/tmp/{}", self.socket_name());
        Err(AttachError::Stranger { pid: self.pid, socket, other: peer.pid })
    }
}

/// Only HotSpot speaks this protocol. Others catch SIGQUIT too: OpenJ9 writes a javacore, a Go program ends.
fn check_runtime(
    process: &Process,
    denied: &impl Fn(&str, io::Error) -> AttachError,
) -> Result<(), AttachError> {
    let mappings = process.mappings().map_err(|_| {
        denied("the mappings of the process can not be read", io::Error::from_raw_os_error(libc::EACCES))
    })?;
    let has = |name: &str| {
        mappings.iter().any(|mapping| {
            let file = mapping.path.rsplit('/').next().unwrap_or("");
            file.strip_suffix(" (deleted)").unwrap_or(file).starts_with(name)
        })
    };
    let found = match (has("libj9vm"), has("libjvm.so")) {
        (true, _) => "it runs OpenJ9, which has another protocol and no command for native memory",
        (false, false) => "no libjvm.so is mapped in it",
        (false, true) => return Ok(()),
    };
    Err(AttachError::NotHotspot { pid: process.pid, found: found.to_string() })
}

fn our_ids() -> (u32, u32) {
    // SAFETY: these calls take nothing and can not fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Gives the calling thread, and it alone, other effective ids. Where that is forbidden (root without CAP_SETUID) it
/// goes on as root, which JDK 11 and later take.
fn take_ids(uid: u32, gid: u32) {
    const KEEP: libc::c_long = -1;
    // SAFETY: system calls with three numbers each, which change nothing but this thread's credentials.
    unsafe {
        libc::syscall(libc::SYS_setresgid, KEEP, libc::c_long::from(gid), KEEP);
        libc::syscall(libc::SYS_setresuid, KEEP, libc::c_long::from(uid), KEEP);
    }
}

/// A folder of the target below its root. A link in it may be the target's trap, so it is resolved as the target would.
pub fn open_within(root: &File, name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    // SAFETY: `open_how` is three numbers, for which 0 is a valid value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_IN_ROOT;
    // SAFETY: the directory is open; `name` and `how` outlive the call, and the size is that of `how`.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            root.as_raw_fd(),
            name.as_ptr(),
            &how as *const libc::open_how,
            size_of::<libc::open_how>(),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Connects, and waits while the queue of the listener is full.
fn connect(path: &str, deadline: Instant) -> io::Result<UnixStream> {
    // SAFETY: a system call with three numbers.
    let fd = unsafe {
        libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and belongs to nobody else.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: an all-zero address is a valid one.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    address.sun_path.iter_mut().zip(path.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
    loop {
        // SAFETY: `address` outlives the call, and the length is its size.
        let failed = unsafe {
            libc::connect(
                stream.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_un>() as libc::socklen_t,
            )
        };
        if failed == 0 {
            stream.set_nonblocking(false)?;
            return Ok(stream);
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            _ => return Err(error),
        }
    }
}

/// Writes the request and reads to the end, or to the bound, or to the deadline.
fn converse(
    stream: &mut UnixStream,
    request: &[u8],
    into: &mut Vec<u8>,
    deadline: Instant,
) -> io::Result<()> {
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(left),
    };
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(request)?;
    let mut chunk = vec![0; 64 << 10];
    loop {
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) if into.len() + read > ATTACH_ANSWER_BYTES_MAX => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(read) => into.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
