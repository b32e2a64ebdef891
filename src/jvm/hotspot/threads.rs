//! The threads of the VM.

use super::{Found, Hotspot};
use crate::jvm::types::JvmThread;

pub fn read(_vm: &Hotspot, _found: &mut Found) -> Vec<JvmThread> {
    Vec::new()
}
