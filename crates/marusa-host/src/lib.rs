//! Everything that changes a host or asks a target, and large pages: need, plan, verification.

pub mod act;
pub mod pages;

use marusa_account::{base, jvm, map, os, snapshot};
