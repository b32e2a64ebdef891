//! Delay accounting by netlink: how long a process waited for direct reclaim and direct compaction so far, its ended threads
//! included. The kernel counts it only where `kernel.task_delayacct` is 1 (its default is 0), and only for tasks that
//! started since; to ask needs CAP_NET_ADMIN.
//!
//! Documentation/accounting/{taskstats,delay-accounting}.rst; include/uapi/linux/taskstats.h: `freepages_*` since version 7,
//! `compact_*` since version 11 (Linux 5.17). Version 15 (6.14 and 6.15) moved the fields by what it put between them, version 16
//! moved them back.

use super::host::text;
use super::process::gap;
use super::rights::{self, Capability};
use crate::base::{Gap, Known, Why};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};
use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

const WHAT: &str = "delays of a process";
const SWITCH: &str = "/proc/sys/kernel/task_delayacct";
/// include/uapi/linux/{netlink,genetlink,taskstats}.h
const CONTROL: u16 = 0x10;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_ATTRIBUTE_ID: u16 = 1;
const CONTROL_ATTRIBUTE_NAME: u16 = 2;
const GET: u8 = 1;
const ATTRIBUTE_TGID: u16 = 2;
const TYPE_STATS: u16 = 3;
const TYPE_AGGREGATE_TGID: u16 = 5;
/// NLA_F_NESTED and NLA_F_NET_BYTEORDER are flags next to the type.
const TYPE_MASK: u16 = 0x3fff;
const HEADER_BYTES: usize = 16;
const GENERIC_BYTES: usize = 4;
const ANSWER_BYTES: usize = 8192;
/// Offsets in `struct taskstats`.
const FREEPAGES: usize = 312;
const COMPACT: usize = 352;

/// Counts and nanoseconds so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    pub reclaim_count: u64,
    pub reclaim_ns: u64,
    pub compact_count: u64,
    pub compact_ns: u64,
}

impl Delays {
    pub fn since(&self, first: &Delays) -> Delays {
        Delays {
            reclaim_count: self.reclaim_count.saturating_sub(first.reclaim_count),
            reclaim_ns: self.reclaim_ns.saturating_sub(first.reclaim_ns),
            compact_count: self.compact_count.saturating_sub(first.compact_count),
            compact_ns: self.compact_ns.saturating_sub(first.compact_ns),
        }
    }
}

/// A way to ask.
pub struct Taskstats {
    socket: File,
    family: u16,
    sequence: u32,
}

impl Taskstats {
    /// `Err` where nothing is counted: zeros would be a lie.
    pub fn open() -> Known<Taskstats> {
        let switch = text(SWITCH).map_err(|_| {
            Gap::new(WHAT, Why::NotInThisKernel)
                .hint("CONFIG_TASK_DELAY_ACCT, and Linux 5.14 to switch it at run time")
        })?;
        if switch.trim() != "1" {
            let hint =
                "kernel.task_delayacct is 0: `sysctl kernel.task_delayacct=1`, and start the JVM after it";
            return Err(Gap::new(WHAT, Why::NotMeasured).hint(hint));
        }
        Taskstats::connect().map_err(|error| refused(&error))
    }

    /// Without a reading of the switch.
    fn connect() -> io::Result<Taskstats> {
        let (flags, protocol) = (SocketFlags::CLOEXEC, Some(netlink::GENERIC));
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(1)))?;
        let mut stats = Taskstats { socket: socket.into(), family: CONTROL, sequence: 0 };
        let answer = stats.ask(CONTROL_GET_FAMILY, CONTROL_ATTRIBUTE_NAME, b"TASKSTATS\0")?;
        let id = attribute(&answer, CONTROL_ATTRIBUTE_ID);
        let id = id.and_then(|bytes| Some(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?)));
        stats.family = id.ok_or(io::ErrorKind::InvalidData)?;
        Ok(stats)
    }

    /// Of a process with all its threads.
    pub fn read(&mut self, pid: i32) -> Known<Delays> {
        let answer = self.ask(GET, ATTRIBUTE_TGID, &pid.to_ne_bytes());
        let answer = answer.map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH) => Gap::new(WHAT, Why::Gone),
            _ => refused(&error),
        })?;
        parse(
            attribute(attribute(&answer, TYPE_AGGREGATE_TGID).unwrap_or_default(), TYPE_STATS)
                .unwrap_or_default(),
        )
    }

    /// One question with one attribute; the attributes of the answer.
    fn ask(&mut self, command: u8, attribute: u16, value: &[u8]) -> io::Result<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = message(self.family, self.sequence, command, attribute, value);
        self.socket.write_all(&message)?;
        let mut answer = vec![0_u8; ANSWER_BYTES];
        // An answer to an earlier question, which came too late, is passed over.
        for _ in 0..4 {
            let length = self.socket.read(&mut answer)?;
            if let Some(payload) = payload(answer.get(..length).unwrap_or_default(), self.sequence)? {
                return Ok(payload.to_vec());
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

fn refused(error: &io::Error) -> Gap {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Gap::new(WHAT, Why::Denied).hint(format!(
            "taskstats asks for CAP_NET_ADMIN: {}",
            rights::hint(&[Capability::NET_ADMIN], "run as root")
        )),
        Some(libc::ENOENT | libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT) => {
            Gap::new(WHAT, Why::NotInThisKernel).hint("CONFIG_TASKSTATS")
        }
        _ => gap(WHAT, error),
    }
}

fn message(family: u16, sequence: u32, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let attribute_bytes = 4 + value.len();
    let length = HEADER_BYTES + GENERIC_BYTES + attribute_bytes.next_multiple_of(4);
    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    // The version of the family, and two bytes that are kept free.
    message.extend([command, 1, 0, 0]);
    message.extend((attribute_bytes as u16).to_ne_bytes());
    message.extend(attribute.to_ne_bytes());
    message.extend(value);
    message.resize(length, 0);
    message
}

/// The attributes of the answer to this question; `None`: it answers another one.
fn payload(answer: &[u8], sequence: u32) -> io::Result<Option<&[u8]>> {
    let number = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(answer.get(at..at.checked_add(4)?)?.try_into().ok()?))
    };
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let length = (number(0).ok_or_else(broken)? as usize).min(answer.len());
    if number(8).ok_or_else(broken)? != sequence {
        return Ok(None);
    }
    let kind = number(4).ok_or_else(broken)? & 0xffff;
    if kind == libc::NLMSG_ERROR as u32 {
        let code = number(HEADER_BYTES).ok_or_else(broken)? as i32;
        return Err(io::Error::from_raw_os_error(code.saturating_neg()));
    }
    answer.get(HEADER_BYTES + GENERIC_BYTES..length).map(Some).ok_or_else(broken)
}

