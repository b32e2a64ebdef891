//! What a JVM's own flags ask of large pages, held against its page tables, for the rules about large pages that were asked for
//! and not got. `pages::verify` finds what is missing and why; here one main cause is chosen, so that one rule speaks of it.

use super::facts::JvmFacts;
use super::types::{Evidence, Finding, Level, Remedy};
use crate::base::{Bytes, human};
use crate::map::Area;
use crate::map::page_claims::{self, Asked, Claim, Said, Verdict as Truth};
use crate::map::page_use::{PageUse, Provider, percent};
use crate::map::why::{self, CauseId, Reason};
use crate::os::machine::huge_page;
use crate::pages::Mode;
use crate::pages::verify::{self, Cause, Look, Promise, Verdict};

/// Less than this is not worth a word: four times what a second-level TLB of 2,048 entries of 4 KiB reaches, so that beyond it
/// the lack of large pages costs walks.
pub const TRANSPARENT_BYTES_MIN: Bytes = 32 << 20;
/// The percentage of the memory that was to be on transparent pages. Some is always late: khugepaged comes every ten seconds.
const TRANSPARENT_PERCENT_MIN: u64 = 10;
/// The least that is missing of requested pool pages; a smaller part is a table, not the heap.
const POOL_BYTES_MIN: Bytes = 16 << 20;
const POOL_PERCENT_MIN: u64 = 5;

/// The main cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A pool that was empty or too small.
    Pool,
    /// The same, and the JVM gave up on them all when it started.
    SwitchedOff,
    GroupLimit,
    /// prctl.
    ProcessDisabled,
    /// ZGC's heap is shared memory, for which `shmem_enabled` decides.
    SharedOff,
    OtherSize,
    /// Transparent pages for a part of the heap only.
    Split,
    /// Any other of transparent pages.
    Transparent,
}

/// A promise that is not kept.
pub struct Broken {
    pub kind: Kind,
    pub promise: Promise,
    /// The surest first.
    pub causes: Vec<Cause>,
    /// Promised from a pool, or in memory of what was to be on transparent pages.
    pub whole_bytes: Bytes,
    pub missing_bytes: Bytes,
    pub heap: PageUse,
    /// What the JVM itself says, and is not so.
    pub false_claims: Vec<Claim>,
}

/// `None`: nothing was asked for, everything was got, or the pages could not be read.
pub fn broken(jvm: &JvmFacts) -> Option<Broken> {
    let snapshot = &jvm.snapshot;
    snapshot.os.pages.as_ref().ok()?;
    let (promise, _) = verify::by_flags(snapshot, jvm.cpus.clone())?;
    let findings = why::findings(snapshot, &jvm.map);
    let claims = claims(jvm);
    let look = Look { snapshot, map: &jvm.map, findings: &findings, logged: &jvm.logged, claims: &claims };
    let report = verify::verify(&promise, &look);
    let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
    let not_met = report.rows.iter().filter(|row| row.verdict == Verdict::NotMet);
    let missing_bytes = sum(&mut not_met.map(|row| row.missing_pages.saturating_mul(row.need.page_bytes)));
    if missing_bytes == 0 {
        return None;
    }
    let whole = |total: &verify::Total| match promise.mode {
        Mode::Thp => total.resident_bytes,
        _ => total.promised_pages.saturating_mul(total.page_bytes),
    };
    let whole_bytes = sum(&mut report.totals.iter().map(whole));
    let heap = area_use(jvm, Area::JavaHeap);
    let kind = kind(jvm, promise.mode, &report.causes, &heap);
    let false_claims = claims.into_iter().filter(|claim| claim.verdict == Truth::False).collect();
    Some(Broken { kind, promise, causes: report.causes, whole_bytes, missing_bytes, heap, false_claims })
}

/// On which pages the memory of an area is.
pub fn area_use(jvm: &JvmFacts, area: Area) -> PageUse {
    PageUse::of(&jvm.snapshot, &jvm.map, |_, owner| jvm.map.owners[owner].area == area)
}

/// Bytes on 2 MiB pages or more.
pub fn large_bytes(used: &PageUse) -> Bytes {
    used.on(|_, page_bytes| page_bytes >= huge_page())
}

/// What keeps an area from larger pages: the reasons of most of it.
pub fn reasons(jvm: &JvmFacts, area: Area) -> Vec<Evidence> {
    const REASONS_MAX: usize = 3;
    let is_reason = |finding: &&why::Finding| finding.area == area && finding.reason != Reason::NeverTouched;
    let evidence = |finding: &why::Finding| {
        let what = format!("{}: {}", finding.part, finding.reason.text());
        Evidence::bytes(what, finding.bytes, "account: why not on larger pages")
    };
    why::findings(&jvm.snapshot, &jvm.map).iter().filter(is_reason).take(REASONS_MAX).map(evidence).collect()
}

/// What flags and the JVM's log claim.
pub fn claims(jvm: &JvmFacts) -> Vec<Claim> {
    let said = Said { logged: jvm.logged.clone(), ..Said::default() };
    page_claims::claims(&jvm.snapshot, &jvm.map, &said)
}

