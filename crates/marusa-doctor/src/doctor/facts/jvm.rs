//! One JVM: the snapshot and the account, and what limits it.

use super::Bounds;
use crate::base::{Bytes, Gap, Known, Why};
use crate::jvm::hotspot::report::large_pages::{self, Logged};
use crate::jvm::hotspot::version;
use crate::jvm::{Gc, JvmView, log_options};
use crate::map::bloat::Bloat;
use crate::map::model::{Amounts, AreaAccount};
use crate::map::{self, Account, Area, MemoryMap};
use crate::os::cpus::{self, Cpus};
use crate::os::group_memory::{self, GroupMemory};
use crate::os::process::Process;
use crate::os::{numa, output, zeros};
use crate::snapshot::forks::{self, Forker};
use crate::snapshot::{self, Snapshot, Want};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct JvmFacts {
    pub pid: i32,
    /// With page sizes, smaps and settings (`Want`).
    pub snapshot: Snapshot,
    pub map: MemoryMap,
    pub account: Account,
    pub cpus: Known<Cpus>,
    /// Nodes of memory that it may use (Mems_allowed_list of /proc/PID/status).
    pub allowed_nodes: Known<Vec<u32>>,
    /// What it logged of its pages when it started (-Xlog:pagesize), where its output or log is a file.
    pub logged: Vec<Logged>,
    /// The memory limit that leaves least; `None`: there is none.
    pub group: Known<Option<GroupMemory>>,
    /// Variables of the environment that rules look at (`ENVIRONMENT`).
    pub environment: Known<BTreeMap<String, String>>,
    /// Libraries that can start processes by `fork` themselves; of a running JVM alone.
    pub forkers: Vec<Forker>,
    /// Pages of zeros in large pages and stacks; never of a file, which does not keep what memory holds.
    pub bloat: Known<Bloat>,
    pub bounds: Bounds,
    pub gaps: Vec<Gap>,
}

impl JvmFacts {
    /// Reads one JVM, with all that rules ask for; where they are wanted with the holders of malloc's blocks and of buffers, which
    /// take some seconds for 2 GB of heap.
    pub fn read(process: &Process, holders: bool) -> Known<JvmFacts> {
        let want = Want { page_sizes: true, smaps: true, holders, buffers: holders, ..Want::default() };
        let mut snapshot = snapshot::take(process, want)?;
        snapshot.taken.page_settings = Some(snapshot::page_settings::read(process, &snapshot));
        let found = zeros::read(process, &snapshot.os, &snapshot.stacks(), zeros::Effort::default());
        let forkers = forks::read(process, &snapshot);
        let mut facts = JvmFacts { forkers, ..JvmFacts::of(process.pid, snapshot, Some(process)) };
        facts.bloat = found.map(|found| Bloat::of(&facts.snapshot.taken.kernel, &facts.map, &found));
        match &facts.bloat {
            Ok(bloat) => facts.gaps.extend(bloat.gaps.iter().cloned()),
            Err(gap) => facts.gaps.push(gap.clone()),
        }
        if holders && facts.account.holders.is_none() {
            let gap = facts.snapshot.holders_given_up().cloned();
            facts.gaps.push(gap.unwrap_or(Gap::new("who holds malloc's blocks", Why::NotInThisRuntime)));
        }
        Ok(facts)
    }

    /// From a snapshot that was taken or kept; without a process the kernel's own limits are gaps.
    pub fn of(pid: i32, snapshot: Snapshot, process: Option<&Process>) -> JvmFacts {
        let map = map::join(&snapshot);
        let absent = |what: &str| Gap::new(what, Why::NotRecorded);
        let above = snapshot.jvm.as_ref().is_ok_and(sees_groups_above);
        let cpus = process.map_or_else(|| Err(absent("CPUs")), |process| cpus::of(process, above));
        let mut gaps = map.gaps.clone();
        gaps.extend(cpus.as_ref().err().cloned());
        let status = &snapshot.os.status;
        let (threads, uid) = (status.threads.unwrap_or(0), status.uid.unwrap_or(0));
        let bounds = process.map(|process| Bounds::read(process, threads, uid, &mut gaps));
        let group = process.map_or_else(|| Err(absent("cgroup")), group_memory::of);
        gaps.extend(group.as_ref().err().cloned());
        JvmFacts {
            pid,
            account: Account::of(&snapshot, &map),
            snapshot,
            map,
            cpus,
            allowed_nodes: process.map_or_else(|| Err(absent("nodes of memory")), allowed_nodes),
            logged: process.map_or_else(Vec::new, logged),
            group,
            environment: process.map_or_else(|| Err(absent("environment")), environment),
            forkers: Vec::new(),
            bloat: Err(absent("pages of zeros")),
            bounds: bounds.unwrap_or_default(),
            gaps,
        }
    }

    pub fn jvm(&self) -> Option<&JvmView> {
        self.snapshot.jvm.as_ref().ok()
    }
    pub fn major(&self) -> Option<u32> {
        self.jvm()?.major.clone().ok()
    }
    pub fn gc(&self) -> Option<Gc> {
        self.jvm()?.gc.clone().ok()
    }
    /// A flag of the VM, in the text of -XX:+PrintFlagsFinal.
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.jvm()?.flags.get(name).map(String::as_str)
    }
    pub fn is_on(&self, name: &str) -> bool {
        self.flag(name) == Some("true")
    }
    pub fn number(&self, name: &str) -> Option<u64> {
        self.flag(name)?.parse().ok()
    }
    /// Zeros where the area has no byte of address space.
    pub fn area(&self, area: Area) -> Amounts {
        self.account.area(area).map_or_else(|| Amounts::sum([]), |area| area.amounts.clone())
    }
    /// All areas but the Java heap.
    pub fn areas_outside_the_heap(&self) -> impl Iterator<Item = &AreaAccount> {
        self.account.areas.iter().filter(|area| area.area != Area::JavaHeap)
    }
    pub fn resident_bytes(&self) -> Bytes {
        self.account.totals.resident_bytes
    }
}

fn allowed_nodes(process: &Process) -> Known<Vec<u32>> {
    let status =
        process.text("status").map_err(|error| crate::os::process::gap("/proc/PID/status", &error))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"));
    list.map(numa::list).ok_or_else(|| Gap::new("nodes of memory", Why::NotInThisKernel))
}

fn logged(process: &Process) -> Vec<Logged> {
    let names = log_options::log_files(&process.arguments().unwrap_or_default());
    output::all(process, &names).iter().flat_map(|log| large_pages::logged(&log.text)).collect()
}

/// Whether the limits of the groups above its own count for the JVM too: JDK 24 and later, and 21.0.9 (JDK-8322420).
fn sees_groups_above(view: &JvmView) -> bool {
    let update = || version::update(view.version.as_ref().ok()?);
    match view.major {
        Ok(21) => update().is_some_and(|update| update >= 9),
        Ok(major) => major >= 24,
        Err(_) => false,
    }
}

const ENVIRONMENT: [&str; 3] = ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "JAVA_TOOL_OPTIONS"];

/// Only the ones that rules look at: an environment holds secrets.
fn environment(process: &Process) -> Known<BTreeMap<String, String>> {
    let bytes =
        process.bytes("environ").map_err(|error| crate::os::process::gap("/proc/PID/environ", &error))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    let wanted = pairs.filter(|(name, _)| ENVIRONMENT.contains(name));
    Ok(wanted.map(|(name, value)| (name.to_string(), value.to_string())).collect())
}