/// Type and value of each; ends at the first that does not fit.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let (length, kind) = (half(0)? as usize, half(2)? & TYPE_MASK);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

fn parse(stats: &[u8]) -> Known<Delays> {
    let number = |at: usize| Some(u64::from_ne_bytes(stats.get(at..at + 8)?.try_into().ok()?));
    let version = stats.get(..2).map_or(0, |bytes| u16::from_ne_bytes([bytes[0], bytes[1]]));
    let unknown = || {
        Gap::new(WHAT, Why::NotInThisKernel)
            .hint(format!("taskstats of version {version}; 11 to 14, and 16 and later, are read"))
    };
    if version < 11 || version == 15 {
        return Err(unknown());
    }
    let pair = |at: usize| Some((number(at)?, number(at + 8)?));
    let ((reclaim_count, reclaim_ns), (compact_count, compact_ns)) =
        pair(FREEPAGES).zip(pair(COMPACT)).ok_or_else(unknown)?;
    Ok(Delays { reclaim_count, reclaim_ns, compact_count, compact_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(version: u16) -> Vec<u8> {
        let mut stats = vec![0_u8; 432];
        stats[..2].copy_from_slice(&version.to_ne_bytes());
        for (at, value) in [(FREEPAGES, 3_u64), (FREEPAGES + 8, 4000), (COMPACT, 5), (COMPACT + 8, 6000)] {
            stats[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        stats
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn the_fields_of_the_versions_that_have_them() {
        let delays = Delays { reclaim_count: 3, reclaim_ns: 4000, compact_count: 5, compact_ns: 6000 };
        assert_eq!((parse(&stats(14)), parse(&stats(17))), (Ok(delays), Ok(delays)));
        for version in [8, 15] {
            assert_eq!(parse(&stats(version)).expect_err("not read").why, Why::NotInThisKernel);
        }
        assert!(parse(&[]).is_err() && parse(&stats(14)[..360]).is_err());
        assert_eq!(delays.since(&Delays { reclaim_ns: 1000, ..delays }).reclaim_ns, 3000);
    }

    #[test]
    fn an_answer_is_taken_apart_and_damage_is_no_panic() {
        let mut inner = attribute(ATTRIBUTE_TGID, &7_u32.to_ne_bytes());
        inner.extend(attribute(TYPE_STATS, &stats(16)));
        let mut answer = attribute(6, &[]);
        answer.extend(attribute(TYPE_AGGREGATE_TGID | 0x8000, &inner));
        let found: Vec<u16> = attributes(&answer).map(|(kind, _)| kind).collect();
        assert_eq!(found, [6, TYPE_AGGREGATE_TGID]);
        assert_eq!(attributes(&[2, 0, 1, 0, 9]).count(), 0, "shorter than its own head");
        assert_eq!(attributes(&[255, 255, 1, 0]).count(), 0);
        assert!(payload(&[1, 2, 3], 1).is_err());
    }

    #[test]
    fn a_question_and_the_refusal_of_another_one() {
        let question = message(0x1a, 7, GET, ATTRIBUTE_TGID, &9_i32.to_ne_bytes());
        assert_eq!((question.len(), question[0]), (28, 28));
        assert!(payload(&question, 8).expect("whole").is_none(), "not the answer to 8");
        let mut refusal = question;
        refusal[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        refusal[16..20].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        let error = payload(&refusal, 7).expect_err("refused");
        assert_eq!((error.raw_os_error(), refused(&error).why), (Some(libc::EPERM), Why::Denied));
    }

    /// The switch is off by default: then all is zero, but the way there is the same.
    #[test]
    fn this_process_can_be_asked_for_where_we_may_ask() {
        match Taskstats::connect() {
            Ok(mut stats) => match stats.read(std::process::id() as i32) {
                Ok(delays) => assert!(delays.reclaim_ns < 1 << 50, "{delays:?}"),
                Err(gap) => assert!(matches!(gap.why, Why::Denied | Why::NotInThisKernel), "{gap}"),
            },
            Err(error) => println!("skipped: taskstats: {error}"),
        }
    }
}
