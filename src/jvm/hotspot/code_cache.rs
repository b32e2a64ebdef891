//! The code cache.

use super::{Found, Hotspot};
use crate::base::{Gap, Known, Why};
use crate::jvm::types::CodeHeapView;

pub fn read(_vm: &Hotspot, _found: &mut Found) -> Known<Vec<CodeHeapView>> {
    Err(Gap::new("code cache", Why::NotInThisRuntime))
}
