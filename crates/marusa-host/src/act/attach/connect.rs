//! The socket of a JVM: found in the target's own /tmp, through /proc/PID/root, so that containers need no entering (a
//! socket in a file system belongs to no network namespace), and connected to as the JVM's own user.
//!
//! JDK 8 takes a peer only if its effective user and group are the JVM's own, so root is refused; JDK 11 and on take root
//! as well. A thread of ours changes its own credentials by raw system calls, which libc would change for all threads,
//! connects (the kernel notes the credentials at that moment), and ends.

use super::AttachError;
use crate::act::as_target::{User, directory};
use crate::act::signals;
use crate::base::limits::ATTACH_ANSWER_BYTES_MAX;
use crate::os::loaded;
use crate::os::place::{by_descriptor, facts_of, open_at};
use crate::os::process::Process;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Interval between checks for a pending signal to end, where those are blocked (act/signals.rs).
const LOOK: Duration = Duration::from_millis(10);

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
        let ours = User::own();
        if ours.uid != 0 && ours.uid != uid {
            let error = io::Error::from_raw_os_error(libc::EPERM);
            return Err(denied("the JVM belongs to another user", error));
        }
        let tmp = process
            .reference("root")
            .and_then(|root| directory(&File::from(root), c"tmp"))
            .map_err(|error| denied("cannot open its /tmp", error))?;
        let own_pid = status.namespace_pids.last().copied().unwrap_or(pid);
        let door = Door { pid, own_pid, uid, gid, tmp };
        if !process.is_same() {
            return Err(AttachError::Gone { pid });
        }
        if matches!(status.state, Some('T' | 't')) {
            return Err(AttachError::Stopped { pid });
        }
        let found = door.is_open()?;
        Ok((door, found))
    }

    pub fn socket_name(&self) -> String {
        format!(".java_pid{}", self.own_pid)
    }

    pub fn trigger_name(&self) -> String {
        format!(".attach_pid{}", self.own_pid)
    }

    pub fn user(&self) -> User {
        User { uid: self.uid, gid: self.gid }
    }

    /// The ids to connect with, where they are not our own and we may take them.
    pub fn other_user(&self) -> Option<(u32, u32)> {
        let ours = User::own();
        (ours.uid == 0 && ours != self.user()).then_some((self.uid, self.gid))
    }

    /// Whether a process listens. A socket file may be left of a process that had this pid before; the JVM, once asked,
    /// puts its own in its place.
    pub fn is_open(&self) -> Result<bool, AttachError> {
        let Some(socket) = self.socket()? else { return Ok(false) };
        let refused = |error: io::Error| error.raw_os_error() == Some(libc::ECONNREFUSED);
        Ok(!self.connect(&socket, Instant::now()).is_err_and(refused))
    }

    /// The socket file, pinned; what stands in its place and is not the JVM's own is an error. HotSpot's own client checks the
    /// same (VirtualMachineImpl.c of JDK 8 to 24, `checkPermissions`: owner, and nothing for group and others).
    fn socket(&self) -> Result<Option<File>, AttachError> {
        let unreadable = |error| self.failure(error, "the socket", Instant::now());
        let name = CString::new(self.socket_name()).map_err(|error| unreadable(error.into()))?;
        // Opened to be looked at, not followed.
        let socket = match open_at(&self.tmp, &name, libc::O_PATH, 0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            socket => socket.map_err(unreadable)?,
        };
        let facts = facts_of(&socket).map_err(unreadable)?;
        let why = match facts.kind() {
            libc::S_IFSOCK if facts.uid != self.uid => format!("it belongs to user {}", facts.uid),
            libc::S_IFSOCK if facts.mode & 0o066 != 0 => {
                format!("others may use it (mode {:o})", facts.mode & 0o777)
            }
            libc::S_IFSOCK => return Ok(Some(socket)),
            libc::S_IFLNK => "it is a symbolic link".to_string(),
            _ => "it is not a socket".to_string(),
        };
        Err(AttachError::NotItsSocket { pid: self.pid, socket: format!("/tmp/{}", self.socket_name()), why })
    }

    /// One request and its whole answer, over a connection of its own.
    pub fn exchange(&self, request: &[u8], line: &str, deadline: Instant) -> Result<Vec<u8>, AttachError> {
        let start = Instant::now();
        let gone = || self.failure(io::ErrorKind::NotFound.into(), line, start);
        let socket = self.socket()?.ok_or_else(gone)?;
        let mut stream = self.connect(&socket, deadline).map_err(|error| self.failure(error, line, start))?;
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
            io::ErrorKind::Interrupted => AttachError::Interrupted { pid },
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

    /// Connects to the very file that was looked at: a path could lead elsewhere by now.
    fn connect(&self, socket: &File, deadline: Instant) -> io::Result<UnixStream> {
        self.user().does_or_we_do(|| connect(&by_descriptor(socket), deadline))
    }

    /// Whether the process that listens is the one that was asked for. It sees as pid 0 one that our pid namespace does
    /// not know; then its user must do.
    fn check_peer(&self, stream: &UnixStream) -> Result<(), AttachError> {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // Not by `rustix`, whose pids are never 0.
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
pub(super) fn check_runtime(
    process: &Process,
    denied: &impl Fn(&str, io::Error) -> AttachError,
) -> Result<(), AttachError> {
    let mappings = process.mappings().map_err(|_| {
        denied("the mappings of the process cannot be read", io::Error::from_raw_os_error(libc::EACCES))
    })?;
    let found = match (loaded::openj9(&mappings).is_some(), !loaded::hotspot(&mappings).is_empty()) {
        (true, _) => "it runs OpenJ9, which has another protocol and no command for native memory",
        (false, false) if loaded::native_image(&mappings).is_some() => {
            "it is a native image of GraalVM, which has no commands"
        }
        (false, false) => "no libjvm.so is mapped in it",
        (false, true) => return Ok(()),
    };
    Err(AttachError::NotHotspot { pid: process.pid, found: found.to_string() })
}

/// Connects, and waits while the queue of the listener is full.
fn connect(path: &str, deadline: Instant) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = UnixStream::from(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?);
    let address = SocketAddrUnix::new(path)?;
    loop {
        let Err(error) = rustix::net::connect(&stream, &address) else {
            stream.set_nonblocking(false)?;
            return Ok(stream);
        };
        match error.kind() {
            _ if signals::pending() => return Err(io::ErrorKind::Interrupted.into()),
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted if Instant::now() < deadline => {
                std::thread::sleep(LOOK);
            }
            _ => return Err(error.into()),
        }
    }
}

/// Writes the request and reads to the end, or to the bound, or to the deadline, or until we are interrupted.
fn converse(
    stream: &mut UnixStream,
    request: &[u8],
    into: &mut Vec<u8>,
    deadline: Instant,
) -> io::Result<()> {
    let turn = || match deadline.saturating_duration_since(Instant::now()) {
        _ if signals::pending() => Err(io::Error::from(io::ErrorKind::Interrupted)),
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(left.min(LOOK)),
    };
    let is_for_now =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock);
    let mut rest = request;
    while !rest.is_empty() {
        stream.set_write_timeout(Some(turn()?))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) if is_for_now(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let mut chunk = vec![0; 64 << 10];
    loop {
        stream.set_read_timeout(Some(turn()?))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) if into.len() + read > ATTACH_ANSWER_BYTES_MAX => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(read) => into.extend_from_slice(&chunk[..read]),
            Err(error) if is_for_now(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
