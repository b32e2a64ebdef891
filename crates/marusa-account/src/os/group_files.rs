//! The files that the processes of a cgroup have open or map, and how much of each is in memory: by what the kernel already has.
//! No file is opened by its name, and none that is not on a local file system is opened, lent or asked at all: its server may
//! never answer. Of those, and where the kernel has no cachestat(2), smaps says what is mapped of them.
//!
//! /proc/PID/fdinfo (proc_pid_fdinfo(5)) has the mount and the inode of an open file, /proc/PID/maps the device and the inode of
//! a mapped one, and mountinfo the file system of either.

use super::foreign::{mount_id, regular};
use super::group_mounts::{Kind, SharedMemory, Table, socket_mount, used_bytes};
use super::lent_file::{self, Lender};
use super::maps::Mapping;
use super::mounted::Mounted;
use super::process::{Process, gap};
use super::{budget, host, smaps};
use crate::base::limits::{GROUP_FILES_MAX, GROUP_OPEN_FILES_MAX, GROUP_TMPFS_MAX};
use crate::base::{Bytes, Gap, Known, Why, counted};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;

/// Bytes of one fdinfo that are read: mount and inode are in its first lines.
const FDINFO_BYTES: usize = 512;
const OVERLAY: &str = "on an overlay, whose files have no index of cached pages: only what is mapped counts";
const REMOTE: &str = "not on a local file system: its server may not answer, so only what is mapped counts";

/// A file, and what of it is in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupFile {
    pub path: String,
    pub cached_bytes: Bytes,
    /// On tmpfs, or shared memory.
    pub is_shmem: bool,
    /// The first process that was seen to have it.
    pub pid: i32,
    pub how: &'static str,
}

/// A tmpfs, and how much it holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TmpfsMount {
    pub at: String,
    pub used_bytes: Bytes,
    /// The part of it in files that are open or mapped.
    pub named_bytes: Bytes,
}

/// Device as in /proc/PID/maps, and inode.
type Key = (String, u64);

#[derive(Default)]
pub struct GroupFiles {
    /// `None`: it was looked at, and is not a file whose pages count.
    files: HashMap<Key, Option<GroupFile>>,
    /// Inodes of sockets, and the process that has each.
    pub sockets: HashMap<u64, i32>,
    tables: HashMap<PathBuf, Rc<Table>>,
    shared_memory: Option<SharedMemory>,
    socket_mount: Option<u64>,
    looked_at: usize,
    failed: Vec<Failed>,
}

struct Failed {
    why: Why,
    hint: &'static str,
    times: u64,
    first: String,
}

impl GroupFiles {
    pub fn new() -> GroupFiles {
        GroupFiles {
            shared_memory: SharedMemory::find(),
            socket_mount: socket_mount(),
            ..GroupFiles::default()
        }
    }

    /// The files, the largest first.
    pub fn files(&self) -> Vec<GroupFile> {
        let mut files: Vec<GroupFile> = self.files.values().flatten().cloned().collect();
        files.sort_by(|a, b| b.cached_bytes.cmp(&a.cached_bytes).then_with(|| a.path.cmp(&b.path)));
        files
    }

    pub fn gaps(&self) -> Vec<Gap> {
        let row = |failed: &Failed| {
            let what = format!("page cache of {}, {} first", counted(failed.times, "file"), failed.first);
            Gap::new(what, failed.why).hint(failed.hint)
        };
        self.failed.iter().map(row).collect()
    }

    fn fail(&mut self, why: Why, hint: &'static str, path: &str) {
        match self.failed.iter_mut().find(|failed| failed.why == why && failed.hint == hint) {
            Some(failed) => failed.times += 1,
            None => self.failed.push(Failed { why, hint, times: 1, first: path.to_string() }),
        }
    }

    /// Adds the files of a process. What cannot be read of them is in `gaps`.
    pub fn add(&mut self, process: &Process) -> Known<()> {
        let table = self.table(process);
        let open = self.open_files(process, &table);
        let mapped = self.mapped_files(process, &table);
        open.and(mapped)
    }

    /// The table of the process's mount namespace; read once for each.
    fn table(&mut self, process: &Process) -> Rc<Table> {
        let shared = self.shared_memory.clone();
        let read = || Rc::new(Table::read(process, shared));
        match process.link("ns/mnt") {
            Ok(namespace) => self.tables.entry(namespace).or_insert_with(read).clone(),
            Err(_) => read(),
        }
    }

