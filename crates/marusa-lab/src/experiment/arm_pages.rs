//! The pages of an arm: what its options ask for, the pool or the settings that this needs (planned, applied through the one door,
//! and undone when the guard goes, also by Ctrl-C), and whether a JVM of the arm got them, by its page tables. An arm that did
//! not get its pages says nothing about them, so it does not count.

mod look;

use crate::act::ask_jdk::{self, AskError};
use crate::act::door::identity;
use crate::act::door::journal::PlanMark;
use crate::act::door::{self, DoorError, Linux, Outcome, Request, Store, UndoReceipt};
use crate::act::signals::Blocked;
use crate::base::{Bytes, Gap, Refused, Why, refuse, rfc3339, word_of};
use crate::os::cpus;
use crate::os::host_memory::HostMemory;
use crate::os::hugetlb;
use crate::os::process::Process;
use crate::os::thp;
use crate::pages::feasible::{Preference, size_name};
use crate::pages::plan;
use crate::pages::request::Request as PlanRequest;
use crate::pages::types::{Change, Feasible, Mode, Step, Subject, Vm};
use crate::pages::{options as page_options, subject};
use schemars::JsonSchema;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::SystemTime;

pub use look::{Verified, verified, verify};

/// Which pages the heap of an arm is to lie on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, serde::Serialize, serde::Deserialize,
)]
pub enum PageMode {
    /// As it comes: nothing is asked for, nothing is demanded.
    #[serde(rename = "as-is")]
    AsIs,
    #[serde(rename = "4k")]
    Small,
    #[serde(rename = "thp")]
    Thp,
    #[serde(rename = "hugetlb-2m")]
    HugeTlb2M,
    #[serde(rename = "hugetlb-1g")]
    HugeTlb1G,
}

impl PageMode {
    pub const ALL: [PageMode; 5] =
        [PageMode::AsIs, PageMode::Small, PageMode::Thp, PageMode::HugeTlb2M, PageMode::HugeTlb1G];

    pub fn name(self) -> String {
        word_of(&self)
    }

    pub fn plan_mode(self) -> Option<Mode> {
        match self {
            PageMode::AsIs | PageMode::Small => None,
            PageMode::Thp => Some(Mode::Thp),
            PageMode::HugeTlb2M => Some(Mode::HugeTlb2M),
            PageMode::HugeTlb1G => Some(Mode::HugeTlb1G),
        }
    }

    /// What the options of a HotSpot JVM ask for: the last of each counts, and transparent pages win over the pool
    /// (src/hotspot/os/linux/os_linux.cpp, `os::large_page_init`).
    pub fn of_options(options: &[String]) -> PageMode {
        let is_on = |name: &str| {
            options.iter().rev().find_map(|option| {
                let text = option.strip_prefix("-XX:")?;
                (text.get(1..)? == name && text.starts_with(['+', '-'])).then(|| text.starts_with('+'))
            })
        };
        let mut sizes = options.iter().filter_map(|option| option.strip_prefix("-XX:LargePageSizeInBytes="));
        let size = sizes.next_back().and_then(crate::base::bytes_of).unwrap_or(0);
        match (is_on("UseTransparentHugePages"), is_on("UseLargePages")) {
            (Some(true), _) => PageMode::Thp,
            (_, Some(true)) if size >= 1 << 30 => PageMode::HugeTlb1G,
            (_, Some(true)) => PageMode::HugeTlb2M,
            _ => PageMode::AsIs,
        }
    }
}

impl fmt::Display for PageMode {
    fn fmt(&self, into: &mut fmt::Formatter) -> fmt::Result {
        into.write_str(&self.name())
    }
}

impl FromStr for PageMode {
    type Err = Refused;
    fn from_str(text: &str) -> Result<PageMode, Refused> {
        let found = PageMode::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            Refused(format!("'{text}' is none of {}", PageMode::ALL.map(PageMode::name).join(", ")))
        })
    }
}

