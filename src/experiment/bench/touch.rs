//! `marusa bench touch`: what the first touch of memory costs, by page size and number of threads, and how many bytes of page
//! tables it leaves. By memory of our own, where the zeroing can be distinguished from the rest, and by JVMs that touch their heap
//! when they start (-XX:+AlwaysPreTouch).

use super::Machine;
use super::fork::Spread;
use super::trials;
use crate::base::Bytes;
use crate::os::busy::Others;
use crate::os::machine::base_page;
use schemars::JsonSchema;
use serde::Serialize;

/// Who touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Memory of our own.
    Own,
    /// The heap of a JVM, when it starts.
    Jvm,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            By::Own => "own memory",
            By::Jvm => "heap of a JVM",
        }
    }
}

/// Pages that memory is touched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(into = "PagesRow")]
pub enum Pages {
    Small,
    Transparent(Bytes),
    HugeTlb(Bytes),
}

/// Pages as the results have them.
#[derive(JsonSchema, Serialize)]
struct PagesRow {
    pages: String,
    page_bytes: Bytes,
}

impl From<Pages> for PagesRow {
    fn from(pages: Pages) -> PagesRow {
        PagesRow { pages: pages.name(), page_bytes: pages.bytes() }
    }
}

impl Pages {
    pub fn bytes(self) -> Bytes {
        match self {
            Pages::Small => base_page(),
            Pages::Transparent(bytes) | Pages::HugeTlb(bytes) => bytes,
        }
    }

