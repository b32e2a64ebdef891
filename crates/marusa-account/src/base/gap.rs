//! "Absent is not zero": whatever could not be read is a `Gap`, which travels inside the results up to the user with the
//! reason and with what would help. A figure of type `Known<T>` cannot be mistaken for 0.

use super::Addr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A figure, or why there is none.
pub type Known<T> = Result<T, Gap>;

/// For `serialize_with`: what is not known is null.
pub fn or_null<T: Serialize, S: Serializer>(known: &Known<T>, into: S) -> Result<S::Ok, S::Error> {
    known.as_ref().ok().serialize(into)
}

/// One thing that could not be read or known.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Gap {
    /// What is missing: "pagemap", "G1CollectedHeap::_hrm".
    pub what: String,
    pub why: Why,
    /// What the user could do about it.
    pub hint: Option<String>,
}

/// Why something is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The kernel refused: a right or a setting is missing.
    Denied,
    /// The process, thread or mapping ended in the meantime.
    Gone,
    /// The kernel answered with an error that is none of the others; the hint names it.
    Failed,
    NotInThisKernel,
    NotInThisRuntime,
    /// It changed while it was read, and reading it again did not help.
    Torn,
    /// A walk reached its limit (`base::limits`).
    OverLimit,
    /// The target had used up its time (`os::budget`).
    OverDeadline,
    /// What was read of the target took too much memory here (`os::budget`).
    OverMemory,
    /// A signal to end arrived.
    Interrupted,
    /// The page is not in memory, and reading it would have brought it in.
    NotResident(Addr),
    /// The target's bytes make no sense at this address.
    BadData(Addr),
    /// This version of Marusa does not look at it.
    NotRead,
    /// It was not measured on this machine yet.
    NotMeasured,
    /// The file does not hold it (frozen snapshots and cores).
    NotRecorded,
}

impl Why {
    /// Whether reading was given up as a whole, so that what is missing says nothing about the target.
    pub fn is_given_up(self) -> bool {
        matches!(self, Why::OverDeadline | Why::OverMemory | Why::Interrupted)
    }

    pub fn word(self) -> &'static str {
        match self {
            Why::Denied => "denied",
            Why::Gone => "gone",
            Why::Failed => "failed",
            Why::NotInThisKernel => "not in this kernel",
            Why::NotInThisRuntime => "not in this runtime",
            Why::Torn => "changed while read",
            Why::OverLimit => "over the limit",
            Why::OverDeadline => "over the deadline",
            Why::OverMemory => "over the memory bound",
            Why::Interrupted => "interrupted",
            Why::NotResident(_) => "not resident",
            Why::BadData(_) => "bad data",
            Why::NotRead => "not read by this version",
            Why::NotMeasured => "not measured yet",
            Why::NotRecorded => "not recorded",
        }
    }
}

impl std::error::Error for Why {}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Why::NotResident(at) | Why::BadData(at) => write!(f, "{} at {at}", self.word()),
            _ => f.write_str(self.word()),
        }
    }
}

impl Gap {
    pub fn new(what: impl Into<String>, why: Why) -> Gap {
        Gap { what: what.into(), why, hint: None }
    }
    pub fn hint(mut self, hint: impl Into<String>) -> Gap {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}
