//! Limits of a process other than memory, and how near it is to them: open files and threads (`/proc/PID/limits`), tasks of its
//! cgroups (`pids.max`), and of the whole host.
//!
//! getrlimit(2), RLIMIT_NOFILE and RLIMIT_NPROC; Documentation/admin-guide/cgroup-v1/pids.rst and cgroup-v2.rst, "PID";
//! kernel/fork.c, `copy_process`: a thread is refused where any of them is reached.

use super::cgroup::directories;
use super::host::{field, number, text};
use super::process::{Process, gap};
use crate::base::limits::OPEN_FILES_MAX;
use crate::base::{Gap, Known, Why};
use std::path::Path;

/// One limit, and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// "open files", "threads of the cgroup".
    pub what: &'static str,
    pub used: u64,
    pub limit: u64,
    /// The file that says so.
    pub source: String,
}

impl Ceiling {
    pub fn percent(&self) -> f64 {
        if self.limit == 0 { 100.0 } else { self.used as f64 * 100.0 / self.limit as f64 }
    }
}

/// Open files against RLIMIT_NOFILE.
pub fn files(process: &Process) -> Known<Ceiling> {
    let limit = limit(process, "Max open files")?;
    let entries = std::fs::read_dir(process.path("fd")).map_err(|error| gap("/proc/PID/fd", &error))?;
    let used = entries.take(OPEN_FILES_MAX).count() as u64;
    Ok(Ceiling { what: "open files", used, limit, source: "/proc/PID/limits: Max open files".to_string() })
}

/// Every limit of threads that applies to the process, which has `threads` of them.
pub fn threads(process: &Process, threads: u64, uid: u32) -> Vec<Ceiling> {
    let mut found: Vec<Ceiling> = groups(process);
    // RLIMIT_NPROC counts all threads of the user; those of this process alone are a lower bound. Root is not held to it.
    if let (Ok(limit), true) = (limit(process, "Max processes"), uid != 0) {
        let source = "/proc/PID/limits: Max processes".to_string();
        found.push(Ceiling { what: "threads of the user, at least", used: threads, limit, source });
    }
    found.extend(host());
    found
}

/// A soft limit; u64::MAX for "unlimited".
fn limit(process: &Process, name: &str) -> Known<u64> {
    let text = process.text("limits").map_err(|error| gap("/proc/PID/limits", &error))?;
    parse(&text, name).ok_or_else(|| Gap::new(format!("limit '{name}'"), Why::NotInThisKernel))
}

/// "Max open files            20000                20000                files".
fn parse(text: &str, name: &str) -> Option<u64> {
    match field(text, name)?.split_ascii_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// The pids controller of the process's group and of those above it.
fn groups(process: &Process) -> Vec<Ceiling> {
    let text = process.text("cgroup").unwrap_or_default();
    let directories = text.lines().flat_map(|line| directories(line, "pids"));
    directories.filter_map(|directory| in_directory(&directory)).collect()
}

fn in_directory(directory: &Path) -> Option<Ceiling> {
    let limit = number(directory.join("pids.max"))?;
    let source = directory.join("pids.max").to_string_lossy().into_owned();
    Some(Ceiling {
        what: "threads of the cgroup",
        used: number(directory.join("pids.current"))?,
        limit,
        source,
    })
}

/// Threads of the whole host against the smaller of both of its limits.
fn host() -> Option<Ceiling> {
    let limits = ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"];
    let (source, limit) =
        limits.iter().filter_map(|path| Some((*path, number(path)?))).min_by_key(|(_, limit)| *limit)?;
    let used = all_threads(&text("/proc/loadavg").ok()?)?;
    Some(Ceiling { what: "threads of the host", used, limit, source: source.to_string() })
}

/// "1.02 0.70 0.50 2/345 6789": 345.
fn all_threads(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_files_of_the_kernel() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max processes             unlimited            unlimited            processes\n\
                    Max open files            20000                50000                files\n";
        assert_eq!(
            (parse(text, "Max open files"), parse(text, "Max processes")),
            (Some(20_000), Some(u64::MAX))
        );
        assert_eq!(parse(text, "Max sorrow"), None);
        assert_eq!(all_threads("1.02 0.70 0.50 2/345 6789\n"), Some(345));
        assert_eq!(directories("8:pids:/a/b", "pids")[1], Path::new("/sys/fs/cgroup/pids/a"));
        assert_eq!(directories("4:memory:/a", "pids"), [] as [PathBuf; 0]);
        let ceiling = Ceiling { what: "x", used: 3, limit: 0, source: String::new() };
        assert_eq!((ceiling.percent(), Ceiling { limit: 4, ..ceiling }.percent()), (100.0, 75.0));
    }

    #[test]
    fn this_process_is_far_from_its_limits() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        let files = files(&me).expect("my own files");
        assert!(files.used > 2 && files.used < files.limit);
        assert!(threads(&me, 8, 1000).iter().any(|ceiling| ceiling.what == "threads of the host"));
    }
}
