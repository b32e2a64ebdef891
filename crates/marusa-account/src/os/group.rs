//! One cgroup with a memory controller: found by a process or by its path, its figures, and the processes in it and below.

use super::budget;
use super::cgroup::path_in;
use super::hierarchy;
use super::host::text;
use super::mounted::Mounted;
use super::process::{Process, gap};
use crate::base::limits::{GROUP_DEPTH_MAX, GROUP_PROCESSES_MAX, GROUPS_BELOW_MAX};
use crate::base::{Gap, Known, Why};
use std::path::PathBuf;

/// Where the files of a process' group lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub version: u8,
    /// Where the hierarchy is mounted for us.
    pub mount: String,
    /// Below it.
    pub path: String,
}

impl Group {
    /// The cgroup of a process.
    pub fn of(process: &Process) -> Known<Group> {
        let groups = process.text("cgroup").map_err(|error| gap("/proc/PID/cgroup", &error))?;
        Group::in_hierarchy(&groups)
    }

    /// By its directory ("/sys/fs/cgroup/a") or its path in the hierarchy ("/a", as /proc/PID/cgroup prints it).
    pub fn at(path: &str) -> Known<Group> {
        if path.split('/').any(|name| name == "..") || !path.starts_with('/') {
            return Err(Gap::new(format!("cgroup {path}"), Why::NotRead)
                .hint("name the absolute path of its directory, or its path in /proc/PID/cgroup"));
        }
        let mounts = mounts()?;
        let mounted = |version: u8| {
            let mut found = mounts.iter().filter(move |mounted| mounted.has_memory(version));
            found.find(|mounted| mounted.is_above(path))
        };
        let found = [1, 2].into_iter().find_map(|version| Some((version, mounted(version)?)));
        let Some((version, mounted)) = found else {
            let has_version_1 = mounts.iter().any(|mounted| mounted.has_memory(1));
            let line = if has_version_1 { format!("1:memory:{path}") } else { format!("0::{path}") };
            return Group::in_hierarchy(&line)?.checked();
        };
        let below = path[mounted.at.trim_end_matches('/').len()..].trim_end_matches('/').to_string();
        Group { version, mount: mounted.at.clone(), path: below }.checked()
    }

    fn in_hierarchy(groups: &str) -> Known<Group> {
        let absent = || Gap::new("cgroup", Why::NotInThisKernel).hint("this kernel has no memory controller");
        place(groups, &mounts()?)?.ok_or_else(absent)
    }

    fn checked(self) -> Known<Group> {
        match self.text("cgroup.procs") {
            Some(_) => Ok(self),
            None => Err(Gap::new(format!("cgroup {}", self.directory()), Why::Gone)
                .hint("there is no such cgroup with a memory controller")),
        }
    }

    pub fn directory(&self) -> String {
        format!("{}{}", self.mount, self.path)
    }

    /// The directories of the group and of those above it, the innermost first.
    pub fn directories(&self) -> Vec<String> {
        let mut path = self.path.trim_end_matches('/');
        let mut directories = Vec::new();
        loop {
            directories.push(format!("{}{path}", self.mount));
            match path.rfind('/') {
                Some(at) => path = &path[..at],
                None => return directories,
            }
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        text(format!("{}/{name}", self.directory())).ok()
    }

    /// The processes in it and in the cgroups below, by pid, and what was left out.
    pub fn pids(&self) -> (Vec<i32>, Vec<Gap>) {
        let (mut pids, mut gaps) = (Vec::new(), Vec::new());
        let mut directories = vec![(PathBuf::from(self.directory()), 0)];
        let mut seen = 0;
        while let Some((directory, depth)) = directories.pop() {
            seen += 1;
            let is_over =
                seen > GROUPS_BELOW_MAX || pids.len() >= GROUP_PROCESSES_MAX || depth > GROUP_DEPTH_MAX;
            let why = if is_over { Err(Why::OverLimit) } else { budget::check_now() };
            if let Err(why) = why {
                gaps.push(Gap::new("processes of the cgroup: some are left out", why));
                break;
            }
            // "0": a process of another pid namespace.
            let listed = text(directory.join("cgroup.procs")).unwrap_or_default();
            pids.extend(listed.lines().filter_map(|line| line.parse().ok()).filter(|pid: &i32| *pid > 0));
            let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            directories.extend(below.map(|entry| (entry.path(), depth + 1)).take(GROUPS_BELOW_MAX));
        }
        pids.sort_unstable();
        pids.dedup();
        (pids, gaps)
    }
}

/// `None`: this kernel has no controller for memory. Where version 1 has it, version 2 has not.
pub(super) fn place(groups: &str, mounts: &[Mounted]) -> Known<Option<Group>> {
    let (version, path) = match (path_in(groups, "memory"), path_in(groups, "")) {
        (Some(path), _) => (1, path),
        (None, Some(path)) => (2, path),
        (None, None) => return Ok(None),
    };
    let mounted = mounts.iter().filter(|mounted| mounted.has_memory(version));
    // The whole hierarchy before a part of it.
    let mut places: Vec<Group> = mounted
        .filter_map(|mounted| {
            let path = hierarchy::below(mounted, path, mounts)?;
            Some(Group { version, mount: mounted.at.clone(), path })
        })
        .collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.path.len()));
    places.into_iter().next().map(Some).ok_or_else(|| match path.starts_with("/..") {
        true => Gap::new("memory limit: the process's cgroup is outside the visible ones", Why::NotRead)
            .hint("mount the host's /sys/fs/cgroup into marusa's container, or run marusa on the host"),
        false => Gap::new("memory limit: the cgroups are not mounted here", Why::NotRead)
            .hint("mount cgroup2 or cgroup at /sys/fs/cgroup, or run marusa on the host"),
    })
}

pub(super) fn mounts() -> Known<Vec<Mounted>> {
    hierarchy::mounts().map_err(|error| gap("/proc/self/mountinfo", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup_of_this_process() {
        let me = Process::own().expect("myself");
        let Ok(group) = Group::of(&me) else { return };
        let (pids, gaps) = group.pids();
        assert!(pids.contains(&me.pid) && gaps.is_empty(), "{group:?} {gaps:?}");
        assert_eq!(Group::at(&group.directory()).expect("by its directory").directory(), group.directory());
        let path = if group.path.is_empty() { "/" } else { &group.path };
        assert_eq!(Group::at(path).expect("by its path").directory(), group.directory());
    }

    #[test]
    fn paths_that_lead_nowhere() {
        for path in ["", "a", "/sys/fs/cgroup/../../etc", "/no/such/cgroup"] {
            assert!(Group::at(path).is_err(), "{path}");
        }
    }
}
