//! What takes time and what changes: counters, stalls, growth, cgroups, recordings.

pub mod ledger;
pub mod measure;
pub mod record;

use marusa_account::{base, jvm, map, os, snapshot};
