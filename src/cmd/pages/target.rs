//! What `collapse`, `split` and `prove` share: which memory of the running JVM, at which pace, and how a refusal ends.

use crate::act::promote::{Block, Pace, PromoteError, Watch};
use crate::base::{Bytes, Refused, refuse};
use crate::cmd;
use crate::cmd::{Failure, amount, progress};
use crate::map::{self, Area, MemoryMap};
use crate::os::process::Process;
use crate::os::{host, smaps};
use crate::pages::blocks::{self, BlockPlan, PlannedBlock, Wanted};
use crate::snapshot::{Snapshot, Want};
use indicatif::ProgressBar;
use std::time::Duration;

pub const DEFAULT_AREAS: &str = "java_heap,jit_code,gc";
pub const STALL_BUDGET: &str = "5ms";

/// Which memory, and how gently.
#[derive(clap::Args, Debug, Clone)]
pub struct Areas {
    /// Which areas, with commas, as `marusa map --json` names them; or all
    #[arg(long, value_name = "AREAS", value_parser = areas, default_value = DEFAULT_AREAS)]
    area: Chosen,
    /// Time that a thread of the JVM may wait for one block; a longer call is followed by a pause, many end the command
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = STALL_BUDGET)]
    stall_budget: Duration,
    /// Minimum resident share of a private block; shared blocks must be full
    #[arg(long, value_name = "PERCENT", value_parser = share, default_value = "90%")]
    density: f64,
    /// Maximum growth of the JVM's memory by filled holes
    #[arg(long, value_name = "PERCENT", value_parser = share, default_value = "1%")]
    growth: f64,
    /// Let the kernel compact memory where the host has no free 2 MiB block left
    #[arg(long)]
    compact: bool,
}

/// A list of areas as one argument.
#[derive(Clone, Debug)]
pub struct Chosen(Vec<Area>);

impl Chosen {
    pub fn all() -> Chosen {
        Chosen(Area::ALL.to_vec())
    }
}

pub fn areas(text: &str) -> Result<Chosen, Refused> {
    let mut chosen = Vec::new();
    for name in text.split(',').map(str::trim) {
        match Area::ALL.iter().find(|area| area.name() == name) {
            Some(area) => chosen.push(*area),
            None if name == "all" => chosen.extend(Area::ALL),
            None => {
                let names: Vec<&str> = Area::ALL.iter().map(|area| area.name()).collect();
                refuse!("unknown area '{name}'; known: all, {}", names.join(", "));
            }
        }
    }
    chosen.sort();
    chosen.dedup();
    Ok(Chosen(chosen))
}

/// "10%", "0.5%"; a bare number is percent.
pub fn share(text: &str) -> Result<f64, Refused> {
    let percent: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| "it must be a percentage")?;
    if !(0.0..=100.0).contains(&percent) {
        refuse!("it must be from 0 to 100 %");
    }
    Ok(percent / 100.0)
}

/// As `share`, of a CPU: not nothing.
pub fn cpu_share(text: &str) -> Result<f64, Refused> {
    let share = share(text)?;
    if share < 0.001 {
        refuse!("it must be at least 0.1 %");
    }
    Ok(share)
}

impl Areas {
    pub fn names(&self) -> Vec<&'static str> {
        self.area.0.iter().map(|area| area.name()).collect()
    }
    /// For `split`, which takes what is on huge pages, however it came there.
    pub fn to_split(area: &Chosen, stall_budget: Duration) -> Areas {
        Areas { area: area.clone(), stall_budget, density: 0.0, growth: 0.0, compact: false }
    }
    pub fn pace(&self) -> Pace {
        Pace { stall_budget: self.stall_budget, compact: self.compact, ..Pace::default() }
    }
    pub fn wanted(&self) -> Wanted {
        Wanted { areas: self.area.0.clone(), density: self.density, growth: self.growth }
    }
}

/// A reading of the JVM and what could be done.
pub struct Look {
    pub snapshot: Snapshot,
    pub map: MemoryMap,
    pub plan: BlockPlan,
}

