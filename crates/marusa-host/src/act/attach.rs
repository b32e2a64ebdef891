//! HotSpot's attach protocol, spoken without a `jcmd` process: how a JVM is asked what it knows about itself.
//!
//! This is the one thing Marusa does to a target that reads only: it is opt-in, and the receipt says what was done. The
//! JVM gets one thread more ("Attach Listener") and a socket in its /tmp, both of which stay until it ends. Where it has
//! no listener yet, a file is made and SIGQUIT is sent; a process that would die of that signal never gets it.
//!
//! Sources: src/hotspot/os/posix/attachListener_posix.cpp and src/jdk.attach/linux/.../VirtualMachineImpl.java (JDK 24);
//! protocol 2 and streaming came with JDK-8342995 and JDK-8319055 (JDK 24 and 25).

pub(super) mod connect;
mod options;
mod wake;

use crate::act::as_target::User;
use crate::base::limits::{ATTACH_ANSWER_BYTES_MAX, ATTACH_ANSWER_SECONDS_MAX, ATTACH_OPEN_SECONDS_MAX};
use crate::os::process::Process;
use crate::os::rights::{self, Capability};
use connect::Door;
use serde::Serialize;
use std::io;
use std::time::{Duration, Instant};

/// The longest argument of protocol 1: AttachOperation::arg_length_max, attachListener.hpp of JDK 8 to 25.
const VERSION_1_ARGUMENT_BYTES_MAX: usize = 1024;

/// A JVM that listens. Every command is a connection of its own.
#[derive(Debug)]
pub struct Attached {
    pub receipt: Receipt,
    door: Door,
    protocol: Protocol,
}

/// What was done to the target.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, Serialize)]
pub struct Receipt {
    pub pid: i32,
    /// The socket, as the target names it.
    pub socket: String,
    /// The listener was not there before: the JVM has a thread and a socket file more, until it ends.
    pub listener_started: bool,
    /// "SIGQUIT", when it was sent.
    pub signal_sent: Option<&'static str>,
    /// The file that makes the JVM start its attach listener on the signal, as the target names it; it is removed again.
    pub trigger_file: Option<String>,
    /// The user and group that we connected as, where they are not our own.
    pub connected_as: Option<(u32, u32)>,
    pub protocol: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    One,
    Two { streaming: bool },
}

/// A JVM takes commands from root and from its own user.
fn rights_of(uid: u32, gid: u32) -> String {
    let advice = format!("run as root, or as the JVM's user {uid} and group {gid}");
    rights::hint(&[Capability::DAC_OVERRIDE], &advice)
}

/// Why a JVM could not be asked: what was tried, what failed, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("pid {pid} is not HotSpot JVM: {found}")]
    NotHotspot { pid: i32, found: String },
    #[error("pid {pid}: {tried}: {error}; {}", rights_of(*uid, *gid))]
    NoRights { pid: i32, tried: String, error: io::Error, uid: u32, gid: u32 },
    #[error(
        "pid {pid} refuses attachment: {option} is set; start the JVM without it (nothing was done to the process)"
    )]
    Disabled { pid: i32, option: String },
    #[error(
        "pid {pid} has no attach socket and does not catch SIGQUIT, which would end it: it is still starting, or \
         runs with -Xrs and attachment disabled; wait, or start it without -Xrs (nothing was done to the process)"
    )]
    SignalNotCaught { pid: i32 },
    #[error(
        "pid {pid} is stopped (SIGSTOP or a debugger), so it cannot answer; let it go on (kill -CONT {pid})"
    )]
    Stopped { pid: i32 },
    #[error("pid {pid} ended while it was asked")]
    Gone { pid: i32 },
    #[error("pid {pid}: {tried}, no answer within {seconds} s: {hint}")]
    NoAnswer { pid: i32, tried: String, seconds: u64, hint: &'static str },
    #[error(
        "pid {pid} closed the connection without a word: it takes commands only from its own user {uid} and group \
         {gid} (and root, since JDK 11)"
    )]
    Refused { pid: i32, uid: u32, gid: u32 },
    #[error(
        "the socket {socket} belongs to pid {other}, not to {pid}: it was left alone; remove it if it is stale"
    )]
    Stranger { pid: i32, socket: String, other: i32 },
    #[error(
        "the socket {socket} of pid {pid} is not its own: {why}; nothing was sent to it; remove it, or find out who put it there"
    )]
    NotItsSocket { pid: i32, socket: String, why: String },
    #[error("pid {pid}: {tried}: {error} (no signal was sent)")]
    Unsafe { pid: i32, tried: String, error: io::Error },
    #[error("pid {pid}: {tried}: {error}")]
    Io { pid: i32, tried: String, error: io::Error },
    #[error("pid {pid} was not waited for: a signal to end arrived")]
    Interrupted { pid: i32 },
    #[error("the answer of pid {pid} to '{line}' is longer than {ATTACH_ANSWER_BYTES_MAX} bytes")]
    OverLimit { pid: i32, line: String },
    #[error("'{line}' cannot be sent: {why}")]
    BadCommand { line: String, why: &'static str },
    /// The JVM was asked and refused: an unknown command, a wrong argument.
    #[error("the JVM answers '{line}' with error {code}: {text}")]
    Command { line: String, code: i32, text: String },
}

