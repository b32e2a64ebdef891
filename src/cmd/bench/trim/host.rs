//! The host of the part with swap: a file of its own to swap to and a cgroup with a limit, made through the door and
//! restored when the experiment ends. When it is killed, `marusa pages undo` restores what the journal says.

use super::{Args, pressure};
use crate::act::door::journal::PlanMark;
use crate::act::door::step::{Change, Step};
use crate::act::door::{self, Linux, Outcome, Request, Store};
use crate::act::signals::Blocked;
use crate::base::Bytes;
use crate::cmd::Failure;
use crate::cmd::pages::door::{failure, state_directory};
use crate::os::host::text;
use crate::show::units::human;
use std::path::Path;

/// The hierarchies in which a group of memory may be made, and what shows that it can.
const GROUPS_OF_1: &str = "/sys/fs/cgroup/memory";
const GROUPS_OF_2: &str = "/sys/fs/cgroup";

/// What is to be made.
pub struct Scarcity {
    pub steps: Vec<Step>,
    group: String,
    store: Store,
}

/// Made. Undone when dropped.
pub struct Scarce {
    id: String,
    pub group: String,
    store: Store,
    is_undone: bool,
}

impl Scarcity {
    /// What would be changed, or why it cannot be.
    pub fn plan(args: &Args, memory: Bytes) -> anyhow::Result<Scarcity> {
        let store = Store::new(state_directory(args.state.as_deref())?);
        let state = store.directory.display().to_string();
        let name = format!("bench-{}", std::process::id());
        let group = format!("{}/marusa-{name}", groups()?);
        let swap = pressure::swap(args);
        let step = |what: String, why: &str, risk: Option<&str>, change: Change| Step {
            what,
            why: why.to_string(),
            risk: risk.map(str::to_string),
            change,
        };
        let directory = format!("{state}/{name}");
        let file = format!("{directory}/swap");
        let steps = vec![
            step(
                format!("the directory {directory}"),
                "the swap file is in it",
                None,
                Change::Directory { path: directory },
            ),
            step(
                format!("{} of swap in {file}", human(swap)),
                "what does not fit into the memory of the two servers goes there",
                Some("others on this host may be swapped to it in the meantime; ending it reads that back"),
                Change::SwapFile { file, bytes: swap },
            ),
            step(
                format!("the cgroup {group} with {}", human(memory)),
                "the two servers share it",
                None,
                Change::MemoryGroup { path: group.clone(), limit_bytes: memory },
            ),
        ];
        let previews = door::preview(&Linux::default(), &steps, &state);
        match previews.into_iter().find_map(|preview| preview.hindrance) {
            Some(why) => Err(failure(why)),
            None => Ok(Scarcity { steps, group, store }),
        }
    }

    pub fn make(self) -> anyhow::Result<Scarce> {
        let text = serde_json::to_string(&self.steps)?;
        let request = Request {
            plan: PlanMark::of("marusa bench trim", text.as_bytes()),
            steps: self.steps,
            persist: false,
            drop_caches: false,
            again: true,
            made_by: format!("marusa {} bench trim", env!("CARGO_PKG_VERSION")),
        };
        let _blocked = Blocked::start();
        let receipt = door::apply(&Linux::default(), &self.store, &request).map_err(failure)?;
        match receipt.outcome {
            Outcome::TakenBack { why, .. } => Err(failure(why)),
            Outcome::Applied | Outcome::AlreadyApplied { .. } => {
                Ok(Scarce { id: receipt.id, group: self.group, store: self.store, is_undone: false })
            }
        }
    }
}

impl Scarce {
    /// Restores the host; returns what could not be restored.
    pub fn undo(mut self) -> anyhow::Result<Vec<String>> {
        self.take_back()
    }

    fn take_back(&mut self) -> anyhow::Result<Vec<String>> {
        self.is_undone = true;
        let receipt = door::undo(&Linux::default(), &self.store, &self.id, false).map_err(failure)?;
        if receipt.complete {
            return Ok(Vec::new());
        }
        let left = receipt.steps.iter().filter(|step| !step.notes.is_empty()).map(|step| {
            let place = receipt.begin.steps[step.step].change.place();
            format!("{place}: {}; `marusa pages undo {}` tries again", step.notes.join(", "), self.id)
        });
        Ok(left.collect())
    }
}

impl Drop for Scarce {
    fn drop(&mut self) {
        if self.is_undone {
            return;
        }
        match self.take_back() {
            Ok(left) => left.iter().for_each(|line| crate::say!("marusa: {line}")),
            Err(error) => crate::say!("marusa: {error:#}; `marusa pages undo {}` tries again", self.id),
        }
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
