//! What was promised to a JVM next to what the page tables say, reservation by reservation, and why where they differ.
//!
//! A promise is a plan, or what the JVM's own flags ask for. Pages of hugetlb are a JVM's from the moment it maps them, so
//! what is mapped counts, touched or not; transparent ones exist only once memory is touched, so of those, what is in memory
//! counts. What is never touched breaks no promise.

mod by_flags;
mod causes;
mod found;
mod options;
mod pool;
#[cfg(test)]
mod tests;

use super::messages;
use super::types::{Mode, Need, PAGE_2M, Plan, Subject};
use crate::base::{Bytes, PAGE};
use crate::jvm::hotspot::report::large_pages::Logged;
use crate::map::page_claims::{Asked, Claim};
use crate::map::page_use::{PageUse, Provider};
use crate::map::why::Finding;
use crate::map::{Area, MemoryMap};
use crate::os::machine::huge_page;
use crate::snapshot::Snapshot;
pub use by_flags::by_flags;
pub use causes::Cause;
use found::Taken;
use schemars::JsonSchema;
use serde::Serialize;

/// The share of resident memory on large pages that keeps a promise of transparent ones, in per mille: a kernel takes one back
/// here and there (reclaim, a fork).
const KEPT_PER_MILLE: u128 = 990;

/// What was promised.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Promise {
    /// The file of the plan; `None`: the JVM's own flags.
    pub plan: Option<String>,
    pub mode: Mode,
    #[serde(skip)]
    pub needs: Vec<Need>,
    /// What the plan was made for.
    #[serde(skip)]
    pub subject: Option<Subject>,
    pub jvm_options: Vec<String>,
}

impl Promise {
    pub fn of_plan(plan: &Plan, file: impl Into<String>) -> Promise {
        Promise {
            plan: Some(file.into()),
            mode: plan.mode,
            needs: plan.needs.clone(),
            subject: Some(plan.subject.clone()),
            jvm_options: plan.jvm_options.clone(),
        }
    }

    /// What the flags of a JVM ask for; `None`: no large pages.
    pub fn mode_of(asked: &Asked) -> Option<Mode> {
        match asked {
            asked if asked.is_for_transparent() => Some(Mode::Thp),
            Asked { hugetlb: true, page_bytes: Some(bytes), .. } if *bytes >= 1 << 30 => {
                Some(Mode::HugeTlb1G)
            }
            Asked { hugetlb: true, page_bytes: Some(PAGE_2M), .. } => Some(Mode::HugeTlb2M),
            Asked { hugetlb: true, .. } => Some(Mode::hugetlb()),
            _ => None,
        }
    }

    /// Whether it is about what a JVM reserves; else it is about its libraries.
    pub fn is_of_vm(&self) -> bool {
        self.needs.iter().any(|need| crate::map::why::is_vms(need.area))
    }
}

/// Everything that is looked at.
pub struct Look<'a> {
    pub snapshot: &'a Snapshot,
    pub map: &'a MemoryMap,
    pub findings: &'a [Finding],
    /// The JVM's own lines about its reservations.
    pub logged: &'a [Logged],
    pub claims: &'a [Claim],
}

/// A message in a log.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Said {
    pub log: String,
    /// The log is older than the process: the line may be of an earlier one.
    #[serde(rename = "may_be_of_an_earlier_process")]
    pub may_be_older: bool,
    #[serde(flatten)]
    pub found: messages::Found,
}

/// One reservation.
#[derive(Clone, Debug)]
pub struct Row {
    pub need: Need,
    /// Whose memory it is: numbers of `MemoryMap::owners`.
    pub owners: Vec<usize>,
    /// Pages of hugetlb that are mapped for it.
    pub taken: Taken,
    /// What is in memory of it.
    pub used: PageUse,
    /// Promised and not there, in pages of the promised size.
    pub missing_pages: u64,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Met,
    /// Transparent pages, and nothing of it is in memory yet.
    NotTouched,
    NotMet,
    /// The account does not distinguish it; the sums say that all pages are there.
    #[serde(rename = "met_in_sum")]
    InTheSum,
    /// The account does not distinguish it, or the JVM does not have it.
    NotFound,
    /// No large pages were promised.
    Small,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::NotTouched => "not touched",
            Verdict::NotMet => "NOT MET",
            Verdict::InTheSum => "met in sum",
            Verdict::NotFound => "not found",
            Verdict::Small => "small",
        }
    }
}

