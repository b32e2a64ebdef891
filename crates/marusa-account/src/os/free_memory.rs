//! How much memory may still be taken without harm: what the host has, or less where our own cgroup is limited.
//!
//! `MemAvailable`: Documentation/filesystems/proc.rst. Groups: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
//! A group's usage counts the page cache too, whose inactive part is undone first, so that part is free as well.

use super::cgroup::directories;
use super::host::{field, number, text};
use super::meminfo;
use crate::base::{Bytes, Gap, Known, Why};
use std::path::Path;

/// Bytes that this process may still take.
pub fn available_bytes() -> Known<Bytes> {
    let host = text("/proc/meminfo").ok().and_then(|text| meminfo::fields(&text).remove("MemAvailable"));
    let host = host.ok_or_else(|| {
        Gap::new("free memory", Why::NotInThisKernel).hint("/proc/meminfo says nothing of MemAvailable")
    })?;
    let groups = text("/proc/self/cgroup").unwrap_or_default();
    Ok(host.min(left_in_groups(&groups).unwrap_or(u64::MAX)))
}

/// What the cgroups of a process leave it, by its /proc/PID/cgroup; `None`: none of them has a limit.
pub fn left_in_groups(groups: &str) -> Option<Bytes> {
    // "/../other": above the root of our cgroup namespace, so it is none of the directories that we see.
    let inside = groups.lines().filter(|line| !line.split('/').any(|name| name == ".."));
    let directories = inside.flat_map(|line| directories(line, "memory"));
    directories.filter_map(|directory| left_in(&directory)).min()
}

/// `None`: the group has no limit, or there are no such files.
fn left_in(directory: &Path) -> Option<Bytes> {
    let number = |name: &str| number::<u64>(directory.join(name));
    let (limit, usage, cache) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?, "inactive_file "),
        None => (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")?, "total_inactive_file "),
    };
    let stat = text(directory.join("memory.stat")).unwrap_or_default();
    let cache = field(&stat, cache).and_then(|bytes| bytes.parse().ok());
    Some(limit.saturating_sub(usage.saturating_sub(cache.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_both_versions_and_all_above_them() {
        let names = |line| {
            directories(line, "memory").iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("0::/a/b"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"]);
        assert_eq!(names("5:memory:/"), ["/sys/fs/cgroup/memory/"]);
        assert!(names("4:cpu,cpuacct:/x").is_empty() && names("").is_empty());
        assert_eq!(left_in_groups("0::/../../tmp/a\n"), None, "above the root of our namespace");
    }

    #[test]
    fn a_group_has_left_what_is_not_used_and_what_can_be_taken_back() {
        let directory = std::env::temp_dir().join(format!("marusa-group-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).expect("written");
        assert_eq!(left_in(&directory), None);
        write("memory.max", "max\n");
        assert_eq!(left_in(&directory), None, "no limit");
        write("memory.max", "1000\n");
        write("memory.current", "700\n");
        write("memory.stat", "anon 500\ninactive_file 100\n");
        assert_eq!(left_in(&directory), Some(400));
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn this_host_has_some() {
        assert!(available_bytes().expect("/proc is there") > 1 << 20);
    }
}
