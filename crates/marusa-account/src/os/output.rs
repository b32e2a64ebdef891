//! What a process has printed about itself: its standard output and errors where they go to regular files, and logs that it has
//! open. A terminal, a pipe, or a file that may not be read is left alone: opening those could do something.

use super::foreign;
use super::host;
use super::input_file;
use super::open_files;
use super::process::Process;
use crate::base::limits::OUTPUT_BYTES_MAX;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// A file that was made this long before the process started is an earlier one's too.
const OLDER_BY: Duration = Duration::from_secs(10);

/// The start of the standard output.
pub fn start(process: &Process) -> Option<String> {
    let bytes = foreign::start(foreign::open_link(process, "fd/1").ok()?, OUTPUT_BYTES_MAX).ok()?;
    process.is_same().then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// One file with what a process printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// "standard error (/var/log/app.log)".
    pub name: String,
    /// Its start and, of a large one, its end.
    pub text: String,
    /// Bytes between start and end that were not read.
    pub left_out_bytes: u64,
    /// It was there before the process started: lines may be of an earlier one.
    pub is_older: bool,
}

/// Standard output, standard errors, and the open files whose names fit one of `logs`, in which `*` stands for anything.
pub fn all(process: &Process, logs: &[String]) -> Vec<Said> {
    let mut seen = HashSet::new();
    let mut said = Vec::new();
    let mut take = |number: &str, name: &str| {
        let Ok(file) = foreign::open_link(process, &format!("fd/{number}")) else { return };
        let Ok(facts) = file.metadata() else { return };
        if !seen.insert((facts.dev(), facts.ino())) {
            return;
        }
        let link = process.link(&format!("fd/{number}")).unwrap_or_default();
        let name = format!("{name} ({})", link.display());
        let Ok(mut one) = read(file, name, process) else { return };
        // One that does not append began with an empty file, or writes over what there was.
        one.is_older &= appends(process, number);
        said.push(one);
    };
    take("1", "standard output");
    take("2", "standard error");
    if !logs.is_empty() {
        for number in open_files::numbers(process, logs) {
            take(&number, "log");
        }
    }
    if process.is_same() { said } else { Vec::new() }
}

/// proc(5), /proc/PID/fdinfo: "flags: 0102001", octal.
fn appends(process: &Process, number: &str) -> bool {
    let text = process.text(&format!("fdinfo/{number}")).unwrap_or_default();
    let flags =
        text.lines().find_map(|line| i32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_none_or(|flags| flags & libc::O_APPEND != 0)
}

/// A file that the user names; regular ones only.
pub fn file(path: &Path, process: &Process) -> io::Result<Said> {
    read(input_file::open(path)?, path.display().to_string(), process)
}

fn read(mut file: File, name: String, process: &Process) -> io::Result<Said> {
    let facts = file.metadata()?;
    let mut bytes = Vec::new();
    (&mut file).take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    let end = facts.len().saturating_sub(OUTPUT_BYTES_MAX).max(bytes.len() as u64);
    let left_out_bytes = end - bytes.len() as u64;
    if facts.len() > bytes.len() as u64 {
        bytes.push(b'\n');
        file.seek(SeekFrom::Start(end))?;
        file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    }
    let started = host::started(process.start_ticks);
    let is_older = match (facts.created(), started) {
        (Ok(created), Some(started)) => created.checked_add(OLDER_BY).is_some_and(|at| at < started),
        _ => false,
    };
    Ok(Said { name, text: String::from_utf8_lossy(&bytes).into_owned(), left_out_bytes, is_older })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_fifo_that_takes_the_place_of_a_log_is_not_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let fifo = directory.path().join("fifo");
        let name = std::ffi::CString::new(fifo.as_os_str().as_encoded_bytes()).expect("no NUL");
        // SAFETY: the name is a NUL-terminated string that outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let me = Process::own().expect("myself");
        let held = File::options().read(true).write(true).open(&fifo).expect("a FIFO");
        let link = format!("fd/{}", held.as_raw_fd());
        assert!(
            foreign::open_link(&me, &link).is_err() && file(&fifo, &me).is_err(),
            "at once, without a writer"
        );
    }

    #[test]
    fn a_long_log_keeps_its_start_and_its_end() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        let path = std::env::temp_dir().join(format!("marusa-output-{}", std::process::id()));
        let mut log = File::create(&path).expect("a file");
        let filler = vec![b'x'; 3 * OUTPUT_BYTES_MAX as usize];
        log.write_all(b"first\n").and_then(|()| log.write_all(&filler)).expect("written");
        log.write_all(b"\nlast\n").expect("written");
        let said = file(&path, &me).expect("read");
        assert!(said.text.starts_with("first\n") && said.text.ends_with("\nlast\n"));
        assert_eq!(said.left_out_bytes, OUTPUT_BYTES_MAX + 12);
        assert!(!said.is_older, "it was made just now");
        std::fs::write(&path, "short").expect("written");
        let short = file(&path, &me).expect("read");
        assert_eq!((short.text.as_str(), short.left_out_bytes), ("short", 0));
        std::fs::remove_file(&path).expect("ours");
        assert!(file(Path::new("/dev/null"), &me).is_err(), "no regular file");
    }
}