/// Why an arm cannot have its pages.
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    #[error("{0}")]
    Jdk(#[from] AskError),
    #[error("{0}")]
    Read(Gap),
    /// The host cannot give them, or the JVM cannot take them.
    #[error("{0}")]
    NoPlan(#[from] Refused),
    #[error("{0}")]
    Door(#[from] DoorError),
}

/// Options that choose pages: a JVM that is only asked for its sizes gets none of them.
fn chooses_pages(option: &str) -> bool {
    let names =
        ["UseLargePages", "UseTransparentHugePages", "UseHugeTLBFS", "UseSHM", "LargePageSizeInBytes"];
    let text = option.strip_prefix("-XX:").map(|text| text.trim_start_matches(['+', '-']));
    text.is_some_and(|text| names.contains(&text.split('=').next().unwrap_or(text)))
}

/// The JVM that a JDK starts with these options, by asking that JDK: collector, heap and sizes.
pub fn subject(home: &Path, options: &[String]) -> Result<Subject, ArmError> {
    let home = ask_jdk::home(home)?;
    let options: Vec<String> = options.iter().filter(|option| !chooses_pages(option)).cloned().collect();
    let release = ask_jdk::release(&home);
    let answer = ask_jdk::flags(&home, &options)?;
    let unknown = || {
        let gap = Gap::new(format!("which JDK {} is", home.display()), Why::NotInThisRuntime);
        ArmError::Read(gap.hint("its file `release` and `java -version` do not say"))
    };
    let (vm, feature, version) =
        subject::release_of(release.as_deref(), &answer.version).ok_or_else(unknown)?;
    if vm != Vm::HotSpot {
        let gap = Gap::new(format!("the {} pages", home.display()), Why::NotInThisRuntime);
        return Err(ArmError::Read(gap.hint("OpenJ9 has other options than HotSpot")));
    }
    let me = Process::own()
        .map_err(|error| ArmError::Read(Gap::new("/proc/self", Why::Denied).hint(error.to_string())))?;
    let cpus = cpus::of(&me, true).map_err(ArmError::Read)?.count();
    let text = home.display().to_string();
    let mut subject =
        subject::of_flags(&answer.flags, feature, version, text, cpus).map_err(ArmError::Read)?;
    let given = subject.flags.get("ActiveProcessorCount").and_then(|text| text.parse().ok());
    subject.cpus = given.filter(|cpus| *cpus > 0).unwrap_or(subject.cpus);
    Ok(subject)
}

/// The options by which a JVM takes these pages.
pub fn options(subject: &Subject, mode: PageMode) -> Result<Vec<String>, ArmError> {
    let default_huge = host()?.meminfo.default_huge_bytes;
    match (mode, mode.plan_mode()) {
        (PageMode::AsIs, _) => Ok(Vec::new()),
        (_, Some(mode)) => Ok(page_options::of_pages(subject, mode, default_huge, false)?),
        (_, None) => Ok(["-XX:-UseLargePages", "-XX:-UseTransparentHugePages"].map(String::from).to_vec()),
    }
}

/// How the pool of an arm comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// What the reservations of the JVM need, exactly.
    #[default]
    Auto,
    /// A number of free pages.
    Pages(u64),
    /// The host stays as it is.
    Leave,
}

fn host() -> Result<HostMemory, ArmError> {
    let me = Process::own()
        .map_err(|error| ArmError::Read(Gap::new("/proc/self", Why::Denied).hint(error.to_string())))?;
    HostMemory::read(&me).map_err(ArmError::Read)
}

/// What would be changed on the host for a JVM of this arm, step by step; nothing where all is there. `subject`: `None` where it is
/// not known which JVM will start: an exact pool cannot be planned then.
pub fn steps(subject: Option<&Subject>, mode: PageMode, pool: Pool) -> Result<Vec<Step>, ArmError> {
    let host = host()?;
    let transparent = |of: fn(&thp::Thp) -> Vec<Step>| host.pages.thp.as_ref().map(of).unwrap_or_default();
    match (mode.plan_mode(), pool, subject) {
        (_, Pool::Leave, _) => Ok(Vec::new()),
        (None, ..) if mode == PageMode::AsIs => Ok(Vec::new()),
        (None, ..) => Ok(transparent(small_steps)),
        (Some(mode @ (Mode::HugeTlb2M | Mode::HugeTlb1G)), Pool::Pages(pages), _) => {
            given_pool(&host, mode.page_bytes(), pages)
        }
        (Some(mode), _, Some(subject)) => planned(subject.clone(), mode, &host),
        (Some(Mode::Thp), ..) => Ok(transparent(asked_steps)),
        _ => Err(ArmError::NoPlan(
            "how many huge pages it needs cannot be planned, since the command is not `java` itself: say how many by --pages \
             hugetlb-2m:COUNT"
                .into(),
        )),
    }
}

fn asked_steps(thp: &thp::Thp) -> Vec<Step> {
    let step = Step {
        what: "huge pages on request (madvise)".to_string(),
        why: "the JVM turns its huge pages off where this file says never".to_string(),
        risk: Some("other programs that ask for huge pages (madvise) get them too".to_string()),
        change: Change::Choose { file: format!("{}/enabled", thp::DIRECTORY), word: "madvise".to_string() },
    };
    if thp.enabled == "never" { vec![step] } else { Vec::new() }
}

fn planned(subject: Subject, mode: Mode, host: &HostMemory) -> Result<Vec<Step>, ArmError> {
    let request = PlanRequest {
        subject,
        mode: Some(mode),
        // Only of a pool can be known that the JVM will have its pages.
        preference: Preference::Pool,
        instances: 1,
        name: None,
        host,
        host_id: identity::here(),
        made_at: rfc3339(SystemTime::now()),
        made_by: made_by(),
        launch: Vec::new(),
        recommended: Vec::new(),
        running: None,
        shm: false,
        group: None,
        unit: None,
        gaps: Vec::new(),
    };
    let plan = plan::make(&request)?;
    match plan.outlook.feasible {
        Feasible::No => Err(ArmError::NoPlan(plan.outlook.feasible_why.into())),
        _ => Ok(plan.steps),
    }
}

/// Where all processes get huge pages without asking, an arm on small pages is not possible without changing that.
fn small_steps(thp: &thp::Thp) -> Vec<Step> {
    let size = format!("hugepages-{}kB", thp.pmd_bytes >> 10);
    let of_size = thp.sizes.iter().find(|one| one.bytes == thp.pmd_bytes);
    let size_is_always = of_size.is_some_and(|one| one.enabled.as_deref() == Some("always"));
    let files =
        [(thp.enabled == "always", "enabled".to_string()), (size_is_always, format!("{size}/enabled"))];
    let step = |file: String| Step {
        what: "huge pages only on request (madvise)".to_string(),
        why: "an arm on small pages would get huge ones without asking".to_string(),
        risk: Some("until then other programs get huge pages only on request".to_string()),
        change: Change::Choose { file: format!("{}/{file}", thp::DIRECTORY), word: "madvise".to_string() },
    };
    files.into_iter().filter(|(wanted, _)| *wanted).map(|(_, file)| step(file)).collect()
}

/// The steps that free a number of pages of a size, for memory that is not a JVM's.
pub fn pool_steps(page_bytes: Bytes, pages: u64) -> Result<Vec<Step>, ArmError> {
    given_pool(&host()?, page_bytes, pages)
}

fn given_pool(host: &HostMemory, page_bytes: Bytes, pages: u64) -> Result<Vec<Step>, ArmError> {
    let name = size_name(page_bytes);
    let pool = host.pages.pool(page_bytes);
    let pool = pool.ok_or_else(|| ArmError::NoPlan(format!("this host has no {name} huge pages").into()))?;
    let missing = pages.saturating_sub(pool.available());
    if missing == 0 {
        return Ok(Vec::new());
    }
    if missing.saturating_mul(page_bytes) > host.available_bytes() {
        refuse!(
            "{missing} more {name} pages are {} MiB, and this host has only {} MiB available",
            missing.saturating_mul(page_bytes >> 20),
            host.available_bytes() >> 20
        );
    }
    let file = format!("{}/hugepages-{}kB/nr_hugepages", hugetlb::DIRECTORY, page_bytes >> 10);
    Ok(vec![Step {
        what: format!("{missing} more {name} huge pages in the pool"),
        why: format!("{pages} free ones were asked for"),
        risk: Some(format!(
            "{} MiB are unavailable to other processes until undo",
            missing * (page_bytes >> 20)
        )),
        change: Change::Add { file, by: missing },
    }])
}

fn made_by() -> String {
    format!("marusa {}", env!("CARGO_PKG_VERSION"))
}

/// The host as an arm needs it. While this lives a signal to end waits; when it goes, the host is restored.
pub struct Prepared {
    machine: Linux,
    store: Store,
    /// The run in the state directory; `None`: nothing had to change.
    pub id: Option<String>,
    _blocked: Blocked,
}

/// Makes the steps, with a journal in `state` by which `marusa pages undo` finds them if we are killed.
pub fn prepare(steps: Vec<Step>, state: &Path, name: &str) -> Result<Prepared, ArmError> {
    let blocked = Blocked::start();
    let (machine, store) = (Linux::default(), Store::new(state));
    let mut prepared = Prepared { machine, store, id: None, _blocked: blocked };
    if steps.is_empty() {
        return Ok(prepared);
    }
    let text = format!("{steps:?}");
    let request = Request {
        plan: PlanMark::of(name, text.as_bytes()),
        steps,
        persist: false,
        drop_caches: false,
        again: true,
        made_by: made_by(),
    };
    let receipt = door::apply(&prepared.machine, &prepared.store, &request)?;
    match receipt.outcome {
        Outcome::Applied | Outcome::AlreadyApplied { .. } => {
            prepared.id = Some(receipt.id);
            Ok(prepared)
        }
        Outcome::TakenBack { why, complete: true, .. } => Err(why.into()),
        Outcome::TakenBack { why, .. } => Err(DoorError::Broken(format!(
            "{why}; and not all could be restored: `marusa pages undo {}`",
            receipt.id
        ))
        .into()),
    }
}

impl Prepared {
    /// Puts the host back; `None` where nothing was changed.
    pub fn undo(mut self) -> Result<Option<UndoReceipt>, DoorError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<Option<UndoReceipt>, DoorError> {
        let Some(id) = self.id.take() else { return Ok(None) };
        let receipt = door::undo(&self.machine, &self.store, &id, false)?;
        match receipt.complete {
            true => Ok(Some(receipt)),
            false => Err(DoorError::No(format!(
                "not all that was changed could be restored: `marusa pages undo {id}` continues"
            ))),
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // What stays behind is in the journal, which `marusa pages undo --list` shows.
        let _ = self.put_back();
    }
}

#[cfg(test)]
#[path = "arm_pages_tests.rs"]
mod tests;
