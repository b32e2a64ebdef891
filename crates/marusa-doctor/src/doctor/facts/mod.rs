//! The input of the rules: the host and each JVM, read once. `gather` reads; everything else here is data.

mod bounds;
pub mod gather;
mod host;
mod jvm;
#[cfg(any(test, feature = "made-up"))]
#[path = "made_up_tests.rs"]
pub mod made_up;
mod memory;

pub use crate::os::group_memory::GroupMemory;
pub use bounds::Bounds;
pub use host::{Daemon, HostFacts, Watched as WatchedHost};
pub use jvm::JvmFacts;
pub use memory::percent;

/// All that was read.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub host: HostFacts,
    pub jvms: Vec<JvmFacts>,
}
