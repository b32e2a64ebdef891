//! What an experiment prints.

use crate::os::terminal::stdout;
use serde::Serialize;
use std::io::{self, Write};

/// As JSON or as text, whole before anything else is done.
pub fn print<D: Serialize>(
    is_json: bool,
    json: impl FnOnce() -> D,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = stdout().lock();
    match is_json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&json())?)?,
        false => text(&mut out)?,
    }
    out.flush()
}
