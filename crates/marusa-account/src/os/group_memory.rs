//! The memory limit under which a process lives: of its cgroup and of those above, the one that leaves least.
//!
//! Documentation/admin-guide/cgroup-v2.rst ("Memory") and cgroup-v1/memory.rst. What a process may still take is not the limit
//! less the usage: the page cache counts too, and is dropped before anything is killed. Where the files lie follows from
//! /proc/PID/cgroup, which is relative to our own cgroup namespace, and from where the hierarchy is mounted for us, which may be
//! a part of it (/proc/self/mountinfo, field "root"): a container that has the host's namespace sees its own group that way.

use super::group::{Group, mounts, place};
use super::host::text;
use super::process::{Process, gap};
use super::vmstat::parse as numbers;
use crate::base::limits::GROUP_DEPTH_MAX;
use crate::base::{Bytes, Gap, Known, Why};
use std::collections::BTreeMap;

/// The files of one group, and its limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupMemory {
    /// The directory.
    pub path: String,
    /// The file that says the limit.
    pub limit_file: String,
    pub limit_bytes: Bytes,
    /// memory.high: above it the kernel slows the group down, and kills nothing. Version 2 only.
    pub high_bytes: Option<Bytes>,
    pub current_bytes: Bytes,
    /// The part of `current_bytes` that could be dropped at once: file pages not used lately (inactive_file), as Kubernetes
    /// takes them off, too.
    pub reclaimable_bytes: Bytes,
    /// What may be swapped out; `None`: no limit of its own, or the kernel does not count swap.
    pub swap_limit_bytes: Option<Bytes>,
    /// memory.events: "oom_kill", "max", "high". Of version 1: "oom_kill", and "max" as memory.failcnt counts it.
    pub events: BTreeMap<String, u64>,
    /// memory.stat with what groups below have (Documentation/admin-guide/cgroup-v2.rst, "memory.stat"; cgroup-v1/memory.rst, 5.2).
    pub rows: BTreeMap<String, Bytes>,
}

impl GroupMemory {
    /// Whether it is of version 1 of the cgroups, whose files have other names.
    pub fn is_version_1(&self) -> bool {
        self.limit_file.ends_with("/memory.limit_in_bytes")
    }
    /// The file into which a 0 keeps its memory from being swapped out. In version 1 a swappiness of 0 "really prevents from any
    /// swapping even if there is a swap storage available" (Documentation/admin-guide/cgroup-v1/memory.rst, 5.3).
    pub fn no_swap_file(&self) -> String {
        format!("{}/{}", self.path, if self.is_version_1() { "memory.swappiness" } else { "memory.swap.max" })
    }
    /// The file that counts an event: "oom_kill", "max".
    pub fn events_file(&self, event: &str) -> &'static str {
        match (self.is_version_1(), event) {
            (false, _) => "memory.events",
            (true, "oom_kill") => "memory.oom_control",
            (true, _) => "memory.failcnt",
        }
    }
    /// Counted, and not to be dropped at once: what Kubernetes calls the working set.
    pub fn held_bytes(&self) -> Bytes {
        self.current_bytes.saturating_sub(self.reclaimable_bytes)
    }
    /// What may still be taken before something must be reclaimed that is used.
    pub fn left_bytes(&self) -> Bytes {
        self.limit_bytes.saturating_sub(self.held_bytes())
    }
}

/// The number of OOM kills in a cgroup, by the cgroup's directory: for when the process is gone.
pub fn oom_kills(directory: &str) -> Option<u64> {
    let events = ["memory.events", "memory.oom_control"].map(|name| text(format!("{directory}/{name}")));
    events.iter().flatten().find_map(|text| numbers(text).get("oom_kill").copied())
}

pub(super) type Reads<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The tightest limit of a process; `None`: no group that can be seen has one.
pub fn of(process: &Process) -> Known<Option<GroupMemory>> {
    let groups = process.text("cgroup").map_err(|error| gap("/proc/PID/cgroup", &error))?;
    place(&groups, &mounts()?)?.map_or(Ok(None), |group| group.limit())
}

impl Group {
    /// The limit that leaves least, of this cgroup and the ones above; `None`: none has one.
    pub fn limit(&self) -> Known<Option<GroupMemory>> {
        tightest(self, &|file| text(file).ok())
    }
}