impl Look {
    pub fn now(process: &Process, wanted: &Wanted) -> anyhow::Result<Look> {
        let want = Want { smaps: true, ..Want::default() };
        let snapshot = cmd::target::take(process, want)?;
        let map = map::join(&snapshot);
        let plan =
            blocks::plan(&snapshot, &map, wanted).map_err(|gap| cmd::target::unreadable(process, &gap))?;
        Ok(Look { snapshot, map, plan })
    }
}

/// The blocks of a JVM for a caller that goes there and back.
pub struct ThereAndBack {
    /// On small pages now, and fit for huge ones.
    pub small: Vec<Block>,
    /// On huge pages now.
    pub huge: Vec<Block>,
}

impl ThereAndBack {
    pub fn bytes(&self) -> Bytes {
        self.small.iter().chain(&self.huge).map(|block| block.range.bytes()).sum()
    }
}

pub fn choose(process: &Process, areas: &Areas) -> anyhow::Result<ThereAndBack> {
    let plan = Look::now(process, &areas.wanted())?.plan;
    let all = |planned: &[PlannedBlock]| {
        let there_and_back = |block| Block { fills_zeros: true, ..block };
        to_change(planned).into_iter().map(there_and_back).collect()
    };
    Ok(ThereAndBack { small: all(&plan.blocks), huge: all(&plan.on_2m) })
}

/// Blocks of a plan for `act`: none is collapsed that has lost pages since.
pub fn to_change(planned: &[PlannedBlock]) -> Vec<Block> {
    let block =
        |one: &PlannedBlock| Block { range: one.range, resident_min: one.resident, fills_zeros: false };
    planned.iter().map(block).collect()
}

/// How a refusal ends the command.
pub fn refused(error: PromoteError) -> anyhow::Error {
    let message = error.to_string();
    match error {
        error if error.is_denied() => Failure::rights(message),
        error if error.is_gone() => Failure::target(message),
        _ => Failure { status: 1, message }.into(),
    }
}

/// Why the kernel may undo by itself what is done here, or what else is to be known.
pub fn khugepaged_note(snapshot: &Snapshot, blocks: &[PlannedBlock]) -> Option<String> {
    let mode = host::thp_mode().unwrap_or_default();
    let smaps = match &snapshot.os.smaps {
        Some(Ok(smaps)) => smaps.as_slice(),
        _ => &[],
    };
    let is_advised = |block: &PlannedBlock| {
        let after = smaps.partition_point(|smap| smap.range.end <= block.range.start);
        smaps.get(after).is_some_and(|smap: &smaps::Smap| smap.has_flag("hg"))
    };
    let is_private = blocks.iter().any(|block| !block.is_shared);
    match mode.as_str() {
        "always" if is_private => Some(
            "transparent_hugepage/enabled is always: khugepaged puts dense blocks on huge pages again, in time".to_string(),
        ),
        "madvise" if blocks.iter().any(is_advised) => Some(
            "the JVM asked for huge pages here (-XX:+UseTransparentHugePages): khugepaged puts blocks on them again, in time"
                .to_string(),
        ),
        _ => None,
    }
}

/// A bar on a terminal, nothing elsewhere.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(what: &'static str) -> Bar {
        Bar(progress::bar(what, 0, "blocks of 2 MiB"))
    }
}

impl Watch for Bar {
    fn step(&mut self, seen: usize, _reached: usize, blocks: usize) {
        self.0.set_length(blocks as u64);
        self.0.set_position(seen as u64);
        if seen == blocks {
            self.0.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_by_their_names() {
        assert_eq!(areas("gc,java_heap,gc").map(|one| one.0), Ok(vec![Area::JavaHeap, Area::Gc]));
        assert_eq!(areas("all").map(|one| one.0.len()), Ok(Area::ALL.len()));
        assert!(areas("heap").expect_err("no such area").0.contains("java_heap, gc"));
        assert_eq!(areas(DEFAULT_AREAS).map(|one| one.0.len()), Ok(3));
    }

    #[test]
    fn shares_in_percent() {
        assert_eq!((share("10%"), share("0.5 %"), share("100")), (Ok(0.1), Ok(0.005), Ok(1.0)));
        for bad in ["", "%", "-1%", "101%", "x", "NaN"] {
            assert!(share(bad).is_err(), "{bad}");
        }
        assert!(cpu_share("0").is_err() && cpu_share("0.1%").is_ok());
    }
}
