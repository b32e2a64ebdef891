//! Where a comparison is kept: `compare.json` says what it is, `trials.jsonl` gets a line after each trial, on the disk before the
//! next one starts. A line that a crash or a full disk cut is dropped when it is read again; nothing before it is lost.

use crate::act::file_lock;
use crate::base::limits::{SAVED_BYTES_MAX, SAVED_HEAD_BYTES_MAX};
use crate::base::printable::escaped_lines;
use crate::base::refuse;
use crate::cmd::Failure;
use crate::experiment::resume::{self, Head};
use crate::experiment::trial_record::{SCHEMA, Trial};
use crate::os::output_file::OutputFile;
use crate::os::place::Place;
use crate::os::{file_mode, input_file};
use anyhow::anyhow;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const HEAD: &str = "compare.json";
const TRIALS: &str = "trials.jsonl";
const OUTPUT: &str = "output";

/// What a file says first: its other keys are not looked at.
#[derive(serde::Deserialize)]
struct Format {
    #[serde(default)]
    schema: String,
}

pub struct Store {
    pub directory: PathBuf,
    file: File,
    bytes: u64,
    /// Made by us for this session, and not asked for.
    pub is_temporary: bool,
}

impl Store {
    /// A new comparison; in a directory of its own where the user names none.
    pub fn create(directory: Option<&Path>, head: &Head) -> anyhow::Result<Store> {
        let is_temporary = directory.is_none();
        let directory = match directory {
            Some(directory) => absolute(directory)?,
            None => std::env::temp_dir().join(format!(
                "marusa-compare-{}-{:08x}",
                std::process::id(),
                fastrand::u32(..)
            )),
        };
        // One in /tmp is made by us, or another user could have put links into it.
        let own = if is_temporary { DirBuilder::new().mode(0o700).create(&directory) } else { Ok(()) };
        // The JVM writes its own log there, with a mode of its own.
        let output = directory.join(OUTPUT);
        let made =
            own.and_then(|()| fs::create_dir_all(&output)).and_then(|()| file_mode::fit_directory(&output));
        made.map_err(|error| unwritten(&directory, &error))?;
        if fs::metadata(directory.join(TRIALS)).is_ok_and(|facts| facts.len() > 0) {
            refuse!(
                "--save {}: a comparison is there already; go on with it by --resume, or take another directory",
                directory.display()
            );
        }
        write_head(&directory, head).map_err(|error| unwritten(&directory, &error))?;
        Store::open(directory, is_temporary)
    }

    /// One that was begun, with what it is and its trials.
    pub fn resume(directory: &Path) -> anyhow::Result<(Store, Head, Vec<Trial>)> {
        let directory = absolute(directory)?;
        let no = |why: String| Failure::usage(format!("--resume: {}: {why}", directory.display()));
        let head = input_file::read(directory.join(HEAD), SAVED_HEAD_BYTES_MAX)
            .map_err(|error| no(format!("no comparison is there: {error}")))?;
        let damaged = |error: serde_json::Error| no(format!("{HEAD} is damaged: {error}"));
        let Format { schema } = serde_json::from_slice(&head).map_err(damaged)?;
        if schema != resume::SCHEMA {
            return Err(no(format!("{HEAD} has the format {schema:?}, not {}", resume::SCHEMA)));
        }
        let head: Head = serde_json::from_slice(&head).map_err(damaged)?;
        let mut store = Store::open(directory.clone(), false)?;
        let (trials, whole) = match input_file::read(directory.join(TRIALS), SAVED_BYTES_MAX) {
            Ok(bytes) => parse(&bytes).map_err(|error| no(error.to_string()))?,
            Err(error) => return Err(no(format!("cannot read {TRIALS}: {error}"))),
        };
        store.file.set_len(whole).map_err(|error| unwritten(&directory, &error))?;
        store.bytes = whole;
        Ok((store, head, trials))
    }

