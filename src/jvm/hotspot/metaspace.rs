//! Class metadata.

use super::{Found, Hotspot};
use crate::base::{Gap, Known, Why};
use crate::jvm::types::ClassView;

pub fn read(_vm: &Hotspot, _found: &mut Found) -> Known<ClassView> {
    Err(Gap::new("class metadata", Why::NotInThisRuntime))
}
