//! The machine itself. Every path is opened one component after the other, and no symbolic link is followed: what a plan names
//! is what is opened, whoever else writes in a directory on the way.

use super::machine::{Lies, Machine};
use super::{copy, memory, mount};
use crate::os::foreign;
use crate::os::place::{Place, by_descriptor, has_no_unnamed, open_at};
use rustix::fs::{Access, AtFlags, accessat};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// The namespace of the host's System V memory (include/linux/proc_ns.h, `PROC_IPC_INIT_INO`), whose limits /proc/sys/kernel/shm*
/// are.
const HOST_IPC: &str = "ipc:[4026531839]";

pub struct Linux {
    /// "/", or a directory that stands for it.
    root: PathBuf,
}

impl Default for Linux {
    fn default() -> Linux {
        Linux { root: "/".into() }
    }
}

impl Linux {
    /// Below a directory that stands for "/".
    pub fn below(root: impl Into<PathBuf>) -> Linux {
        Linux { root: root.into() }
    }

    pub fn place(&self, path: &str) -> io::Result<Place> {
        let mut parts = path.strip_prefix('/').ok_or(io::ErrorKind::InvalidInput)?.split('/');
        let last = parts.next_back().ok_or(io::ErrorKind::InvalidInput)?;
        let mut directory: OwnedFd = File::open(&self.root)?.into();
        for part in parts {
            directory = open_at(directory, &name(part)?, libc::O_PATH | libc::O_DIRECTORY, 0)?.into();
        }
        Ok(Place { directory, name: name(last)?, shown: path.into() })
    }

    /// A regular file that is there.
    pub fn open(&self, path: &str, flags: libc::c_int) -> io::Result<File> {
        let file = self.place(path)?.open(flags | libc::O_NONBLOCK)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no regular file"));
        }
        Ok(file)
    }

    /// A directory, for looking things up in it.
    pub fn open_directory(&self, path: &str) -> io::Result<OwnedFd> {
        Ok(self.place(path)?.open(libc::O_RDONLY | libc::O_DIRECTORY)?.into())
    }
}

pub fn name(part: &str) -> io::Result<CString> {
    if ["", ".", ".."].contains(&part) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    CString::new(part).map_err(|_| io::ErrorKind::InvalidInput.into())
}

impl Machine for Linux {
    fn read(&self, file: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        foreign::start(self.open(file, libc::O_RDONLY)?, bytes_max)
    }

    fn may_write(&self, file: &str) -> io::Result<()> {
        let namespace = std::fs::read_link("/proc/self/ns/ipc");
        if file.starts_with("/proc/sys/kernel/shm") && namespace.is_ok_and(|one| one.as_os_str() != HOST_IPC)
        {
            let why = "here it is that of a container, not of the host";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        self.open(file, libc::O_WRONLY).map(drop)
    }

    fn may_create(&self, path: &str) -> io::Result<()> {
        Ok(accessat(self.place(path)?.directory, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        let mut file = self.open(file, libc::O_WRONLY)?;
        loop {
            match file.write(text.as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(written) if written == text.len() => return Ok(()),
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) => return Err(error),
            }
        }
    }

    fn lies(&self, path: &str) -> io::Result<Lies> {
        let file = match self.place(path).and_then(|place| place.open(libc::O_PATH)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lies::Nothing),
            found => found?,
        };
        let kind = file.metadata()?.file_type();
        Ok(match () {
            () if kind.is_file() => Lies::File,
            () if kind.is_dir() => {
                let mut entries = std::fs::read_dir(by_descriptor(&file))?;
                Lies::Directory { empty: entries.next().is_none() }
            }
            () => Lies::Other,
        })
    }

    fn create(&self, file: &str, text: &str, mode: u32) -> io::Result<()> {
        let place = self.place(file)?;
        // Without a name first, so that no process ever reads half a file; then under its name, unless that is taken.
        match place.unnamed(mode) {
            Err(error) if has_no_unnamed(&error) => fill(&mut place.create_new(mode)?, text)?,
            unnamed => {
                let mut unnamed = unnamed?;
                fill(&mut unnamed, text)?;
                place.take(&unnamed)?;
            }
        }
        sync_directory(&place)
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        let place = self.place(file)?;
        place.remove()?;
        sync_directory(&place)
    }

    fn make_directory(&self, path: &str) -> io::Result<()> {
        let place = self.place(path)?;
        place.make_directory()?;
        sync_directory(&place)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        let place = self.place(path)?;
        place.remove_directory()?;
        sync_directory(&place)
    }

    fn mount_tmpfs(&self, at: &str, source: &str, options: &str) -> io::Result<()> {
        mount::tmpfs(&self.open_directory(at)?, source, options)
    }

    fn mounted(&self, at: &str) -> io::Result<Option<String>> {
        mount::source(at)
    }

    fn unmount(&self, at: &str) -> io::Result<()> {
        mount::unmount(&self.place(at)?)
    }

    fn users(&self, at: &str) -> Vec<i32> {
        self.open_directory(at).map(|directory| mount::users(&directory, at)).unwrap_or_default()
    }

    fn copy_tree(&self, from: &str, to: &str, linked: &[String]) -> io::Result<u64> {
        copy::tree(&self.open_directory(from)?, &self.open_directory(to)?, from, linked)
    }

    fn swap_on(&self, file: &str, bytes: u64) -> io::Result<()> {
        memory::swap_on(&self.place(file)?, bytes)
    }

    fn is_swap(&self, file: &str) -> io::Result<bool> {
        memory::is_swap(&self.open(file, libc::O_RDONLY)?)
    }

    fn swap_off(&self, file: &str) -> io::Result<()> {
        memory::swap_off(&self.open(file, libc::O_RDONLY)?)
    }

    fn make_group(&self, path: &str, limit_bytes: u64) -> io::Result<()> {
        memory::make_group(&self.place(path)?, limit_bytes)
    }

    /// Nothing is synced: a cgroup is on no disk.
    fn remove_group(&self, path: &str) -> io::Result<()> {
        self.place(path)?.remove_directory()
    }

    fn members(&self, path: &str) -> Vec<i32> {
        let procs = self.open(&format!("{path}/cgroup.procs"), libc::O_RDONLY);
        procs.and_then(io::read_to_string).unwrap_or_default().lines().flat_map(str::parse).collect()
    }

    fn boot_id(&self) -> String {
        crate::os::host::text("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn stopped(&self) -> bool {
        crate::act::signals::pending()
    }
}

fn fill(file: &mut File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A name that was made or removed survives a loss of power only when its directory is on the disk.
fn sync_directory(place: &Place) -> io::Result<()> {
    File::open(by_descriptor(&place.directory))?.sync_all()
}
