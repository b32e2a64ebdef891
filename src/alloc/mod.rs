//! Malloc's view: which allocator the process has, and which memory it holds. Never names `jvm`: they meet in `map`.

pub mod glibc;
pub mod other;
pub mod types;

pub use types::*;

use crate::base::{Known, Range};
use crate::os::Target;

/// Reads the process's allocator. `owned` is sorted and disjoint: memory that is known to be somebody else's.
pub fn read(target: &Target, owned: &[Range]) -> Known<AllocView> {
    other::read(target, glibc::read(target, owned))
}
