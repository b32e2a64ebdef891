//! malloc's free memory given back to the system: `malloc_trim(0)` called in the target by a thread of the target.
//!
//! Never by stopping it and calling from outside: a stopped thread may hold the lock of an arena, for which the call would
//! wait for ever. A thread of the JVM waits for each lock as any thread that frees a block does.
//!
//! What was given back cannot be restored, and need not be: malloc takes it again, zeroed, when it is asked for.

pub mod library;
pub mod place;

use super::attach::{self, AttachError, Attached};
use crate::base::limits::SEARCHED_FILE_BYTES_MAX;
use crate::base::rfc3339;
use crate::os::file_bytes::FileBytes;
use crate::os::process::Process;
use crate::os::{foreign, loaded};
use place::PlaceError;
use serde::Serialize;
use std::time::{Instant, SystemTime};

/// The diagnostic command of JDK 18 and later (JDK-8269345), and of 17.0.9 and later.
pub const COMMAND: &str = "System.trim_native_heap";

/// How malloc_trim is called in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// `COMMAND`, over the attach protocol.
    JvmCommand,
    /// An agent library that the JVM loads.
    AgentLibrary,
}

/// What was done, when, and how.
#[derive(Clone, Debug, schemars::JsonSchema, Serialize)]
pub struct Receipt {
    pub way: Way,
    pub at: String,
    pub call_ms: f64,
    /// The JVM's words, or what malloc_trim returned.
    pub answer: String,
    /// The path of the library, as the target names it. The file is removed again.
    pub library: Option<String>,
    /// The library is still mapped: the JVM unloads none (8, 11).
    pub library_stays: bool,
    pub attach: attach::Receipt,
}

#[derive(Debug, thiserror::Error)]
pub enum TrimError {
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The JVM has the command and did not trim.
    #[error("the JVM answers '{COMMAND}' with: {0}")]
    NotTrimmed(String),
    #[error("the process has no malloc_trim")]
    NoMallocTrim,
}

impl TrimError {
    /// Whether other rights would have helped.
    pub fn is_denied(&self) -> bool {
        use std::io::ErrorKind::PermissionDenied;
        match self {
            TrimError::Attach(error) => error.is_denied(),
            TrimError::Place(PlaceError::NoDirectory { error, .. }) => error.kind() == PermissionDenied,
            _ => false,
        }
    }
    /// Whether the target was asked and refused.
    pub fn is_answer(&self) -> bool {
        matches!(
            self,
            TrimError::NotTrimmed(_) | TrimError::NoMallocTrim | TrimError::Place(PlaceError::NoCode)
        ) || matches!(self, TrimError::Attach(AttachError::Command { .. }))
    }
}

/// Whether the target's JVM has `COMMAND`, by the name in its library: so a dry run need not ask it. `None`: the library
/// cannot be read.
pub fn has_command(process: &Process) -> Option<bool> {
    let mappings = process.mappings().ok()?;
    let first = *loaded::hotspot(&mappings).first()?;
    let file = FileBytes::of(foreign::mapped(process, first)?, 0).ok()?;
    file.contains(COMMAND.as_bytes(), SEARCHED_FILE_BYTES_MAX)
}

/// Trims the native heap of a JVM that listens. `keeps_libraries`: this JVM unloads no agent library (up to 15), so one that is
/// mapped is there to be used again. Elsewhere its name might, by then, be that of another user's file.
pub fn trim(
    process: &Process,
    attached: &Attached,
    way: Way,
    keeps_libraries: bool,
) -> Result<Receipt, TrimError> {
    let at = rfc3339(SystemTime::now());
    let start = Instant::now();
    let (answer, library) = match way {
        Way::JvmCommand => (by_command(attached)?, None),
        Way::AgentLibrary => {
            let (answer, path) = by_library(process, attached, keeps_libraries)?;
            (answer, Some(path))
        }
    };
    let call_ms = start.elapsed().as_secs_f64() * 1e3;
    let library_stays = library.is_some() && place::mapped(process).is_some();
    Ok(Receipt { way, at, call_ms, answer, library, library_stays, attach: attached.receipt.clone() })
}

/// The answer is "Done. RSS+Swap reduction: 238M->45M (-193M))", "Done (no details available)." or "Trim native heap: before:
/// ..., after: ..."; on a libc without malloc_trim "Not available." (trimCHeapDCmd.cpp, JDK 18 to 25).
fn by_command(attached: &Attached) -> Result<String, TrimError> {
    let answer = attached.command(COMMAND)?;
    let answer = answer.trim().to_string();
    if answer.starts_with("Not available") { Err(TrimError::NotTrimmed(answer)) } else { Ok(answer) }
}

fn by_library(
    process: &Process,
    attached: &Attached,
    keeps_libraries: bool,
) -> Result<(String, String), TrimError> {
    let known = if keeps_libraries { place::mapped(process) } else { None };
    if let Some(path) = known
        && let Ok(code) = attached.load(&path)
    {
        return Ok((outcome(code)?, path));
    }
    let placed = place::place(process, attached.owner())?;
    let code = attached.load(&placed.path)?;
    Ok((outcome(code)?, placed.path.clone()))
}

fn outcome(code: i32) -> Result<String, TrimError> {
    match code {
        library::TRIMMED => Ok("malloc_trim returned 1: memory was given back".to_string()),
        library::NOTHING_TRIMMED => Ok("malloc_trim returned 0: it had nothing to give back".to_string()),
        library::NO_MALLOC_TRIM => Err(TrimError::NoMallocTrim),
        code => Err(TrimError::NotTrimmed(format!("the library returned {code}"))),
    }
}
