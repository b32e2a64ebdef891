//! One call of process_madvise(2), and each of its answers in words.
//!
//! Who may: PTRACE_MODE_READ on the target and CAP_SYS_NICE (mm/madvise.c, `process_madvise`). The errors of MADV_COLLAPSE:
//! mm/khugepaged.c, `madvise_collapse_errno`.

use super::PromoteError;
use super::change::Change;
use crate::base::Range;
use crate::os::pidfd;
use crate::os::process::Process;
use crate::os::rights::{self, Capability};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// include/uapi/asm-generic/mman-common.h, the same on x86-64 and aarch64; not every libc has them.
pub(super) const MADV_COLD: libc::c_int = 20;
pub(super) const MADV_COLLAPSE: libc::c_int = 25;

/// Why the kernel does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// ENOSYS: no such system call, or a filter of system calls hides it.
    NoCall,
    /// EINVAL before any address was given.
    NoAdvice,
    /// EPERM.
    NoRights,
    /// EACCES.
    OtherUser,
    /// ESRCH.
    Gone,
    /// EAGAIN: a page of it was locked, or used by a device or the kernel.
    InUse,
    /// EBUSY.
    GroupLimit,
    /// ENOMEM.
    NoHugePage,
    /// EINVAL for this block.
    NotHere,
    /// The call was answered with success, and the pages are as before.
    NoEffect,
    Other(i32),
}

/// What process_madvise(2) asks for.
const BOTH: [Capability; 2] = [Capability::SYS_NICE, Capability::SYS_PTRACE];

impl Refusal {
    fn of(error: &io::Error) -> Refusal {
        match error.raw_os_error() {
            Some(libc::ENOSYS) => Refusal::NoCall,
            Some(libc::EPERM) => Refusal::NoRights,
            Some(libc::EACCES) => Refusal::OtherUser,
            Some(libc::ESRCH) => Refusal::Gone,
            Some(libc::EAGAIN) => Refusal::InUse,
            Some(libc::EBUSY) => Refusal::GroupLimit,
            Some(libc::ENOMEM) => Refusal::NoHugePage,
            Some(libc::EINVAL) => Refusal::NotHere,
            other => Refusal::Other(other.unwrap_or(0)),
        }
    }

    /// The kernel's own name for it.
    pub fn name(self) -> String {
        let name = match self {
            Refusal::NoCall => "ENOSYS",
            Refusal::NoAdvice | Refusal::NotHere => "EINVAL",
            Refusal::NoRights => "EPERM",
            Refusal::OtherUser => "EACCES",
            Refusal::Gone => "ESRCH",
            Refusal::InUse => "EAGAIN",
            Refusal::GroupLimit => "EBUSY",
            Refusal::NoHugePage => "ENOMEM",
            Refusal::NoEffect => "no effect",
            Refusal::Other(number) => return format!("error {number}"),
        };
        name.to_string()
    }

    pub fn words(self) -> String {
        let words = match self {
            Refusal::NoCall => {
                "this kernel has no process_madvise (Linux 5.10 brought it), or a filter of system calls hides it \
                 (containers: allow process_madvise in the seccomp profile)"
            }
            Refusal::NoAdvice => {
                "this kernel cannot do that: MADV_COLLAPSE came with Linux 6.1, and needs CONFIG_TRANSPARENT_HUGEPAGE"
            }
            Refusal::NoRights => {
                let advice = "run marusa as root, or with that capability; as another user than the JVM's, CAP_SYS_PTRACE too";
                return format!("the kernel asks for CAP_SYS_NICE: {}", rights::hint(&BOTH, advice));
            }
            Refusal::OtherUser => {
                let advice = "run marusa as root, or with CAP_SYS_PTRACE and CAP_SYS_NICE";
                let hint = rights::hint(&BOTH, advice);
                return format!("the process belongs to another user, or hides its memory: {hint}");
            }
            Refusal::Gone => "the process has ended",
            Refusal::InUse => {
                "a page of the block was in use by the kernel or a device, also when tried again"
            }
            Refusal::GroupLimit => {
                "the memory limit of the JVM's cgroup leaves no room for the 2 MiB copy that exists next to the \
                 small pages for a moment"
            }
            Refusal::NoHugePage => {
                "the host has no free memory in one piece of 2 MiB, and could not make one"
            }
            Refusal::NotHere => "the kernel allows no huge page for this memory",
            Refusal::NoEffect => {
                "the kernel said yes, and the pages stayed as they were: shared with another process, or pinned"
            }
            Refusal::Other(_) => "an answer that is not documented for this call",
        };
        words.to_string()
    }

