//! Files that a process has open, by the last part of their names: a log, the jar of its program. They are opened through the
//! kernel's own links, and only where they are regular files.

use super::foreign;
use super::process::Process;
use crate::base::limits::OPEN_FILES_MAX;

/// The numbers of the open files whose last names fit one of `patterns`, in which `*` stands for anything.
pub fn numbers<'a>(process: &Process, patterns: &'a [String]) -> impl Iterator<Item = String> + 'a {
    let entries = std::fs::read_dir(process.path("fd")).into_iter().flatten().flatten().take(OPEN_FILES_MAX);
    let fitting = entries.filter(|entry| {
        let Ok(link) = std::fs::read_link(entry.path()) else { return false };
        let name = link.file_name().unwrap_or_default().to_string_lossy();
        patterns.iter().any(|pattern| fits(&name, pattern.rsplit('/').next().unwrap_or(pattern)))
    });
    fitting.filter_map(|entry| entry.file_name().into_string().ok())
}

/// At most `bytes_max` bytes from the start of the first open file of this name.
pub fn start(process: &Process, name: &str, bytes_max: u64) -> Option<Vec<u8>> {
    let number = numbers(process, &[name.to_string()]).next()?;
    let file = foreign::open_link(process, &format!("fd/{number}")).ok()?;
    let bytes = foreign::start(file, bytes_max).ok()?;
    process.is_same().then_some(bytes)
}

/// Whether a name fits a pattern with `*`.
fn fits(name: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_logs_with_what_varies() {
        assert!(fits("gc.log", "gc.log") && fits("gc-7.log", "gc-*.log") && fits("gc-7-x.log", "gc-*-*.log"));
        assert!(!fits("gc.log.0", "gc.log") && !fits("gc-7.txt", "gc-*.log") && !fits("g", "gc*"));
        assert!(fits("anything", "*") && !fits("gc", ""));
    }

    #[test]
    fn the_start_of_an_open_file_and_of_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("orders-of-this-test.jar");
        std::fs::write(&path, "PK and the rest").expect("written");
        let me = Process::own().expect("myself");
        assert_eq!(start(&me, "orders-of-this-test.jar", 2), None, "not open");
        let held = std::fs::File::open(&path).expect("open");
        assert_eq!(start(&me, "/app/orders-of-this-test.jar", 2).as_deref(), Some(&b"PK"[..]));
        drop(held);
    }
}
