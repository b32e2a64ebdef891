//! A small file system for tests of a full disk, unmounted when dropped.

use super::{is_root, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// On a directory. `size`: as tmpfs takes it. Says why not where it is not possible.
    pub fn new(at: &Path, size: &str) -> Option<SmallDisk> {
        if !is_root() {
            skip("only root may mount a small file system");
            return None;
        }
        let options = format!("size={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).status();
        if !mount.is_ok_and(|status| status.success()) {
            skip("tmpfs cannot be mounted here");
            return None;
        }
        Some(SmallDisk(at.to_path_buf()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
