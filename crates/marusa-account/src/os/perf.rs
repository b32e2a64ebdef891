//! perf_event_open(2): counting what the processor and the kernel count for one thread. Only counting: no sampling, no
//! buffers. A counter is read as the value and the two times that say for which share of the time it really counted.

use super::rights::{self, Capability};
use crate::base::{Gap, Why};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// `perf_event_attr` as the first kernels had it (PERF_ATTR_SIZE_VER0, 64 bytes): every kernel takes it, and what came later
/// is not needed here. include/uapi/linux/perf_event.h, Linux 6.1.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

const ATTR_BYTES: usize = 64;
const FORMAT_TIMES: u64 = 1 | 2;
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `_IO('$', 0)`: on every architecture that Linux shares the generic numbers with.
const ENABLE: libc::c_ulong = 0x2400;

/// `PERF_TYPE_*`.
pub const HARDWARE: u32 = 0;
pub const SOFTWARE: u32 = 1;

/// In which of its modes a thread is counted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema, serde::Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    User,
    Kernel,
    /// Both in one count.
    All,
}

/// One event, as the kernel numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoding {
    /// `PERF_TYPE_*`, or the number of a PMU from /sys/bus/event_source/devices.
    pub kind: u32,
    pub config: u64,
}

impl Encoding {
    /// Counts from when it is enabled; threads born of a counted one are counted with it.
    fn attr(self, mode: Mode, is_leader: bool) -> Attr {
        let excluded = match mode {
            Mode::User => EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            Mode::Kernel => EXCLUDE_USER | EXCLUDE_HYPERVISOR,
            Mode::All => 0,
        };
        Attr {
            kind: self.kind,
            size: ATTR_BYTES as u32,
            config: self.config,
            read_format: FORMAT_TIMES,
            // The members of a group count when their leader does.
            flags: INHERIT | excluded | if is_leader { DISABLED } else { 0 },
            ..Attr::default()
        }
    }
}

/// An open counter; closed when dropped, and with it what it inherited.
#[derive(Debug)]
pub struct Counter(File);

/// What a counter says. The times run only while the thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub value: u64,
    pub enabled_ns: u64,
    pub running_ns: u64,
}

impl Counter {
    /// Opens a counter of the thread `tid`, next to `leader` on the same processor's counters or as a leader.
    pub fn open(what: Encoding, mode: Mode, tid: i32, leader: Option<&Counter>) -> io::Result<Counter> {
        let attr = what.attr(mode, leader.is_none());
        let group = leader.map_or(-1, |leader| leader.0.as_raw_fd());
        // SAFETY: the attributes are a struct of the size that it says, and outlive the call; the rest are numbers.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attr, tid, -1_i32, group, CLOSE_ON_EXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened and has no other owner.
        Ok(Counter(unsafe { File::from_raw_fd(fd as libc::c_int) }))
    }

    /// Starts a leader and the members of its group.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: an ioctl without a pointer on a file that is open.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), ENABLE as _, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    pub fn read(&self) -> io::Result<Reading> {
        let mut bytes = [0; 24];
        let length = (&self.0).read(&mut bytes)?;
        // 0 bytes: the event is in error, as a pinned one that lost its counter.
        if length < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Reading::parse(&bytes))
    }
}

impl Reading {
    /// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
    fn parse(bytes: &[u8; 24]) -> Reading {
        let (words, _) = bytes.as_chunks::<8>();
        let [value, enabled_ns, running_ns] = [words[0], words[1], words[2]].map(u64::from_ne_bytes);
        Reading { value, enabled_ns, running_ns }
    }
}

/// What gives the counters of the processor.
pub const NO_PMU_HINT: &str = "run on bare metal, or have the virtual machine \
                               started with its PMU exposed (vPMU; a metal or full-size instance in a cloud)";

/// Why an event could not be opened; `paranoid` is /proc/sys/kernel/perf_event_paranoid.
pub fn gap(what: &str, error: &io::Error, mode: Mode, paranoid: Option<i32>) -> Gap {
    let (why, hint) = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => (Why::Denied, denied(mode, paranoid)),
        Some(libc::ESRCH) => (Why::Gone, "the thread ended".to_string()),
        Some(libc::EMFILE | libc::ENFILE) => {
            (Why::OverLimit, "too many open files: raise `ulimit -Hn` (LimitNOFILE=)".to_string())
        }
        Some(libc::EBUSY) => (Why::Denied, "another program has the counters for itself".to_string()),
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::ENXIO) => {
            (Why::NotInThisKernel, "no counter of this processor or hypervisor counts it".to_string())
        }
        Some(libc::EINVAL) => {
            (Why::NotInThisKernel, "this processor's counters do not know the event".to_string())
        }
        Some(libc::ENOSYS) => (Why::NotInThisKernel, "built without CONFIG_PERF_EVENTS".to_string()),
        _ => (Why::NotInThisKernel, error.to_string()),
    };
    Gap::new(what, why).hint(hint)
}

