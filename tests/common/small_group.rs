//! A cgroup with little memory, of either version, removed when dropped.

use std::fs::{create_dir, remove_dir, write};
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Group {
    directory: PathBuf,
}

impl Group {
    /// `None` where none can be made.
    pub fn with_bytes(bytes: u64) -> Option<Group> {
        Group::named(&format!("marusa-group-{}", std::process::id()), bytes)
    }

    /// With a name of one's own.
    pub fn named(name: &str, bytes: u64) -> Option<Group> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = |start: &str| {
            let line = own.lines().find(|line| line.split(':').nth(1) == Some(start))?;
            Some(line.rsplit_once(':')?.1.trim_start_matches('/').to_string())
        };
        let (root, path, file) = match path("memory") {
            Some(path) => ("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"),
            None => ("/sys/fs/cgroup", path("")?, "memory.max"),
        };
        // In version 2 a group with processes has no children with controllers: next to it, then.
        let parents = [Path::new(root).join(&path), Path::new(root).to_path_buf()];
        let made = parents.iter().map(|parent| Group { directory: parent.join(name) });
        made.filter(|group| create_dir(&group.directory).is_ok())
            .find(|group| write(group.directory.join(file), bytes.to_string()).is_ok())
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Runs in the group.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        let procs = self.directory.join("cgroup.procs");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\"", &procs.display().to_string(), program]);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last process may be ending just now.
        for _ in 0..50 {
            if remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        eprintln!("{} could not be removed", self.directory.display());
    }
}
