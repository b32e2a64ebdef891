//! Documents about one process: what `map::model` holds, and what was asked for besides. Unknown is `null` with an entry in `gaps`,
//! never 0.

use crate::base::printable::Escaping;
use crate::base::{Bytes, rfc3339};
use crate::map::Account;
use crate::map::model::{GapRow, Jvm, MappingAccount, PageReport, Process, Taken, Totals};
use crate::os::host::{self, Host};
use crate::snapshot::hidden::Hidden;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime};

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

/// The start of this program.
pub static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// How a document starts.
#[derive(JsonSchema, Serialize)]
pub struct Head {
    schema: &'static str,
    taken: Here,
    host: Host,
}

impl Head {
    /// "marusa/list/2".
    pub fn now(schema: &'static str) -> Head {
        Head { schema, taken: Here::now(), host: Host::here() }
    }
}

/// How a document of one snapshot starts.
#[derive(JsonSchema, Serialize)]
pub struct Start {
    schema: &'static str,
    host: Host,
    taken: Taken,
    process: Process,
    jvm: Option<Jvm>,
}

impl Start {
    /// And the sums of the account.
    pub fn of(schema: &'static str, account: Account) -> (Start, Totals) {
        let Account { taken, process, jvm, totals, .. } = account;
        (Start { schema, host: Host::here(), taken, process, jvm }, totals)
    }
}

/// When a document was made, where it is not of one snapshot.
#[derive(JsonSchema, Serialize)]
pub struct Here {
    /// RFC 3339, UTC.
    at: String,
    /// Since this program started; of a table, its interval.
    took_ms: f64,
    attached: bool,
    kernel: String,
}

impl Here {
    pub fn now() -> Here {
        Here::of(SystemTime::now(), STARTED.elapsed().as_secs_f64() * 1e3)
    }

    fn of(at: SystemTime, took_ms: f64) -> Here {
        let took_ms = (took_ms * 100.0).round() / 100.0;
        Here { at: rfc3339(at), took_ms, attached: false, kernel: host::kernel_release() }
    }
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
    #[serde(flatten)]
    head: Head,
    file: String,
    bytes: Bytes,
}

impl FreezeDocument {
    pub fn of(file: &Path, bytes: Bytes) -> FreezeDocument {
        FreezeDocument { head: Head::now("marusa/freeze/2"), file: file.display().to_string(), bytes }
    }
}

/// A gap of one process, or of the host where there is no pid.
#[derive(JsonSchema, Serialize)]
pub struct PidGap<P> {
    pub pid: P,
    #[serde(flatten)]
    pub gap: GapRow,
}

/// Processes that cannot be looked at.
#[derive(JsonSchema, Serialize)]
pub struct HiddenRows<'a> {
    hidden_processes: usize,
    hidden_pids: &'a BTreeSet<i32>,
    hidden_reason: Option<String>,
}

impl<'a> HiddenRows<'a> {
    pub fn of(hidden: &'a Hidden) -> HiddenRows<'a> {
        HiddenRows {
            hidden_processes: hidden.0.len(),
            hidden_pids: &hidden.0,
            hidden_reason: hidden.reason(),
        }
    }
}

/// One interval of a command that watches; the target never stops for it.
#[derive(JsonSchema, Serialize)]
pub struct IntervalTaken {
    #[serde(flatten)]
    here: Here,
    interval_seconds: f64,
    target_ended: bool,
    target_stopped_ms: u64,
}

impl IntervalTaken {
    pub fn of(at: SystemTime, interval_seconds: f64, target_ended: bool) -> IntervalTaken {
        let here = Here::of(at, interval_seconds * 1e3);
        IntervalTaken { here, interval_seconds, target_ended, target_stopped_ms: 0 }
    }
}

/// A document, and the end of its last line.
pub fn print(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(Escaping::for_json(&mut *out), document)?;
    writeln!(out)
}

/// A document on one line, where more follow.
pub fn print_line(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(Escaping::for_json(&mut *out), document)?;
    writeln!(out)
}
