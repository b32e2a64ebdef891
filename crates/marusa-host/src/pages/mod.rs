//! Large pages for a JVM and its host: what it needs exactly, what the host can give, the steps there and back, and whether
//! the JVM got what was promised. Pure: `act::door` makes the changes.

pub mod blocks;
pub mod changes;
pub mod code;
pub mod collectors;
pub mod emit;
pub mod feasible;
pub mod gc_threads;
#[cfg(any(test, feature = "made-up"))]
#[path = "made_up_tests.rs"]
pub mod made_up;
pub mod messages;
pub mod need;
mod notes;
mod openj9;
pub mod options;
pub mod persist;
pub mod plan;
pub mod request;
pub mod subject;
pub mod types;
pub mod verify;

pub use types::*;
