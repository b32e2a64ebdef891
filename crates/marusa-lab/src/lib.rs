//! Trials, intervals, verdicts, and the experiments.

pub mod experiment;

use marusa_account::{base, jvm, map, os, snapshot};
use marusa_host::{act, pages};
use marusa_observe::measure;
