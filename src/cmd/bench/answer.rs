//! What an experiment prints, and the status that it ends with.

use super::account_of::is_stopped;
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

/// The exit status of an experiment that shows what it has when it fails or is interrupted.
pub fn status(ended: Option<anyhow::Error>, complete: u8) -> anyhow::Result<u8> {
    match ended {
        Some(error) if !is_stopped(&error) => Err(error),
        Some(_) => Ok(130),
        None => Ok(complete),
    }
}
