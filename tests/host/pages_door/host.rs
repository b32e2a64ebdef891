//! The host for the length of a test: one test at a time has it, also among the binaries that run on this machine (a lock
//! file). What it was is kept byte for byte, compared, and restored whatever happens.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub const POOL: &str = "/proc/sys/vm/nr_hugepages";
pub const SIZE_POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
pub const OVERCOMMIT: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
pub const SHMEM: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
pub const SIXTY_FOUR: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
pub const SCAN: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan";
pub const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";

/// Directories whose files are compared, and those of them that a program changes by itself.
const DIRECTORIES: [&str; 7] = [
    "/run/marusa",
    "/sys/kernel/mm/hugepages",
    "/sys/kernel/mm/transparent_hugepage",
    "/etc/sysctl.d",
    "/etc/security/limits.d",
    "/etc/tmpfiles.d",
    "/etc/systemd/system",
];
const COUNTERS: [&str; 8] = [
    "/stats/",
    "pages_collapsed",
    "full_scans",
    "free_hugepages",
    "resv_hugepages",
    "surplus_hugepages",
    "demote",
    "mempolicy",
];
const PROC: [&str; 6] = [
    POOL,
    "/proc/sys/vm/nr_overcommit_hugepages",
    "/proc/sys/vm/hugetlb_shm_group",
    "/proc/sys/kernel/shmmax",
    "/proc/sys/vm/max_map_count",
    RESERVE,
];

pub type Look = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Each file with its mode and bytes; a directory has none.
pub fn look() -> Look {
    let mut all = Look::new();
    PROC.iter().for_each(|file| drop(all.insert(file.into(), (0, fs::read(file).expect("a file of /proc")))));
    for directory in DIRECTORIES.iter().map(Path::new).filter(|directory| directory.is_dir()) {
        all.insert(directory.into(), (0, Vec::new()));
        below(directory, &mut all);
    }
    all
}

fn below(directory: &Path, all: &mut Look) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, meta) = (entry.path(), entry.metadata().expect("there"));
        if COUNTERS.iter().any(|name| path.to_string_lossy().contains(name)) {
            continue;
        }
        let bytes = if meta.is_file() { bytes(&path) } else { Vec::new() };
        all.insert(path.clone(), (meta.permissions().mode(), bytes));
        if meta.is_dir() {
            below(&path, all);
        }
    }
}

/// The size of a pool below /sys without the pages that programs hold beyond it, as any JVM of this host may: /proc/sys has that
/// figure itself.
fn bytes(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap_or_default();
    let surplus = path.with_file_name("surplus_hugepages");
    let lent = fs::read_to_string(surplus).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match lent.filter(|lent| *lent > 0 && path.ends_with("nr_hugepages")) {
        Some(lent) => format!("{}\n", number(path).saturating_sub(lent)).into_bytes(),
        None => bytes,
    }
}

/// The lines in which two samples differ.
pub fn differences(before: &Look, now: &Look) -> Vec<String> {
    let text = |one: Option<&(u32, Vec<u8>)>| {
        one.map(|(mode, bytes)| (*mode, String::from_utf8_lossy(bytes).into_owned()))
    };
    let mut paths: Vec<&PathBuf> = before.keys().chain(now.keys()).collect();
    paths.sort();
    paths.dedup();
    let differs = paths.into_iter().filter(|path| before.get(*path) != now.get(*path));
    differs
        .map(|path| {
            format!("{}: {:?} is now {:?}", path.display(), text(before.get(path)), text(now.get(path)))
        })
        .collect()
}

/// The lock, and what was there when it was taken.
pub struct Host {
    was: Look,
    _lock: File,
}

impl Host {
    pub fn lock() -> Host {
        let path = std::env::temp_dir().join("marusa-host.lock");
        let lock = File::options().create(true).truncate(false).write(true).open(path).expect("a lock file");
        // SAFETY: the file is open; the lock ends with it.
        assert_eq!(unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) }, 0);
        Host { was: look(), _lock: lock }
    }
}

pub fn number(file: impl AsRef<Path>) -> u64 {
    fs::read_to_string(file).expect("a file").trim().parse().expect("a number")
}

pub fn set(file: &str, text: &str) {
    fs::write(file, text).unwrap_or_else(|error| panic!("{file}: {error}"));
}

impl Drop for Host {
    fn drop(&mut self) {
        for at in mounts() {
            let _ = std::process::Command::new("umount").arg("-l").arg(at).status();
        }
        let now = look();
        for (path, (_, bytes)) in &self.was {
            if now.get(path).is_some_and(|(_, now)| now != bytes) {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let word =
                    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
                if let Err(error) = fs::write(path, word.unwrap_or(text.trim())) {
                    eprintln!("{} could not be restored: {error}", path.display());
                }
            }
        }
        for path in now.keys().rev().filter(|path| !self.was.contains_key(*path)) {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
    }
}

/// Where something of ours is mounted.
pub fn mounts() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/mounts").expect("mounts");
    let ours = text.lines().filter(|line| line.starts_with("marusa:"));
    ours.filter_map(|line| Some(line.split(' ').nth(1)?.to_string())).collect()
}
