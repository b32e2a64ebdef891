//! The hierarchies of cgroups as they can be seen from here. In a container of its own cgroup namespace, paths in /proc/PID/cgroup
//! are relative to that namespace's root: another container is `/../../kubepods.slice/...`, a neighbour in the same pod
//! `/../cri-containerd-ID.scope`, and what is in the container itself `/` (cgroup_namespaces(7)). The roots of mounts in mountinfo
//! are printed the same way (kernel/cgroup/cgroup.c, `cgroup_show_path`), so a mount of the host's hierarchy, whose root is as
//! many `..` above, leads to all of them. Where a path ends below the top of that mount, the names between are ours: found by the
//! inode of our namespace's root among the directories of the hierarchy.

use super::host;
use super::mounted::Mounted;
use super::namespaces::Namespaces;
use crate::base::limits::{FOREIGN_MOUNTS_BYTES_MAX, FOREIGN_MOUNTS_MAX, GROUP_DEPTH_MAX, GROUPS_BELOW_MAX};
use std::collections::HashMap;
use std::fs::{metadata, read_dir, read_link};
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The root directory of the host's first process, for a container that has the host's pids: no mount is needed.
const FIRST_ROOT: &str = "/proc/1/root";

/// Whether process 1 is the host's, and has other mounts than we have.
pub(super) fn is_in_container() -> bool {
    let mounts = |pid: &str| read_link(format!("/proc/{pid}/ns/mnt"));
    let is_other = mounts("1").is_ok_and(|first| mounts("self").is_ok_and(|own| own != first));
    is_other && Namespaces::ours().is_first_pid
}

/// The mounts of cgroups that may be looked into: ours, and those of the host where we are in a container.
pub(super) fn mounts() -> io::Result<Vec<Mounted>> {
    let mut mounts = of_text(&text("self")?, "");
    if is_in_container() {
        mounts.extend(of_text(&text("1").unwrap_or_default(), FIRST_ROOT));
    }
    Ok(mounts)
}

