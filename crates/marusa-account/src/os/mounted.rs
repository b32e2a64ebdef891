//! One line of mountinfo (proc_pid_mountinfo(5)): which file system lies where. It is the kernel's own list, so no file system is
//! asked anything.

/// File systems whose files are not stored bytes: fs/, kernel/, Documentation/filesystems/.
const REFUSED: [&str; 17] = [
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "efivarfs",
    "functionfs",
    "mqueue",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// As in `mnt_id` of /proc/PID/fdinfo.
    pub id: u64,
    /// "major:minor", hexadecimal as /proc/PID/maps prints it.
    pub device: String,
    /// The directory of the file system that is mounted.
    pub root: String,
    pub at: String,
    pub kind: String,
    /// What is mounted: a device, a server, or a name that was given.
    pub source: String,
    pub options: String,
}

/// File systems whose data is on this machine: a question to one waits neither for a server nor for a program. A question to
/// any other (NFS, CIFS, FUSE, ...) may never be answered, and closing one of its files may send data. An overlay counts as
/// local; one whose layers are not is not recognised.
const LOCAL: [&str; 20] = [
    "bcachefs", "btrfs", "devtmpfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jfs",
    "ntfs3", "overlay", "ramfs", "reiserfs", "squashfs", "tmpfs", "udf", "xfs", "zfs",
];

impl Mounted {
    /// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue".
    pub fn parse(line: &str) -> Option<Mounted> {
        let (fields, kinds) = line.split_once(" - ")?;
        let mut fields = fields.split(' ');
        let id = fields.next()?.parse().ok()?;
        let (major, minor) = fields.nth(1)?.split_once(':')?;
        let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        let (root, at) = (fields.next()?.to_string(), unescaped(fields.next()?));
        let mut kinds = kinds.split(' ');
        let kind = kinds.next()?.to_string();
        let source = unescaped(kinds.next().unwrap_or_default());
        let options = kinds.next().unwrap_or_default().to_string();
        Some(Mounted { id, device: format!("{major:02x}:{minor:02x}"), root, at, kind, source, options })
    }

    pub fn is_local(&self) -> bool {
        LOCAL.contains(&self.kind.as_str())
    }

    /// A file system of the kernel itself, whose files are not stored bytes.
    pub fn has_no_pages(&self) -> bool {
        REFUSED.contains(&self.kind.as_str())
    }

    /// Whether the pages of its files are shared memory (mm/shmem.c), which swaps and is never dropped.
    pub fn is_tmpfs(&self) -> bool {
        self.kind == "tmpfs"
    }

    /// Whether it is the hierarchy of cgroups that has the memory controller.
    pub fn has_memory(&self, version: u8) -> bool {
        match version {
            1 => self.kind == "cgroup" && self.options.split(',').any(|option| option == "memory"),
            _ => self.kind == "cgroup2",
        }
    }

    /// Whether `path` lies at this mount point or below it, by its name.
    pub fn is_above(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.at.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Space, tab, newline, backslash and more are octal in lists of mounts (fs/proc_namespace.c, `mangle`).
pub fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(u8::is_ascii);
        plain.push(code.map_or('\\', char::from));
        plain.push_str(if code.is_some() { &part[3..] } else { part });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo() {
        let line = "36 35 259:10 / /mnt\\040x rw,noatime master:1 - ext4 /dev/root rw,errors=continue";
        let mounted = Mounted::parse(line).expect("a line");
        assert_eq!((mounted.id, mounted.device.as_str(), mounted.at.as_str()), (36, "103:0a", "/mnt x"));
        assert!(mounted.is_local() && !mounted.is_tmpfs());
        assert!(mounted.is_above("/mnt x/y") && mounted.is_above("/mnt x") && !mounted.is_above("/mnt xy"));
        for line in
            ["40 36 0:38 / /srv rw - nfs4 a:/srv rw", "41 36 0:39 / /s rw - fuse.sshfs a rw,user_id=0"]
        {
            assert!(!Mounted::parse(line).expect("a line").is_local(), "{line}");
        }
        assert_eq!(Mounted::parse("36 35 98 / / rw - ext4 a rw"), None);
        assert_eq!(Mounted::parse("nonsense"), None);
        assert_eq!(unescaped("a\\134b\\9\\"), "a\\b\\9\\");
    }
}
