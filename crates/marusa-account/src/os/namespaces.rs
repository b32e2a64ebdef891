//! How much of the host we see: a program in a container has a part of the processes, while most files of /proc and /sys are
//! the host's anyway.
//!
//! The first namespaces have fixed numbers (include/linux/proc_ns.h, `PROC_PID_INIT_INO` and `PROC_CGROUP_INIT_INO`, the same since
//! Linux 3.8 and 4.6). LXCFS puts files of its own over
//! /proc/meminfo and others, which then tell of the container.

use super::host::text;
use std::fs::read_link;
use std::path::Path;

const FIRST_PID: &str = "pid:[4026531836]";
const FIRST_CGROUP: &str = "cgroup:[4026531835]";

/// What is seen from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// We are in a pid namespace of our own: processes outside of it, the kernel's threads among them, are not seen.
    pub is_container: bool,
    /// Files of /proc that something else is mounted over: they may tell of the container.
    pub covered: Vec<String>,
}

impl View {
    pub fn read() -> View {
        View {
            is_container: !Namespaces::ours().is_first_pid,
            covered: covered(&text("/proc/self/mountinfo").unwrap_or_default()),
        }
    }
}

/// Single files below /proc; directories that are masked or read-only (as container runtimes do) hide nothing that is read here.
fn covered(mounts: &str) -> Vec<String> {
    const OF_LXCFS: [&str; 6] = ["cpuinfo", "meminfo", "stat", "uptime", "vmstat", "loadavg"];
    let at = |line: &str| line.split(' ').nth(4).map(str::to_string);
    let is_figure = |file: &String| file.strip_prefix("/proc/").is_some_and(|name| OF_LXCFS.contains(&name));
    mounts.lines().filter_map(at).filter(is_figure).collect()
}

/// What of the host we are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespaces {
    /// Processes and threads have the numbers that the kernel's own traces use.
    pub is_first_pid: bool,
    pub is_first_cgroup: bool,
}

impl Namespaces {
    /// Ours. Where it cannot be known, as on a kernel without a kind of them, it is the first.
    pub fn ours() -> Namespaces {
        let is = |name: &str, first: &str| {
            let link = read_link(Path::new("/proc/self/ns").join(name));
            link.map_or(true, |link| link.as_os_str() == first)
        };
        Namespaces { is_first_pid: is("pid", FIRST_PID), is_first_cgroup: is("cgroup", FIRST_CGROUP) }
    }

    pub fn is_host(self) -> bool {
        self.is_first_pid && self.is_first_cgroup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_something_else_is_mounted_over() {
        let mounts = "22 20 0:21 / /proc rw - proc proc rw\n23 22 0:40 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw\n\
                      24 22 0:41 / /proc/acpi ro - tmpfs tmpfs ro\n";
        let view = View { is_container: true, covered: covered(mounts) };
        assert_eq!(view.covered, ["/proc/meminfo"]);
    }

    #[test]
    fn this_process_sees_something() {
        assert!(View::read().covered.len() <= 6);
    }
}