    /// Whether other rights would have helped.
    pub fn is_denied(self) -> bool {
        matches!(self, Refusal::NoRights | Refusal::OtherUser)
    }
    /// Whether it will be the same for every other block.
    pub fn is_for_all(self) -> bool {
        matches!(self, Refusal::NoCall | Refusal::NoAdvice | Refusal::Gone) || self.is_denied()
    }
    /// Whether it may be otherwise in a moment.
    pub fn is_for_now(self) -> bool {
        matches!(self, Refusal::InUse | Refusal::GroupLimit | Refusal::NoHugePage | Refusal::NoEffect)
    }
}

/// The way to a process: a pid that is used again is never advised by mistake.
pub(super) struct Advisor {
    pidfd: OwnedFd,
}

impl Advisor {
    pub fn of(process: &Process) -> io::Result<Advisor> {
        Ok(Advisor { pidfd: pidfd::of(process)? })
    }

    pub fn advise(&self, range: Range, change: Change) -> Result<(), Refusal> {
        match self.call(&[range], change) {
            Ok(bytes) if bytes == range.bytes() => Ok(()),
            Ok(_) => Err(Refusal::NoEffect),
            Err(error) => Err(Refusal::of(&error)),
        }
    }

    /// Whether the kernel would listen at all: a call for no address changes nothing, and is checked anyway.
    fn is_heard(&self, change: Change) -> Result<(), Refusal> {
        self.call(&[], change).map(|_| ()).map_err(|error| match Refusal::of(&error) {
            Refusal::NotHere => Refusal::NoAdvice,
            refusal => refusal,
        })
    }

    fn call(&self, ranges: &[Range], change: Change) -> io::Result<u64> {
        let vector: Vec<libc::iovec> = ranges
            .iter()
            .map(|range| libc::iovec {
                iov_base: range.start.0 as *mut libc::c_void,
                iov_len: range.bytes() as usize,
            })
            .collect();
        // SAFETY: the vector outlives the call and its length is given; the addresses in it are the target's, and the
        // kernel takes neither advice as leave to change what is in memory.
        let done = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                self.pidfd.as_raw_fd(),
                vector.as_ptr(),
                vector.len(),
                match change {
                    Change::Collapse => MADV_COLLAPSE,
                    Change::Split => MADV_COLD,
                },
                0,
            )
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done as u64) }
    }
}

pub(super) fn opened(process: &Process, change: Change) -> Result<Advisor, PromoteError> {
    let pid = process.pid;
    let refused = |refusal| PromoteError::Refused { pid, refusal };
    let advisor = Advisor::of(process).map_err(|error| refused(Refusal::of(&error)))?;
    advisor.is_heard(change).map_err(refused)?;
    Ok(advisor)
}

impl Change {
    /// Whether this kernel lets us make it of blocks of that process. Changes nothing.
    pub fn is_allowed(self, process: &Process) -> Result<(), PromoteError> {
        opened(process, self).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_a_name_and_words() {
        let numbers = [
            libc::ENOSYS,
            libc::EPERM,
            libc::EACCES,
            libc::ESRCH,
            libc::EAGAIN,
            libc::EBUSY,
            libc::ENOMEM,
            libc::EINVAL,
            libc::EFAULT,
        ];
        let mut seen = Vec::new();
        for number in numbers {
            let refusal = Refusal::of(&io::Error::from_raw_os_error(number));
            assert!(!refusal.name().is_empty() && refusal.words().len() > 20);
            assert!(!seen.contains(&refusal), "{refusal:?} stands for two");
            seen.push(refusal);
        }
        assert!(Refusal::NoRights.is_for_all() && !Refusal::InUse.is_for_all());
        assert_eq!(Refusal::Other(14).name(), "error 14");
    }

    #[test]
    fn a_process_that_has_ended_is_not_advised() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let process = Process::open(child.id() as i32).expect("it is there");
        let heard = Change::Split.is_allowed(&process);
        assert!(heard.as_ref().err().is_none_or(PromoteError::is_denied), "{heard:?}");
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(Change::Split.is_allowed(&process).expect_err("it is gone").is_gone());
    }
}
