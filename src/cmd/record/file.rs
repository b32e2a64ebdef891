//! Reads a recording: FILE, and where it is a ring, the files before it.

use crate::base::limits::RECORDING_BYTES_MAX;
use crate::base::rfc3339;
use crate::cmd::Failure;
use crate::os::process::Process;
use crate::os::{budget, input_file};
use crate::record::reader::Reader;
use crate::record::{Recording, frame};
use crate::show::units::human;
use crate::snapshot::resolve;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Digits behind the name of a file of a ring.
const DIGITS: usize = 6;

/// "FILE.000007".
pub fn numbered(path: &Path, number: u64) -> PathBuf {
    with_ending(path, &format!("{number:0DIGITS$}"))
}

/// The path at which the next file of a ring is written.
pub fn next_of_ring(path: &Path) -> PathBuf {
    with_ending(path, "new")
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// The files of a ring before FILE, in their order.
pub fn older(path: &Path) -> Vec<(u64, PathBuf)> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let directory =
        path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let number = |entry: &fs::DirEntry| {
        let entry = entry.file_name();
        let digits = entry.to_str()?.strip_prefix(name)?.strip_prefix('.')?;
        let is_number = digits.len() >= DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|_| is_number)
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut older: Vec<(u64, PathBuf)> =
        entries.filter_map(|entry| Some((number(&entry)?, entry.path()))).collect();
    older.sort();
    older
}

/// The process that the user names where a recording is expected.
fn running(path: &Path) -> Option<i32> {
    let named = path.to_str()?;
    named.parse().ok().filter(|pid| Process::open(*pid).is_ok()).or_else(|| resolve::resolve(named).ok())
}

/// The name for a recording that was given none: of one process, or of all.
pub fn named(pid: Option<i32>) -> PathBuf {
    let whom = pid.map_or("all".to_string(), |pid| pid.to_string());
    let digits = rfc3339(SystemTime::now()).replace(['-', ':'], "");
    PathBuf::from(format!("marusa-{whom}-{digits}.marusa"))
}

/// Whether a file begins as a recording does.
pub fn is_one(path: &Path) -> bool {
    let start = input_file::start(path, frame::MAGIC.len() as u64);
    start.is_ok_and(|start| frame::begins_like_one(&start))
}

/// All of it; a torn end is reported.
pub fn load(path: &Path) -> anyhow::Result<Recording> {
    budget::within(budget::limits(), || load_within(path))
}

fn load_within(path: &Path) -> anyhow::Result<Recording> {
    let newest = match path.exists() {
        true => path.to_path_buf(),
        // A recorder was killed in the moment in which the next file takes its place.
        false if next_of_ring(path).exists() => next_of_ring(path),
        false => path.to_path_buf(),
    };
    let facts = fs::metadata(&newest).map_err(|error| match running(path) {
        Some(pid) => Failure::target(format!(
            "cannot read {}: it is a running process, not a recording; record it first: marusa record {pid}",
            path.display()
        )),
        None => Failure::unreadable(path, error),
    })?;
    let mut paths: Vec<PathBuf> = older(path).into_iter().map(|(_, path)| path).collect();
    // In that moment a file has two names.
    paths.retain(|path| {
        fs::metadata(path).is_ok_and(|other| (other.dev(), other.ino()) != (facts.dev(), facts.ino()))
    });
    paths.push(newest);
    let (mut reader, mut left) = (Reader::default(), RECORDING_BYTES_MAX);
    for path in &paths {
        let bytes = input_file::read(path, left).map_err(|error| Failure::unreadable(path, error))?;
        left -= bytes.len() as u64;
        reader.file(&bytes).map_err(|error| Failure::unreadable(path, error))?;
    }
    let recording = reader.finish().map_err(|error| Failure::unreadable(path, error))?;
    for torn in &recording.torn {
        let dropped = human(torn.dropped_bytes);
        crate::say!("marusa: {}: {}: its last {dropped} are left out", path.display(), torn.why);
    }
    Ok(recording)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_without_a_name_gets_that_of_its_process_and_time() {
        let one = named(Some(4711)).display().to_string();
        assert!(one.starts_with("marusa-4711-2") && one.ends_with("Z.marusa"), "{one}");
        assert!(!one.contains(':'), "{one}: a colon separates hosts from paths in scp");
        assert!(named(None).display().to_string().starts_with("marusa-all-2"));
    }

    #[test]
    fn the_files_of_a_ring_are_known_by_their_names() {
        let directory = std::env::temp_dir().join(format!("marusa-ring-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("a.marusa");
        for name in [
            "a.marusa",
            "a.marusa.000010",
            "a.marusa.000009",
            "a.marusa.1234567",
            "a.marusa.new",
            "a.marusa.00x009",
            "b.000001",
        ] {
            fs::write(directory.join(name), b"").expect("ours");
        }
        let numbers: Vec<u64> = older(&path).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [9, 10, 1_234_567]);
        assert_eq!(numbered(&path, 9), directory.join("a.marusa.000009"));
        fs::remove_dir_all(&directory).expect("ours");
    }
}