/// Pages of one size, promised and there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Total {
    pub page_bytes: Bytes,
    pub promised_pages: u64,
    /// Pages of hugetlb: mapped by the whole process; transparent ones: in memory, of the rows.
    pub found_pages: u64,
    pub missing_pages: u64,
    /// In memory, of the rows.
    pub resident_bytes: Bytes,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Report {
    pub met: bool,
    pub rows: Vec<Row>,
    pub totals: Vec<Total>,
    /// Why it is not met, the surest first.
    pub causes: Vec<Cause>,
    /// What is worth knowing and breaks no promise.
    pub notes: Vec<Cause>,
}

/// The whole comparison.
pub fn verify(promise: &Promise, look: &Look) -> Report {
    let mut rows = found::rows(promise, look);
    if promise.mode != Mode::Thp {
        settle_by_sum(&mut rows, look);
    }
    let totals = totals(promise.mode, &rows, look);
    let mismatches = options::mismatches(promise, look);
    let is_kept = |row: &Row| !matches!(row.verdict, Verdict::NotMet);
    let met = rows.iter().all(is_kept) && !mismatches.iter().any(|cause| cause.breaks_promise);
    let (causes, notes) = causes::all(promise, look, &rows, mismatches, met);
    Report { met, rows, totals, causes, notes }
}

/// A part that the account does not distinguish is there if the process has as many pages as were promised in all.
fn settle_by_sum(rows: &mut [Row], look: &Look) {
    let all = found::of_process(look);
    let mut sizes: Vec<Bytes> =
        rows.iter().map(|row| row.need.page_bytes).filter(|size| *size > PAGE).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let of_size = |row: &&Row| row.need.page_bytes == size;
        let promised = sum(rows.iter().filter(of_size).map(|row| row.need.pages_at_least));
        let enough = all.pages_of(size) >= promised;
        for row in
            rows.iter_mut().filter(|row| row.need.page_bytes == size && row.verdict == Verdict::NotFound)
        {
            row.verdict = if enough { Verdict::InTheSum } else { Verdict::NotMet };
            row.missing_pages = if enough { 0 } else { row.need.pages_at_least };
        }
    }
}

fn totals(mode: Mode, rows: &[Row], look: &Look) -> Vec<Total> {
    let mut totals: Vec<Total> = Vec::new();
    for row in rows.iter().filter(|row| row.verdict != Verdict::Small) {
        let page_bytes = row.need.page_bytes;
        let index = totals.iter().position(|total| total.page_bytes == page_bytes).unwrap_or_else(|| {
            let (promised_pages, found_pages, missing_pages) = (0, 0, 0);
            totals.push(Total { page_bytes, promised_pages, found_pages, missing_pages, resident_bytes: 0 });
            totals.len() - 1
        });
        let total = &mut totals[index];
        total.promised_pages = total.promised_pages.saturating_add(row.need.pages);
        total.missing_pages = total.missing_pages.saturating_add(row.missing_pages);
        total.resident_bytes = total.resident_bytes.saturating_add(row.used.resident_bytes);
        if mode == Mode::Thp {
            total.found_pages = total.found_pages.saturating_add(transparent(&row.used) / page_bytes.max(1));
        }
    }
    if mode != Mode::Thp {
        let all = found::of_process(look);
        totals.iter_mut().for_each(|total| total.found_pages = all.pages_of(total.page_bytes));
    }
    totals.sort_by_key(|total| std::cmp::Reverse(total.page_bytes));
    totals
}

/// Bytes in memory on transparent pages that one entry maps.
fn transparent(used: &PageUse) -> Bytes {
    used.on(|provider, page_bytes| provider == Provider::Transparent && page_bytes >= huge_page())
}

/// A plan may hold any number.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Whether a share is as good as all.
fn is_kept(part: Bytes, whole: Bytes) -> bool {
    u128::from(part) * 1000 >= u128::from(whole) * KEPT_PER_MILLE
}

/// "Java heap", or "GC tables: mark bitmap".
fn name(need: &Need) -> String {
    let title = need.area.title();
    match need.area {
        Area::JavaHeap => title.to_string(),
        _ if need.part.to_lowercase() == title.to_lowercase() => title.to_string(),
        _ => need.part.clone(),
    }
}