    /// "4k", "thp-64k", "thp-2m", "hugetlb-1g".
    pub fn name(self) -> String {
        let size = crate::os::page_kind::size_name(self.bytes());
        match self {
            Pages::Small => size,
            Pages::Transparent(_) => format!("thp-{size}"),
            Pages::HugeTlb(_) => format!("hugetlb-{size}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
pub struct Arm {
    pub by: By,
    #[serde(flatten)]
    pub pages: Pages,
    pub threads: usize,
}

impl trials::Arm for Arm {
    fn name(&self) -> String {
        format!("{}, {}, threads {}", self.by.name(), self.pages.name(), self.threads)
    }
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Settings {
    pub machine: Machine,
    /// `None`: no JVM is measured.
    pub jdk: Option<String>,
    pub bytes: Bytes,
    #[serde(skip)]
    pub arms: Vec<Arm>,
    pub rounds: usize,
    pub seed: u64,
}

/// One touch.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Trial {
    pub round: usize,
    #[serde(flatten)]
    pub arm: Arm,
    pub left_out: Option<String>,
    pub figures: Option<Figures>,
    /// What others on the machine took while it ran; `None`: not known.
    pub others: Option<Others>,
}

impl trials::Turn for Trial {
    type Arm = Arm;

    fn is_of(&self, round: usize, arm: &Arm) -> bool {
        self.round == round && self.arm == *arm
    }

    fn set_others(&mut self, others: Option<Others>) {
        self.others = others;
    }
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Figures {
    /// Memory that was touched.
    pub bytes: Bytes,
    /// The share of it on pages of the arm's size.
    pub share: f64,
    /// Until the last thread was done.
    pub touch_ns: f64,
    /// On processors, all threads together: what others took in the meantime is not in it.
    pub touch_cpu_ns: Option<f64>,
    /// Writing the same bytes once more; only of our own memory.
    pub fill_cpu_ns: Option<f64>,
    pub faults: Option<u64>,
    pub page_table_bytes: Option<Bytes>,
}

/// What would change on the host for an arm.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Planned {
    #[serde(flatten)]
    pub arm: Arm,
    /// `None`: the arm is impossible.
    pub steps: Option<Vec<String>>,
    pub why_not: Option<String>,
}

type Figure = fn(&Figures) -> Option<f64>;

impl Figures {
    /// The ones that are shown for an arm.
    pub const ALL: [(&str, Figure); 8] = [
        ("ns_per_4k", |figures| Some(figures.ns_per_4k())),
        ("cpu_ns_per_4k", Figures::cpu_ns_per_4k),
        ("zeroing_ns_per_4k", Figures::fill_ns_per_4k),
        ("rest_ns_per_4k", Figures::rest_ns_per_4k),
        ("gb_per_second", |figures| Some(figures.gb_per_second())),
        ("faults", |figures| Some(figures.faults? as f64)),
        ("page_table_bytes_per_gib", Figures::tables_per_gib),
        ("share", |figures| Some(figures.share)),
    ];

    fn pages(&self) -> f64 {
        self.bytes as f64 / base_page() as f64
    }
    pub fn ns_per_4k(&self) -> f64 {
        self.touch_ns / self.pages()
    }
    pub fn cpu_ns_per_4k(&self) -> Option<f64> {
        Some(self.touch_cpu_ns? / self.pages())
    }
    pub fn fill_ns_per_4k(&self) -> Option<f64> {
        Some(self.fill_cpu_ns? / self.pages())
    }
    /// What is not zeroing: the faults themselves, taking pages, page tables. Not below nothing: it is a difference.
    pub fn rest_ns_per_4k(&self) -> Option<f64> {
        Some((self.cpu_ns_per_4k()? - self.fill_ns_per_4k()?).max(0.0))
    }
    /// Bytes a nanosecond are 10^9 bytes a second.
    pub fn gb_per_second(&self) -> f64 {
        self.bytes as f64 / self.touch_ns
    }
    pub fn tables_per_gib(&self) -> Option<f64> {
        Some(self.page_table_bytes? as f64 * (1_u64 << 30) as f64 / self.bytes as f64)
    }
}

/// What the rounds of an arm say.
pub fn spread(trials: &[Trial], arm: &Arm, figure: &dyn Fn(&Figures) -> Option<f64>) -> Option<Spread> {
    let counted = trials.iter().filter(|trial| trial.arm == *arm && trial.left_out.is_none());
    Spread::of(counted.filter_map(|trial| figure(trial.figures.as_ref()?)))
}

/// A fault that maps the zero page, which is neither taken nor zeroed: what a fault alone costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZeroFault {
    pub ns_per_fault: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(touch_ns: f64, fill_cpu_ns: Option<f64>) -> Figures {
        Figures {
            bytes: 1 << 30,
            share: 1.0,
            touch_ns,
            touch_cpu_ns: Some(touch_ns / 2.0),
            fill_cpu_ns,
            faults: Some(262_144),
            page_table_bytes: Some(2 << 20),
        }
    }

    #[test]
    fn figures_by_page() {
        let found = figures(262_144_000.0, Some(100_000_000.0));
        assert_eq!((found.ns_per_4k(), found.cpu_ns_per_4k()), (1000.0, Some(500.0)));
        assert!((found.gb_per_second() - 4.096).abs() < 1e-9);
        assert!((found.fill_ns_per_4k().expect("own") - 381.47).abs() < 0.01);
        assert!((found.rest_ns_per_4k().expect("own") - 118.53).abs() < 0.01);
        assert_eq!(found.tables_per_gib(), Some(2097152.0));
        assert_eq!(figures(1.0, Some(2.0)).rest_ns_per_4k(), Some(0.0));
        assert_eq!(figures(1.0, None).rest_ns_per_4k(), None);
    }

    #[test]
    fn what_does_not_count_is_left_out() {
        let arms: Vec<Arm> = [Pages::Small, Pages::Transparent(64 << 10), Pages::HugeTlb(2 << 20)]
            .map(|pages| Arm { by: By::Own, pages, threads: 1 })
            .to_vec();
        let names: Vec<String> = arms.iter().map(|arm| arm.pages.name()).collect();
        assert_eq!(names, ["4k", "thp-64k", "hugetlb-2m"]);
        let trial = |round, ns, left_out: Option<&str>| Trial {
            round,
            arm: arms[0].clone(),
            left_out: left_out.map(str::to_string),
            figures: Some(figures(ns, None)),
            others: None,
        };
        let trials = [trial(0, 10.0, None), trial(1, 30.0, None), trial(2, 900.0, Some("on 2M pages"))];
        let found = spread(&trials, &arms[0], &|figures| Some(figures.touch_ns)).expect("two");
        assert_eq!((found.middle, found.from, found.to, found.rounds), (20.0, 10.0, 30.0, 2));
        assert_eq!(spread(&trials, &arms[1], &|_| Some(1.0)), None);
    }
}
