//! The file of `--save`: the settings in its first line, then a line a trial, written as each ends. Given again, the trials in it
//! are not made again.

use crate::base::limits::SAVED_BYTES_MAX;
use crate::base::printable::escaped_lines;
use crate::cmd::Failure;
use crate::experiment::bench::fork::{Settings, Trial};
use crate::os::file_mode;
use crate::os::input_file;
use crate::os::place::Place;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "marusa/bench-fork-trials/1";

#[derive(Serialize, Deserialize)]
struct Head {
    schema: String,
    settings: Settings,
}

pub struct Save {
    file: File,
    path: PathBuf,
    trials: Vec<Trial>,
}

impl Save {
    /// Takes over what is there; the seed of the file counts, so that the order is the same.
    pub fn open(path: &Path, settings: &mut Settings) -> anyhow::Result<Save> {
        let failed = |error: std::io::Error| Failure::usage(format!("--save {}: {error}", path.display()));
        let mut file =
            Place::of(path).and_then(|place| place.open_log(file_mode::wanted())).map_err(failed)?;
        let read = input_file::read_all(&mut file, SAVED_BYTES_MAX);
        let text = read.and_then(input_file::as_text).map_err(failed)?;
        let mut save = Save { file, path: path.to_path_buf(), trials: Vec::new() };
        if text.is_empty() {
            let head = Head { schema: SCHEMA.to_string(), settings: settings.clone() };
            save.line(&serde_json::to_string(&head)?)?;
            return Ok(save);
        }
        // A last line without its end was cut by a crash: it is cut off, or the next would be written behind it.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let (head, trials) = parsed(&text[..whole])
            .map_err(|why| Failure::usage(format!("--save {}: {why}; give another file", path.display())))?;
        if !head.settings.goes_on(settings) {
            return Err(Failure::usage(format!(
                "--save {}: its trials were made with other settings, on another machine or by another JDK; give another file",
                path.display()
            )));
        }
        save.file.set_len(whole as u64).map_err(failed)?;
        settings.seed = head.settings.seed;
        save.trials = trials;
        Ok(save)
    }

    /// What was there when it was opened.
    pub fn take(&mut self) -> Vec<Trial> {
        std::mem::take(&mut self.trials)
    }

    pub fn add(&mut self, trial: &Trial) -> anyhow::Result<()> {
        self.line(&serde_json::to_string(trial)?)
    }

    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        let written = self
            .file
            .write_all(format!("{}\n", escaped_lines(line)).as_bytes())
            .and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            Failure::usage(format!(
                "--save {}: {error}; the trials before this one are kept: give the same file again to go on",
                self.path.display()
            ))
        })
    }
}

fn parsed(text: &str) -> Result<(Head, Vec<Trial>), String> {
    let mut lines = text.lines();
    let head: Option<Head> = lines.next().and_then(|line| serde_json::from_str(line).ok());
    let head = head.filter(|head| head.schema == SCHEMA).ok_or("it is no file of `marusa bench fork`")?;
    let trial = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("line {} is no trial: {error}", at + 2))
    };
    let trials: Result<Vec<Trial>, String> = lines.enumerate().map(trial).collect();
    Ok((head, trials?))
}
