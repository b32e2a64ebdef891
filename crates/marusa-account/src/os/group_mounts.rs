//! Where the files of a cgroup's processes lie: which mounts hold pages, and which may be asked without waiting for anybody.

use super::foreign::{below, mount_id, mountinfo};
use super::lent_file;
use super::mounted::Mounted;
use super::process::Process;
use crate::base::Bytes;
use crate::base::limits::{FOREIGN_MOUNTS_BYTES_MAX, FOREIGN_MOUNTS_MAX};
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

/// The mounts that a process sees.
#[derive(Default)]
pub(super) struct Table {
    by_id: HashMap<u64, Mounted>,
    /// And whether it is a tmpfs.
    by_device: HashMap<String, (Kind, bool)>,
    shared: Option<SharedMemory>,
}

/// Where memory files, shared anonymous memory and segments of System V lie: on a mount that no list shows.
#[derive(Clone)]
pub(super) struct SharedMemory {
    mount: u64,
    device: String,
}

/// The file system of a file.
pub(super) struct Place {
    /// As in /proc/PID/maps.
    pub device: String,
    pub kind: Kind,
    pub is_shmem: bool,
}

/// Whether a file may be asked how much of it is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Local,
    /// Its pages belong to the file of a layer below, and its own index is empty (fs/overlayfs/file.c, `ovl_mmap`).
    Overlay,
    /// On a server or in a program that may never answer; or not known.
    Remote,
    NoPages,
}

impl Kind {
    fn of(mounted: &Mounted) -> Kind {
        match mounted.kind.as_str() {
            "overlay" => Kind::Overlay,
            _ if mounted.is_local() => Kind::Local,
            _ if mounted.has_no_pages() => Kind::NoPages,
            _ => Kind::Remote,
        }
    }
}

impl Table {
    pub fn read(process: &Process, shared: Option<SharedMemory>) -> Table {
        let text = mountinfo(process, FOREIGN_MOUNTS_BYTES_MAX);
        Table { shared, ..Table::of(text.lines().take(FOREIGN_MOUNTS_MAX).filter_map(Mounted::parse)) }
    }

    fn of(mounts: impl Iterator<Item = Mounted>) -> Table {
        let mut table = Table::default();
        for mounted in mounts {
            table.by_device.insert(mounted.device.clone(), (Kind::of(&mounted), mounted.is_tmpfs()));
            table.by_id.insert(mounted.id, mounted);
        }
        table
    }

    pub fn tmpfs_mounts(&self) -> Vec<&Mounted> {
        let mut mounts: Vec<&Mounted> = self.by_id.values().filter(|mounted| mounted.is_tmpfs()).collect();
        mounts.sort_by_key(|mounted| mounted.id);
        mounts
    }

    /// Whether every directory on the way to a mount lies on a local file system: the lookup of a name on any other may hang.
    pub fn is_reached_locally(&self, mounted: &Mounted) -> bool {
        self.by_id.values().all(|other| other.is_local() || !other.is_above(&mounted.at))
    }

    /// `None`: pipes, sockets and other things without a mount that anybody sees, or a mount of another namespace.
    pub fn place_of_mount(&self, mount: u64) -> Option<Place> {
        if let Some(shared) = self.shared.as_ref().filter(|shared| shared.mount == mount) {
            return Some(Place { device: shared.device.clone(), kind: Kind::Local, is_shmem: true });
        }
        let mounted = self.by_id.get(&mount)?;
        Some(Place { device: mounted.device.clone(), kind: Kind::of(mounted), is_shmem: mounted.is_tmpfs() })
    }

    pub fn place_of_device(&self, device: &str) -> Place {
        let is_ours = self.shared.as_ref().is_some_and(|shared| shared.device == device);
        let known = if is_ours { Some((Kind::Local, true)) } else { self.by_device.get(device).copied() };
        let (kind, is_shmem) = known.unwrap_or((Kind::Remote, false));
        Place { device: device.to_string(), kind, is_shmem }
    }
}

impl SharedMemory {
    pub fn find() -> Option<SharedMemory> {
        let file = lent_file::memory_file().ok()?;
        let mount = mount_id(file.as_fd())?;
        let (major, minor) = lent_file::device(&file).ok()?;
        Some(SharedMemory { mount, device: format!("{major:02x}:{minor:02x}") })
    }
}

/// What a tmpfs holds. `None`: its directory is covered by another mount, whose file system would be asked instead.
pub(super) fn used_bytes(root: &OwnedFd, mounted: &Mounted) -> Option<Bytes> {
    let found = below(root, &mounted.at).ok()?;
    (mount_id(found.as_fd())? == mounted.id).then(|| lent_file::used_bytes(&found).ok())?
}

/// All sockets lie on one mount that no list shows.
pub(super) fn socket_mount() -> Option<u64> {
    let socket = std::os::unix::net::UnixDatagram::unbound().ok()?;
    mount_id(socket.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /proc rw - proc proc rw\n\
                          3 1 0:40 / /mnt/nfs rw - nfs4 server:/a rw\n4 3 0:41 / /mnt/nfs/tmp rw - tmpfs tmpfs rw\n\
                          5 1 0:42 / /tmp rw - tmpfs tmpfs rw\n6 1 0:43 / /f rw - fuse.sshfs a:/ rw,user_id=0\n";

    #[test]
    fn only_local_file_systems_are_asked_and_only_by_local_ways() {
        let table = Table::of(MOUNTS.lines().filter_map(Mounted::parse));
        let local = |mount| table.place_of_mount(mount).is_some_and(|place| place.kind == Kind::Local);
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(local), [true, false, false, true, true, false, false]);
        let reached: Vec<&str> = table
            .tmpfs_mounts()
            .into_iter()
            .filter(|it| table.is_reached_locally(it))
            .map(|it| it.at.as_str())
            .collect();
        assert_eq!(reached, ["/tmp"]);
        assert!(table.place_of_mount(2).is_some_and(|place| place.kind == Kind::NoPages));
        assert!(
            table.place_of_device("08:01").kind == Kind::Local
                && table.place_of_device("00:28").kind == Kind::Remote
        );
    }

    #[test]
    fn shared_memory_without_a_mount_is_known() {
        let shared = SharedMemory::find().expect("a memfd");
        let place = Table { shared: Some(shared.clone()), ..Table::default() }.place_of_mount(shared.mount);
        assert!(place.is_some_and(|place| place.kind == Kind::Local && place.is_shmem));
    }
}