impl AttachError {
    /// Whether other rights would have helped.
    pub fn is_denied(&self) -> bool {
        matches!(self, AttachError::NoRights { .. } | AttachError::Refused { .. })
    }
}

/// Opens the way to a JVM, starting its listener if it has none.
pub fn open(process: &Process) -> Result<Attached, AttachError> {
    let (door, is_open) = Door::find(process)?;
    let mut receipt = Receipt::new(&door, process.pid);
    if !is_open {
        wake::wake(process, &door, &mut receipt, Duration::from_secs(ATTACH_OPEN_SECONDS_MAX))?;
    }
    let mut attached = Attached { receipt, door, protocol: Protocol::One };
    attached.protocol = attached.negotiate()?;
    attached.receipt.protocol = attached.protocol.name().to_string();
    Ok(attached)
}

impl Receipt {
    fn new(door: &Door, pid: i32) -> Receipt {
        Receipt {
            pid,
            socket: format!("/tmp/{}", door.socket_name()),
            listener_started: false,
            signal_sent: None,
            trigger_file: None,
            connected_as: door.other_user(),
            protocol: String::new(),
        }
    }
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Protocol::One => "1",
            Protocol::Two { streaming: false } => "2",
            Protocol::Two { streaming: true } => "2 streaming",
        }
    }

    /// The answer of "getversion options": "2 streaming". JVMs up to 23 do not know the question.
    fn parse(code: i32, text: &str) -> Protocol {
        let mut words = text.split_ascii_whitespace();
        match (code, words.next()) {
            (0, Some("2")) => Protocol::Two { streaming: words.any(|word| word == "streaming") },
            _ => Protocol::One,
        }
    }
}

impl Attached {
    /// The text that the JVM prints for a command as `jcmd` takes it: "VM.native_memory summary".
    pub fn command(&self, line: &str) -> Result<String, AttachError> {
        let request = request(self.protocol, line)?;
        let (code, text) = self.ask(&request, line, ATTACH_ANSWER_SECONDS_MAX)?;
        match code {
            0 => Ok(text),
            _ => {
                Err(AttachError::Command { line: line.to_string(), code, text: text.trim_end().to_string() })
            }
        }
    }

