//! The host of the part with swap: a file of its own to swap to and a cgroup with a limit, made through the door for each trial and
//! restored behind it. When it is killed, `marusa pages undo` restores what the journal says.

use crate::act::door::step::{Change, Step};
use crate::act::door::{self, Linux};
use crate::base::Bytes;
use crate::cmd::Failure;
use crate::cmd::pages::door::failure;
use crate::os::host::text;
use crate::show::units::human;
use std::path::Path;

/// The hierarchies in which a group of memory may be made, and what shows that it can.
const GROUPS_OF_1: &str = "/sys/fs/cgroup/memory";
const GROUPS_OF_2: &str = "/sys/fs/cgroup";

/// What is to be made.
pub struct Scarcity {
    pub memory_bytes: Bytes,
    swap_bytes: Bytes,
    /// Of the file to swap to.
    directory: String,
    pub group: String,
}

impl Scarcity {
    /// Or why nothing can be made.
    pub fn plan(state: &Path, memory_bytes: Bytes, swap_bytes: Bytes) -> anyhow::Result<Scarcity> {
        let state = state.display().to_string();
        let name = format!("bench-{}", std::process::id());
        let group = format!("{}/marusa-{name}", groups()?);
        let scarcity = Scarcity { memory_bytes, swap_bytes, directory: format!("{state}/{name}"), group };
        let previews = door::preview(&Linux::default(), &scarcity.steps(), &state);
        match previews.into_iter().find_map(|preview| preview.hindrance) {
            Some(why) => Err(failure(why)),
            None => Ok(scarcity),
        }
    }

    pub fn steps(&self) -> Vec<Step> {
        let step = |what: String, why: &str, risk: Option<&str>, change: Change| Step {
            what,
            why: why.to_string(),
            risk: risk.map(str::to_string),
            change,
        };
        let Scarcity { memory_bytes, swap_bytes, directory, group } = self;
        let file = format!("{directory}/swap");
        vec![
            step(
                format!("the directory {directory}"),
                "the swap file is in it",
                None,
                Change::Directory { path: directory.clone() },
            ),
            step(
                format!("{} of swap in {file}", human(*swap_bytes)),
                "what does not fit into the memory of the two servers goes there",
                Some("others on this host may be swapped to it in the meantime; ending it reads that back"),
                Change::SwapFile { file, bytes: *swap_bytes },
            ),
            step(
                format!("the cgroup {group} with {}", human(*memory_bytes)),
                "the two servers share it",
                None,
                Change::MemoryGroup { path: group.clone(), limit_bytes: *memory_bytes },
            ),
        ]
    }
}

/// Where a group with a memory limit can be made.
fn groups() -> anyhow::Result<&'static str> {
    if Path::new(GROUPS_OF_1).join("memory.limit_in_bytes").exists() {
        return Ok(GROUPS_OF_1);
    }
    let enabled = text(format!("{GROUPS_OF_2}/cgroup.subtree_control")).unwrap_or_default();
    if enabled.split_whitespace().any(|one| one == "memory") {
        return Ok(GROUPS_OF_2);
    }
    Err(Failure::rights(
        "no cgroup with a memory limit can be made here: neither version 1 at /sys/fs/cgroup/memory nor version 2 with \
         the memory controller in /sys/fs/cgroup/cgroup.subtree_control; run it on the host",
    ))
}