    /// The tmpfs mounts that the processes see, once each: what they hold, and what of it is in files that were found.
    pub fn tmpfs_mounts(&mut self, processes: &[Process]) -> Vec<TmpfsMount> {
        let (mut namespaces, mut devices, mut found) = (HashSet::new(), HashSet::new(), Vec::new());
        for process in processes {
            if !process.link("ns/mnt").is_ok_and(|namespace| namespaces.insert(namespace)) {
                continue;
            }
            let (table, Ok(root)) = (self.table(process), process.reference("root")) else { continue };
            let mut mounts: Vec<&Mounted> = table.tmpfs_mounts();
            mounts.retain(|mounted| !devices.contains(&mounted.device) && table.is_reached_locally(mounted));
            for mounted in mounts {
                if found.len() >= GROUP_TMPFS_MAX || budget::check().is_err() {
                    return found;
                }
                if let Some(used_bytes) = used_bytes(&root, mounted)
                    && devices.insert(mounted.device.clone())
                {
                    let named_bytes = self.named_bytes(&mounted.device);
                    found.push(TmpfsMount { at: mounted.at.clone(), used_bytes, named_bytes });
                }
            }
        }
        found
    }

    fn named_bytes(&self, device: &str) -> Bytes {
        let files =
            self.files.iter().filter(|((on, _), _)| on == device).filter_map(|(_, file)| file.as_ref());
        files.fold(0, |sum, file| sum.saturating_add(file.cached_bytes))
    }

    fn check(&mut self) -> Result<(), Why> {
        self.looked_at += 1;
        if self.looked_at > GROUP_OPEN_FILES_MAX || self.files.len() >= GROUP_FILES_MAX {
            return Err(Why::OverLimit);
        }
        budget::check()
    }

    fn open_files(&mut self, process: &Process, table: &Table) -> Known<()> {
        let lender = Lender::of(process);
        let entries = std::fs::read_dir(process.path("fd")).map_err(|error| gap("/proc/PID/fd", &error))?;
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        for number in numbers {
            self.check().map_err(|why| Gap::new("open files of the cgroup: some are left out", why))?;
            // It may have been closed.
            let Ok((mount, inode)) = fdinfo(process, number) else { continue };
            if Some(mount) == self.socket_mount {
                self.sockets.entry(inode.unwrap_or_default()).or_insert(process.pid);
                continue;
            }
            let Some(place) = table.place_of_mount(mount) else { continue };
            let link = format!("fd/{number}");
            let hint = match place.kind {
                Kind::Local => None,
                Kind::NoPages => continue,
                Kind::Overlay => Some(OVERLAY),
                Kind::Remote => Some(REMOTE),
            };
            if let Some(hint) = hint {
                let key = (place.device, inode.unwrap_or_default());
                if let Entry::Vacant(new) = self.files.entry(key) {
                    new.insert(None);
                    self.fail(Why::NotRead, hint, &path_of(process, &link));
                }
                continue;
            }
            let inode = match inode {
                Some(inode) => inode,
                None => match lent_file::facts(process, &link) {
                    Ok(facts) => facts.inode,
                    Err(_) => continue,
                },
            };
            let key = (place.device, inode);
            if self.files.contains_key(&key) {
                continue;
            }
            let file = self.open_file(process, &lender, number, place.is_shmem);
            self.files.insert(key, file);
        }
        Ok(())
    }

