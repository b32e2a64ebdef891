//! What the VM maps for its own work: perf memory, polling pages.

use super::{Found, Hotspot};

pub fn read(_vm: &Hotspot, _found: &mut Found) {}