/// Documentation/admin-guide/perf-security.rst: above 1 the kernel is not counted for the unprivileged, and Debian's and
/// Ubuntu's levels above 2 give them nothing. A container's seccomp profile may forbid the call whatever the level.
fn denied(mode: Mode, paranoid: Option<i32>) -> String {
    let level = paranoid.map_or("unknown".to_string(), |level| level.to_string());
    let enough = if mode == Mode::User { 2 } else { 1 };
    match paranoid {
        Some(level_now) if level_now <= enough => {
            let hint = rights::hint(&[Capability::PERFMON], "run as root or as the JVM's user");
            format!("{hint}; in a container allow perf_event_open (CAP_PERFMON, seccomp)")
        }
        _ => {
            let hint = rights::hint(&[Capability::PERFMON], "run as root, or with CAP_PERFMON");
            format!("kernel.perf_event_paranoid is {level}: {hint}; or set it to {enough} or below")
        }
    }
}

/// The refusal for a limit of our own.
pub fn too_many() -> io::Error {
    io::Error::from_raw_os_error(libc::EMFILE)
}

/// /proc/sys/kernel/perf_event_paranoid.
pub fn paranoid() -> Option<i32> {
    super::host::number("/proc/sys/kernel/perf_event_paranoid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Error;

    const TASK_CLOCK: Encoding = Encoding { kind: SOFTWARE, config: 1 };

    #[test]
    fn the_attributes_have_the_size_and_the_bits_of_the_first_kernels() {
        assert_eq!(size_of::<Attr>(), ATTR_BYTES);
        let what = Encoding { kind: 4, config: 0x1045 };
        let attr = what.attr(Mode::User, true);
        assert_eq!((attr.kind, attr.size, attr.config, attr.read_format), (4, 64, 0x1045, 3));
        assert_eq!(attr.flags, 0b110_0011, "disabled, inherit, exclude_kernel, exclude_hv");
        assert_eq!(what.attr(Mode::Kernel, false).flags, 0b101_0010, "inherit, exclude_user, exclude_hv");
        assert_eq!(what.attr(Mode::All, false).flags, 0b10);
    }

    #[test]
    fn a_reading_is_three_words() {
        let mut bytes = [0; 24];
        bytes[0] = 7;
        bytes[8] = 9;
        bytes[16] = 5;
        assert_eq!(Reading::parse(&bytes), Reading { value: 7, enabled_ns: 9, running_ns: 5 });
    }

    #[test]
    fn every_refusal_says_what_would_help() {
        let hint = |errno, mode, paranoid| {
            let gap = gap("cycles", &Error::from_raw_os_error(errno), mode, paranoid);
            (gap.why, gap.hint.unwrap_or_default())
        };
        let (why, text) = hint(libc::EACCES, Mode::Kernel, Some(2));
        assert!(
            why == Why::Denied && text.contains("perf_event_paranoid is 2") && text.contains("1 or below")
        );
        let (_, text) = hint(libc::EACCES, Mode::User, Some(4));
        assert!(text.contains("2 or below"), "{text}");
        let (_, text) = hint(libc::EPERM, Mode::User, Some(1));
        assert!(text.contains("seccomp"), "{text}");
        assert_eq!(hint(libc::ESRCH, Mode::User, None).0, Why::Gone);
        assert_eq!(hint(libc::EMFILE, Mode::User, None).0, Why::OverLimit);
        for errno in [libc::ENOENT, libc::EOPNOTSUPP, libc::EINVAL, libc::ENOSYS] {
            assert_eq!(hint(errno, Mode::User, None).0, Why::NotInThisKernel);
        }
        assert!(hint(libc::EBUSY, Mode::User, None).1.contains("another program"));
    }

    #[test]
    fn time_runs_only_when_enabled_and_only_for_a_thread_that_exists() {
        // Where the kernel or a sandbox refuses, there is nothing to see.
        let Ok(counter) = Counter::open(TASK_CLOCK, Mode::User, 0, None) else { return };
        let spin =
            || (0..2_000_000_u64).fold(1, |sum: u64, next| std::hint::black_box(sum.wrapping_mul(next | 1)));
        spin();
        assert_eq!(counter.read().expect("readable").value, 0);
        counter.enable().expect("enabled");
        spin();
        let reading = counter.read().expect("readable");
        assert!(reading.value > 0 && reading.running_ns == reading.enabled_ns);
        let error = Counter::open(TASK_CLOCK, Mode::User, i32::MAX, None).expect_err("no such thread");
        assert_eq!(gap("task-clock", &error, Mode::User, None).why, Why::Gone);
    }
}
