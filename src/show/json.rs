//! Documents about one process: what `map::model` holds, and what was asked for besides. Unknown is `null` with an entry in `gaps`,
//! never 0.

use crate::base::{Bytes, Gap, rfc3339};
use crate::map::Account;
use crate::map::model::{GapRow, MappingAccount, PageReport};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// `marusa map --json`.
#[derive(JsonSchema, Serialize)]
pub struct MapDocument<'a> {
    #[serde(flatten)]
    pub account: &'a Account,
    /// `--by mapping`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mappings: Option<Vec<MappingAccount>>,
    /// `--by page-size` and `--require`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageReport>,
}

/// The process, in short.
#[derive(JsonSchema, Serialize)]
pub struct Subject<'a> {
    pub pid: i32,
    pub command: &'a str,
}

/// `marusa freeze --json`.
#[derive(JsonSchema, Serialize)]
pub struct FreezeDocument {
    schema: &'static str,
    file: String,
    bytes: Bytes,
}

impl FreezeDocument {
    pub fn of(file: &Path, bytes: Bytes) -> FreezeDocument {
        FreezeDocument { schema: "marusa/freeze/1", file: file.display().to_string(), bytes }
    }
}

/// A gap of one process, or of the host where there is no pid.
#[derive(JsonSchema, Serialize)]
pub struct PidGap<P> {
    pub pid: P,
    #[serde(flatten)]
    pub gap: GapRow,
}

/// One interval of a command that watches; the target never stops for it.
#[derive(JsonSchema, Serialize)]
pub struct IntervalTaken<'a> {
    at: String,
    interval_seconds: f64,
    target_ended: bool,
    target_stopped_ms: u64,
    attached: bool,
    kernel: &'a str,
}

impl<'a> IntervalTaken<'a> {
    pub fn of(
        at: SystemTime,
        interval_seconds: f64,
        target_ended: bool,
        kernel: &'a str,
    ) -> IntervalTaken<'a> {
        let at = rfc3339(at);
        IntervalTaken { at, interval_seconds, target_ended, target_stopped_ms: 0, attached: false, kernel }
    }
}

/// A document, and the end of its last line.
pub fn print(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}

/// A document on one line, where more follow.
pub fn print_line(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, document)?;
    writeln!(out)
}

/// One gap, with the reason as a word and the address, if any, in the text.
pub fn gap(gap: &Gap) -> Value {
    value(&GapRow::from(gap))
}

/// What a hand-made document takes from the model.
pub fn value(part: &impl Serialize) -> Value {
    // The model has no keys that are no texts.
    serde_json::to_value(part).unwrap_or_default()
}
