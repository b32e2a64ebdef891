//! Why a promise is not kept, the surest first: the JVM is another one, was started with other options, or the host did not give.

use super::{Look, Promise, Row, Verdict, name, pool};
use crate::base::Bytes;
use crate::map::page_claims::{Asked, Claim, Verdict as Truth};
use crate::map::require::Wanted;
use crate::map::why::{self, CauseId, Held, Reason};
use crate::os::machine::base_page;
use crate::pages::types::Mode;
use std::collections::BTreeSet;

/// Reasons of the page tables that are named.
const REASONS_MAX: usize = 4;

/// One cause, or one thing that is worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Cause {
    pub code: CauseId,
    pub what: String,
    /// What to do; empty where there is nothing to do.
    pub next: String,
    /// On pages other than promised for this; 0 where that makes no sense.
    pub bytes: Bytes,
    /// The promise was made to another JVM: it is not kept, whatever the pages are.
    #[serde(skip)]
    pub breaks_promise: bool,
}

impl Cause {
    pub fn new(code: CauseId, what: impl Into<String>) -> Cause {
        Cause { code, what: what.into(), next: String::new(), bytes: 0, breaks_promise: false }
    }
    pub fn next(mut self, next: String) -> Cause {
        self.next = next;
        self
    }
    pub fn bytes(mut self, bytes: Bytes) -> Cause {
        self.bytes = bytes;
        self
    }
    pub fn breaking(mut self) -> Cause {
        self.breaks_promise = true;
        self
    }
}

/// Causes of what is not met, and notes.
pub fn all(
    promise: &Promise,
    look: &Look,
    rows: &[Row],
    mismatches: Vec<Cause>,
    met: bool,
) -> (Vec<Cause>, Vec<Cause>) {
    let mut notes = notes(look, rows);
    if met {
        notes.splice(0..0, mismatches);
        return (Vec::new(), notes);
    }
    let mut causes = mismatches;
    if promise.plan.is_none() && Asked::of(look.snapshot).refused {
        causes.push(Cause::new(
            CauseId::SwitchedOff,
            "the JVM found no large pages when it started, and switched its flag off",
        ));
    }
    let is_explained = causes
        .iter()
        .any(|cause| cause.code == CauseId::OptionsMissing || cause.code == CauseId::OptionsDiffer);
    if promise.mode == Mode::Thp {
        causes.extend(of_page_tables(look, rows, Wanted::Transparent, is_explained));
    } else {
        causes.extend(of_hugetlb(promise, look, rows, is_explained));
    }
    (causes, notes)
}

fn of_hugetlb(promise: &Promise, look: &Look, rows: &[Row], is_explained: bool) -> Vec<Cause> {
    let asked = Asked::of(look.snapshot);
    let lacking = |row: &&Row| row.verdict == Verdict::NotMet;
    let sizes: BTreeSet<Bytes> = rows.iter().filter(lacking).map(|row| row.need.page_bytes).collect();
    let mut causes = Vec::new();
    for page_bytes in sizes.into_iter().rev().filter(|size| *size > base_page()) {
        if asked.hugetlb {
            causes.extend(pool::cause(promise, look, rows, page_bytes));
        } else {
            let of_size: Vec<Row> = rows
                .iter()
                .filter(lacking)
                .filter(|row| row.need.page_bytes == page_bytes)
                .cloned()
                .collect();
            causes.extend(of_page_tables(look, &of_size, Wanted::Hugetlb(Some(page_bytes)), is_explained));
        }
    }
    causes
}

/// What `map` says of the same memory. What a missing option explains is not reported twice.
fn of_page_tables(look: &Look, rows: &[Row], wanted: Wanted, is_explained: bool) -> Vec<Cause> {
    let owners = &look.map.owners;
    let lacking: Vec<&Row> = rows.iter().filter(|row| row.verdict == Verdict::NotMet).collect();
    let meant: Vec<bool> = owners
        .iter()
        .map(|owner| lacking.iter().any(|row| row.owners.iter().any(|index| owners[*index] == *owner)))
        .collect();
    let is_meant = |area, part: &str| {
        owners.iter().zip(&meant).any(|(owner, meant)| *meant && owner.area == area && owner.part == part)
    };
    let findings = look.findings.iter().filter(|finding| is_meant(finding.area, &finding.part));
    let held = why::held_back(wanted, look.snapshot, look.map, &meant, findings);
    let is_cause = |held: &Held| match &held.reason {
        Reason::NeverTouched | Reason::Edge | Reason::TooSmall | Reason::Unaligned | Reason::PrivateCopy => {
            false
        }
        Reason::NotAdvised { .. } | Reason::HugetlbNotAsked { .. } | Reason::HugetlbInstead { .. } => {
            !is_explained
        }
        Reason::NoHugetlbForIt { .. } => false,
        _ => true,
    };
    let parts: Vec<String> = lacking.iter().map(|row| name(&row.need)).collect();
    let cause = |held: Held| {
        let what = format!("{} ({})", held.reason.text(), parts.join(", "));
        let next = match held.reason {
            Reason::NotYet { .. } | Reason::Split => {
                format!("`marusa pages collapse {}`; or {}", look.snapshot.os.process.pid, held.remedy)
            }
            _ => held.remedy.clone(),
        };
        Cause::new(held.reason.id(), what).next(next).bytes(held.bytes)
    };
    held.into_iter().filter(is_cause).take(REASONS_MAX).map(cause).collect()
}

fn notes(look: &Look, rows: &[Row]) -> Vec<Cause> {
    let mut notes = Vec::new();
    let untouched: Vec<String> =
        rows.iter().filter(|row| row.verdict == Verdict::NotTouched).map(|row| name(&row.need)).collect();
    if !untouched.is_empty() {
        let what = format!("not in memory yet, so on no pages of any size: {}", untouched.join(", "));
        notes.push(
            Cause::new(CauseId::NotTouched, what)
                .next("none needed; -XX:+AlwaysPreTouch touches a heap at start".into()),
        );
    }
    let absent: Vec<String> =
        rows.iter().filter(|row| row.verdict == Verdict::NotFound).map(|row| name(&row.need)).collect();
    if !absent.is_empty() {
        let what =
            format!("not distinguished by the account, or absent from this JVM: {}", absent.join(", "));
        notes.push(Cause::new(CauseId::NotFound, what));
    }
    let mut wrong = Vec::new();
    // What its flags ask for is the promise itself.
    let is_false = |claim: &&Claim| claim.verdict == Truth::False && claim.source.starts_with("-Xlog");
    for claim in look.claims.iter().filter(is_false) {
        wrong.push(format!("{}: {} (it is {})", claim.about, claim.says, claim.is.text()));
    }
    if !wrong.is_empty() {
        notes.push(Cause::new(
            CauseId::FalseReport,
            format!("the JVM's log says otherwise: {}", wrong.join("; ")),
        ));
    }
    notes
}