    /// Loads an agent library, by its path as the target names it, and gives what `Agent_OnAttach` returned.
    ///
    /// The answer is "101" (8) or "return code: 101" (9 on). Where the library could not be loaded, 8 answers with error -1
    /// and no word, 9 to 20 with error -1 and the reason, 21 on with the reason alone (JDK-8307478).
    pub fn load(&self, path: &str) -> Result<i32, AttachError> {
        let line = format!("load {path}");
        if path.contains('\0') || path.len() > VERSION_1_ARGUMENT_BYTES_MAX {
            return Err(AttachError::BadCommand { line, why: "the path holds a NUL or is too long" });
        }
        let request = format!("1\0load\0{path}\0true\0\0");
        let (code, text) = self.ask(request.as_bytes(), &line, ATTACH_ANSWER_SECONDS_MAX)?;
        let returned = text.trim().strip_prefix("return code: ").unwrap_or(text.trim()).parse();
        match (code, returned) {
            (0, Ok(returned)) => Ok(returned),
            _ => Err(AttachError::Command { line, code, text: text.trim_end().to_string() }),
        }
    }

    /// The user and group that own the target, as we name them.
    pub fn owner(&self) -> User {
        self.door.user()
    }

    fn negotiate(&self) -> Result<Protocol, AttachError> {
        let (code, text) =
            self.ask(b"1\0getversion\0options\0\0\0", "getversion", ATTACH_OPEN_SECONDS_MAX)?;
        Ok(Protocol::parse(code, &text))
    }

    fn ask(&self, request: &[u8], line: &str, seconds: u64) -> Result<(i32, String), AttachError> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let bytes = self.door.exchange(request, line, deadline)?;
        answer(&bytes).ok_or_else(|| AttachError::Io {
            pid: self.receipt.pid,
            tried: format!("the answer to '{line}' has no result code"),
            error: io::ErrorKind::InvalidData.into(),
        })
    }
}

/// The bytes of a request. Streaming spares the JVM a copy of the whole answer in the very malloc that is measured.
fn request(protocol: Protocol, line: &str) -> Result<Vec<u8>, AttachError> {
    let bad = |why| AttachError::BadCommand { line: line.to_string(), why };
    if line.is_empty() || line.contains('\0') {
        return Err(bad("it is empty or holds a NUL"));
    }
    if line.len() > VERSION_1_ARGUMENT_BYTES_MAX {
        return Err(bad("it is longer than 1,024 bytes"));
    }
    Ok(match protocol {
        Protocol::One => format!("1\0jcmd\0{line}\0\0\0").into_bytes(),
        Protocol::Two { streaming } => {
            let data = format!("jcmd{}\0{line}\0", if streaming { " streaming=true" } else { "" });
            format!("2\0{}\0{data}", data.len()).into_bytes()
        }
    })
}

/// The result code, which is the first line, and the text after it.
fn answer(bytes: &[u8]) -> Option<(i32, String)> {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let code = std::str::from_utf8(&bytes[..end]).ok()?.trim().parse().ok()?;
    Some((code, String::from_utf8_lossy(bytes.get(end + 1..).unwrap_or_default()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_requests() {
        assert_eq!(
            request(Protocol::One, "GC.heap_info").expect("good"),
            b"1\0jcmd\0GC.heap_info\0\0\0",
            "three arguments, always"
        );
        assert_eq!(
            request(Protocol::Two { streaming: true }, "System.map").expect("good"),
            b"2\x0031\0jcmd streaming=true\0System.map\0"
        );
        assert!(request(Protocol::One, "a\0b").is_err());
        assert!(request(Protocol::One, &"x".repeat(1025)).is_err());
    }

    #[test]
    fn the_answers_to_getversion() {
        assert_eq!(Protocol::parse(-1, "Operation getversion not recognized!"), Protocol::One);
        assert_eq!(Protocol::parse(0, "2 streaming"), Protocol::Two { streaming: true });
        assert_eq!(Protocol::parse(0, "2\n"), Protocol::Two { streaming: false });
        assert_eq!(Protocol::parse(0, "3"), Protocol::One, "a newer one still takes version 1");
    }

    #[test]
    fn the_first_line_of_an_answer_is_its_code() {
        assert_eq!(answer(b"0\n17.0.15\n"), Some((0, "17.0.15\n".to_string())));
        assert_eq!(answer(b"101"), Some((101, String::new())));
        assert_eq!(answer(b""), None);
        assert_eq!(answer(b"hello\n"), None);
    }
}
