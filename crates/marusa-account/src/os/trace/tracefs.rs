//! Where tracefs is, and why it cannot be used where it cannot. Marusa never mounts it: that would change the host.

use crate::base::limits::{TRACE_FILE_BYTES_MAX, TRACE_INSTANCES_MAX};
use crate::base::{Gap, Known, Why};
use crate::os::host;
use crate::os::mounted::unescaped;
use crate::os::rights::{self, Capability};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a gap of it is called.
pub const WHAT: &str = "tracefs";
/// `PROC_PID_INIT_INO` of include/linux/proc_ns.h: the first pid namespace of every kernel.
pub const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// The directory of tracefs.
pub fn directory() -> Known<PathBuf> {
    let mounts = host::text("/proc/self/mounts").unwrap_or_default();
    let candidates = candidates(&mounts);
    let Some(first) = candidates.first() else {
        let filesystems = host::text("/proc/filesystems").unwrap_or_default();
        return Err(not_mounted(&filesystems));
    };
    let found = candidates.iter().find(|directory| directory.join("instances").is_dir());
    match found {
        Some(directory) => Ok(directory.clone()),
        None => Err(match std::fs::read_dir(first.join("instances")) {
            Err(error) if is_denied(&error) => refused(first, &error),
            _ => Gap::new(WHAT, Why::NotInThisKernel)
                .hint(format!("{} has no directory instances", first.display())),
        }),
    }
}

/// Mount points of tracefs, then those below debugfs, as older systems have them.
fn candidates(mounts: &str) -> Vec<PathBuf> {
    let of = |kind: &str, below: &str| {
        let place = |line: &str| {
            let mut words = line.split(' ').skip(1);
            let (place, found) = (words.next()?, words.next()?);
            (found == kind).then(|| Path::new(&unescaped(place)).join(below))
        };
        mounts.lines().filter_map(place).collect::<Vec<_>>()
    };
    [of("tracefs", ""), of("debugfs", "tracing")].concat()
}

