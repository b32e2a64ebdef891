//! What a recorder says when it begins, and what it recorded when it ends.

use super::units::{counted, human};
use crate::base::Bytes;
use crate::show::json::Head;
use crate::snapshot::hidden::Hidden;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use std::time::Duration;

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Recorded {
    pub seconds: f64,
    pub jvms: usize,
    /// JVMs that the kernel OOM-killed.
    pub killed_for_memory: usize,
    #[serde(rename = "processes_not_seen", serialize_with = "count")]
    #[schemars(with = "usize")]
    pub hidden: Hidden,
    pub samples: u64,
    pub accounts: u64,
    /// Accounts that took too long or too much, and were given up.
    #[serde(rename = "accounts_given_up")]
    pub given_up: u64,
    /// Looks at which the account was more than twice as old as was asked for.
    #[serde(rename = "samples_with_a_late_account")]
    pub late: u64,
    /// The oldest that the account of a JVM was while it ran.
    #[serde(rename = "oldest_account_seconds")]
    pub oldest_seconds: f64,
    /// What of a core might be used.
    #[serde(skip)]
    pub cpu_share: f64,
    pub bytes: Bytes,
    pub files: usize,
    /// Files that the ring let go.
    pub files_dropped: u64,
    #[serde(skip)]
    pub cpu_seconds: f64,
}

fn count<S: Serializer>(hidden: &Hidden, into: S) -> Result<S::Ok, S::Error> {
    hidden.0.len().serialize(into)
}

pub fn begun(path: &str, every: Duration, is_all: bool) -> String {
    let whom = if is_all { "all JVMs, " } else { "" };
    format!("recording {whom}each {} s, into {path}; Ctrl-C ends it", every.as_secs_f64())
}

/// The line while it runs: "12 s of 60 s: 3 JVMs, 340 samples, 1.2 MiB; Ctrl-C ends it".
pub fn status(recorded: &Recorded, length: Option<Duration>) -> String {
    let of = length.map_or(String::new(), |length| format!(" of {}", elapsed(length)));
    format!(
        "{}{of}: {}, {}, {}; Ctrl-C ends it",
        elapsed(Duration::from_secs_f64(recorded.seconds)),
        counted(recorded.jvms, "JVM"),
        counted(recorded.samples, "sample"),
        human(recorded.bytes)
    )
}

/// "45 s", "2 min 05 s", "3 h 02 min".
fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

impl Recorded {
    fn cpu_percent(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.cpu_seconds / self.seconds * 100.0)
    }

    fn sample_bytes(&self) -> Option<f64> {
        // Of a ring, only the last part is there.
        (self.samples > 0 && self.files_dropped == 0).then(|| self.bytes as f64 / self.samples as f64)
    }
}

pub fn text(out: &mut dyn Write, recorded: &Recorded) -> io::Result<()> {
    let each = recorded.sample_bytes().map_or(String::new(), |bytes| format!(", {bytes:.0} bytes each"));
    let files = if recorded.files > 1 { format!(" in {} files", recorded.files) } else { String::new() };
    let jvms = counted(recorded.jvms, "JVM");
    writeln!(
        out,
        "marusa: {jvms}, {:.0} s: {}, {} of them with the account anew; {}{files}{each}; {:.1} % of a core",
        recorded.seconds,
        counted(recorded.samples, "sample"),
        recorded.accounts,
        human(recorded.bytes),
        recorded.cpu_percent().unwrap_or(0.0)
    )?;
    // A few are a busy machine's.
    if recorded.late > recorded.samples / 10 {
        writeln!(
            out,
            "marusa: accounts were less frequent than requested, the oldest was {:.0} s old, within {} % of a core: --cpu {} gives \
             them more",
            recorded.oldest_seconds,
            recorded.cpu_share * 100.0,
            recorded.cpu_share * 300.0
        )?;
    }
    if recorded.given_up > 0 {
        writeln!(
            out,
            "marusa: given up because of the time or memory that they took: {}; the notes of the recording name them",
            counted(recorded.given_up, "account")
        )?;
    }
    if recorded.killed_for_memory > 0 {
        writeln!(
            out,
            "marusa: the kernel OOM-killed {} of them: `marusa diff FILE` says what grew until then",
            recorded.killed_for_memory
        )?;
    }
    if let Some(text) = recorded.hidden.sentence(false) {
        writeln!(out, "marusa: {text}")?;
    }
    Ok(())
}

/// What was recorded, for programs.
#[derive(JsonSchema, Serialize)]
pub struct RecordedDocument<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    recorded: &'a Recorded,
    sample_bytes_mean: Option<f64>,
    cpu_seconds: f64,
    cpu_percent_of_a_core: Option<f64>,
}

impl<'a> From<&'a Recorded> for RecordedDocument<'a> {
    fn from(recorded: &'a Recorded) -> RecordedDocument<'a> {
        RecordedDocument {
            head: Head::now("marusa/recorded/2"),
            recorded,
            sample_bytes_mean: recorded.sample_bytes(),
            cpu_seconds: recorded.cpu_seconds,
            cpu_percent_of_a_core: recorded.cpu_percent(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_how_far_it_is() {
        let recorded =
            Recorded { seconds: 125.0, jvms: 1, samples: 1, bytes: 2 << 20, ..Recorded::default() };
        assert_eq!(status(&recorded, None), "2 min 05 s: 1 JVM, 1 sample, 2.0 MiB; Ctrl-C ends it");
        let of = status(&Recorded { seconds: 7.4, jvms: 3, ..recorded }, Some(Duration::from_secs(7200)));
        assert!(of.starts_with("7 s of 2 h 00 min: 3 JVMs, "), "{of}");
    }

    #[test]
    fn one_line_and_its_figures() {
        let recorded = Recorded {
            seconds: 100.0,
            jvms: 1,
            samples: 100,
            accounts: 10,
            bytes: 30_000,
            files: 1,
            cpu_seconds: 0.5,
            ..Recorded::default()
        };
        let mut out = Vec::new();
        text(&mut out, &recorded).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.contains("1 JVM, 100 s: 100 samples, 10 of them") && text.contains("300 bytes each; 0.5 %"),
            "{text}"
        );
        assert!(!text.contains("--cpu"), "{text}");
        let mut out = Vec::new();
        super::text(&mut out, &Recorded { late: 20, cpu_share: 0.01, ..recorded.clone() }).expect("memory");
        assert!(String::from_utf8_lossy(&out).contains("within 1 % of a core: --cpu 3 gives"), "{out:?}");
        let of_ring = Recorded { files_dropped: 2, ..recorded };
        let of_ring = RecordedDocument::from(&of_ring);
        assert_eq!((of_ring.sample_bytes_mean, of_ring.recorded.samples), (None, 100));
    }
}
