//! The input of the rules: the host and each JVM, read once. `gather` reads; everything else here is data.

mod bounds;
pub mod gather;
mod host;
mod jvm;
#[cfg(test)]
pub mod made_up;
mod memory;

pub use crate::os::group_memory::GroupMemory;
pub use bounds::Bounds;
pub use host::{Daemon, HostFacts, Watched as WatchedHost};
pub use jvm::JvmFacts;
pub use memory::percent;

use crate::base::Gap;

/// All that was read.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub host: HostFacts,
    pub jvms: Vec<JvmFacts>,
}

impl Facts {
    /// What could not be read.
    pub fn gaps(&self) -> Vec<Gap> {
        let of_jvms = self.jvms.iter().flat_map(|jvm| jvm.gaps.iter().cloned());
        self.host.gaps.iter().cloned().chain(of_jvms).collect()
    }
}
