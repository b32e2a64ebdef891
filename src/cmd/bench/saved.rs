//! The file of `--save`, whatever the experiment: the settings in its first line, then a line a trial, written as each ends. Given
//! again, the trials in it are not made again.

use crate::base::limits::SAVED_BYTES_MAX;
use crate::base::printable::escaped_lines;
use crate::cmd::Failure;
use crate::os::file_mode;
use crate::os::input_file;
use crate::os::place::Place;
use anyhow::{Context, anyhow, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The settings of an experiment, and its machine. Trials of other settings, or of another machine, are not trials of this one.
pub trait Settings: Serialize + DeserializeOwned + PartialEq + Clone {
    /// That of the file counts, so that the order is the same; an experiment without chance has none.
    fn take_seed(&mut self, _of: &Self) {}

    /// Whether trials of `was` are trials of these.
    fn goes_on(&self, was: &Self) -> bool {
        self == was
    }
}

/// The first line.
#[derive(Deserialize, Serialize)]
struct Head<S> {
    schema: String,
    settings: S,
}

pub struct Saved<T> {
    /// `None`: nothing is kept.
    to: Option<(File, PathBuf)>,
    before: Vec<T>,
}

impl<T> Saved<T> {
    /// `schema`: "marusa/bench-gc-trials/1".
    pub fn open<S: Settings>(path: Option<&Path>, schema: &str, settings: &mut S) -> anyhow::Result<Saved<T>>
    where
        T: DeserializeOwned,
    {
        let Some(path) = path else { return Ok(Saved { to: None, before: Vec::new() }) };
        let failed = |why: String| Failure::usage(format!("--save {}: {why}", path.display()));
        let opened = Place::of(path).and_then(|place| place.open_log(file_mode::wanted()));
        let mut file = opened.map_err(|error| failed(error.to_string()))?;
        let read = input_file::read_all(&mut file, SAVED_BYTES_MAX);
        let text = read.and_then(input_file::as_text).map_err(|error| failed(error.to_string()))?;
        // A last line without its end was cut by a crash: it is cut off, or the next would be written behind it.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole == 0 && !text.is_empty() && !text.starts_with("{\"schema\":\"marusa/") {
            return Err(failed("it is a file of something else; give another".to_string()));
        }
        file.set_len(whole as u64).map_err(|error| failed(error.to_string()))?;
        let mut saved = Saved { to: Some((file, path.to_path_buf())), before: Vec::new() };
        if whole == 0 {
            saved.line(&serde_json::to_string(&Head { schema: schema.to_string(), settings })?)?;
            return Ok(saved);
        }
        saved.before = parsed(&text[..whole], schema, settings)
            .map_err(|why| failed(format!("{why}; give another file")))?;
        Ok(saved)
    }

    /// What was there when it was opened.
    pub fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.before)
    }

    pub fn add(&mut self, trial: &T) -> anyhow::Result<()>
    where
        T: Serialize,
    {
        self.line(&serde_json::to_string(trial)?)
    }

    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        let Some((file, path)) = &mut self.to else { return Ok(()) };
        let written =
            file.write_all(format!("{}\n", escaped_lines(line)).as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|error| {
            Failure::usage(format!(
                "--save {}: {error}; the trials before this one are kept: give the same file again to go on",
                path.display()
            ))
        })
    }
}

fn parsed<S: Settings, T: DeserializeOwned>(
    text: &str,
    schema: &str,
    settings: &mut S,
) -> anyhow::Result<Vec<T>> {
    let mut lines = text.lines();
    let head: Option<Head<Value>> = lines.next().and_then(|line| serde_json::from_str(line).ok());
    let head = head.filter(|head| head.schema == schema).with_context(|| format!("it holds no {schema}"))?;
    let was: Option<S> = serde_json::from_value(head.settings).ok();
    let was = was.context("its settings are of another release")?;
    settings.take_seed(&was);
    if !settings.goes_on(&was) {
        bail!("its trials were made with other settings, on another machine or by another JDK");
    }
    let trial = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| anyhow!("line {} is not a trial: {error}", at + 2))
    };
    lines.enumerate().map(trial).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
    struct Of {
        rounds: usize,
        seed: u64,
    }

    impl Settings for Of {
        fn take_seed(&mut self, of: &Of) {
            self.seed = of.seed;
        }
    }

    const SCHEMA: &str = "marusa/made-up/1";

    fn open(path: &Path, settings: &mut Of) -> anyhow::Result<Saved<Vec<u32>>> {
        Saved::open(Some(path), SCHEMA, settings)
    }

    #[test]
    fn trials_are_taken_over_and_a_line_that_was_cut_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("trials");
        let mut first = Of { rounds: 3, seed: 1 };
        let mut saved = open(&path, &mut first).expect("a new file");
        saved.add(&vec![1, 2]).expect("written");
        saved.add(&vec![3]).expect("written");
        drop(saved);
        let mut cut = File::options().append(true).open(&path).expect("the file");
        cut.write_all(b"[4,").expect("written");
        let mut again = Of { rounds: 3, seed: 2 };
        let mut saved = open(&path, &mut again).expect("the same settings");
        assert_eq!((saved.take(), again.seed), (vec![vec![1, 2], vec![3]], 1));
        saved.add(&vec![5]).expect("written");
        drop(saved);
        assert_eq!(open(&path, &mut again).expect("whole lines").take(), [vec![1, 2], vec![3], vec![5]]);
        let other = open(&path, &mut Of { rounds: 4, seed: 1 }).err().expect("refused").to_string();
        assert!(other.contains("other settings"), "{other}");
    }

    #[test]
    fn a_file_of_something_else_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notes");
        for text in ["my notes", "my notes\nof today\n"] {
            std::fs::write(&path, text).expect("a file");
            assert!(open(&path, &mut Of { rounds: 1, seed: 1 }).is_err());
            assert_eq!(std::fs::read_to_string(&path).expect("the file"), text);
        }
    }
}