fn text(pid: &str) -> io::Result<String> {
    let bytes = host::read_start(format!("/proc/{pid}/mountinfo"), FOREIGN_MOUNTS_BYTES_MAX)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `root`: where the mounts' root directory is for us.
pub(super) fn of_text(mountinfo: &str, root: &str) -> Vec<Mounted> {
    let mounts = mountinfo.lines().take(FOREIGN_MOUNTS_MAX).filter_map(Mounted::parse);
    let groups = mounts.filter(|mounted| mounted.kind == "cgroup" || mounted.kind == "cgroup2");
    groups.map(|mounted| Mounted { at: format!("{root}{}", mounted.at), ..mounted }).collect()
}

/// A text of /proc/PID/cgroup with the paths from the top of what is mounted, as far as that can be known.
pub(super) fn absolute(groups: &str) -> String {
    if Namespaces::ours().is_first_cgroup {
        return groups.to_string();
    }
    let mounts = mounts().unwrap_or_default();
    groups
        .lines()
        .map(|line| absolute_line(line, &mounts).unwrap_or_else(|| line.to_string()) + "\n")
        .collect()
}

fn absolute_line(line: &str, mounts: &[Mounted]) -> Option<String> {
    let (start, path) = line.match_indices(':').nth(1).map(|(at, _)| line.split_at(at + 1))?;
    let names = start.strip_suffix(':')?.split_once(':')?.1;
    let is_hierarchy = |mounted: &&Mounted| match names {
        "" => mounted.kind == "cgroup2",
        _ => names.split(',').all(|name| mounted.options.split(',').any(|option| option == name)),
    };
    let below = mounts.iter().filter(is_hierarchy).filter_map(|mounted| below(mounted, path, mounts));
    let whole = below.max_by_key(String::len)?;
    Some(format!("{start}{}", if whole.is_empty() { "/" } else { &whole }))
}

/// The rest of a cgroup's path, where it lies in what is mounted: "" for the mount itself.
pub(super) fn below(mounted: &Mounted, path: &str, mounts: &[Mounted]) -> Option<String> {
    below_with(mounted, path, || own_path(mounted, mounts))
}

/// `own`: the path of our namespace's root below the mount.
fn below_with(mounted: &Mounted, path: &str, own: impl FnOnce() -> Option<String>) -> Option<String> {
    let (mount_ups, root) = ups(&mounted.root);
    let (path_ups, rest) = ups(path);
    let is_plain = |path: &str| path.split('/').all(|name| name != "..");
    if !is_plain(root) || !is_plain(rest) || mount_ups < path_ups {
        return None;
    }
    if mount_ups == path_ups {
        let rest = rest.strip_prefix(root.trim_end_matches('/'))?;
        return (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_end_matches('/').to_string());
    }
    if !root.trim_end_matches('/').is_empty() {
        return None;
    }
    let own = own()?;
    let names: Vec<&str> = own.split('/').filter(|name| !name.is_empty()).collect();
    let kept = names.get(..mount_ups - path_ups)?;
    let start: String = kept.iter().map(|name| format!("/{name}")).collect();
    Some(start + rest.trim_end_matches('/'))
}

/// How many `/..` a path begins with, and what follows.
fn ups(path: &str) -> (usize, &str) {
    let mut rest = path;
    let mut count = 0;
    while let Some(after) =
        rest.strip_prefix("/..").filter(|after| after.is_empty() || after.starts_with('/'))
    {
        (rest, count) = (after, count + 1);
    }
    (count, rest)
}

/// Looked for once for each mount: a process seldom moves to another group.
fn own_path(mounted: &Mounted, mounts: &[Mounted]) -> Option<String> {
    static KNOWN: Mutex<Option<HashMap<String, Option<String>>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    known.entry(mounted.at.clone()).or_insert_with(|| find_own(mounted, mounts)).clone()
}

fn find_own(mounted: &Mounted, mounts: &[Mounted]) -> Option<String> {
    let ours = mounts.iter().find(|other| other.device == mounted.device && other.root == "/")?;
    let inode = metadata(&ours.at).ok()?.ino();
    let found = find_inode(Path::new(&mounted.at), ups(&mounted.root).0, inode)?;
    found.strip_prefix(&mounted.at).ok()?.to_str().map(str::to_string)
}

/// The directory that many levels below `top` with an inode.
fn find_inode(top: &Path, depth: usize, inode: u64) -> Option<PathBuf> {
    if depth > GROUP_DEPTH_MAX {
        return None;
    }
    let (mut directories, mut seen) = (vec![(top.to_path_buf(), depth)], 0);
    while let Some((directory, levels)) = directories.pop() {
        for entry in read_dir(&directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            seen += 1;
            match levels {
                _ if seen > GROUPS_BELOW_MAX => return None,
                1 if entry.ino() == inode => return Some(entry.path()),
                0 | 1 => {}
                _ => directories.push((entry.path(), levels - 1)),
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    const HOST: &str = "31 23 0:26 /../../.. /host/sys/fs/cgroup ro - cgroup2 cgroup rw\n";

    fn below_of(mountinfo: &str, path: &str) -> Option<String> {
        let mounted = of_text(mountinfo, "").remove(0);
        below_with(&mounted, path, || {
            Some("/kubepods.slice/kubepods-podA.slice/cri-containerd-a.scope".to_string())
        })
    }

    #[test]
    fn paths_from_within_a_cgroup_namespace() {
        let host = |path| below_of(HOST, path);
        assert_eq!(host("/../../../system.slice/x.service").as_deref(), Some("/system.slice/x.service"));
        assert_eq!(
            host("/../../kubepods-podB.slice/cri-containerd-b.scope").as_deref(),
            Some("/kubepods.slice/kubepods-podB.slice/cri-containerd-b.scope")
        );
        assert_eq!(
            host("/../cri-containerd-c.scope").as_deref(),
            Some("/kubepods.slice/kubepods-podA.slice/cri-containerd-c.scope")
        );
        assert_eq!(host("/").as_deref(), Some("/kubepods.slice/kubepods-podA.slice/cri-containerd-a.scope"));
        assert_eq!(host("/../../..").as_deref(), Some(""));
        for path in ["/../../../..", "/../../../a/../../etc", "/a/..", "/../.."] {
            assert!(host(path).is_none_or(|path| path == "/kubepods.slice"), "{path}");
        }
        assert_eq!((below_of(OWN, "/"), below_of(OWN, "/a")), (Some(String::new()), Some("/a".to_string())));
        assert_eq!(below_of(OWN, "/../b"), None);
    }

    #[test]
    fn a_line_is_taken_from_its_own_hierarchy() {
        let text = "35 31 0:32 /../.. /h/memory ro - cgroup cgroup rw,memory\n\
                    36 31 0:33 /.. /h/systemd ro - cgroup cgroup rw,xattr,name=systemd\n";
        let mounts = of_text(text, "");
        let of = |line: &str| absolute_line(line, &mounts);
        assert_eq!(of("4:memory:/../../docker/ab").as_deref(), Some("4:memory:/docker/ab"));
        assert_eq!(of("1:name=systemd:/../a").as_deref(), Some("1:name=systemd:/a"));
        assert_eq!(of("1:name=systemd:/..").as_deref(), Some("1:name=systemd:/"));
        assert_eq!(absolute_line("0::/../../../a", &of_text(HOST, "")).as_deref(), Some("0::/a"));
        assert_eq!((of("0::/../a"), of("5:cpu,cpuacct:/../a"), of("nonsense")), (None, None, None));
    }

    #[test]
    fn a_directory_is_found_by_its_inode_at_its_depth_only() {
        let top = tempfile::tempdir().expect("a directory");
        for name in ["a/b", "c/d/e"] {
            std::fs::create_dir_all(top.path().join(name)).expect("directories");
        }
        let inode = metadata(top.path().join("c/d")).expect("there").ino();
        assert_eq!(find_inode(top.path(), 2, inode), Some(top.path().join("c/d")));
        assert_eq!((find_inode(top.path(), 1, inode), find_inode(top.path(), 3, inode)), (None, None));
    }
}
