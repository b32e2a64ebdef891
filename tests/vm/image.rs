//! What a machine boots: a kernel out of its package, and an archive of files in the form that kernels unpack at their start
//! (Documentation/driver-api/early-userspace/buffer-format.rst). No root is needed: devices are the kernel's (devtmpfs).

use super::packages::run;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories of packages that no JVM reads.
const LEFT_OUT: [&str; 5] = ["usr/share", "usr/libexec", "usr/sbin", "usr/lib/systemd", "boot"];

/// Packages unpacked into one tree, with / and /usr merged; kept until a package is a newer file.
pub fn unpack(at: &Path, debs: &[PathBuf]) -> Result<(), String> {
    let list: Vec<String> = debs.iter().map(|deb| deb.display().to_string()).collect();
    let (list, stamp) = (list.join("\n"), at.with_extension("list"));
    if fs::read_to_string(&stamp).is_ok_and(|known| known == list) {
        return Ok(());
    }
    let text = |error: io::Error| error.to_string();
    let _ = fs::remove_dir_all(at);
    for name in ["bin", "lib", "lib64", "sbin"] {
        fs::create_dir_all(at.join("usr").join(name)).map_err(text)?;
        std::os::unix::fs::symlink(format!("usr/{name}"), at.join(name)).map_err(text)?;
    }
    for deb in debs {
        let script =
            "dpkg-deb --fsys-tarfile \"$0\" | tar -C \"$1\" --keep-directory-symlink --no-same-owner -xf -";
        run(Command::new("sh").args(["-c", script]).arg(deb).arg(at))?;
    }
    LEFT_OUT.iter().for_each(|name| drop(fs::remove_dir_all(at.join(name))));
    fs::write(stamp, list).map_err(text)
}

/// The kernel's image out of its package.
pub fn kernel(deb: &Path, at: &Path) -> Result<PathBuf, String> {
    let script = "mkdir -p \"$1\" && dpkg-deb --fsys-tarfile \"$0\" | tar -C \"$1\" --wildcards -xf - './boot/vmlinuz-*'";
    let place = at.join(deb.file_stem().unwrap_or_default());
    if !place.join("boot").exists() {
        run(Command::new("sh").args(["-c", script]).arg(deb).arg(&place))?;
    }
    let mut found = fs::read_dir(place.join("boot")).map_err(|error| error.to_string())?.flatten();
    found.next().map(|entry| entry.path()).ok_or_else(|| format!("{} has no kernel", deb.display()))
}

/// An archive in the making.
pub struct Archive {
    out: BufWriter<File>,
    next: u32,
}

impl Archive {
    pub fn create(at: &Path) -> io::Result<Archive> {
        Ok(Archive { out: BufWriter::with_capacity(1 << 20, File::create(at)?), next: 1 })
    }

    /// Everything below `tree`, as if `tree` were the root.
    pub fn add_tree(&mut self, tree: &Path) -> io::Result<()> {
        let mut left = vec![tree.to_path_buf()];
        while let Some(directory) = left.pop() {
            let mut entries: Vec<PathBuf> =
                fs::read_dir(&directory)?.flatten().map(|entry| entry.path()).collect();
            entries.sort();
            for path in entries {
                let facts = fs::symlink_metadata(&path)?;
                let name = path.strip_prefix(tree).unwrap_or(&path).display().to_string();
                if facts.is_dir() {
                    self.entry(&name, facts.mode(), &[])?;
                    left.push(path);
                } else if facts.is_symlink() {
                    self.entry(&name, facts.mode(), fs::read_link(&path)?.display().to_string().as_bytes())?;
                } else if facts.is_file() {
                    self.entry(&name, facts.mode(), &fs::read(&path)?)?;
                }
            }
        }
        Ok(())
    }

    pub fn add_directory(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, 0o040_755, &[])
    }

    pub fn add_file(&mut self, name: &str, from: &Path) -> io::Result<()> {
        let mode = fs::metadata(from)?.permissions().mode();
        self.entry(name, mode, &fs::read(from)?)
    }

    pub fn add_text(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.entry(name, 0o100_755, text.as_bytes())
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let number =
            |value: usize| u32::try_from(value).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge));
        let name_bytes = number(name.len() + 1)?;
        write!(self.out, "070701{:08x}{mode:08x}", self.next)?;
        write!(self.out, "{:08x}{:08x}{:08x}{:08x}", 0, 0, 1, 0)?;
        write!(self.out, "{:08x}{:08x}{:08x}{:08x}{:08x}", number(content.len())?, 0, 0, 0, 0)?;
        write!(self.out, "{name_bytes:08x}{:08x}{name}\0", 0)?;
        self.pad(110 + name.len() + 1)?;
        self.out.write_all(content)?;
        self.pad(content.len())?;
        self.next += 1;
        Ok(())
    }

    fn pad(&mut self, bytes: usize) -> io::Result<()> {
        self.out.write_all(&[0; 3][..bytes.next_multiple_of(4) - bytes])
    }
}