    /// One that was not seen before, on a local file system.
    fn open_file(
        &mut self,
        process: &Process,
        lender: &io::Result<Lender>,
        number: i32,
        is_shmem: bool,
    ) -> Option<GroupFile> {
        let link = format!("fd/{number}");
        let facts = lent_file::facts(process, &link).ok().filter(|facts| facts.is_regular)?;
        let cached = match lender {
            Ok(lender) => lender.lend(number).and_then(|file| lent_file::cached_bytes(&file)),
            Err(error) => Err(io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EPERM))),
        };
        let (cached_bytes, how) = match cached {
            Ok(bytes) => (bytes, "cachestat"),
            Err(_) if is_shmem => (facts.allocated_bytes, "stat"),
            Err(error) => {
                let (why, hint) = why(&error);
                self.fail(why, hint, &path_of(process, &link));
                return None;
            }
        };
        // The name of a file that has no page is of no use.
        let path = if cached_bytes > 0 { path_of(process, &link) } else { String::new() };
        Some(GroupFile { path, cached_bytes, is_shmem, pid: process.pid, how })
    }

    fn mapped_files(&mut self, process: &Process, table: &Table) -> Known<()> {
        let mappings = process.mappings()?;
        let mut unasked: HashMap<Key, bool> = HashMap::new();
        let mut last: Option<&Mapping> = None;
        for mapping in mappings.iter().filter(|mapping| mapping.is_file() && !mapping.is_hugetlb_name()) {
            // A library has four mappings in a row.
            if last.is_some_and(|last| last.is_of_same_file(mapping)) {
                continue;
            }
            last = Some(mapping);
            self.check().map_err(|why| Gap::new("mapped files of the cgroup: some are left out", why))?;
            let key = (mapping.device.clone(), mapping.inode);
            if self.files.get(&key).is_some_and(Option::is_some) {
                continue;
            }
            let place = table.place_of_device(&mapping.device);
            match (place.kind == Kind::Local).then(|| ask_mapped(process, mapping, table)) {
                Some(Ok(cached_bytes)) => {
                    let (path, is_shmem) = (mapping.path.clone(), place.is_shmem);
                    let file = GroupFile { path, cached_bytes, is_shmem, pid: process.pid, how: "cachestat" };
                    self.files.insert(key, Some(file));
                }
                _ => {
                    unasked.insert(key, place.is_shmem);
                }
            }
        }
        if unasked.is_empty() {
            return Ok(());
        }
        self.by_smaps(process, &mappings, &unasked)
    }

    /// What is mapped of files that cannot be asked: a lower bound of what is cached of them.
    fn by_smaps(
        &mut self,
        process: &Process,
        mappings: &[Mapping],
        wanted: &HashMap<Key, bool>,
    ) -> Known<()> {
        let smaps = smaps::read(process)?;
        for mapping in mappings.iter().filter(|mapping| mapping.is_file()) {
            let key = (mapping.device.clone(), mapping.inode);
            let (Some(is_shmem), Some(smap)) = (wanted.get(&key), smaps::find(&smaps, mapping.range.start))
            else {
                continue;
            };
            let bytes = smap.resident_bytes.saturating_sub(smap.anonymous_bytes);
            let file = self.files.entry(key).or_default().get_or_insert_with(|| GroupFile {
                path: mapping.path.clone(),
                is_shmem: *is_shmem,
                pid: process.pid,
                how: "smaps",
                ..GroupFile::default()
            });
            if file.pid == process.pid {
                file.cached_bytes = file.cached_bytes.saturating_add(bytes);
            }
        }
        Ok(())
    }
}

/// Through the kernel's own link to it, which finds deleted files too; needs CAP_CHECKPOINT_RESTORE.
fn ask_mapped(process: &Process, mapping: &Mapping, table: &Table) -> io::Result<Bytes> {
    let link = format!("map_files/{:x}-{:x}", mapping.range.start.0, mapping.range.end.0);
    let reference = process.reference(&link)?;
    // Something else may be mapped there by now.
    let mount = mount_id(reference.as_fd()).and_then(|mount| table.place_of_mount(mount));
    if !mount.is_some_and(|place| place.kind == Kind::Local) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if lent_file::facts_of(&reference)?.inode != mapping.inode {
        return Err(io::ErrorKind::NotFound.into());
    }
    lent_file::cached_bytes(&regular(&reference)?.into())
}

/// Mount and inode; before Linux 5.14 there is no inode.
fn fdinfo(process: &Process, number: i32) -> io::Result<(u64, Option<u64>)> {
    let mut bytes = [0; FDINFO_BYTES];
    let length = process.open_file(&format!("fdinfo/{number}"))?.read(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    let field = |name: &str| host::field(&text, name)?.parse().ok();
    field("mnt_id:").map(|mount| (mount, field("ino:"))).ok_or(io::ErrorKind::NotFound.into())
}

fn path_of(process: &Process, link: &str) -> String {
    process.link(link).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

fn why(error: &io::Error) -> (Why, &'static str) {
    match gap("cachestat", error).why {
        Why::Denied => (Why::Denied, "it takes the right to trace the process: run as root"),
        Why::NotInThisKernel => {
            (Why::NotInThisKernel, "Linux 6.5 has cachestat(2); before, only mapped pages are counted")
        }
        why => (why, "it may have been closed"),
    }
}