/// The limit that leaves least, of the group at `place` and the ones above it.
pub(super) fn tightest(place: &Group, read: Reads) -> Known<Option<GroupMemory>> {
    let mut found: Vec<GroupMemory> = Vec::new();
    for (depth, directory) in place.directories().iter().take(GROUP_DEPTH_MAX).enumerate() {
        let has = |name: &str| read(&format!("{directory}/{name}")).is_some();
        if depth == 0 && !has("cgroup.procs") {
            return Err(Gap::new("memory limit: the cgroup is not in what is mounted here", Why::Gone));
        }
        // A group of version 1 may leave those below to themselves; kernels since 5.11 have no such groups.
        let is_apart = depth > 0
            && read(&format!("{directory}/memory.use_hierarchy")).is_some_and(|text| text.trim() == "0");
        if is_apart {
            break;
        }
        let of_version = if place.version == 1 { version_1 } else { version_2 };
        found.extend(of_version(directory, read));
    }
    Ok(found.into_iter().min_by_key(GroupMemory::left_bytes))
}

/// `None`: no limit is set there ("max"), or the root, which has no such file.
fn version_2(directory: &str, read: Reads) -> Option<GroupMemory> {
    let text = |name: &str| read(&format!("{directory}/{name}"));
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let stat = numbers(&text("memory.stat").unwrap_or_default());
    Some(GroupMemory {
        path: directory.to_string(),
        limit_file: format!("{directory}/memory.max"),
        limit_bytes: number("memory.max")?,
        high_bytes: number("memory.high"),
        current_bytes: number("memory.current")?,
        reclaimable_bytes: stat.get("inactive_file").copied().unwrap_or(0),
        swap_limit_bytes: number("memory.swap.max"),
        events: numbers(&text("memory.events").unwrap_or_default()),
        rows: stat,
    })
}

