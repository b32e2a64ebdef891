//! A cgroup for a fault.

use crate::common::{is_root, skip};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A cgroup with a limit, of version 1 or 2, that is removed when dropped.
pub struct Group {
    directory: PathBuf,
    has_inner: bool,
    /// The file in which a controller was given to the groups below, for this one, and what takes it back.
    given: Option<(PathBuf, String)>,
}

impl Group {
    pub fn of_memory(bytes: u64) -> Option<Group> {
        let bytes = bytes.to_string();
        Group::make(&[("memory", "memory.limit_in_bytes", &bytes), ("", "memory.max", &bytes)])
    }
    /// A quota in each 100 ms.
    pub fn of_cpu(microseconds: u32) -> Option<Group> {
        let both = format!("{microseconds} 100000");
        Group::make(&[("cpu", "cpu.cfs_quota_us", &microseconds.to_string()), ("", "cpu.max", &both)])
    }
    /// 1024 is the weight of a group as it is born. Version 1 only: version 2 has another scale.
    pub fn of_shares(shares: u32) -> Option<Group> {
        Group::make(&[("cpu", "cpu.shares", &shares.to_string())])
    }
    pub fn of_tasks(most: u32) -> Option<Group> {
        let most = most.to_string();
        Group::make(&[("pids", "pids.max", &most), ("", "pids.max", &most)])
    }
    /// A limit of reserved 2 MiB pages: beyond it mmap fails, where the other limit would kill a process that touches them.
    pub fn of_huge_pages(bytes: u64) -> Option<Group> {
        let (bytes, file) = (bytes.to_string(), "hugetlb.2MB.rsvd.max");
        let first = ("hugetlb", "hugetlb.2MB.rsvd.limit_in_bytes", bytes.as_str());
        Group::make(&[first, ("", file, &bytes), ("unified", file, &bytes)])
    }

    /// Controller, file and value of each version; `None`: this machine does not let us have one.
    fn make(places: &[(&str, &str, &str)]) -> Option<Group> {
        if !is_root() {
            skip("only root may make cgroups");
            return None;
        }
        let name = format!("marusa-doctor-{}", std::process::id());
        for (controller, file, value) in places {
            let root = PathBuf::from("/sys/fs/cgroup").join(controller);
            let directory = root.join(&name);
            if !root.join("cgroup.procs").exists() || std::fs::create_dir(&directory).is_err() {
                continue;
            }
            let mut group = Group { directory, has_inner: false, given: None };
            if !group.directory.join(file).exists() {
                // In version 2 a group has only the controllers that the one above gives.
                let (control, name) = (root.join("cgroup.subtree_control"), file.split('.').next());
                let name = name.unwrap_or_default();
                let is_given = std::fs::write(&control, format!("+{name}")).is_ok();
                group.given = is_given.then_some((control, format!("-{name}")));
            }
            if std::fs::write(group.directory.join(file), value).is_ok() {
                return Some(group);
            }
        }
        skip(&format!("no cgroup can be made here with one of {places:?}"));
        None
    }

    /// The processes are in a group below, which has no limit of its own.
    pub fn with_inner(mut self) -> Group {
        std::fs::create_dir(self.directory.join("inner")).expect("a group");
        self.has_inner = true;
        self
    }
    pub fn inner(&self) -> PathBuf {
        if self.has_inner { self.directory.join("inner") } else { self.directory.clone() }
    }

    /// Leaves hardly more memory than is held next to what could be dropped.
    pub fn tighten(&self) {
        let files = [
            ("memory.usage_in_bytes", "total_inactive_file ", "memory.limit_in_bytes"),
            ("memory.current", "inactive_file ", "memory.max"),
        ];
        let text = |name: &str| std::fs::read_to_string(self.directory.join(name)).unwrap_or_default();
        for (used, droppable, limit) in files.iter().filter(|(used, ..)| !text(used).is_empty()) {
            let used: u64 = text(used).trim().parse().expect("bytes");
            let stat = text("memory.stat");
            let line = stat.lines().find_map(|line| line.strip_prefix(droppable));
            let droppable: u64 = line.expect("a figure").trim().parse().expect("bytes");
            let bytes = used - droppable + (1 << 20);
            std::fs::write(self.directory.join(limit), bytes.to_string()).expect("a limit");
        }
    }
}

/// A file on a tmpfs, whose pages a cgroup is charged for: who writes it is in there. Removed when dropped.
pub struct TmpfsFile {
    path: PathBuf,
}

impl TmpfsFile {
    pub fn new(directory: &str, bytes: u64, group: &Group) -> Option<TmpfsFile> {
        let path = PathBuf::from(directory).join(format!("marusa-doctor-{}", std::process::id()));
        let script = "echo $$ > \"$0\" && exec head -c \"$1\" /dev/zero > \"$2\"";
        let procs = group.inner().join("cgroup.procs");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).arg(procs).arg(bytes.to_string()).arg(&path);
        let file = TmpfsFile { path };
        let is_made = command.status().is_ok_and(|status| status.success());
        if !is_made {
            skip(&format!("no file can be made in {directory}"));
        }
        is_made.then_some(file)
    }
}

impl Drop for TmpfsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let started = Instant::now();
        let removed = || {
            let inner =
                !self.has_inner || std::fs::remove_dir(self.inner()).is_ok() || !self.inner().exists();
            inner && std::fs::remove_dir(&self.directory).is_ok()
        };
        // Its processes end a moment after they were killed.
        while !removed() && started.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(50));
        }
        if let Some((control, text)) = &self.given {
            let _ = std::fs::write(control, text);
        }
    }
}
