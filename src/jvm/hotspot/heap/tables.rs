//! The collectors' side tables.

use super::super::{Found, Hotspot};
use crate::base::Known;
use crate::jvm::types::Gc;

pub fn read(_vm: &Hotspot, _gc: &Known<Gc>, _found: &mut Found) {}
