//! What the experiments compute, apart from what they do to the machine: which arms there are, in which order they take turns,
//! and what their figures say. One file an experiment, tested without any JVM.

pub mod account_row;
pub mod account_series;
pub mod direct_buffers;
pub mod fork;
pub mod gc;
pub mod gc_work;
pub mod http_load;
pub mod reflection;
pub mod rounds;
pub mod spread;
pub mod thp;
pub mod throughput;
pub mod touch;
pub mod trials;
pub mod trim;

use crate::base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Without which no figure is worth anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub processors: u32,
    pub memory_bytes: Bytes,
    pub kernel: String,
    /// A hypervisor below may put what is a huge page here on small ones there. `None`: this platform does not tell.
    pub is_virtual: Option<bool>,
}
