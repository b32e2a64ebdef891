//! A tmpfs of ours: mounted under a name by which it is known again, and unmounted only when no process uses it.

use crate::os::host;
use crate::os::mounted::Mounted;
use crate::os::place::{Place, by_descriptor};
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

pub fn tmpfs(at: &OwnedFd, source: &str, options: &str) -> io::Result<()> {
    let options = CString::new(options).map_err(|_| io::ErrorKind::InvalidInput)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount(source, by_descriptor(at), "tmpfs", flags, options.as_c_str())?)
}

pub fn unmount(at: &Place) -> io::Result<()> {
    let mut path = by_descriptor(&at.directory).into_bytes();
    path.push(b'/');
    path.extend(at.name.as_bytes());
    // Without MNT_FORCE and MNT_DETACH: what is in use stays.
    Ok(rustix::mount::unmount(path, UnmountFlags::NOFOLLOW)?)
}

/// The source of the topmost mount at a path.
pub fn source(at: &str) -> io::Result<Option<String>> {
    Ok(source_in(&host::text("/proc/self/mountinfo")?, at))
}

/// proc(5): "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue"; later lines lie on top.
fn source_in(mountinfo: &str, at: &str) -> Option<String> {
    let mut mounts = mountinfo.lines().rev().filter_map(Mounted::parse);
    mounts.find(|mounted| mounted.at == at).map(|mounted| mounted.source)
}

/// Processes that map a file of this filesystem, have one open, or are in it.
pub fn users(directory: &OwnedFd, at: &str) -> Vec<i32> {
    let Ok(meta) = std::fs::metadata(by_descriptor(directory)) else { return Vec::new() };
    let device = std::os::unix::fs::MetadataExt::dev(&meta);
    let device = format!(" {:02x}:{:02x} ", libc::major(device), libc::minor(device));
    let own = std::process::id() as i32;
    let uses = |pid: &i32| *pid != own && (opens(*pid, at) || maps(*pid, &device));
    host::pids().unwrap_or_default().into_iter().filter(uses).collect()
}

fn maps(pid: i32, device: &str) -> bool {
    host::text(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains(device))
}

fn opens(pid: i32, at: &str) -> bool {
    let below = |link: std::path::PathBuf| std::fs::read_link(link).is_ok_and(|path| path.starts_with(at));
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    ["cwd", "exe", "root"].iter().any(|name| below(format!("/proc/{pid}/{name}").into()))
        || files.map(|entry| entry.path()).any(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topmost_mount_counts() {
        let text = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                    30 22 0:31 / /a\\040b rw,nosuid shared:4 - tmpfs marusa:x:1 rw\n\
                    31 30 0:32 / /a\\040b rw - tmpfs other rw\n";
        assert_eq!(source_in(text, "/a b").as_deref(), Some("other"));
        assert_eq!(source_in(text, "/").as_deref(), Some("/dev/vda"));
        assert_eq!(source_in(text, "/a"), None);
    }
}