/// Without a limit there is one of nearly 2^63 bytes.
fn version_1(directory: &str, read: Reads) -> Option<GroupMemory> {
    let text = |name: &str| read(&format!("{directory}/{name}"));
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let limit = |name: &str| number(name).filter(|bytes| *bytes < 1 << 60);
    let limit_bytes = limit("memory.limit_in_bytes")?;
    let stat = numbers(&text("memory.stat").unwrap_or_default());
    let events = numbers(&text("memory.oom_control").unwrap_or_default());
    let mut events: BTreeMap<String, u64> =
        events.into_iter().filter(|(name, _)| name == "oom_kill").collect();
    events.extend(number("memory.failcnt").map(|times| ("max".to_string(), times)));
    let total = |(name, bytes): (&String, &u64)| Some((name.strip_prefix("total_")?.to_string(), *bytes));
    let mut rows: BTreeMap<String, Bytes> = stat.iter().filter_map(total).collect();
    rows.extend(number("memory.kmem.usage_in_bytes").map(|bytes| ("kernel".to_string(), bytes)));
    Some(GroupMemory {
        path: directory.to_string(),
        limit_file: format!("{directory}/memory.limit_in_bytes"),
        limit_bytes,
        high_bytes: None,
        current_bytes: number("memory.usage_in_bytes")?,
        reclaimable_bytes: stat.get("total_inactive_file").copied().unwrap_or(0),
        swap_limit_bytes: limit("memory.memsw.limit_in_bytes").map(|both| both.saturating_sub(limit_bytes)),
        events,
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::hierarchy;

    const VERSION_1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const VERSION_2: &str =
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn files<'a>(files: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |file| files.iter().find(|(name, _)| *name == file).map(|(_, text)| text.to_string())
    }

    #[test]
    fn the_place_of_a_group() {
        let seen = |groups, mounts| place(groups, &hierarchy::of_text(mounts, ""));
        let of =
            |groups, mounts| seen(groups, mounts).expect("seen").map(|it| format!("{}{}", it.mount, it.path));
        assert_eq!(of("4:memory:/a/b\n0::/x\n", VERSION_1).as_deref(), Some("/sys/fs/cgroup/memory/a/b"));
        assert_eq!(of("0::/a.slice/b.scope\n", VERSION_2).as_deref(), Some("/sys/fs/cgroup/a.slice/b.scope"));
        assert_eq!(of("0::/\n", VERSION_2).as_deref(), Some("/sys/fs/cgroup"));
        assert_eq!(of("", VERSION_2), None);
        // A container of version 1 that shares the host's namespace: its own group is all that is mounted.
        let part = "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(of("4:memory:/docker/ab\n", part).as_deref(), Some("/sys/fs/cgroup/memory"));
        assert_eq!(of("4:memory:/docker/ab/c\n", part).as_deref(), Some("/sys/fs/cgroup/memory/c"));
        assert_eq!(seen("4:memory:/docker/abc\n", part).expect_err("another's").why, Why::NotRead);
        assert_eq!(seen("0::/../b\n", VERSION_2).expect_err("outside").why, Why::NotRead);
        assert_eq!(seen("0::/a\n", "").expect_err("not mounted").why, Why::NotRead);
    }

    #[test]
    fn the_limit_that_leaves_least_counts() {
        let read = files(&[
            ("/c/a/b/cgroup.procs", ""),
            ("/c/a/b/memory.max", "max\n"),
            ("/c/a/b/memory.current", "100\n"),
            ("/c/a/memory.max", "1000\n"),
            ("/c/a/memory.high", "900\n"),
            ("/c/a/memory.current", "800\n"),
            ("/c/a/memory.swap.max", "0\n"),
            ("/c/a/memory.stat", "anon 500\ninactive_file 300\n"),
            ("/c/a/memory.events", "low 0\nhigh 7\nmax 3\noom_kill 1\n"),
        ]);
        let place = Group { version: 2, mount: "/c".to_string(), path: "/a/b".to_string() };
        let group = tightest(&place, &read).expect("seen").expect("limited");
        assert_eq!((group.path.as_str(), group.limit_bytes, group.high_bytes), ("/c/a", 1000, Some(900)));
        assert_eq!((group.held_bytes(), group.left_bytes()), (500, 500));
        assert_eq!((group.swap_limit_bytes, group.events["oom_kill"]), (Some(0), 1));
        assert_eq!(group.limit_file, "/c/a/memory.max");
        assert_eq!(group.events_file("oom_kill"), "memory.events");
        let gone = Group { path: "/gone".to_string(), ..place };
        assert_eq!(tightest(&gone, &read).expect_err("gone").why, Why::Gone);
    }

    #[test]
    fn version_1_and_a_group_that_leaves_those_below_to_themselves() {
        let read = files(&[
            ("/m/a/b/cgroup.procs", ""),
            ("/m/a/b/memory.limit_in_bytes", "2000\n"),
            ("/m/a/b/memory.memsw.limit_in_bytes", "2500\n"),
            ("/m/a/b/memory.usage_in_bytes", "1500\n"),
            ("/m/a/b/memory.failcnt", "12\n"),
            ("/m/a/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            ("/m/a/b/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n"),
            ("/m/a/memory.use_hierarchy", "0\n"),
            ("/m/a/memory.limit_in_bytes", "10\n"),
            ("/m/a/memory.usage_in_bytes", "5\n"),
            ("/m/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let place = Group { version: 1, mount: "/m".to_string(), path: "/a/b".to_string() };
        let group = tightest(&place, &read).expect("seen").expect("limited");
        assert_eq!((group.limit_bytes, group.held_bytes(), group.swap_limit_bytes), (2000, 1100, Some(500)));
        assert_eq!((group.events["max"], group.events["oom_kill"]), (12, 2));
        assert_eq!(group.limit_file, "/m/a/b/memory.limit_in_bytes");
        assert_eq!(
            (group.events_file("oom_kill"), group.events_file("max")),
            ("memory.oom_control", "memory.failcnt")
        );
        let root = Group { path: String::new(), ..place };
        let read = files(&[("/m/cgroup.procs", ""), ("/m/memory.limit_in_bytes", "9223372036854771712\n")]);
        assert_eq!(tightest(&root, &read), Ok(None));
    }

    #[test]
    fn this_process() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        if let Ok(Some(group)) = of(&me) {
            assert!(group.limit_bytes > 0 && !group.path.is_empty());
        }
    }
}
