//! Malloc's view: which allocator the process has, and which memory it holds. Never names `jvm`: they meet in `map`.

pub mod glibc;
pub mod other;
pub mod types;

pub use types::*;

use crate::base::Known;
use crate::os::Target;

/// Reads the process's allocator.
pub fn read(target: &Target) -> Known<AllocView> {
    glibc::read(target)
}
