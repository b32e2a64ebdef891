//! Findings and advice: facts in, judgements out.

pub mod advise;
pub mod doctor;
pub mod why;

use marusa_account::{base, jvm, map, os, snapshot};
use marusa_host::pages;
use marusa_observe::{measure, record};