    fn open(directory: PathBuf, is_temporary: bool) -> anyhow::Result<Store> {
        let path = directory.join(TRIALS);
        let opened = Place::of(&path).and_then(|place| place.open_log(file_mode::wanted()));
        let file = opened.map_err(|error| unwritten(&directory, &error))?;
        if !file_lock::try_lock(&file).map_err(|error| unwritten(&directory, &error))? {
            let directory = directory.display();
            refuse!("--save {directory}: another marusa works on this comparison now");
        }
        let bytes = file.metadata().map_or(0, |facts| facts.len());
        Ok(Store { directory, file, bytes, is_temporary })
    }

    /// On the disk when it returns. What is written in part is undone.
    pub fn append(&mut self, trial: &Trial) -> io::Result<()> {
        let line = serde_json::to_string(trial)? + "\n";
        let line = escaped_lines(&line);
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if written.is_err() {
            // Cutting a file needs no room.
            let _ = self.file.set_len(self.bytes).and_then(|()| self.file.seek(SeekFrom::End(0)));
        } else {
            self.bytes += line.len() as u64;
        }
        written
    }

    /// For what a trial prints: "output/0007-thp.out" and its place.
    pub fn output(&self, number: usize, arm: &str, kind: &str) -> PathBuf {
        self.directory.join(OUTPUT).join(format!("{number:04}-{arm}.{kind}"))
    }

    /// After a failure that ends it: finished runs are kept, and their place is reported; without any, nothing stays.
    pub fn abandoned(self, error: anyhow::Error) -> anyhow::Error {
        match self.bytes {
            0 => {
                self.remove();
                error
            }
            _ if self.is_temporary => {
                crate::say!("marusa: the runs before that are kept in {}", self.directory.display());
                error
            }
            _ => error,
        }
    }

    /// Nothing is left of a comparison that the user did not ask to keep.
    pub fn remove(self) {
        if self.is_temporary {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

fn absolute(directory: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(directory)
        .map_err(|error| Failure::usage(format!("{}: {error}", directory.display())))
}

pub fn unwritten(directory: &Path, error: &io::Error) -> anyhow::Error {
    let message =
        format!("{} cannot be written: {error}; --save names another directory", directory.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::rights(message),
        _ => Failure::target(message),
    }
}

fn write_head(directory: &Path, head: &Head) -> io::Result<()> {
    let mut file = OutputFile::replace(&directory.join(HEAD), file_mode::wanted())?;
    file.write_all(escaped_lines(&serde_json::to_string_pretty(&head.shown())?).as_bytes())?;
    file.sync()?;
    file.finish()?;
    File::open(directory)?.sync_all()
}

/// The trials, and how many bytes they take; a last line without its end is left out.
fn parse(bytes: &[u8]) -> anyhow::Result<(Vec<Trial>, u64)> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut trials = Vec::new();
    for (index, line) in bytes[..whole].split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let damaged = |why: String| anyhow!("line {} of {TRIALS} is damaged: {why}", index + 1);
        let trial: Trial = serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
        if trial.schema != SCHEMA {
            return Err(damaged(format!("its format is {}, not {SCHEMA}", trial.schema)));
        }
        trials.push(trial);
    }
    Ok((trials, whole as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_is_dropped_and_one_that_is_wrong_is_reported() {
        let line = r#"{"schema":"marusa/compare-trial/1","number":1,"block":1,"arm":"a","started":"","left_out":null,
            "figures":{"wall_seconds":1.5},"own":[],"ended":null,"heap_pages":null,"account_end":null,"account_peak":null,
            "output":null,"notes":[],"gaps":[]}"#
            .replace('\n', "")
            + "\n";
        let cut = format!("{line}{}", &line[..40]);
        let (trials, whole) = parse(cut.as_bytes()).expect("one whole line");
        assert_eq!((trials.len(), whole), (1, line.len() as u64));
        assert_eq!(trials[0].figure("wall_seconds"), Some(1.5));
        assert!(parse(b"{}\n").is_err());
        assert!(
            parse(line.replace("trial/1", "trial/9").as_bytes())
                .expect_err("another")
                .to_string()
                .contains("trial/9")
        );
        assert_eq!(parse(b"").expect("nothing"), (Vec::new(), 0));
    }
}
