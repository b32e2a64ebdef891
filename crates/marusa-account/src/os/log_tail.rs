//! The lines that a program writes to a file from now on: its own log, which may say how fast it is. The program may put a
//! FIFO or a device in its place at any time, so only a regular file is opened.

use super::input_file;
use crate::base::{Gap, Known};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes that one sample reads; what is before them is passed over.
const BYTES_MAX: u64 = 16 << 20;

/// A file that grows. One that is cut to nothing or put aside by a rotation is read on from the start of the new one.
pub struct LogTail {
    path: PathBuf,
    file: File,
    inode: u64,
    at: u64,
    /// A line that is not complete yet.
    rest: Vec<u8>,
}

impl LogTail {
    /// From the end of what is there.
    pub fn open(path: &Path) -> Known<LogTail> {
        let open = || -> io::Result<LogTail> {
            let file = input_file::open(path)?;
            let facts = file.metadata()?;
            Ok(LogTail { path: path.into(), file, inode: facts.ino(), at: facts.len(), rest: Vec::new() })
        };
        open().map_err(|error| gap(path, &error))
    }

    /// The complete lines since the last sample.
    pub fn lines(&mut self) -> Known<Vec<String>> {
        self.more().map_err(|error| gap(&self.path, &error))?;
        let end = memchr::memrchr(b'\n', &self.rest).map_or(0, |at| at + 1);
        let whole: Vec<u8> = self.rest.drain(..end).collect();
        Ok(String::from_utf8_lossy(&whole).lines().map(str::to_string).collect())
    }

    fn more(&mut self) -> io::Result<()> {
        self.take()?;
        let Ok(now) = std::fs::metadata(&self.path) else { return Ok(()) };
        if now.ino() != self.inode {
            (self.file, self.inode, self.at) = (input_file::open(&self.path)?, now.ino(), 0);
            self.rest.clear();
            self.take()?;
        }
        Ok(())
    }

    fn take(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length < self.at {
            self.at = 0;
            self.rest.clear();
        }
        if length - self.at > BYTES_MAX {
            self.at = length - BYTES_MAX;
            self.rest.clear();
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        self.at += (&self.file).take(length - self.at).read_to_end(&mut self.rest)? as u64;
        if self.rest.len() as u64 > 2 * BYTES_MAX {
            self.rest.clear();
        }
        Ok(())
    }
}

fn gap(path: &Path, error: &io::Error) -> Gap {
    super::process::gap(&path.display().to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_whole_lines_that_are_new_also_after_a_rotation() {
        let path = std::env::temp_dir().join(format!("marusa-log-{}", std::process::id()));
        let mut file = File::create(&path).expect("created");
        writeln!(file, "old").expect("written");
        let mut tail = LogTail::open(&path).expect("there");
        write!(file, "a\nb\nc").expect("written");
        assert_eq!(tail.lines().expect("read"), ["a", "b"]);
        writeln!(file, "d").expect("written");
        assert_eq!(tail.lines().expect("read"), ["cd"]);
        assert!(tail.lines().expect("read").is_empty());
        file.set_len(0).expect("cut");
        drop(file);
        let mut file = File::options().append(true).open(&path).expect("there");
        writeln!(file, "e").expect("written");
        assert_eq!(tail.lines().expect("read"), ["e"]);
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, "f\n").expect("written");
        assert_eq!(tail.lines().expect("read"), ["f"]);
        std::fs::remove_file(&path).expect("removed");
        assert!(LogTail::open(&path).is_err());
    }
}