/// Spaces and the like are written as octal numbers (proc_pid_mounts(5)).
fn not_mounted(filesystems: &str) -> Gap {
    if filesystems.split_ascii_whitespace().any(|word| word == "tracefs") {
        let hint = "it is not mounted here: mount -t tracefs nodev /sys/kernel/tracing; in a container, mount the host's: \
                    docker run -v /sys/kernel/tracing:/sys/kernel/tracing --privileged --pid=host";
        return Gap::new(WHAT, Why::Denied).hint(hint);
    }
    Gap::new(WHAT, Why::NotInThisKernel)
        .hint("the kernel was built without CONFIG_TRACING, or hides it in this container")
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// The gap that a failed use of tracefs leaves, in words of what would help.
pub fn refused(path: &Path, error: &io::Error) -> Gap {
    let gap = |why, hint: &str| Gap::new(WHAT, why).hint(format!("{}: {hint}", path.display()));
    match error.raw_os_error() {
        // LOCKDOWN_TRACEFS of kernel/trace/trace.c, `tracing_check_open_get_tr`.
        Some(libc::EACCES | libc::EPERM) if is_locked_down() => gap(
            Why::Denied,
            "the kernel is locked down (/sys/kernel/security/lockdown is confidentiality), which forbids tracing",
        ),
        Some(libc::EACCES | libc::EPERM) => {
            let advice = "run marusa as root, on the host or in a container with --privileged";
            gap(Why::Denied, &rights::hint(&[Capability::SYS_ADMIN, Capability::DAC_OVERRIDE], advice))
        }
        Some(libc::EROFS) => gap(
            Why::Denied,
            "it is mounted read-only, as containers do: mount it writable, or run marusa on the host",
        ),
        Some(libc::ENOMEM | libc::ENOSPC) => {
            gap(Why::OverLimit, "the kernel has no memory for one more instance of tracing")
        }
        Some(libc::ENOENT | libc::ENODEV) => gap(Why::Gone, "another process removed the instance"),
        _ => gap(Why::NotInThisKernel, &error.to_string()),
    }
}

fn is_locked_down() -> bool {
    host::text("/sys/kernel/security/lockdown").is_ok_and(|text| text.contains("[confidentiality]"))
}

/// A small file of tracefs. Each read has room for all of most of them: `events/header_page` gives its start to a smaller one, and
/// then nothing more (kernel/trace/trace_events.c, `show_header`: it looks at the position, not at the rest).
pub fn text(path: &Path) -> io::Result<String> {
    const ROOM: usize = 16 << 10;
    let mut file = File::open(path)?;
    let (mut bytes, mut part) = (Vec::new(), vec![0; ROOM]);
    while (bytes.len() as u64) < TRACE_FILE_BYTES_MAX {
        match file.read(&mut part) {
            Ok(0) => break,
            Ok(length) => bytes.extend(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The names of the instances that are there.
pub fn instances(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory.join("instances")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).take(TRACE_INSTANCES_MAX).collect()
}

/// The CPUs that an instance has a buffer for.
pub fn cpus(instance: &Path) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(instance.join("per_cpu"))?;
    let number = |name: &str| name.strip_prefix("cpu")?.parse().ok();
    let mut cpus: Vec<u32> =
        entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?)).collect();
    cpus.sort_unstable();
    Ok(cpus)
}

/// Events that a CPU's buffer could not keep, ever: `per_cpu/cpuN/stats`. Overwritten before they were read; given up because
/// the writer was itself interrupted; not taken because the buffer was full.
pub fn lost(stats: &str) -> u64 {
    let count = |key: &str| {
        host::field(stats, &format!("{key}:")).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
    };
    ["overrun", "commit overrun", "dropped events"].iter().fold(0, |sum, key| sum.saturating_add(count(key)))
}

/// The number of the pid namespace of a process.
pub fn pid_namespace(pid: &str) -> Option<u64> {
    let link = std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// What the clock CLOCK_MONOTONIC of a time namespace is ahead of the kernel's: /proc/self/timens_offsets, "monotonic SECONDS
/// NANOSECONDS" (time_namespaces(7)).
pub fn clock_ahead_ns(text: &str) -> i64 {
    let ahead = || {
        let mut words = host::field(text, "monotonic")?.split_ascii_whitespace();
        let (seconds, nanoseconds): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
    };
    ahead().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_is_mounted() {
        let mounts = "proc /proc proc rw 0 0\nnone /sys/kernel/debug debugfs rw 0 0\nnone /mnt/a\\040b tracefs rw,relatime 0 0\n";
        assert_eq!(candidates(mounts), [Path::new("/mnt/a b"), Path::new("/sys/kernel/debug/tracing")]);
        assert!(candidates("tracefs /x tmpfs rw 0 0\nbroken\n").is_empty());
        assert_eq!((unescaped("a\\134b").as_str(), unescaped("a\\9").as_str()), ("a\\b", "a\\9"));
    }

    #[test]
    fn not_mounted_is_not_the_same_as_not_there() {
        let here = not_mounted("nodev\tsysfs\nnodev\ttracefs\n");
        assert!(here.why == Why::Denied && here.hint.is_some_and(|hint| hint.contains("mount -t tracefs")));
        assert_eq!(not_mounted("nodev\tsysfs\n").why, Why::NotInThisKernel);
    }

    #[test]
    fn each_refusal_has_its_words() {
        let gap = |number| refused(Path::new("/t"), &io::Error::from_raw_os_error(number));
        assert_eq!((gap(libc::EACCES).why, gap(libc::EROFS).why), (Why::Denied, Why::Denied));
        assert_eq!((gap(libc::ENOMEM).why, gap(libc::ENOENT).why), (Why::OverLimit, Why::Gone));
        assert!(gap(libc::EROFS).hint.is_some_and(|hint| hint.starts_with("/t: it is mounted read-only")));
    }

    #[test]
    fn the_clock_of_a_time_namespace() {
        assert_eq!(
            clock_ahead_ns("monotonic           2         5\nboottime            0         0\n"),
            2_000_000_005
        );
        assert_eq!(clock_ahead_ns("monotonic          -1         0\n"), -1_000_000_000);
        assert_eq!((clock_ahead_ns(""), clock_ahead_ns("monotonic 9999999999999 0")), (0, 0));
    }

    #[test]
    fn what_a_buffer_lost() {
        let stats = "entries: 5\noverrun: 7\ncommit overrun: 1\nbytes: 40\noldest event ts: 1.5\ndropped events: 2\nread events: 3\n";
        assert_eq!((lost(stats), lost("overrun: x\n")), (10, 0));
    }
}