fn kind(jvm: &JvmFacts, mode: Mode, causes: &[Cause], heap: &PageUse) -> Kind {
    let refused = Asked::of(&jvm.snapshot).refused;
    let has = |id: CauseId| causes.iter().any(|cause| cause.code == id);
    if mode != Mode::Thp {
        return match () {
            () if has(CauseId::CgroupLimit) => Kind::GroupLimit,
            () if refused => Kind::SwitchedOff,
            () => Kind::Pool,
        };
    }
    let first = causes.iter().find(|cause| cause.code != CauseId::SwitchedOff).map(|cause| cause.code);
    let large =
        heap.on(|provider, page_bytes| provider == Provider::Transparent && page_bytes >= huge_page());
    let is_between = is_between(large, heap.resident_bytes);
    match first {
        _ if jvm.snapshot.os.status.thp_enabled == Some(false) => Kind::ProcessDisabled,
        Some(CauseId::PolicyOff) if why::has_shared_heap(&jvm.snapshot) => Kind::SharedOff,
        Some(CauseId::OtherSize) => Kind::OtherSize,
        _ if is_between => Kind::Split,
        _ => Kind::Transparent,
    }
}

/// Neither nearly all nor hardly any: a tenth at least is on each side.
pub fn is_between(part: Bytes, whole: Bytes) -> bool {
    let ten = |bytes: Bytes| bytes.saturating_mul(10);
    ten(part) >= whole && ten(part) <= whole.saturating_mul(9) && whole > 0
}

impl Broken {
    /// Whether enough is missing to cost something.
    pub fn is_worth_it(&self) -> bool {
        let (bytes, percent) = match self.promise.mode {
            Mode::Thp => (TRANSPARENT_BYTES_MIN, TRANSPARENT_PERCENT_MIN),
            _ => (POOL_BYTES_MIN, POOL_PERCENT_MIN),
        };
        let share =
            u128::from(self.missing_bytes) * 100 >= u128::from(self.whole_bytes) * u128::from(percent);
        self.missing_bytes >= bytes && share
    }

    /// "HugeTLB 2M pages (-XX:+UseLargePages)".
    pub fn asked(&self) -> &'static str {
        match self.promise.mode {
            Mode::Thp => "transparent huge pages (-XX:+UseTransparentHugePages)",
            Mode::HugeTlb => "HugeTLB pages (-XX:+UseLargePages)",
            Mode::HugeTlb2M => "HugeTLB 2M pages (-XX:+UseLargePages)",
            Mode::HugeTlb1G => "HugeTLB 1G pages (-XX:+UseLargePages)",
        }
    }

    /// "64.0 MiB of 112.0 MiB (57.1 %)".
    pub fn missing(&self) -> String {
        let share = percent(self.missing_bytes, self.whole_bytes.max(self.missing_bytes));
        format!("{} of {} ({share})", human(self.missing_bytes), human(self.whole_bytes))
    }

    /// The main cause in words.
    pub fn because(&self) -> &str {
        let main = self.causes.iter().find(|cause| cause.code != CauseId::SwitchedOff);
        main.map_or("why is not known", |cause| &cause.what)
    }

    pub fn evidence(&self) -> Vec<Evidence> {
        let whole = match self.promise.mode {
            Mode::Thp => ("in memory of what was to be on them", "account, /proc/PID/pagemap"),
            _ => ("pages that such a JVM reserves", "JDK, collector and flags (`marusa pages plan`)"),
        };
        let mut evidence = vec![
            Evidence::state("asked for", self.asked(), "flags of the JVM, command line"),
            Evidence::bytes(whole.0, self.whole_bytes, whole.1),
            Evidence::bytes("of it not on them", self.missing_bytes, "/proc/PID/pagemap, /proc/PID/maps"),
            Evidence::state("the Java heap is on", self.heap.text(), "/proc/PID/pagemap"),
        ];
        let cause =
            |cause: &Cause| Evidence::state("why", &cause.what, "the kernel's settings, the page tables");
        evidence.extend(self.causes.iter().map(cause));
        let logged = self.false_claims.iter().filter(|claim| claim.source.starts_with("-Xlog"));
        evidence.extend(logged.map(|claim| {
            Evidence::state(format!("what the JVM says of: {}", claim.about), &claim.says, &claim.source)
        }));
        evidence
    }

    /// What each cause says, and then the plan with exact numbers.
    pub fn remedies(&self, pid: i32) -> Vec<Remedy> {
        let nexts = self.causes.iter().filter(|cause| !cause.next.is_empty());
        let mut remedies: Vec<Remedy> = nexts.map(|cause| Remedy::Advice(cause.next.clone())).collect();
        remedies.insert(
            0,
            Remedy::Command(format!("marusa pages plan {pid} --mode {}", mode(self.promise.mode))),
        );
        remedies
    }

    /// What is missing of pages that were asked for, and why.
    pub fn lacking(&self, jvm: &JvmFacts) -> Finding {
        let level = if self.is_worth_it() { Level::Warn } else { Level::Info };
        let title = format!("{} have no {}: {}", self.missing(), self.asked(), self.because());
        self.finding(level, jvm, title)
    }

    pub fn finding(&self, level: Level, jvm: &JvmFacts, title: String) -> Finding {
        Finding::on_jvm(jvm.pid, level, title, self.evidence(), self.remedies(jvm.pid))
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Thp => "thp",
        Mode::HugeTlb => "hugetlb",
        Mode::HugeTlb2M => "hugetlb-2m",
        Mode::HugeTlb1G => "hugetlb-1g",
    }
}

/// The promise of a JVM that is broken in this way.
pub fn broken_by(jvm: &JvmFacts, kind: Kind) -> Option<Broken> {
    broken(jvm).filter(|broken| broken.kind == kind)
}
