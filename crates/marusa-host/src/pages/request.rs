//! The request for a plan, and the error that no plan is possible. `plan` and the makers of its steps and notes share both.

use super::feasible::Preference;
use super::types::{HostId, Mode, Subject};
use crate::base::{Bytes, Gap};
use crate::os::host_memory::HostMemory;

/// A request for a plan.
pub struct Request<'a> {
    pub subject: Subject,
    /// `None`: auto.
    pub mode: Option<Mode>,
    pub preference: Preference,
    pub instances: u64,
    pub name: Option<String>,
    pub host: &'a HostMemory,
    pub host_id: HostId,
    pub made_at: String,
    pub made_by: String,
    /// How the JVM is started except for its pages; empty for one that runs.
    pub launch: Vec<String>,
    /// The ones that the user did not give: the plan's own recommendation.
    pub recommended: Vec<String>,
    /// The running JVM, if it is one.
    pub running: Option<Running>,
    /// HotSpot's UseSHM.
    pub shm: bool,
    /// The group that may have huge pages of shared memory.
    pub group: Option<u32>,
    /// The systemd service that starts it.
    pub unit: Option<String>,
    pub gaps: Vec<Gap>,
}

/// What a JVM has now that it gives back before its successor starts.
#[derive(Clone, Debug, Default)]
pub struct Running {
    pub held: Vec<(Bytes, u64)>,
    pub released_bytes: Bytes,
    /// `Some(false)`: prctl(PR_SET_THP_DISABLE).
    pub thp_enabled: Option<bool>,
}
