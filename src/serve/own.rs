//! What the service says of itself: how many JVMs it watches, what it left out, and what it costs.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Own {
    pub version: &'static str,
    pub kernel: String,
    /// By state.
    pub jvms: Vec<(&'static str, usize)>,
    pub seen: u64,
    pub killed: u64,
    /// By outcome.
    pub accounts: Vec<(&'static str, u64)>,
    pub longest_hold_seconds: f64,
    /// By outcome; empty where nothing is pushed.
    pub otlp: Vec<(&'static str, u64)>,
    /// Data points that were rejected of requests that were accepted.
    pub otlp_rejected: Option<u64>,
    pub stored: Stored,
    /// By status code.
    pub requests: BTreeMap<u16, u64>,
    pub cpu_seconds: f64,
    pub resident_bytes: Option<u64>,
    /// Since 1970; `None`: not known.
    pub started_seconds: Option<f64>,
    pub open_files: Option<u64>,
    pub open_files_max: Option<u64>,
}

/// What was written to a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// There is one.
    pub is_on: bool,
    pub files: u64,
    pub bytes: u64,
    pub failures: u64,
    /// Files of the recording that the ring let go before they were stored, or that cannot be read.
    pub lost: u64,
}
