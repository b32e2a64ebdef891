//! One short file a command: what the user asked is turned into a path through the rooms.

pub mod advise;
pub mod amount;
pub mod audit;
pub mod bench;
pub mod commands;
pub mod compare;
pub mod completions;
pub mod container;
mod deadline;
pub mod diff;
pub mod doctor;
pub mod examples;
pub mod export;
pub mod fleet;
pub mod freeze;
pub mod heap;
pub mod leak;
pub mod list;
pub mod man;
pub mod map;
mod map_pages;
mod page_file;
pub mod pages;
mod progress;
mod quiet;
pub mod record;
pub mod report;
pub mod schema;
pub mod serve;
pub mod stalls;
mod store;
pub mod target;
pub mod tlb;
pub mod top;
pub mod trim;
mod web;
pub mod why;

use crate::base::{Refused, Why};
use crate::os::terminal::stdout;
use crate::os::{file_mode, output_file};
use crate::show::json;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Fails where a file that was asked for cannot be written, before work that takes long. "-" is standard output.
fn check_output(path: &Path) -> anyhow::Result<()> {
    let checked = if path == Path::new("-") { Ok(()) } else { output_file::check(path) };
    checked.map_err(|error| Failure::unwritable(path, error))
}

/// A whole file that was asked for.
fn write_output(path: &Path, text: &str) -> anyhow::Result<()> {
    output_file::write(path, file_mode::wanted(), text.as_bytes())
        .map(drop)
        .map_err(|error| Failure::unwritable(path, error))
}

/// Writes the answer of a command to standard output, as JSON or as text.
fn answer<D: Serialize>(
    is_json: bool,
    document: impl FnOnce() -> D,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    answer_one(is_json, false, document, text)
}

/// One answer, and as a line of JSON where it is one of many.
fn answer_one<D: Serialize>(
    is_json: bool,
    is_one_of_many: bool,
    document: impl FnOnce() -> D,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    match (is_json, is_one_of_many) {
        (true, true) => json::print_line(&mut out, &document())?,
        (true, false) => json::print(&mut out, &document())?,
        (false, _) => text(&mut out)?,
    }
    out.flush()
}

/// Why a command ends without an answer, with its exit status: 2 usage, 3 the target cannot be read or is gone, 4 rights
/// are missing.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub status: u8,
    pub message: String,
}

/// The exit status of an error of any command. What a user asked for and does not get is an error of usage.
pub fn status_of(error: &anyhow::Error) -> u8 {
    let of_type = if error.is::<Refused>() { 2 } else { 3 };
    error.downcast_ref::<Failure>().map_or(of_type, |failure| failure.status)
}

impl Failure {
    pub fn usage(message: impl Display) -> anyhow::Error {
        Failure { status: 2, message: message.to_string() }.into()
    }
    pub fn target(message: impl Display) -> anyhow::Error {
        Failure { status: 3, message: message.to_string() }.into()
    }
    pub fn rights(message: impl Display) -> anyhow::Error {
        Failure { status: 4, message: message.to_string() }.into()
    }
    /// The target cannot be read, because a right is missing or for another reason.
    pub fn unread(why: Why, message: impl Display) -> anyhow::Error {
        if why == Why::Denied { Failure::rights(message) } else { Failure::target(message) }
    }
    /// A file cannot be read, or is not what it must be.
    pub fn unreadable(path: &Path, error: impl Display) -> anyhow::Error {
        Failure::target(format!("cannot read {}: {error}", path.display()))
    }
    pub fn unwritable(path: &Path, error: impl Display) -> anyhow::Error {
        Failure::usage(format!("cannot write {}: {error}", path.display()))
    }
}
